// SPDX-License-Identifier: BSD-2-Clause
#include "shims/libc/readable.h"

#include <algorithm>

#include "shims/libc/paths.h"
#include "shims/sys/sys.h"

namespace vabi::libc {

std::atomic<uintptr_t> g_readable_page[kReadablePages];

namespace {
constexpr uintptr_t kPage = 4096;
}  // namespace

bool AskReadable(const void* address, size_t size) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (size == 0) return true;
  for (const uintptr_t byte : {at, at + size - 1}) {
    const uintptr_t page = byte >> 12;
    std::atomic<uintptr_t>& slot = g_readable_page[page % kReadablePages];
    if (slot.load(std::memory_order_relaxed) == page + 1) continue;
    char any;
    if (sys::CopyFromUser(&any, byte, sizeof any) != 0) return false;
    slot.store(page + 1, std::memory_order_relaxed);
  }
  return true;
}

bool CanReadText(const char* text) {
  for (size_t i = 0; i < kMaxPath; ++i) {
    if ((i == 0 || (reinterpret_cast<uintptr_t>(text + i) & (kPage - 1)) == 0) &&
        !CanRead(text + i)) {
      return false;
    }
    if (text[i] == '\0') return true;
  }
  return true;
}

bool CanReadAll(const void* address, size_t size) {
  const auto* at = static_cast<const char*>(address);
  while (size != 0) {
    const size_t part = std::min(size, kPage - (reinterpret_cast<uintptr_t>(at) & (kPage - 1)));
    if (!CanRead(at, part)) return false;
    at += part;
    size -= part;
  }
  return true;
}

void ForgetReadable(const void* address, size_t size) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(address) >> 12;
  const uintptr_t count = std::min((size + kPage - 1) >> 12, uintptr_t{kReadablePages});
  for (uintptr_t i = 0; i < count; ++i) {
    g_readable_page[(first + i) % kReadablePages].store(0, std::memory_order_relaxed);
  }
}

}  // namespace vabi::libc
