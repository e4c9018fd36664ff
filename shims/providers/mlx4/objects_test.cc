// SPDX-License-Identifier: BSD-2-Clause
// What mlx4 grants and tells: hw/mlx4/main.c, cq.c, srq.c, qp.c of the kernels named.
#include <cstring>

#include "shims/providers/mlx4/test_mlx4.h"

namespace vabi::mlx4 {
namespace {

constexpr const char* kEras[] = {"linux-4.4",       "linux-4.10",     "linux-4.16",
                                 "debian-5.10.223", "debian-6.1.192", "debian-7.3.4"};

class Objects : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Mlx4, Objects, testing::ValuesIn(kEras),
                         [](const auto& info) { return CaseName(std::string(info.param)); });

// main.c:mlx4_ib_alloc_ucontext: device capabilities in front (ABI 4).
TEST_P(Objects, ContextTellsDeviceCapabilities) {
  TestMlx4 hca(GetParam());
  ASSERT_GT(hca.Open({}, 16), 0) << hca.LastRule();
  EXPECT_EQ(1u, hca.Told(VABI_PF(mlx4_ib_alloc_ucontext_resp, dev_caps)));  // LARGE_CQE
  EXPECT_EQ(262144u, hca.Told(VABI_PF(mlx4_ib_alloc_ucontext_resp, qp_tab_size)));
  EXPECT_EQ(512u, hca.Told(VABI_PF(mlx4_ib_alloc_ucontext_resp, bf_reg_size)));
  EXPECT_EQ(64u, hca.Told(VABI_PF(mlx4_ib_alloc_ucontext_resp, cqe_size)));
}

// A card without userspace_caps: the layout of ABI 3, which begins with the size of the table.
TEST_P(Objects, ContextOfAbi3HasTheOldLayout) {
  TestMlx4 hca(GetParam());
  hca.image().device[0].abi_version = 3;
  hca.Reinstall();
  ASSERT_GT(hca.Open({}, 8), 0) << hca.LastRule();
  EXPECT_EQ(262144u, hca.Told(VABI_PF(mlx4_ib_alloc_ucontext_resp_v3, qp_tab_size)));
  EXPECT_EQ(512u, hca.Told(VABI_PF(mlx4_ib_alloc_ucontext_resp_v3, bf_reg_size)));
  EXPECT_EQ(8u, hca.Told(VABI_PF(mlx4_ib_alloc_ucontext_resp_v3, bf_regs_per_page)));
}

// cq.c:mlx4_ib_create_cq: a power of two, less one; srq.c the same.
TEST_P(Objects, DepthsAreGrantedInPowersOfTwo) {
  TestMlx4 hca(GetParam());
  hca.Start();
  TestHca::CqMade cq;
  ASSERT_GT(hca.CreateCq(20, &cq, hca.Cq(), 8), 0) << hca.LastRule();
  EXPECT_EQ(31u, cq.cqe);
  ASSERT_GT(hca.ResizeCq(cq.handle, 100, hca.Resize()), 0) << hca.LastRule();
  EXPECT_EQ(127u, hca.U32(VABI_F(ib_uverbs_resize_cq_resp, cqe)));
  TestHca::SrqMade srq;
  ASSERT_GT(hca.CreateSrq(hca.pd, 20, 2, 0, &srq, hca.Srq(), 8), 0) << hca.LastRule();
  EXPECT_EQ(31u, srq.max_wr);
  EXPECT_GT(hca.ModifySrq(srq.handle, 2, 0, 7), 0) << hca.LastRule();
  ASSERT_GT(hca.QuerySrq(srq.handle), 0) << hca.LastRule();
  EXPECT_EQ(7u, hca.U32(VABI_F(ib_uverbs_query_srq_resp, srq_limit)));
  EXPECT_GT(hca.DestroySrq(srq.handle), 0);
  EXPECT_GT(hca.DestroyCq(cq.handle), 0);
}

// cq.c:mlx4_ib_cq_resize_copy_cqes and the library's twin read the old buffer up to an element with
// MLX4_CQE_OPCODE_RESIZE (0x16 of include/linux/mlx4/cq.h, in the last byte): without it they never
// end.
TEST_P(Objects, ResizeLeavesItsElementInTheOldBuffer) {
  TestMlx4 hca(GetParam());
  hca.Start();
  TestHca::CqMade cq;
  ASSERT_GT(hca.CreateCq(15, &cq, hca.Cq(), 8), 0) << hca.LastRule();
  const auto* elements = reinterpret_cast<const uint8_t*>(hca.Buffer());
  Bytes elsewhere = hca.Resize();
  hca.In(elsewhere).Set(VABI_PF(mlx4_ib_resize_cq, buf_addr), hca.Buffer() + 4096);
  EXPECT_EQ(0, elements[63]);
  ASSERT_GT(hca.ResizeCq(cq.handle, 31, elsewhere), 0) << hca.LastRule();
  EXPECT_EQ(0x16, elements[63]);
  ASSERT_GT(hca.ResizeCq(cq.handle, 15, hca.Resize()), 0) << hca.LastRule();
  EXPECT_EQ(0x16, elements[4096 + 127]) << "the second one";
}

// Elements of a card that tells of no capabilities have 32 bytes.
TEST_P(Objects, ElementsOfAbi3HaveHalfTheSize) {
  for (const uint32_t version : {3, 4}) {
    TestMlx4 hca(GetParam());
    hca.image().device[0].abi_version = version;
    hca.Reinstall();
    hca.Start();
    Bytes at_the_end = hca.Cq();  // 128 elements: one page or two
    hca.In(at_the_end)
        .Set(VABI_PF(mlx4_ib_create_cq, buf_addr), hca.Buffer() + 2 * TestHca::kBuffer - 4096);
    EXPECT_EQ(version == 3, hca.CreateCq(127, nullptr, at_the_end, 8) > 0) << hca.LastRule();
    TestHca::CqMade cq;
    ASSERT_GT(hca.CreateCq(15, &cq, hca.Cq(), 8), 0) << hca.LastRule();
    Bytes elsewhere = hca.Resize();
    hca.In(elsewhere).Set(VABI_PF(mlx4_ib_resize_cq, buf_addr), hca.Buffer() + 4096);
    ASSERT_GT(hca.ResizeCq(cq.handle, 31, elsewhere), 0) << hca.LastRule();
    const auto* elements = reinterpret_cast<const uint8_t*>(hca.Buffer());
    EXPECT_EQ(version == 3 ? 0x16 : 0, elements[31]);
    EXPECT_EQ(version == 3 ? 0 : 0x16, elements[63]);
  }
}

// qp.c:set_rq_size rounds up what is received; what is sent stays as it was asked for, and QUERY_QP
// does not tell of it.
TEST_P(Objects, QueuePairLivesThroughItsStates) {
  TestMlx4 hca(GetParam());
  hca.Start();
  TestHca::QpWish wish = hca.Wish();
  wish.recv_wr = 20;
  wish.recv_sge = 3;
  wish.send_wr = 17;
  TestHca::QpMade qp;
  ASSERT_GT(hca.CreateQp(wish, &qp, hca.Qp()), 0) << hca.LastRule();
  EXPECT_EQ(32u, qp.recv_wr);
  EXPECT_EQ(4u, qp.recv_sge);
  EXPECT_EQ(17u, qp.send_wr);
  EXPECT_GT(hca.ToInit(qp.handle), 0) << hca.LastRule();
  EXPECT_GT(hca.ToRtr(qp.handle, qp.number), 0) << hca.LastRule();
  EXPECT_GT(hca.ToRts(qp.handle), 0) << hca.LastRule();
  ASSERT_GT(hca.QueryQp(qp.handle), 0) << hca.LastRule();
#define TOLD(field) hca.U32(VABI_F(ib_uverbs_query_qp_resp, field))
  EXPECT_EQ(3u, TOLD(qp_state));
  EXPECT_EQ(3u, TOLD(path_mtu));
  EXPECT_EQ(7u, TOLD(rq_psn));
  EXPECT_EQ(32u, TOLD(max_recv_wr));
  EXPECT_EQ(4u, TOLD(max_recv_sge));
  EXPECT_EQ(0u, TOLD(max_send_wr));
  EXPECT_EQ(0u, TOLD(max_send_sge));
  EXPECT_GT(hca.DestroyQp(qp.handle), 0);
}

// qp.c:mlx4_ib_query_qp: depths are kept as logarithms.
TEST_P(Objects, QueryTellsDepthsRoundedUp) {
  TestMlx4 hca(GetParam());
  hca.Start();
  const uint32_t qp = hca.MakeQp();
  EXPECT_GT(hca.ToInit(qp), 0);
  EXPECT_GT(hca.ModifyQp(qp, 0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000,
                         {{VABI_F(ib_uverbs_modify_qp, qp_state), 2},
                          {VABI_F(ib_uverbs_modify_qp, path_mtu), 3},
                          {VABI_F(ib_uverbs_modify_qp, max_dest_rd_atomic), 5}}),
            0)
      << hca.LastRule();
  ASSERT_GT(hca.QueryQp(qp), 0);
  EXPECT_EQ(8u, TOLD(max_dest_rd_atomic));
  EXPECT_EQ(1u, TOLD(max_rd_atomic)) << "1 << 0";
}

// qp.c:__mlx4_ib_modify_qp: datagrams have the largest MTU, and no address of their own.
TEST_P(Objects, DatagramsTellTheLargestMtu) {
  TestMlx4 hca(GetParam());
  hca.Start();
  const uint32_t qp = hca.MakeQp(TestHca::kUd);
  EXPECT_GT(hca.ToInit(qp, TestHca::kUd), 0) << hca.LastRule();
  EXPECT_GT(hca.ToRtr(qp, 0, TestHca::kUd), 0) << hca.LastRule();
  ASSERT_GT(hca.QueryQp(qp), 0);
  EXPECT_EQ(5u, TOLD(path_mtu));
}

// qp.c:mlx4_ib_query_qp tells addresses of RC and UC only up to 5.10, since 5.11 of XRC, too.
TEST(Mlx4Query, AddressesOfXrcSince511) {
  for (const auto& [kernel, global] :
       {std::pair{"linux-4.16", 0u}, {"debian-5.10.223", 0u}, {"linux-5.14", 1u}}) {
    TestMlx4 hca(kernel);
    hca.Start();
    const uint32_t qp = hca.MakeQp(TestHca::kXrcInitiator);
    ASSERT_GT(hca.ToInit(qp, TestHca::kXrcInitiator), 0) << hca.LastRule();
    ASSERT_GT(hca.ToRtr(qp, 5, TestHca::kXrcInitiator), 0) << hca.LastRule();
    ASSERT_GT(hca.QueryQp(qp), 0) << hca.LastRule();
    EXPECT_EQ(2u, TOLD(qp_state));
    const Body told = hca.CoreReply().Sub(VABI_F(ib_uverbs_query_qp_resp, dest));
    EXPECT_EQ(global, told.U32(VABI_F(ib_uverbs_qp_dest, is_global)) & 0xff) << kernel;
  }
}
#undef TOLD

// mr.c, net/mlx4/mr.c:hw_index_to_key: both keys are one.
TEST_P(Objects, RegionsHaveOneKey) {
  TestMlx4 hca(GetParam());
  hca.Start();
  TestHca::MrMade mr;
  ASSERT_GT(hca.RegMr(hca.pd, {.access = 7}, &mr), 0) << hca.LastRule();
  EXPECT_EQ(mr.lkey, mr.rkey);
  EXPECT_NE(0u, mr.lkey);
  EXPECT_GT(hca.ReregMr(mr, 4, 0, 0, 1), 0) << hca.LastRule();
  EXPECT_GT(hca.DeregMr(mr.handle), 0);
}

// main.c:mlx4_ib_mmap: UAR, BlueFlame, clock.
TEST_P(Objects, ThreePagesCanBeMapped) {
  TestMlx4 hca(GetParam());
  hca.Start();
  for (const uint64_t page : {0, 1, 3}) EXPECT_EQ(1, hca.Map(page * 4096, 4096)) << page;
}

// Up to 4.19 a page is mapped once; whether it still is, is not modelled.
TEST(Mlx4Map, TwiceOnceMeantARefusal) {
  {
    TestMlx4 hca("linux-4.19");
    hca.Start();
    EXPECT_EQ(1, hca.Map(0, 4096));
    EXPECT_LT(hca.Map(0, 4096), 0);
    EXPECT_NE("", hca.LastUnmodelled());
  }
  TestMlx4 hca("linux-4.20");
  hca.Start();
  EXPECT_EQ(1, hca.Map(0, 4096));
  EXPECT_EQ(1, hca.Map(0, 4096));
}

// main.c:mlx4_ib_query_device: as much as there is room for.
struct RoomCase {
  const char* kernel;
  size_t room;
  uint32_t told;
};
class Room : public testing::TestWithParam<RoomCase> {};
INSTANTIATE_TEST_SUITE_P(
    Mlx4, Room,
    testing::Values(RoomCase{"linux-4.4", 8, 8}, RoomCase{"linux-4.4", 48, 16},
                    RoomCase{"linux-4.16", 24, 20}, RoomCase{"linux-4.16", 40, 36},
                    RoomCase{"linux-4.16", 48, 36}, RoomCase{"linux-4.17", 24, 20},
                    RoomCase{"linux-4.17", 40, 40}, RoomCase{"linux-4.17", 48, 48},
                    RoomCase{"debian-7.3.4", 32, 20}, RoomCase{"debian-7.3.4", 64, 48}),
    [](const auto& info) {
      return CaseName(std::string(info.param.kernel) + "_" + std::to_string(info.param.room));
    });
TEST_P(Room, DecidesWhatQueryDeviceTells) {
  TestMlx4 hca(GetParam().kernel);
  hca.Start();
  ASSERT_GE(hca.QueryDevice({}, GetParam().room), 0) << hca.LastRule();
  uint32_t length = 0;
  std::memcpy(&length, hca.told.data() + 4, sizeof(length));
  EXPECT_EQ(GetParam().told, length);
  if (length >= 20) {
    uint32_t inline_size = 0;
    std::memcpy(&inline_size, hca.told.data() + 16, sizeof(inline_size));
    EXPECT_EQ(512u, inline_size);
  }
}

// core/ib_core_uverbs.c:_ib_respond_udata (7.2): what is behind the reply becomes zero; before, the
// kernel wrote the number and no more.
TEST(Mlx4Replies, TailBecomesZeroSince72) {
  for (const auto& [kernel, tail] : {std::pair{"debian-6.12.117", 0xee}, {"debian-7.2.13", 0}}) {
    TestMlx4 hca(kernel);
    hca.Start();
    const size_t core = hca.world().Size(VABI_S(ib_uverbs_create_cq_resp));
    Bytes reply(core + 16, 0xee);
    Bytes request = hca.Zero(VABI_S(ib_uverbs_create_cq));
    hca.In(request).Set(VABI_F(ib_uverbs_create_cq, cqe), 15);
    hca.In(request).Set(VABI_F(ib_uverbs_create_cq, comp_channel), ~0u);
    ASSERT_GT(SendWrite(hca.file(), LegacyCommand(18, request, &reply, hca.Cq())), 0);
    EXPECT_EQ(tail, reply[core + 4]) << kernel;
    EXPECT_EQ(tail, reply[core + 15]) << kernel;
  }
}

}  // namespace
}  // namespace vabi::mlx4
