// SPDX-License-Identifier: BSD-2-Clause
#include "shims/fabric/nic.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <vector>

#include "shims/fabric/memory.h"
#include "shims/fabric/wake.h"
#include "shims/sys/sys.h"

// glibc 2.34 gave the thread functions a new version when it merged libpthread; the old names are
// still there and are what a container with an older glibc has.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
asm(".symver pthread_create, pthread_create@GLIBC_2.2.5");
asm(".symver pthread_detach, pthread_detach@GLIBC_2.2.5");
#endif

namespace vabi::fabric {
namespace {

constexpr uint64_t kSpinNs = 30000;       // looks on for so long after the last work
constexpr int64_t kFirstSleepNs = 20000;  // then sleeps, each time twice as long
constexpr int64_t kLongestSleepNs = 1000000;
constexpr int64_t kKickedSleepNs = 1000000000;  // nobody needs polling: Kick wakes
constexpr uint64_t kLingerNs = 50000000;        // without Pollables: ends
constexpr int kMaxYields = 200;

struct State {
  Mutex lock;
  std::vector<Pollable*> pollables;  // guarded by lock, as all below
  bool use_thread = true;
  bool running = false;
  WakeWord own;
  std::atomic<WakeWord*> shared{nullptr};  // instead of `own`: other processes wake us, too

  WakeWord& word() {
    WakeWord* other = shared.load(std::memory_order_acquire);
    return other != nullptr ? *other : own;
  }
};

State& Get() {
  static State* const state =
      new State;  // never destroyed: the thread may outlive static destructors
  return *state;
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

bool Round(State& state) {
  bool worked = false;
  // By index: Progress may not change the list, but a driver's mistake should not crash the
  // program.
  for (size_t i = 0; i < state.pollables.size(); ++i) worked |= state.pollables[i]->Progress();
  return worked;
}

void Sleep(State& state, WakeWord& word, uint32_t kicks, int64_t ns) {
  word.sleeping.store(1, std::memory_order_seq_cst);
  // Another word may have been given meanwhile: whoever gives it kicks the old one.
  if (&state.word() == &word && word.kicks.load(std::memory_order_seq_cst) == kicks) {
    sys::FutexWait(reinterpret_cast<const uint32_t*>(&word.kicks), kicks, ns, &word != &state.own);
  }
  word.sleeping.store(0, std::memory_order_relaxed);
}

// struct sched_attr of sched_setattr(2), as it was first (SCHED_ATTR_SIZE_VER0).
struct SchedulingAttributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

// A NIC competes with nobody for the processor. The least that a thread may ask for is a short turn
// that comes soon (a slice of its own: Linux 6.12 and later; before, runtime says nothing here).
void AskForShortTurns() {
  constexpr uint64_t kSliceNs = 100000;
  SchedulingAttributes attributes = {};
  const auto at = reinterpret_cast<long>(&attributes);
  if (sys::Syscall(SYS_sched_getattr, 0, at, sizeof(attributes), 0) < 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.size = sizeof(attributes);
  attributes.runtime = kSliceNs;
  sys::Syscall(SYS_sched_setattr, 0, at, 0);
}

// Until whoever waits for the lock has it.
void LetOthersIn(State& state) {
  for (int i = 0; i < kMaxYields && state.lock.wanted(); ++i) sched_yield();
}

void* Run(void*) {
  State& state = Get();
  sys::Syscall(SYS_prctl, PR_SET_NAME, reinterpret_cast<long>("verbs-abi nic"));
  sys::Syscall(SYS_prctl, PR_SET_TIMERSLACK, 1000);
  AskForShortTurns();
  uint64_t last_work = sys::MonotonicNs();
  int64_t sleep_ns = kFirstSleepNs;
  unsigned int rounds = 0;
  bool fresh = true;  // first round after idling
  for (;;) {
    WakeWord& word = state.word();
    const uint32_t kicks = word.kicks.load(std::memory_order_seq_cst);
    bool worked, needs_polling = false, empty;
    {
      std::lock_guard guard(state.lock);
      if (!state.use_thread) {
        state.running = false;
        return nullptr;
      }
      empty = state.pollables.empty();
      if (fresh || ++rounds % 4096 == 0) GuardCheck();
      fresh = false;
      worked = Round(state);
      if (!worked) {
        for (const Pollable* pollable : state.pollables) needs_polling |= pollable->NeedsPolling();
        if (empty && sys::MonotonicNs() - last_work > kLingerNs) {
          state.running = false;
          return nullptr;
        }
      }
    }
    if (state.lock.wanted()) LetOthersIn(state);
    if (worked) {
      last_work = 0;  // asked for when the work ends
      sleep_ns = kFirstSleepNs;
      continue;
    }
    const uint64_t now = sys::MonotonicNs();
    if (last_work == 0) last_work = now;
    if (needs_polling && now - last_work < kSpinNs) {
      for (int i = 0; i < 32; ++i) Pause();
      continue;
    }
    fresh = true;
    if (empty) {
      Sleep(state, word, kicks, static_cast<int64_t>(kLingerNs));
    } else if (!needs_polling) {
      Sleep(state, word, kicks, kKickedSleepNs);
    } else {
      Sleep(state, word, kicks, sleep_ns);
      sleep_ns = std::min(2 * sleep_ns, kLongestSleepNs);
    }
  }
}

// A child has one thread, the one that forked: no NIC of its own, and the lock as it was left.
void BeforeFork() { Get().lock.lock(); }
void AfterForkInParent() { Get().lock.unlock(); }
void AfterForkInChild() {
  State& state = Get();
  state.use_thread = false;
  state.shared.store(nullptr);  // the parent's place
  state.running = false;
  state.lock.unlock();
}

// With the lock held.
void StartThread(State& state) {
  if (!state.use_thread || state.running) return;
  HandleForks();
  // The new thread inherits the mask. Faults must reach their handler (memory.h), so those two stay
  // open.
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGSEGV);
  sigdelset(&all, SIGBUS);
  constexpr long kKernelSigset = 8;
  sys::Syscall(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&all),
               reinterpret_cast<long>(&before), kKernelSigset);
  pthread_t thread;
  state.running = pthread_create(&thread, nullptr, Run, nullptr) == 0;
  if (state.running) pthread_detach(thread);
  sys::Syscall(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&before), 0, kKernelSigset);
}

}  // namespace

Mutex& Lock() { return Get().lock; }

void HandleForks() {
  static std::atomic<bool> handled{false};
  if (handled.exchange(true)) return;
  pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);
}

void Kick(WakeWord& word, bool shared) {
  word.kicks.fetch_add(1, std::memory_order_seq_cst);
  // Whoever takes the mark wakes; those who come after need not.
  if (word.sleeping.load(std::memory_order_seq_cst) != 0 && word.sleeping.exchange(0) != 0) {
    sys::FutexWake(reinterpret_cast<const uint32_t*>(&word.kicks), 1, shared);
  }
}

void SleepOn(WakeWord* shared) {
  State& state = Get();
  WakeWord* before = state.shared.exchange(shared);
  if (before == shared) return;
  if (before == nullptr) Kick(state.own, false);
}

void AddPollable(Pollable* pollable) {
  State& state = Get();
  {
    std::lock_guard guard(state.lock);
    state.pollables.push_back(pollable);
    StartThread(state);
  }
  Kick();
}

void RemovePollable(Pollable* pollable) {
  State& state = Get();
  std::lock_guard guard(state.lock);
  std::erase(state.pollables, pollable);
}

void Kick() {
  State& state = Get();
  WakeWord& word = state.word();
  Kick(word, &word != &state.own);
}

bool Step() {
  State& state = Get();
  std::lock_guard guard(state.lock);
  GuardCheck();
  return Round(state);
}

void UseThread(bool on) {
  State& state = Get();
  std::lock_guard guard(state.lock);
  state.use_thread = on;
  if (on && !state.pollables.empty()) StartThread(state);
}

}  // namespace vabi::fabric
