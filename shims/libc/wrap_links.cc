// SPDX-License-Identifier: BSD-2-Clause
// Links, final paths and the current folder: what the process is told never shows where things
// really stand.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "shims/libc/attributes.h"
#include "shims/libc/descriptors.h"
#include "shims/libc/originals.h"
#include "shims/libc/paths.h"
#include "shims/sys/sys.h"

extern "C" [[noreturn]] void __chk_fail();

namespace vabi::libc {
namespace {

ssize_t ReadLink(int dirfd, const char* path, char* buffer, size_t size) {
  if (static_cast<int>(size) <= 0) return -EINVAL;  // fs/stat.c:do_readlinkat
  if (path == nullptr || !CanReadText(path)) return -EFAULT;
  const KeepErrno keep_for_success;
  const int fd = DescriptorLink(path);
  if (fd >= 0 && (BitsOf(fd) & kFake)) {
    const std::shared_ptr<File> file = FdTable::Get(fd);
    const char* name = file != nullptr ? file->Name() : "";
    if (name[0] != '\0') {
      const size_t length = std::min(std::strlen(name), size);
      // Without an end: readlink writes none.
      if (sys::CopyToUser(reinterpret_cast<uintptr_t>(buffer), name, length) != 0) return -EFAULT;
      return static_cast<ssize_t>(length);
    }
  }
  Located where;
  where.kind = Located::Kind::kNative;
  if (MayConcern(dirfd, path)) Locate(dirfd, path, &where, false);
  if (where.kind == Located::Kind::kNode) return where.node->present ? -EINVAL : -ENOENT;
  const bool native = where.kind == Located::Kind::kNative;
  const ssize_t length = sys::Syscall(SYS_readlinkat, native ? dirfd : AT_FDCWD,
                                      reinterpret_cast<long>(native ? path : where.real),
                                      reinterpret_cast<long>(buffer), static_cast<long>(size));
  if (length <= 0 || buffer[0] != '/') return length;
  return static_cast<ssize_t>(MapBackInPlace(buffer, static_cast<size_t>(length), size));
}

char* GiveBack(const char* text, char* into) {
  if (into == nullptr) return strdup(text);
  std::memcpy(into, text, std::strlen(text) + 1);
  return into;
}

char* FinalPath(const char* path, char* resolved, char* (*native)(const char*, char*)) {
  if (!MayConcern(path)) return native(path, resolved);
  Located where;
  Locate(AT_FDCWD, path, &where);
  if (where.kind == Located::Kind::kNative) return native(path, resolved);
  char seen[kMaxPath];
  const int result = CanonicalSeen(where.real, seen);
  if (result < 0) {
    errno = -result;
    return nullptr;
  }
  return GiveBack(seen, resolved);
}

// getcwd of the process' own view. glibc allocates when there is no buffer.
char* CurrentFolder(char* buffer, size_t size, char* (*native)(char*, size_t)) {
  if (!Active() || !g_filter.relative) return native(buffer, size);
  char seen[kMaxPath];
  const long length = sys::Syscall(SYS_getcwd, reinterpret_cast<long>(seen), sizeof seen);
  if (length <= 1) return native(buffer, size);
  MapBackInPlace(seen, static_cast<size_t>(length) - 1, sizeof seen);
  if (buffer == nullptr && size == 0) return strdup(seen);
  if (std::strlen(seen) + 1 > size) {
    errno = ERANGE;
    return nullptr;
  }
  if (buffer == nullptr) {
    buffer = static_cast<char*>(std::malloc(size));
    return buffer == nullptr ? nullptr : GiveBack(seen, buffer);
  }
  if (sys::CopyToUser(reinterpret_cast<uintptr_t>(buffer), seen, std::strlen(seen) + 1) == 0)
    return buffer;
  errno = EFAULT;
  return nullptr;
}

}  // namespace
}  // namespace vabi::libc

using namespace vabi::libc;  // NOLINT: this file defines libc's names

ssize_t wrap_readlink(const char* path, char* buffer, size_t size) {
  if (VABI_LIKELY(!Active())) return original::readlink()(path, buffer, size);
  return Answer(ReadLink(AT_FDCWD, path, buffer, size));
}
ssize_t wrap___readlink_chk(const char* path, char* buffer, size_t size, size_t room) {
  if (size > room) __chk_fail();
  return wrap_readlink(path, buffer, size);
}
ssize_t wrap_readlinkat(int dirfd, const char* path, char* buffer, size_t size) {
  if (VABI_LIKELY(!Active())) return original::readlinkat()(dirfd, path, buffer, size);
  return Answer(ReadLink(dirfd, path, buffer, size));
}
ssize_t wrap___readlinkat_chk(int dirfd, const char* path, char* buffer, size_t size, size_t room) {
  if (size > room) __chk_fail();
  return wrap_readlinkat(dirfd, path, buffer, size);
}

char* wrap_realpath(const char* path, char* resolved) {
  return FinalPath(path, resolved, original::realpath());
}
char* wrap___realpath_chk(const char* path, char* resolved, size_t room) {
  if (room < kMaxPath) __chk_fail();  // as glibc: the buffer must hold any path
  return FinalPath(path, resolved, original::realpath());
}
char* wrap_canonicalize_file_name(const char* path) {
  return FinalPath(path, nullptr, original::realpath());
}

int wrap_chdir(const char* path) {
  Located where;
  where.kind = Located::Kind::kNative;
  if (VABI_UNLIKELY(MayConcern(path))) Locate(AT_FDCWD, path, &where);
  const int result = original::chdir()(where.kind == Located::Kind::kNative ? path : where.real);
  if (result == 0 && Active()) NoteCurrentFolder();
  return result;
}
int wrap_fchdir(int fd) {
  const int result = original::fchdir()(fd);
  if (result == 0 && Active()) NoteCurrentFolder();
  return result;
}

char* wrap_getcwd(char* buffer, size_t size) {
  return CurrentFolder(buffer, size, original::getcwd());
}
char* wrap___getcwd_chk(char* buffer, size_t size, size_t room) {
  if (size > room) __chk_fail();
  return CurrentFolder(buffer, size, original::getcwd());
}
char* wrap_get_current_dir_name() {
  if (!Active() || !g_filter.relative) return original::get_current_dir_name()();
  return CurrentFolder(nullptr, 0, original::getcwd());
}
