// SPDX-License-Identifier: BSD-2-Clause
// What efa grants. Expected values: drivers/infiniband/hw/efa/efa_verbs.c of the kernel named.
#include <gtest/gtest.h>

#include "shims/providers/efa/test_efa.h"

namespace vabi::efa {
namespace {

// efa_user_comp_handshake of 5.9: what the card needs must be known; before, there is no request.
TEST(EfaObjects, TheHandshakeNeedsBothBits) {
  struct Case {
    const char* kernel;
    uint8_t bits;
    bool taken;
  };
  for (const Case& one :
       {Case{"linux-5.8", 0, true}, Case{"linux-5.9", 0, false}, Case{"linux-5.9", 1, false},
        Case{"linux-5.9", 2, false}, Case{"linux-5.9", 3, true}, Case{"debian-7.3.4", 1, false},
        Case{"debian-7.3.4", 0xff, true}}) {
    TestHca hca(one.kernel, "efa");
    const long result = hca.Open(Handshake(one.bits), TestEfa::kRoom);
    if (one.taken) {
      EXPECT_GT(result, 0) << one.kernel << " " << int{one.bits};
    } else {
      EXPECT_EQ(-EOPNOTSUPP, result) << one.kernel << " " << int{one.bits};
      EXPECT_EQ("efa.ucontext.handshake", hca.LastRule());
    }
  }
}

TEST(EfaObjects, ACardThatNeedsNothingTakesAnyProgram) {
  TestHca hca("debian-6.1.192", "efa");
  hca.image().knob[Index(knob::card_needs)] = 0;
  hca.Reinstall();
  EXPECT_GT(hca.Open({}, TestEfa::kRoom), 0) << hca.LastRule();
}

TEST(EfaObjects, AReplyIsClippedAndSince72ItsRestCleared) {
  for (const char* kernel : {"debian-6.12.117", "debian-7.2.13"}) {
    TestHca hca(kernel, "efa");
    hca.room_filled_with = 0xee;
    ASSERT_GT(hca.Open(Handshake(), 64), 0) << hca.LastRule();
    const size_t size = hca.world().Size(structure::efa_ibv_alloc_ucontext_resp);
    EXPECT_EQ(3u, hca.Told(VABI_PF(efa_ibv_alloc_ucontext_resp, cmds_supp_udata_mask)));
    EXPECT_EQ(2u, hca.Told(VABI_PF(efa_ibv_alloc_ucontext_resp, sub_cqs_per_cq)));
    EXPECT_EQ(std::string(kernel) == "debian-7.2.13" ? 0 : 0xee, hca.told[size]) << kernel;
  }
  TestHca hca("debian-6.1.192", "efa");
  EXPECT_GT(hca.Open(Handshake(), 4), 0) << "min(sizeof(resp), outlen)";
  TestHca::CqMade cq;
  EXPECT_GT(hca.CreateCq(16, &cq, CqInput(hca)), 0) << "if (udata->outlen)";
}

TEST(EfaObjects, QueryDeviceTellsWhatTheDriverKnowsOfTheCard) {
  struct Case {
    const char* kernel;
    uint32_t caps;
  };
  // EFA_QUERY_DEVICE_CAPS_: RDMA_READ 1, RNR_RETRY 2, CQ_NOTIFICATIONS 4, CQ_WITH_SGID 8,
  // DATA_POLLING_128 16, RDMA_WRITE 32, UNSOLICITED_WRITE_RECV 64, CQ_WITH_EXT_MEM 128.
  for (const Case& one :
       {Case{"linux-5.6", 1}, Case{"debian-5.10.223", 3}, Case{"debian-6.1.192", 15},
        Case{"linux-6.6", 63}, Case{"debian-6.12.117", 127}, Case{"debian-7.2.13", 255}}) {
    TestEfa efa(one.kernel);
    ASSERT_GT(efa.QueryDevice({}, 24), 0) << one.kernel << efa.LastRule();
    EXPECT_EQ(one.caps, efa.Told(VABI_PF(efa_ibv_ex_query_device_resp, device_caps))) << one.kernel;
    EXPECT_EQ(4096u, efa.Told(VABI_PF(efa_ibv_ex_query_device_resp, max_sq_wr)));
  }
}

TEST(EfaObjects, ACqIsMappedByItsKeyAndHasADoorbellSince517) {
  for (const char* kernel : {"debian-5.10.223", "debian-6.1.192"}) {
    TestEfa efa(kernel);
    TestHca::CqMade cq;
    ASSERT_GT(efa.CreateCq(1000, &cq, CqInput(efa), TestEfa::kRoom), 0) << efa.LastRule();
    EXPECT_EQ(1000u, cq.cqe);
    EXPECT_EQ(32768u, efa.Told(VABI_PF(efa_ibv_create_cq_resp, q_mmap_size)));  // 1000 * 16 * 2
    const uint64_t key = efa.Told(VABI_PF(efa_ibv_create_cq_resp, q_mmap_key));
    EXPECT_EQ(1, efa.Map(key, 32768)) << efa.LastRule();
    EXPECT_EQ(-EINVAL, efa.Map(key, 4096));
    const bool doorbell = std::string(kernel) == "debian-6.1.192";
    EXPECT_EQ(doorbell ? 1u : 0u, efa.Told(VABI_PF(efa_ibv_create_cq_resp, comp_mask)));
    if (doorbell) {
      EXPECT_EQ(1, efa.Map(efa.Told(VABI_PF(efa_ibv_create_cq_resp, db_mmap_key)), 4096));
    }
    ASSERT_GT(efa.DestroyCq(cq.handle), 0);
    EXPECT_EQ(-EINVAL, efa.Map(key, 32768));
  }
}

// mmap_entry_insert (5.2 to 5.4): the kind stands in the key's highest byte (EFA_MMAP_DMA_PAGE 0,
// IO_WC 1, IO_NC 2), and what is destroyed can be mapped on.
TEST(EfaObjects, OldKeysHoldTheirKindAndStay) {
  TestEfa efa("linux-5.3");
  ASSERT_GT(efa.CreateQp(efa.Wish(), nullptr, QpInput(efa), TestEfa::kRoom), 0) << efa.LastRule();
  const uint64_t doorbell = efa.Told(VABI_PF(efa_ibv_create_qp_resp, sq_db_mmap_key)),
                 queue = efa.Told(VABI_PF(efa_ibv_create_qp_resp, llq_desc_mmap_key)),
                 ring = efa.Told(VABI_PF(efa_ibv_create_qp_resp, rq_mmap_key));
  EXPECT_EQ(2u, doorbell >> 56);
  EXPECT_EQ(1u, queue >> 56);
  EXPECT_EQ(0u, ring >> 56);
  EXPECT_EQ((doorbell & 0xffffffff) + 4096, queue & 0xffffffff);
  EXPECT_EQ(1, efa.Map(doorbell, 4096)) << efa.LastRule();
  EXPECT_EQ(-EINVAL, efa.Map(doorbell & 0xffffffff, 4096)) << "without its kind";
  TestHca::CqMade cq;
  ASSERT_GT(efa.CreateCq(16, &cq, CqInput(efa), TestEfa::kRoom), 0);
  const uint64_t key = efa.Told(VABI_PF(efa_ibv_create_cq_resp, q_mmap_key));
  ASSERT_GT(efa.DestroyCq(cq.handle), 0);
  EXPECT_EQ(1, efa.Map(key, 4096)) << "given back with the context only";
}

TEST(EfaObjects, ASendQueueLivesOnTheCard) {
  TestEfa efa;
  TestHca::QpMade qp;
  ASSERT_GT(efa.CreateQp(efa.Wish(), &qp, QpInput(efa), TestEfa::kRoom), 0) << efa.LastRule();
  EXPECT_EQ(4096u, efa.Told(VABI_PF(efa_ibv_create_qp_resp, rq_mmap_size)));
  for (const FieldId key : {VABI_PF(efa_ibv_create_qp_resp, rq_mmap_key),
                            VABI_PF(efa_ibv_create_qp_resp, rq_db_mmap_key),
                            VABI_PF(efa_ibv_create_qp_resp, sq_db_mmap_key),
                            VABI_PF(efa_ibv_create_qp_resp, llq_desc_mmap_key)}) {
    EXPECT_EQ(1, efa.Map(efa.Told(key), 4096)) << efa.LastRule();
  }
  // Without receives there is no receive ring.
  Bytes none = QpInput(efa);
  efa.In(none).Set(VABI_PF(efa_ibv_create_qp, rq_ring_size), 0);
  ASSERT_GT(efa.CreateQp(efa.Wish(), &qp, none, TestEfa::kRoom), 0) << efa.LastRule();
  EXPECT_EQ(0u, efa.Told(VABI_PF(efa_ibv_create_qp_resp, rq_mmap_size)));
}

TEST(EfaObjects, AQueuePairGoesThroughItsStates) {
  TestEfa efa;
  for (const uint8_t type : {TestHca::kUd, TestHca::kDriver}) {
    const uint32_t qp = efa.Qp(type);
    EXPECT_GT(efa.Init(qp), 0) << efa.LastRule();
    EXPECT_GT(efa.ToState(qp, 2), 0) << efa.LastRule();
    EXPECT_GT(efa.Rts(qp), 0) << efa.LastRule();
    ASSERT_GT(efa.QueryQp(qp, 0x1 | 0x40 | 0x10000), 0) << efa.LastRule();
    EXPECT_EQ(3u, efa.U32(VABI_F(ib_uverbs_query_qp_resp, qp_state)));
    EXPECT_EQ(0u, efa.U32(VABI_F(ib_uverbs_query_qp_resp, cur_qp_state))) << "never set";
    EXPECT_EQ(0x77u, efa.U32(VABI_F(ib_uverbs_query_qp_resp, qkey)));
    EXPECT_EQ(0x1234u, efa.U32(VABI_F(ib_uverbs_query_qp_resp, sq_psn)));
    EXPECT_EQ(1u, efa.U32(VABI_F(ib_uverbs_query_qp_resp, port_num)));
    EXPECT_GT(efa.ToState(qp, 6), 0);
    EXPECT_EQ(-EINVAL, efa.ToState(qp, 3));
    EXPECT_GT(efa.DestroyQp(qp), 0);
  }
}

// srd_qp_state_table (5.10): RNR_RETRY on the way to RTS, which UD's table has not.
TEST(EfaObjects, SrdHasATableOfItsOwnSince510) {
  constexpr uint32_t kRnrRetry = 1 << 11;
  {
    TestEfa efa("debian-5.10.223");
    for (const uint8_t type : {TestHca::kDriver, TestHca::kUd}) {
      const uint32_t qp = efa.Qp(type);
      ASSERT_GT(efa.Init(qp), 0);
      ASSERT_GT(efa.ToState(qp, 2), 0);
      if (type == TestHca::kDriver) {
        EXPECT_GT(efa.Rts(qp, kRnrRetry), 0) << efa.LastRule();
        ASSERT_GT(efa.QueryQp(qp, kRnrRetry), 0);
        EXPECT_EQ(5u, efa.U32(VABI_F(ib_uverbs_query_qp_resp, rnr_retry)));
      } else {
        EXPECT_EQ(-EINVAL, efa.Rts(qp, kRnrRetry));
      }
    }
  }
  TestEfa efa("linux-5.9");
  const uint32_t qp = efa.Qp(TestHca::kDriver);
  ASSERT_GT(efa.Init(qp), 0);
  ASSERT_GT(efa.ToState(qp, 2), 0);
  EXPECT_EQ(-EOPNOTSUPP, efa.Rts(qp, kRnrRetry));
  EXPECT_EQ("efa.modify_qp.mask", efa.LastRule());
}

TEST(EfaObjects, AnAddressHandleHasANumber) {
  TestEfa efa("debian-6.1.192");
  uint32_t ah = 0;
  ASSERT_GT(efa.CreateAh(efa.pd, &ah, {}, 8), 0) << efa.LastRule();
  EXPECT_NE(0u, efa.Told(VABI_PF(efa_ibv_create_ah_resp, efa_address_handle)));
  EXPECT_GT(efa.DestroyAh(ah), 0);
}

TEST(EfaObjects, MemoryIsRegisteredForWhatDriverAndCardKnow) {
  struct Case {
    const char* kernel;
    uint32_t access;
    long result;
  };
  // LOCAL_WRITE 1, REMOTE_WRITE 2, REMOTE_READ 4, RELAXED_ORDERING 1 << 20
  for (const Case& one : {Case{"linux-5.3", 1, 1}, Case{"linux-5.3", 4, -EOPNOTSUPP},
                          Case{"linux-5.6", 5, 1}, Case{"linux-5.6", 7, -EOPNOTSUPP},
                          Case{"linux-6.6", 7, 1}, Case{"debian-6.1.192", 1u | 1u << 20, 1},
                          Case{"debian-7.3.4", 7, 1}, Case{"debian-7.3.4", 0x9, -EOPNOTSUPP}}) {
    TestEfa efa(one.kernel);
    TestHca::MrMade mr;
    const long result = efa.RegMr(efa.pd, {.access = one.access}, &mr);
    EXPECT_EQ(one.result, result > 0 ? 1 : result) << one.kernel << " " << one.access;
  }
}

// The first 8 bytes only, in all but the newest and what was mended by backports.
TEST(EfaObjects, MostKernelsLookAtTheStartOfRegMrsInput) {
  for (const char* kernel : {"linux-5.3", "debian-5.10.223", "linux-6.6", "linux-6.16"}) {
    TestEfa efa(kernel);
    Bytes input(16);
    input[8] = 1;
    EXPECT_GT(efa.RegMr(efa.pd, {}, nullptr, input), 0) << kernel << efa.LastRule();
    input[7] = 1;
    EXPECT_EQ(-EINVAL, efa.RegMr(efa.pd, {}, nullptr, input)) << kernel;
  }
  for (const char* kernel : {"debian-6.1.192", "debian-6.12.117"}) {
    TestEfa efa(kernel);
    Bytes input(16);
    input[8] = 1;
    EXPECT_EQ(-EINVAL, efa.RegMr(efa.pd, {}, nullptr, input)) << kernel;
  }
}

}  // namespace
}  // namespace vabi::efa
