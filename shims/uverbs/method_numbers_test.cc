// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include "harness/world/test_world.h"
#include "shims/uverbs/method_table.h"

namespace vabi {
namespace {

// Numbers of the newest facts, names on a kernel whose headers know no ioctl at all.
TEST(MethodNumbers, NameWhatAnOldKernelHasNoNameFor) {
  TestWorld newest("debian-7.3.4", {"mlx5"}), oldest("linux-4.4", {"mlx5"});
  for (size_t i = 0; i < MethodRows().size(); ++i) {
    const MethodRow& row = MethodRows()[i];
    if (*row.name == '\0') continue;
    const auto object = newest.world().Constant(row.object),
               method = newest.world().Constant(row.method);
    ASSERT_TRUE(object && method) << row.name;
    const char* name = MethodTable::NameOf(oldest.world(), static_cast<uint16_t>(*object),
                                           static_cast<uint16_t>(*method));
    EXPECT_STREQ(row.name, name);
  }
  EXPECT_EQ(nullptr, MethodTable::NameOf(oldest.world(), 0, 99));
}

}  // namespace
}  // namespace vabi
