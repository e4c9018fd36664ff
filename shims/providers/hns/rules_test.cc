// SPDX-License-Identifier: BSD-2-Clause
// One offence for each rule of hns: the errno of drivers/infiniband/hw/hns in the kernel named
// (file and function stand in abi.def), and which rule answered.
#include "shims/providers/hns/test_hns.h"
#include "shims/providers/test_offence.h"

namespace vabi::hns {
namespace {

constexpr char kNewest[] = "debian-7.3.4", k61[] = "debian-6.1.192", k66[] = "linux-6.6";

class Rules : public TestHns {
 public:
  explicit Rules(const char* kernel) : TestHns(kernel) {}

  long CqWith(FieldId field, uint64_t value) {
    Bytes input = CqInput(*this);
    In(input).Set(field, value);
    return CreateCq(16, nullptr, input, 16);
  }
  long QpWith(FieldId field, uint64_t value) {
    Bytes input = QpInput(*this);
    In(input).Set(field, value);
    return CreateQp(Wish(), nullptr, input, 16);
  }
  long QpChanged(std::function<void(QpWish&)> change) {
    QpWish wish = Wish();
    change(wish);
    return CreateQp(wish, nullptr, QpInput(*this), 16);
  }
  long Congestion(uint64_t kind) {
    Bytes input = QpInput(*this);
    In(input).Set(VABI_PF(hns_roce_ib_create_qp, comp_mask), 1);
    In(input).Set(VABI_PF(hns_roce_ib_create_qp, cong_type_flags), kind);
    return CreateQp(Wish(), nullptr, input, 16);
  }
  Bytes Longer(Bytes input) {
    input.resize(input.size() + 8);
    input.back() = 1;
    return input;
  }
  // A queue pair in RTS.
  uint32_t Connected() {
    const uint32_t qp = Qp();
    EXPECT_GT(ToInit(qp), 0) << LastRule();
    EXPECT_GT(ToRtr(qp, 5), 0) << LastRule();
    EXPECT_GT(ToRts(qp), 0) << LastRule();
    return qp;
  }
  long RateLimit() {
    Bytes request = Zero(VABI_S(ib_uverbs_ex_modify_qp));
    const Body base = In(request).Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
    base.Set(VABI_F(ib_uverbs_modify_qp, qp_handle), Connected());
    base.Set(VABI_F(ib_uverbs_modify_qp, attr_mask), 1u << 25);
    return CommandEx(26, request, VABI_S(ib_uverbs_ex_modify_qp_resp));
  }
  // To INIT, or RTR, with one attribute that is not right.
  long Init(uint64_t pkey_index) {
    return ModifyQp(Qp(), 0x1 | 0x8 | 0x10 | 0x20,
                    {{VABI_F(ib_uverbs_modify_qp, qp_state), 1},
                     {VABI_F(ib_uverbs_modify_qp, port_num), 1},
                     {VABI_F(ib_uverbs_modify_qp, pkey_index), pkey_index}});
  }
  long Rtr(uint64_t mtu, uint64_t reads) {
    const uint32_t qp = Qp();
    EXPECT_GT(ToInit(qp), 0) << LastRule();
    return ModifyQp(qp, 0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000,
                    {{VABI_F(ib_uverbs_modify_qp, qp_state), 2},
                     {VABI_F(ib_uverbs_modify_qp, path_mtu), mtu},
                     {VABI_F(ib_uverbs_modify_qp, dest_qp_num), 5},
                     {VABI_F(ib_uverbs_modify_qp, max_dest_rd_atomic), reads},
                     {VABI_F(ib_uverbs_modify_qp, min_rnr_timer), 1}});
  }
  long Rereg(uint32_t pinned, uint32_t access) {
    MrMade mr;
    EXPECT_GT(RegMr(pd, {.access = pinned}, &mr), 0) << LastRule();
    Bytes request = Zero(VABI_S(ib_uverbs_rereg_mr));
    In(request).Set(VABI_F(ib_uverbs_rereg_mr, mr_handle), mr.handle);
    In(request).Set(VABI_F(ib_uverbs_rereg_mr, flags), 4);  // IB_MR_REREG_ACCESS
    In(request).Set(VABI_F(ib_uverbs_rereg_mr, access_flags), access);
    return Command(kReregMr, request, VABI_S(ib_uverbs_rereg_mr_resp));
  }
  // To RTS with an attribute more than is needed; to RTR at that service level.
  long ToRtsWith(uint32_t more) {
    const uint32_t qp = Qp();
    EXPECT_GT(ToInit(qp), 0) << LastRule();
    EXPECT_GT(ToRtr(qp, 5), 0) << LastRule();
    return ModifyQp(qp, 0x1 | 0x10000 | 0x2000 | 0x200 | 0x400 | 0x800 | more,
                    {{VABI_F(ib_uverbs_modify_qp, qp_state), 3}});
  }
  long ToRtrAt(uint8_t level) {
    const uint32_t qp = Qp();
    EXPECT_GT(ToInit(qp), 0) << LastRule();
    Bytes request = Zero(VABI_S(ib_uverbs_modify_qp));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_modify_qp, qp_handle), qp);
    body.Set(VABI_F(ib_uverbs_modify_qp, attr_mask),
             0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000);
    body.Set(VABI_F(ib_uverbs_modify_qp, qp_state), 2);
    body.Set(VABI_F(ib_uverbs_modify_qp, path_mtu), 3);
    const Body dest = body.Sub(VABI_F(ib_uverbs_modify_qp, dest));
    dest.SetBytes(VABI_F(ib_uverbs_qp_dest, dgid), image().device[0].ports[0].gids[0].raw, 16);
    dest.Set(VABI_F(ib_uverbs_qp_dest, is_global), 1);
    dest.Set(VABI_F(ib_uverbs_qp_dest, port_num), 1);
    dest.Set(VABI_F(ib_uverbs_qp_dest, hop_limit), 1);
    dest.Set(VABI_F(ib_uverbs_qp_dest, sl), level);
    return Command(kModifyQp, request);
  }
  // A region of that length, all of which is mapped.
  long LongRegion(uint64_t length) {
    void* const memory = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(MAP_FAILED, memory);
    const long result = RegMr(pd, {.start = reinterpret_cast<uintptr_t>(memory), .length = length});
    munmap(memory, length);
    return result;
  }
  long Ah() {
    uint32_t ah;
    return CreateAh(pd, &ah, {}, 8);
  }
  long NewSrq(uint32_t max_wr, uint32_t max_sge, const Bytes& input) {
    return CreateSrq(pd, max_wr, max_sge, 0, nullptr, input, 8);
  }
};

using Offence = vabi::Offence<Rules>;

using T = Rules;
#define QP(name) VABI_PF(hns_roce_ib_create_qp, name)
// clang-format off
const std::vector<Offence>& Offences() {
  static const auto* const offences = new std::vector<Offence>{
    {k61, "hns.input.fault", EFAULT, [](T& t) { return t.Nowhere(T::Lost::kInput, T::kCreateCq, t.CqRequest(16), VABI_S(ib_uverbs_create_cq_resp)); }},
    {k61, "hns.reply.fault", EFAULT, [](T& t) { return t.Nowhere(T::Lost::kOutput, T::kAllocPd, t.Zero(VABI_S(ib_uverbs_alloc_pd)), VABI_S(ib_uverbs_alloc_pd_resp)); }},
    {kNewest, "hns.query_device.input", EOPNOTSUPP, [](T& t) { return t.QueryDevice(Bytes(8, 1)); }},
    {kNewest, "hns.ucontext.input.short", EINVAL, [](T& t) { t.Reinstall(); return t.Open(Bytes(4), T::kRoom); }},
    {kNewest, "hns.ucontext.input.tail", EOPNOTSUPP, [](T& t) { t.Reinstall(); return t.Open(t.Longer(Bytes(8)), T::kRoom); }},
    {kNewest, "mmap.private", EINVAL, [](T& t) { return t.Map(0, 4096, PROT_READ, MAP_PRIVATE); }},
    {k61, "hns.mmap.entry", EINVAL, [](T& t) { return t.Map(4096, 4096); }},
    {k61, "hns.buffer", ENOMEM, [](T& t) { return t.RegMr(t.pd, {.length = 1 << 24}); }},
    {k61, "hns.buffer", ENOMEM, [](T& t) { return t.LimitedMr(t.pd, 1); }},
    {k61, "hns.buffer", ENOMEM, [](T& t) { return t.LimitedMr(t.pd, 0); }},
    {"linux-5.7", "umem.memlock", ENOMEM, [](T& t) { return t.LimitedMr(t.pd, 1); }},
    {"linux-5.7", "umem.no_lock", EPERM, [](T& t) { return t.LimitedMr(t.pd, 0); }},
    {k61, "hns.doorbell_record.range", EINVAL, [](T& t) { return t.CqWith(VABI_PF(hns_roce_ib_create_cq, db_addr), ~uint64_t{0}); }},
    {k61, "hns.doorbell_record.fault", EFAULT, [](T& t) { return t.CqWith(VABI_PF(hns_roce_ib_create_cq, db_addr), 0); }},
    {kNewest, "hns.rereg_mr.writable", EACCES, [](T& t) { return t.Rereg(0, 1); }},
    {kNewest, "hns.create_cq.flags", EOPNOTSUPP, [](T& t) { return t.CreateCqEx(16, 1, CqInput(t), 16); }},
    {k61, "hns.create_cq.cqe", EINVAL, [](T& t) { return t.CreateCq(0x400001, nullptr, CqInput(t), 16); }},
    {k61, "hns.create_cq.cqe", EINVAL, [](T& t) { return t.CreateCq(0, nullptr, CqInput(t), 16); }},
    {kNewest, "hns.create_cq.input.short", EINVAL, [](T& t) { return t.CreateCq(16, nullptr, Bytes(8), 16); }},
    {kNewest, "hns.create_cq.input.tail", EOPNOTSUPP, [](T& t) { return t.CreateCq(16, nullptr, t.Longer(CqInput(t)), 16); }},
    {k61, "hns.create_cq.cqe_size", EINVAL, [](T& t) { return t.CqWith(VABI_PF(hns_roce_ib_create_cq, cqe_size), 48); }},
    {k61, "hns.create_qp.type", EOPNOTSUPP, [](T& t) { return t.QpChanged([](auto& w) { w.type = T::kUd; }); }},
    {kNewest, "hns.create_qp.create_flags", EOPNOTSUPP, [](T& t) { return t.CreateQpEx(t.Wish(), 1 << 1, QpInput(t), 16); }},
    {k61, "hns.create_qp.receives", EINVAL, [](T& t) { return t.QpChanged([](auto& w) { w.recv_wr = 0x8001; }); }},
    {k61, "hns.create_qp.receives", EINVAL, [](T& t) { return t.QpChanged([](auto& w) { w.recv_sge = 129; }); }},
    {"debian-5.10.223", "hns.create_qp.receives", EINVAL, [](T& t) { return t.QpChanged([](auto& w) { w.recv_sge = 65; }); }},
    {kNewest, "hns.create_qp.input.short", EINVAL, [](T& t) { return t.CreateQp(t.Wish(), nullptr, Bytes(16), 16); }},
    {kNewest, "hns.create_qp.input.tail", EOPNOTSUPP, [](T& t) { return t.CreateQp(t.Wish(), nullptr, t.Longer(QpInput(t)), 16); }},
    {kNewest, "hns.create_qp.comp_mask", EOPNOTSUPP, [](T& t) { return t.QpWith(QP(comp_mask), 2); }},
    {k61, "hns.create_qp.sends", EINVAL, [](T& t) { return t.QpWith(QP(log_sq_bb_count), 16); }},
    {k61, "hns.create_qp.sends", EINVAL, [](T& t) { return t.QpWith(QP(log_sq_bb_count), 32); }},
    {k61, "hns.create_qp.stride", EINVAL, [](T& t) { return t.QpWith(QP(log_sq_stride), 5); }},
    {k61, "hns.create_qp.stride", EINVAL, [](T& t) { return t.QpWith(QP(log_sq_stride), 7); }},
    {k61, "hns.create_qp.send_sge", EINVAL, [](T& t) { return t.QpChanged([](auto& w) { w.send_sge = 65; }); }},
    {kNewest, "hns.create_qp.congestion", EINVAL, [](T& t) { return t.Congestion(4); }},
    {kNewest, "hns.create_qp.congestion.card", EOPNOTSUPP, [](T& t) { return t.Congestion(1); }},
    {k61, "hns.modify_qp.current", EINVAL, [](T& t) { return t.ModifyQp(t.Connected(), 0x3, {{VABI_F(ib_uverbs_modify_qp, qp_state), 3}, {VABI_F(ib_uverbs_modify_qp, cur_qp_state), 2}}); }},
    {k61, "hns.modify_qp.flush", EINVAL, [](T& t) { const uint32_t qp = t.Qp(0); EXPECT_GT(t.ToInit(qp), 0); return t.ToState(qp, 6); }},
    {k61, "hns.modify_qp.transition", EINVAL, [](T& t) { return t.ToState(t.Qp(), 3); }},
    {k61, "hns.modify_qp.pkey_index", EINVAL, [](T& t) { return t.Init(1); }},
    {k61, "hns.modify_qp.rd_atomic", EINVAL, [](T& t) { return t.Rtr(3, 129); }},
    {k61, "hns.modify_qp.mtu", EINVAL, [](T& t) { return t.Rtr(4, 1); }},
    {k61, "hns.modify_qp.mtu", EINVAL, [](T& t) { return t.Rtr(0, 1); }},
    {kNewest, "hns.modify_qp.standard", EOPNOTSUPP, [](T& t) { return t.RateLimit(); }},
    {k61, "hns.modify_qp.alternate", EINVAL, [](T& t) { return t.ToRtsWith(1 << 18); }},
    {"linux-4.16", "hns.modify_qp.alternate", EINVAL, [](T& t) { return t.ToRtsWith(1 << 18); }},
    {k61, "hns.modify_qp.service_level", EINVAL, [](T& t) { return t.ToRtrAt(8); }},
    {"debian-5.10.223", "hns.modify_qp.service_level", EINVAL, [](T& t) { return t.ToRtrAt(8); }},
    {"linux-5.6", "hns.modify_qp.reset", EPERM, [](T& t) { return t.ToState(t.Qp(), 0); }},
    {"linux-5.8", "hns.modify_qp.state", EINVAL, [](T& t) { return t.ToState(t.Connected(), 3); }},
    {"linux-4.19", "hns.modify_qp.flush", EINVAL, [](T& t) { const uint32_t qp = t.Qp(0); EXPECT_GT(t.ToInit(qp), 0); return t.ToState(qp, 6); }},
    {"debian-5.10.223", "hns.modify_qp.current", EINVAL, [](T& t) { return t.ModifyQp(t.Connected(), 0x3, {{VABI_F(ib_uverbs_modify_qp, qp_state), 3}, {VABI_F(ib_uverbs_modify_qp, cur_qp_state), 2}}); }},
    {"linux-4.16", "hns.create_qp.no_receives", EINVAL, [](T& t) { return t.QpChanged([](auto& w) { w.recv_wr = 0; }); }},
    {"linux-5.6", "hns.create_qp.no_receives", EINVAL, [](T& t) { return t.QpChanged([](auto& w) { w.recv_sge = 0; }); }},
    {"linux-5.6", "hns.create_qp.type", EINVAL, [](T& t) { return t.QpChanged([](auto& w) { w.type = T::kUd; }); }},
    {"linux-5.7", "hns.create_qp.type", EOPNOTSUPP, [](T& t) { return t.QpChanged([](auto& w) { w.type = T::kUd; }); }},
    {"linux-5.7", "hns.buffer.range", EINVAL, [](T& t) { return t.RegMr(t.pd, {.length = ~uint64_t{0} - 4096}); }},
    {"linux-5.7", "hns.buffer.pages", EINVAL, [](T& t) { return t.RegMr(t.pd, {.length = 0}); }},
    {"linux-5.7", "hns.buffer.fault", EFAULT, [](T& t) { return t.RegMr(t.pd, {.length = 1 << 24}); }},
    {"linux-5.8", "hns.buffer.empty", EINVAL, [](T& t) { return t.RegMr(t.pd, {.length = 0}); }},
    {"linux-5.0", "hns.reg_mr.pages", EINVAL, [](T& t) { return t.LongRegion((1ull << 30) + 4096); }},
    {k61, "hns.modify_qp.state", EINVAL, [](T& t) { return t.ToState(t.Connected(), 4); }},
    {k61, "hns.create_srq.size", EINVAL, [](T& t) { return t.NewSrq(0x8001, 1, SrqInput(t)); }},
    {k61, "hns.create_srq.size", EINVAL, [](T& t) { return t.NewSrq(16, 129, SrqInput(t)); }},
    {"debian-5.10.223", "hns.create_srq.size", EINVAL, [](T& t) { return t.NewSrq(0x8000, 1, SrqInput(t)); }},
    {"debian-5.10.223", "hns.create_srq.size", EINVAL, [](T& t) { return t.NewSrq(16, 65, SrqInput(t)); }},
    {kNewest, "hns.create_srq.no_sge", EINVAL, [](T& t) { return t.NewSrq(16, 0, SrqInput(t)); }},
    {kNewest, "hns.create_srq.input.short", EINVAL, [](T& t) { return t.NewSrq(16, 1, Bytes(16)); }},
    {kNewest, "hns.create_srq.input.tail", EOPNOTSUPP, [](T& t) { return t.NewSrq(16, 1, t.Longer(SrqInput(t))); }},
    {kNewest, "hns.modify_srq.resize", EOPNOTSUPP, [](T& t) { return t.ModifySrq(t.Srq(), 1, 32, 0); }},
    {k66, "hns.modify_srq.resize", EINVAL, [](T& t) { return t.ModifySrq(t.Srq(), 1, 32, 0); }},
    {kNewest, "hns.modify_srq.limit", EINVAL, [](T& t) { return t.ModifySrq(t.Srq(), 2, 0, 17); }},
    {k61, "hns.create_ah.card", EOPNOTSUPP, [](T& t) { return t.Ah(); }},
  };
  return *offences;
}
// clang-format on

class EachHnsRule : public testing::TestWithParam<size_t> {};

TEST_P(EachHnsRule, RefusesWithItsErrnoAndName) { ExpectRefusal(Offences()[GetParam()]); }

INSTANTIATE_TEST_SUITE_P(All, EachHnsRule, testing::Range(size_t{0}, Offences().size()),
                         [](const auto& info) {
                           return std::to_string(info.param) + "_" +
                                  CaseName(Offences()[info.param]);
                         });

}  // namespace
}  // namespace vabi::hns
