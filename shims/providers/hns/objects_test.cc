// SPDX-License-Identifier: BSD-2-Clause
// What hns grants. Expected values: drivers/infiniband/hw/hns of the kernel named.
#include <gtest/gtest.h>

#include <tuple>

#include "shims/providers/hns/test_hns.h"

namespace vabi::hns {
namespace {

// hns_roce_alloc_ucontext: what is granted of HNS_ROCE_RQ_INLINE_FLAGS (2) and …_EXSGE_FLAGS (1),
// which a HIP08 has not.
TEST(HnsObjects, TheContextGrantsWhatTheCardHas) {
  struct Case {
    const char* kernel;
    uint64_t granted, srq_tab_size;
  };
  for (const Case& one : {Case{"debian-5.10.223", 0, 0}, Case{"linux-5.14", 0, 0x10000},
                          Case{"debian-6.1.192", 0, 0x10000}, Case{"linux-6.6", 2, 0x10000},
                          Case{"debian-6.12.117", 2, 0x10000}, Case{"debian-7.3.4", 2, 0x10000}}) {
    TestHca hca(one.kernel, "hns");
    Bytes request(8);
    request[0] = 3;
    ASSERT_GT(hca.Open(request, TestHns::kRoom), 0) << one.kernel << hca.LastRule();
    EXPECT_EQ(one.granted, hca.Told(VABI_PF(hns_roce_ib_alloc_ucontext_resp, config)))
        << one.kernel;
    EXPECT_EQ(one.srq_tab_size, hca.Told(VABI_PF(hns_roce_ib_alloc_ucontext_resp, srq_tab_size)))
        << one.kernel;
    EXPECT_EQ(32u, hca.Told(VABI_PF(hns_roce_ib_alloc_ucontext_resp, cqe_size)));
    EXPECT_EQ(1, hca.Map(0, 4096)) << "the UAR";
    EXPECT_EQ(-EINVAL, hca.Map(4096, 4096));
    EXPECT_EQ(-EINVAL, hca.Map(0, 8192));
  }
}

TEST(HnsObjects, ShortRequestsAreFilledUpWithZeroesUntil72) {
  {
    TestHca old("debian-6.12.117", "hns");
    EXPECT_GT(old.Open({}, TestHns::kRoom), 0) << old.LastRule();
    // A CQ of 33.2's first layout: no cqe_size, 32 bytes an entry.
    Bytes request = CqInput(old);
    request.resize(16);
    EXPECT_GT(old.CreateCq(16, nullptr, request, 16), 0) << old.LastRule();
    EXPECT_EQ(-ENOMEM, old.CreateCq(16, nullptr, {}, 16)) << "nothing is mapped at 0";
  }
  TestHca recent("debian-7.3.4", "hns");
  EXPECT_EQ(-EINVAL, recent.Open({}, TestHns::kRoom));
}

TEST(HnsObjects, QueryDeviceLooksAtItsPrivatePartsSince72) {
  {
    TestHns old("debian-6.12.117");
    EXPECT_GT(old.QueryDevice(Bytes(8, 1)), 0) << old.LastRule();
  }
  TestHns recent;
  EXPECT_EQ(-EOPNOTSUPP, recent.QueryDevice(Bytes(8, 1)));
}

TEST(HnsObjects, ACqHasAtLeast64EntriesAndARecordWhereTheReplyHasRoom) {
  TestHns hns("debian-6.1.192");
  TestHca::CqMade cq;
  ASSERT_GT(hns.CreateCq(3, &cq, CqInput(hns), 16), 0) << hns.LastRule();
  EXPECT_EQ(63u, cq.cqe);
  EXPECT_EQ(1u, hns.Told(VABI_PF(hns_roce_ib_create_cq_resp, cap_flags)));
  ASSERT_GT(hns.CreateCq(100, &cq, CqInput(hns), 16), 0);
  EXPECT_EQ(127u, cq.cqe);
  // Without room for cap_flags the record is not looked at.
  Bytes request = CqInput(hns);
  hns.In(request).Set(VABI_PF(hns_roce_ib_create_cq, db_addr), 0);
  EXPECT_GT(hns.CreateCq(3, &cq, request, 8), 0) << hns.LastRule();
  EXPECT_EQ(-EFAULT, hns.CreateCq(3, &cq, request, 16));
}

TEST(HnsObjects, LongEntriesNeedTwiceTheMemory) {
  TestHns hns("debian-6.1.192");
  Bytes request = CqInput(hns);
  // 2048 entries of 32 bytes fill the 64 KiB, of 64 bytes the 128 KiB that are mapped; 4096 do not.
  hns.In(request).Set(VABI_PF(hns_roce_ib_create_cq, cqe_size), 64);
  EXPECT_GT(hns.CreateCq(2048, nullptr, request, 16), 0) << hns.LastRule();
  EXPECT_EQ(-ENOMEM, hns.CreateCq(4096, nullptr, request, 16));
  hns.In(request).Set(VABI_PF(hns_roce_ib_create_cq, cqe_size), 32);
  EXPECT_GT(hns.CreateCq(4096, nullptr, request, 16), 0) << hns.LastRule();
}

TEST(HnsObjects, AQueuePairIsGrantedWholePowersOfTwo) {
  struct Case {
    const char* kernel;
    uint32_t send_sge, inline_data;  // as told
  };
  for (const Case& one : {Case{"debian-5.10.223", 3, 20}, Case{"debian-6.1.192", 3, 32},
                          Case{"linux-6.6", 3, 32}, Case{"debian-7.3.4", 3, 32}}) {
    TestHns hns(one.kernel);
    TestHca::QpWish wish = hns.Wish();
    wish.recv_wr = 65;
    wish.recv_sge = 3;
    wish.send_sge = 3;
    wish.inline_data = 20;
    TestHca::QpMade qp;
    ASSERT_GT(hns.CreateQp(wish, &qp, QpInput(hns), 16), 0) << one.kernel << hns.LastRule();
    EXPECT_EQ(128u, qp.recv_wr);
    EXPECT_EQ(4u, qp.recv_sge);
    EXPECT_EQ(16u, qp.send_wr) << "as asked";
    EXPECT_EQ(one.send_sge, qp.send_sge);
    EXPECT_EQ(one.inline_data, qp.inline_data) << one.kernel;
    EXPECT_EQ(3u, hns.Told(VABI_PF(hns_roce_ib_create_qp_resp, cap_flags)));
    ASSERT_GT(hns.QueryQp(qp.handle), 0);
    // 1 << log_sq_bb_count; not told of a program's queue pair up to 5.12
    EXPECT_EQ(std::string(one.kernel) == "debian-5.10.223" ? 0u : 64u,
              hns.U32(VABI_F(ib_uverbs_query_qp_resp, max_send_wr)));
  }
  TestHns hns("linux-6.6");
  TestHca::QpWish wish = hns.Wish();
  wish.send_sge = 0;
  TestHca::QpMade qp;
  ASSERT_GT(hns.CreateQp(wish, &qp, QpInput(hns), 16), 0);
  EXPECT_EQ(1u, qp.send_sge) << "hr_qp->sq.max_gs, in 6.6 only";
}

// hns_roce_create_qp_common maps records before it pins the buffer in 5.10, behind it in 5.14:
// which of two faults is told.
TEST(HnsObjects, RecordsCameBeforeTheBufferUpTo510) {
  for (const auto& [kernel, error, rule] :
       {std::tuple{"debian-5.10.223", EFAULT, "hns.doorbell_record.fault"},
        {"linux-5.14", ENOMEM, "hns.buffer"},
        {"debian-7.3.4", ENOMEM, "hns.buffer"}}) {
    TestHns hns(kernel);
    Bytes request = QpInput(hns);
    for (const FieldId field :
         {VABI_PF(hns_roce_ib_create_qp, buf_addr), VABI_PF(hns_roce_ib_create_qp, db_addr)}) {
      hns.In(request).Set(field, 4096);
    }
    EXPECT_EQ(-error, hns.CreateQp(hns.Wish(), nullptr, request, 16)) << kernel;
    EXPECT_EQ(rule, hns.LastRule()) << kernel;
  }
}

// hns_roce_modify_qp tells tc_mode and priority (in 6.12, not in 6.6): this NIC maps no DSCP.
TEST(HnsObjects, ModifyQpAnswersSince612) {
  for (const auto& [kernel, told] : {std::pair{"debian-6.1.192", 0xee},
                                     {"linux-6.6", 0xee},
                                     {"debian-6.12.117", 0},
                                     {"debian-7.3.4", 0}}) {
    TestHns hns(kernel);
    Bytes request = hns.Zero(VABI_S(ib_uverbs_ex_modify_qp));
    const Body base = hns.In(request).Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
    base.Set(VABI_F(ib_uverbs_modify_qp, qp_handle), hns.Qp());
    base.Set(VABI_F(ib_uverbs_modify_qp, attr_mask), 0x1 | 0x8 | 0x10 | 0x20);
    base.Set(VABI_F(ib_uverbs_modify_qp, qp_state), 1);
    base.Set(VABI_F(ib_uverbs_modify_qp, port_num), 1);
    hns.room_filled_with = 0xee;
    ASSERT_GT(hns.CommandEx(26, request, VABI_S(ib_uverbs_ex_modify_qp_resp), {}, 8), 0)
        << kernel << hns.LastRule();
    EXPECT_EQ(told, hns.told[0]) << kernel;
    EXPECT_EQ(told, hns.told[1]) << kernel;
  }
}

TEST(HnsObjects, AQueuePairGoesThroughItsStates) {
  TestHns hns("debian-6.1.192");
  const uint32_t qp = hns.Qp();
  EXPECT_GT(hns.ToState(qp, 0), 0) << "RESET to RESET does nothing";
  EXPECT_GT(hns.ToInit(qp), 0) << hns.LastRule();
  EXPECT_GT(hns.ToRtr(qp, 5), 0) << hns.LastRule();
  EXPECT_GT(hns.ToRts(qp), 0) << hns.LastRule();
  EXPECT_EQ(3u, hns.StateOf(qp));
  EXPECT_EQ(-EINVAL, hns.ToState(qp, 4)) << "check_qp_state knows no SQD";
  EXPECT_EQ("hns.modify_qp.state", hns.LastRule());
  EXPECT_GT(hns.ToState(qp, 6), 0) << hns.LastRule();
  EXPECT_EQ(6u, hns.StateOf(qp));
  EXPECT_GT(hns.ToState(qp, 0), 0);
  EXPECT_GT(hns.DestroyQp(qp), 0);
}

TEST(HnsObjects, SharedReceiveQueues) {
  {
    TestHns hns("debian-5.10.223");
    TestHca::SrqMade srq;
    ASSERT_GT(hns.CreateSrq(hns.pd, 16, 3, 0, &srq, SrqInput(hns), 8), 0) << hns.LastRule();
    EXPECT_EQ(16u, srq.max_wr) << "5.10 tells what was asked for";
    ASSERT_GT(hns.QuerySrq(srq.handle), 0);
    EXPECT_EQ(31u, hns.U32(VABI_F(ib_uverbs_query_srq_resp, max_wr)));
    EXPECT_GT(hns.ModifySrq(srq.handle, 2, 0, 31), 0);
    EXPECT_EQ(-EINVAL, hns.ModifySrq(srq.handle, 2, 0, 32));
    EXPECT_EQ(-EINVAL, hns.ModifySrq(srq.handle, 1, 64, 0));
  }
  TestHns hns;
  TestHca::SrqMade srq;
  ASSERT_GT(hns.CreateSrq(hns.pd, 17, 3, 5, &srq, SrqInput(hns), 8), 0) << hns.LastRule();
  EXPECT_EQ(32u, srq.max_wr);
  EXPECT_EQ(4u, srq.max_sge);
  ASSERT_GT(hns.QuerySrq(srq.handle), 0);
  EXPECT_EQ(0u, hns.U32(VABI_F(ib_uverbs_query_srq_resp, srq_limit))) << "not at creation";
  EXPECT_GT(hns.ModifySrq(srq.handle, 2, 0, 32), 0);
  EXPECT_EQ(-EOPNOTSUPP, hns.ModifySrq(srq.handle, 1, 64, 0));
}

// hns_roce_mtr_create counts pages before it pins from 5.8 to 6.6.
TEST(HnsObjects, WhateverIsWrongWithMemoryIsENOMEM) {
  for (const auto& [kernel, error] : {std::pair{"linux-5.8", EINVAL},
                                      {"debian-5.10.223", EINVAL},
                                      {"linux-6.6", EINVAL},
                                      {"debian-6.12.117", ENOMEM}}) {
    TestHns hns(kernel);
    EXPECT_EQ(-error, hns.RegMr(hns.pd, {.length = 0})) << kernel;
    EXPECT_EQ(error == EINVAL ? "hns.buffer.empty" : "hns.buffer", hns.LastRule()) << kernel;
  }
  TestHns hns("debian-6.1.192");
  EXPECT_EQ(-ENOMEM, hns.RegMr(hns.pd, {.length = 1 << 24}));
  EXPECT_EQ(-ENOMEM, hns.RegMr(hns.pd, {.length = ~uint64_t{0} - 4096}));
  EXPECT_GT(hns.RegMr(hns.pd, {.length = 8192, .access = 0x1f}), 0);
}

}  // namespace
}  // namespace vabi::hns
