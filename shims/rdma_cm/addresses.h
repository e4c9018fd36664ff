// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_RDMA_CM_ADDRESSES_H_
#define VABI_SHIMS_RDMA_CM_ADDRESSES_H_

#include <cstddef>
#include <cstdint>

#include "harness/world/world.h"

// IP addresses and GIDs, and which port of the world has them. The network interfaces of a world
// are those of its RoCE ports, the IPoIB ones of its InfiniBand ports and the loopback interface.
// Every address of a RoCE port is one of its GIDs; InfiniBand ports have one GID and their
// interface's addresses beside it.

namespace vabi::rdma_cm {

struct Address {
  uint16_t family = 0;   // AF_INET, AF_INET6, AF_IB; 0: none
  uint16_t port = 0;     // host order; of AF_IB: the end of the service id (cma.c:cma_port)
  uint8_t gid[16] = {};  // the address, as ib_addr.h:rdma_ip2gid makes a GID of it
  uint32_t scope = 0;    // sin6_scope_id
  // struct sockaddr_ib, in host order but for the flow label
  uint16_t pkey = 0;
  uint32_t flow = 0;
  uint64_t service = 0, service_mask = 0, ib_scope = 0;

  bool IsZero() const;
  bool IsLoopback() const;
  bool IsAny() const { return IsZero() || IsLoopback(); }  // cma.c:cma_any_addr
  bool IsLinkLocal() const;
  bool SameHost(const Address& other) const;
  // AF_IB: a service id whose end is `port` (cma.c:cma_bind_port).
  void SetPort(uint16_t number);
};

inline constexpr uint16_t kFamilyIb = 27;  // AF_IB

// addr.c:rdma_addr_size: bytes of such an address, 0 for any other family.
size_t AddressSize(uint16_t family);
// The address behind a sockaddr; one of an unknown family has nothing but that.
Address ReadAddress(const uint8_t* sockaddr);
// Writes a sockaddr and answers its size.
size_t WriteAddress(const Address& address, uint8_t* sockaddr);

struct Place {
  int device = -1;  // number in the world
  uint8_t port = 0;
  uint8_t gid_index = 0;
};
// The port that has the address, with the index of the GID entry of the device's default type
// (cma.c:cma_validate_port): of an IP address through its interface, of AF_IB an InfiniBand port
// with that GID. False: none has.
bool FindPlace(const World& world, const Address& address, Place* place);
// An interface of that number: dev_get_by_index.
bool HasInterface(const World& world, uint32_t number);
// The GID behind an address: its own on RoCE and of AF_IB, that of the port on InfiniBand, where it
// stands in the hardware address of the IPoIB interface (addr.c:rdma_addr_get_dgid).
void GidOf(const World& world, const Address& address, const Place& place, uint8_t out[16]);
// The MGID that an IP group has on InfiniBand (cma.c:cma_set_mgid: ip_ib_mc_map, ipv6_ib_mc_map).
void GroupGid(const Address& group, bool datagram_service, uint16_t pkey, uint8_t out[16]);
// cache.c:ib_find_cached_pkey. False: the port's table has no such key.
bool FindPkey(const PortImage& port, uint16_t pkey, uint16_t* index);
// A route leads there: the addresses of a port's own network (10.0.0.0/8, fe80::/10), nothing else.
bool HasRoute(const World& world, const Address& address);
// The default type of GIDs of a port (cma.c:cma_add_one): enum ib_uverbs_gid_type.
uint8_t DefaultGidType(const World& world, const PortImage& port);

}  // namespace vabi::rdma_cm

#endif  // VABI_SHIMS_RDMA_CM_ADDRESSES_H_
