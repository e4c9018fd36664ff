// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_NETLINK_NLDEV_H_
#define VABI_SHIMS_NETLINK_NLDEV_H_

#include <linux/netlink.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "harness/world/world.h"
#include "shims/trace/trace.h"

// RDMA netlink's own half: which requests there are and what they answer (core/netlink.c,
// core/nldev.c). Knows no sockets.

namespace vabi::netlink {

// One request as it arrived.
struct Request {
  struct nlmsghdr header;
  std::span<const uint8_t> payload;  // behind the header
  uint32_t port_id = 0;              // of the socket that asks
  bool privileged = true;            // has CAP_NET_ADMIN
  trace::Record* record = nullptr;
};

// A dump that goes on with every receive (struct netlink_callback).
struct Dump {
  ConstId command;
  struct nlmsghdr header;
  std::string payload;
  uint32_t port_id = 0;
  uint32_t next = 0;       // how far it got
  bool privileged = true;  // the asker has CAP_NET_ADMIN
};

struct Reply {
  int error = 0;                       // -errno: an error message is due
  std::optional<std::string> message;  // the answer, for the same socket
  std::optional<Dump> dump;            // a dump begins
};

// core/netlink.c:rdma_nl_rcv_msg
Reply Handle(const World& world, const Request& request);

// The next datagram of the dump, or nullopt and *result at its end: 0, or the -errno that the final
// message carries (net/netlink/af_netlink.c:netlink_dump).
std::optional<std::string> Continue(const World& world, Dump* dump, int* result);

}  // namespace vabi::netlink

#endif  // VABI_SHIMS_NETLINK_NLDEV_H_
