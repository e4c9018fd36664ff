// SPDX-License-Identifier: BSD-2-Clause
#include "shims/libc/originals.h"

#include <dlfcn.h>

#include <cerrno>

// Not through compat.cc: RTLD_NEXT is understood from the caller's address, which must be ours
// either way, but the reference itself must not ask for a C library of 2.34.
#if defined(__x86_64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dlvsym,dlvsym@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
__asm__(".symver dlvsym,dlvsym@GLIBC_2.17");
#endif

namespace vabi::libc {

void* g_original[static_cast<size_t>(Symbol::kCount)];

namespace {

struct Name {
  const char* name;
  const char* version;
};
constexpr Name kNames[] = {
#define VABI_SYM(ret, name, params, version) {#name, version},
#include "shims/libc/symbols.def"
#undef VABI_SYM
};

long Missing() {
  errno = ENOSYS;
  return -1;
}

}  // namespace

void* FindOriginal(Symbol symbol) {
  const Name& row = kNames[static_cast<size_t>(symbol)];
  const int saved = errno;
  // Other architectures start at other versions: of what is kept for old programs alone no default
  // is found, otherwise it is right.
  void* found = row.version ? dlvsym(RTLD_NEXT, row.name, row.version) : nullptr;
#if defined(__i386__)
  if (found == nullptr && row.version) found = dlvsym(RTLD_NEXT, row.name, "GLIBC_2.0");
  if (found == nullptr && row.version) found = dlvsym(RTLD_NEXT, row.name, "GLIBC_2.2");
#endif
  if (found == nullptr) found = dlsym(RTLD_NEXT, row.name);
  if (found == nullptr) found = reinterpret_cast<void*>(&Missing);
  errno = saved;
  __atomic_store_n(&g_original[static_cast<size_t>(symbol)], found, __ATOMIC_RELAXED);
  return found;
}

}  // namespace vabi::libc
