// SPDX-License-Identifier: BSD-2-Clause
// One offence for each rule of efa: the errno of drivers/infiniband/hw/efa in the kernel named
// (file and function stand in abi.def), and which rule answered.
#include <sys/mman.h>

#include "shims/providers/efa/test_efa.h"
#include "shims/providers/test_offence.h"

namespace vabi::efa {
namespace {

constexpr char kNewest[] = "debian-7.3.4", k612[] = "debian-6.12.117", k61[] = "debian-6.1.192";

class Rules : public TestEfa {
 public:
  explicit Rules(const char* kernel) : TestEfa(kernel) {}

  long CqWith(FieldId field, uint64_t value) {
    Bytes input = CqInput(*this);
    In(input).Set(field, value);
    return CreateCq(16, nullptr, input, kRoom);
  }
  long QpWith(FieldId field, uint64_t value, uint8_t type = kUd) {
    Bytes input = QpInput(*this);
    In(input).Set(field, value);
    return CreateQp(Wish(type), nullptr, input, kRoom);
  }
  long QpWish_(std::function<void(QpWish&)> change) {
    QpWish wish = Wish();
    change(wish);
    return CreateQp(wish, nullptr, QpInput(*this), kRoom);
  }
  Bytes Longer(Bytes input) {
    input.resize(input.size() + 8);
    input.back() = 1;
    return input;
  }
  long RateLimit() {
    Bytes request = Zero(VABI_S(ib_uverbs_ex_modify_qp));
    const Body base = In(request).Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
    base.Set(VABI_F(ib_uverbs_modify_qp, qp_handle), Qp());
    base.Set(VABI_F(ib_uverbs_modify_qp, attr_mask), 1u << 25);
    return CommandEx(26, request, VABI_S(ib_uverbs_ex_modify_qp_resp));
  }
  long Ah(const Bytes& input) {
    uint32_t ah;
    return CreateAh(pd, &ah, input, 8);
  }
  long Pd(const Bytes& input) {
    uint32_t other;
    return AllocPd(&other, input, 8);
  }
};

using Offence = vabi::Offence<Rules>;

using T = Rules;
#define CQ(name) VABI_PF(efa_ibv_create_cq, name)
#define QP(name) VABI_PF(efa_ibv_create_qp, name)
// clang-format off
const std::vector<Offence>& Offences() {
  static const auto* const offences = new std::vector<Offence>{
    {kNewest, "efa.input.fault", EFAULT, [](T& t) { return t.Nowhere(T::Lost::kInput, T::kCreateCq, t.CqRequest(16), VABI_S(ib_uverbs_create_cq_resp)); }},
    {k61, "efa.input.fault", EFAULT, [](T& t) { return t.Nowhere(T::Lost::kInput, T::kAllocPd, t.Zero(VABI_S(ib_uverbs_alloc_pd)), VABI_S(ib_uverbs_alloc_pd_resp)); }},
    {k61, "efa.reply.fault", EFAULT, [](T& t) { return t.Nowhere(T::Lost::kOutput, T::kAllocPd, t.Zero(VABI_S(ib_uverbs_alloc_pd)), VABI_S(ib_uverbs_alloc_pd_resp)); }},
    {k612, "efa.query_device.input", EINVAL, [](T& t) { return t.QueryDevice(Bytes(8, 1)); }},
    {kNewest, "efa.query_device.input", EOPNOTSUPP, [](T& t) { return t.QueryDevice(Bytes(8, 1)); }},
    {kNewest, "efa.ucontext.handshake", EOPNOTSUPP, [](T& t) { t.Reinstall(); return t.Open({}, 64); }},
    {k612, "efa.alloc_pd.input", EINVAL, [](T& t) { return t.Pd(Bytes(4, 1)); }},
    {kNewest, "efa.alloc_pd.input", EOPNOTSUPP, [](T& t) { return t.Pd(Bytes(4, 1)); }},
    {kNewest, "mmap.private", EINVAL, [](T& t) { return t.Map(0, 4096, PROT_READ, MAP_PRIVATE); }},
    {k61, "efa.mmap.entry", EINVAL, [](T& t) { return t.Map(1 << 24, 4096); }},
    {"linux-5.3", "mmap.private", EINVAL, [](T& t) { return t.Map(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE); }},
    {"linux-5.3", "efa.mmap.exec", EPERM, [](T& t) { return t.Map(0, 4096, PROT_READ | PROT_EXEC); }},
    {k612, "efa.reg_mr.input", EINVAL, [](T& t) { return t.RegMr(t.pd, {}, nullptr, Bytes(4, 1)); }},
    {kNewest, "efa.reg_mr.input", EOPNOTSUPP, [](T& t) { return t.RegMr(t.pd, {}, nullptr, Bytes(4, 1)); }},
    {k61, "efa.reg_mr.access", EOPNOTSUPP, [](T& t) { return t.RegMr(t.pd, {.access = 3}); }},
    {k61, "efa.reg_mr.range", EINVAL, [](T& t) { return t.RegMr(t.pd, {.length = ~uint64_t{0} - 4096}); }},
    {k61, "efa.reg_mr.nothing", EINVAL, [](T& t) { return t.RegMr(t.pd, {.length = 0}); }},
    {k61, "efa.reg_mr.fault", EFAULT, [](T& t) { return t.RegMr(t.pd, {.length = 1 << 24}); }},
    {kNewest, "efa.create_cq.flags", EOPNOTSUPP, [](T& t) { return t.CreateCqEx(16, 1, CqInput(t), T::kRoom); }},
    {k61, "efa.create_cq.cqe", EINVAL, [](T& t) { return t.CreateCq(32769, nullptr, CqInput(t), T::kRoom); }},
    {k61, "efa.create_cq.none", EINVAL, [](T& t) { return t.CreateCq(0, nullptr, CqInput(t), T::kRoom); }},
    {k61, "efa.create_cq.input.short", EINVAL, [](T& t) { return t.CreateCq(16, nullptr, Bytes(8), T::kRoom); }},
    {k612, "efa.create_cq.input.tail", EINVAL, [](T& t) { return t.CreateCq(16, nullptr, t.Longer(CqInput(t)), T::kRoom); }},
    {kNewest, "efa.create_cq.input.tail", EOPNOTSUPP, [](T& t) { return t.CreateCq(16, nullptr, t.Longer(CqInput(t)), T::kRoom); }},
    {k612, "efa.create_cq.comp_mask", EINVAL, [](T& t) { return t.CqWith(CQ(comp_mask), 1); }},
    {kNewest, "efa.create_cq.comp_mask", EOPNOTSUPP, [](T& t) { return t.CqWith(CQ(comp_mask), 1); }},
    {k61, "efa.create_cq.reserved", EINVAL, [](T& t) { return t.CqWith(CQ(reserved_58), 1); }},
    {"linux-5.14", "efa.create_cq.reserved", EINVAL, [](T& t) { return t.CqWith(CQ(reserved_50), 1); }},
    {k61, "efa.create_cq.entry_size", EINVAL, [](T& t) { return t.CqWith(CQ(cq_entry_size), 24); }},
    {k61, "efa.create_cq.entry_size", EINVAL, [](T& t) { return t.CqWith(CQ(flags), 2); }},
    {"linux-5.14", "efa.create_cq.entry_size", EINVAL, [](T& t) { return t.CqWith(CQ(cq_entry_size), 0); }},
    {k61, "efa.create_cq.sub_cqs", EINVAL, [](T& t) { return t.CqWith(CQ(num_sub_cqs), 1); }},
    {k61, "efa.queue.memory", ENOMEM, [](T& t) { return t.QpWith(QP(rq_ring_size), (4 << 20) + 1); }},
    {k61, "efa.create_qp.size", EINVAL, [](T& t) { return t.QpWish_([](auto& w) { w.send_wr = 4097; }); }},
    {k61, "efa.create_qp.size", EINVAL, [](T& t) { return t.QpWish_([](auto& w) { w.recv_wr = 32769; }); }},
    {k61, "efa.create_qp.size", EINVAL, [](T& t) { return t.QpWish_([](auto& w) { w.send_sge = 3; }); }},
    {k61, "efa.create_qp.size", EINVAL, [](T& t) { return t.QpWish_([](auto& w) { w.recv_sge = 4; }); }},
    {k61, "efa.create_qp.size", EINVAL, [](T& t) { return t.QpWish_([](auto& w) { w.inline_data = 33; }); }},
    {kNewest, "efa.create_qp.send_ring", EINVAL, [](T& t) { return t.QpWith(QP(sq_ring_size), 4096 * 64 + 1); }},
    {k61, "efa.create_qp.type", EOPNOTSUPP, [](T& t) { return t.QpWish_([](auto& w) { w.type = T::kRc; }); }},
    {kNewest, "efa.create_qp.create_flags", EOPNOTSUPP, [](T& t) { return t.CreateQpEx(t.Wish(), 1 << 1, QpInput(t), T::kRoom); }},
    {k61, "efa.create_qp.input.short", EINVAL, [](T& t) { return t.CreateQp(t.Wish(), nullptr, Bytes(12), T::kRoom); }},
    {k612, "efa.create_qp.input.tail", EINVAL, [](T& t) { return t.CreateQp(t.Wish(), nullptr, t.Longer(QpInput(t)), T::kRoom); }},
    {kNewest, "efa.create_qp.input.tail", EOPNOTSUPP, [](T& t) { return t.CreateQp(t.Wish(), nullptr, t.Longer(QpInput(t)), T::kRoom); }},
    {k612, "efa.create_qp.comp_mask", EINVAL, [](T& t) { return t.QpWith(QP(comp_mask), 1); }},
    {kNewest, "efa.create_qp.comp_mask", EOPNOTSUPP, [](T& t) { return t.QpWith(QP(comp_mask), 1); }},
    {kNewest, "efa.create_qp.reserved", EINVAL, [](T& t) { return t.QpWith(QP(reserved_98), 1); }},
    {kNewest, "efa.create_qp.flags", EOPNOTSUPP, [](T& t) { return t.QpWith(QP(flags), 4); }},
    {k61, "efa.create_qp.driver_type", EOPNOTSUPP, [](T& t) { return t.QpWith(QP(driver_qp_type), 1, T::kDriver); }},
    {kNewest, "efa.modify_qp.standard", EOPNOTSUPP, [](T& t) { return t.RateLimit(); }},
    {k61, "efa.modify_qp.mask", EOPNOTSUPP, [](T& t) { return t.Init(t.Qp(), 0x71 | 8); }},
    {k61, "efa.modify_qp.transition", EINVAL, [](T& t) { return t.ToState(t.Qp(), 3); }},
    {k61, "efa.modify_qp.transition", EINVAL, [](T& t) { return t.Init(t.Qp(T::kDriver), 0x1 | 0x10 | 0x20); }},
    {k61, "efa.modify_qp.pkey_index", EOPNOTSUPP, [](T& t) { return t.ModifyQp(t.Qp(), 0x71, {{VABI_F(ib_uverbs_modify_qp, qp_state), 1}, {VABI_F(ib_uverbs_modify_qp, port_num), 1}, {VABI_F(ib_uverbs_modify_qp, pkey_index), 1}}); }},
    {k61, "efa.query_qp.mask", EOPNOTSUPP, [](T& t) { return t.QueryQp(t.Qp(), 0x80); }},
    {"linux-5.9", "efa.query_qp.mask", EOPNOTSUPP, [](T& t) { return t.QueryQp(t.Qp(), 1 << 11); }},
    {k612, "efa.create_ah.input", EINVAL, [](T& t) { return t.Ah(Bytes(4, 1)); }},
    {kNewest, "efa.create_ah.input", EOPNOTSUPP, [](T& t) { return t.Ah(Bytes(4, 1)); }},
  };
  return *offences;
}
// clang-format on

class EachEfaRule : public testing::TestWithParam<size_t> {};

TEST_P(EachEfaRule, RefusesWithItsErrnoAndName) { ExpectRefusal(Offences()[GetParam()]); }

INSTANTIATE_TEST_SUITE_P(All, EachEfaRule, testing::Range(size_t{0}, Offences().size()),
                         [](const auto& info) {
                           return std::to_string(info.param) + "_" +
                                  CaseName(Offences()[info.param]);
                         });

}  // namespace
}  // namespace vabi::efa
