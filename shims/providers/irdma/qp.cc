// SPDX-License-Identifier: BSD-2-Clause
// verbs.c: irdma_create_qp, irdma_validate_qp_attrs, irdma_setup_umode_qp, irdma_modify_qp_roce,
// irdma_query_qp; uk.c: irdma_uk_calc_depth_shift_sq, irdma_uk_calc_depth_shift_rq
#include <algorithm>
#include <bit>

#include "shims/providers/common/udata.h"
#include "shims/providers/irdma/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::irdma {
namespace {

#define REQ(field) VABI_PF(irdma_create_qp_req, field)
#define RESP(field) VABI_PF(irdma_create_qp_resp, field)

// IRDMA_WRITE_WITH_IMM, IRDMA_SEND_WITH_IMM, IRDMA_ROCE, IRDMA_PUSH_MODE (user.h)
constexpr uint32_t kWriteWithImmediate = 1, kSendWithImmediate = 2, kRoce = 4, kPushMode = 8;

// irdma_get_wqe_shift, of an E810: log2 of the quanta of one element
uint32_t Shift(uint32_t sges, uint32_t inline_data) {
  if (sges <= 1 && inline_data <= 8) return 0;
  if (sges < 4 && inline_data <= 39) return 1;
  return sges < 8 && inline_data <= 101 ? 2 : 3;
}

// irdma_get_sqdepth, irdma_get_rqdepth: quanta; 0: more than there are
uint32_t Depth(uint32_t count, uint32_t shift, uint32_t reserved) {
  const uint64_t depth = std::bit_ceil((uint64_t{count} << shift) + reserved);
  if (depth > kMaxQuanta) return 0;
  return std::max(static_cast<uint32_t>(depth), kMinWqSize << shift);
}

int CheckWishes(Call& call, const Qp& qp) {
  const QpCapabilities& cap = qp.cap;
  if (call.Violates(rule::qp_flags, qp.create_flags != 0)) return call.Refuse(rule::qp_flags);
  if (call.Violates(rule::qp_sizes, cap.max_inline > kMaxInline ||
                                        cap.max_send_sge > kMaxFragments ||
                                        cap.max_recv_sge > kMaxFragments))
    return call.Refuse(rule::qp_sizes);
  if (call.Violates(rule::qp_depths, cap.max_send_wr > kMaxQuanta || cap.max_recv_wr > kMaxQuanta))
    return call.Refuse(rule::qp_depths);
  if (call.Violates(rule::qp_type, qp.qp_type != kQptRc && qp.qp_type != kQptUd))
    return call.Refuse(rule::qp_type);
  return 0;
}

// The sizes that the reply tells.
struct Sizes {
  uint32_t send = 0, receive = 0;
};

int FindSizes(Call& call, const Qp& qp, bool raw, QpState* state, Sizes* sizes) {
  const QpCapabilities& cap = qp.cap;
  if (!raw) {  // the library has counted quanta
    state->max_send_wr = sizes->send = cap.max_send_wr;
    state->max_recv_wr = sizes->receive = cap.max_recv_wr;
    return 0;
  }
  // One element more, for what goes along as immediate data.
  const uint32_t send_shift = Shift(cap.max_send_sge + 1, cap.max_inline),
                 receive_shift = Shift(cap.max_recv_sge, 0);
  const uint32_t send = Depth(cap.max_send_wr, send_shift, kSqReserved),
                 receive = Depth(cap.max_recv_wr, receive_shift, kRqReserved);
  if (send == 0 || receive == 0) return call.Refuse(rule::qp_raw_depth);
  state->max_send_wr = (send - kSqReserved) >> send_shift;
  state->max_recv_wr = (receive - kRqReserved) >> receive_shift;
  sizes->send = send >> send_shift;
  sizes->receive = receive >> receive_shift;
  return 0;
}

}  // namespace

int IrdmaDriver::CreateQp(Call& call, Qp& qp) {
  const World& world = call.world;
  if (const int error = CheckWishes(call, qp)) return error;
  OwnedBody<32> reply(world, structure::irdma_create_qp_resp);
  OwnedBody<64> request(world, structure::irdma_create_qp_req);
  const size_t least = world.End(REQ(user_compl_ctx)), least_reply = world.End(RESP(rsvd));
  if (call.Violates(rule::qp_reply, call.out.length() < least_reply))
    return call.Refuse(rule::qp_reply);
  if (world.Knob(knob::looks_at_lengths) == 0 && call.in.length() < request.length())
    return call.Unmodelled("irdma: a short CREATE_QP request, the rest of which is not set");
  if (const int error =
          provider::CopyRequest(call, request.base(), request.length(),
                                {least, rule::qp_short, rule::qp_tail, rule::qp_fault}))
    return error;
  ContextState& context = ContextOf(call.file);
  auto state = std::make_unique<QpState>();
  const uint64_t buffer = request.Get(REQ(user_wqe_bufs));
  if (buffer == 0 && world.Knob(knob::buffer_optional) != 0)
    return call.Unmodelled("irdma: a queue pair without memory");
  state->buffer = context.Take(Memory::kQp, buffer);
  if (state->buffer == nullptr) return call.Refuse(rule::qp_buffer);
  Sizes sizes;
  const uint32_t number = qp.device->NextQpn();
  int error = FindSizes(call, qp, context.raw_attributes, state.get(), &sizes);
  if (error == 0) {
    reply.Set(RESP(qp_id), number);
    reply.Set(RESP(actual_sq_size), sizes.send);
    reply.Set(RESP(actual_rq_size), sizes.receive);
    reply.Set(RESP(qp_caps), kSendWithImmediate | kRoce | kPushMode |
                                 (qp.qp_type == kQptRc ? kWriteWithImmediate : 0));
    // libi40iw's reply ends with lsmm: it is an iWARP queue pair to it.
    const bool legacy = world.Knob(knob::validates) != 0 ? call.out.length() == least_reply
                                                         : call.out.length() < reply.length();
    if (legacy) {
      reply.Set(RESP(lsmm), 1);
      reply.Set(RESP(push_idx), 0xffff);
    }
    error = Reply(call, reply, rule::reply_fault);
  }
  if (error != 0) {
    --state->buffer->rings;
    return error;
  }
  state->asked = qp.cap;
  qp.qp_num = number;
  qp.driver = std::move(state);
  return 0;
}

// The driver asks only about changes of the state, and of the one that it keeps itself.
bool IrdmaDriver::ChecksTransition(const World& world, const Qp&, uint32_t mask) const {
  const RuleEntry& refuses = world.Rule(rule::modify_mask);
  if (refuses.on && !refuses.relaxed && (mask & ~kQpStandardBits) != 0) return false;
  return (mask & kQpState) != 0;
}

vabi::QpState IrdmaDriver::StateAfter(const Qp& qp, vabi::QpState next, uint32_t mask) const {
  if ((mask & kQpState) == 0) return qp.state;
  // A queue pair in error: see ModifyQp.
  if (StateOf(qp).hardware == Hardware::kError && qp.state == vabi::QpState::kErr &&
      qp.device->world().Knob(knob::error_state_told) == 0)
    return qp.state;
  return next;
}

int IrdmaDriver::ModifyQp(Call& call, Qp& qp, vabi::QpState next, const QpAttributes& attr,
                          uint32_t mask) {
  const World& world = call.world;
  const bool validates = world.Knob(knob::validates) != 0;
  OwnedBody<32> reply(world, structure::irdma_modify_qp_resp);
  OwnedBody<16> request(world, structure::irdma_modify_qp_req);
  const size_t least_reply = world.End(VABI_PF(irdma_modify_qp_resp, push_valid));
  const size_t least =
      validates ? request.length() : world.End(VABI_PF(irdma_modify_qp_req, rq_flush));
  if (validates && call.out.length() != 0 && call.out.ClearFrom(0) != 0)
    return call.Refuse(rule::reply_fault);
  if (call.Violates(rule::modify_reply, call.out.length() != 0 && call.out.length() < least_reply))
    return call.Refuse(rule::modify_reply);
  if (call.in.length() != 0) {
    if (call.Violates(rule::modify_short, call.in.length() < least))
      return call.Refuse(rule::modify_short);
    if (validates) {
      const provider::RequestRules rules = {least, rule::modify_short, rule::modify_tail,
                                            rule::modify_fault};
      if (const int error = provider::CopyRequest(call, request.base(), request.length(), rules))
        return error;
    }
  }
  if (call.Violates(rule::modify_mask, (mask & ~kQpStandardBits) != 0))
    return call.Refuse(rule::modify_mask);
  if (call.Violates(rule::modify_pkey, (mask & kQpPkeyIndex) != 0 && attr.pkey_index > 0))
    return call.Refuse(rule::modify_pkey);
  // max_hw_ord is all that eight bits hold, max_hw_ird is half of it.
  if ((mask & kQpMaxDestRdAtomic) != 0 && attr.max_dest_rd_atomic > kMaxIrd)
    return call.Refuse(rule::modify_rd_atomic);
  if ((mask & kQpState) == 0) return 0;

  QpState& state = StateOf(qp);
  switch (next) {
    case vabi::QpState::kInit:
    case vabi::QpState::kRtr:
      if (call.Violates(rule::modify_state, state.hardware > Hardware::kIdle))
        return call.Refuse(rule::modify_state);
      state.hardware = next == vabi::QpState::kInit ? Hardware::kIdle : Hardware::kRtr;
      break;
    case vabi::QpState::kRts:
      state.hardware = Hardware::kRts;
      break;
    case vabi::QpState::kSqd:
      if (state.hardware == Hardware::kSqd) return 0;
      state.hardware = Hardware::kSqd;
      break;
    default:
      if (state.hardware == Hardware::kError) return 0;
      state.hardware = Hardware::kError;
      break;
  }
  // Push pages are off unless the administrator asks for them (iwdev->push_mode): all is zero.
  if (call.out.length() == 0) return 0;
  return Reply(call, reply, rule::reply_fault);
}

int IrdmaDriver::QueryQp(Call&, Qp& qp) {
  const QpState& state = StateOf(qp);
  qp.cap = state.asked;
  qp.cap.max_send_wr = state.max_send_wr;
  qp.cap.max_recv_wr = state.max_recv_wr;
  // What verbs.c:irdma_query_qp does not set is zero.
  const QpAttributes kept = qp.attr;
  qp.attr = {};
  qp.attr.access_flags = kept.access_flags;
  qp.attr.port_num = 1;
  qp.attr.path_mtu = kept.path_mtu;
  qp.attr.qkey = kept.qkey;
  qp.attr.rq_psn = kept.rq_psn;
  qp.attr.sq_psn = kept.sq_psn;
  qp.attr.dest_qp_num = kept.dest_qp_num;
  qp.attr.retry_cnt = kept.retry_cnt;
  qp.attr.rnr_retry = kept.rnr_retry;
  qp.attr.max_rd_atomic = kept.max_rd_atomic;
  qp.attr.max_dest_rd_atomic = kept.max_dest_rd_atomic;
  return 0;
}

int IrdmaDriver::DestroyQp(Call&, Qp& qp) {
  --StateOf(qp).buffer->rings;
  return 0;
}

}  // namespace vabi::irdma
