// SPDX-License-Identifier: BSD-2-Clause
// qp.c: mlx5_ib_modify_qp, __mlx5_ib_modify_qp, mlx5_ib_query_qp
#include <algorithm>
#include <cstring>
#include <mutex>

#include "shims/fabric/address.h"
#include "shims/fabric/nic.h"
#include "shims/fabric/remote.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/providers/mlx5/rate.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/qp_state.h"

namespace vabi::mlx5 {
namespace {

#define REQ(field) VABI_F(mlx5_ib_modify_qp, field)

using fabric::EndpointState;

// Each as its transition leads (optab). Nothing brings a queue pair to SQD, so that SQD to RTS (in
// 5.14, not in 5.12) is never asked for.
bool TransitionExists(vabi::QpState from, vabi::QpState to) {
  using S = vabi::QpState;
  if (to == S::kReset || to == S::kErr)
    return from != S::kReset || to == S::kReset || to == S::kErr;
  switch (from) {
    case S::kReset:
      return to == S::kInit;
    case S::kInit:
      return to == S::kInit || to == S::kRtr;
    case S::kRtr:
    case S::kRts:
    case S::kSqe:
      return to == S::kRts;
    default:
      return false;
  }
}

EndpointState ToEndpoint(vabi::QpState state) { return static_cast<EndpointState>(state); }

uint8_t RoundUpDepth(uint8_t depth) {
  uint32_t power = 1;
  while (power < depth) power *= 2;
  return static_cast<uint8_t>(std::min(power, 128u));
}
// ilog2 of some releases
uint8_t RoundDownDepth(uint8_t depth) {
  uint32_t power = 1;
  while (power * 2 <= depth) power *= 2;
  return static_cast<uint8_t>(power);
}

uint32_t MtuBytes(uint8_t mtu) { return 128u << mtu; }

constexpr uint8_t kMtu256 = 1, kMtu4096 = 5;

class Modifier {
 public:
  Modifier(Call& call, Qp& qp, vabi::QpState next, const QpAttributes& attr, uint32_t mask)
      : call_(call),
        world_(call.world),
        qp_(qp),
        state_(StateOf(qp)),
        next_(next),
        attr_(attr),
        mask_(mask) {}

  int Run() {
    if (call_.Violates(RuleId::mlx5_modify_qp_mask,
                       (mask_ & ~static_cast<uint32_t>(kQpStandardBits | kQpRateLimit)) != 0)) {
      return call_.Refuse(RuleId::mlx5_modify_qp_mask);
    }
    if (qp_.ind_table != nullptr) return call_.Refuse(RuleId::mlx5_modify_qp_rss);
    if (const int error = ReadRequest()) return error;
    if (state_.dynamic == Dynamic::kTarget) return ModifyTarget(call_, qp_, next_, attr_, mask_);
    const vabi::QpState from = qp_.state;
    if (call_.Violates(RuleId::mlx5_modify_dci,
                       state_.dynamic == Dynamic::kInitiator &&
                           !InitiatorMayChange(world_, from, next_, mask_))) {
      return call_.Refuse(RuleId::mlx5_modify_dci);
    }
    if (call_.Violates(RuleId::mlx5_modify_qp_pkey,
                       (mask_ & kQpPkeyIndex) != 0 && attr_.pkey_index >= Port().pkey_count)) {
      return call_.Refuse(RuleId::mlx5_modify_qp_pkey);
    }
    if (const int error = CheckDepths()) return error;
    if (from == next_ && from == vabi::QpState::kReset) return 0;
    if (const int error = CheckPath()) return error;
    if (!TransitionExists(from, next_)) return call_.Refuse(RuleId::mlx5_modify_qp_transition);
    if (call_.Violates(RuleId::mlx5_modify_qp_rate_limit,
                       (mask_ & kQpRateLimit) != 0 && !kCaps.packet_pacing)) {
      return call_.Refuse(RuleId::mlx5_modify_qp_rate_limit);
    }
    {
      std::lock_guard lock(fabric::Lock());
      if (FirmwareRefuses()) return call_.Refuse(RuleId::mlx5_modify_qp_firmware);
      Apply();
    }
    fabric::Kick();
    fabric::Attend(*state_.pair);
    return Reply();
  }

 private:
  const PortImage& Port() const {
    const uint32_t port =
        attr_.port_num != 0 && qp_.device->ValidPort(attr_.port_num) ? attr_.port_num : 1;
    return qp_.device->port(port);
  }

  int ReadRequest() {
    const bool looks = world_.Knob(KnobId::mlx5_modify_qp_request) != 0;
    if (!looks || call_.in.length() == 0) return 0;
    OwnedBody<64> body(world_, VABI_S(mlx5_ib_modify_qp));
    const size_t least =
        world_.Has(REQ(ece_options)) ? world_.End(REQ(ece_options)) : world_.End(REQ(reserved));
    const RequestRules rules = {least, RuleId::mlx5_modify_qp_length, RuleId::mlx5_modify_qp_tail};
    if (const int error = CopyRequest(call_, body.base(), body.length(), rules)) return error;
    const auto out_of_order = static_cast<uint64_t>(world_.Flag(VABI_C(MLX5_IB_MODIFY_QP_OOO_DP)));
    const uint64_t comp_mask = body.Get(REQ(comp_mask));
    if (call_.Violates(RuleId::mlx5_modify_qp_comp_mask, (comp_mask & ~out_of_order) != 0)) {
      return call_.Refuse(RuleId::mlx5_modify_qp_comp_mask);
    }
    const uint64_t reserved = body.Sub(REQ(burst_info)).Get(VABI_F(mlx5_ib_burst_info, reserved)) |
                              (world_.Has(REQ(ece_options)) ? 0 : body.Get(REQ(reserved)));
    if (call_.Violates(RuleId::mlx5_modify_qp_reserved, reserved != 0)) {
      return call_.Refuse(RuleId::mlx5_modify_qp_reserved);
    }
    if (call_.Violates(RuleId::mlx5_modify_qp_out_of_order,
                       (comp_mask & out_of_order) != 0 && !kCaps.dp_ordering_force)) {
      return call_.Refuse(RuleId::mlx5_modify_qp_out_of_order);
    }
    return 0;
  }

  // validate_rd_atomic
  int CheckDepths() {
    // Of a DCI since 6.1; this NIC makes no difference.
    static_assert(kCaps.log_max_ra_res_dc == kCaps.log_max_ra_res_qp &&
                  kCaps.log_max_ra_req_dc == kCaps.log_max_ra_req_qp);
    const bool wrong =
        ((mask_ & kQpMaxRdAtomic) != 0 && attr_.max_rd_atomic > 1 << kCaps.log_max_ra_res_qp) ||
        ((mask_ & kQpMaxDestRdAtomic) != 0 &&
         attr_.max_dest_rd_atomic > 1 << kCaps.log_max_ra_req_qp);
    if (call_.Violates(RuleId::mlx5_modify_qp_depth, wrong))
      return call_.Refuse(RuleId::mlx5_modify_qp_depth);
    return 0;
  }

  // path_mtu, and mlx5_set_path
  int CheckPath() {
    if (call_.Violates(RuleId::mlx5_modify_qp_mtu,
                       qp_.qp_type != kQptUd && (mask_ & kQpPathMtu) != 0 &&
                           (attr_.path_mtu < kMtu256 || attr_.path_mtu > kMtu4096))) {
      return call_.Refuse(RuleId::mlx5_modify_qp_mtu);
    }
    if ((mask_ & kQpAv) != 0) {
      if (const int error = CheckAddress(attr_.address)) return error;
    }
    if ((mask_ & kQpAltPath) != 0) {
      if (const int error = CheckAddress(attr_.alternate)) return error;
    }
    return 0;
  }

  int CheckAddress(const fabric::AddressVector& address) {
    if (call_.Violates(RuleId::mlx5_modify_qp_sgid,
                       address.is_global && address.sgid_index >= Port().gid_table_length)) {
      return call_.Refuse(RuleId::mlx5_modify_qp_sgid);
    }
    if (call_.Violates(RuleId::mlx5_modify_qp_grh,
                       qp_.device->image().link == LinkLayer::kEthernet && !address.is_global)) {
      return call_.Refuse(RuleId::mlx5_modify_qp_grh);
    }
    if (call_.Violates(RuleId::mlx5_modify_qp_static_rate,
                       !ValidRate(world_, address.static_rate))) {
      return call_.Refuse(RuleId::mlx5_modify_qp_static_rate);
    }
    return 0;
  }

  // The firmware knows the state that the NIC brought about by itself.
  bool FirmwareRefuses() const {
    const EndpointState now = state_.pair->state;
    if (next_ == vabi::QpState::kReset || next_ == vabi::QpState::kErr) return false;
    return now == EndpointState::kErr && qp_.state != vabi::QpState::kErr;
  }

  uint8_t Depth(uint8_t depth) const {
    return world_.Knob(KnobId::mlx5_depth_rounds_up) != 0 ? RoundUpDepth(depth)
                                                          : RoundDownDepth(depth);
  }

  void ApplyAccess(fabric::Endpoint& pair) {
    if ((mask_ & kQpMaxDestRdAtomic) != 0) state_.resp_depth = attr_.max_dest_rd_atomic;
    if ((mask_ & kQpAccessFlags) != 0) state_.atomic_access = attr_.access_flags;
    if ((mask_ & (kQpAccessFlags | kQpMaxDestRdAtomic)) == 0) return;
    // set_qpc_atomic_flags
    uint32_t access = state_.atomic_access;
    if (state_.resp_depth == 0) access &= fabric::kAccessRemoteWrite;
    pair.access = access & (fabric::kAccessRemoteWrite | fabric::kAccessRemoteRead |
                            fabric::kAccessRemoteAtomic);
  }

  void ApplyAddress(fabric::Endpoint& pair) {
    const PortImage& port = Port();
    pair.port = attr_.port_num != 0 ? attr_.port_num : 1;
    pair.lid = port.lid;
    if ((mask_ & kQpAv) != 0) pair.address = attr_.address;
    fabric::SendAs(&pair, pair.address.is_global ? pair.address.sgid_index : 0);
    if (qp_.qp_type == kQptUd) {
      pair.mtu = MtuBytes(port.active_mtu);
    } else if ((mask_ & kQpPathMtu) != 0) {
      pair.mtu = MtuBytes(attr_.path_mtu);
    }
  }

  void Apply() {
    QueuePair& pair = *state_.pair;
    ApplyAccess(pair);
    ApplyAddress(pair);
    if ((mask_ & kQpDestQpn) != 0) pair.dest_qpn = attr_.dest_qp_num;
    if ((mask_ & kQpQkey) != 0) pair.qkey = attr_.qkey;
    if ((mask_ & kQpRnrRetry) != 0) pair.rnr_retry = attr_.rnr_retry;
    if ((mask_ & kQpRetryCnt) != 0) pair.retry_count = attr_.retry_cnt;
    if ((mask_ & kQpTimeout) != 0) pair.timeout = attr_.timeout;
    if ((mask_ & kQpMinRnrTimer) != 0) pair.min_rnr_timer = attr_.min_rnr_timer;
    // 0 leaves the logarithm 0, which is one.
    if ((mask_ & kQpMaxRdAtomic) != 0) {
      pair.max_rd_atomic = attr_.max_rd_atomic == 0 ? 1 : Depth(attr_.max_rd_atomic);
    }
    if ((mask_ & kQpMaxDestRdAtomic) != 0) {
      pair.max_dest_rd_atomic = attr_.max_dest_rd_atomic == 0 ? 1 : Depth(attr_.max_dest_rd_atomic);
    }
    const bool reliable =
        qp_.qp_type == kQptRc || qp_.qp_type == kQptXrcIni || qp_.qp_type == kQptXrcTgt;
    pair.checks_psn = reliable;
    if ((mask_ & kQpSqPsn) != 0) pair.sq_psn = attr_.sq_psn;
    if ((mask_ & kQpRqPsn) != 0) pair.rq_psn = attr_.rq_psn;
    if (next_ == vabi::QpState::kReset) {
      pair.Reset();
      pair.state = EndpointState::kReset;
    } else if (next_ == vabi::QpState::kErr) {
      pair.ToError();
    } else if ((mask_ & kQpState) != 0) {
      pair.state = ToEndpoint(next_);
    }
  }

  int Reply() {
    const size_t size = world_.Size(VABI_S(mlx5_ib_modify_qp_resp));
    const bool answers = world_.Has(VABI_F(mlx5_ib_modify_qp_resp, ece_options));
    if (!answers || call_.out.length() < size) return 0;
    OwnedBody<32> reply(world_, VABI_S(mlx5_ib_modify_qp_resp));
    reply.Set(VABI_F(mlx5_ib_modify_qp_resp, response_length), size);
    return Respond(call_, reply.base(), reply.length(), OldRespond::kClip);
  }

  Call& call_;
  const World& world_;
  Qp& qp_;
  QueuePairState& state_;
  vabi::QpState next_;
  const QpAttributes& attr_;
  uint32_t mask_;
};

}  // namespace

int Mlx5Driver::ModifyQp(Call& call, Qp& qp, vabi::QpState next, const QpAttributes& attr,
                         uint32_t mask) {
  return Modifier(call, qp, next, attr, mask).Run();
}

int Mlx5Driver::QueryQp(Call& call, Qp& qp) {
  if (qp.ind_table != nullptr) return call.Refuse(RuleId::mlx5_query_qp_rss);
  QueuePairState& state = StateOf(qp);
  std::lock_guard lock(fabric::Lock());
  const QueuePair& pair = *state.pair;
  if (state.dynamic == Dynamic::kTarget) {
    QueryTarget(qp);
    return 0;
  }
  qp.state = static_cast<vabi::QpState>(pair.state);
  // The queue pair's context, as the NIC has it.
  qp.attr.access_flags = pair.access;
  qp.attr.max_rd_atomic = pair.max_rd_atomic;
  qp.attr.max_dest_rd_atomic = pair.max_dest_rd_atomic;
  qp.attr.sq_psn = pair.sq_psn;
  qp.attr.rq_psn = pair.rq_psn;
  if (qp.qp_type == kQptUd) qp.attr.path_mtu = kMtu4096;
  qp.cap.max_recv_wr = state.rq_count;
  qp.cap.max_recv_sge = state.rq_sges;
  // Only user space knows them.
  qp.cap.max_send_wr = qp.cap.max_send_sge = qp.cap.max_inline = 0;
  return 0;
}

// main.c: mlx5_ib_mcg_attach, mlx5_ib_mcg_detach
int Mlx5Driver::AttachMcast(Call& call, Qp& qp, const uint8_t* gid, uint16_t, bool attach) {
  if (qp.qp_type == kQptRawPacket)
    return call.Unmodelled("mlx5: multicast of raw packet queue pairs");
  std::lock_guard lock(fabric::Lock());
  QueuePair* pair = StateOf(qp).pair.get();
  const int error =
      attach ? fabric::AttachMulticast(pair, gid) : fabric::DetachMulticast(pair, gid);
  return error != 0 ? call.Refuse(RuleId::mlx5_detach_mcast_none) : 0;
}

}  // namespace vabi::mlx5
