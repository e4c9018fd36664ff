// SPDX-License-Identifier: BSD-2-Clause
// One offence for each rule of vmw_pvrdma: the errno of drivers/infiniband/hw/vmw_pvrdma in the
// kernel named (file and function stand in abi.def), and which rule answered.
#include "shims/providers/test_offence.h"
#include "shims/providers/vmw_pvrdma/test_vmw_pvrdma.h"

namespace vabi::vmw_pvrdma {
namespace {

constexpr char kNewest[] = "debian-7.3.4";

using T = TestVmwPvrdma;
using PvrdmaOffence = Offence<T>;

long Cq(T& t, const Bytes& request, uint32_t cqe = 15) {
  return t.CreateCq(cqe, nullptr, request, 8);
}
long Qp(T& t, const Bytes& request, uint8_t type = T::kRc, size_t room = 8) {
  return t.CreateQp(t.Wish(type), nullptr, request, room);
}
long Srq(T& t, const Bytes& request, uint32_t max_wr = 15, uint32_t max_sge = 1) {
  return t.CreateSrq(t.pd, max_wr, max_sge, 0, nullptr, request, 8);
}
long CreateXsrq(T& t) {
  constexpr uint32_t kTagMatching = 2;  // enum ib_srq_type
  Bytes request = t.Zero(VABI_S(ib_uverbs_create_xsrq));
  const Body body = t.In(request);
  body.Set(VABI_F(ib_uverbs_create_xsrq, pd_handle), t.pd);
  body.Set(VABI_F(ib_uverbs_create_xsrq, max_wr), 15);
  body.Set(VABI_F(ib_uverbs_create_xsrq, max_sge), 1);
  body.Set(VABI_F(ib_uverbs_create_xsrq, srq_type), kTagMatching);
  body.Set(VABI_F(ib_uverbs_create_xsrq, cq_handle), t.MakeCq());
  return t.Command(39, request, VABI_S(ib_uverbs_create_srq_resp), t.Srq(), 8);
}
long ModifyEx(T& t, uint32_t mask) {
  const uint32_t qp = t.MakeQp().handle;
  Bytes request = t.Zero(VABI_S(ib_uverbs_ex_modify_qp));
  const Body body = t.In(request).Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
  body.Set(VABI_F(ib_uverbs_modify_qp, qp_handle), qp);
  body.Set(VABI_F(ib_uverbs_modify_qp, attr_mask), mask);
  return t.CommandEx(T::kModifyQp, request, VABI_S(ib_uverbs_ex_modify_qp_resp));
}
// More than a page directory holds, all of one page that is never touched.
uint64_t Huge() {
  static void* const memory = mmap(nullptr, (1 << 30) + 8192, PROT_READ,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return reinterpret_cast<uintptr_t>(memory);
}
long MulticastAh(T& t) {
  Bytes request = t.Zero(VABI_S(ib_uverbs_create_ah));
  const Body body = t.In(request);
  body.Set(VABI_F(ib_uverbs_create_ah, pd_handle), t.pd);
  const Body attr = body.Sub(VABI_F(ib_uverbs_create_ah, attr));
  attr.Set(VABI_F(ib_uverbs_ah_attr, port_num), 1);
  attr.Set(VABI_F(ib_uverbs_ah_attr, is_global), 1);
  const uint8_t group[16] = {0xff, 0x0e};
  attr.Sub(VABI_F(ib_uverbs_ah_attr, grh))
      .SetBytes(VABI_F(ib_uverbs_global_route, dgid), group, sizeof(group));
  return t.Command(T::kCreateAh, request, VABI_S(ib_uverbs_create_ah_resp));
}

const PvrdmaOffence kOffences[] = {
    {kNewest, "vmw_pvrdma.request.short", EINVAL, [](T& t) { return Cq(t, Cut(t.Cq(), 12)); }},
    {kNewest, "vmw_pvrdma.request.short", EINVAL, [](T& t) { return Srq(t, Cut(t.Srq(), 8)); }},
    {kNewest, "vmw_pvrdma.request.short", EINVAL, [](T& t) { return Qp(t, Cut(t.Qp(), 28)); }},
    {kNewest, "vmw_pvrdma.request.tail", EOPNOTSUPP, [](T& t) { return Cq(t, Longer(t.Cq())); }},
    {kNewest, "vmw_pvrdma.request.fault", EFAULT,
     [](T& t) {
       return t.Nowhere(T::Lost::kInput, T::kCreateCq, t.CqRequest(15),
                        VABI_S(ib_uverbs_create_cq_resp));
     }},
    {kNewest, "vmw_pvrdma.reply.fault", EFAULT,
     [](T& t) {
       return t.Nowhere(T::Lost::kOutput, T::kAllocPd, t.Zero(VABI_S(ib_uverbs_alloc_pd)),
                        VABI_S(ib_uverbs_alloc_pd_resp));
     }},
    {kNewest, "vmw_pvrdma.queue_reply.fault", EFAULT,
     [](T& t) {
       return t.Nowhere(T::Lost::kOutput, T::kCreateCq, t.CqRequest(15),
                        VABI_S(ib_uverbs_create_cq_resp), t.Cq());
     }},
    {"debian-6.12.117", "vmw_pvrdma.queue_reply.fault", EINVAL,
     [](T& t) {
       return t.Nowhere(T::Lost::kOutput, T::kCreateCq, t.CqRequest(15),
                        VABI_S(ib_uverbs_create_cq_resp), t.Cq());
     }},
    {"debian-6.12.117", "vmw_pvrdma.query_device.udata", EINVAL,
     [](T& t) { return t.QueryDevice({}, 8); }},
    {kNewest, "vmw_pvrdma.query_device.input", EOPNOTSUPP,
     [](T& t) { return t.QueryDevice(kOne, 8); }},
    {kNewest, "vmw_pvrdma.query_device.fault", EFAULT,
     [](T& t) {
       return t.Nowhere(T::Lost::kOutput, 0x80000001, t.Zero(VABI_S(ib_uverbs_ex_query_device)),
                        VABI_S(ib_uverbs_ex_query_device_resp));
     }},
    {kNewest, "vmw_pvrdma.mmap.length", EINVAL, [](T& t) { return t.Map(0, 8192); }},
    {kNewest, "vmw_pvrdma.memory.range", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {.start = ~uint64_t{4095}, .length = 8192}); }},
    {kNewest, "vmw_pvrdma.memory.nothing", EINVAL,
     [](T& t) {
       Bytes request = t.Cq();
       t.In(request).Set(VABI_PF(pvrdma_create_cq, buf_size), 0);
       return Cq(t, request);
     }},
    {"linux-4.10", "vmw_pvrdma.memory.empty", EINVAL,
     [](T& t) {
       Bytes request = t.Cq();
       t.In(request).Set(VABI_PF(pvrdma_create_cq, buf_addr), t.Buffer() + 1);
       t.In(request).Set(VABI_PF(pvrdma_create_cq, buf_size), 0);
       return Cq(t, request);
     }},
    {kNewest, "vmw_pvrdma.memory.fault", EFAULT,
     [](T& t) { return t.RegMr(t.pd, {.start = 4096}); }},
    {kNewest, "vmw_pvrdma.memory.directory", EINVAL,
     [](T& t) {
       return t.RegMr(t.pd, {.start = Huge(), .length = (1 << 30) + 4096, .access = 0});
     }},
    {kNewest, "vmw_pvrdma.reg_mr.length", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {.start = t.Buffer() + 1, .length = 0}); }},
    {"linux-4.10", "vmw_pvrdma.create_ah.multicast", EINVAL, MulticastAh},
    {kNewest, "vmw_pvrdma.create_cq.flags", EOPNOTSUPP,
     [](T& t) { return t.CreateCqEx(15, 1, t.Cq(), 8); }},
    {kNewest, "vmw_pvrdma.create_cq.entries", EINVAL, [](T& t) { return Cq(t, t.Cq(), 65537); }},
    {kNewest, "vmw_pvrdma.create_srq.type", EOPNOTSUPP, CreateXsrq},
    {kNewest, "vmw_pvrdma.create_srq.size", EINVAL, [](T& t) { return Srq(t, t.Srq(), 16385); }},
    {kNewest, "vmw_pvrdma.create_srq.size", EINVAL, [](T& t) { return Srq(t, t.Srq(), 15, 17); }},
    {kNewest, "vmw_pvrdma.modify_srq.limit", EINVAL,
     [](T& t) {
       T::SrqMade srq;
       EXPECT_GT(t.CreateSrq(t.pd, 15, 1, 0, &srq, t.Srq(), 8), 0) << t.LastRule();
       return t.ModifySrq(srq.handle, 1, 31, 0);
     }},
    // IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK
    {kNewest, "vmw_pvrdma.create_qp.flags", EOPNOTSUPP,
     [](T& t) { return t.CreateQpEx(t.Wish(), 2, t.Qp(), 8); }},
    {"linux-4.16", "vmw_pvrdma.create_qp.flags", EINVAL,
     [](T& t) { return t.CreateQpEx(t.Wish(), 2, t.Qp(), 8); }},
    {kNewest, "vmw_pvrdma.create_qp.type", EOPNOTSUPP, [](T& t) { return Qp(t, t.Qp(), T::kUc); }},
    {"linux-5.6", "vmw_pvrdma.create_qp.type", EINVAL, [](T& t) { return Qp(t, t.Qp(), T::kUc); }},
    {kNewest, "vmw_pvrdma.create_qp.reply", EOPNOTSUPP,
     [](T& t) { return Qp(t, t.Qp(), T::kRc, 4); }},
    // IB_QP_RATE_LIMIT
    {kNewest, "vmw_pvrdma.modify_qp.mask", EOPNOTSUPP, [](T& t) { return ModifyEx(t, 1 << 25); }},
    {kNewest, "vmw_pvrdma.modify_qp.rnr_timer", EINVAL,
     [](T& t) {
       const T::QpMade qp = t.MakeQp();
       EXPECT_GT(t.ToInit(qp.handle), 0) << t.LastRule();
       return t.ModifyQp(qp.handle, 0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000,
                         {{VABI_F(ib_uverbs_modify_qp, qp_state), 2},
                          {VABI_F(ib_uverbs_modify_qp, path_mtu), 3},
                          {VABI_F(ib_uverbs_modify_qp, min_rnr_timer), 32}});
     }},
    {kNewest, "vmw_pvrdma.modify_qp.pkey", EINVAL,
     [](T& t) {
       return t.ModifyQp(t.MakeQp().handle, 0x1 | 0x8 | 0x10 | 0x20,
                         {{VABI_F(ib_uverbs_modify_qp, qp_state), 1},
                          {VABI_F(ib_uverbs_modify_qp, port_num), 1},
                          {VABI_F(ib_uverbs_modify_qp, pkey_index), 1}});
     }},
};

class Rule : public testing::TestWithParam<PvrdmaOffence> {};
INSTANTIATE_TEST_SUITE_P(VmwPvrdma, Rule, testing::ValuesIn(kOffences), [](const auto& info) {
  return CaseName(info.param) + "_" + std::to_string(info.index);
});
TEST_P(Rule, Answers) {
  TestVmwPvrdma hca(GetParam().kernel);
  hca.Start();
  EXPECT_EQ(-GetParam().error, GetParam().commit(hca));
  EXPECT_EQ(GetParam().rule, hca.LastRule());
}

// What only some kernels say: these do not.
TEST(VmwPvrdmaKernels, TakeWhatLaterOnesRefuse) {
  TestVmwPvrdma hca("debian-5.10.223");
  hca.Start();
  EXPECT_GT(hca.CreateCq(15, nullptr, Longer(hca.Cq()), 8), 0) << "longer than it reads";
}

// ib_copy_from_udata takes the whole structure, whatever was sent (up to 6.18).
TEST(VmwPvrdmaKernels, ReadOnBehindAShortRequest) {
  TestVmwPvrdma hca("debian-6.12.117");
  hca.Start();
  EXPECT_LT(hca.CreateCq(15, nullptr, Cut(hca.Cq(), 8), 8), 0);
  EXPECT_NE("", hca.LastUnmodelled());
}

}  // namespace
}  // namespace vabi::vmw_pvrdma
