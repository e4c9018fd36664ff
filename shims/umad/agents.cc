// SPDX-License-Identifier: BSD-2-Clause
#include "shims/umad/agents.h"

#include <cstring>
#include <mutex>
#include <vector>

#include "shims/umad/mad.h"

namespace vabi::umad {
namespace {

constexpr uint8_t kMaxClassVersion = 0x83, kMaxClass = 80;  // MAX_MGMT_VERSION, MAX_MGMT_CLASS
constexpr uint8_t kRmppVersion = 1;                         // IB_MGMT_RMPP_VERSION
constexpr uint8_t kCmClassVersion = 2;                      // IB_CM_CLASS_VERSION

struct Listener {
  uint32_t device;
  uint8_t port;
  std::weak_ptr<Agent> agent;
};
struct State {
  std::mutex mutex;
  std::vector<Listener> listeners;
  uint32_t next_tid = 0;
};
State& Get() {
  static auto* const state = new State();
  return *state;
}

// convert_mgmt_class
uint8_t TableClass(uint8_t mgmt_class) { return mgmt_class == kSubnDirected ? 0 : mgmt_class; }

bool Overlaps(const Registration& a, const Registration& b) {
  if (a.class_version != b.class_version) return false;
  if (TableClass(a.mgmt_class) != TableClass(b.mgmt_class)) return false;
  if (IsVendorOui(a.mgmt_class) && std::memcmp(a.oui, b.oui, 3) != 0) return false;
  return (a.methods[0] & b.methods[0]) != 0 || (a.methods[1] & b.methods[1]) != 0;
}

// core/cm.c:cm_add_one takes the Send method of its class on each port.
Registration KernelsCm() {
  Registration cm;
  cm.qpn = 1;
  cm.mgmt_class = kCommunication;
  cm.class_version = kCmClassVersion;
  cm.methods[0] = 1U << kSend;
  return cm;
}

// The first broken rule in the kernel's order, or no rule.
constexpr RuleId kNoRule = RuleId::kCount;
RuleId Broken(const Decision& call, const Device& device, const Registration& what) {
  const bool has_class = what.mgmt_class != 0;
  // rdma_cap_ib_smi: RoCE ports have no QP0. iWARP ports have no node at all.
  const bool served = what.qpn != 0 || device.image().link == LinkLayer::kInfiniband;
  const uint8_t number = what.mgmt_class;
  const bool subnet = number == kSubnLid || number == kSubnDirected;
  const struct {
    RuleId rule;
    bool broken;
  } checks[] = {
      {RuleId::umad_agent_service_first, !served},
      {RuleId::umad_agent_rmpp_version,
       what.rmpp_version != 0 && what.rmpp_version != kRmppVersion},
      {RuleId::umad_agent_class_version, has_class && what.class_version >= kMaxClassVersion},
      {RuleId::umad_agent_class, has_class && number >= kMaxClass && number != kSubnDirected},
      {RuleId::umad_agent_vendor_oui,
       has_class && IsVendorOui(number) && !(what.oui[0] | what.oui[1] | what.oui[2])},
      {RuleId::umad_agent_class_rmpp, has_class && !HasRmpp(number) && what.rmpp_version != 0},
      {RuleId::umad_agent_class_qp, has_class && (what.qpn == 0) != subnet},
      {RuleId::umad_agent_user_rmpp, !has_class && (what.flags & kUserRmpp) != 0},
      {RuleId::umad_agent_service, !served},
  };
  for (const auto& check : checks) {
    if (call.Violates(check.rule, check.broken)) return check.rule;
  }
  return kNoRule;
}

}  // namespace

std::shared_ptr<Agent> Register(Decision& call, const Device& device, uint8_t port,
                                const Registration& what, int* error) {
  const RuleId broken = Broken(call, device, what);
  if (broken != kNoRule) {
    *error = call.Refuse(broken);
    return nullptr;
  }
  State& state = Get();
  std::lock_guard lock(state.mutex);
  std::erase_if(state.listeners, [](const Listener& entry) { return entry.agent.expired(); });
  bool in_use = device.world().Knob(KnobId::modules_cm) != 0 && Overlaps(what, KernelsCm());
  for (const Listener& entry : state.listeners) {
    const auto other = entry.agent.lock();
    in_use |= other != nullptr && entry.device == device.number() && entry.port == port &&
              other->what.mgmt_class != 0 && Overlaps(what, other->what);
  }
  if (call.Violates(RuleId::umad_agent_in_use, what.mgmt_class != 0 && in_use)) {
    *error = call.Refuse(RuleId::umad_agent_in_use);
    return nullptr;
  }
  auto agent = std::make_shared<Agent>();
  agent->what = what;
  agent->hi_tid = ++state.next_tid;
  state.listeners.push_back({device.number(), port, agent});
  *error = 0;
  return agent;
}

std::shared_ptr<Agent> FindListener(const Device& device, uint8_t port, const uint8_t* mad) {
  Registration wanted;
  wanted.mgmt_class = mad[1];
  wanted.class_version = mad[2];
  const uint8_t method = mad[3] & 0x7f;
  wanted.methods[method / 64] = 1ULL << (method % 64);
  std::memcpy(wanted.oui, mad + 37, sizeof(wanted.oui));  // struct ib_vendor_mad
  State& state = Get();
  std::lock_guard lock(state.mutex);
  for (const Listener& entry : state.listeners) {
    auto agent = entry.agent.lock();
    if (agent != nullptr && entry.device == device.number() && entry.port == port &&
        agent->what.mgmt_class != 0 && Overlaps(wanted, agent->what)) {
      return agent;
    }
  }
  return nullptr;
}

}  // namespace vabi::umad
