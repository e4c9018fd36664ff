// SPDX-License-Identifier: BSD-2-Clause
#include "shims/libc/mappings.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <type_traits>
#include <vector>

#include "shims/sys/sys.h"

// Not in the headers of every libc (asm-generic/mman-common.h).
#ifndef MADV_WIPEONFORK
#  define MADV_WIPEONFORK 18
#endif
#ifndef MADV_COLD
#  define MADV_COLD 20
#  define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_READ
#  define MADV_POPULATE_READ 22
#  define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_DONTNEED_LOCKED
#  define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_COLLAPSE
#  define MADV_COLLAPSE 25
#endif
#ifndef MREMAP_DONTUNMAP
#  define MREMAP_DONTUNMAP 4
#endif

namespace vabi::libc {

std::atomic<uintptr_t> g_first_device_page{UINTPTR_MAX};
std::atomic<uintptr_t> g_end_of_device_pages{0};

namespace {

constexpr uintptr_t kPage = 4096;
constexpr int kGuardInstall = 102, kGuardRemove = 103;  // MADV_GUARD_…

uintptr_t WholePages(size_t size) { return (size + kPage - 1) & ~(kPage - 1); }

// By address, none overlapping. Never destroyed: exit handlers still unmap.
struct Mappings {
  std::mutex mutex;
  std::vector<DeviceVma>* list = nullptr;
};
static_assert(std::is_trivially_destructible_v<Mappings>);
constinit Mappings g_mappings;

std::vector<DeviceVma>& List() {
  if (g_mappings.list == nullptr) g_mappings.list = new std::vector<DeviceVma>;
  return *g_mappings.list;
}

void Publish() {
  const std::vector<DeviceVma>& list = List();
  g_first_device_page.store(list.empty() ? UINTPTR_MAX : list.front().begin,
                            std::memory_order_relaxed);
  g_end_of_device_pages.store(list.empty() ? 0 : list.back().end, std::memory_order_relaxed);
}

// With the mutex held: what stood there is gone, pieces beside it stay.
void Cut(uintptr_t begin, uintptr_t end) {
  std::vector<DeviceVma> kept;
  for (const DeviceVma& vma : List()) {
    if (vma.end <= begin || vma.begin >= end) {
      kept.push_back(vma);
      continue;
    }
    DeviceVma piece = vma;
    piece.end = begin;
    if (piece.begin < piece.end) kept.push_back(piece);
    piece = vma;
    piece.begin = end;
    if (piece.begin < piece.end) kept.push_back(piece);
  }
  List().swap(kept);
  Publish();
}

void Put(const DeviceVma& vma) {
  Cut(vma.begin, vma.end);
  std::vector<DeviceVma>& list = List();
  list.insert(
      std::upper_bound(list.begin(), list.end(), vma,
                       [](const DeviceVma& a, const DeviceVma& b) { return a.begin < b.begin; }),
      vma);
  Publish();
}

// mm/madvise.c, of one area: 0, or -errno. VM_SPECIAL is any of VM_IO, VM_PFNMAP, VM_DONTEXPAND and
// VM_MIXEDMAP: all areas here.
int RefusesAdvice(const DeviceVma& vma, int advice) {
  const bool io = vma.pages == DeviceVma::Pages::kIo;
  switch (advice) {
    case MADV_DONTNEED:         // VM_PFNMAP
    case MADV_DONTNEED_LOCKED:  // the same
    case MADV_COLD:             // can_madv_lru_vma: VM_PFNMAP
    case MADV_PAGEOUT:
    case MADV_POPULATE_READ:  // mm/gup.c:check_vma_flags: VM_IO
    case MADV_POPULATE_WRITE:
    case MADV_DOFORK:  // VM_IO
      return io ? -EINVAL : 0;
    case MADV_FREE:        // of anonymous areas only
    case MADV_WIPEONFORK:  // the same
    case MADV_DODUMP:      // VM_SPECIAL
    case kGuardInstall:    // the same
    case kGuardRemove:     // the same
    case MADV_COLLAPSE:    // thp_vma_allowable_order
      return -EINVAL;
    case MADV_REMOVE:  // then fs/open.c:vfs_fallocate: a character device
      return vma.shared && vma.may_write ? -ENODEV : -EACCES;
    default:
      return 0;
  }
}

// Those of the list that lie in the range, in order.
std::vector<DeviceVma> Within(uintptr_t begin, uintptr_t end) {
  const std::lock_guard<std::mutex> lock(g_mappings.mutex);
  std::vector<DeviceVma> found;
  for (const DeviceVma& vma : List()) {
    if (vma.begin < end && vma.end > begin) found.push_back(vma);
  }
  return found;
}

// Kernels go from area to area: what lies before the one that refuses is done.
template <typename Refuses, typename Native>
long AreaByArea(uintptr_t address, size_t size, Refuses refuses, Native native) {
  const uintptr_t end = address + WholePages(size);
  if ((address & (kPage - 1)) == 0 && end > address) {
    for (const DeviceVma& vma : Within(address, end)) {
      const int error = refuses(vma);
      if (error == 0) continue;
      const long before = vma.begin > address ? native(address, vma.begin - address) : 0;
      return before != 0 && before != -ENOMEM ? before : error;
    }
  }
  return native(address, size);
}

}  // namespace

void LockMappings() { g_mappings.mutex.lock(); }
void UnlockMappings() { g_mappings.mutex.unlock(); }

void ForgetMappings(uintptr_t address, size_t size) {
  const std::lock_guard<std::mutex> lock(g_mappings.mutex);
  Cut(address, address + WholePages(size));
}

long MunmapDevice(uintptr_t address, size_t size) {
  const long result = sys::Syscall(SYS_munmap, static_cast<long>(address), static_cast<long>(size));
  if (result == 0) ForgetMappings(address, size);
  return result;
}

// mm/mremap.c
long MremapDevice(uintptr_t address, size_t old_size, size_t new_size, int flags,
                  uintptr_t target) {
  const uintptr_t old_bytes = WholePages(old_size), new_bytes = WholePages(new_size);
  const std::vector<DeviceVma> here = Within(address, address + 1);
  const bool fixed_size = !here.empty() && here[0].pages != DeviceVma::Pages::kInserted;
  constexpr int kKnown = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  const bool sound =
      (address & (kPage - 1)) == 0 && new_bytes != 0 && (flags & ~kKnown) == 0 &&
      ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) == 0 || (flags & MREMAP_MAYMOVE) != 0);
  if (sound && fixed_size) {
    if ((flags & MREMAP_DONTUNMAP) != 0) return -EINVAL;
    if (old_bytes == 0 && !here[0].shared) return -EINVAL;
    if (new_bytes > old_bytes) return -EFAULT;  // VM_DONTEXPAND
  }
  const long result =
      sys::Syscall(SYS_mremap, static_cast<long>(address), static_cast<long>(old_size),
                   static_cast<long>(new_size), flags, static_cast<long>(target));
  if (result < 0 && result >= -4095) return result;
  const auto now = static_cast<uintptr_t>(result);
  const std::lock_guard<std::mutex> lock(g_mappings.mutex);
  if (now != address && old_bytes != 0 && (flags & MREMAP_DONTUNMAP) == 0) {
    Cut(address, address + old_bytes);
  } else if (now == address && old_bytes > new_bytes) {
    Cut(address + new_bytes, address + old_bytes);
  }
  if (here.empty()) {
    Cut(now, now + new_bytes);
  } else if (now != address || new_bytes > old_bytes) {
    DeviceVma moved = here[0];
    moved.begin = now;
    moved.end = now + new_bytes;
    Put(moved);
  }
  return result;
}

// mm/mprotect.c:do_mprotect_pkey
long MprotectDevice(uintptr_t address, size_t size, int protection) {
  return AreaByArea(
      address, size,
      [=](const DeviceVma& vma) {
        return (protection & PROT_WRITE) != 0 && !vma.may_write ? -EACCES : 0;
      },
      [=](uintptr_t begin, size_t bytes) {
        return sys::Syscall(SYS_mprotect, static_cast<long>(begin), static_cast<long>(bytes),
                            protection);
      });
}

long MadviseDevice(uintptr_t address, size_t size, int advice) {
  return AreaByArea(
      address, size, [=](const DeviceVma& vma) { return RefusesAdvice(vma, advice); },
      [=](uintptr_t begin, size_t bytes) {
        return sys::Syscall(SYS_madvise, static_cast<long>(begin), static_cast<long>(bytes),
                            advice);
      });
}

}  // namespace vabi::libc

void vabi::VmaTable::Add(const DeviceVma& vma) {
  const std::lock_guard<std::mutex> lock(libc::g_mappings.mutex);
  libc::Put(vma);
}
