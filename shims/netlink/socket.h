// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_NETLINK_SOCKET_H_
#define VABI_SHIMS_NETLINK_SOCKET_H_

#include <mutex>
#include <optional>
#include <string>

#include "harness/world/world.h"
#include "shims/netlink/message.h"
#include "shims/netlink/nldev.h"
#include "shims/socket_file.h"

namespace vabi::netlink {

// One NETLINK_RDMA socket, and what all netlink sockets have in common. The process' descriptor is
// a datagram socket that is connected to itself: what the kernel says is sent on it, so that
// receiving, peeking, truncation, time limits and poll are the real kernel's.
class RdmaSocket : public SocketFile {
 public:
  RdmaSocket(const World& world, int type, int protocol)
      : world_(world), type_(type), protocol_(protocol) {}
  ~RdmaSocket() override;

  void set_backing_fd(int fd) override;
  ssize_t Read(void* user, size_t size, bool nonblock) override;
  ssize_t Write(const void* user, size_t size) override;
  long Ioctl(unsigned long request, void* argument) override;
  void Release() override;
  const char* Name() const override { return "socket:[netlink]"; }

  int Bind(const struct sockaddr* address, socklen_t length) override;
  int Connect(const struct sockaddr* address, socklen_t length) override;
  int SocketName(struct sockaddr* address, socklen_t* length, bool peer) override;
  int SetOption(int level, int name, const void* value, socklen_t length) override;
  int GetOption(int level, int name, void* value, socklen_t* length) override;
  ssize_t SendMessage(const struct msghdr* message, int flags) override;
  ssize_t ReceiveMessage(struct msghdr* user, int flags) override;

 protected:
  // One datagram of the program's. With the socket's lock held.
  virtual void Receive(std::string datagram);
  void Answer(const struct nlmsghdr& header, const std::string& whole, int error);
  void Deliver(const std::string& datagram);
  const World& world() const { return world_; }
  uint32_t port_id() const { return port_id_; }

 private:
  int Refuse(RuleId rule) const;
  bool Violates(RuleId rule, bool condition) const;
  int AutoBind();
  int BindTo(uint32_t port_id);
  void ContinueDump();

  const World& world_;
  const int type_;
  const int protocol_;
  std::mutex mutex_;
  bool bound_ = false;
  uint32_t port_id_ = 0;
  uint32_t groups_ = 0;
  uint32_t peer_port_id_ = 0;
  uint32_t options_ = 0;  // by number of SOL_NETLINK's option
  std::optional<Dump> dump_;
};

}  // namespace vabi::netlink

#endif  // VABI_SHIMS_NETLINK_SOCKET_H_
