// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYS_TURNS_H_
#define VABI_SHIMS_SYS_TURNS_H_

#include <atomic>
#include <cstdint>

#include "shims/sys/sys.h"
#include "shims/sys/waiting.h"

namespace vabi::sys {

// Where the readers of a file wait for a change: a wait queue of the kernel's. Whoever looks at the
// file takes the turn's number under its lock, and waits without it; each change begins a new turn.
class Turns {
 public:
  uint32_t now() const { return turn_.load(std::memory_order_relaxed); }
  void Next() {
    turn_.fetch_add(1, std::memory_order_relaxed);
    FutexWake(Word(), INT32_MAX);
  }
  // Until the turn is over: 0, or -EINTR. As wait_event_interruptible, whose -ERESTARTSYS leaves it
  // to SA_RESTART whether a signal ends the call: that is so of a futex without time limit as well,
  // and not of poll (signal(7)). A cancelled thread leaves here (waiting.h).
  int WaitFor(uint32_t turn) {
    const int result = Waiting(FutexWait, Word(), turn, int64_t{-1}, false);
    return result == -EINTR ? result : 0;
  }

 private:
  const uint32_t* Word() const { return reinterpret_cast<const uint32_t*>(&turn_); }
  std::atomic<uint32_t> turn_{0};
};

}  // namespace vabi::sys

#endif  // VABI_SHIMS_SYS_TURNS_H_
