// SPDX-License-Identifier: BSD-2-Clause
#include "shims/rdma_cm/path.h"

#include <algorithm>
#include <cstring>

#include "shims/port_rate.h"
#include "shims/uverbs/device.h"

namespace vabi::rdma_cm {
namespace {

constexpr uint8_t kRoceLife = 16;    // CMA_IBOE_PACKET_LIFETIME
constexpr uint8_t kMtu1024 = 3;      // iboe_get_mtu(1500)
constexpr uint8_t kHopLimit = 64;    // ip4_dst_hoplimit
constexpr uint8_t kSubnetLife = 18;  // OSM_DEFAULT_SUBNET_TIMEOUT

// enum ib_rate, by tenths of Gb/s
struct RateCode {
  int tenths;
  uint8_t code;
};
constexpr RateCode kRates[] = {{25, 2},    {100, 3},   {300, 4},   {50, 5},    {200, 6},
                               {400, 7},   {600, 8},   {800, 9},   {1200, 10}, {140, 11},
                               {560, 12},  {1120, 13}, {1680, 14}, {250, 15},  {1000, 16},
                               {2000, 17}, {3000, 18}, {280, 19},  {500, 20},  {4000, 21}};

int TenthsOf(const PortImage& port) {
  return FindPortSpeed(port.active_speed).tenths * PortLanes(port.active_width);
}
uint8_t RateOf(int tenths) {
  for (const RateCode& rate : kRates) {
    if (rate.tenths == tenths) return rate.code;
  }
  return kRates[0].code;
}

const PortImage* PortWith(const World& world, const uint8_t gid[16]) {
  for (uint32_t d = 0; d < world.image().device_count; ++d) {
    const Device* device = FindDevice(d);
    if (device == nullptr || device->node_gone() || device->image().link != LinkLayer::kInfiniband)
      continue;
    for (uint8_t p = 1; p <= device->image().port_count; ++p) {
      const PortImage& port = device->port(p);
      if (std::memcmp(port.gids[0].raw, gid, 16) == 0) return &port;
    }
  }
  return nullptr;
}

}  // namespace

Path RocePath(const Identifier& id) {
  Path path;
  path.known = true;
  std::memcpy(path.target, id.target.gid, 16);
  std::memcpy(path.source, id.source.gid, 16);
  path.hop_limit = kHopLimit;
  path.traffic_class = id.service_type;
  path.service_level = id.service_type >> 5;  // iboe_tos_to_sl, of an interface without a map
  path.mtu = kMtu1024;
  path.life = id.ack_timeout_set && id.ack_timeout != 0 ? static_cast<uint8_t>(id.ack_timeout - 1)
                                                        : kRoceLife;
  return path;
}

bool SubnetPath(const World& world, const Identifier& id, Path* path) {
  const PortImage* const from = PortWith(world, id.source_gid);
  const PortImage* const to = PortWith(world, id.target_gid);
  uint16_t index;
  if (from == nullptr || to == nullptr || (id.pkey & 0x7fff) == 0 ||
      !FindPkey(*from, id.pkey, &index) || !FindPkey(*to, id.pkey, &index)) {
    return false;
  }
  *path = {};
  path->known = true;
  std::memcpy(path->target, id.target_gid, 16);
  std::memcpy(path->source, id.source_gid, 16);
  path->target_lid = to->lid;
  path->source_lid = from->lid;
  path->pkey = id.pkey;
  // It leaves the traffic class as it was asked for, and the hop limit 0 within the subnet.
  if (id.source.family == kFamilyIb) {
    const auto* flow = reinterpret_cast<const uint8_t*>(&id.source.flow);
    path->traffic_class = static_cast<uint8_t>(flow[0] << 4 | flow[1] >> 4);
  }
  path->mtu = std::min(from->max_mtu, to->max_mtu);
  path->rate = RateOf(std::min(TenthsOf(*from), TenthsOf(*to)));
  path->life = from == to ? 0 : kSubnetLife;  // IBTA, table 205: none for loopback
  return true;
}

Path Reversed(const Path& path, uint64_t service, uint8_t timeout) {
  Path back = path;
  back.service = service;
  std::memcpy(back.target, path.source, 16);
  std::memcpy(back.source, path.target, 16);
  back.target_lid = path.source_lid;
  back.source_lid = path.target_lid;
  back.life = timeout > 0 ? static_cast<uint8_t>(timeout - 1) : 0;
  return back;
}

Group JoinedGroup(const PortImage& port, const uint8_t mgid[16]) {
  constexpr uint16_t kFirst = 0xc001, kRange = 0x3ffe;  // 0xc000: the broadcast group
  uint32_t digest = 0x811c9dc5;
  for (int i = 0; i < 16; ++i) digest = (digest ^ mgid[i]) * 0x01000193;
  return {static_cast<uint16_t>(kFirst + digest % kRange), RateOf(TenthsOf(port))};
}

}  // namespace vabi::rdma_cm
