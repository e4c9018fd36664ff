// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_RECORDER_RECORDER_H_
#define VABI_SHIMS_RECORDER_RECORDER_H_

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "shims/recorder/describe.h"

// What the recorder knows of the process' descriptors, and the lines that it writes of them.

namespace vabi::recorder {

enum class Kind : uint8_t { kNone, kDevice, kCompletionEvents, kAsyncEvents, kNetlink };

// What a descriptor is; kNone for nearly all, without a lock. Numbers from 65,536 on are not
// followed.
Kind KindOf(int fd);
// True when VERBS_ABI_RECORD names a file that can be written.
bool Recording();

// After open() of a path below /dev answered: `fd`, or -1 with errno.
void Opened(const char* path, int fd);
void NewSocket(int fd);
// `to` is now what `from` is.
void Duplicated(int from, int to);
void Closed(int fd);

// One call on a device on its way. Made before the kernel is asked, told its answer afterwards
// (-1: errno has more); errno stays as it is.
class Crossing {
 public:
  explicit Crossing(int fd);
  void Read();
  void Write(const void* user, size_t size);
  void Ioctl(unsigned long request, const void* argument);
  void Mmap(uint64_t offset);
  void Answered(long result);

 private:
  trace::Record record_;
  NewFile made_;
  int fd_;
};

// Messages that a program sent to RDMA netlink, and those that it got. A request's line is written
// when its answer arrives.
void Sent(int fd, const void* user, size_t size);
void Received(int fd, const void* user, size_t size);

class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;
  int saved() const { return saved_; }

 private:
  int saved_;
};

}  // namespace vabi::recorder

#endif  // VABI_SHIMS_RECORDER_RECORDER_H_
