// SPDX-License-Identifier: BSD-2-Clause
// How many objects bnxt_re has room for, and what it says of one more (file and function stand in
// abi.def).
#include "shims/providers/bnxt_re/test_bnxt_re.h"
#include "shims/providers/common/test_limits.h"

namespace vabi::bnxt_re {
namespace {

const LimitKit kKit = {
    .start = StartMachine<TestBnxtRe>,
    .mr = {},
    .cq = CqBytes,
    .qp = QpBytes,
    .srq = SrqBytes,
    .room = 32,
    .type = TestHca::kRc,
};

const LimitRow kRows[] = {
    {"debian-7.3.4", "bnxt_re.full.pd", ENOMEM, ObjectType::kPd},
    {"debian-7.3.4", "bnxt_re.full.mr", EIO, ObjectType::kMr},
    {"debian-6.1.192", "bnxt_re.full.mr", EFAULT, ObjectType::kMr},
    {"debian-7.3.4", "bnxt_re.full.cq", EIO, ObjectType::kCq},
    {"linux-6.6", "bnxt_re.full.cq", EFAULT, ObjectType::kCq},
    {"debian-7.3.4", "bnxt_re.full.qp", EIO, ObjectType::kQp},
    {"linux-4.16", "bnxt_re.full.qp", EFAULT, ObjectType::kQp},
    {"debian-7.3.4", "bnxt_re.full.srq", EIO, ObjectType::kSrq},
    {"debian-5.10.223", "bnxt_re.full.srq", EFAULT, ObjectType::kSrq},
    {"debian-7.3.4", "bnxt_re.full.ah", EIO, ObjectType::kAh},
    {"linux-5.14", "bnxt_re.full.ah", EFAULT, ObjectType::kAh},
};

class Limits : public testing::TestWithParam<LimitRow> {};
INSTANTIATE_TEST_SUITE_P(BnxtRe, Limits, testing::ValuesIn(kRows),
                         [](const auto& info) { return CaseName(info.param); });
TEST_P(Limits, OneMoreIsRefused) { LimitTester(kKit, GetParam()).Run(); }

}  // namespace
}  // namespace vabi::bnxt_re
