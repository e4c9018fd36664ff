// SPDX-License-Identifier: BSD-2-Clause
// What irdma grants and tells: hw/irdma/verbs.c, uk.c of the kernels named.
#include "shims/providers/irdma/test_irdma.h"

namespace vabi::irdma {
namespace {

#define RESP(field) hca.Told(VABI_PF(irdma_alloc_ucontext_resp, field))

constexpr const char* kEras[] = {"linux-5.14",      "debian-6.1.192", "linux-6.6",
                                 "debian-6.12.117", "debian-7.2.13",  "debian-7.3.4"};

class Objects : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Irdma, Objects, testing::ValuesIn(kEras),
                         [](const auto& info) { return CaseName(std::string(info.param)); });

TEST_P(Objects, ContextTellsTheNicAndItsDoorbell) {
  TestIrdma hca(GetParam());
  ASSERT_GT(hca.Open(ContextBytes(hca), kRoom), 0) << hca.LastRule();
  EXPECT_EQ(5u, RESP(kernel_ver));
  EXPECT_EQ(2u, RESP(hw_rev));
  EXPECT_EQ(13u, RESP(max_hw_wq_frags));
  EXPECT_EQ(32768u, RESP(max_hw_wq_quanta));
  EXPECT_EQ(3u, RESP(feature_flags));  // RTS_AE, CQ_RESIZE
  EXPECT_EQ(1, hca.Map(RESP(db_mmap_key), 4096));
}

// verbs.c:irdma_alloc_ucontext: what the mask of the reply says, by kernel.
TEST(IrdmaContext, ReplyGrewFrom72To80Bytes) {
  for (const auto& [kernel, mask, least] : {std::tuple{"linux-5.14", 0u, 0u},
                                            {"debian-6.1.192", 1u, 0u},
                                            {"linux-6.6", 3u, 8u},
                                            {"debian-6.12.117", 3u, 8u},
                                            {"debian-7.3.4", 7u, 8u}}) {
    TestIrdma hca(kernel);
    ASSERT_GT(hca.Open(ContextBytes(hca), kRoom), 0) << hca.LastRule();
    EXPECT_EQ(mask, RESP(comp_mask)) << kernel;
    EXPECT_EQ(least, RESP(min_hw_wq_size)) << kernel;
  }
}

// The older of the two versions that a library falls back to.
TEST_P(Objects, VersionFourIsTaken) {
  TestIrdma hca(GetParam());
  EXPECT_GT(hca.Open(ContextBytes(hca, 0, 4), kRoom), 0) << hca.LastRule();
}

// libi40iw's request and reply on an X722: 16 bytes, and a doorbell without a key.
TEST_P(Objects, LegacyContextOfAnX722) {
  TestIrdma hca(GetParam());
  hca.image().device[0].vendor_part_id = 0x37cd;
  hca.Reinstall();
  ASSERT_GT(hca.Open(ContextBytes(hca), 16), 0) << hca.LastRule();
  EXPECT_EQ(5u, RESP(kernel_ver));
  EXPECT_NE(0u, RESP(max_qps));
  EXPECT_EQ(1, hca.Map(0, 4096));
  EXPECT_EQ(-EINVAL, hca.Map(4096, 4096));
}

TEST_P(Objects, QueuesStandInRegisteredMemory) {
  TestIrdma hca(GetParam());
  hca.Start();
  hca.RegisterCq();
  TestHca::CqMade cq;
  ASSERT_GT(hca.CreateCq(2, &cq, CqBytes(hca), 8), 0) << hca.LastRule();
  EXPECT_EQ(4u, cq.cqe);
  EXPECT_EQ(4u, hca.Told(VABI_PF(irdma_create_cq_resp, cq_size)));
  // irdma_get_pbl takes the memory out of the list: a second queue finds none there.
  EXPECT_EQ(-EPROTO, hca.CreateCq(15, nullptr, CqBytes(hca), 8));
  EXPECT_GT(hca.DestroyCq(cq.handle), 0) << hca.LastRule();
}

TEST_P(Objects, ResizeTakesOtherMemory) {
  TestIrdma hca(GetParam());
  hca.Start();
  hca.RegisterCq();
  TestHca::CqMade cq;
  ASSERT_GT(hca.CreateCq(15, &cq, CqBytes(hca), 8), 0) << hca.LastRule();
  ASSERT_GT(hca.Register(QpAt(hca), 4096, {.type = 2, .cq = 1}), 0) << hca.LastRule();
  Bytes request = hca.Zero(structure::irdma_resize_cq_req);
  hca.In(request).Set(VABI_PF(irdma_resize_cq_req, user_cq_buffer), QpAt(hca));
  ASSERT_GT(hca.ResizeCq(cq.handle, 64, request), 0) << hca.LastRule();
  EXPECT_EQ(63u, hca.U32(VABI_F(ib_uverbs_resize_cq_resp, cqe)));
}

TEST_P(Objects, QueuePairLivesThroughItsStates) {
  TestIrdma hca(GetParam());
  hca.Start();
  TestHca::QpMade qp;
  hca.MakeQp(&qp);
  EXPECT_EQ(16u, hca.Told(VABI_PF(irdma_create_qp_resp, actual_sq_size)));
  EXPECT_EQ(15u, hca.Told(VABI_PF(irdma_create_qp_resp, qp_caps)));
  EXPECT_GT(hca.ToInit(qp.handle), 0) << hca.LastRule();
  EXPECT_GT(hca.ToRtr(qp.handle, qp.number), 0) << hca.LastRule();
  EXPECT_GT(hca.ToRts(qp.handle), 0) << hca.LastRule();
  EXPECT_EQ(3u, hca.StateOf(qp.handle));
  EXPECT_GT(hca.ToState(qp.handle, 6), 0) << hca.LastRule();
  EXPECT_EQ(6u, hca.StateOf(qp.handle));
  EXPECT_GT(hca.DestroyQp(qp.handle), 0) << hca.LastRule();
}

// verbs.c:irdma_modify_qp_roce, IRDMA_QP_STATE_ERROR: ibqp_state is set by some releases only.
TEST(IrdmaStates, ErrorMayStay) {
  for (const auto& [kernel, state] : {std::pair{"linux-5.14", 6u},
                                      {"debian-6.1.192", 0u},
                                      {"linux-6.6", 6u},
                                      {"debian-6.12.117", 0u},
                                      {"linux-6.16", 6u},
                                      {"debian-7.2.13", 0u}}) {
    TestIrdma hca(kernel);
    hca.Start();
    const uint32_t qp = hca.MakeQp();
    EXPECT_GT(hca.ToInit(qp), 0) << hca.LastRule();
    EXPECT_GT(hca.ToState(qp, 6), 0) << hca.LastRule();
    EXPECT_GT(hca.ToState(qp, 0), 0) << hca.LastRule();
    EXPECT_EQ(state, hca.StateOf(qp)) << kernel;
  }
}

// uk.c: with raw attributes the kernel counts: 16 requests of 2 elements and immediate data are 2
// quanta each, with 258 reserved: 512 quanta, 256 requests; received 16 of 1 quantum and one: 32.
TEST(IrdmaRaw, KernelCountsQuanta) {
  TestIrdma hca("debian-7.3.4");
  hca.Start(1);
  TestHca::QpWish wish = hca.Wish();
  wish.send_sge = 2;
  hca.RegisterQp();
  TestHca::QpMade qp;
  ASSERT_GT(hca.CreateQp(wish, &qp, QpBytes(hca), 24), 0) << hca.LastRule();
  EXPECT_EQ(256u, hca.Told(VABI_PF(irdma_create_qp_resp, actual_sq_size)));
  EXPECT_EQ(32u, hca.Told(VABI_PF(irdma_create_qp_resp, actual_rq_size)));
  ASSERT_GT(hca.QueryQp(qp.handle), 0);
  EXPECT_EQ(127u, hca.U32(VABI_F(ib_uverbs_query_qp_resp, max_send_wr)));
  EXPECT_EQ(31u, hca.U32(VABI_F(ib_uverbs_query_qp_resp, max_recv_wr)));
}

TEST_P(Objects, AddressHandlesHaveANumber) {
  TestIrdma hca(GetParam());
  hca.Start();
  uint32_t ah = 0;
  EXPECT_GT(hca.CreateAh(hca.pd, &ah, {}, 8), 0) << hca.LastRule();
  EXPECT_NE(0u, hca.Told(VABI_PF(irdma_create_ah_resp, ah_id)));
}

// verbs.c:irdma_setup_umode_qp looks for the memory of a queue pair whatever its address in 6.1.192
// and 6.12.117; 5.14, 6.6 and 6.16 let 0 be none, and then follow a pointer to nothing.
TEST(IrdmaMemory, OfAQueuePairMayBeNoneWhereTheFixIsNot) {
  for (const auto& [kernel, looks] : {std::pair{"linux-5.14", false},
                                      {"debian-6.1.192", true},
                                      {"linux-6.6", false},
                                      {"debian-6.12.117", true},
                                      {"linux-6.16", false},
                                      {"debian-7.2.13", true}}) {
    TestIrdma hca(kernel);
    hca.Start();
    Bytes request = QpBytes(hca);
    hca.In(request).Set(VABI_PF(irdma_create_qp_req, user_wqe_bufs), 0);
    const long result = hca.CreateQp(hca.Wish(), nullptr, request, 32);
    EXPECT_EQ(looks, hca.LastUnmodelled().empty()) << kernel;
    if (looks) {
      EXPECT_EQ(-ENODATA, result) << kernel;
      EXPECT_EQ("irdma.create_qp.buffer", hca.LastRule()) << kernel;
    }
  }
}

}  // namespace
}  // namespace vabi::irdma
