// SPDX-License-Identifier: BSD-2-Clause
#include "shims/fabric/requester.h"

#include <string.h>

#include <algorithm>

#include "shims/fabric/address.h"
#include "shims/fabric/remote.h"
#include "shims/sys/sys.h"

namespace vabi::fabric {
namespace {

constexpr uint32_t kPsnMask = 0xffffff;
uint64_t (*clock_ns)() = nullptr;

// IBTA table 45, in units of 10 us.
constexpr uint32_t kRnrTimer[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                    16,    24,   32,   48,    64,    96,    128,   192,
                                    256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                    4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
constexpr uint64_t kRnrUnitNs = 10000;
constexpr uint64_t kAckUnitNs = 4096;

bool ServiceOffers(Service service, Opcode opcode) {
  switch (opcode) {
    case Opcode::kSend:
    case Opcode::kSendImm:
      return true;
    case Opcode::kWrite:
    case Opcode::kWriteImm:
      return service != Service::kUd;
    case Opcode::kSendInvalidate:
    case Opcode::kAtomicWrite:
    case Opcode::kFlush:
    case Opcode::kRead:
    case Opcode::kCompareSwap:
    case Opcode::kFetchAdd:
    case Opcode::kMaskedCompareSwap:
    case Opcode::kMaskedFetchAdd:
      return service == Service::kRc || service == Service::kXrcInitiator ||
             service == Service::kDcInitiator;
    default:
      return false;
  }
}

}  // namespace

Requester::Requester(Endpoint& endpoint, const SendRequest& request, Completion* completion)
    : endpoint_(endpoint), wording_(*endpoint.wording), request_(request), completion_(completion) {
  *completion_ = Completion();
  completion_->opcode = request.opcode;
}

Outcome Requester::Run() {
  const Opcode opcode = request_.opcode;
  if (opcode == Opcode::kNop) return Done();
  if (!ServiceOffers(endpoint_.service, opcode)) return Fail(Status::kLocalQpOperation);
  if ((ReadsBack() || opcode == Opcode::kAtomicWrite) && endpoint_.max_rd_atomic == 0) {
    if (wording_.no_read_depth == Status::kSuccess) return WaitForEver(OwnTries());
    return Fail(wording_.no_read_depth);
  }
  if (endpoint_.service == Service::kUd) {
    Measure();
    return SendDatagram();
  }
  const SgeFault fault = Prepare();
  if (fault != SgeFault::kNone) return Fail(LocalStatus(fault));
  return SendConnected();
}

void Requester::Measure() {
  length_ = Length();
  completion_->byte_length = static_cast<uint32_t>(length_);
}

SgeFault Requester::Prepare() {
  Measure();
  if (ReadsBack() || request_.opcode == Opcode::kFlush) return SgeFault::kNone;
  return Gather();
}

bool Requester::ReadsBack() const {
  return request_.opcode == Opcode::kRead || IsAtomic(request_.opcode);
}

uint64_t Requester::Length() const {
  if (IsAtomic(request_.opcode)) return 8;
  if (request_.opcode == Opcode::kFlush) return request_.flush_length;
  uint64_t length = request_.inline_data != nullptr ? request_.inline_length : 0;
  for (uint32_t i = 0; i < request_.sge_count; ++i) length += request_.sges[i].length;
  return length;
}

SgeFault Requester::Gather() {
  uint64_t rest = length_;
  if (request_.inline_data != nullptr) {
    payload_.Add(reinterpret_cast<uintptr_t>(request_.inline_data), request_.inline_length);
    rest -= request_.inline_length;
  }
  return MapSges(endpoint_, request_.sges, request_.sge_count, 0, rest, 0, &payload_);
}

void Requester::Fill(Message* message) const {
  message->opcode = request_.opcode;
  message->service = endpoint_.service;
  message->solicited = request_.solicited;
  message->length = length_;
  message->payload = &payload_;
  message->remote_address = request_.remote_address;
  message->rkey = request_.rkey;
  message->immediate =
      request_.opcode == Opcode::kSendInvalidate ? request_.invalidate_rkey : request_.immediate;
  message->compare_add = request_.compare_add;
  message->swap = request_.swap;
  message->compare_mask = request_.compare_mask;
  message->swap_mask = request_.swap_mask;
  message->flush_access = request_.flush_access;
  message->flush_region = request_.flush_region;
  message->xrc_srq = request_.xrc_srq;
  message->dc_key = request_.dc_key;
  message->psn = endpoint_.sq_psn;
  message->mtu = std::max(endpoint_.mtu, 1u);
  const uint64_t carried = request_.opcode == Opcode::kFlush ? 0 : length_;
  message->packets =
      static_cast<uint32_t>(std::max<uint64_t>(1, (carried + message->mtu - 1) / message->mtu));
  message->sender = &endpoint_;
  message->source_qpn = endpoint_.qpn;
  message->has_grh = false;
}

Outcome Requester::SendDatagram() {
  if (length_ > endpoint_.mtu) {
    if (wording_.datagram_length != Status::kSuccess) return Fail(wording_.datagram_length);
    return Done();
  }
  const SgeFault fault = Gather();
  if (fault != SgeFault::kNone) return Fail(LocalStatus(fault));
  const AddressVector& address = request_.address;
  Message message;
  Fill(&message);
  message.qkey = request_.remote_qkey;
  message.source_lid = endpoint_.lid;
  message.sl = address.sl;
  message.path_bits = address.src_path_bits;
  message.has_grh = address.is_global || !IsInfiniband(endpoint_.device, endpoint_.port);
  if (message.has_grh) MakeGrh(endpoint_, address, length_, message.grh);
  if (IsMulticast(address) && request_.remote_qpn == 0xffffff) {
    VisitGroup(
        address.dgid,
        [](Endpoint* member, void* argument) {
          Reply ignored;
          Deliver(*member, *static_cast<const Message*>(argument), &ignored);
        },
        &message);
    MulticastFar(endpoint_, message, address.dgid);
  } else if (Endpoint* peer = Resolve(endpoint_, address, request_.remote_qpn); peer != nullptr) {
    Reply ignored;
    Deliver(*peer, message, &ignored);
  } else if (FarPlace place; FindFar(endpoint_, address, request_.remote_qpn, &place)) {
    if (!DatagramFar(endpoint_, message, place)) {
      // Its ring is full. A port holds packets back for a while, then drops them.
      constexpr uint32_t kMostTries = 200;
      constexpr uint64_t kPauseNs = 100000;
      if (endpoint_.silent_tries++ < kMostTries) {
        endpoint_.retry_at_ns = Now() + kPauseNs;
        return Outcome::kRetry;
      }
    }
  }
  Sent(1);
  endpoint_.sq_psn = endpoint_.sent_psn;
  return Done();
}

Outcome Requester::SendConnected() {
  const bool dynamic = endpoint_.service == Service::kDcInitiator;
  if (dynamic) {
    // One connection at a time: the next begins when what went over the last one is answered.
    if (IsUnderWay(endpoint_)) return Wait();
    endpoint_.address = request_.address;
    endpoint_.dest_qpn = request_.remote_qpn;
  }
  Endpoint* peer = Resolve(endpoint_, endpoint_.address, endpoint_.dest_qpn);
  if (FarPlace place;
      peer == nullptr && FindFar(endpoint_, endpoint_.address, endpoint_.dest_qpn, &place)) {
    return SendFar(*this, place);
  }
  if (IsUnderWay(endpoint_)) return Wait();
  Message message;
  Fill(&message);
  const bool connected = peer != nullptr && (dynamic ? peer->service == Service::kDcTarget
                                                     : peer->dest_qpn == endpoint_.qpn);
  Reply reply;
  if (connected) {
    // Numbers are compared only where both sides keep them.
    if (!endpoint_.checks_psn) message.psn = peer->rq_psn;
    Deliver(*peer, message, &reply);
  }
  Sent(message.packets);
  const Outcome outcome = endpoint_.service == Service::kUc ? Done() : Conclude(reply, OwnTries());
  // What failed was sent all the same.
  if (outcome == Outcome::kDone) endpoint_.sq_psn = endpoint_.sent_psn;
  return outcome;
}

void Requester::Sent(uint32_t packets) {
  endpoint_.sent_psn = (endpoint_.sq_psn + packets) & kPsnMask;
}

Outcome Requester::Conclude(const Reply& reply, const Tries& tries) {
  switch (reply.kind) {
    case Reply::Kind::kSilence:
      return NoAnswer(tries);
    case Reply::Kind::kRnr:
      return NotReady(reply.rnr_timer, tries);
    case Reply::Kind::kNak:
      return FailNow(reply.nak);
    default:
      return PutAway(reply, tries);
  }
}

// READ and atomics: the answer's place is looked at when the answer is there (rxe_comp.c: do_read).
Outcome Requester::PutAway(const Reply& reply, const Tries& tries) {
  if (!ReadsBack()) return Outcome::kDone;
  Spans into;
  const SgeFault fault =
      MapSges(endpoint_, request_.sges, request_.sge_count, kAccessLocalWrite, length_, 0, &into);
  if (fault != SgeFault::kNone) return FailNow(wording_.local_target);
  const bool reached = IsAtomic(request_.opcode) ? FillSpans(into, &reply.original, length_)
                                                 : CopySpans(into, reply.data, length_);
  if (reply.data.lost) return NoAnswer(tries);
  return reached ? Outcome::kDone : FailNow(wording_.local_target);
}

Outcome Requester::NoAnswer(const Tries& tries) {
  if (endpoint_.timeout == 0) return WaitForEver(tries);
  // `silent` tries were made before this one, and each was given its time to be answered.
  if (endpoint_.retry_count != Endpoint::kForever && *tries.silent > endpoint_.retry_count) {
    return FailNow(Status::kRetryExceeded);
  }
  ++*tries.silent;
  *tries.retry_at_ns = Now() + (kAckUnitNs << std::min<uint32_t>(endpoint_.timeout, 31));
  return Outcome::kRetry;
}

Outcome Requester::NotReady(uint8_t timer, const Tries& tries) {
  if (endpoint_.rnr_retry != 7 && *tries.rnr >= endpoint_.rnr_retry) {
    return FailNow(Status::kRnrRetryExceeded);
  }
  ++*tries.rnr;
  *tries.retry_at_ns = Now() + kRnrTimer[timer & 31] * kRnrUnitNs;
  return Outcome::kRetry;
}

Outcome Requester::WaitForEver(const Tries& tries) {
  *tries.retry_at_ns = 0;
  return Outcome::kRetry;
}

Outcome Requester::Wait() { return WaitForEver(OwnTries()); }

Outcome Requester::Done() { return IsUnderWay(endpoint_) ? Wait() : Outcome::kDone; }

Outcome Requester::Fail(Status status) { return IsUnderWay(endpoint_) ? Wait() : FailNow(status); }

Outcome Requester::FailNow(Status status) {
  completion_->status = status;
  const bool unreliable = endpoint_.service == Service::kUc || endpoint_.service == Service::kUd;
  if (endpoint_.state != EndpointState::kErr) {
    endpoint_.state = unreliable && wording_.unreliable_local_error_is_sqe ? EndpointState::kSqe
                                                                           : EndpointState::kErr;
  }
  return Outcome::kDone;
}

Outcome Execute(Endpoint& requester, const SendRequest& request, uint32_t attempt,
                Completion* completion) {
  if (attempt == 0) {
    requester.rnr_tries = requester.silent_tries = 0;
    requester.retry_at_ns = 0;
  } else if (requester.retry_at_ns != 0 && Now() < requester.retry_at_ns) {
    return Outcome::kRetry;
  }
  return Requester(requester, request, completion).Run();
}

void SetClock(uint64_t (*now_ns)()) { clock_ns = now_ns; }
uint64_t Now() { return clock_ns != nullptr ? clock_ns() : sys::MonotonicNs(); }

}  // namespace vabi::fabric
