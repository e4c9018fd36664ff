// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_FLOW_H_
#define VABI_SHIMS_FABRIC_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "shims/fabric/fabric.h"
#include "shims/fabric/remote.h"
#include "shims/fabric/ring.h"

// The requests of one queue pair that are on their way to another process, oldest first. They are
// answered in that order. One that was not taken (RNR, or nobody there) is sent again, and with it
// all that were sent behind it: the responder takes none of those (Endpoint::skips).

namespace vabi::fabric {

// One request, kept until it is answered.
struct Pending {
  explicit Pending(const SendRequest& from) {
    // All but the elements that are not used: most of the structure.
    constexpr size_t kFirst = offsetof(SendRequest, sges), kAfter = kFirst + sizeof(request.sges);
    std::memcpy(static_cast<void*>(&request), &from, kFirst);
    std::memcpy(request.sges, from.sges, sizeof(Sge) * from.sge_count);
    std::memcpy(reinterpret_cast<uint8_t*>(&request) + kAfter,
                reinterpret_cast<const uint8_t*>(&from) + kAfter, sizeof(request) - kAfter);
    if (from.inline_data == nullptr) return;
    inline_bytes.assign(from.inline_data, from.inline_data + from.inline_length);
    request.inline_data = inline_bytes.data();
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  SendRequest request;
  std::vector<uint8_t> inline_bytes;
  uint32_t tag = 0, psn = 0, packets = 0;
  bool reads = false;
  // Its frame, and where that ends in the ring. Null: it is not there.
  FrameHead* frame = nullptr;
  uint64_t end = 0;
};

struct Flow {
  explicit Flow(Endpoint& owner) : endpoint(&owner) {}

  Endpoint* endpoint;
  FarPlace place;
  std::deque<Pending> pending;
  size_t sent = 0;        // the first so many are in the other process' hands
  size_t answered = 0;    // of these, while `draining`
  bool draining = false;  // the first one was not taken: the answers to the rest tell nothing
  bool listed = false;    // among the flows that are looked after
  bool resume = false;    // the driver may go on
  uint32_t next_tag = 1, reads = 0;
  uint64_t retry_at_ns = 0;  // kNever: nothing but the peer's coming back helps
  uint32_t rnr_tries = 0, silent_tries = 0;
  uint64_t moved_ns = 0;  // sys::MonotonicNs of the last answer, or of sending after none
  // While the ring has no room for the first request: since when its reader made none (0: there
  // was), and how far that reader had come.
  uint64_t stuck_ns = 0, stuck_tail = 0;
  static constexpr uint64_t kNever = ~0ULL;
};

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_FLOW_H_
