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

}  // namespace

bool Address::IsZero() const {
  static constexpr uint8_t kZero[16] = {};
  const size_t from = family == AF_INET ? 12 : 0;
  return std::memcmp(gid + from, kZero, 16 - from) == 0;
}

bool Address::IsLoopback() const {
  if (family == AF_INET) return gid[12] == 127;
  if (family != AF_INET6) return false;
  static constexpr uint8_t kOne[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return std::memcmp(gid, kOne, sizeof(kOne)) == 0;
}

bool Address::IsLinkLocal() const {
  return family == AF_INET6 && gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

bool Address::SameHost(const Address& other) const {
  return family == other.family && std::memcmp(gid, other.gid, sizeof(gid)) == 0;
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
    std::memcpy(address.gid, from + 8, sizeof(address.gid));
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
    std::memcpy(to + 8, address.gid, sizeof(address.gid));
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
    if (device == nullptr || device->node_gone() || device->image().link != LinkLayer::kEthernet) {
      continue;
    }
    for (uint8_t p = 1; p <= device->image().port_count; ++p) {
      const PortImage& port = device->port(p);
      const uint8_t type = DefaultGidType(world, port);
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
    if (device.link != LinkLayer::kEthernet) continue;
    for (uint32_t p = 0; p < device.port_count; ++p) {
      for (uint32_t g = 0; g < device.ports[p].gid_count; ++g) {
        const uint8_t* own = device.ports[p].gids[g].raw;
        if (address.family == AF_INET && std::memcmp(own, address.gid, 13) == 0) return true;
        if (address.IsLinkLocal() && own[0] == 0xfe &&
            address.scope == device.ports[p].gids[g].ndev_ifindex) {
          return true;
        }
      }
    }
  }
  return false;
}

}  // namespace vabi::rdma_cm
