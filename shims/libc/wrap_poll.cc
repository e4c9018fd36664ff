// SPDX-License-Identifier: BSD-2-Clause
// Waiting. It works natively on the descriptors behind the fake files; poll is also told POLLRDNORM
// of event files, and of their end what this kernel says (select and epoll are not). Waits for a
// device node that will not appear are cut short in a world with virtual time: libibverbs and
// librdmacm watch /dev/char with inotify beside a timer of five seconds
// (util/open_cdev.c:open_cdev_robust).
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "shims/libc/descriptors.h"
#include "shims/libc/originals.h"
#include "shims/libc/readable.h"
#include "shims/libc/state.h"
#include "shims/sys/sys.h"

extern "C" [[noreturn]] void __chk_fail();

namespace vabi::libc {
namespace {

bool IsTimer(int fd) {
  char link[48], target[32] = {};
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long length =
      sys::Syscall(SYS_readlinkat, -100 /* AT_FDCWD */, reinterpret_cast<long>(link),
                   reinterpret_cast<long>(target), sizeof target - 1);
  return length > 0 && std::strcmp(target, "anon_inode:[timerfd]") == 0;
}

// Without a world nothing is looked at.
bool CanReadFds(const struct ::pollfd* fds, nfds_t count) {
  size_t size;
  return Active() && !__builtin_mul_overflow(count, sizeof *fds, &size) && CanReadAll(fds, size);
}

// Lets the timers beside a watch expire at once. True: the wait is of that kind.
bool PassTime(const struct ::pollfd* fds, nfds_t count) {
  uint8_t bits = 0;
  for (nfds_t i = 0; i < count; ++i) bits |= BitsOf(fds[i].fd);
  if (VABI_LIKELY(!(bits & kWatch))) return false;
  const WorldImage* image = Image();
  if (image == nullptr || !image->virtual_time) return false;
  const KeepErrno keep;
  for (nfds_t i = 0; i < count; ++i) {
    if (fds[i].fd < 0 || BitsOf(fds[i].fd) != 0 || !IsTimer(fds[i].fd)) continue;
    struct ::itimerspec soon = {};
    soon.it_value.tv_nsec = 1;
    sys::Syscall(SYS_timerfd_settime, fds[i].fd, 0, reinterpret_cast<long>(&soon), 0);
  }
  return true;
}

bool HasReadOnly(const struct ::pollfd* fds, nfds_t count) {
  uint8_t bits = 0;
  for (nfds_t i = 0; i < count; ++i) bits |= BitsOf(fds[i].fd);
  return (bits & kReadOnly) != 0;
}

// What is asked of the backing descriptors: they are readable when the file is, or when its end has
// come.
void Prepare(const struct ::pollfd& asked, struct ::pollfd* native) {
  *native = asked;
  const auto file = BitsOf(asked.fd) & kReadOnly ? FdTable::Get(asked.fd) : nullptr;
  if (file == nullptr) return;
  if (asked.events & POLLRDNORM) native->events |= POLLIN;
  const short at_end = file->PollAs(true);
  if (at_end & POLLERR) native->events |= POLLIN;
  if (at_end == 0) native->fd = -1;
}

short Answered(const struct ::pollfd& asked, const struct ::pollfd& native) {
  const auto file = BitsOf(asked.fd) & kReadOnly ? FdTable::Get(asked.fd) : nullptr;
  if (file == nullptr) return native.revents;
  const short said = file->PollAs((native.revents & (POLLIN | POLLRDNORM)) != 0);
  return static_cast<short>((native.revents & ~(POLLIN | POLLRDNORM)) |
                            (said & (asked.events | POLLERR)));
}

// `wait` polls what it is given. A file whose end comes meanwhile, and of which poll says nothing,
// is left out the next time: the loop goes round once more for each.
template <typename Wait>
int PollReadOnly(struct ::pollfd* fds, nfds_t count, const Wait& wait) {
  std::vector<struct ::pollfd> native(count);
  for (nfds_t turn = 0;; ++turn) {
    for (nfds_t i = 0; i < count; ++i) Prepare(fds[i], &native[i]);
    const int result = wait(native.data());
    if (result < 0) return result;
    int ready = 0;
    for (nfds_t i = 0; i < count; ++i) {
      fds[i].revents = Answered(fds[i], native[i]);
      ready += fds[i].revents != 0;
    }
    if (ready != 0 || result == 0 || turn == count) return ready;
  }
}

}  // namespace
}  // namespace vabi::libc

using namespace vabi::libc;  // NOLINT: this file defines libc's names

int wrap_poll(struct ::pollfd* fds, nfds_t count, int timeout) {
  if (!CanReadFds(fds, count)) return original::poll()(fds, count, timeout);
  // A watch that has a limit of its own passes it at once.
  if (PassTime(fds, count) && timeout > 0) timeout = 0;
  if (VABI_UNLIKELY(HasReadOnly(fds, count))) {
    return PollReadOnly(fds, count, [&](struct ::pollfd* native) {
      return original::poll()(native, count, timeout);
    });
  }
  return original::poll()(fds, count, timeout);
}
int wrap___poll_chk(struct ::pollfd* fds, nfds_t count, int timeout, size_t room) {
  if (room / sizeof *fds < count) __chk_fail();
  return wrap_poll(fds, count, timeout);
}
int wrap_ppoll(struct ::pollfd* fds, nfds_t count, const struct ::timespec* timeout,
               const sigset_t* mask) {
  if (!CanReadFds(fds, count)) return original::ppoll()(fds, count, timeout, mask);
  const struct ::timespec none = {};
  if (PassTime(fds, count) && timeout != nullptr) timeout = &none;
  if (VABI_UNLIKELY(HasReadOnly(fds, count))) {
    return PollReadOnly(fds, count, [&](struct ::pollfd* native) {
      return original::ppoll()(native, count, timeout, mask);
    });
  }
  return original::ppoll()(fds, count, timeout, mask);
}
