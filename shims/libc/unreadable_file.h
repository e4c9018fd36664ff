// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_LIBC_UNREADABLE_FILE_H_
#define VABI_SHIMS_LIBC_UNREADABLE_FILE_H_

#include <sys/stat.h>

#include <cerrno>

#include "shims/file.h"

namespace vabi::libc {

// A sysfs file whose show function fails: it opens, and read answers with an errno.
class UnreadableFile : public File {
 public:
  explicit UnreadableFile(int error) : error_(error) {}

  ssize_t Read(void*, size_t, bool) override { return -error_; }
  ssize_t Write(const void*, size_t) override { return -EBADF; }
  long Ioctl(unsigned long, void*) override { return -ENOTTY; }
  bool StatAs(unsigned int* mode, uint64_t* rdev) const override {
    *mode = S_IFREG | 0444;
    *rdev = 0;
    return true;
  }
  const char* Name() const override { return ""; }

 private:
  int error_;
};

}  // namespace vabi::libc

#endif  // VABI_SHIMS_LIBC_UNREADABLE_FILE_H_
