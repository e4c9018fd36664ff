// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_NIC_H_
#define VABI_SHIMS_FABRIC_NIC_H_

#include <mutex>

// The software NIC of this process: one thread that takes up what programs have posted to memory-mapped
// queues. It starts with the first queue pair, spins while there is work, and sleeps longer and longer while
// there is none. Signals are blocked in it, and a forked child has none: its parent's NIC serves.

namespace vabi::fabric {

// Something that has work to look for; called with Lock() held. True when there was any.
class Pollable {
 public:
  virtual ~Pollable() = default;
  virtual bool Progress() = 0;
};

// Guards endpoints, keys, queues of all devices. Order: UverbsFile::mutex() first, then this one.
std::mutex& Lock();

void AddPollable(Pollable* pollable);     // takes Lock(); starts the thread when it is the first
void RemovePollable(Pollable* pollable);  // takes Lock(); returns when it is polled no more
// Something was posted through a call: wakes the thread from its sleep.
void Kick();
// With no thread: one round over all pollables, for tests. True when there was work.
bool Step();
void UseThread(bool on);

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_NIC_H_
