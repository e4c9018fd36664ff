// SPDX-License-Identifier: BSD-2-Clause
// What releases of the driver tell otherwise than their neighbours. Expected values:
// drivers/infiniband/hw/mlx5 of the releases around each change.
#include "shims/providers/mlx5/test_mlx5.h"

namespace vabi::mlx5 {
namespace {

class Release : public Mlx5Test {
 public:
  explicit Release(const char* kernel) : Mlx5Test(kernel) {}
  using Mlx5Test::LastRule;
  void TestBody() override {}

  struct Depths {
    uint32_t initiator, responder;
  };
  // What QUERY_QP tells when both depths were asked to be `depth`.
  Depths DepthsOf(uint32_t depth) {
    OpenContext();
    Cq cq(16);
    MakeCq(&cq);
    Qp qp;
    MakeQp(cq, cq, &qp);
    EXPECT_GT(ToInit(qp), 0) << LastRule();
    EXPECT_GT(Modify(qp, 0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000,
                     {{MODIFY(qp_state), 2},
                      {MODIFY(path_mtu), 3},
                      {MODIFY(dest_qp_num), qp.number},
                      {MODIFY(max_dest_rd_atomic), depth},
                      {MODIFY(min_rnr_timer), 1}}),
              0)
        << LastRule();
    EXPECT_GT(Modify(qp, 0x1 | 0x10000 | 0x2000 | 0x200 | 0x400 | 0x800,
                     {{MODIFY(qp_state), 3},
                      {MODIFY(max_rd_atomic), depth},
                      {MODIFY(timeout), 1},
                      {MODIFY(retry_cnt), 1},
                      {MODIFY(rnr_retry), 1}}),
              0)
        << LastRule();
    Bytes reply(world().Size(VABI_S(ib_uverbs_query_qp_resp)));
    EXPECT_GT(
        Write(kQueryQp,
              S(VABI_S(ib_uverbs_query_qp)).With(VABI_F(ib_uverbs_query_qp, qp_handle), qp.handle),
              &reply),
        0)
        << LastRule();
    return {In(reply).U32(VABI_F(ib_uverbs_query_qp_resp, max_rd_atomic)),
            In(reply).U32(VABI_F(ib_uverbs_query_qp_resp, max_dest_rd_atomic))};
  }
  // The last byte of a buffer for the context's private reply that is longer than any, and was
  // 0xee.
  uint8_t LastOfContext() {
    Bytes reply(512);
    EXPECT_GT(GetContext(ContextRequest().bytes(), &reply), 0) << LastRule();
    return reply.back();
  }
  // What stands behind the number in the private reply to CREATE_CQ and CREATE_SRQ, which was
  // 0xeeeeeeee.
  uint32_t BehindCqn() {
    OpenContext();
    Cq cq(16);
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_cq_resp)) + 8, 0xee);
    EXPECT_GT(Write(kCreateCq, CqRequest(cq), &reply, CqPrivate(cq).bytes()), 0) << LastRule();
    return Get32(&reply[reply.size() - 4]);
  }
  uint32_t BehindSrqn() {
    OpenContext();
    Srq srq(16);
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_srq_resp)) + 8, 0xee);
    EXPECT_GT(Write(kCreateSrq,
                    S(VABI_S(ib_uverbs_create_srq))
                        .With(VABI_F(ib_uverbs_create_srq, pd_handle), pd_)
                        .With(VABI_F(ib_uverbs_create_srq, max_wr), srq.count - 1)
                        .With(VABI_F(ib_uverbs_create_srq, max_sge), 1),
                    &reply, SrqPrivate(srq).bytes()),
              0)
        << LastRule();
    return Get32(&reply[reply.size() - 4]);
  }
  // odp_cap of QUERY_HCA_CAP (mlx5_ifc.h), as it is or as it could be: the service's 32 bits.
  uint32_t OnDemand(size_t service, bool could_be) {
    OpenContext(0, kDevx);
    constexpr uint16_t kQueryHcaCap = 0x100, kOdp = 2 << 1, kCurrent = 1;
    constexpr size_t kServices = 16 + 16;  // the header, and what stands before rc_odp_caps
    Bytes in(16), out(16 + 4096);
    Put16(in.data(), kQueryHcaCap);
    Put16(in.data() + 6, kOdp | (could_be ? 0 : kCurrent));
    Request call(static_cast<uint16_t>(C(VABI_C(MLX5_IB_OBJECT_DEVX))),
                 static_cast<uint16_t>(C(VABI_C(MLX5_IB_METHOD_DEVX_OTHER))),
                 image().device[0].driver_id);
    call.AddIn(C(VABI_C(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN)), in);
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT)), out);
    EXPECT_EQ(0, SendIoctl(*file_, call)) << LastRule();
    return Get32(&out[kServices + 4 * service]);
  }
};

// qp.c:__mlx5_ib_modify_qp: fls(depth - 1) up to 5.7, in 6.1.192 and in 6.12; ilog2(depth) from 5.8
// to 6.6. QUERY_QP tells 1 << of it.
TEST(Mlx5Releases, DepthsArePowersOfTwo) {
  for (const auto& [kernel, told] : {std::pair{"linux-5.7", 8u},
                                     {"linux-5.8", 4u},
                                     {"debian-6.1.192", 8u},
                                     {"linux-6.6", 4u},
                                     {"debian-6.12.117", 8u}}) {
    const Release::Depths depths = Release(kernel).DepthsOf(5);
    EXPECT_EQ(told, depths.initiator) << kernel;
    EXPECT_EQ(told, depths.responder) << kernel;
  }
}

// ib_respond_udata in 7.2, not in 6.18: what the caller's buffer has beyond the reply becomes zero.
// cq.c:mlx5_ib_create_cq had copied cqn alone.
TEST(Mlx5Releases, TheRestOfAReplyIsClearedSince72) {
  EXPECT_EQ(0xee, Release("debian-6.12.117").LastOfContext());
  EXPECT_EQ(0xeeeeeeeeu, Release("debian-6.12.117").BehindCqn());
  EXPECT_EQ(0, Release("debian-7.2.13").LastOfContext());
  EXPECT_EQ(0u, Release("debian-7.2.13").BehindCqn());
}

// srq.c:mlx5_ib_create_srq: srqn alone up to 5.6; the whole structure, as far as there is room, in
// 5.7.
TEST(Mlx5Releases, TheSrqsReplyIsWholeSince57) {
  EXPECT_EQ(0xeeeeeeeeu, Release("linux-5.6").BehindSrqn());
  EXPECT_EQ(0u, Release("linux-5.7").BehindSrqn());
}

// mlx5/core/main.c:handle_hca_cap_odp turns on what the card has: srq_receive and XRC since 5.1, DC
// since 5.4.
TEST(Mlx5Releases, WhatIsTurnedOnOnDemand) {
  enum : size_t { kRc = 0, kXrc = 3, kDc = 4 };
  constexpr uint32_t kSrqReceive = 1 << 26;
  EXPECT_EQ(0u, Release("linux-5.0").OnDemand(kRc, false) & kSrqReceive);
  EXPECT_EQ(0u, Release("linux-5.0").OnDemand(kXrc, false));
  EXPECT_EQ(kSrqReceive, Release("linux-5.3").OnDemand(kRc, false) & kSrqReceive);
  EXPECT_NE(0u, Release("linux-5.3").OnDemand(kXrc, false));
  EXPECT_EQ(0u, Release("linux-5.3").OnDemand(kDc, false));
  EXPECT_NE(0u, Release("linux-5.6").OnDemand(kDc, false));
  EXPECT_NE(0u, Release("linux-5.0").OnDemand(kDc, true)) << "it can do so";
}

}  // namespace
}  // namespace vabi::mlx5
