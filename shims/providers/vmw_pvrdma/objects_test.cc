// SPDX-License-Identifier: BSD-2-Clause
// What vmw_pvrdma grants and tells: hw/vmw_pvrdma of the kernels named.
#include <sys/wait.h>
#include <unistd.h>

#include "shims/providers/vmw_pvrdma/test_vmw_pvrdma.h"

namespace vabi::vmw_pvrdma {
namespace {

constexpr const char* kEras[] = {"linux-4.16", "debian-5.10.223", "debian-6.1.192", "debian-7.3.4"};

class Objects : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(VmwPvrdma, Objects, testing::ValuesIn(kEras),
                         [](const auto& info) { return CaseName(std::string(info.param)); });

// pvrdma_verbs.c:pvrdma_alloc_ucontext, pvrdma_mmap. The library makes a table of the low 16 bits
// (providers/vmw_pvrdma/pvrdma_main.c), which must not be none.
TEST_P(Objects, ContextTellsItsTableAndMapsOnePage) {
  TestVmwPvrdma hca(GetParam());
  ASSERT_GT(hca.Open({}, 8), 0) << hca.LastRule();
  EXPECT_NE(0u, hca.Told(VABI_PF(pvrdma_alloc_ucontext_resp, qp_tab_size)) & 0xffff);
  EXPECT_EQ(1, hca.Map(0, 4096));
  EXPECT_EQ(1, hca.Map(0x5000, 4096)) << "any offset";
  EXPECT_EQ(1, hca.Map(0, 4096, PROT_READ, MAP_PRIVATE)) << "the driver looks at no flag";
}

// pvrdma_mmap: VM_DONTCOPY.
TEST_P(Objects, ChildrenDoNotHaveTheUar) {
  TestVmwPvrdma hca(GetParam());
  ASSERT_GT(hca.Open({}, 8), 0) << hca.LastRule();
  const long page = hca.file().Mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
  ASSERT_FALSE(page < 0 && page > -4096) << hca.LastRule();
  const pid_t child = fork();
  if (child == 0) {
    unsigned char there;
    _exit(mincore(reinterpret_cast<void*>(page), 4096, &there) == 0 ? 0 : errno);
  }
  int status = 0;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(ENOMEM, WEXITSTATUS(status));
  munmap(reinterpret_cast<void*>(page), 4096);
}

// pvrdma_cq.c:pvrdma_create_cq rounds up to a power of two.
TEST_P(Objects, EntriesAreGrantedInPowersOfTwo) {
  TestVmwPvrdma hca(GetParam());
  hca.Start();
  TestHca::CqMade cq;
  ASSERT_GT(hca.CreateCq(20, &cq, hca.Cq(), 8), 0) << hca.LastRule();
  EXPECT_EQ(32u, cq.cqe);
  EXPECT_NE(0u, hca.Told(VABI_PF(pvrdma_create_cq_resp, cqn)));
  EXPECT_GT(hca.DestroyCq(cq.handle), 0);
}

// pvrdma_srq.c: the sizes stay, and a limit can be set.
TEST_P(Objects, SharedReceiveQueueTakesALimit) {
  TestVmwPvrdma hca(GetParam());
  hca.Start();
  TestHca::SrqMade srq;
  ASSERT_GT(hca.CreateSrq(hca.pd, 20, 2, 0, &srq, hca.Srq(), 8), 0) << hca.LastRule();
  EXPECT_EQ(20u, srq.max_wr);
  EXPECT_GT(hca.ModifySrq(srq.handle, 2, 0, 7), 0) << hca.LastRule();
  ASSERT_GT(hca.QuerySrq(srq.handle), 0) << hca.LastRule();
  EXPECT_EQ(7u, hca.U32(VABI_F(ib_uverbs_query_srq_resp, srq_limit)));
  EXPECT_GT(hca.DestroySrq(srq.handle), 0);
}

// pvrdma_qp.c: in RESET QUERY_QP tells the state and nothing else; in any other what was asked for,
// without inline data, and with every completion signalled (sq_sig_type 0).
TEST_P(Objects, QueuePairLivesThroughItsStates) {
  TestVmwPvrdma hca(GetParam());
  hca.Start();
  TestHca::QpWish wish = hca.Wish();
  wish.recv_wr = 20;
  wish.inline_data = 64;
  TestHca::QpMade qp;
  ASSERT_GT(hca.CreateQp(wish, &qp, hca.Qp(), 8), 0) << hca.LastRule();
  EXPECT_EQ(20u, qp.recv_wr);
  EXPECT_EQ(0u, qp.inline_data);
#define TOLD(field) hca.Get(VABI_F(ib_uverbs_query_qp_resp, field))
  ASSERT_GT(hca.QueryQp(qp.handle), 0);
  EXPECT_EQ(0u, TOLD(max_recv_wr));
  EXPECT_GT(hca.ToInit(qp.handle), 0) << hca.LastRule();
  EXPECT_GT(hca.ToRtr(qp.handle, qp.number), 0) << hca.LastRule();
  EXPECT_GT(hca.ToRts(qp.handle), 0) << hca.LastRule();
  ASSERT_GT(hca.QueryQp(qp.handle), 0);
  EXPECT_EQ(3u, TOLD(qp_state));
  EXPECT_EQ(7u, TOLD(rq_psn));
  EXPECT_EQ(20u, TOLD(max_recv_wr));
  EXPECT_EQ(1u, TOLD(sq_sig_all));
#undef TOLD
  EXPECT_GT(hca.ToState(qp.handle, 6), 0) << hca.LastRule();
  EXPECT_GT(hca.DestroyQp(qp.handle), 0);
}

TEST_P(Objects, RegionHasAKey) {
  TestVmwPvrdma hca(GetParam());
  hca.Start();
  TestHca::MrMade mr;
  ASSERT_GT(hca.RegMr(hca.pd, {.access = 7}, &mr), 0) << hca.LastRule();
  EXPECT_NE(0u, mr.lkey);
  EXPECT_GT(hca.DeregMr(mr.handle), 0);
}

// pvrdma_qp.c:pvrdma_create_qp: number and handle since 5.6; before, the reply was nobody's.
TEST(VmwPvrdmaReplies, NumberAndHandleSince56) {
  for (const auto& [kernel, tells] : {std::pair{"linux-5.3", false}, {"linux-5.6", true}}) {
    TestVmwPvrdma hca(kernel);
    hca.Start();
    const TestHca::QpMade qp = hca.MakeQp();
    EXPECT_EQ(tells ? qp.number : 0u, hca.Told(VABI_PF(pvrdma_create_qp_resp, qpn))) << kernel;
    EXPECT_EQ(tells, hca.Told(VABI_PF(pvrdma_create_qp_resp, qp_handle)) != 0) << kernel;
  }
}

// 4.10 copied sizeof(__u32) of ALLOC_PD's and CREATE_CQ's replies; later the structure was, with
// its reserved word of zero.
TEST(VmwPvrdmaReplies, NumberAloneIn410) {
  for (const auto& [kernel, tail] : {std::pair{"linux-4.10", 0xee}, {"linux-4.16", 0}}) {
    TestVmwPvrdma hca(kernel);
    hca.Start();
    hca.room_filled_with = 0xee;
    uint32_t pd = 0;
    ASSERT_GT(hca.AllocPd(&pd, {}, 16), 0);
    EXPECT_EQ(tail, hca.told[4]) << kernel;
    EXPECT_EQ(0xee, hca.told[8]) << kernel;
    ASSERT_GT(hca.CreateCq(15, nullptr, hca.Cq(), 8), 0);
    EXPECT_EQ(tail, hca.told[4]) << kernel;
  }
}

// core/ib_core_uverbs.c:_ib_respond_udata (7.2): what is behind the reply becomes zero.
TEST(VmwPvrdmaReplies, TailBecomesZeroSince72) {
  for (const auto& [kernel, tail] : {std::pair{"debian-6.12.117", 0xee}, {"debian-7.2.13", 0}}) {
    TestVmwPvrdma hca(kernel);
    hca.Start();
    hca.room_filled_with = 0xee;
    ASSERT_GT(hca.CreateCq(15, nullptr, hca.Cq(), 16), 0);
    EXPECT_EQ(tail, hca.told[8]) << kernel;
  }
}

// uverbs_cmd_mask had CREATE_AH up to 5.10; there is no create_user_ah.
TEST(VmwPvrdmaAddresses, AreOfTheKernelUpTo510) {
  {
    TestVmwPvrdma hca("debian-5.10.223");
    hca.Start();
    uint32_t ah = 0;
    EXPECT_GT(hca.CreateAh(hca.pd, &ah), 0) << hca.LastRule();
    EXPECT_GT(hca.DestroyAh(ah), 0);
  }
  TestVmwPvrdma hca("linux-5.14");
  hca.Start();
  EXPECT_LT(hca.CreateAh(hca.pd, nullptr), 0);
}

}  // namespace
}  // namespace vabi::vmw_pvrdma
