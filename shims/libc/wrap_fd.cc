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

// Before dup2 and dup3 close `target`: what stands behind it is told first, while the number is
// still its own. A call that will fail closes nothing.
void LeaveTarget(int fd, int target) {
  if (VABI_LIKELY(BitsOf(target) == 0) || fd == target) return;
  const KeepErrno keep;
  if (original::fcntl()(fd, F_GETFD) < 0) return;
  if (!(BitsOf(target) & kOwn)) {
    Closed(target);
  } else if (!InOthersMemory()) {
    MoveOwn(target);
  }
}

int DuplicateTo(int fd, int target, int result) {
  if (result >= 0 && VABI_UNLIKELY((BitsOf(fd) | BitsOf(target)) != 0)) {
    const KeepErrno keep;
    Duplicated(fd, target);
  }
  return result;
}

// What the descriptor's flags say of reading and writing: as the fake file was opened, whatever
// stands behind it.
int WithAccessMode(int fd, int flags) {
  const std::shared_ptr<vabi::File> file = vabi::FdTable::Get(fd);
  if (file == nullptr || file->PathOnly()) return flags;
  const bool reads = (flags & O_ACCMODE) != O_WRONLY && file->CheckRead() != -EBADF;
  const bool writes =
      (flags & O_ACCMODE) != O_RDONLY && file->CheckWrite() != -EBADF && !file->ReadOnly();
  constexpr int kNeither = 3;
  const int mode = reads && writes ? O_RDWR : reads ? O_RDONLY : writes ? O_WRONLY : kNeither;
  return (flags & ~O_ACCMODE) | mode;
}

int Control(int fd, int command, void* argument, int (*native)(int, int, ...)) {
  if (VABI_UNLIKELY((BitsOf(fd) & kOwn) != 0)) return Answer(-EBADF);
  const int result = native(fd, command, argument);
  if (command == F_GETFL && result >= 0 && (BitsOf(fd) & kFake)) {
    const KeepErrno keep;
    return WithAccessMode(fd, result);
  }
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return DuplicateTo(fd, result, result);
  return result;
}

// The lowest descriptor of the shim's own in the range, or -1.
int FirstOwn(unsigned first, unsigned last) {
  for (unsigned fd = first; fd <= last && fd < static_cast<unsigned>(kMaxFds); ++fd) {
    if (g_fd_bits[fd] & kOwn) return static_cast<int>(fd);
  }
  return -1;
}

// Closes the range but for the shim's own descriptors.
int CloseAround(unsigned first, unsigned last, int flags) {
  for (int own; (own = FirstOwn(first, last)) >= 0; first = static_cast<unsigned>(own) + 1) {
    const unsigned end = static_cast<unsigned>(own);
    if (end > first) {
      const int result = original::close_range()(first, end - 1, flags);
      if (result != 0) return result;
    }
  }
  return first <= last ? original::close_range()(first, last, flags) : 0;
}

}  // namespace

int wrap_close(int fd) {
  if (VABI_UNLIKELY(BitsOf(fd) != 0)) {
    if (BitsOf(fd) & kOwn) return Answer(-EBADF);
    const KeepErrno keep;
    Closed(fd);
  }
  return original::close()(fd);
}

int wrap_close_range(unsigned first, unsigned last, int flags) {
  if (VABI_LIKELY(!Active()) || (flags & kCloseRangeCloexec) || first > last) {
    return original::close_range()(first, last, flags);
  }
  // Whether this kernel knows the call and the flags is asked of a range without descriptors: what
  // fails has closed nothing.
  const int result = original::close_range()(UINT_MAX, UINT_MAX, flags);
  if (result != 0) return result;
  ClosedRange(first, last);
  return CloseAround(first, last, flags);
}

void wrap_closefrom(int first) {
  if (VABI_LIKELY(!Active())) return original::closefrom()(first);
  const unsigned from = first < 0 ? 0 : static_cast<unsigned>(first);
  ClosedRange(from, UINT_MAX);
  const KeepErrno keep;
  const int own = FirstOwn(from, UINT_MAX);
  if (own < 0 || CloseAround(from, UINT_MAX, 0) != 0) original::closefrom()(first);
}

int wrap_dup(int fd) {
  const int result = original::dup()(fd);
  return DuplicateTo(fd, result, result);
}
int wrap_dup2(int fd, int target) {
  LeaveTarget(fd, target);
  return DuplicateTo(fd, target, original::dup2()(fd, target));
}
int wrap_dup3(int fd, int target, int flags) {
  if ((flags & ~O_CLOEXEC) == 0) LeaveTarget(fd, target);
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
