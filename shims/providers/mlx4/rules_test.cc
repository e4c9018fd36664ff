// SPDX-License-Identifier: BSD-2-Clause
// One offence for each rule of mlx4: the errno of drivers/infiniband/hw/mlx4 in the kernel named
// (file and function stand in abi.def), and which rule answered.
#include "shims/providers/mlx4/test_mlx4.h"
#include "shims/providers/test_offence.h"

namespace vabi::mlx4 {
namespace {

constexpr char kNewest[] = "debian-7.3.4";

using T = TestMlx4;
using MlxOffence = Offence<T>;

long Cq(T& t, const Bytes& request, uint32_t cqe = 15, size_t room = 8) {
  return t.CreateCq(cqe, nullptr, request, room);
}
long Qp(T& t, const Bytes& request, const std::function<void(T::QpWish&)>& change = nullptr) {
  T::QpWish wish = t.Wish();
  if (change) change(wish);
  return t.CreateQp(wish, nullptr, request);
}
long Modify(T& t, uint32_t qp, uint32_t mask, FieldId field, uint64_t value, uint64_t state = 1) {
  return t.ModifyQp(qp, mask,
                    {{VABI_F(ib_uverbs_modify_qp, qp_state), state},
                     {VABI_F(ib_uverbs_modify_qp, port_num), 1},
                     {VABI_F(ib_uverbs_modify_qp, path_mtu), 3},
                     {field, value}});
}
#define MODIFY(name) VABI_F(ib_uverbs_modify_qp, name)
constexpr uint32_t kInit = 0x1 | 0x8 | 0x10 | 0x20;
constexpr uint32_t kRtr = 0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000;
constexpr uint32_t kRts = 0x1 | 0x10000 | 0x2000 | 0x200 | 0x400 | 0x800;

// Memory that can be read, and not written to.
uint64_t ReadOnly(T& t) {
  static uint8_t* const page =
      static_cast<uint8_t*>(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  (void)t;
  return reinterpret_cast<uintptr_t>(page);
}
T::MrMade ReadableRegion(T& t) {
  T::MrMade mr;
  EXPECT_GT(t.RegMr(t.pd, {.start = ReadOnly(t), .access = 0}, &mr), 0) << t.LastRule();
  return mr;
}
long QueryDevice(T& t, Bytes request) { return t.QueryDevice(request, 8); }
long CreateXsrq(T& t, uint32_t type) {
  // enum ib_srq_type: 2 is tag matching
  Bytes request = t.Zero(VABI_S(ib_uverbs_create_xsrq));
  const Body body = t.In(request);
  body.Set(VABI_F(ib_uverbs_create_xsrq, pd_handle), t.pd);
  body.Set(VABI_F(ib_uverbs_create_xsrq, max_wr), 15);
  body.Set(VABI_F(ib_uverbs_create_xsrq, max_sge), 1);
  body.Set(VABI_F(ib_uverbs_create_xsrq, srq_type), type);
  body.Set(VABI_F(ib_uverbs_create_xsrq, cq_handle), t.MakeCq());
  return t.Command(39, request, VABI_S(ib_uverbs_create_srq_resp), t.Srq(), 8);
}

// CQ.CREATE: an ioctl, whose private parts can be anywhere.
Request CqMethod(T& t) {
  const auto id = [&](ConstId constant) { return t.world().Flag(constant); };
  Request call(static_cast<uint16_t>(id(VABI_C(UVERBS_OBJECT_CQ))),
               static_cast<uint16_t>(id(VABI_C(UVERBS_METHOD_CQ_CREATE))),
               t.image().device[0].driver_id);
  static uint32_t cqe;
  call.AddHandle(id(VABI_C(UVERBS_ATTR_CREATE_CQ_HANDLE)));
  call.Add(id(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE)), 4, 15);
  call.Add(id(VABI_C(UVERBS_ATTR_CREATE_CQ_USER_HANDLE)), 8, 0);
  call.Add(id(VABI_C(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR)), 4, 0);
  call.Add(id(VABI_C(UVERBS_ATTR_CREATE_CQ_RESP_CQE)), 4, reinterpret_cast<uintptr_t>(&cqe));
  return call;
}

const MlxOffence kOffences[] = {
    {kNewest, "mlx4.request.short", EINVAL, [](T& t) { return Cq(t, Cut(t.Cq(), 12)); }},
    {kNewest, "mlx4.request.tail", EOPNOTSUPP, [](T& t) { return Cq(t, Longer(t.Cq())); }},
    {"debian-7.2.13", "mlx4.request.short", EINVAL,
     [](T& t) { return t.CreateSrq(t.pd, 15, 1, 0, nullptr, Cut(t.Srq(), 8), 8); }},
    {kNewest, "mlx4.request.short", EINVAL, [](T& t) { return Qp(t, Cut(t.Qp(), 16)); }},
    {kNewest, "mlx4.request.fault", EFAULT,
     [](T& t) {
       Request call = CqMethod(t);
       call.Add(t.world().Flag(VABI_C(UVERBS_ATTR_UHW_IN)), 16, 4096);
       return SendIoctl(t.file(), call);
     }},
    {kNewest, "mlx4.reply.fault", EFAULT,
     [](T& t) {
       Request call = CqMethod(t);
       const Bytes request = t.Cq();
       call.AddIn(t.world().Flag(VABI_C(UVERBS_ATTR_UHW_IN)), request);
       call.Add(t.world().Flag(VABI_C(UVERBS_ATTR_UHW_OUT)), 8, 4096);
       return SendIoctl(t.file(), call);
     }},
    {kNewest, "mlx4.query_device.short", EINVAL,
     [](T& t) {
       Request call(static_cast<uint16_t>(t.world().Flag(VABI_C(UVERBS_OBJECT_DEVICE))),
                    static_cast<uint16_t>(t.world().Flag(VABI_C(UVERBS_METHOD_INVOKE_WRITE))),
                    t.image().device[0].driver_id);
       const auto id = [&](ConstId constant) { return t.world().Flag(constant); };
       static Bytes core, reply;
       core = t.Zero(VABI_S(ib_uverbs_ex_query_device));
       reply = t.Zero(VABI_S(ib_uverbs_ex_query_device_resp));
       call.AddConst(id(VABI_C(UVERBS_ATTR_WRITE_CMD)), 0x80000001);
       call.AddIn(id(VABI_C(UVERBS_ATTR_CORE_IN)), core);
       call.AddOut(id(VABI_C(UVERBS_ATTR_CORE_OUT)), reply);
       call.Add(id(VABI_C(UVERBS_ATTR_UHW_IN)), 4, 0);
       return SendIoctl(t.file(), call);
     }},
    {kNewest, "mlx4.query_device.comp_mask", EOPNOTSUPP,
     [](T& t) {
       return QueryDevice(t, {1, 0, 0, 0, 0, 0, 0, 0});
     }},
    {"debian-6.12.117", "mlx4.query_device.comp_mask", EINVAL,
     [](T& t) {
       return QueryDevice(t, {1, 0, 0, 0, 0, 0, 0, 0});
     }},
    {kNewest, "mlx4.query_device.reserved", EINVAL,
     [](T& t) {
       return QueryDevice(t, {0, 0, 0, 0, 1, 0, 0, 0});
     }},
    {kNewest, "mlx4.mmap.length", EINVAL, [](T& t) { return t.Map(0, 8192); }},
    {"linux-4.4", "mlx4.mmap.length", EINVAL, [](T& t) { return t.Map(4096, 8192); }},
    {kNewest, "mmap.private", EINVAL, [](T& t) { return t.Map(0, 4096, PROT_READ, MAP_PRIVATE); }},
    {kNewest, "mlx4.mmap.offset", EINVAL, [](T& t) { return t.Map(2 * 4096, 4096); }},
    {kNewest, "mlx4.memory.range", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {.start = ~uint64_t{4095}, .length = 8192}); }},
    {kNewest, "mlx4.memory.nothing", EINVAL, [](T& t) { return t.RegMr(t.pd, {.length = 0}); }},
    {"linux-4.10", "mlx4.memory.empty", EINVAL,
     [](T& t) { return t.RegMr(t.pd, {.start = t.Buffer() + 1, .length = 0}); }},
    {kNewest, "mlx4.memory.fault", EFAULT, [](T& t) { return t.RegMr(t.pd, {.start = 4096}); }},
    {"linux-4.17", "mlx4.memory.fault", EFAULT,
     [](T& t) { return t.RegMr(t.pd, {.start = ReadOnly(t), .access = 0}); }},
    {kNewest, "mlx4.rereg_mr.pinned_readable", EACCES,
     [](T& t) { return t.ReregMr(ReadableRegion(t), 4, 0, 0, 1); }},
    {"debian-6.12.117", "mlx4.rereg_mr.pinned_readable", EACCES,
     [](T& t) { return t.ReregMr(ReadableRegion(t), 4, 0, 0, 1); }},
    {"debian-6.1.192", "mlx4.rereg_mr.writable", EPERM,
     [](T& t) { return t.ReregMr(ReadableRegion(t), 4, 0, 0, 1); }},
    {kNewest, "mlx4.rereg_mr.writable", EPERM,
     [](T& t) { return t.ReregMr(ReadableRegion(t), 5, t.Buffer(), 4096, 1); }},
    {kNewest, "mlx4.create_cq.entries", EINVAL, [](T& t) { return Cq(t, t.Cq(), 1 << 22); }},
    {kNewest, "mlx4.create_cq.flags", EINVAL, [](T& t) { return t.CreateCqEx(15, 2, t.Cq(), 8); }},
    {kNewest, "mlx4.resize_cq.entries", EINVAL,
     [](T& t) { return t.ResizeCq(t.MakeCq(), 1 << 22, t.Resize()); }},
    {kNewest, "mlx4.create_srq.type", EOPNOTSUPP, [](T& t) { return CreateXsrq(t, 2); }},
    {kNewest, "mlx4.create_srq.depth", EINVAL,
     [](T& t) { return t.CreateSrq(t.pd, 16384, 1, 0, nullptr, t.Srq(), 8); }},
    {kNewest, "mlx4.create_srq.sges", EINVAL,
     [](T& t) { return t.CreateSrq(t.pd, 15, 32, 0, nullptr, t.Srq(), 8); }},
    {kNewest, "mlx4.modify_srq.resize", EINVAL,
     [](T& t) { return t.ModifySrq(t.MakeSrq(), 1, 31, 0); }},
    {kNewest, "mlx4.modify_srq.limit", EINVAL,
     [](T& t) { return t.ModifySrq(t.MakeSrq(), 2, 0, 16); }},
    {kNewest, "mlx4.create_qp.flags", EOPNOTSUPP,
     [](T& t) { return t.CreateQpEx(t.Wish(), 1 << 2, t.Qp()); }},
    {"debian-5.10.223", "mlx4.create_qp.flags", EINVAL,
     [](T& t) { return t.CreateQpEx(t.Wish(), 1 << 2, t.Qp()); }},
    {kNewest, "mlx4.create_qp.type", EOPNOTSUPP,
     [](T& t) { return t.CreateQp(t.Wish(T::kDriver), nullptr, t.Qp()); }},
    {"linux-5.6", "mlx4.create_qp.type", EINVAL,
     [](T& t) { return t.CreateQp(t.Wish(T::kDriver), nullptr, t.Qp()); }},
    {kNewest, "mlx4.create_qp.recv_size", EINVAL,
     [](T& t) { return Qp(t, t.Qp(), [](T::QpWish& wish) { wish.recv_wr = 16352; }); }},
    {"linux-4.10", "mlx4.create_qp.recv_size", EINVAL,
     [](T& t) { return Qp(t, {}, [](T::QpWish& wish) { wish.recv_sge = 33; }); }},
    {kNewest, "mlx4.create_qp.recv_unwanted", EINVAL,
     [](T& t) {
       const uint32_t srq = t.MakeSrq();
       return Qp(t, t.Qp(), [srq](T::QpWish& wish) {
         wish.has_srq = true;
         wish.srq = srq;
       });
     }},
    {kNewest, "mlx4.create_qp.recv_none", EINVAL,
     [](T& t) { return Qp(t, t.Qp(), [](T::QpWish& wish) { wish.recv_wr = 0; }); }},
    {kNewest, "mlx4.create_qp.recv_inline", EINVAL, [](T& t) { return Qp(t, t.Qp(6, 6, 513)); }},
    {kNewest, "mlx4.create_qp.send_count", EINVAL, [](T& t) { return Qp(t, t.Qp(15)); }},
    {kNewest, "mlx4.create_qp.send_count", EINVAL, [](T& t) { return Qp(t, t.Qp(32)); }},
    {kNewest, "mlx4.create_qp.send_stride", EINVAL, [](T& t) { return Qp(t, t.Qp(6, 5)); }},
    {"linux-4.4", "mlx4.create_qp.send_stride", EINVAL, [](T& t) { return Qp(t, t.Qp(6, 11)); }},
    {kNewest, "mlx4.modify_qp.mask", EOPNOTSUPP,
     [](T& t) {
       const uint32_t qp = t.MakeQp();
       Bytes request = t.Zero(VABI_S(ib_uverbs_ex_modify_qp));
       const Body base = t.In(request).Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
       base.Set(MODIFY(qp_handle), qp);
       base.Set(MODIFY(attr_mask), kInit | 1 << 25);  // IB_QP_RATE_LIMIT
       base.Set(MODIFY(qp_state), 1);
       base.Set(MODIFY(port_num), 1);
       return t.CommandEx(26, request, VABI_S(ib_uverbs_ex_modify_qp_resp));
     }},
    {kNewest, "mlx4.modify_qp.raw_link", EINVAL,
     [](T& t) {
       T::QpWish wish = t.Wish(8);
       T::QpMade qp;
       EXPECT_GT(t.CreateQp(wish, &qp, t.Qp()), 0) << t.LastRule();
       return Modify(t, qp.handle, 0x1 | 0x20, MODIFY(qp_state), 1);
     }},
    {kNewest, "mlx4.modify_qp.pkey", EINVAL,
     [](T& t) { return Modify(t, t.MakeQp(), kInit, MODIFY(pkey_index), 128); }},
    {kNewest, "mlx4.modify_qp.rd_atomic", EINVAL,
     [](T& t) {
       const uint32_t qp = t.MakeQp();
       EXPECT_GT(t.ToInit(qp), 0) << t.LastRule();
       EXPECT_GT(t.ToRtr(qp, 1), 0) << t.LastRule();
       return Modify(t, qp, kRts, MODIFY(max_rd_atomic), 129, 3);
     }},
    {kNewest, "mlx4.modify_qp.dest_rd_atomic", EINVAL,
     [](T& t) {
       const uint32_t qp = t.MakeQp();
       EXPECT_GT(t.ToInit(qp), 0) << t.LastRule();
       return Modify(t, qp, kRtr, MODIFY(max_dest_rd_atomic), 17, 2);
     }},
    {kNewest, "mlx4.modify_qp.mtu", EINVAL,
     [](T& t) {
       const uint32_t qp = t.MakeQp();
       EXPECT_GT(t.ToInit(qp), 0) << t.LastRule();
       return Modify(t, qp, kRtr, MODIFY(path_mtu), 6, 2);
     }},
    {kNewest, "mlx4.modify_qp.alt_pkey", EINVAL,
     [](T& t) {
       const uint32_t qp = t.MakeQp();
       EXPECT_GT(t.ToInit(qp), 0) << t.LastRule();
       Bytes request = t.Zero(VABI_S(ib_uverbs_modify_qp));
       const Body body = t.In(request);
       body.Set(MODIFY(qp_handle), qp);
       body.Set(MODIFY(attr_mask), kRtr | 1 << 14);  // IB_QP_ALT_PATH
       body.Set(MODIFY(qp_state), 2);
       body.Set(MODIFY(path_mtu), 3);
       body.Set(MODIFY(alt_port_num), 1);
       body.Set(MODIFY(alt_pkey_index), 128);
       for (const FieldId field : {MODIFY(dest), MODIFY(alt_dest)})
         body.Sub(field).Set(VABI_F(ib_uverbs_qp_dest, port_num), 1);
       return t.Command(T::kModifyQp, request);
     }},
};

class Rule : public testing::TestWithParam<MlxOffence> {};
INSTANTIATE_TEST_SUITE_P(Mlx4, Rule, testing::ValuesIn(kOffences), [](const auto& info) {
  return CaseName(info.param) + "_" + std::to_string(info.index);
});
TEST_P(Rule, Answers) {
  TestMlx4 hca(GetParam().kernel);
  hca.Start();
  EXPECT_EQ(-GetParam().error, GetParam().commit(hca));
  EXPECT_EQ(GetParam().rule, hca.LastRule());
}

// What only some kernels say: these do not.
TEST(Mlx4Kernels, TakeWhatLaterOnesRefuse) {
  TestMlx4 hca("debian-5.10.223");
  hca.Start();
  EXPECT_GT(CreateXsrq(hca, 2), 0) << "srq.c:mlx4_ib_create_srq (5.10): any type";
  EXPECT_GT(hca.CreateCq(15, nullptr, Longer(hca.Cq()), 8), 0) << "longer than it reads";
}
TEST(Mlx4Kernels, PinnedAllForWritingBefore418) {
  TestMlx4 hca("linux-4.16");
  hca.Start();
  TestHca::MrMade mr;
  ASSERT_GT(hca.RegMr(hca.pd, {.access = 0}, &mr), 0);
  EXPECT_GT(hca.ReregMr(mr, 4, 0, 0, 1), 0);
}

// ib_copy_from_udata takes the whole structure, whatever was sent (up to 6.18).
TEST(Mlx4Kernels, ReadOnBehindAShortRequest) {
  TestMlx4 hca("debian-6.12.117");
  hca.Start();
  EXPECT_LT(hca.CreateCq(15, nullptr, Cut(hca.Cq(), 8), 8), 0);
  EXPECT_NE("", hca.LastUnmodelled());
}

}  // namespace
}  // namespace vabi::mlx4
