// SPDX-License-Identifier: BSD-2-Clause
// How many objects mlx4 has room for, and what it says of one more (file and function stand in
// abi.def).
#include "shims/providers/common/test_limits.h"
#include "shims/providers/mlx4/test_mlx4.h"

namespace vabi::mlx4 {
namespace {

const LimitKit kKit = {
    .start = StartMachine<TestMlx4>,
    .mr = {},
    .cq = CqBytes,
    .qp = [](TestHca& hca) { return QpBytes(hca, {}); },
    .srq = SrqBytes,
    .room = 8,
    .type = TestHca::kRc,
};

const LimitRow kRows[] = {
    {"debian-7.3.4", "mlx4.full.pd", ENOMEM, ObjectType::kPd},
    {"debian-7.3.4", "mlx4.full.mr", ENOMEM, ObjectType::kMr},
    {"debian-7.3.4", "mlx4.full.mw", ENOMEM, ObjectType::kMw},
    {"debian-7.3.4", "mlx4.full.cq", ENOMEM, ObjectType::kCq},
    {"debian-7.3.4", "mlx4.full.qp", ENOMEM, ObjectType::kQp},
    {"debian-7.3.4", "mlx4.full.srq", ENOMEM, ObjectType::kSrq},
    {"linux-4.4", "mlx4.full.pd", ENOMEM, ObjectType::kPd},
};

class Limits : public testing::TestWithParam<LimitRow> {};
INSTANTIATE_TEST_SUITE_P(Mlx4, Limits, testing::ValuesIn(kRows),
                         [](const auto& info) { return CaseName(info.param); });
TEST_P(Limits, OneMoreIsRefused) { LimitTester(kKit, GetParam()).Run(); }

}  // namespace
}  // namespace vabi::mlx4
