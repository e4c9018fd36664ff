// SPDX-License-Identifier: BSD-2-Clause
// Changing files by their paths: making, removing, renaming them, their owners, modes and times.
// A world's files are as they are: nothing of a call about them may reach the machine's own /dev
// and /sys, where the same names may be a real device's, nor the trees that worlds share.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <utime.h>

#include <cstdio>

#include "shims/libc/attributes.h"
#include "shims/libc/originals.h"
#include "shims/libc/paths.h"

namespace vabi::libc {
namespace {

enum class Change : uint8_t {
  kMake,
  kRemoveFile,
  kRemoveFolder,
  kLook,     // owner, mode, times, extended attributes
  kContent,  // its length
};

// Not only redirected: a part of the world.
bool IsOurs(const Located& where) {
  return where.sysfs || where.dev || where.kind == Located::Kind::kNode;
}

int Unmodelled(const char* call) {
  char text[80];
  std::snprintf(text, sizeof text, "%s: files of the world cannot be changed", call);
  TraceEvent("unmodelled", text);
  return -EROFS;
}

// fs/namei.c: may_create, may_delete, then what the folder's file system offers. sysfs offers
// nothing: fs/kernfs/dir.c: kernfs_dir_iops without a kernfs_syscall_ops, and no unlink, symlink or
// mknod. Folders of sysfs are root's alone to write in.
int RefuseInSysfs(const Located& where, Change change, const struct ::stat64& st) {
  if (const int error = CheckAccess(0755, 0, 0, W_OK | X_OK)) return error;
  const bool folder = where.kind == Located::Kind::kRedirected && S_ISDIR(st.st_mode);
  if (change == Change::kRemoveFile && folder) return -EISDIR;
  if (change == Change::kRemoveFolder && !folder) return -ENOTDIR;
  return -EPERM;
}

int Refuse(const Located& where, Change change, bool follow, const char* call) {
  struct ::stat64 st = {};
  const int found = StatLocated(where, follow ? 0 : AT_SYMLINK_NOFOLLOW, &st);
  if (change == Change::kMake) {
    if (found == 0) return -EEXIST;
  } else if (found < 0) {
    return found;
  }
  // fs/open.c: vfs_truncate
  if (change == Change::kContent && !S_ISREG(st.st_mode))
    return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
  const bool inside = change != Change::kLook && change != Change::kContent;
  return where.sysfs && inside ? RefuseInSysfs(where, change, st) : Unmodelled(call);
}

// Where the path leads, if that is the world's business.
bool Concerns(int dirfd, const char* path, bool follow, Located* where) {
  if (VABI_LIKELY(!MayConcern(dirfd, path))) return false;
  Locate(dirfd, path, where, follow);
  return where->kind != Located::Kind::kNative;
}

// `native(dirfd, path)` makes the call.
template <typename Native>
int At(int dirfd, const char* path, bool follow, Change change, const char* call, Native native) {
  Located where;
  if (VABI_LIKELY(!Concerns(dirfd, path, follow, &where))) {
    const int result = native(dirfd, path);
    if (VABI_LIKELY(result == 0 || !follow || errno != ENOENT || !Active())) return result;
    // A link of the machine's into the world.
    char target[kMaxPath];
    if (path == nullptr || !LeadsIntoWorld(dirfd, path, target)) return result;
    if (!Concerns(dirfd, target, follow, &where)) return result;
  }
  if (!IsOurs(where)) return native(AT_FDCWD, where.real);
  return Answer(Refuse(where, change, follow, call));
}

template <typename Native>
int Here(const char* path, bool follow, Change change, const char* call, Native native) {
  return At(AT_FDCWD, path, follow, change, call,
            [&](int, const char* where) { return native(where); });
}

// rename and link: of two mounts, nothing is looked at but that (fs/namei.c: do_renameat2,
// do_linkat). `old_change`: what the old name would suffer.
template <typename Native>
int Between(int old_dirfd, const char* old_path, int new_dirfd, const char* new_path,
            Change old_change, bool follow, const char* call, Native native) {
  Located from, to;
  const bool old_concerns = Concerns(old_dirfd, old_path, follow, &from);
  const bool new_concerns = Concerns(new_dirfd, new_path, false, &to);
  if (VABI_LIKELY(!old_concerns && !new_concerns))
    return native(old_dirfd, old_path, new_dirfd, new_path);
  const bool old_ours = old_concerns && IsOurs(from), new_ours = new_concerns && IsOurs(to);
  if (!old_ours && !new_ours) {
    return native(old_dirfd, old_concerns ? from.real : old_path, new_dirfd,
                  new_concerns ? to.real : new_path);
  }
  if (old_ours != new_ours || from.sysfs != to.sysfs) return Answer(-EXDEV);
  struct ::stat64 st = {};
  const int found = StatLocated(from, AT_SYMLINK_NOFOLLOW, &st);
  if (found < 0) return Answer(found);
  if (!from.sysfs) return Answer(Unmodelled(call));
  const Change change = S_ISDIR(st.st_mode) ? Change::kRemoveFolder : old_change;
  return Answer(RefuseInSysfs(from, change, st));
}

// The same by a descriptor.
bool IsOursByFd(int fd) { return (BitsOf(fd) & (kFake | kSysfs | kDevFolder)) != 0; }

}  // namespace
}  // namespace vabi::libc

using namespace vabi::libc;  // NOLINT: this file defines libc's names

// VABI_HERE(name, follow, change, (parameters behind the path), arguments behind the path)
#define VABI_PARAMS(...) __VA_OPT__(, ) __VA_ARGS__
#define VABI_HERE(name, follow, change, params, ...)                          \
  int wrap_##name(const char* path VABI_PARAMS params) {                      \
    return Here(path, follow, Change::change, #name, [&](const char* where) { \
      return original::name()(where __VA_OPT__(, ) __VA_ARGS__);              \
    });                                                                       \
  }
#define VABI_AT(name, follow, change, params, ...)                                             \
  int wrap_##name(int dirfd, const char* path VABI_PARAMS params) {                            \
    return At(dirfd, path, follow, Change::change, #name, [&](int folder, const char* where) { \
      return original::name()(folder, where __VA_OPT__(, ) __VA_ARGS__);                       \
    });                                                                                        \
  }
#define VABI_FD(name, params, ...)                                                          \
  int wrap_##name(int fd VABI_PARAMS params) {                                              \
    return VABI_UNLIKELY(IsOursByFd(fd)) ? Answer(Unmodelled(#name))                        \
                                         : original::name()(fd __VA_OPT__(, ) __VA_ARGS__); \
  }

VABI_HERE(chmod, true, kLook, (mode_t mode), mode)
VABI_AT(fchmodat, !(flags & AT_SYMLINK_NOFOLLOW), kLook, (mode_t mode, int flags), mode, flags)
VABI_FD(fchmod, (mode_t mode), mode)
VABI_HERE(chown, true, kLook, (uid_t user, gid_t group), user, group)
VABI_HERE(lchown, false, kLook, (uid_t user, gid_t group), user, group)
VABI_AT(fchownat, !(flags & AT_SYMLINK_NOFOLLOW), kLook, (uid_t user, gid_t group, int flags), user,
        group, flags)
VABI_FD(fchown, (uid_t user, gid_t group), user, group)
VABI_HERE(utime, true, kLook, (const struct ::utimbuf* times), times)
VABI_HERE(utimes, true, kLook, (const struct ::timeval times[2]), times)
VABI_HERE(lutimes, false, kLook, (const struct ::timeval times[2]), times)
VABI_FD(futimes, (const struct ::timeval times[2]), times)
VABI_FD(futimens, (const struct ::timespec times[2]), times)
VABI_HERE(setxattr, true, kLook, (const char* name, const void* value, size_t size, int flags),
          name, value, size, flags)
VABI_HERE(lsetxattr, false, kLook, (const char* name, const void* value, size_t size, int flags),
          name, value, size, flags)
VABI_FD(fsetxattr, (const char* name, const void* value, size_t size, int flags), name, value, size,
        flags)
VABI_HERE(removexattr, true, kLook, (const char* name), name)
VABI_HERE(lremovexattr, false, kLook, (const char* name), name)
VABI_FD(fremovexattr, (const char* name), name)
VABI_HERE(truncate, true, kContent, (off_t length), length)
VABI_HERE(truncate64, true, kContent, (off64_t length), length)

VABI_HERE(unlink, false, kRemoveFile, ())
VABI_HERE(rmdir, false, kRemoveFolder, ())
VABI_HERE(mkdir, false, kMake, (mode_t mode), mode)
VABI_AT(mkdirat, false, kMake, (mode_t mode), mode)
VABI_HERE(mkfifo, false, kMake, (mode_t mode), mode)
VABI_AT(mkfifoat, false, kMake, (mode_t mode), mode)
VABI_HERE(mknod, false, kMake, (mode_t mode, dev_t device), mode, device)
VABI_AT(mknodat, false, kMake, (mode_t mode, dev_t device), mode, device)

int wrap_utimensat(int dirfd, const char* path, const struct ::timespec times[2], int flags) {
  if (path == nullptr) return wrap_futimens(dirfd, times);
  return At(dirfd, path, !(flags & AT_SYMLINK_NOFOLLOW), Change::kLook, "utimensat",
            [&](int folder, const char* where) {
              return original::utimensat()(folder, where, times, flags);
            });
}
int wrap_unlinkat(int dirfd, const char* path, int flags) {
  return At(dirfd, path, false, flags & AT_REMOVEDIR ? Change::kRemoveFolder : Change::kRemoveFile,
            "unlinkat", [&](int folder, const char* where) {
              return original::unlinkat()(folder, where, flags);
            });
}
// glibc's sysdeps/posix/remove.c: a folder when it is no file.
int wrap_remove(const char* path) {
  Located where;
  if (VABI_LIKELY(!Concerns(AT_FDCWD, path, false, &where))) return original::remove()(path);
  if (wrap_unlink(path) == 0) return 0;
  return errno == EISDIR || errno == EPERM ? wrap_rmdir(path) : -1;
}
int wrap_symlink(const char* target, const char* path) {
  return Here(path, false, Change::kMake, "symlink",
              [&](const char* where) { return original::symlink()(target, where); });
}
int wrap_symlinkat(const char* target, int dirfd, const char* path) {
  return At(dirfd, path, false, Change::kMake, "symlinkat", [&](int folder, const char* where) {
    return original::symlinkat()(target, folder, where);
  });
}
// Binaries built before glibc 2.33.
int wrap___xmknod(int version, const char* path, mode_t mode, dev_t* device) {
  return Here(path, false, Change::kMake, "mknod", [&](const char* where) {
    return original::__xmknod()(version, where, mode, device);
  });
}
int wrap___xmknodat(int version, int dirfd, const char* path, mode_t mode, dev_t* device) {
  return At(dirfd, path, false, Change::kMake, "mknodat", [&](int folder, const char* where) {
    return original::__xmknodat()(version, folder, where, mode, device);
  });
}

int wrap_rename(const char* from, const char* to) {
  return Between(AT_FDCWD, from, AT_FDCWD, to, Change::kRemoveFile, false, "rename",
                 [](int, const char* old_path, int, const char* new_path) {
                   return original::rename()(old_path, new_path);
                 });
}
int wrap_renameat(int old_dirfd, const char* from, int new_dirfd, const char* to) {
  return Between(old_dirfd, from, new_dirfd, to, Change::kRemoveFile, false, "renameat",
                 [](int old_folder, const char* old_path, int new_folder, const char* new_path) {
                   return original::renameat()(old_folder, old_path, new_folder, new_path);
                 });
}
int wrap_renameat2(int old_dirfd, const char* from, int new_dirfd, const char* to, unsigned flags) {
  return Between(old_dirfd, from, new_dirfd, to, Change::kRemoveFile, false, "renameat2",
                 [&](int old_folder, const char* old_path, int new_folder, const char* new_path) {
                   return original::renameat2()(old_folder, old_path, new_folder, new_path, flags);
                 });
}
int wrap_link(const char* from, const char* to) {
  return Between(AT_FDCWD, from, AT_FDCWD, to, Change::kMake, false, "link",
                 [](int, const char* old_path, int, const char* new_path) {
                   return original::link()(old_path, new_path);
                 });
}
int wrap_linkat(int old_dirfd, const char* from, int new_dirfd, const char* to, int flags) {
  return Between(old_dirfd, from, new_dirfd, to, Change::kMake, (flags & AT_SYMLINK_FOLLOW) != 0,
                 "linkat",
                 [&](int old_folder, const char* old_path, int new_folder, const char* new_path) {
                   return original::linkat()(old_folder, old_path, new_folder, new_path, flags);
                 });
}
