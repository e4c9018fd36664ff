// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/queue_pair.h"

#include <map>
#include <utility>

#include "shims/fabric/address.h"
#include "shims/fabric/memory.h"
#include "shims/fabric/spans.h"
#include "shims/fabric/window.h"
#include "shims/providers/mlx5/clock.h"
#include "shims/providers/mlx5/window_keys.h"
#include "shims/trace/trace.h"
#include "shims/uverbs/events.h"

namespace vabi::mlx5 {
namespace {

using fabric::Completion;
using fabric::EndpointState;
using fabric::Opcode;
using fabric::Status;

constexpr int kBudget = 64;  // elements a turn, so that no queue starves the others

struct XrcQueue {
  SharedQueue* queue;
  CompletionQueue* cq;
  uint32_t pd;
};
std::map<std::pair<uint32_t, uint32_t>, XrcQueue>& XrcQueues() {
  static auto* const queues = new std::map<std::pair<uint32_t, uint32_t>, XrcQueue>();
  return *queues;
}
// The shared queue that the message on the wire names (Aim): all null if there is none. Guarded by
// the fabric's lock, which is held while a message is delivered.
XrcQueue wire_queue = {nullptr, nullptr, 0};

// Requests are large: one is used again and again.
fabric::SendRequest& Scratch() {
  static auto* const request = new fabric::SendRequest();
  return *request;
}

uint8_t CqeOpcodeOf(const Completion& completion) {
  switch (completion.opcode) {
    case Opcode::kWriteImm:
      return kCqeReceiveWriteImm;
    case Opcode::kSendImm:
      return kCqeReceiveSendImm;
    case Opcode::kSendInvalidate:
      return kCqeReceiveSendInvalidate;
    default:
      return kCqeReceiveSend;
  }
}

uint16_t LoadCounter(uint64_t at, uint16_t otherwise) {
  uint32_t value;
  if (!fabric::LoadMemory32(at, &value)) return otherwise;
  return static_cast<uint16_t>(__builtin_bswap32(value));
}

}  // namespace

uint8_t Syndrome(Status status) {
  switch (status) {
    case Status::kLocalLength:
      return 0x01;
    case Status::kLocalQpOperation:
      return 0x02;
    case Status::kLocalProtection:
      return 0x04;
    case Status::kFlushed:
      return 0x05;
    case Status::kMwBind:
      return 0x06;
    case Status::kBadResponse:
      return 0x10;
    case Status::kLocalAccess:
      return 0x11;
    case Status::kRemoteInvalidRequest:
      return 0x12;
    case Status::kRemoteAccess:
      return 0x13;
    case Status::kRemoteOperation:
      return 0x14;
    case Status::kRetryExceeded:
      return 0x15;
    case Status::kRnrRetryExceeded:
      return 0x16;
    default:
      return 0;  // libraries take an unknown one for a general error
  }
}

// Public reports of ConnectX-4 to 6 show these; 0 where none was seen.
uint8_t VendorSyndrome(Status status, bool is_receive) {
  switch (status) {
    case Status::kLocalProtection:
      return is_receive ? 0x52 : 0x51;
    case Status::kFlushed:
      return 0xf9;
    case Status::kRemoteInvalidRequest:
      return 0x8a;
    case Status::kRemoteAccess:
      return 0x88;
    case Status::kRemoteOperation:
      return 0x89;
    case Status::kRetryExceeded:
      return 0x81;
    case Status::kRnrRetryExceeded:
      return 0x87;
    default:
      return 0;
  }
}

void AddXrcQueue(uint32_t device, SharedQueue* queue, CompletionQueue* cq, uint32_t pd) {
  XrcQueues()[{device, queue->number()}] = {queue, cq, pd};
}

void RemoveXrcQueue(uint32_t device, SharedQueue* queue) {
  XrcQueues().erase({device, queue->number()});
}

bool QueuePair::PopReceive(fabric::RecvRequest* out) {
  if (service == fabric::Service::kXrcTarget) {
    return wire_queue.queue != nullptr && wire_queue.queue->Pop(out);
  }
  return parts_.srq != nullptr ? parts_.srq->Pop(out) : receives_.Pop(out);
}

void QueuePair::Emit(CompletionQueue* queue, const CqeText& text) {
  if (queue == nullptr || queue->Write(text)) return;
  // The queue overran: nobody may rely on what follows.
  state = EndpointState::kErr;
  if (!fatal_reported_) ReportEvent(kEventQpFatal);
  fatal_reported_ = true;
}

void QueuePair::CompleteReceive(const fabric::RecvRequest& request, const Completion& completion) {
  const bool xrc = service == fabric::Service::kXrcTarget;
  const SharedQueue* srq = xrc ? wire_queue.queue : parts_.srq;
  CompletionQueue* queue = xrc ? wire_queue.cq : parts_.recv_cq;
  const bool tags = srq != nullptr && srq->tags() != nullptr;
  if (tags) queue = srq->tag_queue();
  CqeText text;
  uint8_t* cqe = text.bytes;
  // User indices: the queue pair's, or with XRC the shared queue's; before them the shared queue's
  // number.
  if (xrc || tags) {
    Store32(cqe + kCqeSrqnUidx, srq->tag());
  } else if (parts_.user_indices) {
    Store32(cqe + kCqeSrqnUidx, parts_.user_index);
  } else if (srq != nullptr) {
    Store32(cqe + kCqeSrqnUidx, srq->number());
  }
  // Frames carry the tag of their flow rule there.
  const bool frame = service == fabric::Service::kRaw && completion.status == Status::kSuccess;
  Store32(cqe + kCqeOpcodeQpn, frame ? completion.source_qpn : qpn);
  Store16(cqe + kCqeWqeCounter, request.index);
  if (completion.status != Status::kSuccess) {
    text.opcode = kCqeResponderError;
    text.solicited = true;
    cqe[kCqeSyndrome] = Syndrome(completion.status);
    cqe[kCqeVendor] = VendorSyndrome(completion.status, true);
    return Emit(queue, text);
  }
  text.opcode = CqeOpcodeOf(completion);
  text.solicited = completion.solicited;
  Store32(cqe + kCqeByteCount, completion.byte_length);
  Store64(cqe + kCqeTimestamp, Clock::Cycles());
  if (completion.has_immediate) {
    std::memcpy(cqe + kCqeImmediate, &completion.immediate, sizeof(completion.immediate));
  } else if (completion.has_invalidate) {
    Store32(cqe + kCqeImmediate, completion.immediate);
  } else {
    Store32(cqe + kCqeImmediate, completion.pkey_index);
  }
  cqe[kCqePathBits] = completion.dlid_path_bits & 0x7f;
  Store16(cqe + kCqeSlid, completion.source_lid);
  // On Ethernet the place of the service level tells the datagram's header (cq.c:handle_responder).
  const bool ethernet = !fabric::IsInfiniband(device, port);
  const uint32_t sl = ethernet ? kCqeRoceHeader[static_cast<int>(completion.network_header)]
                               : uint32_t{completion.sl};
  Store32(cqe + kCqeFlagsRqpn, (completion.has_grh ? 1u << kCqeGrhShift : 0) | sl << kCqeSlShift |
                                   (frame ? 0 : completion.source_qpn & 0xffffff));
  if (tags) TellTag(&text);
  Emit(queue, text);
}

void QueuePair::CompleteSend(const Wqe& wqe, const Completion& completion) {
  const bool failed = completion.status != Status::kSuccess;
  if (!failed && !wqe.signaled()) return;
  CqeText text;
  uint8_t* cqe = text.bytes;
  if (parts_.user_indices) Store32(cqe + kCqeSrqnUidx, parts_.user_index);
  Store32(cqe + kCqeOpcodeQpn, uint32_t{wqe.opcode()} << 24 | qpn);
  Store16(cqe + kCqeWqeCounter, wqe.index);
  if (failed) {
    text.opcode = kCqeRequesterError;
    text.solicited = true;
    cqe[kCqeSyndrome] = Syndrome(completion.status);
    cqe[kCqeVendor] = VendorSyndrome(completion.status, false);
  } else {
    text.opcode = kCqeRequester;
    Store32(cqe + kCqeByteCount, completion.byte_length);
    Store64(cqe + kCqeTimestamp, Clock::Cycles());
  }
  Emit(parts_.send_cq, text);
}

void QueuePair::ReportEvent(uint32_t event) {
  // qpc.c:dct_allowed_event_types: mlx5_ib hears of a DCT only that it is drained.
  if (service == fabric::Service::kDcTarget) return;
  Qp* qp = parts_.qp;
  if (qp != nullptr && qp->events)
    qp->events->Report(qp->user_handle, event, &qp->events_reported, qp);
}

void QueuePair::Report(fabric::Event event) {
  switch (event) {
    case fabric::Event::kAccessError:
      return ReportEvent(kEventQpAccessError);
    case fabric::Event::kRequestError:
      return ReportEvent(kEventQpRequestError);
    case fabric::Event::kCommunicationEstablished:
      return ReportEvent(kEventCommunicationEstablished);
    case fabric::Event::kDcKeyViolation:
      // That the message is not taken is sure; not so what its sender is told.
      return trace::Event("unmodelled", "mlx5: what a DCI learns of a wrong DC access key");
  }
}

// The flush itself comes with the next turn of Progress.
void QueuePair::EnterError() {
  if (parts_.srq != nullptr) ReportEvent(kEventLastWqeReached);
}

void QueuePair::ToError() {
  if (state == EndpointState::kErr) return;
  state = EndpointState::kErr;
  EnterError();
}

void QueuePair::Reset() {
  DropSent();
  receives_.Reset();
  errored_.clear();
  own_.clear();
  own_sent_ = false;
  own_attempt_ = 0;
  send_head_ = send_producer_ = 0;
  attempt_ = 0;
  fatal_reported_ = false;
}

void QueuePair::DropSent() {
  fabric::DropSent(*this);
  sent_ = 0;
}

bool QueuePair::SendEmpty() {
  const auto next = static_cast<uint16_t>(send_head_ + sent_);
  if (next != send_producer_) return false;
  send_producer_ = LoadCounter(parts_.send.doorbell + kSendRecord, send_producer_);
  return next == send_producer_;
}

void QueuePair::FailSend(Status status, Completion* completion) {
  *completion = Completion();
  completion->status = status;
  const bool unreliable = service == fabric::Service::kUc || service == fabric::Service::kUd;
  if (state != EndpointState::kErr) state = unreliable ? EndpointState::kSqe : EndpointState::kErr;
}

void QueuePair::Bind(const Wqe&, fabric::Bind bind, bool invalidate, Completion* completion) {
  bool done = false;
  if (uint32_t* key = WindowKey(device, bind.window); key != nullptr) {
    bind.window = *key;
    const fabric::MemoryKey* window = fabric::FindKey(device, *key);
    const bool type1 = window != nullptr && window->kind == fabric::MemoryKey::Kind::kWindow1;
    if (invalidate && !type1) {
      done = fabric::Invalidate(*this, bind.window);
    } else if (fabric::BindWindow(*this, bind)) {
      *key = (*key & ~0xffu) | bind.key;
      done = true;
    }
  }
  if (!done) return FailSend(Status::kMwBind, completion);
  *completion = Completion();
}

// A key that stands for pieces of other regions gets others, or is given up. kRequest: done.
Translation QueuePair::UpdateKey(const Wqe& wqe, Completion* completion) {
  const uint32_t name = Load32(wqe.bytes + kCtrlImmediate);
  fabric::MemoryKey* key = fabric::FindKey(device, name);
  *completion = Completion();
  if (key == nullptr || key->pd != pd) {
    FailSend(Status::kMwBind, completion);
    return Translation::kRequest;
  }
  fabric::MemoryKey updated = *key;
  const Translation kind = ReadKeyUpdate(wqe, *IndirectRoom(device, name), &updated);
  if (kind == Translation::kMalformed) {
    FailSend(Status::kMwBind, completion);
    return Translation::kRequest;
  }
  if (kind == Translation::kRequest) *key = std::move(updated);
  return kind;
}

// An XRC request names the shared queue that it means here; that queue's protection domain is the
// one whose keys may be used.
void QueuePair::Aim(uint32_t xrc_srq) {
  wire_queue = {nullptr, nullptr, 0};
  if (const auto found = XrcQueues().find({device, xrc_srq}); found != XrcQueues().end()) {
    wire_queue = found->second;
    pd = wire_queue.pd;
  }
}

fabric::Outcome QueuePair::CarryOut(const Wqe& wqe, Completion* completion) {
  fabric::SendRequest& request = Scratch();
  fabric::Bind bind;
  uint32_t srqn = 0;
  const bool updates =
      wqe.opcode() == kOpUmr && IndirectRoom(device, Load32(wqe.bytes + kCtrlImmediate)) != nullptr;
  if (updates && sent_ != 0) return fabric::Outcome::kRetry;
  const Translation kind =
      updates ? UpdateKey(wqe, completion) : Translate(wqe, service, qkey, &request, &bind, &srqn);
  if (updates && kind == Translation::kRequest) return fabric::Outcome::kDone;
  if (wqe.opcode() == kOpTagMatching && sent_ == 0) {
    *completion = Completion();
    if (!ChangeTags(wqe)) FailSend(Status::kLocalQpOperation, completion);
    return fabric::Outcome::kDone;
  }
  if (wqe.opcode() == kOpMmo && sent_ == 0) {
    CopyMemory(wqe, completion);
    return fabric::Outcome::kDone;
  }
  // What needs no peer waits until all before it is over.
  if (kind != Translation::kRequest && sent_ != 0) return fabric::Outcome::kRetry;
  switch (kind) {
    case Translation::kRequest: {
      if (service == fabric::Service::kRaw) {
        Transmit(wqe, request, completion);
        break;
      }
      request.xrc_srq = srqn;
      const fabric::Outcome outcome = fabric::Execute(*this, request, attempt_, completion);
      if (outcome == fabric::Outcome::kRetry) ++attempt_;
      return outcome;
    }
    case Translation::kBind:
      Bind(wqe, bind, false, completion);
      break;
    case Translation::kInvalidate:
      Bind(wqe, bind, true, completion);
      break;
    case Translation::kUnmodelled:
      trace::Event("unmodelled", "mlx5: this kind of work queue element");
      FailSend(Status::kLocalQpOperation, completion);
      break;
    case Translation::kMalformed:
      FailSend(Status::kLocalQpOperation, completion);
      break;
  }
  return fabric::Outcome::kDone;
}

bool QueuePair::ProgressSend() {
  bool worked = false;
  static Wqe wqe;  // guarded by the fabric's lock
  for (int i = 0; i < kBudget && state == EndpointState::kRts && !SendEmpty(); ++i) {
    Completion completion;
    fabric::Outcome outcome = fabric::Outcome::kDone;
    if (ReadWqe(parts_.send, static_cast<uint16_t>(send_head_ + sent_), &wqe)) {
      if (InErroredStream(wqe)) {
        // In order: behind what another process has not answered yet.
        if (sent_ != 0) return worked;
        completion.status = Status::kFlushed;
      } else {
        outcome = CarryOut(wqe, &completion);
      }
    } else if (sent_ != 0) {
      outcome = fabric::Outcome::kRetry;
    } else {
      wqe.segments = 1;
      FailSend(Status::kLocalQpOperation, &completion);
    }
    if (outcome == fabric::Outcome::kRetry) return worked;
    worked = true;
    attempt_ = 0;
    if (outcome == fabric::Outcome::kSent) {
      sent_ = static_cast<uint16_t>(sent_ + wqe.blocks());
      continue;
    }
    send_head_ = static_cast<uint16_t>(send_head_ + wqe.blocks());
    CompleteSend(wqe, completion);
    if (state == EndpointState::kErr) Failed(wqe);
  }
  return worked;
}

// The element still stands in the queue: the program may not use its place before it is over.
void QueuePair::Answered(const Completion& completion) {
  static Wqe wqe;  // guarded by the fabric's lock
  if (own_sent_) {
    own_sent_ = false;
    return FinishOwn(completion);
  }
  if (sent_ == 0) return;
  if (!ReadWqe(parts_.send, send_head_, &wqe)) wqe.segments = 1;
  const auto blocks = static_cast<uint16_t>(wqe.blocks());
  send_head_ = static_cast<uint16_t>(send_head_ + blocks);
  sent_ = static_cast<uint16_t>(sent_ > blocks ? sent_ - blocks : 0);
  CompleteSend(wqe, completion);
  if (state == EndpointState::kErr) Failed(wqe);
}

bool QueuePair::InErroredStream(const Wqe& wqe) const {
  return !errored_.empty() && errored_.contains(wqe.stream());
}

// mlx5dv_dci_stream_id_reset(3): an error is its stream's alone, until so many are in error.
void QueuePair::Failed(const Wqe& wqe) {
  if (parts_.errored_streams != 0 && !fatal_reported_) {
    errored_.insert(wqe.stream());
    if (errored_.size() < parts_.errored_streams) {
      state = EndpointState::kRts;
      return;
    }
  }
  EnterError();
}

bool QueuePair::FlushSend() {
  bool worked = false;
  static Wqe wqe;
  Completion flushed;
  flushed.status = Status::kFlushed;
  if (sent_ != 0) DropSent();
  for (int i = 0; i < kBudget && !SendEmpty(); ++i) {
    if (!ReadWqe(parts_.send, send_head_, &wqe)) wqe.segments = 1;
    send_head_ = static_cast<uint16_t>(send_head_ + wqe.blocks());
    CompleteSend(wqe, flushed);
    worked = true;
  }
  return worked;
}

bool QueuePair::FlushReceives() {
  if (parts_.srq != nullptr) return false;
  bool worked = false;
  fabric::RecvRequest request;
  Completion flushed;
  flushed.status = Status::kFlushed;
  for (int i = 0; i < kBudget && receives_.Skip(&request.index); ++i) {
    CompleteReceive(request, flushed);
    worked = true;
  }
  return worked;
}

bool QueuePair::Progress() {
  switch (state) {
    case EndpointState::kRts: {
      const bool own = ProgressOwn();
      if (!own_.empty()) return own;
      return (parts_.send.blocks != 0 && ProgressSend()) || own;
    }
    case EndpointState::kSqe:
      return parts_.send.blocks != 0 && FlushSend();
    case EndpointState::kErr: {
      const bool sends = parts_.send.blocks != 0 && FlushSend();
      return FlushReceives() || sends;
    }
    default:
      return false;
  }
}

}  // namespace vabi::mlx5
