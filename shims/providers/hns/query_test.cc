// SPDX-License-Identifier: BSD-2-Clause
// What QUERY_QP of hns tells: hns_roce_hw_v2.c:hns_roce_v2_query_qp of the kernel named.
#include "shims/providers/hns/test_hns.h"

namespace vabi::hns {
namespace {

#define TOLD(field) hns.U32(VABI_F(ib_uverbs_query_qp_resp, field))

// A queue pair in RTS, all of whose attributes have a value of their own.
uint32_t Connected(TestHns& hns) {
  TestHca::QpWish wish = hns.Wish();
  wish.send_sge = 3;
  wish.inline_data = 20;
  TestHca::QpMade qp;
  EXPECT_GT(hns.CreateQp(wish, &qp, QpInput(hns), 16), 0) << hns.LastRule();
  EXPECT_GT(hns.ModifyQp(qp.handle, 0x1 | 0x8 | 0x10 | 0x20,
                         {{VABI_F(ib_uverbs_modify_qp, qp_state), 1},
                          {VABI_F(ib_uverbs_modify_qp, port_num), 1},
                          {VABI_F(ib_uverbs_modify_qp, qp_access_flags), 0x3}}),
            0)
      << hns.LastRule();
  EXPECT_GT(hns.ModifyQp(qp.handle, 0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000,
                         {{VABI_F(ib_uverbs_modify_qp, qp_state), 2},
                          {VABI_F(ib_uverbs_modify_qp, path_mtu), 3},
                          {VABI_F(ib_uverbs_modify_qp, dest_qp_num), 0x1234},
                          {VABI_F(ib_uverbs_modify_qp, max_dest_rd_atomic), 5}}),
            0)
      << hns.LastRule();
  EXPECT_GT(hns.ModifyQp(qp.handle, 0x1 | 0x10000 | 0x2000 | 0x200 | 0x400 | 0x800,
                         {{VABI_F(ib_uverbs_modify_qp, qp_state), 3},
                          {VABI_F(ib_uverbs_modify_qp, max_rd_atomic), 3},
                          {VABI_F(ib_uverbs_modify_qp, retry_cnt), 6},
                          {VABI_F(ib_uverbs_modify_qp, rnr_retry), 7}}),
            0)
      << hns.LastRule();
  return qp.handle;
}

struct Case {
  const char* kernel;
  uint32_t send_wr, send_sge, inline_data, peer, global, access, rnr_retry;
  bool signal_all;
};

class Query : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Hns, Query,
                         testing::Values(Case{"linux-4.16", 0, 0, 0, 0x34, 0, 2, 0, true},
                                         Case{"linux-5.0", 0, 0, 0, 0x34, 0, 2, 0, true},
                                         Case{"linux-5.3", 0, 0, 0, 0x34, 0, 4, 0, true},
                                         Case{"linux-5.6", 0, 0, 0, 0x34, 0, 2, 0, true},
                                         Case{"linux-5.9", 0, 0, 0, 0x34, 0, 2, 0, true},
                                         Case{"debian-5.10.223", 0, 0, 0, 0x34, 0, 2, 7, false},
                                         Case{"linux-5.14", 64, 3, 20, 0x34, 0, 2, 7, false},
                                         Case{"debian-6.1.192", 64, 3, 32, 0x1234, 1, 2, 7, false},
                                         Case{"debian-7.3.4", 64, 3, 32, 0x1234, 1, 2, 7, false}),
                         [](const auto& info) { return CaseName(std::string(info.param.kernel)); });

TEST_P(Query, TellsTheCardsContext) {
  const Case& want = GetParam();
  TestHns hns(want.kernel);
  const uint32_t qp = Connected(hns);
  for (int twice = 0; twice < 2; ++twice) {
    ASSERT_GT(hns.QueryQp(qp), 0) << hns.LastRule();
    EXPECT_EQ(3u, TOLD(qp_state));
    EXPECT_EQ(want.send_wr, TOLD(max_send_wr));
    EXPECT_EQ(want.send_sge, TOLD(max_send_sge));
    EXPECT_EQ(want.inline_data, TOLD(max_inline_data));
    EXPECT_EQ(want.peer, TOLD(dest_qp_num));
    EXPECT_EQ(want.access, TOLD(qp_access_flags)) << "what was asked for, without LOCAL_WRITE";
    EXPECT_EQ(want.rnr_retry, TOLD(rnr_retry));
    EXPECT_EQ(6u, TOLD(retry_cnt));
    EXPECT_EQ(want.signal_all, TOLD(sq_sig_all) != 0);
    EXPECT_EQ(4u, TOLD(max_rd_atomic)) << "1 << fls(3 - 1)";
    EXPECT_EQ(8u, TOLD(max_dest_rd_atomic)) << "1 << fls(5 - 1)";
    EXPECT_EQ(2u, TOLD(path_mig_state)) << "IB_MIG_ARMED";
    EXPECT_EQ(1u, TOLD(port_num));
    const Body told = hns.CoreReply().Sub(VABI_F(ib_uverbs_query_qp_resp, dest));
    EXPECT_EQ(want.global, told.U32(VABI_F(ib_uverbs_qp_dest, is_global)) & 0xff);
  }
}

// set_access_flags: without answers to reads there is nothing but REMOTE_WRITE.
TEST(HnsQuery, AccessNeedsAnswersToReads) {
  TestHns hns("debian-6.1.192");
  const uint32_t qp = hns.Qp();
  EXPECT_GT(hns.ToInit(qp), 0) << hns.LastRule();  // LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ
  ASSERT_GT(hns.QueryQp(qp), 0);
  EXPECT_EQ(2u, TOLD(qp_access_flags));
  EXPECT_GT(hns.ToRtr(qp, 5), 0) << hns.LastRule();  // max_dest_rd_atomic 1
  ASSERT_GT(hns.QueryQp(qp), 0);
  EXPECT_EQ(6u, TOLD(qp_access_flags));
}

// Nothing but its sizes in RESET.
TEST(HnsQuery, TellsNothingOfAQueuePairInReset) {
  TestHns hns("debian-6.1.192");
  const uint32_t qp = Connected(hns);
  EXPECT_GT(hns.ToState(qp, 0), 0) << hns.LastRule();
  ASSERT_GT(hns.QueryQp(qp), 0);
  EXPECT_EQ(0u, TOLD(qp_state));
  EXPECT_EQ(0u, TOLD(path_mtu));
  EXPECT_EQ(0u, TOLD(max_rd_atomic));
  EXPECT_EQ(64u, TOLD(max_recv_wr));
}

}  // namespace
}  // namespace vabi::hns
