// SPDX-License-Identifier: BSD-2-Clause
// Opening by path.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "shims/libc/attributes.h"
#include "shims/libc/descriptors.h"
#include "shims/libc/mapped.h"
#include "shims/libc/originals.h"
#include "shims/libc/path_file.h"
#include "shims/libc/paths.h"
#include "shims/libc/unreadable_file.h"
#include "shims/sys/sys.h"
#include "shims/trace/trace.h"

namespace vabi::libc {
namespace {

bool HasMode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

int Wanted(int flags) {
  switch (flags & O_ACCMODE) {
    case O_RDONLY:
      return R_OK;
    case O_WRONLY:
      return W_OK;
    default:
      return R_OK | W_OK;
  }
}

// The flags that belong to the new descriptor, whatever opened it.
void SetDescriptorFlags(int fd, int flags) {
  sys::Syscall(SYS_fcntl, fd, F_SETFD, flags & O_CLOEXEC ? FD_CLOEXEC : 0);
  const long status = sys::Syscall(SYS_fcntl, fd, F_GETFL);
  const bool has = (status & O_NONBLOCK) != 0, wants = (flags & O_NONBLOCK) != 0;
  if (status >= 0 && has != wants) sys::Syscall(SYS_fcntl, fd, F_SETFL, status ^ O_NONBLOCK);
}

int OpenNode(const Located& where, int flags) {
  const NodeView& node = *where.node;
  if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) return -EEXIST;
  if (flags & O_DIRECTORY) return -ENOTDIR;
  if (flags & O_PATH) {
    const int fd = sys::Open(where.real, flags & ~O_CREAT);
    if (fd >= 0) FdTable::Install(fd, std::make_shared<PathFile>(node));
    return fd;
  }
  if (!InstallFakeKernels()) return -ENXIO;
  TellMapped();  // the plug-ins are there now
  Opened opened;
  const int result = FakeKernel::OpenNode(node.path, flags, &opened);
  if (result > 0) {
    TraceEvent("unmodelled", node.path);
    return -ENXIO;
  }
  if (result < 0) return result;
  if (flags & O_DIRECT) {  // fs/open.c:do_dentry_open, once the device has opened
    sys::Close(opened.fd);
    return -EINVAL;
  }
  SetDescriptorFlags(opened.fd, flags);
  FdTable::Install(opened.fd, std::move(opened.file));
  return opened.fd;
}

// The errno that a file of the tree stands for, when it is marked so (shims/sysfs/write_tree.h).
int HeldErrno(const struct ::stat64& st) {
  return S_ISREG(st.st_mode) && (st.st_mode & S_ISVTX) ? static_cast<int>(st.st_mtim.tv_sec) : 0;
}

// fs/kernfs/file.c:kernfs_fop_open and the permission check before it.
int CheckSysfsOpen(const Located& where, int flags) {
  struct ::stat64 st;
  const int found = StatLocated(where, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, &st);
  if (found < 0) return found == -ENOENT && (flags & O_CREAT) ? -EACCES : found;
  // fs/namei.c:do_open, vfs_tmpfile; fs/open.c:do_dentry_open
  if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) return -EEXIST;
  if (S_ISDIR(st.st_mode)) {
    if ((flags & O_TMPFILE) == O_TMPFILE) return -EOPNOTSUPP;
    if (flags & O_CREAT) return -EISDIR;
    return flags & O_DIRECT ? -EINVAL : 0;
  }
  const int want = Wanted(flags);
  if (!(want & W_OK)) {
    // fs/namei.c:do_open: O_TRUNC asks for writing, and then does nothing to an attribute.
    const int more = flags & O_TRUNC ? W_OK : 0;
    const int allowed = CheckAccess(st.st_mode, st.st_uid, st.st_gid, want | more);
    return allowed == 0 && (flags & O_DIRECT) ? -EINVAL : allowed;
  }
  // Not even root opens a file for writing that has no store function. Where there is one, what it
  // would do is not modelled.
  if (st.st_mode & 0222) TraceEvent("unmodelled", "a sysfs file was opened for writing");
  return -EACCES;
}

// A new file below the world's /dev would stay there for every later run.
int RefuseNewFile() {
  TraceEvent("unmodelled", "open: files of the world cannot be changed");
  return -EROFS;
}

int OpenRedirected(const Located& where, int flags, mode_t mode) {
  if (where.dev && HasMode(flags)) {
    struct ::stat64 st;
    const bool there = StatLocated(where, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, &st) == 0;
    if (!there || (flags & O_TMPFILE) == O_TMPFILE) return RefuseNewFile();
  }
  if (where.sysfs && !(flags & O_PATH)) {
    const int allowed = CheckSysfsOpen(where, flags);
    if (allowed < 0) return allowed;
  }
  const int fd =
      original::open()(where.real, where.sysfs ? flags & ~(O_CREAT | O_TRUNC) : flags, mode);
  if (fd < 0) return -errno;
  struct ::stat64 st;
  if (sys::Fstat(fd, &st) < 0) return fd;
  uint8_t bits = where.sysfs ? kSysfs : 0;
  if (S_ISDIR(st.st_mode) && (where.sysfs || where.dev || where.near)) {
    bits |= kDirectory | (where.dev ? kDevFolder : 0);
  }
  SetBits(fd, bits);
  const int error = where.read_error ? where.read_error : where.sysfs ? HeldErrno(st) : 0;
  if (error != 0 && !(flags & O_PATH)) {
    FdTable::Install(fd, std::make_shared<UnreadableFile>(error));
  }
  return fd;
}

// The trace holds what sysfs told: two kernels that differ in a file only differ in their traces.
// A program that only lists a folder or looks where a link leads leaves no line.
[[gnu::noinline]] void TraceSysfs(const Located& where, int flags, int result) {
  const WorldImage* image = Image();
  if (image == nullptr || !trace::WritesAll(image->trace_path) || (flags & O_PATH) != 0) return;
  const KeepErrno keep;
  if (InOthersMemory() || !InstallFakeKernels()) return;
  char text[4096];
  long length = 0;
  int error = result < 0 ? -result : 0;
  struct ::stat64 st;
  if (result >= 0) {
    if (sys::Fstat(result, &st) < 0 || !S_ISREG(st.st_mode)) return;
    error = where.read_error != 0 ? where.read_error : HeldErrno(st);
    if (error == 0) {
      length = sys::ReadAt(result, text, sizeof text, 0);
      if (length < 0) return;
    }
  }
  trace::Sysfs(where.seen, text, static_cast<size_t>(length), error);
}

// A program may reach the world through a descriptor of a folder above it.
int NoteNative(const Located& where, int fd) {
  if (BitsOf(fd) != 0) Closed(fd);  // closed behind our back
  if (where.near) {
    const KeepErrno keep;
    struct ::stat64 st;
    if (sys::Fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) SetBits(fd, kDirectory);
  }
  return fd;
}

[[gnu::noinline]] int OpenConcerned(int dirfd, const char* path, int flags, mode_t mode) {
  Located where;
  const int saved = errno;
  if (path[0] == '\0') return Answer(-ENOENT);  // fs/namei.c:getname_flags
  Locate(dirfd, path, &where, !(flags & O_NOFOLLOW));
  if (where.kind == Located::Kind::kNative) {
    errno = saved;
    const int fd = original::openat()(dirfd, path, flags, mode);
    return fd < 0 ? fd : NoteNative(where, fd);
  }
  const int result = where.kind == Located::Kind::kNode ? OpenNode(where, flags)
                                                        : OpenRedirected(where, flags, mode);
  if (where.sysfs) TraceSysfs(where, flags, result);
  errno = saved;
  return Answer(result);
}

// The native open failed, with errno.
[[gnu::noinline]] int OpenByLink(int dirfd, const char* path, int flags, mode_t mode) {
  if (errno != ENOENT || !Active() || path == nullptr) return -1;
  char target[kMaxPath];
  if (!LeadsIntoWorld(dirfd, path, target)) return -1;
  return OpenConcerned(dirfd, target, flags, mode);
}

// libc reads and writes streams without asking us, so a stream on a fake file has functions of its
// own. The cookie is the descriptor.
int DescriptorOf(void* cookie) { return static_cast<int>(reinterpret_cast<intptr_t>(cookie)); }
ssize_t StreamRead(void* cookie, char* buffer, size_t size) {
  return wrap_read(DescriptorOf(cookie), buffer, size);
}
ssize_t StreamWrite(void* cookie, const char* buffer, size_t size) {
  const ssize_t result = wrap_write(DescriptorOf(cookie), buffer, size);
  return result < 0 ? 0 : result;  // as fopencookie wants it
}
int StreamClose(void* cookie) { return wrap_close(DescriptorOf(cookie)); }

FILE* FakeStream(int fd, const char* mode) {
  return fopencookie(reinterpret_cast<void*>(static_cast<intptr_t>(fd)), mode,
                     {StreamRead, StreamWrite, nullptr, StreamClose});
}

// fopen's mode.
bool Writes(const char* mode) { return mode[0] != 'r' || std::strchr(mode, '+') != nullptr; }

FILE* OpenStream(const char* path, const char* mode, FILE* (*native)(const char*, const char*)) {
  Located where;
  const int saved = errno;
  Locate(AT_FDCWD, path, &where);
  if (where.kind == Located::Kind::kNative) {
    errno = saved;
    return native(path, mode);
  }
  const bool writes = Writes(mode);
  if (!where.sysfs && where.kind != Located::Kind::kNode && !(where.dev && writes)) {
    errno = saved;
    return native(where.real, mode);
  }
  // Attribute files and nodes exist or not: nothing that a mode of fopen could add.
  const int creates = where.dev && mode[0] != 'r' ? O_CREAT : 0;
  const int fd = OpenConcerned(AT_FDCWD, path, (writes ? O_RDWR : O_RDONLY) | creates, 0666);
  if (fd < 0) return nullptr;
  FILE* stream = BitsOf(fd) & kFake ? FakeStream(fd, mode) : original::fdopen()(fd, mode);
  if (stream == nullptr) wrap_close(fd);
  return stream;
}

[[gnu::noinline]] FILE* StreamByLink(const char* path, const char* mode,
                                     FILE* (*native)(const char*, const char*)) {
  if (errno != ENOENT || !Active() || path == nullptr) return nullptr;
  char target[kMaxPath];
  return LeadsIntoWorld(AT_FDCWD, path, target) ? OpenStream(target, mode, native) : nullptr;
}

FILE* ReopenStream(const char* path, const char* mode, FILE* stream,
                   FILE* (*native)(const char*, const char*, FILE*)) {
  Located where;
  if (path == nullptr || !MayConcern(path)) return native(path, mode, stream);
  Locate(AT_FDCWD, path, &where);
  const bool writes = Writes(mode);
  const bool node = where.kind == Located::Kind::kNode;
  if (node || ((where.sysfs || where.dev) && writes)) {
    if (!where.sysfs) TraceEvent("unmodelled", "freopen: a node, or a new file beside one");
    native("", mode, stream);  // fails, and closes the stream as any failure does
    errno = where.sysfs ? EACCES : node ? ENXIO : EROFS;
    return nullptr;
  }
  return native(where.kind == Located::Kind::kNative ? path : where.real, mode, stream);
}

}  // namespace
}  // namespace vabi::libc

using namespace vabi::libc;  // NOLINT: this file defines libc's names

#define VABI_MODE_ARGUMENT(mode) \
  mode_t mode = 0;               \
  if (HasMode(flags)) {          \
    va_list list;                \
    va_start(list, flags);       \
    mode = va_arg(list, mode_t); \
    va_end(list);                \
  }

// After a native open: it may have found no way into the world, or hand out a number that we still
// know as something else.
static inline int Fresh(int fd, int dirfd, const char* path, int flags, mode_t mode) {
  if (VABI_UNLIKELY(fd < 0)) return OpenByLink(dirfd, path, flags, mode);
  if (VABI_UNLIKELY(BitsOf(fd) != 0)) Closed(fd);
  return fd;
}

int wrap_open(const char* path, int flags, ...) {
  VABI_MODE_ARGUMENT(mode);
  if (VABI_LIKELY(!MayConcern(path))) {
    return Fresh(original::open()(path, flags, mode), AT_FDCWD, path, flags, mode);
  }
  return OpenConcerned(AT_FDCWD, path, flags, mode);
}

int wrap_open64(const char* path, int flags, ...) {
  VABI_MODE_ARGUMENT(mode);
  if (VABI_LIKELY(!MayConcern(path))) {
    return Fresh(original::open64()(path, flags, mode), AT_FDCWD, path, flags, mode);
  }
  return OpenConcerned(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int wrap___open_2(const char* path, int flags) {
  if (VABI_LIKELY(!MayConcern(path))) {
    return Fresh(original::__open_2()(path, flags), AT_FDCWD, path, flags, 0);
  }
  return OpenConcerned(AT_FDCWD, path, flags, 0);
}

int wrap___open64_2(const char* path, int flags) {
  if (VABI_LIKELY(!MayConcern(path))) {
    return Fresh(original::__open64_2()(path, flags), AT_FDCWD, path, flags, 0);
  }
  return OpenConcerned(AT_FDCWD, path, flags | O_LARGEFILE, 0);
}

int wrap_openat(int dirfd, const char* path, int flags, ...) {
  VABI_MODE_ARGUMENT(mode);
  if (VABI_LIKELY(!MayConcern(dirfd, path))) {
    return Fresh(original::openat()(dirfd, path, flags, mode), dirfd, path, flags, mode);
  }
  return OpenConcerned(dirfd, path, flags, mode);
}

int wrap_openat64(int dirfd, const char* path, int flags, ...) {
  VABI_MODE_ARGUMENT(mode);
  if (VABI_LIKELY(!MayConcern(dirfd, path))) {
    return Fresh(original::openat64()(dirfd, path, flags, mode), dirfd, path, flags, mode);
  }
  return OpenConcerned(dirfd, path, flags | O_LARGEFILE, mode);
}

int wrap___openat_2(int dirfd, const char* path, int flags) {
  if (VABI_LIKELY(!MayConcern(dirfd, path))) {
    return Fresh(original::__openat_2()(dirfd, path, flags), dirfd, path, flags, 0);
  }
  return OpenConcerned(dirfd, path, flags, 0);
}

int wrap___openat64_2(int dirfd, const char* path, int flags) {
  if (VABI_LIKELY(!MayConcern(dirfd, path))) {
    return Fresh(original::__openat64_2()(dirfd, path, flags), dirfd, path, flags, 0);
  }
  return OpenConcerned(dirfd, path, flags | O_LARGEFILE, 0);
}

int wrap_creat(const char* path, mode_t mode) {
  if (VABI_LIKELY(!MayConcern(path))) {
    return Fresh(original::creat()(path, mode), AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
  }
  return OpenConcerned(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

int wrap_creat64(const char* path, mode_t mode) {
  if (VABI_LIKELY(!MayConcern(path))) {
    return Fresh(original::creat64()(path, mode), AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC,
                 mode);
  }
  return OpenConcerned(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_LARGEFILE, mode);
}

FILE* wrap_fopen(const char* path, const char* mode) {
  if (VABI_UNLIKELY(MayConcern(path))) return OpenStream(path, mode, original::fopen());
  FILE* stream = original::fopen()(path, mode);
  return stream != nullptr ? stream : StreamByLink(path, mode, original::fopen());
}

FILE* wrap_fopen64(const char* path, const char* mode) {
  if (VABI_UNLIKELY(MayConcern(path))) return OpenStream(path, mode, original::fopen64());
  FILE* stream = original::fopen64()(path, mode);
  return stream != nullptr ? stream : StreamByLink(path, mode, original::fopen64());
}

FILE* wrap_freopen(const char* path, const char* mode, FILE* stream) {
  return ReopenStream(path, mode, stream, original::freopen());
}

FILE* wrap_freopen64(const char* path, const char* mode, FILE* stream) {
  return ReopenStream(path, mode, stream, original::freopen64());
}

FILE* wrap_fdopen(int fd, const char* mode) {
  if (VABI_UNLIKELY((BitsOf(fd) & kFake) != 0)) return FakeStream(fd, mode);
  return original::fdopen()(fd, mode);
}

int wrap_fclose(FILE* stream) {
  {
    const KeepErrno keep;  // fileno of a stream without descriptor sets it
    const int fd = stream != nullptr ? fileno(stream) : -1;
    if (VABI_UNLIKELY(fd >= 0 && BitsOf(fd) != 0)) Closed(fd);
  }
  return original::fclose()(stream);
}

int wrap_inotify_add_watch(int fd, const char* path, uint32_t mask) {
  if (VABI_LIKELY(!MayConcern(path))) return original::inotify_add_watch()(fd, path, mask);
  Located where;
  Locate(AT_FDCWD, path, &where);
  if (where.kind == Located::Kind::kNative) return original::inotify_add_watch()(fd, path, mask);
  const int watch = original::inotify_add_watch()(fd, where.real, mask);
  if (watch >= 0 && where.dev) SetBits(fd, BitsOf(fd) | kWatch);
  return watch;
}
