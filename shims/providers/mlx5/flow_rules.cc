// SPDX-License-Identifier: BSD-2-Clause
// fs.c: mlx5_ib_create_flow, mlx5_ib_destroy_flow: CREATE_FLOW of the core.
#include <mutex>

#include "shims/fabric/nic.h"
#include "shims/providers/mlx5/counters.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/providers/mlx5/flow_parse.h"
#include "shims/providers/mlx5/flow_state.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/qp_state.h"

namespace vabi::mlx5 {
namespace {

#define ATTR(name) VABI_F(ib_uverbs_flow_attr, name)

// enum ib_flow_attr_type, ib_flow_flags
constexpr uint32_t kNormal = 0, kAllDefault = 1, kMcDefault = 2, kSniffer = 3;
constexpr uint32_t kDontTrap = 1 << 1, kEgress = 1 << 2;

// A rule of its own for each half of the address space.
std::unique_ptr<FlowRule> Leftovers(const FlowRule& like, uint8_t multicast) {
  auto rule = std::make_unique<FlowRule>(like);
  rule->priority = kLeftoversPriority;
  rule->enable = kMatchOuter;
  rule->mask[kMatchDmac] = 1;
  rule->value[kMatchDmac] = multicast;
  return rule;
}

class Creator {
 public:
  Creator(Call& call, Flow& flow)
      : call_(call),
        flow_(flow),
        attr_(call.world, flow.attributes.data(), call.world.Size(VABI_S(ib_uverbs_flow_attr))),
        specs_(std::span(flow.attributes).subspan(attr_.length())),
        type_(attr_.U32(ATTR(type))),
        flags_(attr_.U32(ATTR(flags))) {}

  int Run() {
    if (const int error = request_.Read(call_)) return error;
    if (const int error = CheckAttributes()) return error;
    // Only raw packet queue pairs have a receive side that flow rules know.
    if (flow_.qp->qp_type != kQptRawPacket) {
      return call_.Unmodelled("mlx5: flow rules of datagram queue pairs");
    }
    auto state = std::make_unique<FlowState>();
    FlowRule rule;
    rule.device = flow_.device->number();
    rule.egress = (flags_ & kEgress) != 0;
    rule.next = (flags_ & kDontTrap) != 0;
    if (!rule.egress) rule.sink = SinkOf(*flow_.qp);
    const int error = type_ == kNormal ? MakeNormal(rule, state.get()) : 0;
    if (error != 0) return error;
    if (type_ != kNormal) {
      state->rules.push_back(Leftovers(rule, 1));
      if (type_ == kAllDefault) state->rules.push_back(Leftovers(rule, 0));
    }
    if (const int conflict = state->Install(call_)) {
      if (state->counters != nullptr && state->counters->flows == 0) state->counters->Forget();
      return conflict;
    }
    if (state->counters != nullptr) ++state->counters->flows;
    flow_.driver = std::move(state);
    return 0;
  }

 private:
  int CheckAttributes() {
    if (attr_.U32(ATTR(priority)) > kLastUserPriority) {
      return call_.Refuse(RuleId::mlx5_create_flow_priority);
    }
    const bool knows_egress = call_.world.Knob(KnobId::mlx5_flow_egress) != 0;
    const uint32_t known = kDontTrap | (knows_egress ? kEgress : 0);
    if (call_.Violates(RuleId::mlx5_create_flow_flags, (flags_ & ~known) != 0)) {
      return call_.Refuse(RuleId::mlx5_create_flow_flags);
    }
    const bool leftovers = type_ == kAllDefault || type_ == kMcDefault;
    if (call_.Violates(RuleId::mlx5_create_flow_egress_default,
                       (flags_ & kEgress) != 0 && leftovers)) {
      return call_.Refuse(RuleId::mlx5_create_flow_egress_default);
    }
    if (type_ == kSniffer) return call_.Refuse(RuleId::mlx5_create_flow_sniffer);
    if (type_ > kSniffer) return call_.Refuse(RuleId::mlx5_create_flow_type);
    return 0;
  }

  // _create_flow_rule
  int MakeNormal(const FlowRule& like, FlowState* state) {
    auto rule = std::make_unique<FlowRule>(like);
    FlowActions actions;
    if (const int error = ParseSpecs(call_, specs_, rule.get(), &actions)) return error;
    rule->priority = PriorityOf(attr_.U32(ATTR(priority)), rule->next);
    if (MulticastOnly(specs_) && !rule->next) rule->priority = kMulticastPriority;
    if (!Parses(rule->mask, rule->enable)) {
      return call_.Unmodelled("mlx5: a match of headers that no frame here has");
    }
    rule->drop = actions.drop;
    rule->has_tag = actions.has_tag;
    rule->tag = actions.tag;
    if (actions.drop) {
      rule->sink = nullptr;
      rule->next = false;
    }
    if (actions.count) {
      CountersState* counters = CountersOf(flow_);
      if (const int error = counters->Describe(call_, request_)) return error;
      rule->counter = &counters->counter;
      state->counters = counters;
    }
    state->rules.push_back(std::move(rule));
    return 0;
  }

  Call& call_;
  Flow& flow_;
  const Body attr_;
  std::span<const uint8_t> specs_;
  uint32_t type_, flags_;
  CreateFlowRequest request_;
};
#undef ATTR

}  // namespace

uint32_t PriorityOf(uint32_t priority, bool dont_trap) {
  return priority * 2 + (dont_trap ? 0 : 1);
}

int FlowState::Install(Call& call) {
  std::lock_guard lock(fabric::Lock());
  for (const auto& rule : rules) {
    bool beyond = false;
    for (size_t i = 0; i < kMatchSize; ++i) beyond |= (rule->value[i] & ~rule->mask[i]) != 0;
    if (call.Violates(RuleId::mlx5_create_flow_value, beyond)) {
      return call.Refuse(RuleId::mlx5_create_flow_value);
    }
    if (call.Violates(RuleId::mlx5_create_flow_conflict, Conflicts(*rule))) {
      return call.Refuse(RuleId::mlx5_create_flow_conflict);
    }
  }
  for (const auto& rule : rules) AddRule(rule.get());
  return 0;
}

FlowState::~FlowState() {
  std::lock_guard lock(fabric::Lock());
  for (const auto& rule : rules) RemoveRule(rule.get());
}

int Mlx5Driver::CreateFlow(Call& call, Flow& flow) { return Creator(call, flow).Run(); }

void Mlx5Driver::DestroyFlow(Flow& flow) {
  auto* state = static_cast<FlowState*>(flow.driver.get());
  if (state == nullptr) return;
  if (state->counters != nullptr && --state->counters->flows == 0) state->counters->Forget();
  if (state->matcher != nullptr) --state->matcher->users;
  flow.driver.reset();
}

}  // namespace vabi::mlx5
