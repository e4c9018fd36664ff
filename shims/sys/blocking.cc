// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sys/blocking.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "shims/sys/sys.h"

namespace vabi::sys {

bool IsNonBlocking(int fd) {
  const long flags = Syscall(SYS_fcntl, fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

}  // namespace vabi::sys
