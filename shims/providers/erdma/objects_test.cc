// SPDX-License-Identifier: BSD-2-Clause
// What erdma grants. Expected values: drivers/infiniband/hw/erdma (erdma_verbs.c, erdma_verbs.h,
// erdma_hw.h) of the kernel named.
#include <gtest/gtest.h>

#include "shims/providers/erdma/test_erdma.h"

namespace vabi::erdma {
namespace {

TEST(ErdmaObjects, TheContextHasThreeDoorbells) {
  for (const char* kernel : {"debian-6.1.192", "linux-6.6", "debian-7.3.4"}) {
    TestHca hca(kernel, "erdma");
    EXPECT_EQ(-EINVAL, hca.Open({}, TestErdma::kContextReply - 4)) << kernel;
    ASSERT_GT(hca.Open({}, TestErdma::kContextReply), 0) << kernel << hca.LastRule();
    EXPECT_EQ(0x107fu, hca.Told(VABI_PF(erdma_uresp_alloc_ctx, dev_id)));
    EXPECT_EQ(0u, hca.Told(VABI_PF(erdma_uresp_alloc_ctx, sdb)));
    EXPECT_EQ(4096u, hca.Told(VABI_PF(erdma_uresp_alloc_ctx, rdb)));
    EXPECT_EQ(8192u, hca.Told(VABI_PF(erdma_uresp_alloc_ctx, cdb)));
    for (const uint64_t offset : {0, 4096, 8192}) EXPECT_EQ(1, hca.Map(offset, 4096)) << kernel;
    EXPECT_EQ(-EINVAL, hca.Map(0, 8192)) << "rdma_user_mmap_entry_get: of exactly that length";
    EXPECT_EQ(-EINVAL, hca.Map(3 * 4096, 4096));
  }
}

TEST(ErdmaObjects, QueryDeviceLooksAtItsPrivatePartsSince72) {
  {
    TestErdma old("debian-6.12.117");
    EXPECT_GT(old.QueryDevice(Bytes(8, 1)), 0) << old.LastRule();
  }
  TestErdma recent;
  EXPECT_EQ(-EOPNOTSUPP, recent.QueryDevice(Bytes(8, 1)));
  EXPECT_GT(recent.QueryDevice(Bytes(8), 8), 0) << recent.LastRule();
}

TEST(ErdmaObjects, QueuesAreRoundedAndReceivesBeginOnAPage) {
  TestErdma erdma;
  TestHca::CqMade cq;
  ASSERT_GT(erdma.CreateCq(100, &cq, erdma.QueueRequest(4096), 8), 0) << erdma.LastRule();
  EXPECT_EQ(128u, cq.cqe);
  EXPECT_EQ(128u, erdma.Told(VABI_PF(erdma_uresp_create_cq, num_cqe)));
  TestHca::QpWish wish = erdma.Wish();
  wish.send_wr = 40;
  wish.recv_wr = 20;
  TestHca::QpMade qp;
  ASSERT_GT(erdma.NewQp(wish, &qp), 0) << erdma.LastRule();
  EXPECT_EQ(256u, erdma.Told(VABI_PF(erdma_uresp_create_qp, num_sqe)));  // 40 * 4 blocks
  EXPECT_EQ(32u, erdma.Told(VABI_PF(erdma_uresp_create_qp, num_rqe)));
  EXPECT_EQ(8192u, erdma.Told(VABI_PF(erdma_uresp_create_qp, rq_offset)));
  EXPECT_EQ(qp.number, erdma.Told(VABI_PF(erdma_uresp_create_qp, qp_id)));
  ASSERT_GT(erdma.QueryQp(qp.handle), 0);
  EXPECT_EQ(256u, erdma.U32(VABI_F(ib_uverbs_query_qp_resp, max_send_wr)));
  EXPECT_EQ(32u, erdma.U32(VABI_F(ib_uverbs_query_qp_resp, max_recv_wr)));
  EXPECT_EQ(96u, erdma.U32(VABI_F(ib_uverbs_query_qp_resp, max_inline_data)));
}

TEST(ErdmaObjects, NoStateButErrorIsEntered) {
  TestErdma erdma;
  const uint32_t qp = erdma.Qp();
  EXPECT_EQ(1u, erdma.StateOf(qp)) << "ERDMA_QPS_IWARP_IDLE is IB_QPS_INIT";
  EXPECT_GT(erdma.ToState(qp, 2), 0);
  EXPECT_EQ(1u, erdma.StateOf(qp));
  EXPECT_EQ(-EINVAL, erdma.ToState(qp, 3));
  EXPECT_GT(erdma.ToState(qp, 6), 0);
  EXPECT_EQ(6u, erdma.StateOf(qp));
  EXPECT_GT(erdma.ToState(qp, 3), 0) << "erdma_modify_qp_state_iwarp: nothing leads out of it";
  EXPECT_EQ(6u, erdma.StateOf(qp));
  EXPECT_GT(erdma.DestroyQp(qp), 0);
}

TEST(ErdmaObjects, ShortRequestsAreRefusedSince72AndReadFromTheStackBefore) {
  {
    TestErdma recent;
    EXPECT_EQ(-EINVAL, recent.CreateCq(16, nullptr, Bytes(20), 8));
    EXPECT_EQ("erdma.create_cq.input.short", recent.LastRule());
  }
  TestErdma old("debian-6.12.117");
  EXPECT_EQ(-EOPNOTSUPP, old.CreateCq(16, nullptr, Bytes(20), 8));
  EXPECT_NE("", old.LastUnmodelled());
}

}  // namespace
}  // namespace vabi::erdma
