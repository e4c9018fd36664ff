// SPDX-License-Identifier: BSD-2-Clause
// How many objects irdma has room for, and what it says of one more (file and function stand in
// abi.def).
#include "shims/providers/common/test_limits.h"
#include "shims/providers/irdma/test_irdma.h"

namespace vabi::irdma {
namespace {

const LimitKit kKit = {
    .start = StartMachine<TestIrdma>,
    .mr = [](TestHca& hca) { return MrBytes(hca); },
    .cq =
        [](TestHca& hca) {
          static_cast<TestIrdma&>(hca).RegisterCq();
          return CqBytes(hca);
        },
    .qp =
        [](TestHca& hca) {
          static_cast<TestIrdma&>(hca).RegisterQp();
          return QpBytes(hca);
        },
    .srq = {},
    .room = 24,
    .type = TestHca::kRc,
};

const LimitRow kRows[] = {
    {"debian-7.3.4", "irdma.full.pd", EOVERFLOW, ObjectType::kPd},
    {"debian-7.3.4", "irdma.full.mr", ENOMEM, ObjectType::kMr},
    {"debian-6.1.192", "irdma.full.mw", ENOMEM, ObjectType::kMw},
    {"debian-7.3.4", "irdma.full.cq", EOVERFLOW, ObjectType::kCq},
    {"linux-5.14", "irdma.full.qp", EOVERFLOW, ObjectType::kQp},
    {"debian-7.3.4", "irdma.full.qp", EOVERFLOW, ObjectType::kQp},
    {"debian-7.3.4", "irdma.full.ah", EOVERFLOW, ObjectType::kAh},
};

class Limits : public testing::TestWithParam<LimitRow> {};
INSTANTIATE_TEST_SUITE_P(Irdma, Limits, testing::ValuesIn(kRows),
                         [](const auto& info) { return CaseName(info.param); });
TEST_P(Limits, OneMoreIsRefused) { LimitTester(kKit, GetParam()).Run(); }

}  // namespace
}  // namespace vabi::irdma
