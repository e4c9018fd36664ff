// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/address.h"

#include <cstring>

#include "shims/uverbs/port.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

constexpr uint8_t kGidTypeRoceV1 = 1;  // enum ib_uverbs_gid_type

bool IsLinkLocal(const uint8_t* gid) { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }
bool IsMappedV4(const uint8_t* gid) {
  static constexpr uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid, kPrefix, sizeof(kPrefix)) == 0;
}

// ib_addr.h:rdma_get_ll_mac
void MacFromLinkLocal(const uint8_t* gid, uint8_t* mac) {
  mac[0] = gid[8] ^ 2;
  mac[1] = gid[9];
  mac[2] = gid[10];
  mac[3] = gid[13];
  mac[4] = gid[14];
  mac[5] = gid[15];
}

// The MAC of the port in this world that owns the GID: the one that its link-local GID was made
// from.
bool MacOfWorld(const World& world, const uint8_t* gid, uint8_t* mac) {
  const WorldImage& image = world.image();
  for (uint32_t d = 0; d < image.device_count; ++d) {
    for (uint32_t p = 0; p < image.device[d].port_count && p < 2; ++p) {
      const PortImage& port = image.device[d].ports[p];
      for (uint32_t g = 0; g < port.gid_count && g < std::size(port.gids); ++g) {
        if (std::memcmp(port.gids[g].raw, gid, 16) != 0) continue;
        for (uint32_t l = 0; l < port.gid_count && l < std::size(port.gids); ++l) {
          if (!IsLinkLocal(port.gids[l].raw)) continue;
          MacFromLinkLocal(port.gids[l].raw, mac);
          return true;
        }
      }
    }
  }
  return false;
}

}  // namespace

fabric::AddressVector ReadDestination(const Body& from) {
  fabric::AddressVector to;
#define FIELD(name) VABI_F(ib_uverbs_qp_dest, name)
  from.GetBytes(FIELD(dgid), to.dgid, sizeof(to.dgid));
  to.flow_label = from.U32(FIELD(flow_label));
  to.dlid = static_cast<uint16_t>(from.Get(FIELD(dlid)));
  to.sgid_index = static_cast<uint8_t>(from.Get(FIELD(sgid_index)));
  to.hop_limit = static_cast<uint8_t>(from.Get(FIELD(hop_limit)));
  to.traffic_class = static_cast<uint8_t>(from.Get(FIELD(traffic_class)));
  to.sl = static_cast<uint8_t>(from.Get(FIELD(sl)));
  to.src_path_bits = static_cast<uint8_t>(from.Get(FIELD(src_path_bits)));
  to.static_rate = static_cast<uint8_t>(from.Get(FIELD(static_rate)));
  to.is_global = from.Get(FIELD(is_global)) != 0;
  to.port_num = static_cast<uint8_t>(from.Get(FIELD(port_num)));
  return to;
}

// copy_ah_attr_to_uverbs: the route only when there is one.
void WriteDestination(const fabric::AddressVector& from, const Body& to) {
  to.Set(FIELD(dlid), from.dlid);
  to.Set(FIELD(sl), from.sl);
  to.Set(FIELD(src_path_bits), from.src_path_bits);
  to.Set(FIELD(static_rate), from.static_rate);
  to.Set(FIELD(is_global), from.is_global);
  if (from.is_global != 0) {
    to.SetBytes(FIELD(dgid), from.dgid, sizeof(from.dgid));
    to.Set(FIELD(flow_label), from.flow_label);
    to.Set(FIELD(sgid_index), from.sgid_index);
    to.Set(FIELD(hop_limit), from.hop_limit);
    to.Set(FIELD(traffic_class), from.traffic_class);
  }
  to.Set(FIELD(port_num), from.port_num);
#undef FIELD
}

fabric::AddressVector ReadAhAttr(const Body& from) {
  fabric::AddressVector to;
#define FIELD(name) VABI_F(ib_uverbs_ah_attr, name)
  const Body route = from.Sub(FIELD(grh));
  to.is_global = from.Get(FIELD(is_global)) != 0;
  if (to.is_global != 0) {
    route.GetBytes(VABI_F(ib_uverbs_global_route, dgid), to.dgid, sizeof(to.dgid));
    to.flow_label = route.U32(VABI_F(ib_uverbs_global_route, flow_label));
    to.sgid_index = static_cast<uint8_t>(route.Get(VABI_F(ib_uverbs_global_route, sgid_index)));
    to.hop_limit = static_cast<uint8_t>(route.Get(VABI_F(ib_uverbs_global_route, hop_limit)));
    to.traffic_class =
        static_cast<uint8_t>(route.Get(VABI_F(ib_uverbs_global_route, traffic_class)));
  }
  to.dlid = static_cast<uint16_t>(from.Get(FIELD(dlid)));
  to.sl = static_cast<uint8_t>(from.Get(FIELD(sl)));
  to.src_path_bits = static_cast<uint8_t>(from.Get(FIELD(src_path_bits)));
  to.static_rate = static_cast<uint8_t>(from.Get(FIELD(static_rate)));
  to.port_num = static_cast<uint8_t>(from.Get(FIELD(port_num)));
#undef FIELD
  return to;
}

std::optional<RuleId> BrokenAddressRule(const Device& device,
                                        const fabric::AddressVector& address) {
  const auto violates = [&](RuleId rule, bool condition) {
    if (!condition) return false;
    const RuleEntry& entry = device.world().Rule(rule);
    return entry.on && !entry.relaxed;
  };
  if (!device.ValidPort(address.port_num)) return RuleId::address_port;
  PortAttributes port;
  device.driver().DescribePort(device, address.port_num, &port);
  if (violates(RuleId::address_grh_required,
               (port.grh_required || device.IsRoce()) && address.is_global == 0)) {
    return RuleId::address_grh_required;
  }
  if (address.is_global == 0) return std::nullopt;
  if (violates(RuleId::address_sgid_range,
               address.sgid_index >= device.port(address.port_num).gid_table_length)) {
    return RuleId::address_sgid_range;
  }
  GidEntry gid;
  if (violates(RuleId::address_sgid_empty,
               !FindGid(device, address.port_num, address.sgid_index, &gid))) {
    return RuleId::address_sgid_empty;
  }
  return std::nullopt;
}

int CheckAddress(Call& call, const fabric::AddressVector& address) {
  const auto broken = BrokenAddressRule(call.file.device(), address);
  return broken ? call.Refuse(*broken) : 0;
}

int ResolveMac(Call& call, fabric::AddressVector* address) {
  const Device& device = call.file.device();
  if (!device.IsRoce()) return 0;
  const uint8_t* dgid = address->dgid;
  if (dgid[0] == 0xff) {  // ipv6_eth_mc_map
    const uint8_t mac[6] = {0x33, 0x33, dgid[12], dgid[13], dgid[14], dgid[15]};
    std::memcpy(address->dmac, mac, sizeof(mac));
    return 0;
  }
  if (IsMappedV4(dgid) && (dgid[12] & 0xf0) == 0xe0) {  // ip_eth_mc_map
    const uint8_t mac[6] = {0x01,     0x00,    0x5e, static_cast<uint8_t>(dgid[13] & 0x7f),
                            dgid[14], dgid[15]};
    std::memcpy(address->dmac, mac, sizeof(mac));
    return 0;
  }
  GidEntry source;
  const bool known = FindGid(device, address->port_num, address->sgid_index, &source);
  if (IsLinkLocal(dgid) && known && source.type == kGidTypeRoceV1) {
    MacFromLinkLocal(dgid, address->dmac);
    return 0;
  }
  // addr.c:rdma_resolve_ip: both ends are IPv4 or both IPv6.
  if (known && IsMappedV4(source.raw) != IsMappedV4(dgid)) return -EINVAL;
  // rdma_addr_find_l2_eth_by_grh asks the IP stack. In this world every GID is a neighbour's.
  if (!MacOfWorld(call.world, dgid, address->dmac)) {
    return call.Unmodelled("address resolution of a GID outside the world");
  }
  address->hop_limit = 64;  // ip4_dst_hoplimit, ip6_dst_hoplimit
  return 0;
}

}  // namespace vabi
