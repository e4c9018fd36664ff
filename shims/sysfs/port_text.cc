// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sysfs/port_text.h"

#include <cstdarg>
#include <cstdio>
#include <iterator>

namespace vabi::sysfs {
namespace {

template <size_t kSize>
const char* Pick(const char* const (&names)[kSize], size_t index, const char* otherwise) {
  return index < kSize && names[index] ? names[index] : otherwise;
}

struct Speed {
  uint16_t value;  // enum ib_port_speed
  const char* name;
  int tenths;  // of Gb/s, one lane
};
constexpr Speed kSpeeds[] = {
    {1, " SDR", 25},    {2, " DDR", 50},     {4, " QDR", 100},
    {8, " FDR10", 100}, {16, " FDR", 140},   {32, " EDR", 250},
    {64, " HDR", 500},  {128, " NDR", 1000}, {256, " XDR", 2000},
};

// ib_width_enum_to_int
int Lanes(uint8_t width) {
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

}  // namespace

std::string Format(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) return "";
  return std::string(text, std::min(static_cast<size_t>(length), sizeof text - 1));
}

std::string GuidText(uint64_t guid) {
  return Format("%04x:%04x:%04x:%04x", static_cast<unsigned>(guid >> 48),
                static_cast<unsigned>(guid >> 32) & 0xffff,
                static_cast<unsigned>(guid >> 16) & 0xffff, static_cast<unsigned>(guid) & 0xffff);
}

std::string GidText(const uint8_t raw[16]) {
  std::string text;
  for (int i = 0; i < 16; i += 2) {
    text += Format("%s%02x%02x", i == 0 ? "" : ":", raw[i], raw[i + 1]);
  }
  return text;
}

std::string GidTypeText(uint8_t type) { return type == 2 ? "RoCE v2" : "IB/RoCE v1"; }

std::string StateText(uint8_t state) {
  static const char* const kNames[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
  return Format("%d: %s", state, Pick(kNames, state, "UNKNOWN"));
}

std::string PhysStateText(uint8_t state) {
  static const char* const kNames[] = {
      "<unknown>",         "Sleep",   "Polling", "Disabled", "PortConfigurationTraining", "LinkUp",
      "LinkErrorRecovery", "Phy Test"};
  return Format("%u: %s", state, Pick(kNames, state, "<unknown>"));
}

std::string NodeTypeText(uint8_t type) {
  static const char* const kNames[] = {nullptr, "CA",    "switch",    "router",
                                       "RNIC",  "usNIC", "usNIC UDP", "unspecified"};
  return Format("%u: %s", type, Pick(kNames, type, "<unknown>"));
}

std::string RateText(uint8_t width, uint16_t speed, int64_t max_speed, bool sdr_suffix) {
  const Speed* found = &kSpeeds[0];  // what rate_show falls back to
  for (const Speed& row : kSpeeds) {
    if (row.value == speed && speed <= max_speed) found = &row;
  }
  const int lanes = Lanes(width);
  if (lanes < 0) return "";
  const int rate = found->tenths * lanes;
  const char* name = found == &kSpeeds[0] && !sdr_suffix ? "" : found->name;
  return Format("%d%s Gb/sec (%dX%s)", rate / 10, rate % 10 ? ".5" : "", lanes, name);
}

}  // namespace vabi::sysfs
