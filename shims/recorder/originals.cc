// SPDX-License-Identifier: BSD-2-Clause
#include "shims/recorder/originals.h"

#include <dlfcn.h>

#include <cerrno>

// The reference itself must not ask for a C library of 2.34 (shims/libc/compat.cc).
#if defined(__x86_64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
#endif

namespace vabi::recorder {
namespace {

constexpr const char* kNames[] = {
#define VABI_SYM(ret, name, params) #name,
#include "shims/recorder/symbols.def"
#undef VABI_SYM
};
void* g_original[static_cast<size_t>(Symbol::kCount)];

long Missing() {
  errno = ENOSYS;
  return -1;
}

}  // namespace

void* Original(Symbol symbol) {
  const auto index = static_cast<size_t>(symbol);
  void* found = __atomic_load_n(&g_original[index], __ATOMIC_RELAXED);
  if (__builtin_expect(found != nullptr, 1)) return found;
  const int saved = errno;
  found = dlsym(RTLD_NEXT, kNames[index]);
  if (found == nullptr) found = reinterpret_cast<void*>(&Missing);
  errno = saved;
  __atomic_store_n(&g_original[index], found, __ATOMIC_RELAXED);
  return found;
}

}  // namespace vabi::recorder
