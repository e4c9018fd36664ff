// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/rxe/queue_pair.h"

#include <algorithm>

#include "shims/fabric/window.h"
#include "shims/providers/rxe/shared_receive_queue.h"
#include "shims/uverbs/events.h"
#include "shims/uverbs/qp_state.h"

namespace vabi::rxe {
namespace {

using fabric::EndpointState;
using fabric::Opcode;
using fabric::Outcome;
using fabric::Service;
using fabric::Status;

// rxe_verbs.h: enum wqe_state, which rxe leaves in the program's slots
enum SlotState : uint32_t { kPosted, kProcessing, kPending, kDone, kError };

// enum ib_event_type
constexpr uint32_t kEventAccess = 3, kEventDrained = 5, kEventSrqLimit = 15, kEventLastWqe = 16;

// enum ib_wc_flags, ib_verbs.h. WITH_INVALIDATE is 4 here, which libibverbs calls IP_CSUM_OK.
constexpr uint32_t kWcGrh = 1, kWcWithImm = 2, kWcWithInvalidate = 4;
constexpr uint32_t kWcRecv = 128, kWcRecvRdmaWithImm = 129;
constexpr uint32_t kWcUnknown = 0xff;  // rxe_comp.c: wr_to_wc_opcode

Service ServiceOf(uint8_t type) {
  switch (type) {
    case kQptRc:
      return Service::kRc;
    case kQptUc:
      return Service::kUc;
    case kQptUd:
      return Service::kUd;
    default:
      return Service::kRaw;  // made up to 5.10, where nobody looked at the type; speaks to nobody
  }
}

}  // namespace

QueuePair::QueuePair(RxeDevice& device, Qp& object) : rxe(device), qp(object) {
  service = ServiceOf(object.qp_type);
  this->device = device.number;
  pd = NumberOf(object.pd);
  mtu = object.qp_type == kQptUd ? device.port_mtu : 256;  // rxe_qp_init_misc: path_mtu 1
  has_srq = object.srq != nullptr;
  wording = &device.wording;
  checks_psn = true;
  max_rd_atomic = max_dest_rd_atomic = 0;
  timeout = 0;
  rnr_retry = retry_count = 0;
  min_rnr_timer = 0;
}

QueuePair::~QueuePair() { StopWaiting(); }

// rxe_resp.c: rxe_get_recv_wqe, get_srq_wqe
bool QueuePair::PopReceive(fabric::RecvRequest* out) {
  if (!has_srq) {
    if (receive.Empty()) return false;
    const uint8_t* slot = receive.Slot(receive.Consumer());
    if (!ReadReceive(rxe.layout, slot, receive.element(), max_receive_sge, out)) {
      out->sge_count = kMalformed;
    } else {
      receive.AdvanceConsumer();
    }
    return true;
  }
  Srq& srq = *qp.srq;
  SharedReceiveQueue& shared = SharedReceiveQueue::Of(srq);
  if (shared.queue.Empty()) return false;
  const uint8_t* slot = shared.queue.Slot(shared.queue.Consumer());
  if (!ReadReceive(rxe.layout, slot, shared.queue.element(), shared.max_sge, out)) {
    out->sge_count = kMalformed;
    return true;
  }
  shared.queue.AdvanceConsumer();
  if (shared.limit != 0 && shared.queue.Count() < shared.limit) {
    shared.limit = 0;
    if (srq.events) srq.events->Report(srq.user_handle, kEventSrqLimit, &srq.events_reported, &srq);
  }
  return true;
}

void QueuePair::ReturnReceive(const fabric::RecvRequest&) {
  if (!has_srq) receive.RetreatConsumer();
}

// rxe_resp.c: do_complete
void QueuePair::CompleteReceive(const fabric::RecvRequest& request,
                                const fabric::Completion& from) {
  WorkCompletion completion;
  completion.wr_id = request.wr_id;
  completion.status = static_cast<uint32_t>(from.status);
  completion.qpn = qpn;
  if (from.status == Status::kSuccess) {
    completion.opcode = from.opcode == Opcode::kWriteImm ? kWcRecvRdmaWithImm : kWcRecv;
    completion.byte_length = from.byte_length;
    completion.flags = kWcGrh;
    if (from.has_immediate) completion.flags |= kWcWithImm;
    if (from.has_invalidate) completion.flags |= kWcWithInvalidate;
    completion.immediate = from.immediate;
    completion.source_qpn = from.source_qpn;
    completion.port = port;
  }
  const bool posted =
      CompletionQueue::Of(*qp.recv_cq).Post(rxe.layout, rxe.entry_size, completion, from.solicited);
  // RESPST_ERR_CQ_OVERFLOW, class G
  if (!posted && state != EndpointState::kErr) {
    state = EndpointState::kErr;
    EnterError();
  }
}

void QueuePair::Report(fabric::Event event) {
  if (event == fabric::Event::kAccessError && rxe.access_event && service == Service::kRc) {
    ReportEvent(kEventAccess);
  }
}

void QueuePair::ReportEvent(uint32_t type) {
  if (qp.events) qp.events->Report(qp.user_handle, type, &qp.events_reported, &qp);
}

// rxe_qp_error, and what its tasks then do
void QueuePair::EnterError() {
  state = EndpointState::kErr;
  qp.state = QpState::kErr;
  FlushReceive();
  FlushSend();
}

// rxe_comp.c: flush_send_queue
void QueuePair::FlushSend() {
  StopWaiting();
  DropSent();
  bool tell = true;
  while (!send.Empty()) {
    if (tell) {
      const uint8_t* slot = send.Slot(send.Consumer());
      const Operation* operation =
          FindOperation(rxe.layout, Load<uint32_t>(slot, rxe.layout.opcode), rxe.user_numbers);
      tell = CompletionQueue::Of(*qp.send_cq)
                 .Post(rxe.layout, rxe.entry_size,
                       MakeCompletion(slot, operation, Status::kFlushed), false);
    }
    send.AdvanceConsumer();
  }
}

// rxe_resp.c: flush_recv_queue
void QueuePair::FlushReceive() {
  if (has_srq) {
    if (rxe.last_wqe_event) ReportEvent(kEventLastWqe);
    return;
  }
  bool tell = true;
  while (!receive.Empty()) {
    if (tell) {
      WorkCompletion completion;
      completion.wr_id = Load<uint64_t>(receive.Slot(receive.Consumer()), rxe.layout.recv_wr_id);
      completion.status = static_cast<uint32_t>(Status::kFlushed);
      completion.qpn = qpn;
      tell = CompletionQueue::Of(*qp.recv_cq).Post(rxe.layout, rxe.entry_size, completion, false);
    }
    receive.AdvanceConsumer();
  }
}

// rxe_qp_reset: what is queued goes without a word
void QueuePair::Reset() {
  StopWaiting();
  DropSent();
  draining_ = false;
  while (!send.Empty()) send.AdvanceConsumer();
  send.ZeroElements();
  if (!has_srq) {
    while (!receive.Empty()) receive.AdvanceConsumer();
    receive.ZeroElements();
  }
}

void QueuePair::SetState(QpState next) {
  state = static_cast<EndpointState>(next);
  switch (next) {
    case QpState::kReset:
      return Reset();
    case QpState::kErr:
      return EnterError();
    case QpState::kSqd:
      // Drained is what the send task finds when it runs, a little later.
      draining_ = true;
      return WaitInLine();
    default:
      draining_ = false;
      return;
  }
}

// rxe_req.c: req_check_sq_drain_done. Since 6.6 it looks at the slot at the head even when the
// queue is empty; there stands what the slot's last use has left.
void QueuePair::CheckDrained() {
  if (state != EndpointState::kSqd || !draining_ || waits_ || sent_ != 0) return;
  if (rxe.drain_by_slot || !send.Empty()) {
    if (Load<uint32_t>(send.Slot(send.Consumer()), rxe.layout.state) != kPosted) {
      std::erase(rxe.waiting, this);  // nothing more will change it
      return;
    }
  }
  draining_ = false;
  std::erase(rxe.waiting, this);
  ReportEvent(kEventDrained);
}

void QueuePair::WaitInLine() {
  if (std::find(rxe.waiting.begin(), rxe.waiting.end(), this) == rxe.waiting.end()) {
    rxe.waiting.push_back(this);
  }
}

void QueuePair::StopWaiting() {
  waits_ = false;
  attempt_ = 0;
  std::erase(rxe.waiting, this);
}

void QueuePair::DropSent() {
  fabric::DropSent(*this);
  sent_ = 0;
}

void QueuePair::Drive() {
  // As many as the queue holds: a program that posts meanwhile rings again.
  for (uint32_t turns = send.mask() + 1; turns > 0; --turns) {
    if (state == EndpointState::kErr) {
      if (rxe.flushes_later) FlushSend();
      return;
    }
    if (state < EndpointState::kRts) return;
    CheckDrained();
    if (send.Count() <= sent_) return;
    uint8_t* slot = send.Slot(send.Consumer() + sent_);
    if (state == EndpointState::kSqd && !waits_) return;
    if (!Carry(slot)) return;
  }
}

bool QueuePair::Carry(uint8_t* slot) {
  const Operation* operation =
      FindOperation(rxe.layout, Load<uint32_t>(slot, rxe.layout.opcode), rxe.user_numbers);
  // What needs no peer waits until all before it is over.
  if (sent_ != 0 && (operation == nullptr || operation->is_local)) return false;
  if (operation == nullptr) {
    FailLocally(slot, nullptr, rxe.wording.local_key);
    return true;
  }
  fabric::SendRequest request;
  const bool too_many =
      rxe.send_sge_bound && Load<uint32_t>(slot, rxe.layout.send_count) > max_send_sge;
  if (too_many || !ReadSend(rxe.layout, *operation, slot, send.element(), &request)) {
    if (sent_ != 0) return false;
    FailLocally(slot, operation, Status::kLocalQpOperation);
    return true;
  }
  if (operation->is_local) {
    const Status status = LocalOperation(*operation, slot);
    if (status != Status::kSuccess) {
      FailLocally(slot, operation, status);
    } else {
      Complete(slot, operation, status, kDone);
    }
    return true;
  }
  if (service == Service::kUd) {
    const Status status = Address(slot, &request);
    if (status != Status::kSuccess) {
      FailLocally(slot, operation, status);
      return true;
    }
  }
  fabric::Completion completion;
  switch (fabric::Execute(*this, request, attempt_, &completion)) {
    case Outcome::kRetry:
      ++attempt_;
      if (sent_ != 0) return false;  // it has not its turn yet
      if (!waits_) Store<uint32_t>(slot, rxe.layout.state, kPending);
      if (!waits_ && retry_at_ns != 0) WaitInLine();
      waits_ = true;
      return false;
    case Outcome::kSent:
      Store<uint32_t>(slot, rxe.layout.state, kPending);
      StopWaiting();
      if (draining_) WaitInLine();
      ++sent_;
      return true;
    case Outcome::kDone:
      break;
  }
  Finish(slot, operation, completion);
  return true;
}

void QueuePair::Answered(const fabric::Completion& completion) {
  if (sent_ == 0) return;
  --sent_;
  uint8_t* slot = send.Slot(send.Consumer());
  Finish(slot, FindOperation(rxe.layout, Load<uint32_t>(slot, rxe.layout.opcode), rxe.user_numbers),
         completion);
}

void QueuePair::Finish(uint8_t* slot, const Operation* operation,
                       const fabric::Completion& completion) {
  StopWaiting();
  if (draining_) WaitInLine();
  if (completion.status == Status::kLocalQpOperation ||
      completion.status == rxe.wording.local_key || completion.status == rxe.wording.local_range) {
    FailLocally(slot, operation, completion.status);
  } else if (completion.status != Status::kSuccess) {
    FailHead(slot, operation, completion.status);
  } else {
    const bool error = state == EndpointState::kErr;  // though the completion says success
    Complete(slot, operation, completion.status, service == Service::kRc ? kPending : kDone);
    if (error) EnterError();
  }
}

// rxe_req.c: rxe_do_local_ops
Status QueuePair::LocalOperation(const Operation& operation, const uint8_t* slot) {
  if (operation.opcode == Opcode::kBindMw) {
    if (rxe.layout.window_window < 0 || service == Service::kUd) return rxe.wording.local_key;
    return fabric::BindWindow(*this, ReadBind(rxe.layout, slot)) ? Status::kSuccess
                                                                 : Status::kMwBind;
  }
  if (service != Service::kRc) return rxe.wording.local_key;
  const auto key = Load<uint32_t>(slot, rxe.layout.invalidate_rkey);
  return fabric::Invalidate(*this, key) ? Status::kSuccess : Status::kLocalQpOperation;
}

// rxe_av.c: rxe_get_av
Status QueuePair::Address(const uint8_t* slot, fabric::SendRequest* request) const {
  request->remote_qpn = Load<uint32_t>(slot, rxe.layout.remote_qpn);
  request->remote_qkey = Load<uint32_t>(slot, rxe.layout.remote_qkey);
  const uint32_t ah_num =
      rxe.layout.ah_num < 0 ? 0 : Load<uint32_t>(slot, static_cast<uint32_t>(rxe.layout.ah_num));
  if (ah_num == 0) {
    request->address = ReadAddress(rxe.layout, slot);
    return Status::kSuccess;
  }
  const auto found = rxe.address_handles.find(ah_num);
  if (found == rxe.address_handles.end() || NumberOf(found->second->pd) != pd)
    return Status::kLocalQpOperation;
  request->address = found->second->address;
  return Status::kSuccess;
}

WorkCompletion QueuePair::MakeCompletion(const uint8_t* slot, const Operation* operation,
                                         Status status) const {
  WorkCompletion completion;
  completion.wr_id = Load<uint64_t>(slot, rxe.layout.wr_id);
  completion.status = static_cast<uint32_t>(status);
  completion.qpn = qpn;
  if (status == Status::kSuccess || rxe.error_filled) {
    completion.opcode = operation != nullptr ? operation->wc_opcode : kWcUnknown;
    completion.flags = operation != nullptr && operation->has_immediate ? kWcWithImm : 0;
    completion.byte_length = Load<uint32_t>(slot, rxe.layout.send_length);
  }
  return completion;
}

// rxe_comp.c: do_complete
void QueuePair::Complete(uint8_t* slot, const Operation* operation, Status status,
                         uint32_t slot_state) {
  Store<uint32_t>(slot, rxe.layout.status, static_cast<uint32_t>(status));
  Store<uint32_t>(slot, rxe.layout.state, slot_state);
  const bool asked = (Load<uint32_t>(slot, rxe.layout.send_flags) & kSignaled) != 0;
  const WorkCompletion completion = MakeCompletion(slot, operation, status);
  send.AdvanceConsumer();
  if (!asked && !qp.signal_all && status == Status::kSuccess) return;
  CompletionQueue::Of(*qp.send_cq).Post(rxe.layout, rxe.entry_size, completion, false);
}

void QueuePair::FailLocally(uint8_t* slot, const Operation* operation, Status status) {
  if (!rxe.local_flushed) return FailHead(slot, operation, status);
  Store<uint32_t>(slot, rxe.layout.status, static_cast<uint32_t>(status));
  Store<uint32_t>(slot, rxe.layout.state, kError);
  FlushSend();
  EnterError();
}

void QueuePair::FailHead(uint8_t* slot, const Operation* operation, Status status) {
  StopWaiting();
  Complete(slot, operation, status, kError);
  EnterError();
}

}  // namespace vabi::rxe
