// SPDX-License-Identifier: BSD-2-Clause
// One offence for each rule of siw: the errno of drivers/infiniband/sw/siw in the kernel named
// (file and function stand in abi.def), and which rule answered.
#include "shims/providers/siw/test_siw.h"
#include "shims/providers/test_offence.h"

namespace vabi::siw {
namespace {

constexpr char kNewest[] = "debian-7.3.4", k612[] = "debian-6.12.117", k510[] = "debian-5.10.223",
               k59[] = "linux-5.9", k56[] = "linux-5.6";

class Rules : public TestSiw {
 public:
  explicit Rules(const char* kernel) : TestSiw(kernel) {}

  long QpWith(std::function<void(QpWish&)> change) {
    QpWish wish = Wish();
    change(wish);
    return NewQp(wish);
  }
  long QpEx(uint32_t create_flags) { return CreateQpEx(Wish(), create_flags, {}, kQpReply); }
  // Extended write() with bits that only MODIFY_QP of the extended kind has.
  long RateLimit() {
    Bytes request = Zero(VABI_S(ib_uverbs_ex_modify_qp));
    const Body base = In(request).Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
    base.Set(VABI_F(ib_uverbs_modify_qp, qp_handle), Qp());
    base.Set(VABI_F(ib_uverbs_modify_qp, attr_mask), 1u << 25);
    return CommandEx(26, request, VABI_S(ib_uverbs_ex_modify_qp_resp));
  }
  long PostRecv(const QpWish& wish) {
    QpMade qp;
    EXPECT_GT(NewQp(wish, &qp), 0) << LastRule();
    return Post(27 + 2, VABI_S(ib_uverbs_post_recv), VABI_F(ib_uverbs_post_recv, qp_handle),
                VABI_F(ib_uverbs_post_recv, wr_count), VABI_F(ib_uverbs_post_recv, wqe_size),
                qp.handle, VABI_S(ib_uverbs_post_recv_resp));
  }
  long PostSrqRecv() {
    return Post(36, VABI_S(ib_uverbs_post_srq_recv), VABI_F(ib_uverbs_post_srq_recv, srq_handle),
                VABI_F(ib_uverbs_post_srq_recv, wr_count),
                VABI_F(ib_uverbs_post_srq_recv, wqe_size), Srq(),
                VABI_S(ib_uverbs_post_srq_recv_resp));
  }
  long Xsrq(uint32_t type) {
    Bytes request = Zero(VABI_S(ib_uverbs_create_xsrq));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_create_xsrq, pd_handle), pd);
    body.Set(VABI_F(ib_uverbs_create_xsrq, max_wr), 8);
    body.Set(VABI_F(ib_uverbs_create_xsrq, srq_type), type);
    body.Set(VABI_F(ib_uverbs_create_xsrq, max_num_tags), 1);
    body.Set(VABI_F(ib_uverbs_create_xsrq, cq_handle), Cq());
    return Command(39, request, VABI_S(ib_uverbs_create_srq_resp), {}, kSrqReply);
  }
  long PostSend(uint32_t qp, uint32_t count) {
    const size_t element = world().Size(VABI_S(ib_uverbs_send_wr));
    Bytes request = Zero(VABI_S(ib_uverbs_post_send));
    In(request).Set(VABI_F(ib_uverbs_post_send, qp_handle), qp);
    In(request).Set(VABI_F(ib_uverbs_post_send, wr_count), count);
    In(request).Set(VABI_F(ib_uverbs_post_send, wqe_size), element);
    request.resize(request.size() + count * element);
    return Command(kPostSend, request, VABI_S(ib_uverbs_post_send_resp));
  }

 private:
  long Post(uint32_t command, StructId structure, FieldId object, FieldId count, FieldId size,
            uint32_t handle, StructId reply) {
    const size_t element = world().Size(VABI_S(ib_uverbs_recv_wr));
    Bytes request = Zero(structure);
    In(request).Set(object, handle);
    In(request).Set(count, 1);
    In(request).Set(size, element);
    request.resize(request.size() + element);
    return Command(command, request, reply);
  }
};

using Offence = vabi::Offence<Rules>;

using T = Rules;
// clang-format off
const std::vector<Offence>& Offences() {
  static const auto* const offences = new std::vector<Offence>{
    {kNewest, "siw.reply.fault", EFAULT, [](T& t) { return t.Nowhere(T::Lost::kOutput, T::kCreateCq, t.CqRequest(16), VABI_S(ib_uverbs_create_cq_resp)); }},
    {k612, "siw.query_device.udata", EINVAL, [](T& t) { return t.QueryDevice(Bytes(8)); }},
    {k612, "siw.query_device.udata", EINVAL, [](T& t) { return t.QueryDevice({}, 8); }},
    {kNewest, "siw.query_device.input", EOPNOTSUPP, [](T& t) { return t.QueryDevice(Bytes(8, 1)); }},
    {kNewest, "siw.ucontext.reply.short", EINVAL, [](T& t) { t.Reinstall(); return t.Open({}, 4); }},
    {kNewest, "mmap.private", EINVAL, [](T& t) { return t.Map(0, 4096, PROT_READ, MAP_PRIVATE); }},
    {kNewest, "siw.mmap.entry", EINVAL, [](T& t) { return t.Map(1u << 20, 4096); }},
    {kNewest, "siw.create_cq.flags", EOPNOTSUPP, [](T& t) { return t.CreateCqEx(16, 1, {}, T::kCqReply); }},
    {kNewest, "siw.create_cq.cqe", EINVAL, [](T& t) { return t.CreateCq(3276801, nullptr, {}, T::kCqReply); }},
    {k510, "siw.create_cq.cqe", EINVAL, [](T& t) { return t.CreateCq(0, nullptr, {}, T::kCqReply); }},
    {kNewest, "siw.create_cq.reply.short", EINVAL, [](T& t) { return t.CreateCq(16, nullptr, {}, 12); }},
    {kNewest, "siw.create_qp.flags", EOPNOTSUPP, [](T& t) { return t.QpEx(1 << 1); }},
    {kNewest, "siw.create_qp.type", EOPNOTSUPP, [](T& t) { return t.QpWith([](auto& w) { w.type = T::kUd; }); }},
    {k56, "siw.create_qp.type", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.type = T::kUd; }); }},
    {kNewest, "siw.create_qp.size", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.send_wr = 32769; }); }},
    {kNewest, "siw.create_qp.size", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.recv_wr = 32769; }); }},
    {kNewest, "siw.create_qp.size", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.send_sge = 7; }); }},
    {kNewest, "siw.create_qp.size", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.recv_sge = 7; }); }},
    {kNewest, "siw.create_qp.inline", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.inline_data = 81; }); }},
    {k59, "siw.create_qp.no_queue", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.send_wr = w.recv_wr = 0; }); }},
    {k510, "siw.create_qp.no_send_queue", EINVAL, [](T& t) { return t.QpWith([](auto& w) { w.send_wr = 0; }); }},
    {kNewest, "siw.create_qp.reply.short", EINVAL, [](T& t) { return t.NewQp(t.Wish(), nullptr, 28); }},
    {kNewest, "siw.modify_qp.mask", EOPNOTSUPP, [](T& t) { return t.RateLimit(); }},
    {kNewest, "siw.modify_qp.no_socket", EINVAL, [](T& t) { return t.ToState(t.Qp(), 3); }},
    {kNewest, "siw.post_send.mapped", EINVAL, [](T& t) { return t.PostSend(t.Qp(), 1); }},
    {k56, "siw.post_send.mapped", EINVAL, [](T& t) { const uint32_t qp = t.Qp(); t.ToState(qp, 6); return t.PostSend(qp, 2); }},
    {"linux-5.3", "siw.post_send.state", ENOTCONN, [](T& t) { return t.PostSend(t.Qp(), 1); }},
    {kNewest, "siw.post_send.state", ENOTCONN, [](T& t) { return t.PostSend(t.Qp(), 0); }},
    {"linux-5.3", "siw.post_send.state", ENOTCONN, [](T& t) { const uint32_t qp = t.Qp(); t.ToState(qp, 6); return t.PostSend(qp, 0); }},
    {k59, "siw.post_recv.srq", EOPNOTSUPP, [](T& t) { auto w = t.Wish(); w.has_srq = true; w.srq = t.Srq(); return t.PostRecv(w); }},
    {k510, "siw.post_recv.srq", EINVAL, [](T& t) { auto w = t.Wish(); w.recv_wr = 0; return t.PostRecv(w); }},
    {k510, "siw.post_recv.mapped", EINVAL, [](T& t) { return t.PostRecv(t.Wish()); }},
    {k510, "siw.post_srq_recv.mapped", EINVAL, [](T& t) { return t.PostSrqRecv(); }},
    {kNewest, "siw.create_srq.type", EOPNOTSUPP, [](T& t) { return t.Xsrq(2); }},
    {kNewest, "siw.create_srq.size", EINVAL, [](T& t) { return t.NewSrq(0, 1); }},
    {kNewest, "siw.create_srq.size", EINVAL, [](T& t) { return t.NewSrq(327681, 1); }},
    {kNewest, "siw.create_srq.size", EINVAL, [](T& t) { return t.NewSrq(8, 7); }},
    {kNewest, "siw.create_srq.size", EINVAL, [](T& t) { return t.NewSrq(8, 1, 9); }},
    {kNewest, "siw.create_srq.reply.short", EINVAL, [](T& t) { return t.NewSrq(8, 1, 0, nullptr, 12); }},
    {kNewest, "siw.modify_srq.resize", EOPNOTSUPP, [](T& t) { return t.ModifySrq(t.Srq(), 1, 16, 0); }},
    {kNewest, "siw.modify_srq.limit", EINVAL, [](T& t) { return t.ModifySrq(t.Srq(), 2, 0, 9); }},
    {kNewest, "siw.reg_mr.empty", EINVAL, [](T& t) { return t.NewMr({.length = 0}); }},
    {k612, "siw.reg_mr.range", EINVAL, [](T& t) { return t.NewMr({.length = ~uint64_t{0} - 4096}); }},
    {kNewest, "siw.reg_mr.chunks", ENOMEM, [](T& t) { return t.NewMr({.length = ~uint64_t{0} - 4096}); }},
    // 2^52 - 2^32 + 1 pages: of 32 bits one is left, and the end lies beyond that of all addresses.
    {kNewest, "siw.reg_mr.range", EINVAL, [](T& t) { return t.NewMr({.start = 1ULL << 46, .length = ((1ULL << 52) - (1ULL << 32) + 1) << 12}); }},
    {"debian-6.1.192", "siw.reg_mr.fault", EFAULT, [](T& t) { return t.NewMr({.length = 1u << 24}); }},
    {k612, "siw.reg_mr.chunks", ENOMEM, [](T& t) { return t.NewMr({.length = 1ULL << 43}); }},  // 2^31 pages
    {kNewest, "siw.reg_mr.chunks", ENOMEM, [](T& t) { return t.NewMr({.length = 1ULL << 41}); }},
    {k612, "siw.reg_mr.pages", EINVAL, [](T& t) { return t.NewMr({.length = ~uint64_t{0} >> 1}); }},
    {kNewest, "siw.reg_mr.fault", EFAULT, [](T& t) { return t.NewMr({.length = 1u << 24}); }},
    {kNewest, "siw.reg_mr.memlock", ENOMEM, [](T& t) { return t.LimitedMr(t.pd, 1, 1000, Bytes(8), T::kMrReply); }},
    {k612, "umem.no_lock", EPERM, [](T& t) { return t.LimitedMr(t.pd, 0, 1000, Bytes(8), T::kMrReply); }},
    {"linux-6.6", "siw.reg_mr.memlock", ENOMEM, [](T& t) { return t.LimitedMr(t.pd, 1, 0, Bytes(8), T::kMrReply); }},  // root
    {"linux-6.6", "siw.reg_mr.memlock", ENOMEM, [](T& t) { return t.LimitedMr(t.pd, 0, 1000, Bytes(8), T::kMrReply); }},
    {kNewest, "siw.reg_mr.input.short", EINVAL, [](T& t) { return t.NewMr({}, 4); }},
    {kNewest, "siw.query_device.fault", EFAULT, [](T& t) { return t.Nowhere(T::Lost::kOutput, 0x80000001, t.Zero(VABI_S(ib_uverbs_ex_query_device)), VABI_S(ib_uverbs_ex_query_device_resp)); }},
    {kNewest, "siw.reg_mr.input.fault", EFAULT, [](T& t) { return t.Nowhere(T::Lost::kInput, T::kRegMr, t.MrRequest(t.pd, {}), VABI_S(ib_uverbs_reg_mr_resp)); }},
    {kNewest, "siw.reg_mr.input.tail", EOPNOTSUPP, [](T& t) { return t.RegMr(t.pd, {}, nullptr, Bytes(12, 1), 8); }},
    {kNewest, "siw.reg_mr.reply.short", EINVAL, [](T& t) { return t.NewMr({}, 8, 4); }},
  };
  return *offences;
}
// clang-format on

class EachSiwRule : public testing::TestWithParam<size_t> {};

TEST_P(EachSiwRule, RefusesWithItsErrnoAndName) { ExpectRefusal(Offences()[GetParam()]); }

INSTANTIATE_TEST_SUITE_P(All, EachSiwRule, testing::Range(size_t{0}, Offences().size()),
                         [](const auto& info) {
                           return std::to_string(info.param) + "_" +
                                  CaseName(Offences()[info.param]);
                         });

}  // namespace
}  // namespace vabi::siw
