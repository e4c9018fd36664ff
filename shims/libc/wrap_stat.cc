// SPDX-License-Identifier: BSD-2-Clause
// Asking for a file's attributes.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>

#include "shims/libc/attributes.h"
#include "shims/libc/descriptors.h"
#include "shims/libc/originals.h"
#include "shims/libc/paths.h"
#include "shims/sys/sys.h"

namespace vabi::libc {
namespace {

// What `ask` fills in, in the layout of the name that was called.
template <typename Ask>
int InShape(struct ::stat64* out, Ask ask) {
  return Answer(ask(out));
}
#if defined(__i386__)
// glibc: sysdeps/unix/sysv/linux/xstatconv.c, stat.c: EOVERFLOW for what 32 bits do not hold.
template <typename Ask>
int InShape(struct ::stat* out, Ask ask) {
  struct ::stat64 wide;
  const int result = ask(&wide);
  if (result != 0) return Answer(result);
  struct ::stat narrow = {};
  narrow.st_dev = wide.st_dev;
  narrow.st_ino = static_cast<ino_t>(wide.st_ino);
  narrow.st_mode = wide.st_mode;
  narrow.st_nlink = wide.st_nlink;
  narrow.st_uid = wide.st_uid;
  narrow.st_gid = wide.st_gid;
  narrow.st_rdev = wide.st_rdev;
  narrow.st_size = static_cast<off_t>(wide.st_size);
  narrow.st_blksize = wide.st_blksize;
  narrow.st_blocks = static_cast<blkcnt_t>(wide.st_blocks);
  narrow.st_atim = wide.st_atim;
  narrow.st_mtim = wide.st_mtim;
  narrow.st_ctim = wide.st_ctim;
  const bool fits = narrow.st_ino == wide.st_ino && narrow.st_size == wide.st_size &&
                    narrow.st_blocks == wide.st_blocks;
  if (!fits) return Answer(-EOVERFLOW);
  return Answer(sys::CopyToUser(reinterpret_cast<uintptr_t>(out), &narrow, sizeof narrow));
}
#else
template <typename Ask>
int InShape(struct ::stat* out, Ask ask) {
  return Answer(ask(reinterpret_cast<struct ::stat64*>(out)));
}
#endif

int StatAnywhere(int dirfd, const char* path, struct ::stat64* out, int flags) {
  Located where;
  Locate(dirfd, path, &where, !(flags & AT_SYMLINK_NOFOLLOW));
  if (where.kind != Located::Kind::kNative) return StatLocated(where, flags, out);
  return sys::StatAt(dirfd, path, out, flags);
}

template <typename Stat>
[[gnu::noinline]] int StatConcerned(int dirfd, const char* path, Stat* out, int flags) {
  return InShape(out,
                 [&](struct ::stat64* wide) { return StatAnywhere(dirfd, path, wide, flags); });
}

template <typename Stat>
int StatFd(int fd, Stat* out) {
  return InShape(out, [&](struct ::stat64* wide) { return StatDescriptor(fd, wide); });
}

// An empty path with AT_EMPTY_PATH asks for the descriptor itself.
bool AsksDescriptor(const char* path, int flags) {
  return (flags & AT_EMPTY_PATH) && (path == nullptr || (CanRead(path) && path[0] == '\0'));
}

[[gnu::noinline]] int AccessConcerned(int dirfd, const char* path, int mode, int flags) {
  Located where;
  Locate(dirfd, path, &where, !(flags & AT_SYMLINK_NOFOLLOW));
  if (where.kind != Located::Kind::kNative) {
    if (mode & ~(R_OK | W_OK | X_OK)) return Answer(-EINVAL);  // fs/open.c:do_faccessat
    return Answer(AccessLocated(where, mode, flags));
  }
  return original::faccessat()(dirfd, path, mode, flags);
}

}  // namespace
}  // namespace vabi::libc

using namespace vabi::libc;  // NOLINT: this file defines libc's names

#define VABI_STAT_BY_PATH(name, flags, type)                                \
  int wrap_##name(const char* path, struct ::type* out) {                   \
    if (VABI_LIKELY(!MayConcern(path))) return original::name()(path, out); \
    return StatConcerned(AT_FDCWD, path, out, flags);                       \
  }
VABI_STAT_BY_PATH(stat, 0, stat)
VABI_STAT_BY_PATH(stat64, 0, stat64)
VABI_STAT_BY_PATH(lstat, AT_SYMLINK_NOFOLLOW, stat)
VABI_STAT_BY_PATH(lstat64, AT_SYMLINK_NOFOLLOW, stat64)

// Binaries built before glibc 2.33. The version is 0 or 1 on 64-bit machines, and both have one
// layout; on i386 it is 3, and 1 is the layout of a kernel's that no program of this age asks for
// (glibc: bits/struct_stat.h).
#define VABI_XSTAT_BY_PATH(name, flags, type)                                        \
  int wrap_##name(int version, const char* path, struct ::type* out) {               \
    if (VABI_LIKELY(!MayConcern(path))) return original::name()(version, path, out); \
    return StatConcerned(AT_FDCWD, path, out, flags);                                \
  }
VABI_XSTAT_BY_PATH(__xstat, 0, stat)
VABI_XSTAT_BY_PATH(__xstat64, 0, stat64)
VABI_XSTAT_BY_PATH(__lxstat, AT_SYMLINK_NOFOLLOW, stat)
VABI_XSTAT_BY_PATH(__lxstat64, AT_SYMLINK_NOFOLLOW, stat64)

int wrap_fstat(int fd, struct ::stat* out) {
  if (VABI_LIKELY(BitsOf(fd) == 0)) return original::fstat()(fd, out);
  return StatFd(fd, out);
}
int wrap_fstat64(int fd, struct ::stat64* out) {
  if (VABI_LIKELY(BitsOf(fd) == 0)) return original::fstat64()(fd, out);
  return StatFd(fd, out);
}
int wrap___fxstat(int version, int fd, struct ::stat* out) {
  if (VABI_LIKELY(BitsOf(fd) == 0)) return original::__fxstat()(version, fd, out);
  return StatFd(fd, out);
}
int wrap___fxstat64(int version, int fd, struct ::stat64* out) {
  if (VABI_LIKELY(BitsOf(fd) == 0)) return original::__fxstat64()(version, fd, out);
  return StatFd(fd, out);
}

int wrap_fstatat(int dirfd, const char* path, struct ::stat* out, int flags) {
  if (VABI_UNLIKELY(AsksDescriptor(path, flags) && BitsOf(dirfd) != 0)) {
    return StatFd(dirfd, out);
  }
  if (VABI_LIKELY(!MayConcern(dirfd, path))) return original::fstatat()(dirfd, path, out, flags);
  return StatConcerned(dirfd, path, out, flags);
}
int wrap_fstatat64(int dirfd, const char* path, struct ::stat64* out, int flags) {
  if (VABI_UNLIKELY(AsksDescriptor(path, flags) && BitsOf(dirfd) != 0)) {
    return StatFd(dirfd, out);
  }
  if (VABI_LIKELY(!MayConcern(dirfd, path))) return original::fstatat64()(dirfd, path, out, flags);
  return StatConcerned(dirfd, path, out, flags);
}
int wrap___fxstatat(int version, int dirfd, const char* path, struct ::stat* out, int flags) {
  if (VABI_LIKELY(!MayConcern(dirfd, path))) {
    return original::__fxstatat()(version, dirfd, path, out, flags);
  }
  return StatConcerned(dirfd, path, out, flags);
}
int wrap___fxstatat64(int version, int dirfd, const char* path, struct ::stat64* out, int flags) {
  if (VABI_LIKELY(!MayConcern(dirfd, path))) {
    return original::__fxstatat64()(version, dirfd, path, out, flags);
  }
  return StatConcerned(dirfd, path, out, flags);
}

int wrap_statx(int dirfd, const char* path, int flags, unsigned mask, struct ::statx* out) {
  if (VABI_UNLIKELY(AsksDescriptor(path, flags) && BitsOf(dirfd) != 0)) {
    return Answer(StatxDescriptor(dirfd, flags, mask, out));
  }
  if (VABI_LIKELY(!MayConcern(dirfd, path)))
    return original::statx()(dirfd, path, flags, mask, out);
  Located where;
  Locate(dirfd, path, &where, !(flags & AT_SYMLINK_NOFOLLOW));
  if (where.kind == Located::Kind::kNative) return original::statx()(dirfd, path, flags, mask, out);
  return Answer(StatxLocated(where, flags, mask, out));
}

int wrap_access(const char* path, int mode) {
  if (VABI_LIKELY(!MayConcern(path))) return original::access()(path, mode);
  return AccessConcerned(AT_FDCWD, path, mode, 0);
}
int wrap_eaccess(const char* path, int mode) {
  if (VABI_LIKELY(!MayConcern(path))) return original::eaccess()(path, mode);
  return AccessConcerned(AT_FDCWD, path, mode, AT_EACCESS);
}
int wrap_euidaccess(const char* path, int mode) {
  if (VABI_LIKELY(!MayConcern(path))) return original::euidaccess()(path, mode);
  return AccessConcerned(AT_FDCWD, path, mode, AT_EACCESS);
}
int wrap_faccessat(int dirfd, const char* path, int mode, int flags) {
  if (VABI_LIKELY(!MayConcern(dirfd, path))) return original::faccessat()(dirfd, path, mode, flags);
  return AccessConcerned(dirfd, path, mode, flags);
}

// The file system's own answers: those of the place where the tree stands, but for its kind, by
// which programs know sysfs (include/uapi/linux/magic.h).
namespace {
template <typename Out>
int WithKind(int result, Out* out, bool sysfs, bool dev) {
  constexpr uint32_t kSysfsMagic = 0x62656572, kTmpfsMagic = 0x01021994;
  if constexpr (requires { out->f_spare; }) {  // statvfs has no kind
    if (result == 0 && sysfs) out->f_type = kSysfsMagic;
    if (result == 0 && dev) out->f_type = kTmpfsMagic;
  }
  return result;
}
}  // namespace

#define VABI_STATFS_BY_PATH(name, type)                                        \
  int wrap_##name(const char* path, struct ::type* out) {                      \
    if (VABI_LIKELY(!MayConcern(path))) return original::name()(path, out);    \
    Located where;                                                             \
    Locate(AT_FDCWD, path, &where);                                            \
    if (where.kind != Located::Kind::kNative) path = where.real;               \
    return WithKind(original::name()(path, out), out, where.sysfs, where.dev); \
  }
VABI_STATFS_BY_PATH(statfs, statfs)
VABI_STATFS_BY_PATH(statfs64, statfs64)
#define VABI_STATFS_BY_DESCRIPTOR(name, type)                                               \
  int wrap_##name(int fd, struct ::type* out) {                                             \
    const int result = original::name()(fd, out);                                           \
    if (VABI_LIKELY(BitsOf(fd) == 0)) return result;                                        \
    const std::shared_ptr<vabi::File> file = vabi::FdTable::Get(fd);                        \
    const bool dev = (BitsOf(fd) & kDevFolder) != 0 || (file != nullptr && file->IsNode()); \
    return WithKind(result, out, (BitsOf(fd) & kSysfs) != 0, dev);                          \
  }
VABI_STATFS_BY_DESCRIPTOR(fstatfs, statfs)
VABI_STATFS_BY_DESCRIPTOR(fstatfs64, statfs64)
VABI_STATFS_BY_PATH(statvfs, statvfs)
VABI_STATFS_BY_PATH(statvfs64, statvfs64)

// Extended attributes: sysfs and devtmpfs have none that programs look for (ls asks for access
// lists).
#define VABI_XATTR_BY_PATH(name, follow, parameters, arguments)            \
  ssize_t wrap_##name parameters {                                         \
    if (VABI_LIKELY(!MayConcern(path))) return original::name() arguments; \
    Located where;                                                         \
    Locate(AT_FDCWD, path, &where, follow);                                \
    if (where.kind != Located::Kind::kNative) path = where.real;           \
    return original::name() arguments;                                     \
  }
VABI_XATTR_BY_PATH(getxattr, true, (const char* path, const char* name, void* value, size_t size),
                   (path, name, value, size))
VABI_XATTR_BY_PATH(lgetxattr, false, (const char* path, const char* name, void* value, size_t size),
                   (path, name, value, size))
VABI_XATTR_BY_PATH(listxattr, true, (const char* path, char* list, size_t size), (path, list, size))
VABI_XATTR_BY_PATH(llistxattr, false, (const char* path, char* list, size_t size),
                   (path, list, size))
