// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_LIBC_ORIGINALS_H_
#define VABI_SHIMS_LIBC_ORIGINALS_H_

#include <dirent.h>
#include <ftw.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <utime.h>

#include <cstdint>
#include <cstdio>

// The functions that the wrappers stand before. Looked up on first use: libc may call us before any
// constructor of ours has run.

#define VABI_LIKELY(x) __builtin_expect(!!(x), 1)
#define VABI_UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace vabi::libc {

enum class Symbol : uint16_t {
#define VABI_SYM(ret, name, params, version) name,
#include "shims/libc/symbols.def"
#undef VABI_SYM
  kCount
};

extern void* g_original[static_cast<size_t>(Symbol::kCount)];

// The next definition of the symbol after ours; where there is none, a function that fails with
// ENOSYS.
void* FindOriginal(Symbol symbol);

namespace original {
#define VABI_SYM(ret, name, params, version)                                               \
  inline auto name() {                                                                     \
    using Function = ret(*) params;                                                        \
    void* found =                                                                          \
        __atomic_load_n(&g_original[static_cast<size_t>(Symbol::name)], __ATOMIC_RELAXED); \
    if (VABI_UNLIKELY(found == nullptr)) found = FindOriginal(Symbol::name);               \
    return reinterpret_cast<Function>(found);                                              \
  }
#include "shims/libc/symbols.def"
#undef VABI_SYM
}  // namespace original

}  // namespace vabi::libc

// The exported wrappers, wrap_NAME in C++, NAME for the linker.
extern "C" {
#define VABI_SYM(ret, name, params, version) \
  __attribute__((visibility("default"))) ret wrap_##name params __asm__(#name);
#include "shims/libc/symbols.def"
#undef VABI_SYM
}

#endif  // VABI_SHIMS_LIBC_ORIGINALS_H_
