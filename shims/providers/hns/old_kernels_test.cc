// SPDX-License-Identifier: BSD-2-Clause
// hns from 4.16 to 5.9, where it copied whole structures, asked ib_umem_get itself and knew what
// its card can: drivers/infiniband/hw/hns of the kernel named.
#include <sys/mman.h>

#include <cstdint>
#include <tuple>

#include "shims/providers/hns/test_hns.h"

namespace vabi::hns {
namespace {

// hns_roce_main.c:hns_roce_query_device; up to 5.3 of hns_roce_hw_v2.h
TEST(HnsOld, CapabilitiesWereTheDriversUpTo53) {
  struct Case {
    const char* kernel;
    uint32_t qps, cqs, cqes, regions, domains, send_sges, receive_sges, srqs, srq_sges, atomics;
    uint32_t part;
  };
  for (const Case& want :
       {Case{"linux-4.16", 0x2000, 0x8000, 0x10000, 0x8000, 1 << 24, 255, 256, 0, 0, 0, 0},
        Case{"linux-4.19", 0x2000, 0x8000, 0x10000, 0x8000, 1 << 24, 255, 256, 0, 0, 0, 0},
        Case{"linux-4.20", 0x2000, 0x8000, 0x10000, 0x8000, 1 << 24, 255, 256, 0, 0, 1, 0xa222},
        Case{"linux-5.0", 0x2000, 0x8000, 0x10000, 0x8000, 1 << 24, 255, 256, 0x100000, 256, 1,
             0xa222},
        Case{"linux-5.3", 0x100000, 0x100000, 0x400000, 0x100000, 1 << 24, 255, 256, 0x100000, 256,
             1, 0xa222},
        Case{"linux-5.6", 0x100000, 0x10000, 0x400000, 0x100000, 0x10000, 64, 64, 0x10000, 64, 1,
             0xa222}}) {
    const DeviceAttributes all = TestHns(want.kernel).Attributes();
    EXPECT_EQ(want.qps, all.max_qp) << want.kernel;
    EXPECT_EQ(want.cqs, all.max_cq) << want.kernel;
    EXPECT_EQ(want.cqes, all.max_cqe) << want.kernel;
    EXPECT_EQ(want.regions, all.max_mr) << want.kernel;
    EXPECT_EQ(want.domains, all.max_pd) << want.kernel;
    EXPECT_EQ(want.send_sges, all.max_send_sge) << want.kernel;
    EXPECT_EQ(want.receive_sges, all.max_recv_sge) << want.kernel;
    EXPECT_EQ(want.srqs, all.max_srq) << want.kernel;
    EXPECT_EQ(want.srq_sges, all.max_srq_sge) << want.kernel;
    EXPECT_EQ(want.atomics, all.atomic_cap) << want.kernel;
    EXPECT_EQ(want.part, all.vendor_part_id) << want.kernel;
    // IB_DEVICE_MEM_MGT_EXTENSIONS
    EXPECT_EQ(std::string(want.kernel) == "linux-5.3", (all.device_cap_flags >> 21 & 1) != 0)
        << want.kernel;
  }
}

// ib_copy_to_udata(udata, &resp, sizeof(resp)): 4.16 told PDs and CQs in 64 bits.
TEST(HnsOld, RepliesAreGivenWholeUpTo59) {
  struct Case {
    const char* kernel;
    size_t context, domain, queue;  // bytes, with room for none, none and 8
  };
  for (const Case& want :
       {Case{"linux-4.16", 4, 8, 8}, Case{"linux-4.17", 8, 4, 16}, Case{"linux-5.3", 8, 4, 16},
        Case{"linux-5.9", 8, 4, 16}, Case{"debian-5.10.223", 0, 0, 8}}) {
    TestHca hns(want.kernel, "hns");
    EXPECT_EQ(want.context,
              hns.Written(TestHca::kGetContext, hns.Zero(VABI_S(ib_uverbs_get_context)),
                          VABI_S(ib_uverbs_get_context_resp), 0))
        << want.kernel;
    EXPECT_EQ(want.domain, hns.Written(TestHca::kAllocPd, hns.Zero(VABI_S(ib_uverbs_alloc_pd)),
                                       VABI_S(ib_uverbs_alloc_pd_resp), 0))
        << want.kernel;
    EXPECT_EQ(want.queue, hns.Written(TestHca::kCreateCq, hns.CqRequest(16),
                                      VABI_S(ib_uverbs_create_cq_resp), 8, CqInput(hns)))
        << want.kernel;
  }
}

TEST(HnsOld, RequestsAreReadWholeUpTo59) {
  {
    TestHns hns("linux-5.9");
    EXPECT_LT(hns.CreateCq(16, nullptr, Bytes(8), 16), 0);
    EXPECT_NE("", hns.LastUnmodelled()) << "it reads what stands behind";
  }
  TestHns hns("debian-5.10.223");
  EXPECT_EQ(-ENOMEM, hns.CreateCq(16, nullptr, Bytes(8), 16)) << "nothing is mapped at 0";
}

// Which doorbell records there are, and which a queue pair's reply tells.
TEST(HnsOld, RecordsCameWith417And419) {
  for (const auto& [kernel, queue, pair] : {std::tuple{"linux-4.16", 0u, 0u},
                                            {"linux-4.17", 1u, 1u},
                                            {"linux-4.18", 1u, 1u},
                                            {"linux-4.19", 1u, 3u},
                                            {"linux-5.9", 1u, 3u}}) {
    TestHns hns(kernel);
    ASSERT_GT(hns.CreateCq(16, nullptr, CqInput(hns), 16), 0) << hns.LastRule();
    EXPECT_EQ(queue, hns.Told(VABI_PF(hns_roce_ib_create_cq_resp, cap_flags))) << kernel;
    ASSERT_GT(hns.CreateQp(hns.Wish(), nullptr, QpInput(hns), 16), 0) << hns.LastRule();
    EXPECT_EQ(pair, hns.Told(VABI_PF(hns_roce_ib_create_qp_resp, cap_flags))) << kernel;
  }
}

// hns_roce_create_qp_common up to 5.0: all of the reply or nothing, and RQ_RECORD_DB with an SRQ,
// too.
TEST(HnsOld, QueuePairsTellOfARecordThatAnSrqHasNot) {
  for (const auto& [kernel, with_srq, in_four] :
       {std::tuple{"linux-5.0", 3u, size_t{0}}, {"linux-5.3", 2u, size_t{4}}}) {
    TestHns hns(kernel);
    TestHca::QpWish wish = hns.Wish();
    EXPECT_EQ(in_four, hns.Written(TestHca::kCreateQp, hns.QpRequest(wish),
                                   VABI_S(ib_uverbs_create_qp_resp), 4, QpInput(hns)))
        << kernel;
    wish.has_srq = true;
    wish.srq = hns.Srq();
    wish.recv_wr = 0;
    ASSERT_GT(hns.CreateQp(wish, nullptr, QpInput(hns), 16), 0) << kernel << hns.LastRule();
    EXPECT_EQ(with_srq, hns.Told(VABI_PF(hns_roce_ib_create_qp_resp, cap_flags))) << kernel;
  }
}

// hns_roce_modify_qp of 4.19 to 5.0 reads a record of receives that a queue pair with an SRQ has
// not.
TEST(HnsOld, AnSrqAndTheErrorStateTook50Down) {
  for (const auto& [kernel, lives] : {std::pair{"linux-5.0", false}, {"linux-5.3", true}}) {
    TestHns hns(kernel);
    TestHca::QpWish wish = hns.Wish();
    wish.has_srq = true;
    wish.srq = hns.Srq();
    TestHca::QpMade qp;
    ASSERT_GT(hns.CreateQp(wish, &qp, QpInput(hns), 16), 0) << kernel << hns.LastRule();
    ASSERT_GT(hns.ToInit(qp.handle), 0) << hns.LastRule();
    EXPECT_EQ(lives, hns.ToState(qp.handle, 6) > 0) << kernel;
    EXPECT_EQ(lives, hns.LastUnmodelled().empty()) << kernel;
  }
}

// hns_roce_modify_qp: what became of the states.
TEST(HnsOld, StatesOfAQueuePair) {
  struct Case {
    const char* kernel;
    bool resets_in_reset, errs_without_record, rts_to_rts;
  };
  for (const Case& want :
       {Case{"linux-4.18", true, true, true}, Case{"linux-4.19", true, false, true},
        Case{"linux-5.3", true, false, true}, Case{"linux-5.6", false, false, true},
        Case{"linux-5.7", true, false, true}, Case{"linux-5.8", true, false, false},
        Case{"linux-5.9", true, false, true}}) {
    TestHns hns(want.kernel);
    uint32_t qp = hns.Qp();
    EXPECT_EQ(want.resets_in_reset, hns.ToState(qp, 0) > 0) << want.kernel;
    ASSERT_GT(hns.ToInit(qp), 0) << want.kernel << hns.LastRule();
    ASSERT_GT(hns.ToRtr(qp, 5), 0) << want.kernel << hns.LastRule();
    ASSERT_GT(hns.ToRts(qp), 0) << want.kernel << hns.LastRule();
    EXPECT_EQ(want.rts_to_rts, hns.ToState(qp, 3) > 0) << want.kernel;
    EXPECT_GT(hns.ToState(qp, 6), 0) << want.kernel << hns.LastRule();
    qp = hns.Qp(0);
    ASSERT_GT(hns.ToInit(qp), 0) << want.kernel << hns.LastRule();
    EXPECT_EQ(want.errs_without_record, hns.ToState(qp, 6) > 0) << want.kernel;
  }
}

// hns_roce_v2_check_qp_stat knew SQD; what the card says to it nobody has told. So it is with a
// state that is not the queue pair's (IB_QP_CUR_STATE).
TEST(HnsOld, WhatTheCardSaysIsNotModelled) {
  const auto connect = [](TestHns& hns) {
    const uint32_t qp = hns.Qp();
    EXPECT_GT(hns.ToInit(qp), 0) << hns.LastRule();
    EXPECT_GT(hns.ToRtr(qp, 5), 0) << hns.LastRule();
    EXPECT_GT(hns.ToRts(qp), 0) << hns.LastRule();
    return qp;
  };
  {
    TestHns hns("linux-5.7");
    EXPECT_LT(hns.ToState(connect(hns), 4), 0);
    EXPECT_NE("", hns.LastUnmodelled());
  }
  {
    TestHns hns("linux-5.8");
    EXPECT_EQ(-EINVAL, hns.ToState(connect(hns), 4));
    EXPECT_EQ("hns.modify_qp.state", hns.LastRule());
  }
  TestHns hns("linux-5.9");
  EXPECT_LT(hns.ModifyQp(connect(hns), 0x3,
                         {{VABI_F(ib_uverbs_modify_qp, qp_state), 3},
                          {VABI_F(ib_uverbs_modify_qp, cur_qp_state), 2}}),
            0);
  EXPECT_NE("", hns.LastUnmodelled());
}

// get_cq_umem asks for IB_ACCESS_LOCAL_WRITE, hns_roce_mtr_create (5.8) for nothing.
TEST(HnsOld, QueuesMustBeWritableUpTo57) {
  void* const page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, page);
  for (const auto& [kernel, taken] : {std::pair{"linux-5.7", false}, {"linux-5.8", true}}) {
    TestHns hns(kernel);
    Bytes request = CqInput(hns);
    hns.In(request).Set(VABI_PF(hns_roce_ib_create_cq, buf_addr),
                        reinterpret_cast<uintptr_t>(page));
    EXPECT_EQ(taken, hns.CreateCq(63, nullptr, request, 16) > 0) << kernel;
    if (!taken) {
      EXPECT_EQ("hns.buffer.fault", hns.LastRule());
    }
  }
  munmap(page, 4096);
}

// 64 sends of 64 bytes and 16 receives of 16: two pages, and a third in 4.20 and 5.0.
TEST(HnsOld, BuffersHadAPageMoreIn420And50) {
  for (const auto& [kernel, taken] : {std::pair{"linux-4.19", true},
                                      {"linux-4.20", false},
                                      {"linux-5.0", false},
                                      {"linux-5.3", true}}) {
    TestHns hns(kernel);
    Bytes request = QpInput(hns);
    hns.In(request).Set(VABI_PF(hns_roce_ib_create_qp, buf_addr),
                        hns.Buffer() + 2 * TestHca::kBuffer - 2 * 4096);
    EXPECT_EQ(taken, hns.CreateQp(hns.Wish(), nullptr, request, 16) > 0) << kernel;
    if (!taken) {
      EXPECT_EQ("hns.buffer.fault", hns.LastRule());
    }
  }
}

// hns_roce_set_user_sq_size: 1 << 38 is 64 without check_shl_overflow.
TEST(HnsOld, ShiftsWrapAroundUpTo53) {
  for (const auto& [kernel, taken] : {std::pair{"linux-5.3", true}, {"linux-5.6", false}}) {
    TestHns hns(kernel);
    Bytes request = QpInput(hns);
    hns.In(request).Set(VABI_PF(hns_roce_ib_create_qp, log_sq_bb_count), 38);
    EXPECT_EQ(taken, hns.CreateQp(hns.Wish(), nullptr, request, 16) > 0) << kernel;
  }
}

// What is granted: min_cqes since 5.3, min_wqes since 5.6, HNS_ROCE_RESERVED_SGE in 5.8, inline
// data of the card since 5.10.
TEST(HnsOld, SizesAreGranted) {
  struct Case {
    const char* kernel;
    uint32_t cqe, recv_wr, recv_sge, recv_sge_queried, inline_data;
  };
  for (const Case& want :
       {Case{"linux-5.0", 3, 16, 8, 8, 100}, Case{"linux-5.3", 63, 16, 8, 8, 100},
        Case{"linux-5.6", 63, 64, 8, 8, 100}, Case{"linux-5.8", 63, 64, 7, 8, 100},
        Case{"linux-5.9", 63, 64, 8, 8, 100}, Case{"debian-5.10.223", 63, 64, 8, 8, 32}}) {
    TestHns hns(want.kernel);
    TestHca::CqMade cq;
    ASSERT_GT(hns.CreateCq(3, &cq, CqInput(hns), 16), 0) << want.kernel << hns.LastRule();
    EXPECT_EQ(want.cqe, cq.cqe) << want.kernel;
    TestHca::QpWish wish = hns.Wish();
    wish.recv_sge = 5;
    wish.inline_data = 100;
    TestHca::QpMade qp;
    ASSERT_GT(hns.CreateQp(wish, &qp, QpInput(hns), 16), 0) << want.kernel << hns.LastRule();
    EXPECT_EQ(want.recv_wr, qp.recv_wr) << want.kernel;
    EXPECT_EQ(want.recv_sge, qp.recv_sge) << want.kernel;
    EXPECT_EQ(want.inline_data, qp.inline_data) << want.kernel;
    ASSERT_GT(hns.QueryQp(qp.handle), 0);
    EXPECT_EQ(want.recv_sge_queried, hns.U32(VABI_F(ib_uverbs_query_qp_resp, max_recv_sge)))
        << want.kernel;
  }
}

// hns_roce_set_rq_size up to 5.6, hns_roce_qp_has_rq up to 5.0
TEST(HnsOld, ReceiveQueuesOfNothing) {
  for (const auto& [kernel, no_entries, no_elements, too_many_with_srq] :
       {std::tuple{"linux-5.0", false, false, false},
        {"linux-5.3", true, false, false},
        {"linux-5.6", true, false, false},
        {"linux-5.7", true, true, true}}) {
    TestHns hns(kernel);
    TestHca::QpWish wish = hns.Wish();
    wish.recv_wr = 0;
    EXPECT_EQ(no_entries, hns.CreateQp(wish, nullptr, QpInput(hns), 16) > 0) << kernel;
    wish = hns.Wish();
    wish.recv_sge = 0;
    EXPECT_EQ(no_elements, hns.CreateQp(wish, nullptr, QpInput(hns), 16) > 0) << kernel;
    wish = hns.Wish();
    wish.has_srq = true;
    wish.srq = hns.Srq();
    wish.recv_wr = 0x8001;
    EXPECT_EQ(too_many_with_srq, hns.CreateQp(wish, nullptr, QpInput(hns), 16) > 0) << kernel;
  }
}

// hns_roce_create_srq: 256 entries of three elements, 12288 bytes or 16384; in 5.8 of four.
TEST(HnsOld, EntriesOfAnSrqAreRoundedSince56) {
  for (const auto& [kernel, elements, taken] : {std::tuple{"linux-5.3", 3u, true},
                                                {"linux-5.6", 3u, false},
                                                {"linux-5.7", 2u, true},
                                                {"linux-5.8", 2u, false},
                                                {"linux-5.9", 2u, true}}) {
    TestHns hns(kernel);
    Bytes request = SrqInput(hns);
    hns.In(request).Set(VABI_PF(hns_roce_ib_create_srq, buf_addr),
                        hns.Buffer() + 2 * TestHca::kBuffer - 12288);
    EXPECT_EQ(taken, hns.CreateSrq(hns.pd, 255, elements, 0, nullptr, request, 8) > 0) << kernel;
  }
}

// hns_roce_v2_modify_srq: IB_SRQ_MAX_WR does nothing up to 5.9. The limit at creation is nobody's.
TEST(HnsOld, SharedReceiveQueues) {
  {
    TestHns before("linux-4.20");
    EXPECT_LT(before.CreateSrq(before.pd, 16, 3, 0, nullptr, SrqInput(before), 8), 0);
  }
  TestHns hns("linux-5.0");
  TestHca::SrqMade srq;
  ASSERT_GT(hns.CreateSrq(hns.pd, 16, 3, 5, &srq, SrqInput(hns), 8), 0) << hns.LastRule();
  ASSERT_GT(hns.QuerySrq(srq.handle), 0);
  EXPECT_EQ(31u, hns.U32(VABI_F(ib_uverbs_query_srq_resp, max_wr)));
  EXPECT_EQ(3u, hns.U32(VABI_F(ib_uverbs_query_srq_resp, max_sge)));
  EXPECT_EQ(0u, hns.U32(VABI_F(ib_uverbs_query_srq_resp, srq_limit)));
  EXPECT_GT(hns.ModifySrq(srq.handle, 1, 64, 0), 0) << hns.LastRule();
  EXPECT_GT(hns.ModifySrq(srq.handle, 2, 0, 31), 0) << hns.LastRule();
  EXPECT_EQ(-EINVAL, hns.ModifySrq(srq.handle, 2, 0, 32));
}

// hns_roce_reg_user_mr: 512 * 512 pages up to 5.0, 2048 * 2048 up to 5.7.
TEST(HnsOld, RegionsHadSoManyPages) {
  constexpr uint64_t kMost = uint64_t{1} << 34;
  if (kMost > SIZE_MAX) GTEST_SKIP() << "a 32-bit process has not that memory";
  constexpr auto kSize = static_cast<size_t>(kMost + 4096);
  void* const memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  const uint64_t start = reinterpret_cast<uintptr_t>(memory);
  for (const auto& [kernel, length, taken] : {std::tuple{"linux-5.0", uint64_t{1} << 30, true},
                                              {"linux-5.0", (uint64_t{1} << 30) + 1, false},
                                              {"linux-5.3", kMost, true},
                                              {"linux-5.7", kMost + 1, false},
                                              {"linux-5.8", kMost + 1, true}}) {
    TestHns hns(kernel);
    EXPECT_EQ(taken, hns.RegMr(hns.pd, {.start = start, .length = length}) > 0)
        << kernel << " " << length;
  }
  munmap(memory, kSize);
}

// hns_roce_mmap: io_remap_pfn_range of one page up to 4.19, whatever is asked for.
TEST(HnsOld, TheUarCouldBeMappedLongUpTo419) {
  EXPECT_EQ(1, TestHns("linux-4.19").Map(0, 8192));
  EXPECT_EQ(-EINVAL, TestHns("linux-4.20").Map(0, 8192));
}

}  // namespace
}  // namespace vabi::hns
