// SPDX-License-Identifier: BSD-2-Clause
// How many objects hns has room for, and what it says of one more (file and function stand in
// abi.def).
#include "shims/providers/common/test_limits.h"
#include "shims/providers/hns/test_hns.h"

namespace vabi::hns {
namespace {

const LimitKit kKit = {
    .start = StartMachine<TestHns>,
    .mr = {},
    .cq = CqInput,
    .qp = QpInput,
    .srq = SrqInput,
    .room = TestHns::kRoom,
    .type = TestHca::kRc,
    .cqe = 16,
};

const LimitRow kRows[] = {
    {"debian-7.3.4", "hns.full.pd", ENOMEM, ObjectType::kPd},
    {"debian-7.3.4", "hns.full.mr", ENOMEM, ObjectType::kMr},
    {"debian-5.10.223", "hns.full.mw", EINVAL, ObjectType::kMw},
    {"linux-5.14", "hns.full.mw", ENOMEM, ObjectType::kMw},
    {"debian-7.3.4", "hns.full.cq", ENOSPC, ObjectType::kCq},
    {"debian-5.10.223", "hns.full.cq", EINVAL, ObjectType::kCq},
    {"debian-7.3.4", "hns.full.qp", ENOSPC, ObjectType::kQp},
    {"debian-7.3.4", "hns.full.srq", ENOMEM, ObjectType::kSrq},
    {"linux-4.18", "hns.full.pd", EPERM, ObjectType::kPd},
    {"linux-4.19", "hns.full.pd", ENOMEM, ObjectType::kPd},
    {"linux-4.18", "hns.full.qp", EPERM, ObjectType::kQp},
    {"linux-5.9", "hns.full.qp", ENOMEM, ObjectType::kQp},
    {"debian-5.10.223", "hns.full.qp", ENOSPC, ObjectType::kQp},
    {"linux-5.3", "hns.full.cq", ENOMEM, ObjectType::kCq},
    {"linux-5.6", "hns.full.cq", EINVAL, ObjectType::kCq},
    {"linux-5.3", "hns.full.mw", EPERM, ObjectType::kMw},
    {"linux-5.6", "hns.full.mw", EINVAL, ObjectType::kMw},
    {"linux-5.0", "hns.full.srq", ENOMEM, ObjectType::kSrq},
};

class Limits : public testing::TestWithParam<LimitRow> {};
INSTANTIATE_TEST_SUITE_P(Hns, Limits, testing::ValuesIn(kRows),
                         [](const auto& info) { return CaseName(info.param); });
TEST_P(Limits, OneMoreIsRefused) { LimitTester(kKit, GetParam()).Run(); }

}  // namespace
}  // namespace vabi::hns
