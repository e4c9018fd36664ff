// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sysfs/port_text.h"

#include <cstdarg>
#include <cstdio>
#include <iterator>

#include "shims/port_rate.h"

namespace vabi::sysfs {
namespace {

template <size_t kSize>
const char* Pick(const char* const (&names)[kSize], size_t index, const char* otherwise) {
  return index < kSize && names[index] ? names[index] : otherwise;
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
  const PortSpeed* found = &FindPortSpeed(speed <= max_speed ? speed : 0);
  const int lanes = PortLanes(width);
  if (lanes < 0) return "";
  const int rate = found->tenths * lanes;
  const char* name = found == &kPortSpeeds[0] && !sdr_suffix ? "" : found->name;
  return Format("%d%s Gb/sec (%dX%s)", rate / 10, rate % 10 ? ".5" : "", lanes, name);
}

}  // namespace vabi::sysfs
