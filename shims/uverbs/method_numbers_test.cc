// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include "harness/world/test_world.h"
#include "shims/uverbs/method_table.h"

namespace vabi {
namespace {

MethodSpec Of(MethodId id) {
  return {.id = id, .needs = Op::always, .attributes = {}, .handler = nullptr};
}

// Numbers of the newest facts, names on a kernel whose headers know no ioctl at all.
TEST(MethodNumbers, NameWhatAnOldKernelHasNoNameFor) {
  TestWorld newest("debian-7.3.4", {"mlx5"}), oldest("linux-4.4", {"mlx5"});
  for (size_t i = 0; i < MethodRows().size(); ++i) {
    const MethodRow& row = MethodRows()[i];
    if (*row.name == '\0') continue;
    const auto object = newest.world().Constant(row.object),
               method = newest.world().Constant(row.method);
    ASSERT_TRUE(object && method) << row.name;
    const MethodSpec own[] = {Of(static_cast<MethodId>(i))};
    const char* name = MethodTable::NameOf(oldest.world(), own, static_cast<uint16_t>(*object),
                                           static_cast<uint16_t>(*method));
    EXPECT_STREQ(row.name, name);
  }
  EXPECT_EQ(nullptr, MethodTable::NameOf(oldest.world(), {}, 0, 99));
}

// bnxt_re's first object has the number of mlx5's first.
TEST(MethodNumbers, OfADriverAreNamedForItsDevices) {
  TestWorld newest("debian-7.3.4", {"mlx5"});
  const MethodSpec own[] = {Of(MethodId::DEVX__OTHER)};
  EXPECT_STREQ("DEVX.OTHER", MethodTable::NameOf(newest.world(), own, 0x1000, 0x1000));
  EXPECT_EQ(nullptr, MethodTable::NameOf(newest.world(), {}, 0x1000, 0x1000));
  EXPECT_STREQ("CQ.CREATE", MethodTable::NameOf(newest.world(), {}, 3, 0));
}

}  // namespace
}  // namespace vabi
