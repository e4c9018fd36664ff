// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SOCKET_FILE_H_
#define VABI_SHIMS_SOCKET_FILE_H_

#include <sys/socket.h>

#include "shims/file.h"

// The seam between libc interposition and fake sockets: what FakeKernel::OpenNetlink makes. All
// calls return a result >= 0, or -errno. Waiting and poll work natively on the backing
// descriptor.

namespace vabi {

class SocketFile : public File {
 public:
  virtual int Bind(const struct sockaddr* address, socklen_t length) = 0;
  virtual int Connect(const struct sockaddr* address, socklen_t length) = 0;
  // `peer`: getpeername, else getsockname.
  virtual int SocketName(struct sockaddr* address, socklen_t* length, bool peer) = 0;
  virtual int SetOption(int level, int name, const void* value, socklen_t length) = 0;
  virtual int GetOption(int level, int name, void* value, socklen_t* length) = 0;
  virtual ssize_t SendMessage(const struct msghdr* message, int flags) = 0;
  virtual ssize_t ReceiveMessage(struct msghdr* message, int flags) = 0;
};

}  // namespace vabi

#endif  // VABI_SHIMS_SOCKET_FILE_H_
