// SPDX-License-Identifier: BSD-2-Clause
#include "shims/file.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

namespace vabi {

// The answers of a file that has no such operation (fs/read_write.c, fs/ioctl.c, mm/mmap.c,
// net/socket.c).
ssize_t File::Read(void*, size_t, bool) { return -EINVAL; }
ssize_t File::Write(const void*, size_t) { return -EINVAL; }
long File::Ioctl(unsigned long, void*) { return -ENOTTY; }
long File::Mmap(void*, size_t, int, int, int64_t) { return -ENODEV; }
bool File::StatAs(unsigned int*, uint64_t*) const { return false; }
bool File::IsNode() const {
  unsigned mode = 0;
  uint64_t rdev = 0;
  return StatAs(&mode, &rdev) && S_ISCHR(mode);
}
short File::PollAs(bool readable) const { return readable ? POLLIN | POLLRDNORM : 0; }
ssize_t File::Send(const void*, size_t) { return -ENOTSOCK; }

}  // namespace vabi
