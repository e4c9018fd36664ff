// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYS_SHARED_MEMORY_H_
#define VABI_SHIMS_SYS_SHARED_MEMORY_H_

#include <cstddef>

// Pages that a driver and a program both see, each in a mapping of its own, and no descriptor is
// held for: a program has all of its numbers, and may close what it likes.

namespace vabi::sys {

// Zeroes, readable and writable: the address, or -errno (IsError). Munmap gives it back; the
// program's mappings keep the pages.
void* MakeShared(size_t size);
// The pages from `memory` on, which MakeShared gave, where mmap would put them.
void* MapAgain(void* memory, size_t length, void* address, int protection, int flags);

}  // namespace vabi::sys

#endif  // VABI_SHIMS_SYS_SHARED_MEMORY_H_
