// SPDX-License-Identifier: BSD-2-Clause
#include "shims/fabric/spans.h"

#include <algorithm>

#include "shims/fabric/memory.h"
#include "shims/fabric/pull.h"

namespace vabi::fabric {
namespace {

// [address, address + length) of the key's address space; no sum that can wrap (rxe_mr.c:
// mr_check_range).
bool Inside(const MemoryKey& key, uint64_t address, uint64_t length) {
  return address >= key.iova && length <= key.length && address - key.iova <= key.length - length;
}

SgeFault MapParts(uint32_t device, const MemoryKey& key, uint64_t address, uint64_t length,
                  uint32_t access, Spans* out);

// Bytes that a region's or an indirect key names; who may use it has been looked at.
SgeFault MapKey(uint32_t device, const MemoryKey& key, uint64_t address, uint64_t length,
                uint32_t access, Spans* out) {
  if (!Inside(key, address, length)) return SgeFault::kRange;
  if (key.kind == MemoryKey::Kind::kIndirect)
    return MapParts(device, key, address, length, access, out);
  if (out->count == kMaxSge) return SgeFault::kRange;  // too many pieces for one message
  out->on_demand |= (key.access & kAccessOnDemand) != 0;
  out->Add(key.base + (address - key.iova), length);
  return SgeFault::kNone;
}

// The parts are other regions of the same domain (no indirect ones).
SgeFault MapParts(uint32_t device, const MemoryKey& key, uint64_t address, uint64_t length,
                  uint32_t access, Spans* out) {
  uint64_t skip = address - key.iova;
  const bool writes =
      (access & (kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteAtomic)) != 0;
  for (uint32_t turn = 0; turn < key.repeat && length != 0; ++turn) {
    for (const KeyPart& part : key.parts) {
      const uint64_t passed = std::min(part.length, skip);
      skip -= passed;
      const uint64_t size = std::min(part.length - passed, length);
      if (size == 0) continue;
      const MemoryKey* region = FindKey(device, part.lkey);
      if (region == nullptr || region->kind != MemoryKey::Kind::kRegion || region->pd != key.pd ||
          region->invalidated || (writes && (region->access & kAccessLocalWrite) == 0)) {
        return SgeFault::kKey;
      }
      const uint64_t at = part.address + turn * part.stride + passed;
      if (const SgeFault fault = MapKey(device, *region, at, size, access, out);
          fault != SgeFault::kNone) {
        return fault;
      }
      length -= size;
    }
  }
  return length == 0 ? SgeFault::kNone : SgeFault::kRange;
}

bool IsWindow(const MemoryKey& key) {
  return key.kind == MemoryKey::Kind::kWindow1 || key.kind == MemoryKey::Kind::kWindow2;
}

}  // namespace

SgeFault MapSges(const Endpoint& owner, const Sge* sges, uint32_t count, uint32_t access,
                 uint64_t length, uint64_t skip, Spans* out) {
  for (uint32_t i = 0; i < count && length != 0; ++i) {
    uint64_t size = sges[i].length, address = sges[i].address;
    const uint64_t passed = std::min(size, skip);
    skip -= passed;
    address += passed;
    size = std::min(size - passed, length);
    if (size == 0) continue;
    const MemoryKey* key = FindKey(owner.device, sges[i].lkey);
    if (key == nullptr || IsWindow(*key) || key->pd != owner.pd || key->invalidated ||
        (key->access & access) != access) {
      return SgeFault::kKey;
    }
    if (const SgeFault fault = MapKey(owner.device, *key, address, size, access, out);
        fault != SgeFault::kNone) {
      return fault;
    }
    length -= size;
  }
  return length == 0 ? SgeFault::kNone : SgeFault::kTooShort;
}

SgeFault MapRemote(const Endpoint& responder, uint32_t rkey, uint64_t address, uint64_t length,
                   uint32_t access, Spans* out) {
  const MemoryKey* key = FindKey(responder.device, rkey);
  if (key == nullptr || key->invalidated || key->pd != responder.pd ||
      (key->access & access) != access) {
    return SgeFault::kKey;
  }
  if (key->kind == MemoryKey::Kind::kWindow2 && key->qpn != responder.qpn) return SgeFault::kKey;
  if (!IsWindow(*key)) return MapKey(responder.device, *key, address, length, access, out);
  const uint64_t bytes = key->base + (address - key->iova);
  const MemoryKey* region = FindKey(responder.device, key->region);
  if (region == nullptr) return SgeFault::kKey;
  if (responder.wording->windows_bound_range && !Inside(*key, address, length))
    return SgeFault::kRange;
  if (bytes < region->base || length > region->length ||
      bytes - region->base > region->length - length) {
    return SgeFault::kRange;
  }
  out->on_demand |= (region->access & kAccessOnDemand) != 0;
  out->Add(bytes, length);
  return SgeFault::kNone;
}

Spans Behind(const Spans& spans, uint64_t skip) {
  Spans rest;
  rest.on_demand = spans.on_demand;
  rest.process = spans.process;
  rest.lost = spans.lost;
  for (uint32_t i = 0; i < spans.count; ++i) {
    const uint64_t passed = std::min(spans.at[i].length, skip);
    skip -= passed;
    rest.Add(spans.at[i].address + passed, spans.at[i].length - passed);
  }
  return rest;
}

bool CopySpans(const Spans& to, const Spans& from, uint64_t length) {
  if (from.process != 0) return PullSpans(to, from, length) || !(to.on_demand || from.on_demand);
  bool whole = true;
  uint32_t t = 0, f = 0;
  uint64_t t_done = 0, f_done = 0;
  while (length != 0 && t < to.count && f < from.count) {
    const uint64_t size = std::min({length, to.at[t].length - t_done, from.at[f].length - f_done});
    whole &= CopyMemory(to.at[t].address + t_done, from.at[f].address + f_done, size);
    length -= size;
    if ((t_done += size) == to.at[t].length) ++t, t_done = 0;
    if ((f_done += size) == from.at[f].length) ++f, f_done = 0;
  }
  return whole || !(to.on_demand || from.on_demand);
}

bool FillSpans(const Spans& to, const void* from, uint64_t length) {
  Spans source;
  source.Add(reinterpret_cast<uintptr_t>(from), length);
  return CopySpans(to, source, length);
}

}  // namespace vabi::fabric
