// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/fallback_table.h"

#include <gtest/gtest.h>

namespace vabi::conformance {
namespace {

TEST(FallbackTable, KnowsTheFormOfACommand) {
  EXPECT_EQ(FallbackOfCommand("CREATE_CQ", false)->method, "CQ.CREATE");
  EXPECT_EQ(FallbackOfCommand("CREATE_CQ", true)->method, "CQ.CREATE");
  EXPECT_EQ(FallbackOfCommand("CREATE_WQ", true)->method, "WQ.CREATE");
  EXPECT_EQ(FallbackOfCommand("CREATE_WQ", false), nullptr);
  EXPECT_EQ(FallbackOfCommand("DESTROY_AH", true), nullptr);
  EXPECT_EQ(FallbackOfCommand("ALLOC_PD", false), nullptr);
  EXPECT_EQ(FallbackOfCommand("REG_MR", false), nullptr) << "ibv_reg_mr writes it without a try";
}

TEST(FallbackTable, KnowsSinceWhen) {
  EXPECT_EQ(FallbackOfMethod("MR.REG_MR", {56, 1}), nullptr);
  EXPECT_EQ(FallbackOfMethod("MR.REG_MR", {65, 0})->bit, "reg_mr_ex");
  EXPECT_EQ(FallbackOfMethod("RWQ_IND_TBL.DESTROY", {33, 2})->bit, "destroy_ah");
  EXPECT_EQ(FallbackOfMethod("UAR.OBJ_ALLOC", {44, 0}), nullptr);
}

}  // namespace
}  // namespace vabi::conformance
