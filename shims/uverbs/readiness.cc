// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/readiness.h"

#include <linux/ioctl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#include <cstdint>

#include "shims/sys/sys.h"

namespace vabi {
namespace {

// include/uapi/linux/timerfd.h
constexpr long kSetTicks = _IOW('T', 0, uint64_t);

long Address(const void* value) { return reinterpret_cast<long>(value); }

}  // namespace

int MakeReadiness() {
  return static_cast<int>(sys::Syscall(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC));
}

void SetReadable(int fd, bool readable) {
  constexpr uint64_t kTicks = 1;
  if (readable && sys::Syscall(SYS_ioctl, fd, kSetTicks, Address(&kTicks)) == 0) return;
  // Setting it takes back what was counted. Where the kernel is built without
  // CONFIG_CHECKPOINT_RESTORE there are no ticks to set, and a time long past does: it is over in
  // the timer's interrupt.
  itimerspec when = {};
  when.it_value.tv_nsec = readable ? 1 : 0;
  const long error = sys::Syscall(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, Address(&when), 0);
  if (readable && error == 0) sys::Poll(fd, POLLIN, 1000);
}

}  // namespace vabi
