// SPDX-License-Identifier: BSD-2-Clause
// Sockets of a fake netlink family.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "shims/libc/descriptors.h"
#include "shims/libc/originals.h"
#include "shims/sys/sys.h"

extern "C" [[noreturn]] void __chk_fail();

namespace vabi::libc {
namespace {

// As FakeKernel::OpenNetlink: 0 and *out, -errno, or 1: not ours.
int OpenSocket(int type, int protocol, int* out) {
  if (!InstallFakeKernels()) return 1;
  Opened opened;
  const int result = FakeKernel::OpenNetlink(type, protocol, &opened);
  if (result != 0) return result;
  const int fd = opened.fd;
  sys::Syscall(SYS_fcntl, fd, F_SETFD, type & SOCK_CLOEXEC ? FD_CLOEXEC : 0);
  if (type & SOCK_NONBLOCK) {
    sys::Syscall(SYS_fcntl, fd, F_SETFL, sys::Syscall(SYS_fcntl, fd, F_GETFL) | O_NONBLOCK);
  }
  FdTable::Install(fd, std::move(opened.file));
  SetBits(fd, kFake | kSocket);
  *out = fd;
  return 0;
}

// A message of one part, as send and recv have it.
struct OnePart {
  OnePart(const void* buffer, size_t size, const struct ::sockaddr* address, socklen_t length) {
    part.iov_base = const_cast<void*>(buffer);
    part.iov_len = size;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_name = const_cast<struct ::sockaddr*>(address);
    message.msg_namelen = length;
  }
  struct ::iovec part = {};
  struct ::msghdr message = {};
};

bool IsOurs(int fd) { return VABI_UNLIKELY((BitsOf(fd) & kSocket) != 0); }

// Runs `call` on the socket; errno stays, and the result is the kernel's.
template <typename Call>
auto On(int fd, Call call) -> decltype(call(std::declval<SocketFile&>())) {
  const std::shared_ptr<SocketFile> file = GetSocket(fd);
  if (file == nullptr) return -EBADF;
  const KeepErrno keep;
  return call(*file);
}

ssize_t SendOn(int fd, const void* buffer, size_t size, int flags, const struct ::sockaddr* address,
               socklen_t length) {
  OnePart one(buffer, size, address, length);
  return On(fd, [&](SocketFile& file) { return file.SendMessage(&one.message, flags); });
}

ssize_t ReceiveOn(int fd, void* buffer, size_t size, int flags, struct ::sockaddr* address,
                  socklen_t* length) {
  struct ::sockaddr_storage from = {};
  OnePart one(buffer, size,
              address != nullptr ? reinterpret_cast<struct ::sockaddr*>(&from) : nullptr,
              address != nullptr ? sizeof from : 0);
  const ssize_t result =
      On(fd, [&](SocketFile& file) { return file.ReceiveMessage(&one.message, flags); });
  if (result < 0 || address == nullptr) return result;
  // net/socket.c:move_addr_to_user: the message is gone by now.
  const socklen_t whole = one.message.msg_namelen;
  const auto length_at = reinterpret_cast<uintptr_t>(length);
  socklen_t room;
  if (sys::CopyFromUser(&room, length_at, sizeof room) != 0) return -EFAULT;
  if (static_cast<int>(room) < 0) return -EINVAL;
  if (sys::CopyToUser(reinterpret_cast<uintptr_t>(address), &from, std::min(room, whole)) != 0 ||
      sys::CopyToUser(length_at, &whole, sizeof whole) != 0) {
    return -EFAULT;
  }
  return result;
}

bool TellLength(struct ::mmsghdr* message, ssize_t result) {
  const auto length = static_cast<unsigned>(result);
  return sys::CopyToUser(reinterpret_cast<uintptr_t>(&message->msg_len), &length, sizeof length) ==
         0;
}

// net/socket.c:do_recvmmsg. The limit is looked at between messages: it ends no wait.
int ReceiveMany(int fd, struct ::mmsghdr* messages, unsigned count, int flags,
                struct ::timespec* timeout) {
  constexpr int64_t kSecond = 1000000000;
  int64_t limit = INT64_MAX;
  const auto now = [] { return static_cast<int64_t>(sys::MonotonicNs()); };
  if (timeout != nullptr) {
    struct ::timespec asked;
    if (sys::CopyFromUser(&asked, reinterpret_cast<uintptr_t>(timeout), sizeof asked) != 0)
      return -EFAULT;
    if (asked.tv_sec < 0 || asked.tv_nsec < 0 || asked.tv_nsec >= kSecond) return -EINVAL;
    if (asked.tv_sec < INT64_MAX / kSecond / 2) {
      limit = now() + asked.tv_sec * kSecond + asked.tv_nsec;
    }
  }
  unsigned done = 0;
  while (done < count) {
    const ssize_t result = On(fd, [&](SocketFile& file) {
      return file.ReceiveMessage(&messages[done].msg_hdr, flags & ~MSG_WAITFORONE);
    });
    if (result < 0) return done > 0 ? static_cast<int>(done) : static_cast<int>(result);
    if (!TellLength(&messages[done], result)) return done > 0 ? static_cast<int>(done) : -EFAULT;
    ++done;
    if (flags & MSG_WAITFORONE) flags |= MSG_DONTWAIT;
    if (limit != INT64_MAX) {
      const int64_t left = std::max<int64_t>(limit - now(), 0);
      struct ::timespec rest = {};
      rest.tv_sec = left / kSecond;
      rest.tv_nsec = left % kSecond;
      if (sys::CopyToUser(reinterpret_cast<uintptr_t>(timeout), &rest, sizeof rest) != 0)
        return -EFAULT;
      if (left == 0) break;
    }
  }
  return static_cast<int>(done);
}

// net/socket.c:__sys_sendmmsg
int SendMany(int fd, struct ::mmsghdr* messages, unsigned count, int flags) {
  constexpr unsigned kMost = 1024;  // UIO_MAXIOV
  unsigned done = 0;
  while (done < std::min(count, kMost)) {
    const ssize_t result =
        On(fd, [&](SocketFile& file) { return file.SendMessage(&messages[done].msg_hdr, flags); });
    if (result < 0) return done > 0 ? static_cast<int>(done) : static_cast<int>(result);
    if (!TellLength(&messages[done], result)) return done > 0 ? static_cast<int>(done) : -EFAULT;
    ++done;
  }
  return static_cast<int>(done);
}

// A descriptor that another process, or this one, receives from a socket is only what stands behind
// the fake file.
void NotePassed(const struct ::msghdr* message) {
  if (VABI_LIKELY(message->msg_control == nullptr || message->msg_controllen == 0)) return;
  for (const struct ::cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr;
       part = CMSG_NXTHDR(const_cast<struct ::msghdr*>(message),
                          const_cast<struct ::cmsghdr*>(part))) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      if (!(BitsOf(fd) & kFake)) continue;
      TraceEvent("not_intercepted", "a descriptor of a fake device is passed over a socket");
      return;
    }
  }
}

}  // namespace
}  // namespace vabi::libc

using namespace vabi::libc;  // NOLINT: this file defines libc's names

int wrap_socket(int domain, int type, int protocol) {
  if (VABI_UNLIKELY(domain == AF_NETLINK && Active())) {
    const int saved = errno;
    int fake = -1;
    const int result = OpenSocket(type, protocol, &fake);
    errno = saved;
    if (result == 0) return fake;
    if (result < 0) return Answer(result);
  }
  const int fd = original::socket()(domain, type, protocol);
  if (VABI_UNLIKELY(fd >= 0 && BitsOf(fd) != 0)) Closed(fd);
  return fd;
}

int wrap_bind(int fd, const struct ::sockaddr* address, socklen_t length) {
  if (!IsOurs(fd)) return original::bind()(fd, address, length);
  return Answer(On(fd, [&](vabi::SocketFile& file) { return file.Bind(address, length); }));
}
int wrap_connect(int fd, const struct ::sockaddr* address, socklen_t length) {
  if (!IsOurs(fd)) return original::connect()(fd, address, length);
  return Answer(On(fd, [&](vabi::SocketFile& file) { return file.Connect(address, length); }));
}
// net/netlink/af_netlink.c:netlink_ops: sock_no_shutdown
int wrap_shutdown(int fd, int how) {
  if (!IsOurs(fd)) return original::shutdown()(fd, how);
  return Answer(-EOPNOTSUPP);
}
int wrap_getsockname(int fd, struct ::sockaddr* address, socklen_t* length) {
  if (!IsOurs(fd)) return original::getsockname()(fd, address, length);
  return Answer(
      On(fd, [&](vabi::SocketFile& file) { return file.SocketName(address, length, false); }));
}
int wrap_getpeername(int fd, struct ::sockaddr* address, socklen_t* length) {
  if (!IsOurs(fd)) return original::getpeername()(fd, address, length);
  return Answer(
      On(fd, [&](vabi::SocketFile& file) { return file.SocketName(address, length, true); }));
}
int wrap_setsockopt(int fd, int level, int name, const void* value, socklen_t length) {
  if (!IsOurs(fd)) return original::setsockopt()(fd, level, name, value, length);
  return Answer(
      On(fd, [&](vabi::SocketFile& file) { return file.SetOption(level, name, value, length); }));
}
int wrap_getsockopt(int fd, int level, int name, void* value, socklen_t* length) {
  if (!IsOurs(fd)) return original::getsockopt()(fd, level, name, value, length);
  return Answer(
      On(fd, [&](vabi::SocketFile& file) { return file.GetOption(level, name, value, length); }));
}

ssize_t wrap_send(int fd, const void* buffer, size_t size, int flags) {
  if (!IsOurs(fd)) return original::send()(fd, buffer, size, flags);
  return Answer(SendOn(fd, buffer, size, flags, nullptr, 0));
}
ssize_t wrap_sendto(int fd, const void* buffer, size_t size, int flags,
                    const struct ::sockaddr* address, socklen_t length) {
  if (!IsOurs(fd)) return original::sendto()(fd, buffer, size, flags, address, length);
  return Answer(SendOn(fd, buffer, size, flags, address, length));
}
ssize_t wrap_sendmsg(int fd, const struct ::msghdr* message, int flags) {
  if (!IsOurs(fd)) {
    if (VABI_LIKELY(!Active())) return original::sendmsg()(fd, message, flags);
    // Read after the call: what it took is readable.
    const ssize_t result = original::sendmsg()(fd, message, flags);
    if (result >= 0) NotePassed(message);
    return result;
  }
  return Answer(On(fd, [&](vabi::SocketFile& file) { return file.SendMessage(message, flags); }));
}

ssize_t wrap_recv(int fd, void* buffer, size_t size, int flags) {
  if (!IsOurs(fd)) return original::recv()(fd, buffer, size, flags);
  return Answer(ReceiveOn(fd, buffer, size, flags, nullptr, nullptr));
}
ssize_t wrap___recv_chk(int fd, void* buffer, size_t size, size_t room, int flags) {
  if (size > room) __chk_fail();
  return wrap_recv(fd, buffer, size, flags);
}
ssize_t wrap_recvfrom(int fd, void* buffer, size_t size, int flags, struct ::sockaddr* address,
                      socklen_t* length) {
  if (!IsOurs(fd)) return original::recvfrom()(fd, buffer, size, flags, address, length);
  return Answer(ReceiveOn(fd, buffer, size, flags, address, length));
}
ssize_t wrap___recvfrom_chk(int fd, void* buffer, size_t size, size_t room, int flags,
                            struct ::sockaddr* address, socklen_t* length) {
  if (size > room) __chk_fail();
  return wrap_recvfrom(fd, buffer, size, flags, address, length);
}
ssize_t wrap_recvmsg(int fd, struct ::msghdr* message, int flags) {
  if (!IsOurs(fd)) return original::recvmsg()(fd, message, flags);
  return Answer(
      On(fd, [&](vabi::SocketFile& file) { return file.ReceiveMessage(message, flags); }));
}
int wrap_recvmmsg(int fd, struct ::mmsghdr* messages, unsigned count, int flags,
                  struct ::timespec* timeout) {
  if (!IsOurs(fd)) return original::recvmmsg()(fd, messages, count, flags, timeout);
  return Answer(ReceiveMany(fd, messages, count, flags, timeout));
}
int wrap_sendmmsg(int fd, struct ::mmsghdr* messages, unsigned count, int flags) {
  if (IsOurs(fd)) return Answer(SendMany(fd, messages, count, flags));
  const int result = original::sendmmsg()(fd, messages, count, flags);
  if (VABI_UNLIKELY(Active())) {
    for (int i = 0; i < result; ++i) NotePassed(&messages[i].msg_hdr);
  }
  return result;
}
