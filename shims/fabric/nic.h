// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_NIC_H_
#define VABI_SHIMS_FABRIC_NIC_H_

#include <atomic>
#include <mutex>

// The software NIC of this process: one thread that takes up what programs have posted to
// memory-mapped queues. It starts with the first Pollable, spins while there is work, and sleeps
// longer and longer while there is none. Signals are blocked in it, and a forked child has none:
// its parent's NIC serves. It ends by itself some time after the last Pollable went, so that it
// never keeps a process alive whose own threads have all ended, and it needs no destructor: at exit
// it is just gone.

namespace vabi::fabric {

// Something that has work to look for; called with Lock() held. True when there was any.
class Pollable {
 public:
  virtual ~Pollable() = default;
  virtual bool Progress() = 0;
  // False: whatever makes work for it also calls Kick, so that the NIC may sleep meanwhile.
  virtual bool NeedsPolling() const { return true; }
};

// Serves whoever waits before the NIC takes its next turn. Use: std::lock_guard
// lock(fabric::Lock());
class Mutex {
 public:
  void lock() {
    if (mutex_.try_lock()) return;
    waiting_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }
  bool wanted() const { return waiting_.load(std::memory_order_relaxed) > 0; }

 private:
  std::mutex mutex_;
  std::atomic<int> waiting_{0};
};

// Guards endpoints, keys, queues of all devices. Order: UverbsFile::mutex() first, then this one.
Mutex& Lock();

// Neither may be called from Progress or with Lock() held.
void AddPollable(Pollable* pollable);     // takes Lock(); starts the thread when it is the first
void RemovePollable(Pollable* pollable);  // takes Lock(); when it returns, it is polled no more
// Something was posted through a call: wakes the thread from its sleep. May be called with Lock()
// held.
void Kick();
// With no thread: one round over all pollables, for tests. True when there was work.
bool Step();
void UseThread(bool on);

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_NIC_H_
