// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/needs.h"

#include <gtest/gtest.h>

#include "harness/conformance/framework/test_cell.h"

namespace vabi::conformance {
namespace {

// What is lacking; nothing when the test holds.
std::string Lacks(const Needs& needs, const Cell& cell) {
  std::string why;
  const bool holds = Hold(needs, cell, &why);
  EXPECT_EQ(holds, why.empty());
  return why;
}

Cell With(std::vector<std::string> overlays) {
  Cell cell = UsualTestCell();
  cell.overlays = std::move(overlays);
  return cell;
}

TEST(Needs, NothingHoldsEverywhere) { EXPECT_EQ(Lacks(Needs{}, UsualTestCell()), ""); }

TEST(Needs, EachNeedCanBeLacking) {
  const Cell cell = UsualTestCell();
  EXPECT_EQ(Lacks(Needs{.provider = "mlx5"}, cell), "provider mlx5");
  EXPECT_EQ(Lacks(Needs{.not_provider = cell.devices[0].driver}, cell),
            "another provider than " + cell.devices[0].driver);
  EXPECT_EQ(Lacks(Needs{.not_provider = "mlx5"}, cell), "");
  EXPECT_EQ(Lacks(Needs{.link = "ib"}, cell), "link ib");
  EXPECT_EQ(Lacks(Needs{.devices = 2}, cell), "2 devices");
  EXPECT_EQ(Lacks(Needs{.kernels = {"linux-*"}}, cell), "another kernel");
  EXPECT_EQ(Lacks(Needs{.served = {"DM.ALLOC"}}, cell), "DM.ALLOC");
  EXPECT_EQ(Lacks(Needs{.served = {"OPEN_QP"}}, cell), "OPEN_QP");
  EXPECT_EQ(Lacks(Needs{.served = {"EX_MODIFY_CQ"}}, cell), "EX_MODIFY_CQ");
  EXPECT_EQ(Lacks(Needs{.missing = {"CQ.CREATE"}}, cell), "no CQ.CREATE");
  EXPECT_EQ(Lacks(Needs{.any_missing = {"CQ.CREATE", "REREG_MR"}}, cell),
            "one of its methods missing");
  EXPECT_EQ(Lacks(Needs{.ops = {"alloc_dm"}}, cell), "operation alloc_dm");
  EXPECT_EQ(Lacks(Needs{.no_ops = {"create_cq"}}, cell), "no operation create_cq");
  EXPECT_EQ(Lacks(Needs{.rules = {"rxe.create_qp.flags"}}, cell), "rule rxe.create_qp.flags");
  EXPECT_EQ(Lacks(Needs{.no_rules = {"mlx5.ucontext.flags"}}, cell), "no rule mlx5.ucontext.flags");
  EXPECT_EQ(Lacks(Needs{.knobs = {{"netlink.level", 0, 1}}}, cell), "another netlink.level");
  EXPECT_EQ(Lacks(Needs{.structs = {{"ib_uverbs_ex_query_device_resp", 1, 303}}}, cell),
            "another size of ib_uverbs_ex_query_device_resp");
  EXPECT_EQ(Lacks(Needs{.from = {44, 1}}, cell), "another release of rdma-core");
  EXPECT_EQ(Lacks(Needs{.until = {44, 0}}, cell), "another release of rdma-core");
  EXPECT_EQ(Lacks(Needs{.from = {44, 0}, .until = {44, 1}}, cell), "");
}

TEST(Needs, IoctlAndInvokeWriteAreThreeCases) {
  Cell absent = UsualTestCell(), without = UsualTestCell();
  absent.knobs["ioctl"] = 0;
  without.methods["DEVICE.INVOKE_WRITE"] = false;
  EXPECT_EQ(Lacks(Needs{.ioctl = Ioctl::kAbsent}, absent), "");
  EXPECT_NE(Lacks(Needs{.ioctl = Ioctl::kPresent}, absent), "");
  EXPECT_NE(Lacks(Needs{.ioctl = Ioctl::kAbsent}, without), "");
  EXPECT_EQ(Lacks(Needs{.invoke_write = InvokeWrite::kMissing}, without), "");
  EXPECT_NE(Lacks(Needs{.invoke_write = InvokeWrite::kMissing}, absent), "");
  EXPECT_NE(Lacks(Needs{.invoke_write = InvokeWrite::kServed}, absent), "");
  EXPECT_EQ(Lacks(Needs{.invoke_write = InvokeWrite::kServed}, UsualTestCell()), "");
  // No method is served where there is no ioctl.
  EXPECT_EQ(Lacks(Needs{.missing = {"CQ.CREATE"}}, absent), "");
}

TEST(Needs, DiscoveryFollowsNetlink) {
  Cell nodes = UsualTestCell(), devices = nodes, none = nodes, old = nodes;
  devices.knobs["netlink.level"] = 1;
  none.knobs["netlink.level"] = 0;
  old.knobs["netlink.nldev"] = 0;
  EXPECT_EQ(Lacks(Needs{.discovery = Discovery::kNetlink}, nodes), "");
  EXPECT_EQ(Lacks(Needs{.discovery = Discovery::kNetlinkAndSysfs}, devices),
            "a device that is found");
  EXPECT_EQ(Lacks(Needs{.discovery = Discovery::kNetlinkAndSysfs, .found = false}, devices), "");
  devices.knobs["rxe.parent"] = 1;
  EXPECT_EQ(Lacks(Needs{.discovery = Discovery::kNetlinkAndSysfs}, devices), "");
  EXPECT_EQ(Lacks(Needs{.discovery = Discovery::kSysfs}, none), "");
  EXPECT_EQ(Lacks(Needs{.discovery = Discovery::kSysfs}, old), "");
  EXPECT_EQ(Lacks(Needs{.discovery = Discovery::kNetlink}, none), "discovery by netlink");
}

// A test that says nothing of overlays must not run where one breaks what it takes for granted.
TEST(Needs, OnlyRoutesMayBeUnnamed) {
  EXPECT_EQ(Lacks(Needs{}, With({"no-netlink", "missing-method=CQ.CREATE"})), "");
  EXPECT_EQ(Lacks(Needs{}, With({"errno@CQ.CREATE=ENOMEM"})), "no overlay errno@CQ.CREATE=ENOMEM");
  EXPECT_EQ(Lacks(Needs{}, With({"missing-method=ASYNC_EVENT.ALLOC"})),
            "no overlay missing-method=ASYNC_EVENT.ALLOC");
  EXPECT_EQ(Lacks(Needs{.overlays = {"errno@*"}}, With({"errno@CQ.CREATE=ENOMEM"})), "");
  EXPECT_EQ(Lacks(Needs{.overlays = {"errno@*"}}, With({})), "overlay errno@*");
  EXPECT_EQ(Lacks(Needs{.overlays = {"x=@(a|b)"}}, With({"x=b"})), "");
  EXPECT_EQ(Lacks(Needs{.overlays = {"x=*"}, .not_overlays = {"x=@(a|b)"}}, With({"x=b"})),
            "no overlay x=b");
}

TEST(Needs, QueuePairsOfMlx5NeedTheirUars) {
  Cell cell = UsualTestCell();
  const Needs needs = {.queue_pairs = true};
  EXPECT_EQ(Lacks(needs, cell), "");
  cell.devices[0].driver = "mlx5";
  cell.ops["mlx5"] = {};
  EXPECT_EQ(Lacks(needs, cell), "");
  cell.methods["UAR.OBJ_ALLOC"] = false;
  EXPECT_EQ(Lacks(needs, cell), "queue pairs");
  cell.knobs["mlx5.dyn_uar"] = 0;
  EXPECT_EQ(Lacks(needs, cell), "");
}

TEST(Needs, NotEveryDriverHasReliableQueuePairsNorSomebodyWhoWorksThemOff) {
  Cell cell = UsualTestCell();
  EXPECT_EQ(Lacks(Needs{.data_path = true}, cell), "");
  cell.devices[0].driver = "hns";
  cell.ops["hns"] = {};
  EXPECT_EQ(Lacks(Needs{.queue_pairs = true}, cell), "");
  EXPECT_EQ(Lacks(Needs{.data_path = true}, cell), "a data path");
  cell.devices[0].driver = "siw";
  cell.ops["siw"] = {};
  EXPECT_EQ(Lacks(Needs{.queue_pairs = true}, cell), "queue pairs");
}

TEST(NeedsDeathTest, ANameThatTheModelDoesNotKnowEndsTheRun) {
  std::string why;
  EXPECT_DEATH(Hold(Needs{.served = {"CQ.CRATE"}}, UsualTestCell(), &why), "no method 'CQ.CRATE'");
  EXPECT_DEATH(Hold(Needs{.rules = {"x.y"}}, UsualTestCell(), &why), "no rule 'x.y'");
}

}  // namespace
}  // namespace vabi::conformance
