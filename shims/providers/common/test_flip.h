// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_COMMON_TEST_FLIP_H_
#define VABI_SHIMS_PROVIDERS_COMMON_TEST_FLIP_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "shims/providers/common/test_hca.h"

// Each byte of each private request is flipped in turn, and the answer is compared with what the
// driver's source says of that byte: either it is looked at, and a rule answers; or it may be
// anything, for a reason that names file and function. The ranges of a request must cover it
// exactly, in every kernel named.

namespace vabi {

// What the source says of some bytes of a request.
struct FlipRange {
  FieldId field;               // kWhole: the whole request; kBehind: 8 zero bytes behind it
  uint16_t first = 0;          // of the field
  uint16_t count = 0;          // 0: up to its end
  const char* rule = nullptr;  // that answers; null: taken
  int error = 0;               // positive errno
  uint8_t change = 0;    // 0xff: with all bits of the byte flipped; 1: the lowest only; 0: both
  const char* why = "";  // file:function, and for what is taken the reason

  static constexpr FieldId kWhole = FieldId::kCount;
  static constexpr FieldId kBehind = static_cast<FieldId>(0xffff);
};

// The ranges of an address in TestHca's buffer, or of a length from there, that may be any: what
// leads out of the 128 KiB that are mapped there is refused by `rule` with EFAULT.
inline std::vector<FlipRange> FlipAddress(FieldId field, const char* rule, const char* why) {
  return {
      {.field = field, .first = 0, .count = 2, .why = why},
      {.field = field, .first = 2, .count = 1, .change = 1, .why = why},
      {.field = field, .first = 2, .rule = rule, .error = EFAULT, .change = 0xff, .why = why},
      {.field = field, .first = 3, .rule = rule, .error = EFAULT, .change = 1, .why = why},
  };
}

struct FlipRequest {
  const char* name;
  std::vector<const char*> kernels;
  StructId structure;  // its size in each kernel is the request's
  // A valid request, by this kernel's layout; makes what it needs first.
  std::function<Bytes(TestHca&)> build;
  // Sends it: what write() answers.
  std::function<long(TestHca&, const Bytes&)> send;
  std::vector<FlipRange> ranges;
  FlipRequest& Add(const std::vector<FlipRange>& more) {
    ranges.insert(ranges.end(), more.begin(), more.end());
    return *this;
  }
  size_t size = 0;  // instead of the structure's
};

inline constexpr uint8_t kFlips[] = {0xff, 1};

inline void FlipByte(const FlipRequest& request, const char* kernel, const char* provider,
                     size_t at, size_t length, uint8_t change, const FlipRange& range) {
  TestHca hca(kernel, provider);
  Bytes bytes = request.build(hca);
  bytes.resize(length);
  bytes[at] ^= change;
  const long result = request.send(hca, bytes);
  const std::string where = std::string(request.name) + " on " + kernel + ", byte " +
                            std::to_string(at) + " ^ " + std::to_string(change) + " (" + range.why +
                            ")";
  if (range.rule == nullptr) {
    EXPECT_GE(result, 0) << where << ": refused by " << hca.LastRule() << hca.LastUnmodelled();
  } else {
    EXPECT_EQ(-range.error, result) << where;
    EXPECT_EQ(range.rule, hca.LastRule()) << where;
  }
}

inline void FlipEachByte(const FlipRequest& request, const char* provider) {
  for (const char* kernel : request.kernels) {
    size_t size = request.size;
    std::vector<const FlipRange*> by_flip[std::size(kFlips)];
    {
      TestHca hca(kernel, provider);
      const World& world = hca.world();
      if (size == 0) size = world.Size(request.structure);
      ASSERT_NE(0u, size) << request.name << ": " << kernel << " has no such request";
      Bytes bytes = request.build(hca);
      bytes.resize(size);
      ASSERT_GE(request.send(hca, bytes), 0)
          << request.name << " on " << kernel << ": refused before a byte is flipped, by "
          << hca.LastRule() << hca.LastUnmodelled();
      for (auto& by_byte : by_flip) by_byte.assign(size, nullptr);
      for (const FlipRange& range : request.ranges) {
        if (range.field == FlipRange::kBehind) continue;
        FieldLoc loc = {0, static_cast<uint16_t>(size)};
        if (range.field != FlipRange::kWhole) loc = world.At(range.field);
        if (loc.offset < 0) continue;  // this kernel has no such field
        const size_t first = static_cast<size_t>(loc.offset) + range.first;
        const size_t end =
            range.count != 0 ? first + range.count : static_cast<size_t>(loc.offset) + loc.size;
        for (size_t flip = 0; flip < std::size(kFlips); ++flip) {
          if (range.change != 0 && range.change != kFlips[flip]) continue;
          for (size_t at = first; at < end && at < size; ++at) {
            EXPECT_EQ(nullptr, by_flip[flip][at])
                << request.name << " on " << kernel << ": two ranges say of byte " << at;
            by_flip[flip][at] = &range;
          }
        }
      }
    }
    for (size_t flip = 0; flip < std::size(kFlips); ++flip) {
      for (size_t at = 0; at < size; ++at) {
        ASSERT_NE(nullptr, by_flip[flip][at])
            << request.name << " on " << kernel << ": no range says of byte " << at;
        FlipByte(request, kernel, provider, at, size, kFlips[flip], *by_flip[flip][at]);
      }
    }
    for (const FlipRange& range : request.ranges) {
      if (range.field != FlipRange::kBehind) continue;
      for (size_t at = size; at < size + 8; ++at)
        FlipByte(request, kernel, provider, at, size + 8, kFlips[0], range);
    }
  }
}

// What is made of bytes behind a request: kernels up to 6.18 as a rule take it as it is, those
// since look at them.
struct FlipTail {
  std::vector<const char*> taken;
  const char* taken_why;
  std::vector<const char*> refused;
  const char* rule;  // answers EOPNOTSUPP
  const char* refused_why;
};

inline void FlipWithTail(FlipRequest request, const FlipTail& tail, const char* provider) {
  request.kernels = tail.taken;
  request.ranges.push_back({.field = FlipRange::kBehind, .why = tail.taken_why});
  FlipEachByte(request, provider);
  request.kernels = tail.refused;
  request.ranges.back() = {
      .field = FlipRange::kBehind, .rule = tail.rule, .error = EOPNOTSUPP, .why = tail.refused_why};
  FlipEachByte(request, provider);
}

}  // namespace vabi

#endif  // VABI_SHIMS_PROVIDERS_COMMON_TEST_FLIP_H_
