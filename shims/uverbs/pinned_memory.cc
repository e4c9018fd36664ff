// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/pinned_memory.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdlib>

#include "shims/sys/sys.h"

namespace vabi {
namespace {

constexpr uint64_t kUnlimited = UINT64_MAX;  // RLIM64_INFINITY

std::atomic<uint64_t> pinned{0};
std::atomic<int> pinned_by{0};  // process id

struct Limit {
  uint64_t now, most;  // struct rlimit64
};

Limit Read() {
  Limit limit = {kUnlimited, kUnlimited};
  sys::Syscall(SYS_prlimit64, 0, RLIMIT_MEMLOCK, 0, reinterpret_cast<long>(&limit));
  return limit;
}

// What the machine allows: the launcher says it to all processes of a cell, since in those that a
// program starts the limit may be that program's doing.
uint64_t Machine() {
  static const uint64_t limit = [] {
    const char* told = std::getenv("VERBS_ABI_MEMLOCK");
    return told != nullptr ? std::strtoull(told, nullptr, 10) : Read().now;
  }();
  return limit;
}

// Before a program can change it.
[[maybe_unused]] const uint64_t at_start = Machine();

// kernel/fork.c:mm_init: a child begins with nothing.
void BeginInChild() {
  const int process = sys::GetPid();
  if (pinned_by.exchange(process) != process) pinned = 0;
}

}  // namespace

void PinnedPages::Take(uint64_t pages) {
  BeginInChild();
  process_ = sys::GetPid();
  pages_ += pages;
  pinned += pages;
}

void PinnedPages::Release() {
  if (pages_ != 0 && process_ == sys::GetPid()) pinned -= pages_;
  pages_ = 0;
}

PinnedPages PinnedPages::Split(uint64_t pages) {
  PinnedPages other;
  other.pages_ = pages;
  other.process_ = process_;
  pages_ -= pages;
  return other;
}

uint64_t PagesPinned() {
  BeginInChild();
  return pinned;
}

std::optional<uint64_t> MemlockLimit() {
  const uint64_t limit = Read().now;
  if (limit == kUnlimited || limit == Machine()) return std::nullopt;
  return limit;
}

void ApplyMemlockLimit(const World& world) {
  if (world.image().memlock_stated == 0 || Read().now != Machine()) return;
  const uint64_t stated = uint64_t{world.image().memlock_kib} * 1024;
  Limit limit = {stated, stated};
  sys::Syscall(SYS_prlimit64, 0, RLIMIT_MEMLOCK, reinterpret_cast<long>(&limit), 0);
}

}  // namespace vabi
