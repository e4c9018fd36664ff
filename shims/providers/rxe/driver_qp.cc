// SPDX-License-Identifier: BSD-2-Clause
// Queue pairs: rxe_verbs.c, rxe_qp.c
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "shims/fabric/address.h"
#include "shims/fabric/memory.h"
#include "shims/fabric/remote.h"
#include "shims/providers/rxe/driver.h"
#include "shims/providers/rxe/queue_pair.h"
#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::rxe {
namespace {

// RXE_ACCESS_SUPPORTED_QP
constexpr uint32_t kSupportedAccess = 0x35f | 0x3ff00000;
constexpr uint8_t kLongestTimeout = 31;
constexpr uint8_t kForever = 7;  // of retry_cnt and rnr_retry

bool IsConnected(uint8_t type) { return type == kQptRc || type == kQptUc; }

uint8_t RoundUp(uint8_t depth) {
  return depth == 0 ? 0 : static_cast<uint8_t>(std::bit_ceil<unsigned int>(depth));
}

}  // namespace

// rxe_qp_chk_cap
int RxeDriver::CheckCapabilities(Call& call, const QpCapabilities& cap, bool has_srq) const {
  const auto limit = [&](KnobId id) { return static_cast<uint32_t>(call.world.Knob(id)); };
  const auto refused = [&](RuleId rule, bool too_many) { return call.Violates(rule, too_many); };
  const uint32_t max_wr = limit(KnobId::rxe_max_qp_wr), max_sge = limit(KnobId::rxe_max_sge);
  if (refused(RuleId::rxe_qp_send_wr, cap.max_send_wr > max_wr))
    return call.Refuse(RuleId::rxe_qp_send_wr);
  if (refused(RuleId::rxe_qp_send_sge, cap.max_send_sge > max_sge))
    return call.Refuse(RuleId::rxe_qp_send_sge);
  if (!has_srq) {
    if (refused(RuleId::rxe_qp_recv_wr, cap.max_recv_wr > max_wr))
      return call.Refuse(RuleId::rxe_qp_recv_wr);
    if (refused(RuleId::rxe_qp_recv_sge, cap.max_recv_sge > max_sge))
      return call.Refuse(RuleId::rxe_qp_recv_sge);
  }
  if (refused(RuleId::rxe_qp_inline, cap.max_inline > limit(KnobId::rxe_max_inline))) {
    return call.Refuse(RuleId::rxe_qp_inline);
  }
  return 0;
}

int RxeDriver::CreateQp(Call& call, Qp& qp) {
  const World& world = call.world;
  const bool has_input = call.in.length() != 0;
  const bool told = world.Has(VABI_S(rxe_create_qp_resp));
  const size_t place_size = world.Size(VABI_S(mminfo));
  const bool reply_short =
      call.out.length() < (told ? world.Size(VABI_S(rxe_create_qp_resp)) : 2 * place_size);
  if (call.Violates(RuleId::rxe_qp_input, has_input)) return call.Refuse(RuleId::rxe_qp_input);
  if (world.Knob(KnobId::rxe_reply_required) != 0 && reply_short)
    return call.Refuse(RuleId::rxe_qp_reply_short);
  if (call.Violates(RuleId::rxe_qp_flags, qp.create_flags != 0))
    return call.Refuse(RuleId::rxe_qp_flags);
  const bool known = qp.qp_type == kQptRc || qp.qp_type == kQptUc || qp.qp_type == kQptUd;
  if (call.Violates(RuleId::rxe_qp_type, !known)) return call.Refuse(RuleId::rxe_qp_type);
  if (qp.send_cq == nullptr || qp.recv_cq == nullptr) return call.Refuse(RuleId::rxe_qp_no_cq);
  if (const int error = CheckCapabilities(call, qp.cap, qp.srq != nullptr)) return error;
  std::lock_guard lock(fabric::Lock());
  RxeDevice& rxe = Of(*qp.device);
  Pool::Seat seat = rxe.qps.Take();
  if (call.Violates(RuleId::rxe_qp_full_early, seat.over()))
    return call.Refuse(RuleId::rxe_qp_full_early);
  if (has_input && world.Knob(KnobId::rxe_qp_input_oops) != 0) {
    return call.Unmodelled("rxe: private input to CREATE_QP takes this kernel down");
  }
  if (call.Violates(RuleId::rxe_qp_input_late, has_input))
    return call.Refuse(RuleId::rxe_qp_input_late);
  if (call.Violates(RuleId::rxe_qp_full, seat.over())) return call.Refuse(RuleId::rxe_qp_full);
  if (reply_short) return call.Refuse(RuleId::rxe_qp_reply_short);

  auto state = std::make_unique<QueuePair>(rxe, qp);
  state->seat = std::move(seat);
  const Layout& layout = rxe.layout;
  const uint64_t alignment = PlaceAlignment(world);

  // rxe_init_sq. The larger of elements and inline data is what a slot has room for, and is
  // granted.
  const uint32_t room = std::max(qp.cap.max_send_sge * layout.sge_size, qp.cap.max_inline);
  if (world.Knob(KnobId::rxe_sq_caps) != 0) {
    state->max_send_sge = room / layout.sge_size;
    state->max_inline = room;
  } else {
    state->max_send_sge = qp.cap.max_send_sge;
    state->max_inline = qp.cap.max_inline;
  }
  uint32_t send_count = qp.cap.max_send_wr;
  if (const int error = state->send.Create(rxe.arena, layout, Queue::Kind::kFromClient, &send_count,
                                           layout.send_size + room, alignment)) {
    return error;
  }
  const size_t send_at =
      told ? static_cast<size_t>(world.At(VABI_F(rxe_create_qp_resp, sq_mi)).offset) : place_size;
  if (const int error = TellPlace(call, state->send, send_at)) return error;

  // rxe_init_rq
  uint32_t receive_count = qp.cap.max_recv_wr;
  state->max_receive_sge = qp.cap.max_recv_sge;
  if (qp.srq == nullptr) {
    const uint64_t element =
        layout.recv_size + static_cast<uint64_t>(qp.cap.max_recv_sge) * layout.sge_size;
    if (const int error = state->receive.Create(rxe.arena, layout, Queue::Kind::kFromClient,
                                                &receive_count, element, alignment)) {
      return error;
    }
    const size_t receive_at =
        told ? static_cast<size_t>(world.At(VABI_F(rxe_create_qp_resp, rq_mi)).offset) : 0;
    if (const int error = TellPlace(call, state->receive, receive_at)) return error;
    state->receive.AnnounceTo(call.file.context(), "RQ");
  }
  state->send.AnnounceTo(call.file.context(), "SQ");

  qp.cap.max_send_sge = state->max_send_sge;
  qp.cap.max_inline = state->max_inline;
  if (world.Knob(KnobId::rxe_depth_told) != 0) {
    qp.cap.max_send_wr = send_count;
    if (qp.srq == nullptr) qp.cap.max_recv_wr = receive_count;
  }
  qp.attr.path_mtu = 1;  // rxe_qp_init_misc
  qp.qp_num = qp.device->NextQpn();
  state->qpn = qp.qp_num;
  qp.endpoint = state.get();
  fabric::AddEndpoint(state.get());
  qp.driver = std::move(state);
  return 0;
}

// rxe_qp_chk_attr, in its order
int RxeDriver::CheckAttributes(Call& call, const Qp& qp, const QpAttributes& attr,
                               uint32_t mask) const {
  if ((mask & kQpAccessFlags) != 0 &&
      call.Violates(RuleId::rxe_modify_access,
                    !IsConnected(qp.qp_type) || (attr.access_flags & ~kSupportedAccess) != 0)) {
    return call.Refuse(RuleId::rxe_modify_access);
  }
  const auto no_network = [&](const fabric::AddressVector& address) {
    constexpr uint8_t kRoceV2 = 2;
    uint8_t type = 0;
    if (!address.is_global) return false;
    return fabric::SourceGid(qp.device->number(), 1, address.sgid_index, &type) == nullptr ||
           type != kRoceV2;
  };
  if ((mask & kQpAv) != 0 && call.Violates(RuleId::rxe_av_network, no_network(attr.address))) {
    return call.Refuse(RuleId::rxe_av_network);
  }
  if ((mask & kQpAltPath) != 0) {
    if (call.Violates(RuleId::rxe_av_network, no_network(attr.alternate))) {
      return call.Refuse(RuleId::rxe_av_network);
    }
    if (call.Violates(RuleId::rxe_modify_alt_timeout, attr.alt_timeout > kLongestTimeout)) {
      return call.Refuse(RuleId::rxe_modify_alt_timeout);
    }
  }
  if ((mask & kQpPathMtu) != 0 &&
      call.Violates(RuleId::rxe_modify_mtu, attr.path_mtu > qp.device->port(1).max_mtu)) {
    return call.Refuse(RuleId::rxe_modify_mtu);
  }
  if ((mask & kQpMaxRdAtomic) != 0 &&
      call.Violates(RuleId::rxe_modify_rd_atomic,
                    attr.max_rd_atomic > qp.device->attributes().max_qp_rd_atom)) {
    return call.Refuse(RuleId::rxe_modify_rd_atomic);
  }
  if ((mask & kQpTimeout) != 0 &&
      call.Violates(RuleId::rxe_modify_timeout, attr.timeout > kLongestTimeout)) {
    return call.Refuse(RuleId::rxe_modify_timeout);
  }
  return 0;
}

// Attributes beyond the standard ones are refused before anything is looked at.
bool RxeDriver::ChecksTransition(const World& world, const Qp& qp, uint32_t mask) const {
  const RuleEntry& rule = world.Rule(RuleId::rxe_modify_mask);
  if (rule.on && !rule.relaxed && (mask & ~kQpStandardBits) != 0) return false;
  if (qp.qp_type == kQptDriver) return false;
  return (mask & kQpState) != 0 || world.Knob(KnobId::rxe_modify_by_state) == 0;
}

QpState RxeDriver::StateAfter(const Qp& qp, QpState next, uint32_t mask) const {
  return (mask & kQpState) != 0 ? next : qp.state;
}

int RxeDriver::ModifyQp(Call& call, Qp& qp, QpState next, const QpAttributes& attr, uint32_t mask) {
  if (call.Violates(RuleId::rxe_modify_mask, (mask & ~kQpStandardBits) != 0)) {
    return call.Refuse(RuleId::rxe_modify_mask);
  }
  if (qp.qp_type == kQptDriver) {
    return call.Unmodelled(
        "rxe: ib_modify_qp_is_ok has no row for IB_QPT_DRIVER, and reads past its table");
  }
  std::unique_lock lock(fabric::Lock());
  QueuePair& state = QueuePair::Of(qp);
  if (const int error = CheckAttributes(call, qp, attr, mask)) return error;
  const auto current =
      (mask & kQpCurState) != 0 ? static_cast<QpState>(attr.cur_qp_state) : qp.state;
  if (call.Violates(RuleId::rxe_modify_draining, (mask & kQpState) != 0 &&
                                                     current == QpState::kSqd && state.draining() &&
                                                     next != QpState::kErr)) {
    return call.Refuse(RuleId::rxe_modify_draining);
  }
  if ((mask & kQpCurState) != 0) {
    state.current_state = (mask & kQpState) != 0 ? next : QpState::kReset;
  }
  // rxe_qp_from_attr
  const bool datagrams = qp.qp_type == kQptUd;
  if ((mask & kQpMaxRdAtomic) != 0) state.max_rd_atomic = RoundUp(attr.max_rd_atomic);
  if ((mask & kQpMaxDestRdAtomic) != 0) state.max_dest_rd_atomic = RoundUp(attr.max_dest_rd_atomic);
  if ((mask & kQpAccessFlags) != 0) state.access = attr.access_flags;
  if ((mask & kQpPort) != 0) state.port = attr.port_num;
  if ((mask & kQpQkey) != 0) state.qkey = attr.qkey;
  if ((mask & kQpAv) != 0) {
    state.address = attr.address;
    fabric::SendAs(&state, attr.address.sgid_index);
  }
  if ((mask & kQpPathMtu) != 0 && !datagrams) state.mtu = 128u << attr.path_mtu;
  if ((mask & kQpTimeout) != 0) state.timeout = attr.timeout;
  if ((mask & kQpRetryCnt) != 0) {
    state.retry_count = attr.retry_cnt == kForever ? fabric::Endpoint::kForever : attr.retry_cnt;
  }
  if ((mask & kQpRnrRetry) != 0) state.rnr_retry = attr.rnr_retry;
  if ((mask & kQpRqPsn) != 0) state.rq_psn = attr.rq_psn;
  if ((mask & kQpSqPsn) != 0) state.sq_psn = state.sent_psn = attr.sq_psn;
  if ((mask & kQpMinRnrTimer) != 0) state.min_rnr_timer = attr.min_rnr_timer;
  if ((mask & kQpDestQpn) != 0) state.dest_qpn = attr.dest_qp_num;
  if ((mask & kQpState) == 0) return 0;
  state.SetState(next);
  const bool unfinished = state.unfinished();
  lock.unlock();
  if (unfinished) rxe_->StartPolling();
  fabric::Attend(state);
  return 0;
}

QpState RxeDriver::CurrentState(const World& world, const Qp& qp) const {
  if (world.Knob(KnobId::rxe_current_state) != 0) return qp.state;
  return static_cast<const QueuePair*>(qp.driver.get())->current_state;
}

// rxe_qp_to_attr, rxe_qp_to_init. Of addresses only the global route is kept (rxe_av_to_attr).
int RxeDriver::QueryQp(Call&, Qp& qp) {
  std::lock_guard lock(fabric::Lock());
  const QueuePair& state = QueuePair::Of(qp);
  qp.state = static_cast<QpState>(state.state);
  qp.attr.rq_psn = state.rq_psn;
  qp.attr.sq_psn = state.sent_psn;
  qp.attr.max_rd_atomic = state.max_rd_atomic;
  qp.attr.max_dest_rd_atomic = state.max_dest_rd_atomic;
  qp.attr.sq_draining = state.draining();
  for (fabric::AddressVector* address : {&qp.attr.address, &qp.attr.alternate}) {
    address->is_global = 1;
    address->dlid = 0;
    address->sl = address->src_path_bits = address->static_rate = 0;
  }
  qp.cap.max_send_wr = state.send.mask();
  qp.cap.max_send_sge = state.max_send_sge;
  qp.cap.max_inline = state.max_inline;
  qp.cap.max_recv_wr = state.has_srq ? 0 : state.receive.mask();
  qp.cap.max_recv_sge = state.has_srq ? 0 : state.max_receive_sge;
  return 0;
}

int RxeDriver::DestroyQp(Call&, Qp& qp) {
  RxeDevice& rxe = Of(*qp.device);
  {
    std::lock_guard lock(fabric::Lock());
    fabric::RemoveEndpoint(&QueuePair::Of(qp));
    qp.endpoint = nullptr;
    qp.driver.reset();
  }
  rxe.StopPollingIfIdle();
  fabric::Unattend();
  return 0;
}

// rxe_post_send, of a user's queue pair: the doorbell. What rxe's send task would do runs here.
int RxeDriver::PostSend(Call& call, Qp& qp, uint32_t) {
  constexpr uint32_t kGuardChecks = 64;
  bool unfinished;
  {
    std::lock_guard lock(fabric::Lock());
    QueuePair& state = QueuePair::Of(qp);
    if (call.Violates(RuleId::rxe_post_send_state, state.state < fabric::EndpointState::kRts)) {
      return call.Refuse(RuleId::rxe_post_send_state);
    }
    if (state.service == fabric::Service::kRaw && !state.send.Empty()) {
      return call.Unmodelled(
          "rxe: wr_opcode_mask has no column for this type, and reads past its table");
    }
    if (posts_++ % kGuardChecks == 0) fabric::GuardCheck();
    state.Drive();
    unfinished = state.unfinished();
  }
  if (unfinished) rxe_->StartPolling();
  return 0;
}

// rxe_post_recv
int RxeDriver::PostRecv(Call& call, Qp& qp, std::span<const fabric::RecvRequest> list,
                        uint32_t* posted) {
  std::lock_guard lock(fabric::Lock());
  QueuePair& state = QueuePair::Of(qp);
  if (call.Violates(RuleId::rxe_post_recv_state, state.state < fabric::EndpointState::kInit)) {
    return call.Refuse(RuleId::rxe_post_recv_state);
  }
  if (state.has_srq) return call.Refuse(RuleId::rxe_post_recv_srq);
  const int error = PostReceives(call, state.receive, state.max_receive_sge, list, posted);
  if (state.state == fabric::EndpointState::kErr) state.FlushPosted();
  return error;
}

// rxe_verbs.c:post_one_recv, for each
int RxeDriver::PostReceives(Call& call, Queue& queue, uint32_t max_sge,
                            std::span<const fabric::RecvRequest> list, uint32_t* posted) const {
  for (const fabric::RecvRequest& request : list) {
    if (queue.Full()) return call.Refuse(RuleId::rxe_post_recv_full);
    if (request.sge_count > max_sge) return call.Refuse(RuleId::rxe_post_recv_sges);
    WriteReceive(rxe_->layout, request, queue.Slot(queue.Producer()));
    queue.AdvanceClientProducer();
    ++*posted;
  }
  return 0;
}

int RxeDriver::AttachMcast(Call&, Qp& qp, const uint8_t* gid, uint16_t, bool attach) {
  std::lock_guard lock(fabric::Lock());
  QueuePair& state = QueuePair::Of(qp);
  return attach ? fabric::AttachMulticast(&state, gid) : fabric::DetachMulticast(&state, gid);
}

}  // namespace vabi::rxe
