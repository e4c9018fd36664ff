// SPDX-License-Identifier: BSD-2-Clause
// hns_roce_cq.c, hns_roce_qp.c, hns_roce_srq.c, hns_roce_hw_v2.c
#include <algorithm>
#include <bit>

#include "shims/providers/hns/card.h"
#include "shims/providers/hns/driver.h"
#include "shims/uverbs/port.h"
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
  uint32_t send_wr = 0, send_sge = 0, receive_wr = 0, receive_sge = 0, inline_data = 0;
  uint32_t asked_access = 0, access = 0;  // hr_qp.atomic_rd_en; what the card was told
  uint8_t reads_answered = 0;             // hr_qp.resp_depth
  uint8_t traffic_class = 0;              // as the card was told
  bool signal_all = false;
};

struct SrqState final : DriverState {
  uint32_t entries = 0;
};

QueuePairState& StateOf(Qp& qp) { return *static_cast<QueuePairState*>(qp.driver.get()); }

uint64_t Whole(uint64_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }

// check_qp_state; before, hns_roce_v2_check_qp_stat and what stands around it, which have other
// answers of SQD and SQE only: there nobody knows what the card says.
bool StateIsLegal(const World& world, QpState from, QpState to) {
  if (to == QpState::kReset) return from != QpState::kSqd && from != QpState::kSqe;
  switch (from) {
    case QpState::kReset:
      return to == QpState::kInit;
    case QpState::kInit:
      return to == QpState::kInit || to == QpState::kRtr || to == QpState::kErr;
    case QpState::kRtr:
      return to == QpState::kRts || to == QpState::kErr;
    case QpState::kRts:
      return (to == QpState::kRts && world.Knob(knob::states) != 1) || to == QpState::kErr;
    case QpState::kErr:
      return to == QpState::kErr;
    default:
      return false;
  }
}

// set_access_flags
void ApplyAccess(QueuePairState* state, const QpAttributes& attr, uint32_t mask) {
  constexpr uint32_t kWrite = 2, kRead = 4, kAtomic = 8;  // IB_ACCESS_REMOTE_
  if ((mask & kQpMaxDestRdAtomic) != 0) state->reads_answered = attr.max_dest_rd_atomic;
  if ((mask & kQpAccessFlags) != 0) state->asked_access = attr.access_flags;
  if ((mask & (kQpAccessFlags | kQpMaxDestRdAtomic)) == 0) return;
  state->access =
      state->asked_access & (state->reads_answered == 0 ? kWrite : kWrite | kRead | kAtomic);
}

uint32_t WithReservedSge(const World& world, uint32_t most) {
  return world.Knob(knob::reserved_sge) != 0 ? std::bit_ceil(most + 1) : most;
}

}  // namespace

int HnsDriver::CreateCq(Call& call, Cq& cq) {
  const World& world = call.world;
#define REQ(name) VABI_PF(hns_roce_ib_create_cq, name)
  if (call.Violates(rule::cq_flags, cq.flags != 0)) return call.Refuse(rule::cq_flags);
  if (call.Violates(rule::cq_cqe, cq.cqe == 0 || cq.cqe > Number(world, knob::max_cqes)))
    return call.Refuse(rule::cq_cqe);
  OwnedBody<32> request(world, structure::hns_roce_ib_create_cq);
  if (const int error =
          ReadRequest(call, request, {REQ(db_addr), rule::cq_input_short, rule::cq_input_tail})) {
    return error;
  }
  const uint32_t depth = std::bit_ceil(std::max(cq.cqe, Number(world, knob::min_cqes)));
  uint32_t entry = kShortEntry;
  if (world.Has(REQ(cqe_size)) && call.in.length() >= world.End(REQ(cqe_size))) {
    entry = request.U32(REQ(cqe_size));
    if (call.Violates(rule::cq_entry_size, entry != kShortEntry && entry != kLongEntry))
      return call.Refuse(rule::cq_entry_size);
  }
  // The product has 32 bits. Kernels that ask ib_umem_get themselves ask for IB_ACCESS_LOCAL_WRITE.
  const bool writable = world.Knob(knob::buffers_translated) == 0;
  if (const int error = PinBuffer(call, request.Get(REQ(buf_addr)), depth * entry, writable))
    return error;
  OwnedBody<32> reply(world, structure::hns_roce_ib_create_cq_resp);
  if (world.Knob(knob::records) != 0 &&
      call.out.length() >= world.End(VABI_PF(hns_roce_ib_create_cq_resp, cap_flags))) {
    if (const int error = PinRecord(call, request.Get(REQ(db_addr)))) return error;
    reply.Set(VABI_PF(hns_roce_ib_create_cq_resp, cap_flags), kRecordDb);
  }
#undef REQ
  const uint32_t number = cq.device->NextNumber();
  reply.Set(VABI_PF(hns_roce_ib_create_cq_resp, cqn), number);
  if (const int error = reply.length() != 0 ? ReplyWhole(call, reply) : ReplyNumber(call, number))
    return error;
  cq.cqe = depth - 1;
  return 0;
}

int HnsDriver::CreateQp(Call& call, Qp& qp) {
  const World& world = call.world;
#define REQ(name) VABI_PF(hns_roce_ib_create_qp, name)
  if (call.Violates(rule::qp_type, qp.qp_type != kQptRc)) return call.Refuse(rule::qp_type);
  if (call.Violates(rule::qp_create_flags, qp.create_flags != 0))
    return call.Refuse(rule::qp_create_flags);

  // set_rq_size; hns_roce_set_rq_size
  const bool limits_first = world.Knob(knob::limits_first) != 0;
  const bool has_receives =
      qp.srq == nullptr && (qp.cap.max_recv_wr != 0 || world.Knob(knob::empty_receives) != 0);
  const uint32_t spare = Number(world, knob::spare_element);
  uint32_t receives = 0, receive_sges = 0;
  if (has_receives || limits_first) {
    const uint32_t most_sges = WithReservedSge(world, Number(world, knob::receive_elements));
    if (call.Violates(rule::qp_receives,
                      qp.cap.max_recv_wr > kCard.max_wqes || qp.cap.max_recv_sge > most_sges)) {
      return call.Refuse(rule::qp_receives);
    }
  }
  if (has_receives) {
    if (call.Violates(rule::qp_no_receives, qp.cap.max_recv_wr == 0 || qp.cap.max_recv_sge == 0))
      return call.Refuse(rule::qp_no_receives);
    receives = std::bit_ceil(std::max(qp.cap.max_recv_wr, Number(world, knob::min_wqes)));
    receive_sges = std::bit_ceil(std::max(1u, qp.cap.max_recv_sge) + spare);
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
  uint32_t log_count = request.U32(REQ(log_sq_bb_count)) & 0xff;
  if (world.Knob(knob::shift_wraps) != 0) log_count &= 31;
  if (log_count > 31 || (1u << log_count) > kCard.max_wqes) {
    if (call.On(rule::qp_sends) || log_count > 31) return call.Refuse(rule::qp_sends);
  }
  const uint32_t log_stride = request.U32(REQ(log_sq_stride)) & 0xff;
  if (call.Violates(rule::qp_stride,
                    log_stride > kCard.log_max_stride || log_stride < kCard.log_min_stride)) {
    return call.Refuse(rule::qp_stride);
  }
  if (call.Violates(rule::qp_send_sge, qp.cap.max_send_sge > Number(world, knob::send_elements)))
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
          : (world.Knob(knob::extra_page) != 0 ? static_cast<uint32_t>(kPage / kSge) : 0);
  const uint64_t bytes = Whole(uint64_t{sends} << log_stride) + Whole(extended_sges * kSge) +
                         Whole(uint64_t{receives} * kCard.rq_desc * receive_sges);

  OwnedBody<32> reply(world, structure::hns_roce_ib_create_qp_resp);
  const auto kept = world.Knob(knob::records);
  const bool early = world.Knob(knob::record_needs_all) != 0;
  const bool told =
      kept != 0 && call.out.length() >= world.End(VABI_PF(hns_roce_ib_create_qp_resp, cap_flags));
  // hns_roce_qp_has_sq: every RC queue pair, up to 5.0
  const bool send_record = told && kept == 2 && (qp.cap.max_send_wr != 0 || early) &&
                           call.in.length() >= world.End(REQ(sdb_addr));
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
  if (early) {
    if (told) {
      reply.Set(VABI_PF(hns_roce_ib_create_qp_resp, cap_flags), state->flags | kRqRecordDb);
      if (const int error = Reply(call, reply)) return error;
    }
  } else {
    reply.Set(VABI_PF(hns_roce_ib_create_qp_resp, cap_flags), state->flags);
    if (const int error = Reply(call, reply)) return error;
  }
  state->send_wr = sends;
  state->send_sge = std::max(1u, qp.cap.max_send_sge);
  state->receive_wr = receives;
  state->receive_sge = receive_sges;
  state->signal_all = qp.signal_all;
  qp.cap.max_recv_wr = receives;
  qp.cap.max_recv_sge = receive_sges - (has_receives ? spare : 0);
  if (world.Knob(knob::send_sge_told) != 0) qp.cap.max_send_sge = state->send_sge;
  if (qp.cap.max_inline != 0 && world.Knob(knob::inline_rounded) != 0)
    qp.cap.max_inline = std::bit_ceil(std::min(qp.cap.max_inline, 1u << 31));
  if (world.Knob(knob::inline_as_asked) == 0)
    qp.cap.max_inline = std::min(qp.cap.max_inline, kCard.max_sq_inline);
  state->inline_data = qp.cap.max_inline;
  qp.qp_num = qp.device->NextQpn();
  qp.driver = std::move(state);
  return 0;
}

// hns_roce_modify_qp, hns_roce_check_qp_attr, hns_roce_v2_modify_qp
int HnsDriver::ModifyQp(Call& call, Qp& qp, QpState next, const QpAttributes& attr, uint32_t mask) {
  const World& world = call.world;
  QueuePairState& state = StateOf(qp);
  const bool other_state =
      (mask & kQpCurState) != 0 && static_cast<QpState>(attr.cur_qp_state) != qp.state;
  if (call.Violates(rule::modify_current, other_state)) return call.Refuse(rule::modify_current);
  if (other_state)
    return call.Unmodelled("hns: IB_QP_CUR_STATE that is not the queue pair's state");
  if (call.Violates(rule::modify_flush, (mask & kQpState) != 0 && next == QpState::kErr &&
                                            (state.flags & kSqRecordDb) == 0)) {
    return call.Refuse(rule::modify_flush);
  }
  if ((mask & kQpState) != 0 && next == QpState::kErr && qp.srq != nullptr &&
      world.Knob(knob::flush_reads_receives) != 0) {
    return call.Unmodelled(
        "hns: the error state of a queue pair with an SRQ takes this kernel down");
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
  if (qp.state == QpState::kReset && next == QpState::kReset) {
    if (call.Violates(rule::modify_reset, true)) return call.Refuse(rule::modify_reset);
    return 0;
  }
  if (call.Violates(rule::modify_standard, (mask & ~kQpStandardBits) != 0))
    return call.Refuse(rule::modify_standard);
  if (world.Knob(knob::states) == 0 && (qp.state == QpState::kSqd || next == QpState::kSqd))
    return call.Unmodelled("hns: what the card says to SQD");
  if (call.Violates(rule::modify_state, !StateIsLegal(world, qp.state, next)))
    return call.Refuse(rule::modify_state);
  const bool to_rtr = qp.state == QpState::kInit && next == QpState::kRtr;
  const bool to_rts = qp.state == QpState::kRtr && next == QpState::kRts;
  if (call.Violates(rule::modify_alternate, ((to_rtr || to_rts) && (mask & kQpAltPath) != 0) ||
                                                (to_rts && (mask & kQpPathMigState) != 0))) {
    return call.Refuse(rule::modify_alternate);
  }
  if (call.Violates(rule::modify_service_level,
                    (mask & kQpAv) != 0 && attr.address.sl > kCard.max_service_level)) {
    return call.Refuse(rule::modify_service_level);
  }
  ApplyAccess(&state, attr, mask);
  if ((mask & kQpAv) != 0) {
    // get_tclass: of RoCE v2 its DSCP
    constexpr uint8_t kRoceV2 = 2;
    GidEntry gid;
    const bool second =
        FindGid(*qp.device, 1, attr.address.sgid_index, &gid) && gid.type == kRoceV2;
    state.traffic_class = second ? attr.address.traffic_class >> 2 : attr.address.traffic_class;
  }
  if (world.Knob(knob::modify_reply) == 0 || call.out.length() == 0) return 0;
  OwnedBody<16> reply(world, structure::hns_roce_ib_modify_qp_resp);
  return Reply(call, reply);
}

// hns_roce_v2_query_qp: what stands in the card's context, which MODIFY_QP has filled.
int HnsDriver::QueryQp(Call& call, Qp& qp) {
  const World& world = call.world;
  const QueuePairState& state = StateOf(qp);
  const auto told = [&world](KnobId id) { return world.Knob(id) != 0; };
  qp.cap = {};
  qp.cap.max_recv_wr = state.receive_wr;
  qp.cap.max_recv_sge = state.receive_sge;
  if (told(knob::inline_told)) qp.cap.max_inline = state.inline_data;
  if (told(knob::sends_told)) {
    qp.cap.max_send_wr = state.send_wr;
    qp.cap.max_send_sge = state.send_sge;
  }
  qp.signal_all = !told(knob::signal_told) || state.signal_all;
  if (qp.state == QpState::kReset) {
    qp.attr = {};
    return 0;
  }
  constexpr uint8_t kArmed = 2;  // IB_MIG_ARMED
  constexpr uint32_t kRemoteWrite = 2, kRemoteRead = 4, kAtomic = 8;
  const auto depth = [](uint8_t value) {  // a logarithm
    return static_cast<uint8_t>(std::bit_ceil(std::max<uint32_t>(value, 1)));
  };
  QpAttributes& attr = qp.attr;
  attr.path_mig_state = kArmed;
  attr.qkey = attr.sq_draining = attr.en_sqd_async_notify = 0;
  attr.pkey_index = attr.alt_pkey_index = 0;
  attr.alternate = {};
  attr.alt_port_num = attr.alt_timeout = 0;
  attr.max_rd_atomic = depth(attr.max_rd_atomic);
  attr.max_dest_rd_atomic = depth(attr.max_dest_rd_atomic);
  attr.port_num = 1;
  attr.access_flags = state.access;
  if (told(knob::access_swapped)) {
    attr.access_flags = (state.access & kAtomic) |
                        ((state.access & kRemoteRead) != 0 ? kRemoteWrite : 0) |
                        ((state.access & kRemoteWrite) != 0 ? kRemoteRead : 0);
  }
  if (told(knob::peer_cut)) attr.dest_qp_num &= 0xff;
  attr.address.traffic_class = state.traffic_class;
  if (!told(knob::address_told)) {
    const uint8_t level = attr.address.sl;
    attr.address = {};
    attr.address.sl = level;
  }
  if (!told(knob::retries_told)) attr.rnr_retry = 0;
  return 0;
}

int HnsDriver::CreateSrq(Call& call, Srq& srq) {
  const World& world = call.world;
  const bool old = world.Knob(knob::srq_old) != 0;
  const uint32_t elements = Number(world, knob::srq_elements);
  const uint32_t most_sges = old ? elements : WithReservedSge(world, elements);
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
  const uint32_t sges = old ? srq.max_sge + Number(world, knob::spare_element)
                            : std::bit_ceil(std::max(srq.max_sge, 1u));
  const uint32_t entry = kSge * std::max(sges, 1u);
  const uint64_t size = world.Knob(knob::srq_rounded) != 0 ? std::bit_ceil(entry) : entry;
  // Whole pages; ib_umem_get makes the same of what it is asked for.
  const auto pin_wqes = [&] {
    return PinBuffer(call, request.Get(REQ(buf_addr)), Whole(uint64_t{entries} * size));
  };
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
  }
  srq.srq_limit = 0;  // SRQC_BYTE_8_SRQ_LIMIT_WL
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
