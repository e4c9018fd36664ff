// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_LIBC_INTERCEPTABLE_H_
#define VABI_SHIMS_LIBC_INTERCEPTABLE_H_

#include <cstddef>

namespace vabi::libc {

// Can a program's calls be intercepted by preloading? Decided from the file alone.
enum class Interceptable {
  kYes,
  kScript,      // "#!": its interpreter decides; `detail` holds the interpreter's path
  kUnreadable,  // cannot be opened or read
  kNotElf,      // neither ELF nor script
  kOtherClass,  // another machine or word size than the shim's
  kStatic,      // no dynamic loader: nothing can be preloaded
  kOtherLibc,   // a dynamic loader that is not glibc's (musl); `detail` holds its path
  kSetId,       // the loader ignores preloads of a set-user-id or set-group-id program
};

// `detail` receives a path or stays empty. No allocation: also asked between vfork and exec.
Interceptable Judge(const char* path, char* detail, size_t room);

// "yes", or why not, as a sentence.
const char* Describe(Interceptable verdict);

}  // namespace vabi::libc

#endif  // VABI_SHIMS_LIBC_INTERCEPTABLE_H_
