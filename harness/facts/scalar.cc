// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/scalar.h"

namespace vabi::facts {
namespace {

struct Scalar {
  std::string_view name;
  uint32_t x86_64, i386;
};

constexpr Scalar kScalars[] = {
    {"__u8", 1, 1},           {"__s8", 1, 1},
    {"char", 1, 1},           {"unsigned char", 1, 1},
    {"signed char", 1, 1},    {"_Bool", 1, 1},
    {"bool", 1, 1},           {"__u16", 2, 2},
    {"__s16", 2, 2},          {"__be16", 2, 2},
    {"__le16", 2, 2},         {"short", 2, 2},
    {"unsigned short", 2, 2}, {"__u32", 4, 4},
    {"__s32", 4, 4},          {"__be32", 4, 4},
    {"__le32", 4, 4},         {"int", 4, 4},
    {"unsigned int", 4, 4},   {"unsigned", 4, 4},
    {"__u64", 8, 8},          {"__s64", 8, 8},
    {"__be64", 8, 8},         {"__le64", 8, 8},
    {"__aligned_u64", 8, 8},  {"__aligned_s64", 8, 8},
    {"__aligned_be64", 8, 8}, {"__aligned_le64", 8, 8},
    {"long", 8, 4},           {"unsigned long", 8, 4},
    {"long long", 8, 8},      {"unsigned long long", 8, 8},
};

}  // namespace

std::optional<uint32_t> ScalarSize(std::string_view type, Arch arch) {
  bool i386 = arch == Arch::kI386;
  if (type.ends_with('*')) return i386 ? 4 : 8;
  if (type.starts_with("enum ")) return 4;
  for (const Scalar& scalar : kScalars) {
    if (scalar.name == type) return i386 ? scalar.i386 : scalar.x86_64;
  }
  return std::nullopt;
}

}  // namespace vabi::facts
