// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_PINNED_MEMORY_H_
#define VABI_SHIMS_UVERBS_PINNED_MEMORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "harness/world/world.h"

// What a process has pinned (struct mm_struct.pinned_vm), and how much it may (RLIMIT_MEMLOCK).

namespace vabi {

// Pages that are given back when this goes. A child of fork() has a memory of its own, in which
// nothing is pinned yet; what its parent pinned is not taken from it.
class PinnedPages {
 public:
  PinnedPages() = default;
  PinnedPages(PinnedPages&& other) noexcept
      : pages_(std::exchange(other.pages_, 0)), process_(other.process_) {}
  PinnedPages& operator=(PinnedPages&& other) noexcept {
    if (this != &other) {
      Release();
      pages_ = std::exchange(other.pages_, 0);
      process_ = other.process_;
    }
    return *this;
  }
  ~PinnedPages() { Release(); }

  uint64_t pages() const { return pages_; }
  void Take(uint64_t pages);
  void Release();
  // Another one with `pages` of these.
  PinnedPages Split(uint64_t pages);

 private:
  uint64_t pages_ = 0;
  int process_ = 0;
};

// What one object keeps pinned: its buffers, and pages of doorbell records, of which the objects of
// a context that have records there share one (mlx5_ib_db_map_user).
struct Pins {
  PinnedPages buffers;
  std::vector<std::shared_ptr<PinnedPages>> records;
};

// mm->pinned_vm of this process.
uint64_t PagesPinned();
// rlimit(RLIMIT_MEMLOCK) in bytes; nothing: RLIM_INFINITY. It is what the program made of it, or
// what the world says. How much the machine lets lock whoever runs all this is no part of a world:
// a limit that nobody changed since then counts as none.
std::optional<uint64_t> MemlockLimit();
// Before the program runs: the limit that the world states becomes the process' own.
void ApplyMemlockLimit(const World& world);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_PINNED_MEMORY_H_
