// SPDX-License-Identifier: BSD-2-Clause
// The responder. The order of its checks is that of IBTA 9.7.4.1 as rxe_resp.c walks it (check_psn,
// check_op_valid, check_resource, rxe_resp_check_length, check_rkey, execute); statuses that differ
// between NICs come from the endpoint's Wording.
#include <string.h>

#include <algorithm>

#include "shims/fabric/memory.h"
#include "shims/fabric/message.h"
#include "shims/fabric/requester.h"
#include "shims/fabric/window.h"

namespace vabi::fabric {
namespace {

constexpr uint32_t kPsnMask = 0xffffff;

// a - b in 24 bits, as a signed number.
int PsnDistance(uint32_t a, uint32_t b) { return static_cast<int>((a - b) << 8) >> 8; }

bool IsWrite(Opcode opcode) { return opcode == Opcode::kWrite || opcode == Opcode::kWriteImm; }
bool IsSend(Opcode opcode) {
  return opcode == Opcode::kSend || opcode == Opcode::kSendImm || opcode == Opcode::kSendInvalidate;
}
bool TakesReceive(Opcode opcode) { return IsSend(opcode) || opcode == Opcode::kWriteImm; }

uint32_t NeededAccess(Opcode opcode) {
  if (IsWrite(opcode) || opcode == Opcode::kAtomicWrite) return kAccessRemoteWrite;
  if (opcode == Opcode::kRead) return kAccessRemoteRead;
  return IsAtomic(opcode) ? kAccessRemoteAtomic : 0;
}

// Additions in the fields that the mask's set bits end (IBTA's masked fetch and add: a set bit
// stops carry).
uint64_t MaskedAdd(uint64_t a, uint64_t b, uint64_t boundary) {
  uint64_t sum = 0;
  bool carry = false;
  for (int bit = 0; bit < 64; ++bit) {
    const int total =
        static_cast<int>(a >> bit & 1) + static_cast<int>(b >> bit & 1) + (carry ? 1 : 0);
    sum |= static_cast<uint64_t>(total & 1) << bit;
    carry = total > 1 && (boundary >> bit & 1) == 0;
  }
  return sum;
}

class Responder {
 public:
  Responder(Endpoint& endpoint, const Message& message, Reply* reply)
      : endpoint_(endpoint), wording_(*endpoint.wording), message_(message), reply_(reply) {}

  void Serve() {
    if (!Receives(endpoint_.state)) return;
    switch (endpoint_.service) {
      case Service::kRc:
      case Service::kXrcTarget:
        if (message_.service != Service::kRc && message_.service != Service::kXrcInitiator) return;
        return Connected();
      case Service::kDcTarget:
        return Dynamic();
      case Service::kUc:
        return Unreliable();
      case Service::kUd:
        return Datagram();
      default:
        return;
    }
  }

 private:
  static bool Receives(EndpointState state) {
    return state != EndpointState::kReset && state != EndpointState::kInit &&
           state != EndpointState::kErr;
  }

  void Connected() {
    if (endpoint_.service == Service::kXrcTarget) endpoint_.Aim(message_.xrc_srq);
    const Opcode opcode = message_.opcode;
    if (endpoint_.checks_psn) {
      const int distance = PsnDistance(message_.psn, endpoint_.rq_psn);
      if (distance > 0) return;  // a gap: NAK, the requester tries again, in vain
      if (distance < 0) {
        // Taken for a repetition: acknowledged, not carried out (C9-105). What would be needed to
        // answer a READ or an atomic again is not there.
        if (IsSend(opcode) || IsWrite(opcode)) reply_->kind = Reply::Kind::kAck;
        return;
      }
    }
    const uint32_t access = opcode == Opcode::kFlush ? message_.flush_access : NeededAccess(opcode);
    if ((endpoint_.access & access) != access)
      return FailRequest(Status::kRemoteInvalidRequest, Event::kRequestError);
    const bool reads =
        opcode == Opcode::kRead || IsAtomic(opcode) || opcode == Opcode::kAtomicWrite;
    if (reads && endpoint_.max_dest_rd_atomic == 0) {
      return FailRequest(Status::kRemoteInvalidRequest, Event::kRequestError);
    }
    const bool late_receive = ReceiveComesLate();
    if (TakesReceive(opcode) && !late_receive && !TakeReceive()) return;
    if (!MtuFits()) {
      return FailReceive(wording_.receive_packet, Status::kRemoteInvalidRequest,
                         Event::kRequestError);
    }
    if ((access != 0 || opcode == Opcode::kFlush) && !FindTarget(access)) {
      // C9-222.1: an event, unless the error can be pinned on a receive.
      if (!has_receive_) return FailRequest(Status::kRemoteAccess, Event::kAccessError);
      return FailReceive(wording_.receive_access, Status::kRemoteAccess);
    }
    if (late_receive && !TakeReceive()) return;
    if (IsAtomic(opcode)) {
      if (!Atomic()) return;
    } else if (opcode == Opcode::kAtomicWrite) {
      if (!AtomicWrite()) return;
    } else if (opcode == Opcode::kFlush) {
      // What was written is where everybody sees it.
    } else if (IsWrite(opcode)) {
      if (const bool reached = CopySpans(target_, *message_.payload, message_.length); Lost()) {
        return;
      } else if (!reached) {
        if (!has_receive_) return FailRequest(Status::kRemoteAccess, Event::kAccessError);
        return FailReceive(wording_.receive_access, Status::kRemoteAccess);
      }
    } else if (opcode == Opcode::kRead) {
      reply_->data = target_;
    } else if (!FillReceive(0)) {
      return;
    }
    if (opcode == Opcode::kSendInvalidate &&
        wording_.regions_invalidate != Wording::Regions::kLocal &&
        !Invalidate(endpoint_, message_.immediate)) {
      // Class J: the requester is acknowledged.
      CompleteFailed(wording_.receive_invalidate);
      reply_->kind = Reply::Kind::kAck;
      return ToError();
    }
    if (endpoint_.checks_psn) endpoint_.rq_psn = (endpoint_.rq_psn + message_.packets) & kPsnMask;
    if (has_receive_) CompleteGood(0);
    // The completion did not fit (CQ overrun): no acknowledgement then.
    if (endpoint_.state != EndpointState::kErr) reply_->kind = Reply::Kind::kAck;
  }

  void Dynamic() {
    if (message_.service != Service::kDcInitiator) return;
    if (message_.dc_key != endpoint_.dc_key) return endpoint_.Report(Event::kDcKeyViolation);
    Connected();
  }

  void Unreliable() {
    if (message_.service != Service::kUc) return;
    const Opcode opcode = message_.opcode;
    const uint32_t access = NeededAccess(opcode);
    if ((endpoint_.access & access) != access) return;
    const bool late_receive = ReceiveComesLate();
    if (TakesReceive(opcode) && !late_receive && !TakeReceive()) return;
    if (!MtuFits()) return ShortReceive(wording_.unreliable_packet);
    if (access != 0 && !FindTarget(access)) {
      if (!has_receive_) return;
      if (endpoint_.has_srq) return CompleteFailed(wording_.receive_access);
      return endpoint_.ReturnReceive(receive_);
    }
    if (late_receive && !TakeReceive()) return;
    if (IsWrite(opcode)) {
      CopySpans(target_, *message_.payload, message_.length);
      if (Lost()) return;
    } else if (!FillReceive(0)) {
      return;
    }
    endpoint_.rq_psn = (message_.psn + message_.packets) & kPsnMask;
    if (has_receive_) CompleteGood(0);
  }

  void Datagram() {
    if (message_.service != Service::kUd || message_.qkey != endpoint_.qkey) return;
    if (!TakeReceive()) return;
    if (!FillReceive(kGrhBytes)) return;
    CompleteGood(kGrhBytes);
  }

  // Of a WRITE with immediate only the last packet needs a receive.
  bool ReceiveComesLate() const {
    return message_.opcode == Opcode::kWriteImm &&
           !(wording_.access_takes_receive && message_.packets == 1);
  }

  // False: none there (the requester may learn so), or it is malformed (all has been said).
  bool TakeReceive() {
    if (IsSend(message_.opcode) && endpoint_.Match(message_, &receive_, &skip_)) {
      has_receive_ = true;
      return true;
    }
    if (!endpoint_.PopReceive(&receive_)) {
      if (Reliable()) {
        reply_->kind = Reply::Kind::kRnr;
        reply_->rnr_timer = endpoint_.min_rnr_timer;
      }
      return false;
    }
    if (receive_.sge_count == Endpoint::kMalformed) {
      FailRequest(Status::kRemoteOperation);
      return false;
    }
    has_receive_ = true;
    return true;
  }

  // Messages of several packets have full packets but the last: both sides must think of the same
  // size.
  bool MtuFits() const {
    const bool carries = IsSend(message_.opcode) || IsWrite(message_.opcode);
    if (!carries || message_.mtu == endpoint_.mtu) return true;
    return message_.length <= message_.mtu && message_.length <= endpoint_.mtu;
  }

  bool FindTarget(uint32_t access) {
    // Nothing is said about the key of an access to no bytes (C9-88).
    const bool atomic = IsAtomic(message_.opcode);
    const bool flush = message_.opcode == Opcode::kFlush;
    if (message_.length == 0 && !atomic && !flush) return true;
    uint64_t length = atomic ? 8 : message_.length;
    if (flush && message_.flush_region) {
      const MemoryKey* key = FindKey(endpoint_.device, message_.rkey);
      return key != nullptr &&
             MapRemote(endpoint_, message_.rkey, key->iova, 0, access, &target_) == SgeFault::kNone;
    }
    return MapRemote(endpoint_, message_.rkey, message_.remote_address, length, access, &target_) ==
           SgeFault::kNone;
  }

  // Moves the payload into the receive. False: all has been said.
  bool FillReceive(uint32_t grh) {
    const uint64_t room = Room();
    const uint64_t length = message_.length - std::min<uint64_t>(skip_, message_.length);
    if (grh + length > room) {
      if (Reliable()) {
        FillWholePackets(room);
        FailReceive(wording_.receive_length, wording_.length_nak);
      } else {
        ShortReceive(endpoint_.service == Service::kUd ? wording_.ud_short : wording_.uc_short);
      }
      return false;
    }
    SgeFault fault = SgeFault::kNone;
    bool reached = true;
    if (grh != 0 && message_.has_grh) {
      Spans front;
      fault =
          MapSges(endpoint_, receive_.sges, receive_.sge_count, kAccessLocalWrite, grh, 0, &front);
      if (fault == SgeFault::kNone) reached = FillSpans(front, message_.grh, grh);
    }
    if (fault == SgeFault::kNone && length != 0) {
      Spans into;
      fault = MapSges(endpoint_, receive_.sges, receive_.sge_count, kAccessLocalWrite, length, grh,
                      &into);
      if (fault == SgeFault::kNone && skip_ == 0) {
        reached &= CopySpans(into, *message_.payload, length);
      } else if (fault == SgeFault::kNone) {
        const Spans rest = Behind(*message_.payload, skip_);
        reached &= CopySpans(into, rest, length);
        message_.payload->lost |= rest.lost;
      }
      if (Lost()) return false;
    }
    if (fault == SgeFault::kNone && reached) return true;
    FailReceive(wording_.receive_memory, Status::kRemoteOperation);
    return false;
  }

  // The sender died while its bytes were read: the message never ended. Its receive waits for
  // another.
  bool Lost() {
    if (!message_.payload->lost) return false;
    if (has_receive_ && !endpoint_.has_srq) endpoint_.ReturnReceive(receive_);
    return true;
  }

  // A message that is too long is found out by the packet that does not fit; those before it have
  // arrived.
  void FillWholePackets(uint64_t room) {
    const uint32_t packets = static_cast<uint32_t>(room / message_.mtu);
    if (packets == 0 || skip_ != 0) return;
    const uint64_t length = uint64_t{packets} * message_.mtu;
    Spans into;
    if (MapSges(endpoint_, receive_.sges, receive_.sge_count, kAccessLocalWrite, length, 0,
                &into) != SgeFault::kNone) {
      return;
    }
    CopySpans(into, *message_.payload, length);
    if (endpoint_.checks_psn) endpoint_.rq_psn = (endpoint_.rq_psn + packets) & kPsnMask;
  }

  uint64_t Room() const {
    uint64_t room = 0;
    for (uint32_t i = 0; i < receive_.sge_count; ++i) room += receive_.sges[i].length;
    return room;
  }

  // False: all has been said.
  bool Atomic() {
    if ((message_.remote_address & 7) != 0 || (target_.at[0].address & 7) != 0) {
      FailRequest(Status::kRemoteInvalidRequest, Event::kRequestError);
      return false;
    }
    const uint64_t at = target_.at[0].address;
    uint64_t seen = 0, before = 0;
    bool reached = ReadMemory(&before, at, sizeof(before));
    for (int tries = 0; reached && tries < 1000000; ++tries) {
      reached = SwapMemory(at, before, Changed(before), &seen);
      if (!reached || seen == before) break;
      before = seen;
    }
    if (!reached && target_.on_demand) {
      FailRequest(Status::kRemoteAccess, Event::kAccessError);
      return false;
    }
    reply_->original = before;
    return true;
  }

  // False: all has been said.
  bool AtomicWrite() {
    uint64_t value = 0, before = 0, seen = 0;
    Spans into;
    into.Add(reinterpret_cast<uintptr_t>(&value), sizeof(value));
    if (message_.length != sizeof(value) || (message_.remote_address & 7) != 0) {
      FailRequest(Status::kRemoteInvalidRequest, Event::kRequestError);
      return false;
    }
    CopySpans(into, *message_.payload, sizeof(value));
    const uint64_t at = target_.at[0].address;
    bool reached = ReadMemory(&before, at, sizeof(before));
    for (int tries = 0; reached && tries < 1000000; ++tries) {
      reached = SwapMemory(at, before, value, &seen);
      if (!reached || seen == before) break;
      before = seen;
    }
    if (reached || !target_.on_demand) return true;
    FailRequest(Status::kRemoteAccess, Event::kAccessError);
    return false;
  }

  uint64_t Changed(uint64_t before) const {
    const Message& m = message_;
    switch (m.opcode) {
      case Opcode::kFetchAdd:
        return before + m.compare_add;
      case Opcode::kMaskedFetchAdd:
        return MaskedAdd(before, m.compare_add, m.compare_mask);
      case Opcode::kCompareSwap:
        return before == m.compare_add ? m.swap : before;
      default:
        return (before & m.compare_mask) == (m.compare_add & m.compare_mask)
                   ? (before & ~m.swap_mask) | (m.swap & m.swap_mask)
                   : before;
    }
  }

  bool Reliable() const {
    return endpoint_.service == Service::kRc || endpoint_.service == Service::kXrcTarget ||
           endpoint_.service == Service::kDcTarget;
  }

  Completion Begin() const {
    Completion completion;
    completion.is_receive = true;
    completion.opcode = message_.opcode;
    completion.solicited = message_.solicited;
    return completion;
  }

  void CompleteGood(uint32_t grh) {
    Completion completion = Begin();
    const uint64_t length = message_.length - std::min<uint64_t>(skip_, message_.length);
    completion.byte_length = static_cast<uint32_t>(length + grh);
    completion.has_immediate =
        message_.opcode == Opcode::kSendImm || message_.opcode == Opcode::kWriteImm;
    completion.has_invalidate = message_.opcode == Opcode::kSendInvalidate;
    if (completion.has_immediate || completion.has_invalidate)
      completion.immediate = message_.immediate;
    if (endpoint_.service == Service::kUd) {
      completion.has_grh = message_.has_grh;
      if (message_.has_grh) completion.network_header = NetworkHeaderOf(message_.grh);
      completion.source_qpn = message_.source_qpn;
      completion.source_lid = message_.source_lid;
      completion.sl = message_.sl;
      completion.dlid_path_bits = message_.path_bits;
    }
    endpoint_.CompleteReceive(receive_, completion);
  }

  void CompleteFailed(Status status) {
    if (!has_receive_) return;
    Completion completion = Begin();
    completion.status = status;
    endpoint_.CompleteReceive(receive_, completion);
  }

  // A request that cannot be pinned on a receive.
  void FailRequest(Status nak) {
    const bool told = Reliable() && (has_receive_ || wording_.nak_without_receive);
    reply_->kind = told ? Reply::Kind::kNak : Reply::Kind::kSilence;
    reply_->nak = nak;
    ToError();
  }
  void FailRequest(Status nak, Event event) {
    endpoint_.Report(event);
    FailRequest(nak);
  }
  void FailReceive(Status status, Status nak) {
    CompleteFailed(status);
    FailRequest(nak);
  }
  void FailReceive(Status status, Status nak, Event event) {
    if (!has_receive_) endpoint_.Report(event);
    FailReceive(status, nak);
  }

  // UC and UD: a message longer than its receive.
  void ShortReceive(Wording::Short how) {
    if (how == Wording::Short::kFails)
      return FailReceive(wording_.receive_length, Status::kSuccess);
    if (!has_receive_) return;
    if (endpoint_.has_srq) return CompleteFailed(wording_.dropped);
    endpoint_.ReturnReceive(receive_);
  }

  void ToError() {
    if (endpoint_.service == Service::kDcTarget) return;  // it ends for this initiator alone
    if (endpoint_.state == EndpointState::kErr) return;
    endpoint_.state = EndpointState::kErr;
    if (message_.sender != &endpoint_) endpoint_.EnterError();
  }

  Endpoint& endpoint_;
  const Wording& wording_;
  const Message& message_;
  Reply* reply_;
  bool has_receive_ = false;
  uint32_t skip_ = 0;  // bytes of the message that only say which receive it is for
  RecvRequest receive_;
  Spans target_;
};

}  // namespace

const Wording Endpoint::kConnectX;

void Deliver(Endpoint& responder, const Message& message, Reply* reply) {
  Responder(responder, message, reply).Serve();
}

}  // namespace vabi::fabric
