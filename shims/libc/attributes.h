// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_LIBC_ATTRIBUTES_H_
#define VABI_SHIMS_LIBC_ATTRIBUTES_H_

#include <sys/stat.h>

#include <cstdint>

#include "shims/libc/paths.h"

// How files of the world look to stat, and whether the world's user may open them. All answer 0 or
// -errno.

namespace vabi::libc {

// Every user of a kernel reaches sysfs; the world's files stand where the one who started the
// program put them. Tells, once, of a process that `error` (errno) keeps away from them.
void NoteUnreachable(const Located& where, int error);

// What `real` looks like behind `where`, which is not native. `flags` as for fstatat.
int StatLocated(const Located& where, int flags, struct ::stat64* out);
int StatxLocated(const Located& where, int flags, unsigned mask, struct ::statx* out);
// A descriptor with any FdBits.
int StatDescriptor(int fd, struct ::stat64* out);
int StatxDescriptor(int fd, int flags, unsigned mask, struct ::statx* out);

// May the world's user do `want` (R_OK | W_OK | X_OK) with a file of that mode and owner?
int CheckAccess(uint32_t mode, uint32_t uid, uint32_t gid, int want);
// access() of a file that is not native.
int AccessLocated(const Located& where, int want, int flags);

}  // namespace vabi::libc

#endif  // VABI_SHIMS_LIBC_ATTRIBUTES_H_
