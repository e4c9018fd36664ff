// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_ACCESS_MODE_H_
#define VABI_SHIMS_ACCESS_MODE_H_

#include <fcntl.h>

#include <cerrno>

namespace vabi {

// O_RDONLY, O_WRONLY or O_RDWR, or 3 (neither), as a node was opened: FMODE_READ and FMODE_WRITE of
// fs/open.c:do_dentry_open, which fs/read_write.c asks first.
class AccessMode {
 public:
  AccessMode() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): open's flags are what it is
  AccessMode(int flags) : mode_(flags & O_ACCMODE) {}
  // 0, or -EBADF.
  int CheckRead() const { return mode_ == O_RDONLY || mode_ == O_RDWR ? 0 : -EBADF; }
  // The same of a node that nothing reads from (no read in its file_operations): -EBADF or -EINVAL.
  int RefuseRead() const { return CheckRead() != 0 ? -EBADF : -EINVAL; }
  int CheckWrite() const { return mode_ == O_WRONLY || mode_ == O_RDWR ? 0 : -EBADF; }

 private:
  int mode_ = O_RDWR;
};

}  // namespace vabi

#endif  // VABI_SHIMS_ACCESS_MODE_H_
