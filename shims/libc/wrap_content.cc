// SPDX-License-Identifier: BSD-2-Clause
// What only files with content of their own have: a length, something to be written back. A device
// has neither, whatever stands behind its descriptor.
#include <fcntl.h>

#include "shims/libc/descriptors.h"
#include "shims/libc/originals.h"

using namespace vabi::libc;  // NOLINT: this file defines libc's names

namespace {

bool IsDevice(int fd) {
  if (VABI_LIKELY((BitsOf(fd) & kFake) == 0)) return false;
  const std::shared_ptr<vabi::File> file = vabi::FdTable::Get(fd);
  return file != nullptr && file->IsNode() && !file->PathOnly();
}

// fs/open.c: vfs_fallocate, in its order.
int AllocateIn(int fd, int mode, off64_t offset, off64_t length) {
  constexpr int kPunchHole = FALLOC_FL_PUNCH_HOLE, kKnown = 0x7f;  // FALLOC_FL_SUPPORTED_MASK
  if (offset < 0 || length <= 0) return -EINVAL;
  if (mode & ~kKnown) return -EOPNOTSUPP;
  if ((mode & kPunchHole) && !(mode & FALLOC_FL_KEEP_SIZE)) return -EOPNOTSUPP;
  const std::shared_ptr<vabi::File> file = vabi::FdTable::Get(fd);
  return file == nullptr || file->CheckWrite() == -EBADF ? -EBADF : -ENODEV;
}

}  // namespace

// fs/open.c: do_ftruncate: no regular file.
int wrap_ftruncate(int fd, off_t length) {
  return IsDevice(fd) ? Answer(-EINVAL) : original::ftruncate()(fd, length);
}
int wrap_ftruncate64(int fd, off64_t length) {
  return IsDevice(fd) ? Answer(-EINVAL) : original::ftruncate64()(fd, length);
}

// fs/sync.c: vfs_fsync_range: its file_operations have no fsync.
int wrap_fsync(int fd) { return IsDevice(fd) ? Answer(-EINVAL) : original::fsync()(fd); }
int wrap_fdatasync(int fd) { return IsDevice(fd) ? Answer(-EINVAL) : original::fdatasync()(fd); }

int wrap_fallocate(int fd, int mode, off_t offset, off_t length) {
  return IsDevice(fd) ? Answer(AllocateIn(fd, mode, offset, length))
                      : original::fallocate()(fd, mode, offset, length);
}
int wrap_fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  return IsDevice(fd) ? Answer(AllocateIn(fd, mode, offset, length))
                      : original::fallocate64()(fd, mode, offset, length);
}
// These give the errno itself. glibc's sysdeps/unix/sysv/linux/posix_fallocate.c.
int wrap_posix_fallocate(int fd, off_t offset, off_t length) {
  return IsDevice(fd) ? -AllocateIn(fd, 0, offset, length)
                      : original::posix_fallocate()(fd, offset, length);
}
int wrap_posix_fallocate64(int fd, off64_t offset, off64_t length) {
  return IsDevice(fd) ? -AllocateIn(fd, 0, offset, length)
                      : original::posix_fallocate64()(fd, offset, length);
}
