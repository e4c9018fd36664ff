// SPDX-License-Identifier: BSD-2-Clause
// Raw system calls go past every wrapper. What they do to a fake descriptor cannot be made right
// here, but it is named in the trace, so that the outcome is not taken for a pass.
#include <sys/syscall.h>

#include <cstdarg>

#include "shims/libc/descriptors.h"
#include "shims/libc/originals.h"

namespace {

// Calls whose first argument is a descriptor that may be ours.
bool TakesDescriptor(long number) {
  switch (number) {
    case SYS_read:
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
    case SYS_ioctl:
    case SYS_fstat:
    case SYS_sendmsg:
    case SYS_recvmsg:
    case SYS_sendto:
    case SYS_recvfrom:
      return true;
    default:
      return false;
  }
}

}  // namespace

long wrap_syscall(long number, ...) {
  using namespace vabi::libc;  // NOLINT: this file defines libc's names
  long a[6];
  va_list list;
  va_start(list, number);
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  const int fd = static_cast<int>(a[0]);
  if (VABI_UNLIKELY((BitsOf(fd) & kFake) != 0)) {
    if (TakesDescriptor(number)) {
      TraceEvent("not_intercepted", "a raw system call on a fake descriptor");
    } else if (number == SYS_close) {
      const KeepErrno keep;
      Closed(fd);
    }
  }
  return original::syscall()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
