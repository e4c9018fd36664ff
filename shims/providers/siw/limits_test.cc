// SPDX-License-Identifier: BSD-2-Clause
// How many objects siw has room for, and what it says of one more (file and function stand in
// abi.def).
#include "shims/providers/common/limited.h"
#include "shims/providers/common/test_limits.h"
#include "shims/providers/siw/driver.h"
#include "shims/providers/siw/test_siw.h"

namespace vabi::siw {
namespace {

const LimitKit kKit = {
    .start = StartMachine<TestSiw>,
    .mr = [](TestHca&) { return Bytes(8); },
    .cq = {},
    .qp = {},
    .srq = {},
    .room = TestSiw::kQpReply,
    .type = TestHca::kRc,
    .cqe = 16,
    .mr_room = TestSiw::kMrReply,
};

const LimitRow kRows[] = {
    {"debian-7.3.4", "siw.full.pd", ENOMEM, ObjectType::kPd},
    {"debian-7.3.4", "siw.full.mr", ENOMEM, ObjectType::kMr},
    {"debian-7.3.4", "siw.full.cq", ENOMEM, ObjectType::kCq},
    {"debian-7.3.4", "siw.full.qp", ENOMEM, ObjectType::kQp},
    {"debian-7.3.4", "siw.full.srq", ENOMEM, ObjectType::kSrq},
    {"linux-5.3", "siw.full.qp", ENOMEM, ObjectType::kQp},
};

class Limits : public testing::TestWithParam<LimitRow> {};
INSTANTIATE_TEST_SUITE_P(Siw, Limits, testing::ValuesIn(kRows),
                         [](const auto& info) { return CaseName(info.param); });
TEST_P(Limits, OneMoreIsRefused) { LimitTester(kKit, GetParam()).Run(); }

// siw.h: SIW_MAX_QP (1024 * 100), which PD, CQ, SRQ and context have, too; SIW_MAX_MR ten times
// that
TEST(SiwLimits, AreThoseOfItsHeader) {
  const DeviceAttributes all = TestSiw().Attributes();
  for (const uint32_t limit : {all.max_pd, all.max_cq, all.max_qp, all.max_srq})
    EXPECT_EQ(102400u, limit);
  EXPECT_EQ(1024000u, all.max_mr);
  EXPECT_EQ(102400u, SiwDriver::kMaxContexts);
}

// What siw_verbs.c looks at before it counts, and what after. The device has no room left.
TEST(SiwLimits, StandWhereTheSourceHasThem) {
  TestSiw siw;
  auto& limits = const_cast<DeviceAttributes&>(siw.device().attributes());
  const TestHca::QpWish wish = siw.Wish();
  TestHca::QpWish datagram = wish;
  datagram.type = TestHca::kUd;
  siw.Qp();
  siw.Srq();
  ASSERT_GT(siw.NewMr({}), 0);
  limits.max_qp = limits.max_cq = limits.max_srq = limits.max_mr = 1;
  EXPECT_EQ(-ENOMEM, siw.NewQp(datagram)) << "siw_create_qp looks at the type later";
  EXPECT_EQ("siw.full.qp", siw.LastRule());
  EXPECT_EQ(-EOPNOTSUPP, siw.CreateQpEx(wish, 1 << 1, {}, TestSiw::kQpReply));
  EXPECT_EQ("siw.create_qp.flags", siw.LastRule());
  EXPECT_EQ(-ENOMEM, siw.CreateCq(3276801, nullptr, {}, TestSiw::kCqReply));
  EXPECT_EQ("siw.full.cq", siw.LastRule());
  EXPECT_EQ(-EOPNOTSUPP, siw.CreateCqEx(16, 1, {}, TestSiw::kCqReply));
  EXPECT_EQ("siw.create_cq.flags", siw.LastRule());
  EXPECT_EQ(-ENOMEM, siw.NewSrq(0, 1));
  EXPECT_EQ("siw.full.srq", siw.LastRule());
  EXPECT_EQ(-ENOMEM, siw.NewMr({.length = 0}));
  EXPECT_EQ("siw.full.mr", siw.LastRule());
}

// siw_alloc_ucontext counts before it looks at the reply's room, and takes back what failed.
TEST(SiwLimits, OfContextsCountOpenFilesOfTheDevice) {
  SetDriverForTest(
      DriverId::siw, +[]() -> std::unique_ptr<Driver> {
        return std::make_unique<provider::Limited<SiwDriver>>(2);
      });
  {
    TestHca siw("debian-6.12.117", "siw");
    EXPECT_EQ(-EINVAL, siw.Open({}, 4)) << "no context comes of it";
    ASSERT_GT(siw.Open({}, TestSiw::kContextReply), 0) << siw.LastRule();
    const auto first = siw.SwapFile();
    ASSERT_GT(siw.Open({}, TestSiw::kContextReply), 0) << siw.LastRule();
    auto second = siw.SwapFile();
    EXPECT_EQ(-ENOMEM, siw.Open({}, 4));
    EXPECT_EQ("siw.full.context", siw.LastRule());
    second.reset();
    EXPECT_GT(siw.Open({}, TestSiw::kContextReply), 0) << siw.LastRule();
  }
  SetDriverForTest(DriverId::siw, nullptr);
}

}  // namespace
}  // namespace vabi::siw
