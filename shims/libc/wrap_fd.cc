// SPDX-License-Identifier: BSD-2-Clause
// The life of descriptors.
#include <fcntl.h>

#include <climits>
#include <cstdarg>

#include "shims/libc/descriptors.h"
#include "shims/libc/originals.h"

using namespace vabi::libc;  // NOLINT: this file defines libc's names

namespace {

// include/uapi/linux/close_range.h
constexpr int kCloseRangeCloexec = 4;

int DuplicateTo(int fd, int target, int result) {
  if (result >= 0 && VABI_UNLIKELY((BitsOf(fd) | BitsOf(target)) != 0)) {
    const KeepErrno keep;
    Duplicated(fd, target);
  }
  return result;
}

int Control(int fd, int command, void* argument, int (*native)(int, int, ...)) {
  const int result = native(fd, command, argument);
  if (command == F_GETFL && result >= 0 && (BitsOf(fd) & kReadOnly)) return result & ~O_ACCMODE;
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return DuplicateTo(fd, result, result);
  return result;
}

}  // namespace

int wrap_close(int fd) {
  if (VABI_UNLIKELY(BitsOf(fd) != 0)) {
    const KeepErrno keep;
    Closed(fd);
  }
  return original::close()(fd);
}

int wrap_close_range(unsigned first, unsigned last, int flags) {
  if (!(flags & kCloseRangeCloexec) && first <= last) ClosedRange(first, last);
  return original::close_range()(first, last, flags);
}

void wrap_closefrom(int first) {
  ClosedRange(first < 0 ? 0 : static_cast<unsigned>(first), UINT_MAX);
  original::closefrom()(first);
}

int wrap_dup(int fd) {
  const int result = original::dup()(fd);
  return DuplicateTo(fd, result, result);
}
int wrap_dup2(int fd, int target) { return DuplicateTo(fd, target, original::dup2()(fd, target)); }
int wrap_dup3(int fd, int target, int flags) {
  return DuplicateTo(fd, target, original::dup3()(fd, target, flags));
}

int wrap_fcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  return Control(fd, command, argument, original::fcntl());
}
int wrap_fcntl64(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  return Control(fd, command, argument, original::fcntl64());
}
