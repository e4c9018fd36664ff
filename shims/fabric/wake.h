// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_WAKE_H_
#define VABI_SHIMS_FABRIC_WAKE_H_

#include <atomic>
#include <cstdint>

// The word that a NIC's thread sleeps on. It may stand in memory that several processes share, so
// that one wakes another's NIC.

namespace vabi::fabric {

struct WakeWord {
  std::atomic<uint32_t> kicks{0};     // counts what may have made work
  std::atomic<uint32_t> sleeping{0};  // the thread sleeps, or is about to
};

// Counts and, if its thread sleeps, wakes it. `shared`: with a thread of another process.
void Kick(WakeWord& word, bool shared);

// The NIC of this process sleeps on this word from now on; null: on its own again.
void SleepOn(WakeWord* shared);

// The lock is handed over whole to a forked child from now on. Idempotent.
void HandleForks();

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_WAKE_H_
