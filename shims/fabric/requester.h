// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_REQUESTER_H_
#define VABI_SHIMS_FABRIC_REQUESTER_H_

#include "shims/fabric/fabric.h"
#include "shims/fabric/message.h"
#include "shims/fabric/spans.h"

// The requester's side of one request: gathers, sends, waits or fails, and puts away what comes
// back.

namespace vabi::fabric {

// How often a request was tried, and when it may be tried again.
struct Tries {
  uint64_t* retry_at_ns;
  uint32_t* rnr;
  uint32_t* silent;
};

class Requester {
 public:
  Requester(Endpoint& endpoint, const SendRequest& request, Completion* completion);

  Outcome Run();

  // The parts, for a request that another process answers.
  Endpoint& endpoint() const { return endpoint_; }
  const SendRequest& request() const { return request_; }
  uint64_t length() const { return length_; }
  const Spans& payload() const { return payload_; }
  void Measure();
  // Measures, and gathers what is sent.
  SgeFault Prepare();
  void Fill(Message* message) const;
  // What the answer leads to. `tries`: of this request.
  Outcome Conclude(const Reply& reply, const Tries& tries);
  Outcome FailNow(Status status);
  Status LocalStatus(SgeFault fault) const {
    return fault == SgeFault::kKey ? wording_.local_key : wording_.local_range;
  }
  // Not before what was sent to another process is answered.
  Outcome Wait();

 private:
  bool ReadsBack() const;
  uint64_t Length() const;
  SgeFault Gather();
  Outcome SendDatagram();
  Outcome SendConnected();
  void Sent(uint32_t packets);
  Outcome PutAway(const Reply& reply, const Tries& tries);
  Outcome NoAnswer(const Tries& tries);
  Outcome NotReady(uint8_t timer, const Tries& tries);
  Outcome WaitForEver(const Tries& tries);
  // Both in order: behind requests that another process has not answered yet, they wait.
  Outcome Done();
  Outcome Fail(Status status);
  Tries OwnTries() {
    return {&endpoint_.retry_at_ns, &endpoint_.rnr_tries, &endpoint_.silent_tries};
  }

  Endpoint& endpoint_;
  const Wording& wording_;
  const SendRequest& request_;
  Completion* completion_;
  uint64_t length_ = 0;
  Spans payload_;
};

inline bool IsAtomic(Opcode opcode) {
  return opcode == Opcode::kCompareSwap || opcode == Opcode::kFetchAdd ||
         opcode == Opcode::kMaskedCompareSwap || opcode == Opcode::kMaskedFetchAdd;
}

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_REQUESTER_H_
