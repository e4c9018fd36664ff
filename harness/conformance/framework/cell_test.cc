// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/cell.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace vabi::conformance {
namespace {

constexpr char kText[] = R"({
  "id": "deb-56.1/linux-5.6/mlx5/errno@CQ.CREATE=EPERM", "kernel": "linux-5.6", "userland": "deb-56.1", "release": "56.1",
  "devices": [{"driver": "mlx5", "name": "mlx5_0", "link": "ib", "abi": 1}],
  "overlays": ["errno@CQ.CREATE=EPERM"], "trace": "/tmp/t",
  "model": {"rules": {"a.b": {"on": true, "errno": "EOPNOTSUPP"}}, "knobs": {"ioctl": 0}, "methods": {"CQ.CREATE": true},
            "write": {"ALLOC_PD": true}, "write_ex": {"CREATE_CQ": true}, "structs": {"x": 24},
            "ops": {"mlx5": {"create_cq": true}}}})";

TEST(Cell, TakesItsFactsFromJson) {
  Cell cell;
  std::string error;
  ASSERT_TRUE(ParseCell(kText, &cell, &error)) << error;
  EXPECT_EQ(cell.kernel, "linux-5.6");
  EXPECT_EQ(cell.release, (Release{56, 1}));
  EXPECT_EQ(cell.device().name, "mlx5_0");
  EXPECT_EQ(cell.device().abi, 1);
  EXPECT_EQ(cell.Rule("a.b").error, EOPNOTSUPP);
  EXPECT_EQ(cell.Knob("ioctl"), 0);
  EXPECT_FALSE(cell.Serves("CQ.CREATE")) << "there is no ioctl";
  EXPECT_TRUE(cell.Serves("ALLOC_PD"));
  EXPECT_TRUE(cell.Serves("EX_CREATE_CQ"));
  EXPECT_TRUE(cell.Op("mlx5", "create_cq"));
  EXPECT_EQ(cell.SizeOf("x"), 24u);
  EXPECT_EQ(cell.SizeOf("y"), 0u);
  EXPECT_EQ(cell.OverlayValue("errno@CQ.CREATE"), "EPERM");
  EXPECT_EQ(cell.OverlayValue("errno"), std::nullopt);
}

TEST(Cell, SaysWhatIsWrong) {
  Cell cell;
  std::string error;
  EXPECT_FALSE(ParseCell("{", &cell, &error));
  EXPECT_FALSE(error.empty());
  EXPECT_FALSE(ParseCell(R"({"id": "x"})", &cell, &error));
  EXPECT_NE(error.find("kernel"), std::string::npos);
}

TEST(Cell, ReleasesAreOrdered) {
  EXPECT_LT(ParseRelease("33.2"), ParseRelease("44.0"));
  EXPECT_LT(ParseRelease("44.0"), ParseRelease("44.1"));
  EXPECT_EQ(ParseRelease("65"), (Release{65, 0}));
}

}  // namespace
}  // namespace vabi::conformance
