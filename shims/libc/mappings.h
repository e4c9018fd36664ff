// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_LIBC_MAPPINGS_H_
#define VABI_SHIMS_LIBC_MAPPINGS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shims/vma.h"

// Where the process has pages of devices mapped, and what a kernel's mm does with those when they
// are mapped anew, protected or advised. Implements VmaTable of shims/vma.h.

namespace vabi::libc {

// All mappings of devices lie between these; none: the first is the larger one.
extern std::atomic<uintptr_t> g_first_device_page, g_end_of_device_pages;

// Cheap first question of calls that take a range of memory.
inline bool MayMapDevice(uintptr_t begin, size_t size) {
  return begin < g_end_of_device_pages.load(std::memory_order_relaxed) &&
         begin + size > g_first_device_page.load(std::memory_order_relaxed);
}
inline bool MayMapDevice(const void* address, size_t size) {
  return MayMapDevice(reinterpret_cast<uintptr_t>(address), size);
}

// The system calls by these names, of a range for which MayMapDevice: the result, or -errno. Apart
// from the wrappers, whose first bytes a program that watches mappings may have replaced.
long MunmapDevice(uintptr_t address, size_t size);
long MremapDevice(uintptr_t address, size_t old_size, size_t new_size, int flags, uintptr_t target);
long MprotectDevice(uintptr_t address, size_t size, int protection);
long MadviseDevice(uintptr_t address, size_t size, int advice);
// Something else is mapped there now.
void ForgetMappings(uintptr_t address, size_t size);

// Around fork.
void LockMappings();
void UnlockMappings();

}  // namespace vabi::libc

#endif  // VABI_SHIMS_LIBC_MAPPINGS_H_
