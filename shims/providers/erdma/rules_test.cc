// SPDX-License-Identifier: BSD-2-Clause
// One offence for each rule of erdma: the errno of drivers/infiniband/hw/erdma in the kernel named
// (file and function stand in abi.def), and which rule answered.
#include "shims/providers/erdma/test_erdma.h"
#include "shims/providers/test_offence.h"

namespace vabi::erdma {
namespace {

constexpr char kNewest[] = "debian-7.3.4", k61[] = "debian-6.1.192";

class Rules : public TestErdma {
 public:
  explicit Rules(const char* kernel) : TestErdma(kernel) {}

  long QpWith(std::function<void(QpWish&)> change) {
    QpWish wish = Wish();
    change(wish);
    return NewQp(wish);
  }
  long RateLimit() {
    Bytes request = Zero(VABI_S(ib_uverbs_ex_modify_qp));
    const Body base = In(request).Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
    base.Set(VABI_F(ib_uverbs_modify_qp, qp_handle), Qp());
    base.Set(VABI_F(ib_uverbs_modify_qp, attr_mask), 1u << 25);
    return CommandEx(26, request, VABI_S(ib_uverbs_ex_modify_qp_resp));
  }
  long QueueAt(uint64_t address) {
    Bytes request = QueueRequest(4096);
    In(request).Set(VABI_PF(erdma_ureq_create_qp, qbuf_va), address);
    return CreateCq(16, nullptr, request, kCqReply);
  }
  Bytes Longer() {
    Bytes request = QueueRequest(kBuffer);
    request.resize(32, 1);
    return request;
  }
};

using Offence = vabi::Offence<Rules>;

using T = Rules;
// clang-format off
const std::vector<Offence>& Offences() {
  static const auto* const offences = new std::vector<Offence>{
    {kNewest, "erdma.reply.fault", EFAULT, [](T& t) { return t.Nowhere(T::Lost::kOutput, T::kCreateCq, t.CqRequest(16), VABI_S(ib_uverbs_create_cq_resp), t.QueueRequest(4096)); }},
    {kNewest, "erdma.query_device.input", EOPNOTSUPP, [](T& t) { return t.QueryDevice(Bytes(8, 1)); }},
    {kNewest, "erdma.query_device.fault", EFAULT, [](T& t) { return t.Nowhere(T::Lost::kOutput, 0x80000001, t.Zero(VABI_S(ib_uverbs_ex_query_device)), VABI_S(ib_uverbs_ex_query_device_resp)); }},
    {k61, "erdma.ucontext.reply.short", EINVAL, [](T& t) { t.Reinstall(); return t.Open({}, 36); }},
    {kNewest, "mmap.private", EINVAL, [](T& t) { return t.Map(0, 4096, PROT_READ, MAP_PRIVATE); }},
    {k61, "erdma.mmap.entry", EINVAL, [](T& t) { return t.Map(1 << 20, 4096); }},
    {k61, "erdma.reg_mr.size", EINVAL, [](T& t) { return t.RegMr(t.pd, {.length = 0}); }},
    {k61, "erdma.reg_mr.size", EINVAL, [](T& t) { return t.RegMr(t.pd, {.length = (uint64_t{1} << 46) + 1}); }},
    {k61, "erdma.pin.range", EINVAL, [](T& t) { return t.QueueAt(~uint64_t{0} - 4095 + 1); }},
    {k61, "erdma.pin.nothing", EINVAL, [](T& t) { return t.CreateCq(16, nullptr, t.QueueRequest(0), T::kCqReply); }},
    {k61, "erdma.pin.fault", EFAULT, [](T& t) { return t.QueueAt(4096); }},
    {k61, "erdma.pin.fault", EFAULT, [](T& t) { return t.RegMr(t.pd, {.length = 1 << 24}); }},
    {k61, "erdma.create_cq.cqe", EINVAL, [](T& t) { return t.CreateCq(1048577, nullptr, t.QueueRequest(4096), T::kCqReply); }},
    {kNewest, "erdma.create_cq.input.short", EINVAL, [](T& t) { return t.CreateCq(16, nullptr, Bytes(20), T::kCqReply); }},
    {kNewest, "erdma.create_cq.input.tail", EOPNOTSUPP, [](T& t) { return t.CreateCq(16, nullptr, t.Longer(), T::kCqReply); }},
    {kNewest, "erdma.create_cq.input.fault", EFAULT, [](T& t) { return t.Nowhere(T::Lost::kInput, T::kCreateCq, t.CqRequest(16), VABI_S(ib_uverbs_create_cq_resp)); }},
    {k61, "erdma.create_qp.size", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.send_wr = 8193; }); }},
    {k61, "erdma.create_qp.size", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.recv_wr = 32769; }); }},
    {k61, "erdma.create_qp.size", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.send_sge = 7; }); }},
    {k61, "erdma.create_qp.size", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.recv_sge = 2; }); }},
    {k61, "erdma.create_qp.size", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.inline_data = 97; }); }},
    {k61, "erdma.create_qp.size", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.send_wr = 0; }); }},
    {k61, "erdma.create_qp.size", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.recv_wr = 0; }); }},
    {k61, "erdma.create_qp.type", EOPNOTSUPP, [](T& t) { return t.QpWith([](auto& w) { w.type = T::kUd; }); }},
    {kNewest, "erdma.create_qp.input.short", EINVAL, [](T& t) { return t.CreateQp(t.Wish(), nullptr, Bytes(20), T::kQpReply); }},
    {kNewest, "erdma.create_qp.input.tail", EOPNOTSUPP, [](T& t) { return t.CreateQp(t.Wish(), nullptr, t.Longer(), T::kQpReply); }},
    {kNewest, "erdma.create_qp.input.fault", EFAULT, [](T& t) { return t.Nowhere(T::Lost::kInput, T::kCreateQp, t.QpRequest(t.Wish()), VABI_S(ib_uverbs_create_qp_resp)); }},
    {k61, "erdma.create_qp.buffer", EINVAL, [](T& t) { return t.NewQp(t.Wish(), nullptr, T::kLeast - 1); }},
    {k61, "erdma.modify_qp.mask", EOPNOTSUPP, [](T& t) { return t.RateLimit(); }},
    {k61, "erdma.modify_qp.no_socket", EINVAL, [](T& t) { return t.ToState(t.Qp(), 3); }},
  };
  return *offences;
}
// clang-format on

class EachErdmaRule : public testing::TestWithParam<size_t> {};

TEST_P(EachErdmaRule, RefusesWithItsErrnoAndName) { ExpectRefusal(Offences()[GetParam()]); }

INSTANTIATE_TEST_SUITE_P(All, EachErdmaRule, testing::Range(size_t{0}, Offences().size()),
                         [](const auto& info) {
                           return std::to_string(info.param) + "_" +
                                  CaseName(Offences()[info.param]);
                         });

}  // namespace
}  // namespace vabi::erdma
