// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_LIBC_PATH_FILE_H_
#define VABI_SHIMS_LIBC_PATH_FILE_H_

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>

#include "harness/world/image.h"
#include "shims/file.h"

namespace vabi::libc {

// A device node that was opened with O_PATH: nothing of the device is open (fs/file.c:__fget_light
// refuses FMODE_PATH).
class PathFile : public File {
 public:
  explicit PathFile(const NodeView& node) : node_(node) {}

  ssize_t Read(void*, size_t, bool) override { return -EBADF; }
  ssize_t Write(const void*, size_t) override { return -EBADF; }
  int CheckRead() const override { return -EBADF; }
  int CheckWrite() const override { return -EBADF; }
  bool PathOnly() const override { return true; }
  long Ioctl(unsigned long, void*) override { return -EBADF; }
  long Mmap(void*, size_t, int, int, int64_t) override { return -EBADF; }
  bool StatAs(unsigned int* mode, uint64_t* rdev) const override {
    *mode = (node_.kind == 0 ? S_IFCHR : S_IFREG) | (node_.mode & 07777);
    *rdev = node_.kind == 0 ? makedev(node_.major, node_.minor) : 0;
    return true;
  }
  const char* Name() const override { return node_.path; }

 private:
  const NodeView& node_;
};

}  // namespace vabi::libc

#endif  // VABI_SHIMS_LIBC_PATH_FILE_H_
