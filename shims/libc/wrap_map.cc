// SPDX-License-Identifier: BSD-2-Clause
// What is done with mappings afterwards: those of devices behave as a kernel's (mappings.h).
#include <sys/mman.h>

#include <cstdarg>

#include "shims/libc/mappings.h"
#include "shims/libc/originals.h"
#include "shims/libc/readable.h"
#include "shims/libc/state.h"

using namespace vabi::libc;  // NOLINT: this file defines libc's names

int wrap_munmap(void* address, size_t size) {
  ForgetReadable(address, size);
  if (VABI_LIKELY(!MayMapDevice(address, size))) return original::munmap()(address, size);
  return static_cast<int>(Answer(MunmapDevice(reinterpret_cast<uintptr_t>(address), size)));
}

void* wrap_mremap(void* address, size_t old_size, size_t new_size, int flags, ...) {
  void* target = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list list;
    va_start(list, flags);
    target = va_arg(list, void*);
    va_end(list);
  }
  // Nothing of a device may be where the old pages are, nor where the new ones go.
  if (VABI_LIKELY(!MayMapDevice(address, old_size + 1) &&
                  (target == nullptr || !MayMapDevice(target, new_size)))) {
    return original::mremap()(address, old_size, new_size, flags, target);
  }
  const long result = MremapDevice(reinterpret_cast<uintptr_t>(address), old_size, new_size, flags,
                                   reinterpret_cast<uintptr_t>(target));
  if (result >= 0 || result < -4095) return reinterpret_cast<void*>(result);
  errno = static_cast<int>(-result);
  return MAP_FAILED;
}

int wrap_mprotect(void* address, size_t size, int protection) {
  if ((protection & PROT_READ) == 0) ForgetReadable(address, size);
  if (VABI_LIKELY(!MayMapDevice(address, size)))
    return original::mprotect()(address, size, protection);
  return static_cast<int>(
      Answer(MprotectDevice(reinterpret_cast<uintptr_t>(address), size, protection)));
}

int wrap_madvise(void* address, size_t size, int advice) {
  if (VABI_LIKELY(!MayMapDevice(address, size))) return original::madvise()(address, size, advice);
  return static_cast<int>(
      Answer(MadviseDevice(reinterpret_cast<uintptr_t>(address), size, advice)));
}
