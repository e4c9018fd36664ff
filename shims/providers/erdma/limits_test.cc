// SPDX-License-Identifier: BSD-2-Clause
// How many objects erdma has room for, and what it says of one more (file and function stand in
// abi.def).
#include "shims/providers/common/test_limits.h"
#include "shims/providers/erdma/test_erdma.h"

namespace vabi::erdma {
namespace {

const LimitKit kKit = {
    .start = StartMachine<TestErdma>,
    .mr = {},
    .cq = [](TestHca& hca) { return static_cast<TestErdma&>(hca).QueueRequest(4096); },
    .qp = [](TestHca& hca) { return static_cast<TestErdma&>(hca).QueueRequest(TestHca::kBuffer); },
    .srq = {},
    .room = 64,
    .type = TestHca::kRc,
    .cqe = 16,
};

const LimitRow kRows[] = {
    {"debian-7.3.4", "erdma.full.pd", ENOSPC, ObjectType::kPd},
    {"debian-7.3.4", "erdma.full.mr", ENOSPC, ObjectType::kMr},
    {"debian-7.3.4", "erdma.full.cq", EBUSY, ObjectType::kCq},
    {"debian-7.3.4", "erdma.full.qp", ENOMEM, ObjectType::kQp},
    {"debian-6.1.192", "erdma.full.cq", EBUSY, ObjectType::kCq},
};

class Limits : public testing::TestWithParam<LimitRow> {};
INSTANTIATE_TEST_SUITE_P(Erdma, Limits, testing::ValuesIn(kRows),
                         [](const auto& info) { return CaseName(info.param); });
TEST_P(Limits, OneMoreIsRefused) { LimitTester(kKit, GetParam()).Run(); }

}  // namespace
}  // namespace vabi::erdma
