// SPDX-License-Identifier: BSD-2-Clause
// How many objects efa has room for, and what it says of one more (file and function stand in
// abi.def).
#include "shims/providers/common/test_limits.h"
#include "shims/providers/efa/test_efa.h"

namespace vabi::efa {
namespace {

const LimitKit kKit = {
    .start = StartMachine<TestEfa>,
    .mr = {},
    .cq = CqInput,
    .qp = QpInput,
    .srq = {},
    .room = TestEfa::kRoom,
    .type = TestHca::kUd,
    .cqe = 16,
};

const LimitRow kRows[] = {
    {"debian-7.3.4", "efa.full.pd", ENOMEM, ObjectType::kPd},
    {"debian-7.3.4", "efa.full.mr", ENOMEM, ObjectType::kMr},
    {"debian-7.3.4", "efa.full.cq", ENOMEM, ObjectType::kCq},
    {"debian-7.3.4", "efa.full.qp", ENOMEM, ObjectType::kQp},
    {"debian-7.3.4", "efa.full.ah", ENOMEM, ObjectType::kAh},
    {"debian-5.10.223", "efa.full.qp", ENOMEM, ObjectType::kQp},
};

class Limits : public testing::TestWithParam<LimitRow> {};
INSTANTIATE_TEST_SUITE_P(Efa, Limits, testing::ValuesIn(kRows),
                         [](const auto& info) { return CaseName(info.param); });
TEST_P(Limits, OneMoreIsRefused) { LimitTester(kKit, GetParam()).Run(); }

}  // namespace
}  // namespace vabi::efa
