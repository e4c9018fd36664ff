// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_SPANS_H_
#define VABI_SHIMS_FABRIC_SPANS_H_

#include <cstdint>

#include "shims/fabric/fabric.h"

// Scatter and gather lists, once their keys have been checked: where the bytes are.

namespace vabi::fabric {

struct Span {
  uint64_t address;
  uint64_t length;  // bytes
};

struct Spans {
  uint32_t count = 0;
  bool on_demand = false;  // one of the regions is paged on demand: a fault is an error there
  // Sources only. Not 0: the bytes are that process' (pull.h), and `lost` says that it died or
  // changed meanwhile: what was copied is worth nothing.
  int process = 0;
  mutable bool lost = false;
  Span at[kMaxSge];

  void Add(uint64_t address, uint64_t length) {
    if (length != 0 && count < kMaxSge) at[count++] = {address, length};
  }
};

enum class SgeFault : uint8_t { kNone, kKey, kRange, kTooShort };

// The first `length` bytes of the list. Elements behind them are not looked at, as NICs do not.
// `skip`: bytes at the list's start that are passed over, their keys unchecked.
SgeFault MapSges(const Endpoint& owner, const Sge* sges, uint32_t count, uint32_t access,
                 uint64_t length, uint64_t skip, Spans* out);

// What an rkey gives access to. `kRange` stands for bytes outside, `kKey` for everything else.
SgeFault MapRemote(const Endpoint& responder, uint32_t rkey, uint64_t address, uint64_t length,
                   uint32_t access, Spans* out);

// The same bytes without the first `skip`.
Spans Behind(const Spans& spans, uint64_t skip);

// Copies `length` bytes. False: some could not be reached, and one side is paged on demand.
// (Elsewhere the kernel has pinned the pages: the NIC reads and writes what the program no longer
// sees, so a write is lost and a read gives zeros.)
bool CopySpans(const Spans& to, const Spans& from, uint64_t length);
bool FillSpans(const Spans& to, const void* from, uint64_t length);

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_SPANS_H_
