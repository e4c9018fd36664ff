// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_WINDOW_H_
#define VABI_SHIMS_FABRIC_WINDOW_H_

#include <cstdint>

#include "shims/fabric/fabric.h"

// Memory windows: what BIND_MW, LOCAL_INV and SEND_WITH_INV do to keys (IBTA 10.6.7).

namespace vabi::fabric {

struct Bind {
  uint32_t window;  // rkey of the window as it is now
  uint32_t key;     // its low 8 bits become the window's
  uint32_t region;  // lkey
  uint64_t address;
  uint64_t length;  // bytes; 0 unbinds a window of type 1
  uint32_t access;  // IB_ACCESS_*
};

// Binds the window; its rkey becomes (window & ~0xff) | (key & 0xff). False: the rules forbid it,
// nothing changed.
bool BindWindow(const Endpoint& endpoint, const Bind& bind);
// Invalidates a window of type 2 (a region that a program registered cannot be). False: forbidden.
bool Invalidate(const Endpoint& endpoint, uint32_t key);
// The window goes: lets go of its region.
void ForgetWindow(uint32_t device, uint32_t key);

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_WINDOW_H_
