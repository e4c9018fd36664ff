// SPDX-License-Identifier: BSD-2-Clause
#include "shims/fabric/window.h"

namespace vabi::fabric {
namespace {

using Kind = MemoryKey::Kind;

void LetGo(uint32_t device, MemoryKey& window) {
  if (window.region == 0) return;
  MemoryKey* region = FindKey(device, window.region);
  if (region != nullptr && region->windows > 0) --region->windows;
  window.region = 0;
}

}  // namespace

// The order and the rules are those of rxe_mw.c (rxe_bind_mw, rxe_check_bind_mw), which name the
// IBTA compliance statements that they follow; the result is the same failure for each.
bool BindWindow(const Endpoint& endpoint, const Bind& bind) {
  MemoryKey* window = FindKey(endpoint.device, bind.window);
  if (window == nullptr || (window->kind != Kind::kWindow1 && window->kind != Kind::kWindow2))
    return false;
  MemoryKey* region = nullptr;
  if (bind.length != 0) {
    region = FindKey(endpoint.device, bind.region);
    if (region == nullptr || region->kind != Kind::kRegion) return false;
  }
  if (window->kind == Kind::kWindow1) {
    if ((bind.access & kAccessZeroBased) != 0) return false;  // o10-36.2.2
  } else {
    if (!window->invalidated) return false;  // o10-37.2.30
    if (region == nullptr) return false;     // o10-37.2.40
  }
  const bool check_pd = endpoint.wording->windows_check_pd;
  if ((check_pd || window->kind == Kind::kWindow2) && endpoint.pd != window->pd) {
    return false;  // C10-72
  }
  if (region != nullptr) {
    if (check_pd && endpoint.pd != region->pd) return false;
    if ((region->access & kAccessZeroBased) != 0) return false;
    if ((region->access & kAccessMwBind) == 0) return false;  // C10-73
    if ((bind.access & (kAccessRemoteWrite | kAccessRemoteAtomic)) != 0 &&
        (region->access & kAccessLocalWrite) == 0) {
      return false;  // C10-74
    }
    if ((bind.access & kAccessZeroBased) != 0) {  // C10-75
      if (bind.length > region->length) return false;
    } else if (bind.address < region->iova || bind.address - region->iova > region->length ||
               bind.length > region->length - (bind.address - region->iova)) {
      return false;
    }
  }

  MemoryKey bound = *window;
  LetGo(endpoint.device, bound);
  bound.access = bind.access;
  bound.length = bind.length;
  bound.invalidated = bind.length == 0;
  if (region != nullptr) {
    ++region->windows;
    bound.region = bind.region;
    bound.iova = (bind.access & kAccessZeroBased) != 0 ? 0 : bind.address;
    bound.base = region->base + (bind.address - region->iova);
  }
  if (window->kind == Kind::kWindow2) bound.qpn = endpoint.qpn;
  RemoveKey(endpoint.device, bind.window);
  AddKey(endpoint.device, (bind.window & ~0xffu) | (bind.key & 0xff), bound);
  return true;
}

bool Invalidate(const Endpoint& endpoint, uint32_t key) {
  const Wording::Regions regions = endpoint.wording->regions_invalidate;
  MemoryKey* window = FindKey(endpoint.device, key);
  for (uint32_t low = 0; regions == Wording::Regions::kLocal && window == nullptr && low < 256;
       ++low) {
    window = FindKey(endpoint.device, (key & ~0xffu) | low);
  }
  if (window == nullptr) return false;
  if (window->kind == Kind::kRegion && regions != Wording::Regions::kNone) {
    constexpr uint32_t kRemote = kAccessRemoteWrite | kAccessRemoteRead | kAccessRemoteAtomic;
    if (regions == Wording::Regions::kBoth &&
        ((window->access & kRemote) == 0 || window->windows != 0)) {
      return false;  // it has no rkey, or a window is bound to it
    }
    window->invalidated = true;
    return true;
  }
  if (window->kind == Kind::kIndirect) {
    if (!window->remote_invalidate || window->pd != endpoint.pd) return false;
    window->invalidated = true;
    return true;
  }
  if (window->kind != Kind::kWindow2) return false;  // o10-37.2.26
  LetGo(endpoint.device, *window);
  window->invalidated = true;
  window->access = 0;
  window->length = 0;
  window->qpn = 0;
  return true;
}

void ForgetWindow(uint32_t device, uint32_t key) {
  MemoryKey* window = FindKey(device, key);
  if (window == nullptr) return;
  LetGo(device, *window);
  RemoveKey(device, key);
}

}  // namespace vabi::fabric
