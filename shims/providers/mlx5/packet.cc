// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/packet.h"

#include <cstring>

#include "shims/providers/mlx5/wire_format.h"

namespace vabi::mlx5 {
namespace {

constexpr uint16_t kTypeIpv4 = 0x0800, kTypeIpv6 = 0x86dd, kTypeCvlan = 0x8100, kTypeSvlan = 0x88a8;
constexpr uint8_t kTcp = 6, kUdp = 17;
constexpr uint16_t kVxlanPort = 4789;
constexpr size_t kMac = 6, kIpv4Header = 20, kIpv6Header = 40, kUdpHeader = 8;

void ParsePorts(const Frame& frame, size_t at, uint8_t protocol, MatchParams* to) {
  if (at + 4 > frame.length) return;
  if (protocol == kTcp) {
    std::memcpy(&(*to)[kMatchTcpPorts], frame.bytes + at, 4);
    if (at + 14 <= frame.length) {  // nine flags behind the header's length
      (*to)[kMatchTags] |= frame.bytes[at + 12] & 1;
      (*to)[kMatchTags + 1] = frame.bytes[at + 13];
    }
  }
  if (protocol != kUdp) return;
  std::memcpy(&(*to)[kMatchUdpPorts], frame.bytes + at, 4);
  const size_t vxlan = at + kUdpHeader;
  if (Load16(frame.bytes + at + 2) == kVxlanPort && vxlan + 8 <= frame.length) {
    std::memcpy(&(*to)[kMiscParameters + kMatchVni], frame.bytes + vxlan + 4, 3);
  }
}

void ParseIpv4(const Frame& frame, size_t at, MatchParams* to) {
  if (at + kIpv4Header > frame.length) return;
  const uint8_t* ip = frame.bytes + at;
  (*to)[kMatchTags] |= 4 << kMatchIpVersionShift;
  (*to)[kMatchIhl] = static_cast<uint8_t>((ip[0] & 0xf) << 4);
  (*to)[kMatchTos] = ip[1];
  const uint16_t fragment = Load16(ip + 6);
  const bool fragmented = (fragment & 0x3fff) != 0;  // more of them, or not the first
  if (fragmented) (*to)[kMatchTags] |= kMatchFragment;
  (*to)[kMatchTtl] = ip[8];
  (*to)[kMatchProtocol] = ip[9];
  std::memcpy(&(*to)[kMatchSource + kMatchIpv4], ip + 12, 4);
  std::memcpy(&(*to)[kMatchDestination + kMatchIpv4], ip + 16, 4);
  if ((fragment & 0x1fff) == 0) ParsePorts(frame, at + (ip[0] & 0xfu) * 4, ip[9], to);
}

void ParseIpv6(const Frame& frame, size_t at, MatchParams* to) {
  if (at + kIpv6Header > frame.length) return;
  const uint8_t* ip = frame.bytes + at;
  (*to)[kMatchTags] |= 6 << kMatchIpVersionShift;
  (*to)[kMatchTos] = static_cast<uint8_t>(ip[0] << 4 | ip[1] >> 4);
  (*to)[kMatchProtocol] = ip[6];
  (*to)[kMatchTtl] = ip[7];
  std::memcpy(&(*to)[kMatchSource], ip + 8, 16);
  std::memcpy(&(*to)[kMatchDestination], ip + 24, 16);
  Store32(&(*to)[kMiscParameters + kMatchFlowLabel], Load32(ip) & 0xfffff);
  ParsePorts(frame, at + kIpv6Header, ip[6], to);
}

// What ParseFrame fills in: of the headers all, of the others two numbers.
MatchParams Filled() {
  MatchParams known = {};
  std::memset(known.data(), 0xff, kMatchTcpPorts + 4);
  known[kMatchIhl] = 0xf0;
  known[kMatchTtl] = 0xff;
  std::memset(&known[kMatchUdpPorts], 0xff, kMatchSection - kMatchUdpPorts);
  std::memset(&known[kMiscParameters + kMatchVni], 0xff, 3);
  Store32(&known[kMiscParameters + kMatchFlowLabel], 0xfffff);
  return known;
}

}  // namespace

MatchParams ParseFrame(const Frame& frame) {
  MatchParams to = {};
  if (frame.length < 2 * kMac + 2) return to;
  std::memcpy(&to[kMatchDmac], frame.bytes, kMac);
  std::memcpy(&to[kMatchSmac], frame.bytes + kMac, kMac);
  size_t at = 2 * kMac;
  uint16_t type = Load16(frame.bytes + at);
  at += 2;
  if ((type == kTypeCvlan || type == kTypeSvlan) && at + 4 <= frame.length) {
    to[kMatchTags] |= type == kTypeCvlan ? kMatchCvlan : kMatchSvlan;
    // Priority, CFI and VLAN id stand in the criteria as they do in the tag.
    std::memcpy(&to[kMatchVlan], frame.bytes + at, 2);
    type = Load16(frame.bytes + at + 2);
    at += 4;
  }
  Store16(&to[kMatchEthertype], type);
  if (type == kTypeIpv4) ParseIpv4(frame, at, &to);
  if (type == kTypeIpv6) ParseIpv6(frame, at, &to);
  return to;
}

bool Parses(const MatchParams& mask, uint8_t enable) {
  static const MatchParams known = Filled();
  for (size_t i = 0; i < kMatchSize; ++i) {
    const bool enabled = (enable >> (i / kMatchSection) & 1) != 0;
    if (enabled && (mask[i] & ~known[i]) != 0) return false;
  }
  return true;
}

bool Matches(const MatchParams& packet, const MatchParams& mask, const MatchParams& value,
             uint8_t enable) {
  for (size_t i = 0; i < kMatchSize; ++i) {
    const bool enabled = (enable >> (i / kMatchSection) & 1) != 0;
    if (enabled && ((packet[i] ^ value[i]) & mask[i]) != 0) return false;
  }
  return true;
}

}  // namespace vabi::mlx5
