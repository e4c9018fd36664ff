// SPDX-License-Identifier: BSD-2-Clause
// qp.c: what is dynamically connected. Initiators (DCI) are queue pairs with state changes of their
// own; targets (DCT) are known to the NIC from RTR on.
#include <cstring>
#include <mutex>

#include "shims/fabric/address.h"
#include "shims/fabric/nic.h"
#include "shims/fabric/remote.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/qp_state.h"

namespace vabi::mlx5 {
namespace {

#define RESP(field) VABI_F(mlx5_ib_modify_qp_resp, field)

using fabric::EndpointState;
using S = vabi::QpState;

bool Fits(uint32_t mask, uint32_t required, uint32_t optional) {
  return (mask & required) == required && (mask & ~(required | optional)) == 0;
}

int ToInit(Call& call, Qp& qp, const QpAttributes& attr, uint32_t mask) {
  constexpr uint32_t kRequired = kQpState | kQpAccessFlags | kQpPkeyIndex | kQpPort;
  if (call.Violates(RuleId::mlx5_modify_dct_mask, mask != kRequired))
    return call.Refuse(RuleId::mlx5_modify_dct_mask);
  std::lock_guard lock(fabric::Lock());
  QueuePair& pair = *StateOf(qp).pair;
  pair.access = attr.access_flags & (fabric::kAccessRemoteWrite | fabric::kAccessRemoteRead |
                                     fabric::kAccessRemoteAtomic);
  pair.port = attr.port_num != 0 ? attr.port_num : 1;
  pair.state = EndpointState::kInit;
  StateOf(qp).target = attr;
  return 0;
}

// CREATE_DCT
int ToRtr(Call& call, Qp& qp, const QpAttributes& attr, uint32_t mask) {
  const size_t least = call.world.End(RESP(dctn)),
               whole = call.world.Size(VABI_S(mlx5_ib_modify_qp_resp));
  const size_t room = call.out.length();
  if (call.Violates(RuleId::mlx5_modify_dct_reply, room < least))
    return call.Refuse(RuleId::mlx5_modify_dct_reply);
  constexpr uint32_t kRequired = kQpState | kQpMinRnrTimer | kQpAv | kQpPathMtu;
  if (call.Violates(RuleId::mlx5_modify_dct_mask, mask != kRequired))
    return call.Refuse(RuleId::mlx5_modify_dct_mask);
  const uint32_t number = qp.device->NextQpn();
  OwnedBody<32> reply(call.world, VABI_S(mlx5_ib_modify_qp_resp));
  reply.Set(RESP(response_length), room < whole ? least : whole);
  reply.Set(RESP(dctn), number);
  if (const int error =
          Respond(call, reply.base(), room < whole ? least : whole, OldRespond::kClip)) {
    return error;
  }
  QueuePair& pair = *StateOf(qp).pair;
  StateOf(qp).target = attr;
  {
    std::lock_guard lock(fabric::Lock());
    pair.qpn = number;
    pair.min_rnr_timer = attr.min_rnr_timer;
    pair.mtu = 128u << attr.path_mtu;
    pair.address = attr.address;
    pair.lid = qp.device->port(pair.port).lid;
    fabric::SendAs(&pair, attr.address.sgid_index);
    pair.state = EndpointState::kRtr;
    fabric::AddEndpoint(&pair);
  }
  fabric::Kick();
  fabric::Attend(pair);
  return 0;
}

}  // namespace

bool InitiatorMayChange(const World& world, S from, S to, uint32_t mask) {
  uint32_t required = kQpState, optional = 0;
  if (to == S::kReset) {
    if (world.Knob(KnobId::mlx5_dci_reset) == 0) return false;
  } else if (from == S::kReset && to == S::kInit) {
    required |= kQpPkeyIndex | kQpPort;
  } else if (from == S::kInit && to == S::kInit) {
    optional = kQpPkeyIndex | kQpPort;
  } else if (from == S::kInit && to == S::kRtr) {
    required |= kQpPathMtu;
    optional = kQpPkeyIndex | (world.Knob(KnobId::mlx5_dci_rtr_address) != 0 ? kQpAv : 0u);
  } else if (from == S::kRtr && to == S::kRts) {
    required |= kQpTimeout | kQpRetryCnt | kQpRnrRetry | kQpMaxRdAtomic | kQpSqPsn;
    optional = kQpMinRnrTimer;
  } else if (from == S::kRts && to == S::kRts) {
    optional = kQpMinRnrTimer;
  } else if (from == S::kReset || to != S::kErr) {
    return false;
  }
  return Fits(mask, required, optional);
}

int ModifyTarget(Call& call, Qp& qp, S next, const QpAttributes& attr, uint32_t mask) {
  if (call.Violates(RuleId::mlx5_modify_dct_state, (mask & kQpState) == 0))
    return call.Refuse(RuleId::mlx5_modify_dct_state);
  const auto now = static_cast<S>(StateOf(qp).pair->state);
  if (now == S::kReset && next == S::kInit) return ToInit(call, qp, attr, mask);
  if (now == S::kInit && next == S::kRtr) return ToRtr(call, qp, attr, mask);
  return call.Refuse(RuleId::mlx5_modify_dct_transition);
}

// Only what was asked for is told; all else is zero, and sq_sig_type 0 is IB_SIGNAL_ALL_WR.
void QueryTarget(Qp& qp) {
  const QueuePairState& state = StateOf(qp);
  qp.attr = QpAttributes();
  const auto asked = [&](uint32_t bit) { return (state.query_mask & bit) != 0; };
  qp.state = asked(kQpState) ? S::kRtr : S::kReset;
  if (asked(kQpAccessFlags)) qp.attr.access_flags = state.pair->access;
  if (asked(kQpPort)) qp.attr.port_num = state.pair->port;
  if (asked(kQpMinRnrTimer)) qp.attr.min_rnr_timer = state.target.min_rnr_timer;
  if (asked(kQpPathMtu)) qp.attr.path_mtu = state.target.path_mtu;
  if (asked(kQpPkeyIndex)) qp.attr.pkey_index = state.target.pkey_index;
  qp.cap = QpCapabilities();
  qp.signal_all = true;
}

bool Mlx5Driver::ChecksTransition(const World&, const Qp& qp, uint32_t) const {
  return static_cast<const QueuePairState*>(qp.driver.get())->dynamic == Dynamic::kNone;
}

int Mlx5Driver::CheckQuery(Call& call, const Qp& qp, uint32_t mask) {
  if (qp.ind_table != nullptr) return 0;
  auto& state = *static_cast<QueuePairState*>(qp.driver.get());
  state.query_mask = mask;
  if (state.dynamic != Dynamic::kTarget) return 0;
  constexpr uint32_t kTold =
      kQpState | kQpAccessFlags | kQpPort | kQpMinRnrTimer | kQpAv | kQpPathMtu | kQpPkeyIndex;
  if (call.Violates(RuleId::mlx5_query_dct_mask, (mask & ~kTold) != 0))
    return call.Refuse(RuleId::mlx5_query_dct_mask);
  if (call.Violates(RuleId::mlx5_query_dct_state, state.pair->state != EndpointState::kRtr))
    return call.Refuse(RuleId::mlx5_query_dct_state);
  return 0;
}

vabi::QpState Mlx5Driver::CurrentState(const World&, const Qp& qp) const {
  const auto* state = static_cast<const QueuePairState*>(qp.driver.get());
  return state->dynamic == Dynamic::kTarget ? S::kReset : qp.state;
}

}  // namespace vabi::mlx5
