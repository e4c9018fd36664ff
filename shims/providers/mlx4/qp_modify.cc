// SPDX-License-Identifier: BSD-2-Clause
// qp.c: mlx4_ib_modify_qp, _mlx4_ib_modify_qp, __mlx4_ib_modify_qp, mlx4_ib_query_qp
#include "shims/providers/mlx4/capabilities.h"
#include "shims/providers/mlx4/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/qp_state.h"

namespace vabi::mlx4 {
namespace {

constexpr uint8_t kMtu256 = 1, kMtu4096 = 5;  // enum ib_mtu

bool IsConnected(uint8_t type) { return type != kQptUd && type != kQptRawPacket; }

}  // namespace

// mlx4_ib_modify_qp refuses other attributes before it looks at anything.
bool Mlx4Driver::ChecksTransition(const World& world, const Qp&, uint32_t mask) const {
  const RuleEntry& refuses = world.Rule(rule::modify_qp_mask);
  return !refuses.on || refuses.relaxed || (mask & ~kQpStandardBits) == 0;
}

int Mlx4Driver::ModifyQp(Call& call, Qp& qp, vabi::QpState next, const QpAttributes& attr,
                         uint32_t mask) {
  const auto has = [mask](uint32_t bit) { return (mask & bit) != 0; };
  const bool roce = qp.device->image().link == LinkLayer::kEthernet;
  if (call.Violates(rule::modify_qp_mask, (mask & ~kQpStandardBits) != 0))
    return call.Refuse(rule::modify_qp_mask);
  if (call.Violates(rule::modify_qp_raw_link, has(kQpPort) && qp.qp_type == kQptRawPacket && !roce))
    return call.Refuse(rule::modify_qp_raw_link);
  if (call.Violates(rule::modify_qp_pkey,
                    has(kQpPkeyIndex) && attr.pkey_index >= kCaps.pkey_table_len))
    return call.Refuse(rule::modify_qp_pkey);
  if (call.Violates(rule::modify_qp_rd_atomic,
                    has(kQpMaxRdAtomic) && attr.max_rd_atomic > kCaps.max_qp_init_rdma))
    return call.Refuse(rule::modify_qp_rd_atomic);
  if (call.Violates(rule::modify_qp_dest_rd_atomic,
                    has(kQpMaxDestRdAtomic) && attr.max_dest_rd_atomic > kCaps.max_qp_dest_rdma))
    return call.Refuse(rule::modify_qp_dest_rd_atomic);
  const auto current = has(kQpCurState) ? static_cast<vabi::QpState>(attr.cur_qp_state) : qp.state;
  if (current == next && current == vabi::QpState::kReset) return 0;
  if (has(kQpAltPath) && roce)
    return call.Unmodelled("mlx4: an alternate path on Ethernet");  // -ENOTSUPP, no errno of users
  if (call.Violates(rule::modify_qp_mtu, IsConnected(qp.qp_type) && has(kQpPathMtu) &&
                                             (attr.path_mtu < kMtu256 || attr.path_mtu > kMtu4096)))
    return call.Refuse(rule::modify_qp_mtu);
  if (call.Violates(rule::modify_qp_alt_pkey,
                    has(kQpAltPath) && attr.alt_pkey_index >= kCaps.pkey_table_len))
    return call.Refuse(rule::modify_qp_alt_pkey);
  // What the firmware says to a change that it knows of otherwise, nobody has told.
  if (has(kQpCurState) && current != qp.state)
    return call.Unmodelled("mlx4: IB_QP_CUR_STATE that is not the queue pair's state");
  return 0;
}

// Since what the firmware keeps is what MODIFY_QP gave it, the core's attributes are that; here
// they become what its fields can hold.
int Mlx4Driver::QueryQp(Call& call, Qp& qp) {
  if (qp.ind_table != nullptr) return call.Unmodelled("mlx4: RSS queue pairs");
  const QpState& state = StateOf(qp);
  qp.cap = {};
  qp.cap.max_recv_wr = state.rq_count;
  qp.cap.max_recv_sge = state.rq_sges;
  if (qp.state == vabi::QpState::kReset) {
    qp.attr = {};
    return 0;
  }
  const auto depth = [](uint8_t value) {  // a logarithm in three bits
    return static_cast<uint8_t>(value == 0 ? 1 : RoundUpPowerOfTwo(value));
  };
  qp.attr.max_rd_atomic = depth(qp.attr.max_rd_atomic);
  qp.attr.max_dest_rd_atomic = depth(qp.attr.max_dest_rd_atomic);
  qp.attr.pkey_index &= 0x7f;
  qp.attr.alt_pkey_index &= 0x7f;
  if (!IsConnected(qp.qp_type)) qp.attr.path_mtu = kMtu4096;
  const bool xrc = qp.qp_type == kQptXrcIni || qp.qp_type == kQptXrcTgt;
  if (!IsConnected(qp.qp_type) || (xrc && call.world.Knob(knob::alternate_paths_of_xrc) == 0)) {
    qp.attr.address = {};
    qp.attr.alternate = {};
  }
  return 0;
}

}  // namespace vabi::mlx4
