// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sys/later.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <mutex>
#include <vector>

#include "shims/sys/sys.h"

namespace vabi::sys {
namespace {

struct Entry {
  uint64_t due;
  std::function<void()> what;
};
struct State {
  std::mutex mutex;
  std::vector<Entry> waiting;
  bool running = false;
  int process = 0;
  uint32_t added = 0;  // futex word: the thread looks again when it changes
};
// Never destroyed: the thread may outlive destructors.
State& Get() {
  static auto* const state = new State();
  return *state;
}

void* Run(void*) {
  State& state = Get();
  for (;;) {
    Entry next = {~0ULL, {}};
    uint32_t seen;
    {
      std::lock_guard lock(state.mutex);
      if (state.waiting.empty()) {
        state.running = false;
        return nullptr;
      }
      seen = __atomic_load_n(&state.added, __ATOMIC_ACQUIRE);
      auto first = std::min_element(state.waiting.begin(), state.waiting.end(),
                                    [](const Entry& a, const Entry& b) { return a.due < b.due; });
      if (first->due <= MonotonicNs()) {
        next = std::move(*first);
        state.waiting.erase(first);
      } else {
        next.due = first->due;
      }
    }
    if (next.what) {
      next.what();
      continue;
    }
    const uint64_t now = MonotonicNs();
    if (next.due > now) FutexWait(&state.added, seen, static_cast<int64_t>(next.due - now));
  }
}

}  // namespace

void Later(uint64_t delay_ns, std::function<void()> what) {
  State& state = Get();
  std::lock_guard lock(state.mutex);
  if (state.process != GetPid()) {
    state.process = GetPid();
    state.running = false;
    state.waiting.clear();
  }
  state.waiting.push_back({MonotonicNs() + delay_ns, std::move(what)});
  __atomic_add_fetch(&state.added, 1, __ATOMIC_RELEASE);
  if (state.running) {
    FutexWake(&state.added, 1);
    return;
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  state.running = pthread_create(&thread, nullptr, Run, nullptr) == 0;
  if (state.running) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace vabi::sys
