// SPDX-License-Identifier: BSD-2-Clause
// One offence for each rule of bnxt_re's regions and queues: the errno of hw/bnxt_re in the kernel
// named (file and function stand in abi.def), and which rule answered.
#include "shims/providers/bnxt_re/test_bnxt_re.h"
#include "shims/providers/test_offence.h"

namespace vabi::bnxt_re {
namespace {

constexpr char kNewest[] = "debian-7.3.4";
constexpr char k612[] = "debian-6.12.117";

using T = TestBnxtRe;

long Cq(T& t, const Bytes& request, uint32_t cqe = 15) {
  return t.CreateCq(cqe, nullptr, request, T::kRoom);
}
Bytes CqAt(T& t, uint64_t address) {
  Bytes request = t.Cq();
  t.In(request).Set(VABI_PF(bnxt_re_cq_req, cq_va), address);
  return request;
}
long Srq(T& t, const Bytes& request, uint32_t max_wr = 15) {
  return t.CreateSrq(t.pd, max_wr, 1, 0, nullptr, request, T::kRoom);
}
long Qp(T& t, const Bytes& request, uint8_t type = T::kRc) {
  return t.CreateQp(t.Wish(type), nullptr, request, T::kRoom);
}
Bytes QpWithMask(T& t, uint64_t mask) {
  Bytes request = t.Qp();
  t.In(request).Set(VABI_PF(bnxt_re_qp_req, comp_mask), mask);
  return request;
}
long QpBeyond(T& t, const std::function<void(T::QpWish&)>& change) {
  T::QpWish wish = t.Wish();
  change(wish);
  return t.CreateQp(wish, nullptr, t.Qp(), T::kRoom);
}
long CreateXsrq(T& t) {
  constexpr uint32_t kTagMatching = 2;  // enum ib_srq_type
  Bytes request = t.Zero(VABI_S(ib_uverbs_create_xsrq));
  const Body body = t.In(request);
  body.Set(VABI_F(ib_uverbs_create_xsrq, pd_handle), t.pd);
  body.Set(VABI_F(ib_uverbs_create_xsrq, max_wr), 15);
  body.Set(VABI_F(ib_uverbs_create_xsrq, max_sge), 1);
  body.Set(VABI_F(ib_uverbs_create_xsrq, srq_type), kTagMatching);
  body.Set(VABI_F(ib_uverbs_create_xsrq, cq_handle), t.MakeCq().handle);
  return t.Command(39, request, VABI_S(ib_uverbs_create_srq_resp), t.Srq(), T::kRoom);
}
constexpr uint32_t kInit = 0x1 | 0x8 | 0x10 | 0x20;
constexpr uint32_t kRtr = 0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000;
constexpr uint32_t kRateLimit = 1 << 25;
#define MODIFY(field) VABI_F(ib_uverbs_modify_qp, field)

long ToRtrWith(T& t, FieldId field, uint64_t value) {
  const T::QpMade qp = t.MakeQp();
  EXPECT_GT(t.ToInit(qp.handle), 0) << t.LastRule();
  return t.ModifyQp(qp.handle, kRtr,
                    {{MODIFY(qp_state), 2}, {MODIFY(path_mtu), 3}, {field, value}});
}
long ModifyEx(T& t, uint32_t mask, const Bytes& driver = {}) {
  const uint32_t qp = t.MakeQp().handle;
  Bytes request = t.Zero(VABI_S(ib_uverbs_ex_modify_qp));
  const Body body = t.In(request).Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
  body.Set(MODIFY(qp_handle), qp);
  body.Set(MODIFY(attr_mask), mask);
  body.Set(MODIFY(qp_state), 1);
  body.Set(MODIFY(port_num), 1);
  return t.CommandEx(T::kModifyQp, request, VABI_S(ib_uverbs_ex_modify_qp_resp), driver);
}
// More than the card's largest region, all of one page that is never touched; a 32-bit process has
// a GiB.
uint64_t Huge() {
  constexpr size_t kSize = (size_t{1} << (sizeof(void*) == 8 ? 39 : 30)) + 8192;
  static void* const memory =
      mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return reinterpret_cast<uintptr_t>(memory);
}

const Offence<T> kOffences[] = {
    {kNewest, "bnxt_re.input", EOPNOTSUPP, [](T& t) { return t.RegMr(t.pd, {}, nullptr, kOne); }},
    {kNewest, "bnxt_re.input", EOPNOTSUPP, [](T& t) { return t.CreateAh(t.pd, nullptr, kOne, 8); }},
    {kNewest, "bnxt_re.input", EOPNOTSUPP,
     [](T& t) { return t.ModifySrq(t.MakeSrq().handle, 2, 0, 7, kOne); }},
    {"debian-7.2.13", "bnxt_re.input", EOPNOTSUPP, [](T& t) { return ModifyEx(t, kInit, kOne); }},
    {kNewest, "bnxt_re.input.fault", EFAULT,
     [](T& t) {
       return t.Nowhere(T::Lost::kInput, T::kRegMr, t.MrRequest(t.pd, {}),
                        VABI_S(ib_uverbs_reg_mr_resp));
     }},

    {kNewest, "bnxt_re.request.short", EINVAL, [](T& t) { return Cq(t, Cut(t.Cq(), 12)); }},
    {kNewest, "bnxt_re.request.short", EINVAL, [](T& t) { return Srq(t, Cut(t.Srq(), 8)); }},
    {kNewest, "bnxt_re.request.short", EINVAL, [](T& t) { return Qp(t, Cut(t.Qp(), 16)); }},
    {kNewest, "bnxt_re.request.short", EINVAL,
     [](T& t) { return t.ResizeCq(t.MakeCq().handle, 31, Cut(t.Resize(), 4)); }},
    {kNewest, "bnxt_re.request.tail", EOPNOTSUPP, [](T& t) { return Cq(t, Longer(t.Cq())); }},
    {kNewest, "bnxt_re.request.comp_mask", EOPNOTSUPP,
     [](T& t) { return Qp(t, QpWithMask(t, 2)); }},
    {kNewest, "bnxt_re.request.fault", EFAULT,
     [](T& t) {
       return t.Nowhere(T::Lost::kInput, T::kCreateCq, t.CqRequest(15),
                        VABI_S(ib_uverbs_create_cq_resp));
     }},
    {kNewest, "bnxt_re.reply.fault", EFAULT,
     [](T& t) {
       return t.Nowhere(T::Lost::kOutput, T::kCreateCq, t.CqRequest(15),
                        VABI_S(ib_uverbs_create_cq_resp), t.Cq());
     }},

    {kNewest, "bnxt_re.queue.range", EINVAL, [](T& t) { return Cq(t, CqAt(t, ~uint64_t{511})); }},
    {kNewest, "bnxt_re.queue.fault", EFAULT, [](T& t) { return Cq(t, CqAt(t, 4096)); }},
    {kNewest, "bnxt_re.queue.alignment", EINVAL,
     [](T& t) { return Cq(t, CqAt(t, t.Buffer() + 64)); }},

    {kNewest, "bnxt_re.reg_mr.length", ENOMEM,
     [](T& t) {
       return t.RegMr(t.pd, {.start = Huge(), .length = (uint64_t{1} << 39) + 4096, .access = 0});
     },
     true},
    {"linux-4.16", "bnxt_re.reg_mr.length", ENOMEM,
     [](T& t) { return t.RegMr(t.pd, {.length = (uint64_t{1} << 39) + 4096}); }},
    {kNewest, "bnxt_re.reg_mr.range", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {.start = ~uint64_t{4095}, .length = 8192}); }},
    {"debian-6.1.192", "bnxt_re.reg_mr.range", EFAULT,
     [](T& t) { return t.RegMr(t.pd, {.start = ~uint64_t{4095}, .length = 8192}); }},
    {kNewest, "bnxt_re.reg_mr.nothing", EINVAL, [](T& t) { return t.RegMr(t.pd, {.length = 0}); }},
    {"debian-5.10.223", "bnxt_re.reg_mr.nothing", EFAULT,
     [](T& t) { return t.RegMr(t.pd, {.length = 0}); }},
    {kNewest, "bnxt_re.reg_mr.memlock", ENOMEM, [](T& t) { return t.LimitedMr(t.pd, 1); }},
    {kNewest, "bnxt_re.reg_mr.no_lock", EPERM, [](T& t) { return t.LimitedMr(t.pd, 0); }},
    {"debian-6.1.192", "bnxt_re.reg_mr.memlock", EFAULT, [](T& t) { return t.LimitedMr(t.pd, 1); }},
    {"debian-6.1.192", "bnxt_re.reg_mr.no_lock", EFAULT, [](T& t) { return t.LimitedMr(t.pd, 0); }},
    {kNewest, "bnxt_re.reg_mr.fault", EFAULT, [](T& t) { return t.RegMr(t.pd, {.start = 4096}); }},

    {kNewest, "bnxt_re.create_cq.flags", EOPNOTSUPP,
     [](T& t) { return t.CreateCqEx(15, 1, t.Cq(), T::kRoom); }},
    {kNewest, "bnxt_re.create_cq.entries", EINVAL, [](T& t) { return Cq(t, t.Cq(), 65536); }},
    {"linux-4.16", "bnxt_re.create_cq.entries", EINVAL, [](T& t) { return Cq(t, t.Cq(), 65536); }},
    {kNewest, "bnxt_re.create_cq.entries", EINVAL,
     [](T& t) { return t.ResizeCq(t.MakeCq().handle, 65536, t.Resize()); }},
    {k612, "bnxt_re.create_cq.entries", EINVAL,
     [](T& t) { return t.ResizeCq(t.MakeCq().handle, 0, t.Resize()); }},
    {k612, "bnxt_re.resize_cq.busy", EBUSY,
     [](T& t) {
       const T::CqMade cq = t.MakeCq();
       EXPECT_GT(t.ResizeCq(cq.handle, 31, t.Resize()), 0) << t.LastRule();
       return t.ResizeCq(cq.handle, 63, t.Resize());
     }},

    {kNewest, "bnxt_re.create_srq.size", EINVAL, [](T& t) { return Srq(t, t.Srq(), 65407); }},
    {kNewest, "bnxt_re.create_srq.type", EOPNOTSUPP, CreateXsrq},
    {"linux-4.18", "bnxt_re.create_srq.type", 524, CreateXsrq},  // ENOTSUPP
    {kNewest, "bnxt_re.modify_srq.resize", EINVAL,
     [](T& t) { return t.ModifySrq(t.MakeSrq().handle, 1, 64, 0); }},
    {kNewest, "bnxt_re.modify_srq.mask", EINVAL,
     [](T& t) { return t.ModifySrq(t.MakeSrq().handle, 3, 64, 7); }},
    {"linux-4.16", "bnxt_re.modify_srq.mask", EINVAL,
     [](T& t) { return t.ModifySrq(t.MakeSrq().handle, 3, 64, 7); }},
    {kNewest, "bnxt_re.modify_srq.limit", EINVAL,
     [](T& t) { return t.ModifySrq(t.MakeSrq(20).handle, 2, 0, 33); }},

    {kNewest, "bnxt_re.create_qp.limits", EINVAL,
     [](T& t) { return QpBeyond(t, [](T::QpWish& w) { w.send_wr = 65406; }); }},
    {"linux-4.16", "bnxt_re.create_qp.limits", EINVAL,
     [](T& t) { return QpBeyond(t, [](T::QpWish& w) { w.recv_wr = 65408; }); }},
    {kNewest, "bnxt_re.create_qp.limits", EINVAL,
     [](T& t) { return QpBeyond(t, [](T::QpWish& w) { w.send_sge = 7; }); }},
    {kNewest, "bnxt_re.create_qp.limits", EINVAL,
     [](T& t) { return QpBeyond(t, [](T::QpWish& w) { w.recv_sge = 7; }); }},
    {kNewest, "bnxt_re.create_qp.limits", EINVAL,
     [](T& t) { return QpBeyond(t, [](T::QpWish& w) { w.inline_data = 97; }); }},
    {kNewest, "bnxt_re.create_qp.type", EOPNOTSUPP, [](T& t) { return Qp(t, t.Qp(), T::kUc); }},
    {"linux-5.6", "bnxt_re.create_qp.type", EINVAL, [](T& t) { return Qp(t, t.Qp(), T::kUc); }},
    {kNewest, "bnxt_re.create_qp.fixed", EOPNOTSUPP, [](T& t) { return Qp(t, QpWithMask(t, 1)); }},
    // IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK
    {kNewest, "bnxt_re.create_qp.flags", EOPNOTSUPP,
     [](T& t) { return t.CreateQpEx(t.Wish(), 2, t.Qp(), T::kRoom); }},

    {k612, "bnxt_re.modify_qp.mask", EOPNOTSUPP,
     [](T& t) { return ModifyEx(t, kInit | kRateLimit); }},
    {kNewest, "bnxt_re.modify_qp.transition", EINVAL,
     [](T& t) { return t.ToState(t.MakeQp().handle, 3); }},
    {"linux-4.16", "bnxt_re.modify_qp.transition", EINVAL,
     [](T& t) { return t.ToState(t.MakeQp().handle, 3); }},
    {kNewest, "bnxt_re.modify_qp.rate_transition", EINVAL,
     [](T& t) { return ModifyEx(t, kInit | kRateLimit); }},
    {kNewest, "bnxt_re.modify_qp.rate", EOPNOTSUPP, [](T& t) { return ModifyEx(t, kRateLimit); }},
    {kNewest, "bnxt_re.modify_qp.mtu", EINVAL,
     [](T& t) { return ToRtrWith(t, MODIFY(path_mtu), 4); }},
    {"debian-6.1.192", "bnxt_re.modify_qp.mtu", EINVAL,
     [](T& t) { return ToRtrWith(t, MODIFY(path_mtu), 5); }},
    {kNewest, "bnxt_re.modify_qp.reads", EINVAL,
     [](T& t) { return ToRtrWith(t, MODIFY(max_dest_rd_atomic), 127); }},
};

class QueueRule : public testing::TestWithParam<Offence<T>> {};
INSTANTIATE_TEST_SUITE_P(BnxtRe, QueueRule, testing::ValuesIn(kOffences), [](const auto& info) {
  return CaseName(info.param) + "_" + std::to_string(info.index);
});
TEST_P(QueueRule, Answers) {
  if (!GetParam().Possible()) GTEST_SKIP() << "a 32-bit process has not that memory";
  TestBnxtRe hca(GetParam().kernel);
  hca.Start();
  EXPECT_EQ(-GetParam().error, GetParam().commit(hca)) << hca.LastUnmodelled();
  EXPECT_EQ(GetParam().rule, hca.LastRule());
}

// What only some kernels say: these do not.
TEST(BnxtReKernels, TakeWhatLaterOnesRefuse) {
  {
    TestBnxtRe hca("debian-5.10.223");
    hca.Start();
    EXPECT_GT(Cq(hca, Longer(hca.Cq())), 0) << "longer than it reads";
    EXPECT_GT(Cq(hca, CqAt(hca, hca.Buffer() + 64)), 0) << "no page begins there";
    EXPECT_GT(hca.RegMr(hca.pd, {}, nullptr, kOne), 0) << "private input";
    EXPECT_GT(ToRtrWith(hca, MODIFY(path_mtu), 5), 0) << "more than the network device's";
  }
  TestBnxtRe hca("debian-6.12.117");
  hca.Start();
  EXPECT_GT(Qp(hca, QpWithMask(hca, 0x8001)), 0) << "comp_mask";
}

// ib_copy_from_udata takes the whole structure, whatever was sent (up to 6.18).
TEST(BnxtReKernels, ReadOnBehindAShortRequest) {
  TestBnxtRe hca(k612);
  hca.Start();
  EXPECT_LT(Cq(hca, Cut(hca.Cq(), 8)), 0);
  EXPECT_NE("", hca.LastUnmodelled());
}

// Whether large pages are behind a region decides above 1 GiB (up to 5.11).
TEST(BnxtReKernels, RegionsAboveAGigabyte) {
  for (const auto& [kernel, modelled] : {std::pair{"linux-4.16", false}, {"linux-5.14", true}}) {
    TestBnxtRe hca(kernel);
    hca.Start();
    const long result =
        hca.RegMr(hca.pd, {.start = Huge(), .length = (uint64_t{1} << 30) + 4096, .access = 0});
    EXPECT_EQ(modelled, result > 0) << kernel;
    EXPECT_EQ(modelled, hca.LastUnmodelled().empty()) << kernel;
  }
}

}  // namespace
}  // namespace vabi::bnxt_re
