// SPDX-License-Identifier: BSD-2-Clause
// How many objects vmw_pvrdma has room for, and what it says of one more (file and function stand
// in abi.def).
#include "shims/providers/common/test_limits.h"
#include "shims/providers/vmw_pvrdma/test_vmw_pvrdma.h"

namespace vabi::vmw_pvrdma {
namespace {

const LimitKit kKit = {
    .start = StartMachine<TestVmwPvrdma>,
    .mr = {},
    .cq = CqBytes,
    .qp = QpBytes,
    .srq = SrqBytes,
    .room = 8,
    .type = TestHca::kRc,
};

const LimitRow kRows[] = {
    {"debian-7.3.4", "vmw_pvrdma.full.pd", ENOMEM, ObjectType::kPd},
    {"debian-7.3.4", "vmw_pvrdma.full.cq", ENOMEM, ObjectType::kCq},
    {"debian-7.3.4", "vmw_pvrdma.full.qp", ENOMEM, ObjectType::kQp},
    {"debian-7.3.4", "vmw_pvrdma.full.srq", ENOMEM, ObjectType::kSrq},
    {"debian-5.10.223", "vmw_pvrdma.full.ah", ENOMEM, ObjectType::kAh},
    {"linux-4.10", "vmw_pvrdma.full.qp", ENOMEM, ObjectType::kQp},
};

class Limits : public testing::TestWithParam<LimitRow> {};
INSTANTIATE_TEST_SUITE_P(VmwPvrdma, Limits, testing::ValuesIn(kRows),
                         [](const auto& info) { return CaseName(info.param); });
TEST_P(Limits, OneMoreIsRefused) { LimitTester(kKit, GetParam()).Run(); }

// Of regions the device alone keeps count.
TEST(VmwPvrdmaLimits, OneRegionMoreIsNotModelled) {
  TestVmwPvrdma hca("debian-7.3.4");
  hca.Start();
  const_cast<DeviceAttributes&>(hca.device().attributes()).max_mr = 1;
  EXPECT_GT(hca.RegMr(hca.pd, {}), 0) << hca.LastRule();
  EXPECT_LT(hca.RegMr(hca.pd, {}), 0);
  EXPECT_NE("", hca.LastUnmodelled());
}

}  // namespace
}  // namespace vabi::vmw_pvrdma
