// SPDX-License-Identifier: BSD-2-Clause
#include "shims/rdma_cm/addresses.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "shims/uverbs/device.h"

namespace vabi::rdma_cm {
namespace {

constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr uint8_t kRoceV1 = 1, kRoceV2 = 2;

uint64_t BigEndian64(const uint8_t* from) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | from[i];
  return value;
}
void PutBigEndian64(uint8_t* to, uint64_t value) {
  for (int i = 0; i < 8; ++i) to[i] = static_cast<uint8_t>(value >> (56 - 8 * i));
}

bool IsInfiniband(const Device& device) { return device.image().link == LinkLayer::kInfiniband; }

// addr.c:rdma_translate_ip: the interface that has the address.
bool HasAddress(const PortImage& port, const Address& address) {
  if (port.ndev[0] == '\0') return false;
  if (address.scope != 0 && address.scope != port.ndev_ifindex) return false;
  return std::any_of(std::begin(port.ndev_addresses), std::end(port.ndev_addresses),
                     [&](const auto& own) { return std::memcmp(own, address.gid, 16) == 0; });
}

}  // namespace

bool Address::IsZero() const {
  static constexpr uint8_t kZero[16] = {};
  const size_t from = family == AF_INET ? 12 : 0;
  return std::memcmp(gid + from, kZero, 16 - from) == 0;
}

bool Address::IsLoopback() const {
  if (family == AF_INET) return gid[12] == 127;
  if (family != AF_INET6 && family != kFamilyIb) return false;
  static constexpr uint8_t kOne[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return std::memcmp(gid, kOne, sizeof(kOne)) == 0;
}

bool Address::IsLinkLocal() const {
  return family == AF_INET6 && gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

bool Address::SameHost(const Address& other) const {
  return family == other.family && std::memcmp(gid, other.gid, sizeof(gid)) == 0;
}

void Address::SetPort(uint16_t number) {
  port = number;
  if (family != kFamilyIb) return;
  service = (service & service_mask) | number;
  service_mask = ~0ULL;
}

size_t AddressSize(uint16_t family) {
  switch (family) {
    case AF_INET:
      return 16;
    case AF_INET6:
      return 28;
    case kFamilyIb:
      return 48;
    default:
      return 0;
  }
}

Address ReadAddress(const uint8_t* from) {
  Address address;
  std::memcpy(&address.family, from, sizeof(address.family));
  if (address.family == AF_INET || address.family == AF_INET6)
    address.port = static_cast<uint16_t>(from[2] << 8 | from[3]);
  if (address.family == AF_INET) {
    std::memcpy(address.gid, kMapped, sizeof(kMapped));
    std::memcpy(address.gid + 12, from + 4, 4);
  } else if (address.family == AF_INET6) {
    std::memcpy(address.gid, from + 8, sizeof(address.gid));
    std::memcpy(&address.scope, from + 24, sizeof(address.scope));
  } else if (address.family == kFamilyIb) {
    address.pkey = static_cast<uint16_t>(from[2] << 8 | from[3]);
    std::memcpy(&address.flow, from + 4, sizeof(address.flow));
    std::memcpy(address.gid, from + 8, sizeof(address.gid));
    address.service = BigEndian64(from + 24);
    address.service_mask = BigEndian64(from + 32);
    std::memcpy(&address.ib_scope, from + 40, sizeof(address.ib_scope));
    address.port = static_cast<uint16_t>(address.service & address.service_mask);
  }
  return address;
}

size_t WriteAddress(const Address& address, uint8_t* to) {
  const size_t size = AddressSize(address.family);
  if (size == 0) return 0;
  std::memset(to, 0, size);
  std::memcpy(to, &address.family, sizeof(address.family));
  if (address.family == AF_INET || address.family == AF_INET6) {
    to[2] = static_cast<uint8_t>(address.port >> 8);
    to[3] = static_cast<uint8_t>(address.port);
  }
  if (address.family == AF_INET) {
    std::memcpy(to + 4, address.gid + 12, 4);
  } else if (address.family == AF_INET6) {
    std::memcpy(to + 8, address.gid, sizeof(address.gid));
    std::memcpy(to + 24, &address.scope, sizeof(address.scope));
  } else {
    to[2] = static_cast<uint8_t>(address.pkey >> 8);
    to[3] = static_cast<uint8_t>(address.pkey);
    std::memcpy(to + 4, &address.flow, sizeof(address.flow));
    std::memcpy(to + 8, address.gid, sizeof(address.gid));
    PutBigEndian64(to + 24, address.service);
    PutBigEndian64(to + 32, address.service_mask);
    std::memcpy(to + 40, &address.ib_scope, sizeof(address.ib_scope));
  }
  return size;
}

uint8_t DefaultGidType(const World& world, const PortImage& port) {
  bool first = false, second = false;
  for (uint32_t i = 0; i < port.gid_count; ++i) {
    first |= port.gids[i].type == kRoceV1;
    second |= port.gids[i].type == kRoceV2;
  }
  if (!first) return kRoceV2;
  return second && world.Knob(KnobId::rdma_cm_prefers_v2) != 0 ? kRoceV2 : kRoceV1;
}

bool FindPlace(const World& world, const Address& address, Place* place) {
  for (uint32_t d = 0; d < world.image().device_count; ++d) {
    const Device* device = FindDevice(d);
    if (device == nullptr || device->node_gone() || device->image().link == LinkLayer::kUnspecified)
      continue;
    for (uint8_t p = 1; p <= device->image().port_count; ++p) {
      const PortImage& port = device->port(p);
      const bool infiniband = IsInfiniband(*device);
      // An IPoIB interface's address leads to the port's one GID.
      if (infiniband && address.family != kFamilyIb) {
        if (!HasAddress(port, address)) continue;
        *place = {static_cast<int>(d), p, 0};
        return true;
      }
      if (!infiniband && address.family == kFamilyIb) continue;
      const uint8_t type = infiniband ? 0 : DefaultGidType(world, port);
      for (uint8_t g = 0; g < port.gid_count; ++g) {
        const auto& gid = port.gids[g];
        if (std::memcmp(gid.raw, address.gid, sizeof(gid.raw)) != 0 || gid.type != type) continue;
        if (address.scope != 0 && address.scope != gid.ndev_ifindex) continue;
        *place = {static_cast<int>(d), p, g};
        return true;
      }
    }
  }
  return false;
}

void GidOf(const World&, const Address& address, const Place& place, uint8_t out[16]) {
  const Device* device =
      place.device < 0 ? nullptr : FindDevice(static_cast<uint32_t>(place.device));
  const bool own = address.family == kFamilyIb || device == nullptr || !IsInfiniband(*device);
  std::memcpy(out, own ? address.gid : device->port(place.port).gids[0].raw, 16);
}

void GroupGid(const Address& group, bool datagram_service, uint16_t pkey, uint8_t out[16]) {
  std::memset(out, 0, 16);
  // "An SA assigned MGID" (cma_set_mgid), and AF_IB's, are taken as they are.
  const bool assigned = group.family == AF_INET6 && group.gid[0] == 0xff &&
                        (group.gid[1] & 0xf0) == 0x10 && group.gid[2] == 0xa0 &&
                        group.gid[3] == 0x1b;
  if (group.IsAny()) return;
  if (assigned || group.family == kFamilyIb) {
    std::memcpy(out, group.gid, 16);
    return;
  }
  const bool four = group.family == AF_INET;
  out[0] = 0xff;
  out[1] = 0x12;  // not well-known; the scope of the broadcast group, link-local
  out[2] = four ? 0x40 : 0x60;
  out[3] = datagram_service ? 0x01 : 0x1b;
  out[4] = static_cast<uint8_t>(pkey >> 8);
  out[5] = static_cast<uint8_t>(pkey);
  if (four) {
    out[12] = group.gid[12] & 0x0f;
    std::memcpy(out + 13, group.gid + 13, 3);
  } else {
    std::memcpy(out + 6, group.gid + 6, 10);
  }
}

bool FindPkey(const PortImage& port, uint16_t pkey, uint16_t* index) {
  constexpr uint16_t kFull = 0x8000;
  bool found = false;
  for (uint16_t i = 0; i < port.pkey_count; ++i) {
    const uint16_t own = i < std::size(port.pkeys) ? port.pkeys[i] : 0;
    if (((own ^ pkey) & ~kFull) != 0) continue;
    *index = i;
    if ((own & kFull) != 0) return true;
    found = true;
  }
  return found;
}

bool HasInterface(const World& world, uint32_t number) {
  constexpr uint32_t kLoopback = 1;
  if (number == kLoopback) return true;
  for (uint32_t d = 0; d < world.image().device_count; ++d) {
    const DeviceImage& device = world.image().device[d];
    for (uint32_t p = 0; p < device.port_count; ++p) {
      if (device.ports[p].ndev[0] != '\0' && device.ports[p].ndev_ifindex == number) return true;
    }
  }
  return false;
}

bool HasRoute(const World& world, const Address& address) {
  for (uint32_t d = 0; d < world.image().device_count; ++d) {
    const DeviceImage& device = world.image().device[d];
    for (uint32_t p = 0; p < device.port_count; ++p) {
      const PortImage& port = device.ports[p];
      if (port.ndev[0] == '\0') continue;
      for (const auto& own : port.ndev_addresses) {
        if (address.family == AF_INET && std::memcmp(own, address.gid, 13) == 0) return true;
        if (address.IsLinkLocal() && own[0] == 0xfe && address.scope == port.ndev_ifindex)
          return true;
      }
    }
  }
  return false;
}

}  // namespace vabi::rdma_cm
