// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_PACKET_H_
#define VABI_SHIMS_PROVIDERS_MLX5_PACKET_H_

#include <array>
#include <cstddef>
#include <cstdint>

// Ethernet frames as the NIC's steering sees them: their headers in the format that match criteria
// have (PRM: fte_match_param), so that a match is a masked comparison. All numbers in it are
// big-endian.

namespace vabi::mlx5 {

struct Frame {
  const uint8_t* bytes;
  uint32_t length;
  uint32_t flow_tag = 0;
};

// fte_match_param: seven sections of 64 bytes, and room.
inline constexpr size_t kMatchSize = 512, kMatchSection = 64;
using MatchParams = std::array<uint8_t, kMatchSize>;
// Bits of match_criteria_enable: which sections count.
enum MatchEnable : uint8_t { kMatchOuter = 1 << 0, kMatchMisc = 1 << 1, kMatchInner = 1 << 2 };
inline constexpr size_t kOuterHeaders = 0, kMiscParameters = 64, kInnerHeaders = 128,
                        kMiscParameters2 = 192;

// fte_match_set_lyr_2_4; offsets in a section of headers.
inline constexpr size_t kMatchSmac = 0, kMatchEthertype = 6, kMatchDmac = 8, kMatchVlan = 14,
                        kMatchProtocol = 16, kMatchTos = 17, kMatchTags = 18, kMatchTcpPorts = 20,
                        kMatchIhl = 26, kMatchTtl = 27, kMatchUdpPorts = 28, kMatchSource = 32,
                        kMatchDestination = 48, kMatchIpv4 = 12;
inline constexpr uint8_t kMatchCvlan = 0x80, kMatchSvlan = 0x40, kMatchFragment = 0x20;
inline constexpr int kMatchIpVersionShift = 1;
// fte_match_set_misc
inline constexpr size_t kMatchGreProtocol = 14, kMatchGreKey = 16, kMatchVni = 20,
                        kMatchFlowLabel = 28, kMatchInnerFlowLabel = 32;

// The headers of a frame. What is not there stays 0.
MatchParams ParseFrame(const Frame& frame);
// False: the mask asks for something that ParseFrame does not fill in.
bool Parses(const MatchParams& mask, uint8_t enable);
// Compares the enabled sections.
bool Matches(const MatchParams& packet, const MatchParams& mask, const MatchParams& value,
             uint8_t enable);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_PACKET_H_
