// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/steering.h"

#include <algorithm>
#include <vector>

namespace vabi::mlx5 {
namespace {

// In the order of priorities, and of their creation. Never destroyed: the NIC's thread may outlive
// destructors.
std::vector<FlowRule*>& Rules() {
  static auto* const rules = new std::vector<FlowRule*>();
  return *rules;
}

bool SameMatch(const FlowRule& one, const FlowRule& other) {
  return one.device == other.device && one.egress == other.egress &&
         one.priority == other.priority && one.enable == other.enable && one.mask == other.mask &&
         one.value == other.value;
}

struct Verdict {
  bool drop = false, next = false;
};

// The entry of the table that `first` stands for: all rules of its match.
Verdict Apply(const FlowRule& first, Frame frame) {
  Verdict verdict;
  for (const FlowRule* rule : Rules()) {
    if (!SameMatch(*rule, first)) continue;
    if (rule->has_tag) frame.flow_tag = rule->tag;
  }
  for (const FlowRule* rule : Rules()) {
    if (!SameMatch(*rule, first)) continue;
    if (rule->counter != nullptr) {
      ++rule->counter->packets;
      rule->counter->bytes += frame.length;
    }
    verdict.drop |= rule->drop;
    verdict.next |= rule->next;
    if (rule->sink != nullptr) rule->sink->Receive(frame);
  }
  return verdict;
}

// True: a rule drops the frame.
bool Walk(uint32_t device, bool egress, const Frame& frame) {
  const MatchParams packet = ParseFrame(frame);
  uint32_t from = 0;
  for (bool more = true; more;) {
    const auto found = std::find_if(Rules().begin(), Rules().end(), [&](const FlowRule* rule) {
      return rule->device == device && rule->egress == egress && rule->priority >= from &&
             Matches(packet, rule->mask, rule->value, rule->enable);
    });
    if (found == Rules().end()) return false;
    from = (*found)->priority + 1;
    const Verdict verdict = Apply(**found, frame);
    if (verdict.drop) return true;
    more = verdict.next;
  }
  return false;
}

}  // namespace

bool Conflicts(const FlowRule& rule) {
  for (const FlowRule* old : Rules()) {
    if (!SameMatch(*old, rule)) continue;
    if (old->drop != rule.drop || (rule.has_tag && old->tag != rule.tag)) return true;
  }
  return false;
}

void AddRule(FlowRule* rule) {
  const auto place = std::upper_bound(
      Rules().begin(), Rules().end(), rule->priority,
      [](uint32_t priority, const FlowRule* other) { return priority < other->priority; });
  Rules().insert(place, rule);
}

void RemoveRule(FlowRule* rule) { std::erase(Rules(), rule); }

void Steer(uint32_t device, Frame frame) { Walk(device, false, frame); }

bool Leaves(uint32_t device, const Frame& frame) { return !Walk(device, true, frame); }

}  // namespace vabi::mlx5
