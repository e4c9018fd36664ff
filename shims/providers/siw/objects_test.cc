// SPDX-License-Identifier: BSD-2-Clause
// What siw grants when objects are made. Expected values: drivers/infiniband/sw/siw of the kernel
// named (siw.h, siw_main.c, siw_verbs.c, siw_qp.c), and siw-abi.h: struct siw_sqe has 128 bytes,
// siw_rqe 112, siw_cqe 32, siw_cq_ctrl 8.
#include <gtest/gtest.h>

#include <cstring>

#include "shims/providers/siw/test_siw.h"
#include "shims/uverbs/port.h"

namespace vabi::siw {
namespace {

TEST(SiwObjects, TheContextTellsTheDevicesNumber) {
  TestHca hca("debian-6.1.192", "siw");
  EXPECT_EQ(-EINVAL, hca.Open({}, 4)) << "siw_alloc_ucontext: udata->outlen";
  ASSERT_GT(hca.Open({}, 8), 0) << hca.LastRule();
  EXPECT_EQ(1u, hca.Told(VABI_PF(siw_uresp_alloc_ctx, dev_id)));
}

TEST(SiwObjects, OnlyTheNewestKernelsClearTheRestOfAReply) {
  for (const char* kernel : {"debian-6.12.117", "debian-7.2.13"}) {
    TestHca hca(kernel, "siw");
    hca.room_filled_with = 0xee;
    ASSERT_GT(hca.Open({}, 16), 0);
    const bool clears = std::string(kernel) == "debian-7.2.13";
    EXPECT_EQ(clears ? 0 : 0xee, hca.told[8]) << kernel;
    EXPECT_EQ(clears ? 0 : 0xee, hca.told[15]) << kernel;
  }
}

TEST(SiwObjects, TheDeviceIsAsItsHeaderSays) {
  const DeviceAttributes all = TestSiw("debian-6.1.192").Attributes();
  EXPECT_EQ(0x626d74u, all.vendor_id);
  EXPECT_EQ(102400u, all.max_qp);
  EXPECT_EQ(32768u, all.max_qp_wr);
  EXPECT_EQ(3276800u, all.max_cqe);
  EXPECT_EQ(1024000u, all.max_mr);
  EXPECT_EQ(327680u, all.max_srq_wr);
  EXPECT_EQ(6u, all.max_send_sge);
  EXPECT_EQ(0x200000u, all.device_cap_flags);
  EXPECT_EQ(0x2000200000u, TestSiw("debian-5.10.223").Attributes().device_cap_flags);
}

// siw_query_gid: the address of the network interface, 00:00:c0:00:01:00; core/cache.c names the
// interface, eth0, of iWARP GIDs since 6.6. Measured on 6.12.117.
TEST(SiwObjects, TheOneGidIsTheInterfacesAddress) {
  for (const char* kernel : {"debian-6.1.192", "linux-6.6", "debian-6.12.117"}) {
    TestSiw siw(kernel);
    const Device& device = *FindDevice(0);
    GidEntry gid;
    ASSERT_TRUE(FindGid(device, 1, 0, &gid));
    const uint8_t expected[16] = {0, 0, 0xc0, 0, 1, 0};
    EXPECT_EQ(0, std::memcmp(expected, gid.raw, 16)) << kernel;
    EXPECT_EQ(0, gid.type);
    EXPECT_EQ(std::string(kernel) == "debian-6.1.192" ? 0u : 2u, gid.ifindex) << kernel;
    EXPECT_FALSE(FindGid(device, 1, 1, &gid));
  }
}

// Its network interface is a dummy of MTU 1500, which tells no longest MTU and no speed
// (drivers/net/dummy.c): ib_mtu_int_to_enum(0) is 256, ib_get_eth_speed says 1X SDR.
TEST(SiwObjects, ThePortIsAsItsInterface) {
  const struct {
    const char* kernel;
    uint8_t max_mtu, active_mtu, width, speed;
  } ports[] = {{"linux-5.3", 3, 0, 2, 2},
               {"linux-5.7", 3, 3, 1, 1},
               {"debian-6.1.192", 3, 3, 1, 1},
               {"debian-6.12.117", 1, 3, 1, 1}};
  for (const auto& expected : ports) {
    TestSiw siw(expected.kernel);
    const PortImage& port = siw.image().device[0].ports[0];
    EXPECT_EQ(expected.max_mtu, port.max_mtu) << expected.kernel;
    EXPECT_EQ(expected.active_mtu, port.active_mtu) << expected.kernel;
    EXPECT_EQ(expected.width, port.active_width) << expected.kernel;
    EXPECT_EQ(expected.speed, port.active_speed) << expected.kernel;
  }
}

TEST(SiwObjects, ACompletionQueueIsAPowerOfTwoAndItsControlBehindIt) {
  TestSiw siw;
  TestHca::CqMade cq;
  ASSERT_GT(siw.CreateCq(200, &cq, {}, 16), 0) << siw.LastRule();
  EXPECT_EQ(256u, cq.cqe);
  EXPECT_EQ(256u, siw.Told(VABI_PF(siw_uresp_create_cq, num_cqe)));
  const uint64_t key = siw.Told(VABI_PF(siw_uresp_create_cq, cq_key));
  // 256 * 32 + 8 bytes: three pages
  EXPECT_EQ(-EINVAL, siw.Map(key, 8192));
  EXPECT_EQ("siw.mmap.entry", siw.LastRule());
  EXPECT_EQ(1, siw.Map(key, 3 * 4096)) << siw.LastRule();
  EXPECT_EQ(1, siw.Map(key, 8200)) << "pages count";
  EXPECT_EQ(-EINVAL, siw.Map(key + 4096, 4096));
  ASSERT_GT(siw.DestroyCq(cq.handle), 0);
  EXPECT_EQ(-EINVAL, siw.Map(key, 3 * 4096)) << "it went with the queue";
}

TEST(SiwObjects, QueuesOfAQueuePairLieOneBehindTheOther) {
  TestSiw siw;
  TestHca::QpWish wish = siw.Wish();  // its CQ: one page, at 0
  wish.send_wr = 33;
  wish.recv_wr = 17;
  TestHca::QpMade qp;
  ASSERT_GT(siw.NewQp(wish, &qp), 0) << siw.LastRule();
  EXPECT_EQ(64u, siw.Told(VABI_PF(siw_uresp_create_qp, num_sqe)));
  EXPECT_EQ(32u, siw.Told(VABI_PF(siw_uresp_create_qp, num_rqe)));
  EXPECT_EQ(qp.number, siw.Told(VABI_PF(siw_uresp_create_qp, qp_id)));
  EXPECT_EQ(4096u, siw.Told(VABI_PF(siw_uresp_create_qp, sq_key)));
  EXPECT_EQ(3u * 4096, siw.Told(VABI_PF(siw_uresp_create_qp, rq_key)));  // behind 64 * 128 bytes
  ASSERT_GT(siw.QueryQp(qp.handle), 0);
  EXPECT_EQ(64u, siw.U32(VABI_F(ib_uverbs_query_qp_resp, max_send_wr)));
  EXPECT_EQ(32u, siw.U32(VABI_F(ib_uverbs_query_qp_resp, max_recv_wr)));
  EXPECT_EQ(80u, siw.U32(VABI_F(ib_uverbs_query_qp_resp, max_inline_data)));
  EXPECT_EQ(7u, siw.U32(VABI_F(ib_uverbs_query_qp_resp, qp_access_flags)));
  EXPECT_EQ(1u, siw.Get(VABI_F(ib_uverbs_query_qp_resp, sq_sig_all))) << "whatever was asked for";
}

// siw_qp.c:siw_qp_add takes the lowest free number of the device's xarray, which starts at 1.
TEST(SiwObjects, QueuePairsTakeTheLowestFreeNumber) {
  TestSiw siw;
  TestHca::QpMade first, second;
  ASSERT_GT(siw.NewQp(siw.Wish(), &first), 0);
  EXPECT_EQ(1u, first.number);
  ASSERT_GT(siw.NewQp(siw.Wish(), &second), 0);
  EXPECT_EQ(2u, second.number);
  EXPECT_EQ(-EINVAL, siw.NewQp(siw.Wish(), nullptr, TestSiw::kQpReply - 8))
      << "it gives its number back";
  ASSERT_GT(siw.DestroyQp(first.handle), 0);
  ASSERT_GT(siw.NewQp(siw.Wish(), &first), 0);
  EXPECT_EQ(1u, first.number);
  ASSERT_GT(siw.NewQp(siw.Wish(), &second), 0);
  EXPECT_EQ(3u, second.number);
}

TEST(SiwObjects, BeforeMapEntriesEachQueueHadOneKey) {
  TestHca::SrqMade srq;
  {
    // Since 5.6 a key that was given back is free again.
    TestSiw later("linux-5.6");
    ASSERT_GT(later.NewSrq(8, 1, 0, &srq), 0);
    EXPECT_EQ(0u, later.Told(VABI_PF(siw_uresp_create_srq, srq_key)));
    ASSERT_GT(later.NewSrq(8, 1), 0);
    EXPECT_EQ(4096u, later.Told(VABI_PF(siw_uresp_create_srq, srq_key)));
    ASSERT_GT(later.DestroySrq(srq.handle), 0);
    ASSERT_GT(later.NewSrq(8, 1), 0);
    EXPECT_EQ(0u, later.Told(VABI_PF(siw_uresp_create_srq, srq_key)));
  }
  TestSiw siw("linux-5.3");
  TestHca::QpWish wish = siw.Wish();
  wish.send_wr = 64;  // two pages
  ASSERT_GT(siw.NewQp(wish), 0) << siw.LastRule();
  EXPECT_EQ(4096u, siw.Told(VABI_PF(siw_uresp_create_qp, sq_key)));
  EXPECT_EQ(8192u, siw.Told(VABI_PF(siw_uresp_create_qp, rq_key))) << "the next page's number";
  EXPECT_EQ(1, siw.Map(4096, 8192)) << siw.LastRule();
  EXPECT_EQ(1, siw.Map(4096, 8192, PROT_READ, MAP_PRIVATE)) << "which 5.6 refuses";
  ASSERT_GT(siw.NewSrq(8, 1, 0, &srq), 0) << siw.LastRule();
  EXPECT_EQ(3u, siw.Told(VABI_PF(siw_uresp_create_srq, srq_key))) << "5.3 forgot to shift it";
  // xa_alloc_cyclic: a key that was given back is not the next.
  ASSERT_GT(siw.DestroySrq(srq.handle), 0);
  ASSERT_GT(siw.NewSrq(8, 1), 0);
  EXPECT_EQ(4u, siw.Told(VABI_PF(siw_uresp_create_srq, srq_key)));
}

TEST(SiwObjects, AReceiveQueueOfNothing) {
  // roundup_pow_of_two(0) is 1 (5.3 to 5.9).
  for (const char* kernel : {"linux-5.9", "debian-5.10.223"}) {
    TestSiw siw(kernel);
    TestHca::QpWish wish = siw.Wish();
    wish.recv_wr = 0;
    ASSERT_GT(siw.NewQp(wish), 0) << siw.LastRule();
    EXPECT_EQ(std::string(kernel) == "linux-5.9" ? 1u : 0u,
              siw.Told(VABI_PF(siw_uresp_create_qp, num_rqe)));
  }
}

TEST(SiwObjects, NoStateButErrorIsEntered) {
  TestSiw siw;
  const uint32_t qp = siw.Qp();
  EXPECT_EQ(1u, siw.StateOf(qp)) << "SIW_QP_STATE_IDLE is IB_QPS_INIT";
  EXPECT_GT(siw.ToState(qp, 1), 0);
  EXPECT_GT(siw.ToState(qp, 2), 0);
  EXPECT_EQ(1u, siw.StateOf(qp)) << "siw_qp_nextstate_from_idle does nothing about RTR";
  EXPECT_EQ(-EINVAL, siw.ToState(qp, 3));
  EXPECT_GT(siw.ToState(qp, 6), 0);
  EXPECT_EQ(6u, siw.StateOf(qp));
  EXPECT_GT(siw.ToState(qp, 0), 0);
  EXPECT_EQ(6u, siw.StateOf(qp)) << "siw_qp_modify knows no way out";
  EXPECT_GT(siw.ToState(qp, 3), 0) << "from there it is not looked at";
  EXPECT_GT(siw.DestroyQp(qp), 0);
}

TEST(SiwObjects, ASharedReceiveQueueTellsWhatItHolds) {
  TestSiw siw;
  TestHca::SrqMade srq;
  ASSERT_GT(siw.NewSrq(100, 3, 5, &srq), 0) << siw.LastRule();
  EXPECT_EQ(128u, siw.Told(VABI_PF(siw_uresp_create_srq, num_rqe)));
  ASSERT_GT(siw.QuerySrq(srq.handle), 0);
  EXPECT_EQ(128u, siw.U32(VABI_F(ib_uverbs_query_srq_resp, max_wr)));
  EXPECT_EQ(3u, siw.U32(VABI_F(ib_uverbs_query_srq_resp, max_sge)));
  EXPECT_EQ(5u, siw.U32(VABI_F(ib_uverbs_query_srq_resp, srq_limit)));
  EXPECT_GT(siw.ModifySrq(srq.handle, 2, 0, 128), 0) << siw.LastRule();
  ASSERT_GT(siw.QuerySrq(srq.handle), 0);
  EXPECT_EQ(128u, siw.U32(VABI_F(ib_uverbs_query_srq_resp, srq_limit)));
}

TEST(SiwObjects, TheKeyOfARegionEndsAsItsUserAsks) {
  TestSiw siw;
  TestHca::MrMade mr;
  Bytes request(8);
  request[0] = 0x5a;
  ASSERT_GT(siw.RegMr(siw.pd, {}, &mr, request, 8), 0) << siw.LastRule();
  EXPECT_EQ(0x5au, mr.lkey & 0xff);
  EXPECT_EQ(mr.lkey, mr.rkey);
  EXPECT_EQ(mr.lkey, siw.Told(VABI_PF(siw_uresp_reg_mr, stag)));
  EXPECT_GT(siw.DeregMr(mr.handle), 0);
}

TEST(SiwObjects, ADoorbellNeedsAConnection) {
  TestSiw siw;
  const uint32_t qp = siw.Qp();
  Bytes request = siw.Zero(VABI_S(ib_uverbs_post_send));
  siw.In(request).Set(VABI_F(ib_uverbs_post_send, qp_handle), qp);
  siw.In(request).Set(VABI_F(ib_uverbs_post_send, wqe_size),
                      siw.world().Size(VABI_S(ib_uverbs_send_wr)));
  EXPECT_EQ(-ENOTCONN, siw.Command(TestHca::kPostSend, request, VABI_S(ib_uverbs_post_send_resp)));
  EXPECT_GT(siw.ToState(qp, 6), 0);
  EXPECT_GT(siw.Command(TestHca::kPostSend, request, VABI_S(ib_uverbs_post_send_resp)), 0)
      << "siw_sq_flush_wr of nothing";
}

}  // namespace
}  // namespace vabi::siw
