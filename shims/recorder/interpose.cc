// SPDX-License-Identifier: BSD-2-Clause
// The functions that stand before libc's. Each makes the program's call as it is; what it tells the
// trace changes neither the answer nor errno.
#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/mman.h>

#include <cstdarg>
#include <cstring>

#include "shims/recorder/originals.h"
#include "shims/recorder/recorder.h"

using namespace vabi::recorder;  // NOLINT: this file defines libc's names

namespace {

inline bool Unlikely(bool value) { return __builtin_expect(value, false); }

bool HasMode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

int AfterOpen(const char* path, int fd) {
  if (Unlikely(fd >= 0 && KindOf(fd) != Kind::kNone)) Closed(fd);  // closed behind our back
  if (Unlikely(path != nullptr && std::strncmp(path, "/dev/", 5) == 0 && Recording()))
    Opened(path, fd);
  return fd;
}

int AfterDuplicate(int from, int to) {
  if (Unlikely(to >= 0 && (KindOf(from) != Kind::kNone || KindOf(to) != Kind::kNone)))
    Duplicated(from, to);
  return to;
}

bool IsFile(int fd) {
  const Kind kind = KindOf(fd);
  return Unlikely(kind != Kind::kNone && kind != Kind::kNetlink);
}
bool IsDevice(int fd) { return Unlikely(KindOf(fd) == Kind::kDevice); }
bool IsEvents(int fd) {
  const Kind kind = KindOf(fd);
  return Unlikely(kind == Kind::kCompletionEvents || kind == Kind::kAsyncEvents);
}
bool IsNetlink(int fd) { return Unlikely(KindOf(fd) == Kind::kNetlink); }

void AfterSend(int fd, const struct ::msghdr* message, ssize_t result) {
  if (result <= 0 || !IsNetlink(fd)) return;
  // Every known sender has one message in one part.
  for (size_t i = 0; i < message->msg_iovlen; ++i)
    Sent(fd, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
}

void AfterReceive(int fd, const void* buffer, size_t room, ssize_t result, int flags) {
  if (result <= 0 || (flags & MSG_PEEK) || !IsNetlink(fd)) return;
  const size_t size = static_cast<size_t>(result);
  Received(fd, buffer, size < room ? size : room);
}

void* Map(void* address, size_t size, int protection, int flags, int fd, off_t offset,
          void* (*map)(void*, size_t, int, int, int, off_t)) {
  if (!IsFile(fd) || (flags & MAP_ANONYMOUS)) {
    return map(address, size, protection, flags, fd, offset);
  }
  Crossing crossing(fd);
  crossing.Mmap(static_cast<uint64_t>(offset));
  void* mapped = map(address, size, protection, flags, fd, offset);
  crossing.Answered(mapped == MAP_FAILED ? -1 : 0);
  return mapped;
}

int Control(int fd, int command, void* argument, int (*control)(int, int, ...)) {
  const int result = control(fd, command, argument);
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return AfterDuplicate(fd, result);
  return result;
}

}  // namespace

#define VABI_MODE_ARGUMENT(mode) \
  mode_t mode = 0;               \
  if (HasMode(flags)) {          \
    va_list list;                \
    va_start(list, flags);       \
    mode = va_arg(list, mode_t); \
    va_end(list);                \
  }

int record_open(const char* path, int flags, ...) {
  VABI_MODE_ARGUMENT(mode);
  return AfterOpen(path, original::open()(path, flags, mode));
}
int record_open64(const char* path, int flags, ...) {
  VABI_MODE_ARGUMENT(mode);
  return AfterOpen(path, original::open64()(path, flags, mode));
}
int record___open_2(const char* path, int flags) {
  return AfterOpen(path, original::__open_2()(path, flags));
}
int record___open64_2(const char* path, int flags) {
  return AfterOpen(path, original::__open64_2()(path, flags));
}
int record_openat(int dirfd, const char* path, int flags, ...) {
  VABI_MODE_ARGUMENT(mode);
  return AfterOpen(path, original::openat()(dirfd, path, flags, mode));
}
int record_openat64(int dirfd, const char* path, int flags, ...) {
  VABI_MODE_ARGUMENT(mode);
  return AfterOpen(path, original::openat64()(dirfd, path, flags, mode));
}
int record___openat_2(int dirfd, const char* path, int flags) {
  return AfterOpen(path, original::__openat_2()(dirfd, path, flags));
}
int record___openat64_2(int dirfd, const char* path, int flags) {
  return AfterOpen(path, original::__openat64_2()(dirfd, path, flags));
}

int record_close(int fd) {
  if (Unlikely(KindOf(fd) != Kind::kNone)) Closed(fd);
  return original::close()(fd);
}
int record_dup(int fd) { return AfterDuplicate(fd, original::dup()(fd)); }
int record_dup2(int fd, int target) { return AfterDuplicate(fd, original::dup2()(fd, target)); }
int record_dup3(int fd, int target, int flags) {
  return AfterDuplicate(fd, original::dup3()(fd, target, flags));
}
int record_fcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  return Control(fd, command, argument, original::fcntl());
}
int record_fcntl64(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  return Control(fd, command, argument, original::fcntl64());
}

ssize_t record_read(int fd, void* buffer, size_t size) {
  if (!IsEvents(fd)) return original::read()(fd, buffer, size);
  Crossing crossing(fd);
  crossing.Read();
  const ssize_t result = original::read()(fd, buffer, size);
  crossing.Answered(result);
  return result;
}
ssize_t record___read_chk(int fd, void* buffer, size_t size, size_t room) {
  if (!IsEvents(fd)) return original::__read_chk()(fd, buffer, size, room);
  Crossing crossing(fd);
  crossing.Read();
  const ssize_t result = original::__read_chk()(fd, buffer, size, room);
  crossing.Answered(result);
  return result;
}
ssize_t record_write(int fd, const void* buffer, size_t size) {
  if (!IsDevice(fd)) return original::write()(fd, buffer, size);
  Crossing crossing(fd);
  crossing.Write(buffer, size);
  const ssize_t result = original::write()(fd, buffer, size);
  crossing.Answered(result);
  return result;
}
int record_ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  if (!IsDevice(fd)) return original::ioctl()(fd, request, argument);
  Crossing crossing(fd);
  crossing.Ioctl(request, argument);
  const int result = original::ioctl()(fd, request, argument);
  crossing.Answered(result);
  return result;
}
void* record_mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  return Map(address, size, protection, flags, fd, offset, original::mmap());
}
void* record_mmap64(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  return Map(address, size, protection, flags, fd, offset, original::mmap64());
}

int record_socket(int domain, int type, int protocol) {
  const int fd = original::socket()(domain, type, protocol);
  if (Unlikely(fd >= 0 && KindOf(fd) != Kind::kNone)) Closed(fd);
  if (Unlikely(fd >= 0 && domain == AF_NETLINK && protocol == NETLINK_RDMA && Recording()))
    NewSocket(fd);
  return fd;
}
ssize_t record_send(int fd, const void* buffer, size_t size, int flags) {
  const ssize_t result = original::send()(fd, buffer, size, flags);
  if (result > 0 && IsNetlink(fd)) Sent(fd, buffer, size);
  return result;
}
ssize_t record_sendto(int fd, const void* buffer, size_t size, int flags,
                      const struct ::sockaddr* address, socklen_t length) {
  const ssize_t result = original::sendto()(fd, buffer, size, flags, address, length);
  if (result > 0 && IsNetlink(fd)) Sent(fd, buffer, size);
  return result;
}
ssize_t record_sendmsg(int fd, const struct ::msghdr* message, int flags) {
  const ssize_t result = original::sendmsg()(fd, message, flags);
  AfterSend(fd, message, result);
  return result;
}
ssize_t record_recv(int fd, void* buffer, size_t size, int flags) {
  const ssize_t result = original::recv()(fd, buffer, size, flags);
  AfterReceive(fd, buffer, size, result, flags);
  return result;
}
ssize_t record_recvfrom(int fd, void* buffer, size_t size, int flags, struct ::sockaddr* address,
                        socklen_t* length) {
  const ssize_t result = original::recvfrom()(fd, buffer, size, flags, address, length);
  AfterReceive(fd, buffer, size, result, flags);
  return result;
}
ssize_t record_recvmsg(int fd, struct ::msghdr* message, int flags) {
  const ssize_t result = original::recvmsg()(fd, message, flags);
  if (result > 0 && message->msg_iovlen > 0) {
    AfterReceive(fd, message->msg_iov[0].iov_base, message->msg_iov[0].iov_len, result, flags);
  }
  return result;
}
