// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PORT_RATE_H_
#define VABI_SHIMS_PORT_RATE_H_

#include <cstdint>

// What a port carries, from its speed and width (core/sysfs.c:rate_show, since 7.2
// core/verbs.c:ib_port_attr_to_speed_info).

namespace vabi {

struct PortSpeed {
  uint16_t value;  // enum ib_port_speed
  const char* name;
  int tenths;  // of Gb/s, one lane
};

// The first is what both functions fall back to.
inline constexpr PortSpeed kPortSpeeds[] = {
    {1, " SDR", 25},    {2, " DDR", 50},     {4, " QDR", 100},
    {8, " FDR10", 100}, {16, " FDR", 140},   {32, " EDR", 250},
    {64, " HDR", 500},  {128, " NDR", 1000}, {256, " XDR", 2000},
};

inline const PortSpeed& FindPortSpeed(uint16_t speed) {
  for (const PortSpeed& row : kPortSpeeds) {
    if (row.value == speed) return row;
  }
  return kPortSpeeds[0];
}

// ib_width_enum_to_int; -1: no width.
inline int PortLanes(uint8_t width) {
  switch (width) {
    case 1:
      return 1;
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 12;
    case 16:
      return 2;
    default:
      return -1;
  }
}

}  // namespace vabi

#endif  // VABI_SHIMS_PORT_RATE_H_
