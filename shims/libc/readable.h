// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_LIBC_READABLE_H_
#define VABI_SHIMS_LIBC_READABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

// Whether the shim may look at what a program points to. A kernel answers EFAULT where a pointer
// leads nowhere, so a call with such a one is passed on unread. Asking the kernel takes as long as
// many a call does; pages that were readable are remembered, and forgotten when the program unmaps
// them.

namespace vabi::libc {

inline constexpr size_t kReadablePages = 64;
// By the low bits of its number: a page's number plus 1.
extern std::atomic<uintptr_t> g_readable_page[kReadablePages];

// May so many bytes from there be read, that lie in two pages at most?
bool AskReadable(const void* address, size_t size);

inline bool CanRead(const void* address, size_t size = 1) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const uintptr_t page = at >> 12;
  if (__builtin_expect(
          g_readable_page[page % kReadablePages].load(std::memory_order_relaxed) == page + 1 &&
              (at & 4095) + size <= 4096,
          1)) {
    return true;
  }
  return AskReadable(address, size);
}

// What decides whether a path may be ours: its first byte, and the second where there is one.
inline bool CanReadStart(const char* path) {
  return CanRead(path) && (path[0] == '\0' || CanRead(path + 1));
}
// All of a text up to its end, or as much as a path may have (fs/namei.c:getname_flags).
bool CanReadText(const char* text);
// An array of any size.
bool CanReadAll(const void* address, size_t size);

// The program unmapped these, or may no longer read them.
void ForgetReadable(const void* address, size_t size);

}  // namespace vabi::libc

#endif  // VABI_SHIMS_LIBC_READABLE_H_
