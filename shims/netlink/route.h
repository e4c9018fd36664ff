// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_NETLINK_ROUTE_H_
#define VABI_SHIMS_NETLINK_ROUTE_H_

#include <string>

#include "shims/netlink/socket.h"

namespace vabi::netlink {

// One NETLINK_ROUTE socket of a world that has network interfaces: those of its Ethernet ports and
// the loopback interface, with their addresses (net/core/rtnetlink.c, net/ipv4/devinet.c,
// net/ipv6/addrconf.c). Links and addresses can be listed, routes and neighbours are none; the rest
// is not modelled.
class RouteSocket : public RdmaSocket {
 public:
  RouteSocket(const World& world, int type) : RdmaSocket(world, type, kProtocol) {}
  static constexpr int kProtocol = 0;  // NETLINK_ROUTE

  // A port of the world has a network interface.
  static bool HasInterfaces(const World& world);

 private:
  void Receive(std::string datagram) override;
  int Handle(const struct nlmsghdr& header, const std::string& whole);
};

}  // namespace vabi::netlink

#endif  // VABI_SHIMS_NETLINK_ROUTE_H_
