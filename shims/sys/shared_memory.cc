// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sys/shared_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "shims/sys/sys.h"

namespace vabi::sys {

void* MakeShared(size_t size) {
  return Mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

void* MapAgain(void* memory, size_t length, void* address, int protection, int flags) {
  // mmap finds the place, with all that it refuses; then mremap, asked to move none of it, shows
  // the pages there as well (mremap(2): old_size 0).
  const int kept = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
  void* place = Mmap(address, length, PROT_NONE, kept | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (IsError(place)) return place;
  const long at = reinterpret_cast<long>(place);
  const long size = static_cast<long>(length);
  long result = Syscall(SYS_mremap, reinterpret_cast<long>(memory), 0, size,
                        MREMAP_MAYMOVE | MREMAP_FIXED, at);
  if (result == at && protection != (PROT_READ | PROT_WRITE)) {
    const long error = Syscall(SYS_mprotect, at, size, protection);
    if (error != 0) result = error;
  }
  if (result != at) Munmap(place, length);
  return reinterpret_cast<void*>(result);
}

}  // namespace vabi::sys
