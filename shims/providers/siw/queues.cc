// SPDX-License-Identifier: BSD-2-Clause
// siw_verbs.c, siw_qp.c: completion queues, queue pairs, shared receive queues
#include <algorithm>
#include <bit>

#include "shims/providers/siw/driver.h"
#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::siw {
namespace {

constexpr uint32_t kSrqBasic = 0;                 // IB_SRQT_BASIC
constexpr uint32_t kSrqMaxWr = 1, kSrqLimit = 2;  // enum ib_srq_attr_mask

QueueState& QueuesOf(Object& object) { return *static_cast<QueueState*>(object.driver.get()); }

uint32_t RoundUp(uint32_t count) { return std::bit_ceil(count); }

// Makes the place of a queue, or gives the rest back when there is none.
int Place(Call& call, QueueState* state, int index, uint64_t length, const char* kind,
          RuleId none) {
  state->context = &StateOf(*call.file.context());
  state->offsets[index] = AddPlace(call, length, kind);
  return state->offsets[index] == QueueState::kNone ? call.Refuse(none) : 0;
}

}  // namespace

int SiwDriver::BeforeRoom(Call& call, const Cq& cq) {
  if (call.Violates(rule::cq_flags, cq.flags != 0)) return call.Refuse(rule::cq_flags);
  return 0;
}

int SiwDriver::CreateCq(Call& call, Cq& cq) {
  const World& world = call.world;
  if (call.Violates(rule::cq_cqe, cq.cqe < 1 || cq.cqe > cq.device->attributes().max_cqe))
    return call.Refuse(rule::cq_cqe);
  const uint32_t size = RoundUp(cq.cqe);
  auto state = std::make_unique<QueueState>();
  const uint64_t length =
      uint64_t{size} * world.Size(structure::siw_cqe) + world.Size(structure::siw_cq_ctrl);
  if (const int error = Place(call, state.get(), 0, length, "CQ", rule::keys_full)) return error;
  OwnedBody<32> reply(world, structure::siw_uresp_create_cq);
  reply.Set(VABI_PF(siw_uresp_create_cq, cq_id), cq.device->NextNumber());  // random in the kernel
  reply.Set(VABI_PF(siw_uresp_create_cq, num_cqe), size);
  reply.Set(VABI_PF(siw_uresp_create_cq, cq_key), state->offsets[0]);
  int error = call.out.length() < reply.length() ? call.Refuse(rule::cq_reply_short) : 0;
  if (error == 0) error = Reply(call, reply);
  if (error != 0) {
    state->Forget();
    return error;
  }
  cq.cqe = size;
  cq.driver = std::move(state);
  return 0;
}

void SiwDriver::DestroyCq(Cq& cq) { QueuesOf(cq).Forget(); }

// Nobody puts anything there.
int SiwDriver::PollCq(Call&, Cq&) { return 0; }
int SiwDriver::ReqNotifyCq(Call&, Cq&, bool) { return 0; }

uint32_t SiwDriver::TakeQpNumber() {
  const std::lock_guard<std::mutex> lock(qp_mutex_);
  const auto free = std::find(qp_numbers_.begin(), qp_numbers_.end(), false);
  const auto index = static_cast<uint32_t>(free - qp_numbers_.begin());
  if (free == qp_numbers_.end()) qp_numbers_.push_back(false);
  qp_numbers_[index] = true;
  return index + 1;
}

void SiwDriver::GiveQpNumber(uint32_t number) {
  const std::lock_guard<std::mutex> lock(qp_mutex_);
  if (number != 0 && number <= qp_numbers_.size()) qp_numbers_[number - 1] = false;
}

int SiwDriver::BeforeRoom(Call& call, const Qp& qp) {
  if (call.Violates(rule::qp_flags, qp.create_flags != 0)) return call.Refuse(rule::qp_flags);
  return 0;
}

int SiwDriver::CreateQp(Call& call, Qp& qp) {
  const World& world = call.world;
  const DeviceAttributes& limits = qp.device->attributes();
  const auto sges = static_cast<uint32_t>(world.Flag(constant::SIW_MAX_SGE));
  constexpr uint32_t kSge = 16;  // sizeof(struct siw_sge)
  if (call.Violates(rule::qp_type, qp.qp_type != kQptRc)) return call.Refuse(rule::qp_type);
  if (call.Violates(rule::qp_size, qp.cap.max_send_wr > limits.max_qp_wr ||
                                       qp.cap.max_recv_wr > limits.max_qp_wr ||
                                       qp.cap.max_send_sge > sges || qp.cap.max_recv_sge > sges)) {
    return call.Refuse(rule::qp_size);
  }
  const uint32_t max_inline = kSge * (sges - 1);
  if (call.Violates(rule::qp_inline, qp.cap.max_inline > max_inline))
    return call.Refuse(rule::qp_inline);
  if (call.Violates(rule::qp_no_queue, qp.cap.max_send_wr + qp.cap.max_recv_wr == 0))
    return call.Refuse(rule::qp_no_queue);
  if (call.Violates(rule::qp_no_send, qp.cap.max_send_wr == 0))
    return call.Refuse(rule::qp_no_send);

  const bool one_for_none = world.Knob(knob::zero_queue) != 0;
  const auto slots = [&](uint32_t asked) {
    return asked == 0 ? (one_for_none ? 1u : 0u) : RoundUp(asked);
  };
  const uint32_t send = slots(qp.cap.max_send_wr), receive = slots(qp.cap.max_recv_wr);
  auto state = std::make_unique<QueueState>();
  OwnedBody<64> reply(world, structure::siw_uresp_create_qp);
  const uint32_t number = TakeQpNumber();
  reply.Set(VABI_PF(siw_uresp_create_qp, qp_id), number);
  reply.Set(VABI_PF(siw_uresp_create_qp, num_sqe), send);
  reply.Set(VABI_PF(siw_uresp_create_qp, num_rqe), receive);
  int error =
      Place(call, state.get(), 0, send * world.Size(structure::siw_sqe), "SQ", rule::keys_full);
  reply.Set(VABI_PF(siw_uresp_create_qp, sq_key), state->offsets[0]);
  const bool own_receives = qp.srq == nullptr && receive != 0;
  if (error == 0 && own_receives) {
    error = Place(call, state.get(), 1, receive * world.Size(structure::siw_rqe), "RQ",
                  rule::keys_full);
    reply.Set(VABI_PF(siw_uresp_create_qp, rq_key), state->offsets[1]);
  } else if (world.Knob(knob::keys_cyclic) != 0) {
    // SIW_INVAL_UOBJ_KEY, in pages as any other
    reply.Set(VABI_PF(siw_uresp_create_qp, rq_key),
              static_cast<uint64_t>(world.Flag(constant::SIW_INVAL_UOBJ_KEY)) << 12);
  }
  if (error == 0 && call.out.length() < reply.length()) error = call.Refuse(rule::qp_reply_short);
  if (error == 0) error = Reply(call, reply);
  if (error != 0) {
    state->Forget();
    GiveQpNumber(number);
    return error;
  }
  state->depth[0] = send;
  state->depth[1] = own_receives ? receive : 0;
  qp.qp_num = number;
  // SIW_QP_STATE_IDLE is told as INIT; where nothing is told, what stands in the kernel's memory
  // reads as zero here.
  qp.state = world.Knob(knob::query_state) != 0 ? QpState::kInit : QpState::kReset;
  qp.driver = std::move(state);
  return 0;
}

// siw_verbs_modify_qp, siw_qp_modify. Attributes but the access flags are not looked at, and no
// state but the error state is entered: from IDLE and RTR (which is IDLE, too) only a socket leads
// to RTS.
int SiwDriver::ModifyQp(Call& call, Qp& qp, QpState next, const QpAttributes&, uint32_t mask) {
  if (call.Violates(rule::modify_mask, (mask & ~kQpStandardBits) != 0))
    return call.Refuse(rule::modify_mask);
  if ((mask & kQpState) == 0 || qp.state == QpState::kErr) return 0;
  if (call.Violates(rule::modify_no_socket, next == QpState::kRts))
    return call.Refuse(rule::modify_no_socket);
  return 0;
}

QpState SiwDriver::StateAfter(const Qp& qp, QpState next, uint32_t mask) const {
  return (mask & kQpState) != 0 && next == QpState::kErr ? QpState::kErr : qp.state;
}

int SiwDriver::QueryQp(Call& call, Qp& qp) {
  const World& world = call.world;
  const QueueState& state = QueuesOf(qp);
  const auto sges = static_cast<uint32_t>(world.Flag(constant::SIW_MAX_SGE));
  constexpr uint32_t kLocalWrite = 1, kRemoteWrite = 2, kRemoteRead = 4;
  qp.cap.max_inline = 16 * (sges - 1);
  qp.cap.max_send_wr = state.depth[0];
  qp.cap.max_recv_wr = state.depth[1];
  qp.attr = {};
  qp.attr.path_mtu = qp.device->image().ports[0].active_mtu;
  qp.attr.access_flags = kLocalWrite | kRemoteWrite | kRemoteRead;
  // sq_sig_type is left as ib_uverbs_query_qp allocated it, and zero is IB_SIGNAL_ALL_WR; Debian's
  // kernels clear what they allocate (CONFIG_INIT_ON_ALLOC_DEFAULT_ON).
  qp.signal_all = true;
  return 0;
}

int SiwDriver::DestroyQp(Call&, Qp& qp) {
  QueuesOf(qp).Forget();
  GiveQpNumber(qp.qp_num);
  return 0;
}

int SiwDriver::PostSend(Call& call, Qp& qp, uint32_t count) {
  if (call.Violates(rule::post_send_mapped, count != 0)) return call.Refuse(rule::post_send_mapped);
  if (qp.state == QpState::kErr && call.world.Knob(knob::post_send_error) != 0) return 0;
  if (call.Violates(rule::post_send_state, true)) return call.Refuse(rule::post_send_state);
  return 0;
}

int SiwDriver::PostRecv(Call& call, Qp& qp, std::span<const fabric::RecvRequest>,
                        uint32_t* posted) {
  *posted = 0;
  const bool none = QueuesOf(qp).depth[1] == 0 && call.world.Knob(knob::zero_queue) == 0;
  if (call.Violates(rule::post_recv_srq, qp.srq != nullptr || none))
    return call.Refuse(rule::post_recv_srq);
  return call.Refuse(rule::post_recv_mapped);
}

int SiwDriver::BeforeRoom(Call& call, const Srq& srq) {
  if (call.Violates(rule::srq_type, srq.srq_type != kSrqBasic)) return call.Refuse(rule::srq_type);
  return 0;
}

int SiwDriver::CreateSrq(Call& call, Srq& srq) {
  const World& world = call.world;
  const DeviceAttributes& limits = srq.device->attributes();
  if (call.Violates(rule::srq_size, srq.max_wr == 0 || srq.max_wr > limits.max_srq_wr ||
                                        srq.max_sge > limits.max_srq_sge ||
                                        srq.srq_limit > srq.max_wr)) {
    return call.Refuse(rule::srq_size);
  }
  const uint32_t count = RoundUp(srq.max_wr);
  auto state = std::make_unique<QueueState>();
  if (const int error = Place(call, state.get(), 0, count * world.Size(structure::siw_rqe), "SRQ",
                              rule::keys_full)) {
    return error;
  }
  OwnedBody<32> reply(world, structure::siw_uresp_create_srq);
  reply.Set(VABI_PF(siw_uresp_create_srq, num_rqe), count);
  reply.Set(VABI_PF(siw_uresp_create_srq, srq_key),
            world.Knob(knob::keys_shifted) != 0 ? state->offsets[0] : state->offsets[0] >> 12);
  int error = call.out.length() < reply.length() ? call.Refuse(rule::srq_reply_short) : 0;
  if (error == 0) error = Reply(call, reply);
  if (error != 0) {
    state->Forget();
    return error;
  }
  state->depth[0] = count;
  srq.driver = std::move(state);
  return 0;
}

int SiwDriver::ModifySrq(Call& call, Srq& srq, uint32_t, uint32_t limit, uint32_t mask) {
  if (call.Violates(rule::modify_srq_resize, (mask & kSrqMaxWr) != 0))
    return call.Refuse(rule::modify_srq_resize);
  if ((mask & kSrqLimit) == 0) return 0;
  if (call.Violates(rule::modify_srq_limit, limit > QueuesOf(srq).depth[0]))
    return call.Refuse(rule::modify_srq_limit);
  srq.srq_limit = limit;
  return 0;
}

int SiwDriver::QuerySrq(Call&, Srq& srq) {
  srq.max_wr = QueuesOf(srq).depth[0];
  return 0;
}

void SiwDriver::DestroySrq(Srq& srq) { QueuesOf(srq).Forget(); }

int SiwDriver::PostSrqRecv(Call& call, Srq&, std::span<const fabric::RecvRequest>,
                           uint32_t* posted) {
  *posted = 0;
  return call.Refuse(rule::post_srq_recv_mapped);
}

}  // namespace vabi::siw
