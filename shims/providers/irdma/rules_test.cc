// SPDX-License-Identifier: BSD-2-Clause
// One offence for each rule of irdma: the errno of drivers/infiniband/hw/irdma in the kernel named
// (file and function stand in abi.def), and which rule answered.
#include "shims/providers/irdma/test_irdma.h"
#include "shims/providers/test_offence.h"

namespace vabi::irdma {
namespace {

constexpr char kNewest[] = "debian-7.3.4";
constexpr uint64_t kHuge = 0x200000000001ULL;  // above IRDMA_MAX_MR_SIZE

using T = TestIrdma;

#define MODIFY(name) VABI_F(ib_uverbs_modify_qp, name)
constexpr uint32_t kInit = 0x1 | 0x8 | 0x10 | 0x20;

// An ioctl, whose private parts can be anywhere.
Request CqMethod(T& t, const Bytes& in, bool bad_in, bool bad_out) {
  const auto id = [&](ConstId constant) { return t.world().Flag(constant); };
  Request call(static_cast<uint16_t>(id(VABI_C(UVERBS_OBJECT_CQ))),
               static_cast<uint16_t>(id(VABI_C(UVERBS_METHOD_CQ_CREATE))),
               t.image().device[0].driver_id);
  static uint32_t cqe;
  static Bytes request, reply(8);
  request = in;
  call.AddHandle(id(VABI_C(UVERBS_ATTR_CREATE_CQ_HANDLE)));
  call.Add(id(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE)), 4, 15);
  call.Add(id(VABI_C(UVERBS_ATTR_CREATE_CQ_USER_HANDLE)), 8, 0);
  call.Add(id(VABI_C(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR)), 4, 0);
  call.Add(id(VABI_C(UVERBS_ATTR_CREATE_CQ_RESP_CQE)), 4, reinterpret_cast<uintptr_t>(&cqe));
  if (bad_in) {
    call.Add(id(VABI_C(UVERBS_ATTR_UHW_IN)), 16, 4096);
  } else {
    call.AddIn(id(VABI_C(UVERBS_ATTR_UHW_IN)), request);
  }
  if (bad_out) {
    call.Add(id(VABI_C(UVERBS_ATTR_UHW_OUT)), 8, 4096);
  } else {
    call.AddOut(id(VABI_C(UVERBS_ATTR_UHW_OUT)), reply);
  }
  return call;
}
// DEVICE.INVOKE_WRITE of a legacy command with private parts at addresses of the caller's choice.
long Invoke(T& t, uint32_t command, Bytes core, StructId reply_id, uint64_t in, size_t in_size,
            uint64_t out = 0, size_t out_size = 0) {
  const auto id = [&](ConstId constant) { return t.world().Flag(constant); };
  Request call(static_cast<uint16_t>(id(VABI_C(UVERBS_OBJECT_DEVICE))),
               static_cast<uint16_t>(id(VABI_C(UVERBS_METHOD_INVOKE_WRITE))),
               t.image().device[0].driver_id);
  static Bytes request, reply;
  request = std::move(core);
  reply = t.Zero(reply_id);
  call.AddConst(id(VABI_C(UVERBS_ATTR_WRITE_CMD)), command);
  call.AddIn(id(VABI_C(UVERBS_ATTR_CORE_IN)), request);
  if (!reply.empty()) call.AddOut(id(VABI_C(UVERBS_ATTR_CORE_OUT)), reply);
  if (in_size != 0) call.Add(id(VABI_C(UVERBS_ATTR_UHW_IN)), in_size, in);
  if (out_size != 0) call.Add(id(VABI_C(UVERBS_ATTR_UHW_OUT)), out_size, out);
  return SendIoctl(t.file(), call);
}
Bytes MrCore(T& t) {
  Bytes core = t.Zero(VABI_S(ib_uverbs_reg_mr));
  const Body body = t.In(core);
  body.Set(VABI_F(ib_uverbs_reg_mr, start), t.Buffer());
  body.Set(VABI_F(ib_uverbs_reg_mr, hca_va), t.Buffer());
  body.Set(VABI_F(ib_uverbs_reg_mr, length), 4096);
  body.Set(VABI_F(ib_uverbs_reg_mr, pd_handle), t.pd);
  body.Set(VABI_F(ib_uverbs_reg_mr, access_flags), 1);
  return core;
}
long Rereg(T& t, uint32_t mr, uint32_t flags, uint64_t length, uint32_t access,
           const Bytes& driver = {}) {
  Bytes request = t.Zero(VABI_S(ib_uverbs_rereg_mr));
  const Body body = t.In(request);
  body.Set(VABI_F(ib_uverbs_rereg_mr, mr_handle), mr);
  body.Set(VABI_F(ib_uverbs_rereg_mr, flags), flags);
  body.Set(VABI_F(ib_uverbs_rereg_mr, start), t.Buffer());
  body.Set(VABI_F(ib_uverbs_rereg_mr, hca_va), t.Buffer());
  body.Set(VABI_F(ib_uverbs_rereg_mr, length), length);
  body.Set(VABI_F(ib_uverbs_rereg_mr, pd_handle), t.pd);
  body.Set(VABI_F(ib_uverbs_rereg_mr, access_flags), access);
  return t.Command(T::kReregMr, request, VABI_S(ib_uverbs_rereg_mr_resp), driver);
}
uint32_t Region(T& t, uint32_t access) {
  T::MrMade mr;
  EXPECT_GT(t.RegMr(t.pd, {.access = access}, &mr, MrBytes(t)), 0) << t.LastRule();
  return mr.handle;
}
Bytes ModifyRequest(T& t, uint32_t qp, uint32_t mask) {
  Bytes request = t.Zero(VABI_S(ib_uverbs_ex_modify_qp));
  const Body base = t.In(request).Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
  base.Set(MODIFY(qp_handle), qp);
  base.Set(MODIFY(attr_mask), mask);
  base.Set(MODIFY(qp_state), 1);
  base.Set(MODIFY(port_num), 1);
  return request;
}
long ModifyEx(T& t, uint32_t mask, const Bytes& driver, size_t room) {
  const uint32_t qp = t.MakeQp();
  return t.CommandEx(26, ModifyRequest(t, qp, mask), VABI_S(ib_uverbs_ex_modify_qp_resp), driver,
                     room);
}
long CreateQp(T& t, const std::function<void(T::QpWish&)>& change, const Bytes& request,
              size_t room = 24, uint64_t comp_mask = 0) {
  (void)comp_mask;
  T::QpWish wish = t.Wish();
  if (change) change(wish);
  t.RegisterQp();
  return t.CreateQp(wish, nullptr, request, room);
}

// GET_CONTEXT with a request that cannot be read.
long BadContext(T& t) { return t.OpenWithLostRequest(16, kRoom); }

// Offences before a context is there.
const Offence<T> kContextOffences[] = {
    {kNewest, "irdma.ucontext.reply", EINVAL, [](T& t) { return t.Open(ContextBytes(t), 8); }},
    {"debian-6.1.192", "irdma.ucontext.short", EINVAL,
     [](T& t) { return t.Open(Cut(ContextBytes(t), 4), kRoom); }},
    {kNewest, "irdma.ucontext.short", EINVAL,
     [](T& t) { return t.Open(Cut(ContextBytes(t), 4), kRoom); }},
    {"debian-7.2.13", "irdma.ucontext.tail", EOPNOTSUPP,
     [](T& t) { return t.Open(Longer(ContextBytes(t)), kRoom); }},
    {kNewest, "irdma.ucontext.comp_mask", EOPNOTSUPP,
     [](T& t) { return t.Open(ContextBytes(t, 0x10), kRoom); }},
    {"linux-5.14", "irdma.ucontext.version", EINVAL,
     [](T& t) { return t.Open(ContextBytes(t, 0, 3), kRoom); }},
    {kNewest, "irdma.ucontext.version", EINVAL,
     [](T& t) { return t.Open(ContextBytes(t, 0, 6), kRoom); }},
    {"linux-5.14", "irdma.ucontext.legacy", EOPNOTSUPP,
     [](T& t) { return t.Open(ContextBytes(t), 24); }},
    {kNewest, "irdma.ucontext.legacy", EOPNOTSUPP,
     [](T& t) { return t.Open(ContextBytes(t), 16); }},
    {kNewest, "irdma.ucontext.fault", EFAULT, BadContext},
    {"debian-6.12.117", "irdma.ucontext.fault", EINVAL, BadContext},
};

const Offence<T> kOffences[] = {
    {kNewest, "irdma.reply.fault", EFAULT,
     [](T& t) {
       return Invoke(t, 3, t.Zero(VABI_S(ib_uverbs_alloc_pd)), VABI_S(ib_uverbs_alloc_pd_resp), 0,
                     0, 4096, 8);
     }},
    {kNewest, "mmap.private", EINVAL, [](T& t) { return t.Map(0, 4096, PROT_READ, MAP_PRIVATE); }},
    {kNewest, "irdma.mmap.offset", EINVAL, [](T& t) { return t.Map(5 * 4096, 4096); }},
    {"linux-5.14", "irdma.mmap.offset", EINVAL, [](T& t) { return t.Map(0, 8192); }},
    {kNewest, "irdma.input", EOPNOTSUPP,
     [](T& t) {
       uint32_t pd = 0;
       return t.AllocPd(&pd, kOne, 8);
     }},
    {kNewest, "irdma.input", EOPNOTSUPP, [](T& t) { return t.QueryDevice(kOne, 0); }},
    {"debian-7.2.13", "irdma.input", EOPNOTSUPP, [](T& t) { return t.QueryDevice(kOne, 0); }},
    {kNewest, "irdma.input", EOPNOTSUPP,
     [](T& t) { return Rereg(t, Region(t, 1), 4, 4096, 0, kOne); }},
    {kNewest, "irdma.input", EOPNOTSUPP, [](T& t) { return t.CreateAh(t.pd, nullptr, kOne, 8); }},
    {kNewest, "irdma.input.fault", EFAULT,
     [](T& t) {
       return Invoke(t, 3, t.Zero(VABI_S(ib_uverbs_alloc_pd)), VABI_S(ib_uverbs_alloc_pd_resp),
                     4096, 16);
     }},
    {"debian-6.12.117", "irdma.query_device.any", EINVAL,
     [](T& t) { return t.QueryDevice({}, 8); }},
    {kNewest, "irdma.alloc_pd.reply", EINVAL,
     [](T& t) {
       uint32_t pd = 0;
       return t.AllocPd(&pd, {}, 4);
     }},
    {kNewest, "irdma.reg_mr.length", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {.length = kHuge}, nullptr, MrBytes(t)); }},
    {"debian-6.12.117", "irdma.reg_mr.length", EINVAL,
     [](T& t) { return Rereg(t, Region(t, 1), 4, kHuge, 0); }},
    {kNewest, "irdma.reg_mr.short", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {}, nullptr, Cut(MrBytes(t), 4)); }},
    {"debian-6.1.192", "irdma.reg_mr.short", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {}, nullptr, Cut(MrBytes(t), 4)); }},
    {kNewest, "irdma.reg_mr.tail", EOPNOTSUPP,
     [](T& t) { return t.RegMr(t.pd, {}, nullptr, Longer(MrBytes(t))); }},
    {kNewest, "irdma.reg_mr.fault", EFAULT,
     [](T& t) { return Invoke(t, 9, MrCore(t), VABI_S(ib_uverbs_reg_mr_resp), 4096, 16); }},
    {kNewest, "irdma.reg_mr.type", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {}, nullptr, MrBytes(t, {.type = 4})); }},
    {"debian-6.12.117", "irdma.reg_mr.type", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {.length = 8192}, nullptr, MrBytes(t, {.type = 3})); }},
    {kNewest, "irdma.reg_mr.qp_pages", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {}, nullptr, MrBytes(t, {.type = 1, .sq = 1})); }},
    {kNewest, "irdma.reg_mr.cq_pages", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {}, nullptr, MrBytes(t, {.type = 2, .cq = 2})); }},
    {kNewest, "irdma.reg_mr.srq_pages", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {}, nullptr, MrBytes(t, {.type = 3, .rq = 1})); }},
    {kNewest, "irdma.memory.range", EINVAL,
     [](T& t) {
       return t.RegMr(t.pd, {.start = ~uint64_t{4095}, .length = 8192}, nullptr, MrBytes(t));
     }},
    {kNewest, "irdma.memory.nothing", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {.length = 0}, nullptr, MrBytes(t)); }},
    {kNewest, "irdma.memory.fault", EFAULT,
     [](T& t) { return t.RegMr(t.pd, {.start = 4096}, nullptr, MrBytes(t)); }},
    {kNewest, "irdma.rereg_mr.type", EINVAL,
     [](T& t) {
       T::MrMade mr;
       t.RegisterQp(&mr);
       return Rereg(t, mr.handle, 4, 4096, 1);
     }},
    {kNewest, "irdma.rereg_mr.pinned_readable", EACCES,
     [](T& t) { return Rereg(t, Region(t, 0), 4, 4096, 1); }},
    {kNewest, "irdma.dereg_mr.ring", EBUSY,
     [](T& t) {
       T::MrMade mr;
       t.RegisterCq(&mr);
       EXPECT_GT(t.CreateCq(15, nullptr, CqBytes(t), 8), 0) << t.LastRule();
       return t.DeregMr(mr.handle);
     }},
    {kNewest, "irdma.create_cq.flags", EOPNOTSUPP,
     [](T& t) { return t.CreateCqEx(15, 1, CqBytes(t), 8); }},
    {"debian-6.12.117", "irdma.create_cq.flags", EOPNOTSUPP,
     [](T& t) { return t.CreateCqEx(15, 2, CqBytes(t), 8); }},
    {kNewest, "irdma.create_cq.reply", EINVAL,
     [](T& t) { return t.CreateCq(15, nullptr, CqBytes(t), 4); }},
    {kNewest, "irdma.create_cq.short", EINVAL,
     [](T& t) { return t.CreateCq(15, nullptr, Cut(CqBytes(t), 4), 8); }},
    {kNewest, "irdma.create_cq.tail", EOPNOTSUPP,
     [](T& t) { return t.CreateCq(15, nullptr, Longer(CqBytes(t)), 8); }},
    {kNewest, "irdma.create_cq.fault", EFAULT,
     [](T& t) {
       Request call = CqMethod(t, {}, true, false);
       return SendIoctl(t.file(), call);
     }},
    {kNewest, "irdma.create_cq.buffer", EPROTO,
     [](T& t) { return t.CreateCq(15, nullptr, CqBytes(t), 8); }},
    {kNewest, "irdma.create_cq.shadow", EPROTO,
     [](T& t) {
       EXPECT_GT(t.Register(CqAt(t), 4096, {.type = 2, .cq = 1}), 0);
       return t.CreateCq(15, nullptr, CqBytes(t), 8);
     }},
    {kNewest, "irdma.create_cq.size", EPROTO,
     [](T& t) {
       t.RegisterCq();
       return t.CreateCq(1 << 20, nullptr, CqBytes(t), 8);
     }},
    {kNewest, "irdma.create_cq.reply.fault", EFAULT,
     [](T& t) {
       t.RegisterCq();
       Request call = CqMethod(t, CqBytes(t), false, true);
       return SendIoctl(t.file(), call);
     }},
    {"debian-6.12.117", "irdma.create_cq.reply.fault", EPROTO,
     [](T& t) {
       t.RegisterCq();
       Request call = CqMethod(t, CqBytes(t), false, true);
       return SendIoctl(t.file(), call);
     }},
    {kNewest, "irdma.resize_cq.short", EINVAL,
     [](T& t) { return t.ResizeCq(t.MakeCq(), 64, Cut(Bytes(8), 4)); }},
    {kNewest, "irdma.resize_cq.tail", EOPNOTSUPP,
     [](T& t) { return t.ResizeCq(t.MakeCq(), 64, Longer(Bytes(8))); }},
    {kNewest, "irdma.resize_cq.fault", EFAULT,
     [](T& t) {
       Bytes core = t.Zero(VABI_S(ib_uverbs_resize_cq));
       t.In(core).Set(VABI_F(ib_uverbs_resize_cq, cq_handle), t.MakeCq());
       t.In(core).Set(VABI_F(ib_uverbs_resize_cq, cqe), 64);
       return Invoke(t, 19, core, VABI_S(ib_uverbs_resize_cq_resp), 4096, 16);
     }},
    {kNewest, "irdma.resize_cq.entries", EINVAL,
     [](T& t) { return t.ResizeCq(t.MakeCq(), 1 << 20, Bytes(8)); }},
    {kNewest, "irdma.resize_cq.buffer", ENOMEM,
     [](T& t) { return t.ResizeCq(t.MakeCq(), 64, Bytes(8)); }},
    {kNewest, "irdma.create_qp.flags", EOPNOTSUPP,
     [](T& t) { return t.CreateQpEx(t.Wish(), 1 << 1, QpBytes(t), 24); }},
    {kNewest, "irdma.create_qp.sizes", EINVAL,
     [](T& t) {
       return CreateQp(
           t, [](T::QpWish& w) { w.send_sge = 14; }, QpBytes(t));
     }},
    {"linux-5.14", "irdma.create_qp.sizes", EINVAL,
     [](T& t) {
       return CreateQp(
           t, [](T::QpWish& w) { w.inline_data = 102; }, QpBytes(t));
     }},
    {kNewest, "irdma.create_qp.depths", EINVAL,
     [](T& t) {
       return CreateQp(
           t, [](T::QpWish& w) { w.send_wr = 32769; }, QpBytes(t));
     }},
    {kNewest, "irdma.create_qp.type", EOPNOTSUPP,
     [](T& t) {
       return CreateQp(
           t, [](T::QpWish& w) { w.type = T::kUc; }, QpBytes(t));
     }},
    {kNewest, "irdma.create_qp.reply", EINVAL,
     [](T& t) { return CreateQp(t, nullptr, QpBytes(t), 16); }},
    {kNewest, "irdma.create_qp.short", EINVAL,
     [](T& t) { return CreateQp(t, nullptr, Cut(QpBytes(t), 8)); }},
    {kNewest, "irdma.create_qp.tail", EOPNOTSUPP,
     [](T& t) { return CreateQp(t, nullptr, Longer(QpBytes(t))); }},
    {kNewest, "irdma.create_qp.fault", EFAULT,
     [](T& t) {
       Bytes core = t.Zero(VABI_S(ib_uverbs_create_qp));
       const Body body = t.In(core);
       const uint32_t cq = t.MakeCq();
       body.Set(VABI_F(ib_uverbs_create_qp, pd_handle), t.pd);
       body.Set(VABI_F(ib_uverbs_create_qp, send_cq_handle), cq);
       body.Set(VABI_F(ib_uverbs_create_qp, recv_cq_handle), cq);
       body.Set(VABI_F(ib_uverbs_create_qp, qp_type), T::kRc);
       static uint8_t reply[24];
       return Invoke(t, 24, core, VABI_S(ib_uverbs_create_qp_resp), 4096, 16,
                     reinterpret_cast<uintptr_t>(reply), sizeof(reply));
     }},
    {kNewest, "irdma.create_qp.buffer", ENODATA,
     [](T& t) { return t.CreateQp(t.Wish(), nullptr, QpBytes(t), 24); }},
    {kNewest, "irdma.modify_qp.reply", EINVAL, [](T& t) { return ModifyEx(t, kInit, {}, 16); }},
    {"debian-6.1.192", "irdma.modify_qp.reply", EINVAL,
     [](T& t) { return ModifyEx(t, kInit, {}, 16); }},
    {kNewest, "irdma.modify_qp.short", EINVAL,
     [](T& t) {
       Bytes core = ModifyRequest(t, t.MakeQp(), kInit);
       return Invoke(t, 0x80000000 | 26, core, VABI_S(ib_uverbs_ex_modify_qp_resp), 0, 4);
     }},
    {kNewest, "irdma.modify_qp.tail", EOPNOTSUPP,
     [](T& t) { return ModifyEx(t, kInit, Longer(Bytes(8)), 0); }},
    {kNewest, "irdma.modify_qp.fault", EFAULT,
     [](T& t) {
       Bytes core = ModifyRequest(t, t.MakeQp(), kInit);
       return Invoke(t, 0x80000000 | 26, core, VABI_S(ib_uverbs_ex_modify_qp_resp), 4096, 16);
     }},
    {kNewest, "irdma.modify_qp.mask", EOPNOTSUPP,
     [](T& t) { return ModifyEx(t, kInit | 1 << 25, {}, 0); }},
    {kNewest, "irdma.modify_qp.pkey", EINVAL,
     [](T& t) {
       return t.ModifyQp(t.MakeQp(), kInit,
                         {{MODIFY(qp_state), 1}, {MODIFY(port_num), 1}, {MODIFY(pkey_index), 1}});
     }},
    {kNewest, "irdma.modify_qp.rd_atomic", EINVAL,
     [](T& t) {
       const uint32_t qp = t.MakeQp();
       EXPECT_GT(t.ToInit(qp), 0) << t.LastRule();
       return t.ModifyQp(
           qp, 0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000,
           {{MODIFY(qp_state), 2}, {MODIFY(path_mtu), 3}, {MODIFY(max_dest_rd_atomic), 128}});
     }},
    {kNewest, "irdma.modify_qp.state", EINVAL,
     [](T& t) {
       const uint32_t qp = t.MakeQp();
       EXPECT_GT(t.ToInit(qp), 0) << t.LastRule();
       EXPECT_GT(t.ToState(qp, 6), 0) << t.LastRule();
       EXPECT_GT(t.ToState(qp, 0), 0) << t.LastRule();
       return t.ToInit(qp);
     }},
    {kNewest, "irdma.create_ah.reply", EINVAL,
     [](T& t) { return t.CreateAh(t.pd, nullptr, {}, 4); }},
};

class Rule : public testing::TestWithParam<Offence<T>> {};
INSTANTIATE_TEST_SUITE_P(Irdma, Rule, testing::ValuesIn(kOffences), [](const auto& info) {
  return CaseName(info.param) + "_" + std::to_string(info.index);
});
TEST_P(Rule, Answers) {
  TestIrdma hca(GetParam().kernel);
  hca.Start();
  EXPECT_EQ(-GetParam().error, GetParam().commit(hca)) << hca.LastUnmodelled();
  EXPECT_EQ(GetParam().rule, hca.LastRule());
}

class ContextRule : public testing::TestWithParam<Offence<T>> {};
INSTANTIATE_TEST_SUITE_P(Irdma, ContextRule, testing::ValuesIn(kContextOffences),
                         [](const auto& info) {
                           return CaseName(info.param) + "_" + std::to_string(info.index);
                         });
TEST_P(ContextRule, Answers) {
  TestIrdma hca(GetParam().kernel);
  EXPECT_EQ(-GetParam().error, GetParam().commit(hca)) << hca.LastUnmodelled();
  EXPECT_EQ(GetParam().rule, hca.LastRule());
}

TEST(IrdmaRawRule, MoreQuantaThanTheNicHas) {
  TestIrdma hca("debian-7.3.4");
  hca.Start(1);
  TestHca::QpWish wish = hca.Wish();
  wish.send_wr = 32768;
  hca.RegisterQp();
  EXPECT_EQ(-EINVAL, hca.CreateQp(wish, nullptr, QpBytes(hca), 24));
  EXPECT_EQ("irdma.create_qp.raw_depth", hca.LastRule());
}

}  // namespace
}  // namespace vabi::irdma
