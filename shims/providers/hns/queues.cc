// SPDX-License-Identifier: BSD-2-Clause
// hns_roce_cq.c, hns_roce_qp.c, hns_roce_srq.c, hns_roce_hw_v2.c
#include <algorithm>
#include <bit>

#include "shims/providers/hns/card.h"
#include "shims/providers/hns/driver.h"
#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::hns {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint32_t kSge = 16, kSgeInWqe = 2, kIndexEntry = 4;
constexpr uint64_t kRecordDb = 1;                      // HNS_ROCE_CQ_FLAG_RECORD_DB
constexpr uint64_t kRqRecordDb = 1, kSqRecordDb = 2;   // HNS_ROCE_QP_CAP_
constexpr uint32_t kSrqMaxWr = 1, kSrqLimit = 2;       // enum ib_srq_attr_mask
constexpr uint32_t kShortEntry = 32, kLongEntry = 64;  // HNS_ROCE_V2_CQE_SIZE, _V3_

struct QueuePairState final : DriverState {
  uint64_t flags = 0;  // HNS_ROCE_QP_CAP_
  uint32_t send_wr = 0, send_sge = 0;
};

struct SrqState final : DriverState {
  uint32_t entries = 0;
};

uint64_t Whole(uint64_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }

// check_qp_state
bool StateIsLegal(QpState from, QpState to) {
  if (to == QpState::kReset) return from != QpState::kSqd && from != QpState::kSqe;
  switch (from) {
    case QpState::kReset:
      return to == QpState::kInit;
    case QpState::kInit:
      return to == QpState::kInit || to == QpState::kRtr || to == QpState::kErr;
    case QpState::kRtr:
    case QpState::kRts:
      return to == QpState::kRts || to == QpState::kErr;
    case QpState::kErr:
      return to == QpState::kErr;
    default:
      return false;
  }
}

uint32_t WithReservedSge(const World& world, uint32_t most) {
  return world.Knob(knob::reserved_sge) != 0 ? std::bit_ceil(most + 1) : most;
}

}  // namespace

int HnsDriver::CreateCq(Call& call, Cq& cq) {
  const World& world = call.world;
#define REQ(name) VABI_PF(hns_roce_ib_create_cq, name)
  if (call.Violates(rule::cq_flags, cq.flags != 0)) return call.Refuse(rule::cq_flags);
  if (call.Violates(rule::cq_cqe, cq.cqe == 0 || cq.cqe > kCard.max_cqes))
    return call.Refuse(rule::cq_cqe);
  OwnedBody<32> request(world, structure::hns_roce_ib_create_cq);
  if (const int error =
          ReadRequest(call, request, {REQ(db_addr), rule::cq_input_short, rule::cq_input_tail})) {
    return error;
  }
  const uint32_t depth = std::bit_ceil(std::max(cq.cqe, kCard.min_cqes));
  uint32_t entry = kShortEntry;
  if (world.Has(REQ(cqe_size)) && call.in.length() >= world.End(REQ(cqe_size))) {
    entry = request.U32(REQ(cqe_size));
    if (call.Violates(rule::cq_entry_size, entry != kShortEntry && entry != kLongEntry))
      return call.Refuse(rule::cq_entry_size);
  }
  // The product has 32 bits.
  if (const int error = PinBuffer(call, request.Get(REQ(buf_addr)), depth * entry)) return error;
  OwnedBody<32> reply(world, structure::hns_roce_ib_create_cq_resp);
  if (call.out.length() >= world.End(VABI_PF(hns_roce_ib_create_cq_resp, cap_flags))) {
    if (const int error = PinRecord(call, request.Get(REQ(db_addr)))) return error;
    reply.Set(VABI_PF(hns_roce_ib_create_cq_resp, cap_flags), kRecordDb);
  }
#undef REQ
  reply.Set(VABI_PF(hns_roce_ib_create_cq_resp, cqn), cq.device->NextNumber());
  if (const int error = Reply(call, reply)) return error;
  cq.cqe = depth - 1;
  return 0;
}

int HnsDriver::CreateQp(Call& call, Qp& qp) {
  const World& world = call.world;
#define REQ(name) VABI_PF(hns_roce_ib_create_qp, name)
  if (call.Violates(rule::qp_type, qp.qp_type != kQptRc)) return call.Refuse(rule::qp_type);
  if (call.Violates(rule::qp_create_flags, qp.create_flags != 0))
    return call.Refuse(rule::qp_create_flags);

  // set_rq_size
  const bool has_receives = qp.srq == nullptr && qp.cap.max_recv_wr != 0;
  uint32_t receives = 0, receive_sges = 0;
  if (has_receives) {
    if (call.Violates(rule::qp_receives,
                      qp.cap.max_recv_wr > kCard.max_wqes ||
                          qp.cap.max_recv_sge > WithReservedSge(world, kCard.max_rq_sg))) {
      return call.Refuse(rule::qp_receives);
    }
    receives = std::bit_ceil(std::max(qp.cap.max_recv_wr, kCard.min_wqes));
    receive_sges = std::bit_ceil(std::max(1u, qp.cap.max_recv_sge));
  }

  OwnedBody<64> request(world, structure::hns_roce_ib_create_qp);
  if (const int error =
          ReadRequest(call, request, {REQ(reserved), rule::qp_input_short, rule::qp_input_tail})) {
    return error;
  }
  const auto congestion =
      static_cast<uint64_t>(world.Flag(constant::HNS_ROCE_CREATE_QP_MASK_CONGEST_TYPE));
  const uint64_t comp_mask = request.Get(REQ(comp_mask));
  if (call.Violates(rule::qp_comp_mask, (comp_mask & ~congestion) != 0))
    return call.Refuse(rule::qp_comp_mask);

  // set_user_sq_size, check_sq_size_with_integrity
  const uint32_t log_count = request.U32(REQ(log_sq_bb_count)) & 0xff;
  if (log_count > 31 || (1u << log_count) > kCard.max_wqes) {
    if (call.On(rule::qp_sends) || log_count > 31) return call.Refuse(rule::qp_sends);
  }
  const uint32_t log_stride = request.U32(REQ(log_sq_stride)) & 0xff;
  if (call.Violates(rule::qp_stride,
                    log_stride > kCard.log_max_stride || log_stride < kCard.log_min_stride)) {
    return call.Refuse(rule::qp_stride);
  }
  if (call.Violates(rule::qp_send_sge, qp.cap.max_send_sge > kCard.max_sq_sg))
    return call.Refuse(rule::qp_send_sge);
  if ((comp_mask & congestion) != 0) {
    const uint64_t kind = request.Get(REQ(cong_type_flags));
    constexpr uint64_t kKinds = 4;
    if (call.Violates(rule::qp_congestion, kind >= kKinds)) return call.Refuse(rule::qp_congestion);
    if (call.Violates(rule::qp_congestion_card, kind < kKinds && (kCard.cong_cap >> kind & 1) == 0))
      return call.Refuse(rule::qp_congestion_card);
  }
  const uint32_t sends = 1u << log_count;
  const uint32_t extended_sges =
      qp.cap.max_send_sge > kSgeInWqe
          ? std::max(std::bit_ceil(sends * (qp.cap.max_send_sge - kSgeInWqe)),
                     static_cast<uint32_t>(kPage / kSge))
          : 0;
  const uint64_t bytes = Whole(uint64_t{sends} << log_stride) + Whole(extended_sges * kSge) +
                         Whole(uint64_t{receives} * kCard.rq_desc * receive_sges);

  OwnedBody<32> reply(world, structure::hns_roce_ib_create_qp_resp);
  const bool told = call.out.length() >= world.End(VABI_PF(hns_roce_ib_create_qp_resp, cap_flags));
  const bool send_record =
      told && qp.cap.max_send_wr != 0 && call.in.length() >= world.End(REQ(sdb_addr));
  const bool receive_record = told && has_receives;
  const auto records = [&]() -> int {
    if (send_record) {
      if (const int error = PinRecord(call, request.Get(REQ(sdb_addr)))) return error;
    }
    return receive_record ? PinRecord(call, request.Get(REQ(db_addr))) : 0;
  };
  const auto buffer = [&]() -> int { return PinBuffer(call, request.Get(REQ(buf_addr)), bytes); };
#undef REQ
  const bool records_first = world.Knob(knob::doorbell_first) != 0;
  if (const int error = records_first ? records() : buffer()) return error;
  if (const int error = records_first ? buffer() : records()) return error;

  auto state = std::make_unique<QueuePairState>();
  state->flags = (send_record ? kSqRecordDb : 0) | (receive_record ? kRqRecordDb : 0);
  reply.Set(VABI_PF(hns_roce_ib_create_qp_resp, cap_flags), state->flags);
  if (const int error = Reply(call, reply)) return error;
  state->send_wr = sends;
  state->send_sge = std::max(1u, qp.cap.max_send_sge);
  qp.cap.max_recv_wr = receives;
  qp.cap.max_recv_sge = receive_sges;
  if (world.Knob(knob::send_sge_told) != 0) qp.cap.max_send_sge = state->send_sge;
  if (qp.cap.max_inline != 0 && world.Knob(knob::inline_rounded) != 0)
    qp.cap.max_inline = std::bit_ceil(std::min(qp.cap.max_inline, 1u << 31));
  qp.cap.max_inline = std::min(qp.cap.max_inline, kCard.max_sq_inline);
  qp.qp_num = qp.device->NextQpn();
  qp.driver = std::move(state);
  return 0;
}

// hns_roce_modify_qp, hns_roce_check_qp_attr, hns_roce_v2_modify_qp
int HnsDriver::ModifyQp(Call& call, Qp& qp, QpState next, const QpAttributes& attr, uint32_t mask) {
  const World& world = call.world;
  const auto& state = *static_cast<QueuePairState*>(qp.driver.get());
  if (call.Violates(
          rule::modify_current,
          (mask & kQpCurState) != 0 && static_cast<QpState>(attr.cur_qp_state) != qp.state)) {
    return call.Refuse(rule::modify_current);
  }
  if (call.Violates(rule::modify_flush, (mask & kQpState) != 0 && next == QpState::kErr &&
                                            (state.flags & kSqRecordDb) == 0)) {
    return call.Refuse(rule::modify_flush);
  }
  const auto rate_limit = static_cast<RateLimit>(world.Knob(KnobId::qp_rate_limit));
  if (call.Violates(rule::modify_transition,
                    !ModifyQpIsOk(qp.state, next, qp.qp_type, mask, rate_limit))) {
    return call.Refuse(rule::modify_transition);
  }
  if (call.Violates(rule::modify_pkey, (mask & kQpPkeyIndex) != 0 && attr.pkey_index != 0))
    return call.Refuse(rule::modify_pkey);
  if (call.Violates(rule::modify_reads,
                    ((mask & kQpMaxRdAtomic) != 0 && attr.max_rd_atomic > kCard.max_qp_init_rdma) ||
                        ((mask & kQpMaxDestRdAtomic) != 0 &&
                         attr.max_dest_rd_atomic > kCard.max_qp_dest_rdma))) {
    return call.Refuse(rule::modify_reads);
  }
  const uint8_t active_mtu = qp.device->image().ports[0].active_mtu;
  if (call.Violates(rule::modify_mtu,
                    (mask & kQpPathMtu) != 0 && (attr.path_mtu < 1 || attr.path_mtu > active_mtu)))
    return call.Refuse(rule::modify_mtu);
  if (qp.state == QpState::kReset && next == QpState::kReset) return 0;
  if (call.Violates(rule::modify_standard, (mask & ~kQpStandardBits) != 0))
    return call.Refuse(rule::modify_standard);
  if (call.Violates(rule::modify_state, !StateIsLegal(qp.state, next)))
    return call.Refuse(rule::modify_state);
  if (world.Knob(knob::modify_reply) == 0 || call.out.length() == 0) return 0;
  OwnedBody<16> reply(world, structure::hns_roce_ib_modify_qp_resp);
  return Reply(call, reply);
}

int HnsDriver::QueryQp(Call&, Qp& qp) {
  const auto& state = *static_cast<QueuePairState*>(qp.driver.get());
  qp.cap.max_send_wr = state.send_wr;
  qp.cap.max_send_sge = state.send_sge;
  return 0;
}

int HnsDriver::CreateSrq(Call& call, Srq& srq) {
  const World& world = call.world;
  const bool old = world.Knob(knob::srq_old) != 0;
  const uint32_t most_sges = old ? kCard.max_srq_sges : WithReservedSge(world, kCard.max_srq_sges);
  if (call.Violates(rule::srq_size, srq.max_wr > kCard.max_srq_wrs ||
                                        (old && srq.max_wr == kCard.max_srq_wrs) ||
                                        srq.max_sge > most_sges)) {
    return call.Refuse(rule::srq_size);
  }
  if (call.Violates(rule::srq_no_sge, srq.max_sge == 0)) return call.Refuse(rule::srq_no_sge);
#define REQ(name) VABI_PF(hns_roce_ib_create_srq, name)
  OwnedBody<64> request(world, structure::hns_roce_ib_create_srq);
  if (const int error = ReadRequest(call, request,
                                    {REQ(que_addr), rule::srq_input_short, rule::srq_input_tail})) {
    return error;
  }
  const uint32_t entries =
      old ? std::bit_ceil(srq.max_wr + 1) : std::bit_ceil(std::max(srq.max_wr, 1u));
  const uint32_t sges = old ? srq.max_sge : std::bit_ceil(std::max(srq.max_sge, 1u));
  const uint64_t wqes = Whole(uint64_t{entries} * std::bit_ceil(kSge * std::max(sges, 1u)));
  const auto pin_wqes = [&] { return PinBuffer(call, request.Get(REQ(buf_addr)), wqes); };
  const auto pin_index = [&] {
    return PinBuffer(call, request.Get(REQ(que_addr)), Whole(uint64_t{entries} * kIndexEntry));
  };
#undef REQ
  if (const int error = old ? pin_wqes() : pin_index()) return error;
  if (const int error = old ? pin_index() : pin_wqes()) return error;
  OwnedBody<16> reply(world, structure::hns_roce_ib_create_srq_resp);
  reply.Set(VABI_PF(hns_roce_ib_create_srq_resp, srqn), srq.device->NextNumber());
  if (const int error = Reply(call, reply)) return error;
  auto state = std::make_unique<SrqState>();
  state->entries = entries;
  if (!old) {
    srq.max_wr = entries;
    srq.max_sge = sges;
    srq.srq_limit = 0;
  }
  srq.driver = std::move(state);
  return 0;
}

int HnsDriver::ModifySrq(Call& call, Srq& srq, uint32_t, uint32_t limit, uint32_t mask) {
  const uint32_t entries = static_cast<SrqState*>(srq.driver.get())->entries;
  if (call.Violates(rule::modify_srq_resize, (mask & kSrqMaxWr) != 0))
    return call.Refuse(rule::modify_srq_resize);
  if ((mask & kSrqLimit) == 0) return 0;
  const bool too_much =
      limit > entries || (call.world.Knob(knob::srq_old) != 0 && limit == entries);
  if (call.Violates(rule::modify_srq_limit, too_much)) return call.Refuse(rule::modify_srq_limit);
  srq.srq_limit = limit;
  return 0;
}

int HnsDriver::QuerySrq(Call& call, Srq& srq) {
  const uint32_t entries = static_cast<SrqState*>(srq.driver.get())->entries;
  srq.max_wr = call.world.Knob(knob::srq_old) != 0 ? entries - 1 : entries;
  return 0;
}

}  // namespace vabi::hns
