// SPDX-License-Identifier: BSD-2-Clause
// One offence for each rule of rxe that no other test comes by: the errno of
// drivers/infiniband/sw/rxe in the kernel named (file and function stand in abi.def), and which
// rule answered.
#include "shims/fabric/address.h"
#include "shims/providers/rxe/test_rxe.h"
#include "shims/providers/test_offence.h"
#include "shims/trace/trace.h"
#include "shims/uverbs/test_memlock.h"

namespace vabi::rxe {
namespace {

constexpr char kNewest[] = "debian-7.3.4";
#define EXQP(field) VABI_F(ib_uverbs_ex_create_qp, field)

class Rules : public RxeTest {
 public:
  explicit Rules(const char* kernel)
      : RxeTest(kernel),
        trace_path_(testing::TempDir() + "/rxe_rules_test." + std::to_string(getpid())) {
    unlink(trace_path_.c_str());
    trace::Open(trace_path_.c_str());
  }
  ~Rules() override {
    trace::Open("");
    unlink(trace_path_.c_str());
  }
  void TestBody() override {}
  // After a change of the world, which is installed without a trace.
  void Again() {
    Open();
    trace::Open(trace_path_.c_str());
  }

  using RxeTest::Command;
  using RxeTest::Connect;
  using RxeTest::Cq;
  using RxeTest::CqRequest;
  using RxeTest::In;
  using RxeTest::kBindMw;
  using RxeTest::kSignaled;
  using RxeTest::lkey_;
  using RxeTest::MakeCq;
  using RxeTest::MakeQp;
  using RxeTest::pd_;
  using RxeTest::Poll;
  using RxeTest::Receive;
  using RxeTest::Ring;
  using RxeTest::ToInit;
  using RxeTest::ToRtr;
  using RxeTest::world;
  using RxeTest::world_;
  using RxeTest::Zero;

  std::string LastRule() { return LastRuleIn(trace_path_); }
  static Bytes Words(size_t size) { return Bytes((size + 7) / 8 * 8); }

  // Extended write() with so many bytes of the driver's, and room for as many of its reply.
  long CommandEx(uint32_t command, Bytes request, Bytes* reply, const Bytes& driver = {},
                 size_t driver_out = 0) {
    return SendWrite(*file_,
                     ExtendedCommand(command, std::move(request), reply, driver, driver_out));
  }
  // DEVICE.INVOKE_WRITE whose private input or output stands where nothing is.
  long InvokeNowhere(uint32_t command, const Bytes& core, size_t reply, ConstId attribute) {
    const auto number = [&](ConstId id) { return static_cast<uint16_t>(world().Flag(id)); };
    Request call(number(VABI_C(UVERBS_OBJECT_DEVICE)), number(VABI_C(UVERBS_METHOD_INVOKE_WRITE)),
                 world().image().device[0].driver_id);
    call.AddConst(number(VABI_C(UVERBS_ATTR_WRITE_CMD)), command);
    call.AddIn(number(VABI_C(UVERBS_ATTR_CORE_IN)), core);
    reply_ = Bytes(512);
    if (reply != 0) {
      call.AddOut(number(VABI_C(UVERBS_ATTR_CORE_OUT)), reply_).len = static_cast<uint16_t>(reply);
    }
    constexpr uint64_t kNowhere = 64;
    call.Add(number(attribute), 16, kNowhere);
    return SendIoctl(*file_, call);
  }

  long QueryDevice(const Bytes& driver) {
    Bytes reply = Words(world().Size(VABI_S(ib_uverbs_ex_query_device_resp)));
    return CommandEx(1, Zero(VABI_S(ib_uverbs_ex_query_device)), &reply, driver);
  }
  long NewCqEx(uint32_t flags) {
    Bytes request = Zero(VABI_S(ib_uverbs_ex_create_cq));
    In(request).Set(VABI_F(ib_uverbs_ex_create_cq, cqe), 16);
    In(request).Set(VABI_F(ib_uverbs_ex_create_cq, comp_channel), ~0u);
    In(request).Set(VABI_F(ib_uverbs_ex_create_cq, flags), flags);
    Bytes reply = Bytes(Words(world().Size(VABI_S(ib_uverbs_ex_create_cq_resp))).size() + 16);
    return CommandEx(18, request, &reply, {}, 16);
  }
  Cq& Queue() {
    if (queue_.cqe == 0) queue_ = MakeCq();
    return queue_;
  }
  long NewQp(uint8_t type, const Bytes& input = {}) {
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_qp_resp)) + 32);
    const uint32_t cq = Queue().handle;
    return Command(kCreateQp, QpRequest(cq, cq, {.type = type}), &reply, input);
  }
  long NewQpEx(uint32_t create_flags) {
    Bytes request = Zero(VABI_S(ib_uverbs_ex_create_qp));
    const Body body = In(request);
    body.Set(EXQP(pd_handle), pd_);
    body.Set(EXQP(send_cq_handle), Queue().handle);
    body.Set(EXQP(recv_cq_handle), Queue().handle);
    body.Set(EXQP(qp_type), 4);
    body.Set(EXQP(create_flags), create_flags);
    Bytes reply = Bytes(Words(world().Size(VABI_S(ib_uverbs_ex_create_qp_resp))).size() + 32);
    return CommandEx(24, request, &reply, {}, 32);
  }
  // QP.CREATE of an XRC initiator: the one that has no receive CQ in the end.
  long NewXrcInitiator() {
    const auto number = [&](ConstId id) { return static_cast<uint16_t>(world().Flag(id)); };
    Request call(number(VABI_C(UVERBS_OBJECT_QP)), number(VABI_C(UVERBS_METHOD_QP_CREATE)),
                 world().image().device[0].driver_id);
    Bytes cap = Zero(VABI_S(ib_uverbs_qp_cap)), granted = cap, qpn(4), places(32);
    call.AddHandle(number(VABI_C(UVERBS_ATTR_CREATE_QP_HANDLE)));
    call.AddHandle(number(VABI_C(UVERBS_ATTR_CREATE_QP_PD_HANDLE)), pd_);
    call.AddHandle(number(VABI_C(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE)), Queue().handle);
    call.Add(number(VABI_C(UVERBS_ATTR_CREATE_QP_USER_HANDLE)), 8, 0);
    call.AddIn(number(VABI_C(UVERBS_ATTR_CREATE_QP_CAP)), cap);
    call.AddConst(number(VABI_C(UVERBS_ATTR_CREATE_QP_TYPE)), 9);
    call.AddOut(number(VABI_C(UVERBS_ATTR_CREATE_QP_RESP_CAP)), granted);
    call.AddOut(number(VABI_C(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM)), qpn);
    call.AddOut(number(VABI_C(UVERBS_ATTR_UHW_OUT)), places);
    return SendIoctl(*file_, call);
  }
  // POST_RECV of one element to a queue pair in INIT.
  long Receiving(const QpWish& wish) {
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_qp_resp)) + 32);
    const uint32_t cq = Queue().handle;
    EXPECT_GT(Command(kCreateQp, QpRequest(cq, cq, wish), &reply), 0) << LastRule();
    qp_.handle = In(reply).U32(VABI_F(ib_uverbs_create_qp_resp, qp_handle));
    EXPECT_GT(ToInit(qp_), 0) << LastRule();
    uint32_t bad = 0;
    return PostReceive(qp_, 1, RxeTest::At(0, 8), &bad);
  }
  Qp& Pair() {
    qp_ = MakeQp(Queue(), Queue(), {});
    return qp_;
  }
  long RateLimit() {
    Connect(Pair(), qp_.number);
    Bytes request = Zero(VABI_S(ib_uverbs_ex_modify_qp));
    const Body body = In(request).Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
    body.Set(MODIFY(qp_handle), qp_.handle);
    body.Set(MODIFY(attr_mask), 0x1 | 1 << 25);
    body.Set(MODIFY(qp_state), 3);
    return CommandEx(26, request, nullptr);
  }
  // Another path, in the step to RTS.
  long AlternatePath(uint8_t timeout) {
    EXPECT_GT(ToInit(Pair()), 0) << LastRule();
    EXPECT_GT(ToRtr(qp_, qp_.number), 0) << LastRule();
    Bytes request = Zero(VABI_S(ib_uverbs_modify_qp));
    const Body body = In(request);
    body.Set(MODIFY(qp_handle), qp_.handle);
    body.Set(MODIFY(attr_mask), 0x1 | 0x10000 | 0x2000 | 0x200 | 0x400 | 0x800 | 0x4000);
    body.Set(MODIFY(qp_state), 3);
    body.Set(MODIFY(timeout), 1);
    body.Set(MODIFY(alt_port_num), 1);
    body.Set(MODIFY(alt_timeout), timeout);
    body.Sub(MODIFY(alt_dest)).Set(VABI_F(ib_uverbs_qp_dest, port_num), 1);
    return Command(kModifyQp, request, nullptr);
  }
  long Srq(uint32_t max_wr) {
    Bytes request = Zero(VABI_S(ib_uverbs_create_srq));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_create_srq, pd_handle), pd_);
    body.Set(VABI_F(ib_uverbs_create_srq, max_wr), max_wr);
    body.Set(VABI_F(ib_uverbs_create_srq, max_sge), 1);
    const size_t core = world().Size(VABI_S(ib_uverbs_create_srq_resp));
    Bytes reply(core + 24);
    const long result = Command(kCreateSrq, request, &reply);
    srq_ = In(reply).U32(VABI_F(ib_uverbs_create_srq_resp, srq_handle));
    if (result > 0) MapAt(reply, core, &shared_);
    return result;
  }
  long Xsrq(uint32_t type) {
    Bytes request = Zero(VABI_S(ib_uverbs_create_xsrq));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_create_xsrq, srq_type), type);
    body.Set(VABI_F(ib_uverbs_create_xsrq, pd_handle), pd_);
    body.Set(VABI_F(ib_uverbs_create_xsrq, max_wr), 16);
    body.Set(VABI_F(ib_uverbs_create_xsrq, max_sge), 1);
    body.Set(VABI_F(ib_uverbs_create_xsrq, cq_handle), Queue().handle);
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_srq_resp)) + 24);
    return Command(39, request, &reply);
  }
  Bytes SrqChange(uint32_t max_wr) {
    Bytes request = Zero(VABI_S(ib_uverbs_modify_srq));
    In(request).Set(VABI_F(ib_uverbs_modify_srq, srq_handle), srq_);
    In(request).Set(VABI_F(ib_uverbs_modify_srq, attr_mask), 1);
    In(request).Set(VABI_F(ib_uverbs_modify_srq, max_wr), max_wr);
    return request;
  }
  long Reg(uint64_t start, uint64_t length, uint32_t access) {
    Bytes request = Zero(VABI_S(ib_uverbs_reg_mr));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_reg_mr, start), start);
    body.Set(VABI_F(ib_uverbs_reg_mr, hca_va), start);
    body.Set(VABI_F(ib_uverbs_reg_mr, length), length);
    body.Set(VABI_F(ib_uverbs_reg_mr, pd_handle), pd_);
    body.Set(VABI_F(ib_uverbs_reg_mr, access_flags), access);
    Bytes reply(world().Size(VABI_S(ib_uverbs_reg_mr_resp)));
    const long result = Command(kRegMr, request, &reply);
    mr_ = In(reply).U32(VABI_F(ib_uverbs_reg_mr_resp, mr_handle));
    if (result > 0) last_mr_ = mr_;
    mr_key_ = In(reply).U32(VABI_F(ib_uverbs_reg_mr_resp, lkey));
    return result;
  }
  uint64_t Memory() const { return RxeTest::Address(0); }
  long ReregAccess(uint32_t access) {
    EXPECT_GT(Reg(Memory(), 4096, 4), 0) << LastRule();
    Bytes request = Zero(VABI_S(ib_uverbs_rereg_mr));
    In(request).Set(VABI_F(ib_uverbs_rereg_mr, mr_handle), mr_);
    In(request).Set(VABI_F(ib_uverbs_rereg_mr, flags), 4);
    In(request).Set(VABI_F(ib_uverbs_rereg_mr, access_flags), access);
    Bytes reply(world().Size(VABI_S(ib_uverbs_rereg_mr_resp)));
    return Command(kReregMr, request, &reply);
  }
  // A window of type 2 is bound to a region, which then is to go.
  long DeregBound() {
    EXPECT_GT(Reg(Memory(), 4096, 0x1 | 0x2 | 0x10), 0) << LastRule();
    Bytes request = Zero(VABI_S(ib_uverbs_alloc_mw));
    In(request).Set(VABI_F(ib_uverbs_alloc_mw, pd_handle), pd_);
    In(request).Set(VABI_F(ib_uverbs_alloc_mw, mw_type), 2);
    Bytes reply(world().Size(VABI_S(ib_uverbs_alloc_mw_resp)));
    EXPECT_GT(Command(kAllocMw, request, &reply), 0) << LastRule();
    const uint32_t window = In(reply).U32(VABI_F(ib_uverbs_alloc_mw_resp, rkey));
    Connect(Pair(), qp_.number);
    uint8_t* slot = qp_.send.Slot(qp_.send.producer());
    std::memset(slot, 0, 1u << qp_.send.log2());
    const Body wr =
        Body(world(), slot, world().Size(VABI_S(rxe_send_wqe))).Sub(VABI_F(rxe_send_wqe, wr));
    wr.Set(VABI_F(rxe_send_wr, opcode), kBindMw);
    wr.Set(VABI_F(rxe_send_wr, send_flags), kSignaled);
    wr.Set(VABI_F(rxe_send_wr, mw_addr), Memory());
    wr.Set(VABI_F(rxe_send_wr, mw_length), 64);
    wr.Set(VABI_F(rxe_send_wr, mw_mr_lkey), mr_key_);
    wr.Set(VABI_F(rxe_send_wr, mw_mw_rkey), window);
    wr.Set(VABI_F(rxe_send_wr, mw_rkey), window + 1);
    wr.Set(VABI_F(rxe_send_wr, mw_access), 2);
    qp_.send.Produce();
    EXPECT_GT(Ring(qp_), 0) << LastRule();
    EXPECT_EQ(0u, Poll(queue_).status);
    Bytes dereg = Zero(VABI_S(ib_uverbs_dereg_mr));
    In(dereg).Set(VABI_F(ib_uverbs_dereg_mr, mr_handle), mr_);
    return Command(kDeregMr, dereg, nullptr);
  }
  Bytes AhRequest() {
    Bytes request = Zero(VABI_S(ib_uverbs_create_ah));
    In(request).Set(VABI_F(ib_uverbs_create_ah, pd_handle), pd_);
    const Body attr = In(request).Sub(VABI_F(ib_uverbs_create_ah, attr));
    attr.Set(VABI_F(ib_uverbs_ah_attr, port_num), 1);
    attr.Set(VABI_F(ib_uverbs_ah_attr, is_global), 1);
    attr.Sub(VABI_F(ib_uverbs_ah_attr, grh))
        .SetBytes(VABI_F(ib_uverbs_global_route, dgid),
                  world().image().device[0].ports[0].gids[0].raw, 16);
    return request;
  }
  long Ah() {
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_ah_resp)) + 8);
    return Command(kCreateAh, AhRequest(), &reply);
  }

  long Context() {
    more_.push_back(std::make_unique<UverbsFile>(*FindDevice(0)));
    Bytes reply(world().Size(VABI_S(ib_uverbs_get_context_resp)));
    const long result = SendWrite(
        *more_.back(), LegacyCommand(kGetContext, Zero(VABI_S(ib_uverbs_get_context)), &reply, {}));
    if (result > 0) {
      fds_.push_back(static_cast<int>(In(reply).U32(VABI_F(ib_uverbs_get_context_resp, async_fd))));
    }
    return result;
  }
  long NewPd() {
    Bytes reply(world().Size(VABI_S(ib_uverbs_alloc_pd_resp)));
    return Command(kAllocPd, Zero(VABI_S(ib_uverbs_alloc_pd)), &reply);
  }
  long NewCq() {
    Bytes request = Zero(VABI_S(ib_uverbs_create_cq));
    In(request).Set(VABI_F(ib_uverbs_create_cq, cqe), 16);
    In(request).Set(VABI_F(ib_uverbs_create_cq, comp_channel), ~0u);
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_cq_resp)) + 16);
    return Command(kCreateCq, request, &reply);
  }
  long NewMw() {
    Bytes request = Zero(VABI_S(ib_uverbs_alloc_mw));
    In(request).Set(VABI_F(ib_uverbs_alloc_mw, pd_handle), pd_);
    In(request).Set(VABI_F(ib_uverbs_alloc_mw, mw_type), 1);
    Bytes reply(world().Size(VABI_S(ib_uverbs_alloc_mw_resp)));
    return Command(kAllocMw, request, &reply);
  }
  // An ordinary user, who may lock `pages`, registers two.
  long Limited(uint64_t pages) {
    world_.image().check_permissions = 1;
    world_.image().uid = 1000;
    const Memlock limit(pages);
    return Reg(Memory() | 4095, 2, 1);
  }
  // One more of a kind than a device may have that has room for so many: the answer to that.
  long Overfill(KnobId room, const std::function<long()>& make) {
    constexpr int kRoom = 6;
    world_.image().knob[Index(room)] = kRoom;
    Again();
    long result = 1;
    for (int i = 0; i <= kRoom && result > 0; ++i) result = make();
    return result;
  }

  std::vector<std::unique_ptr<UverbsFile>> more_;
  Cq queue_;
  Qp qp_;
  MappedQueue shared_;
  uint32_t srq_ = 0, mr_ = 0, last_mr_ = 0, mr_key_ = 0;
  Bytes reply_;
  std::string trace_path_;
};

using Offence = vabi::Offence<Rules>;

using T = Rules;
// clang-format off
const std::vector<Offence>& Offences() {
  static const auto* const offences = new std::vector<Offence>{
    {"debian-6.12.117", "rxe.query_device.udata", EINVAL, [](T& t) { return t.QueryDevice(Bytes(8)); }},
    {kNewest, "rxe.query_device.input", EOPNOTSUPP, [](T& t) { return t.QueryDevice(Bytes(8, 1)); }},
    {kNewest, "rxe.query_device.fault", EFAULT, [](T& t) { return t.InvokeNowhere(0x80000001, t.Zero(VABI_S(ib_uverbs_ex_query_device)),
        T::Words(t.world().Size(VABI_S(ib_uverbs_ex_query_device_resp))).size(), VABI_C(UVERBS_ATTR_UHW_IN)); }},
    {kNewest, "rxe.get_context.full", EINVAL, [](T& t) { return t.Overfill(KnobId::rxe_max_ucontext, [&] { return t.Context(); }); }},
    {"linux-5.0", "rxe.get_context.full", ENOMEM, [](T& t) { return t.Overfill(KnobId::rxe_max_ucontext, [&] { return t.Context(); }); }},
    {kNewest, "rxe.alloc_pd.full", EINVAL, [](T& t) { return t.Overfill(KnobId::rxe_max_pd, [&] { return t.NewPd(); }); }},
    {"linux-5.0", "rxe.alloc_pd.full", ENOMEM, [](T& t) { return t.Overfill(KnobId::rxe_max_pd, [&] { return t.NewPd(); }); }},
    {kNewest, "rxe.create_cq.full", EINVAL, [](T& t) { return t.Overfill(KnobId::rxe_max_cq, [&] { return t.NewCq(); }); }},
    {"linux-5.0", "rxe.create_cq.full", ENOMEM, [](T& t) { return t.Overfill(KnobId::rxe_max_cq, [&] { return t.NewCq(); }); }},
    {"debian-6.1.192", "rxe.create_cq.full.late", EINVAL, [](T& t) { return t.Overfill(KnobId::rxe_max_cq, [&] { return t.NewCq(); }); }},
    {kNewest, "rxe.create_qp.full", EINVAL, [](T& t) { return t.Overfill(KnobId::rxe_max_qp, [&] { return t.NewQp(2); }); }},
    {"debian-6.1.192", "rxe.create_qp.full", EINVAL, [](T& t) { return t.Overfill(KnobId::rxe_max_qp, [&] { return t.NewQp(2); }); }},
    {"debian-5.10.223", "rxe.create_qp.full.early", ENOMEM, [](T& t) { return t.Overfill(KnobId::rxe_max_qp, [&] { return t.NewQp(2); }); }},
    {kNewest, "rxe.create_srq.full", EINVAL, [](T& t) { return t.Overfill(KnobId::rxe_max_srq, [&] { return t.Srq(16); }); }},
    {"linux-5.0", "rxe.create_srq.full", ENOMEM, [](T& t) { return t.Overfill(KnobId::rxe_max_srq, [&] { return t.Srq(16); }); }},
    {kNewest, "rxe.reg_mr.full", EINVAL, [](T& t) { return t.Overfill(KnobId::rxe_max_mr, [&] { return t.Reg(t.Memory(), 8, 1); }); }},
    {"debian-6.1.192", "rxe.reg_mr.full", ENOMEM, [](T& t) { return t.Overfill(KnobId::rxe_max_mr, [&] { return t.Reg(t.Memory(), 8, 1); }); }},
    {kNewest, "rxe.alloc_mw.full", EINVAL, [](T& t) { return t.Overfill(KnobId::rxe_max_mw, [&] { return t.NewMw(); }); }},
    {kNewest, "rxe.create_ah.full", EINVAL, [](T& t) { return t.Overfill(KnobId::rxe_max_ah, [&] { return t.Ah(); }); }},
    {"debian-6.1.192", "rxe.create_ah.full.late", EINVAL, [](T& t) { return t.Overfill(KnobId::rxe_max_ah, [&] { return t.Ah(); }); }},
    {"linux-5.0", "rxe.create_ah.full.late", ENOMEM, [](T& t) { return t.Overfill(KnobId::rxe_max_ah, [&] { return t.Ah(); }); }},
    {kNewest, "rxe.create_cq.flags", EOPNOTSUPP, [](T& t) { return t.NewCqEx(1); }},
    {"linux-4.16", "rxe.create_cq.flags", EINVAL, [](T& t) { return t.NewCqEx(1); }},
    {"debian-6.1.192", "rxe.create_qp.input.late", EINVAL, [](T& t) { return t.NewQp(2, Bytes(8)); }},
    {kNewest, "rxe.create_qp.flags", EOPNOTSUPP, [](T& t) { return t.NewQpEx(1 << 1); }},
    {kNewest, "rxe.create_qp.type", EOPNOTSUPP, [](T& t) { return t.NewQp(8); }},
    {"debian-5.10.223", "rxe.create_qp.no_cq", EINVAL, [](T& t) { return t.NewXrcInitiator(); }},
    {"debian-5.10.223", "rxe.post_recv.srq", EINVAL, [](T& t) { t.Srq(16); return t.Receiving({.srq = t.srq_, .has_srq = true}); }},
    {"debian-5.10.223", "rxe.post_recv.sges", EINVAL, [](T& t) { return t.Receiving({.recv_sge = 0}); }},
    {"linux-4.10", "rxe.reg_mr.empty", EINVAL, [](T& t) { return t.Reg(t.Memory() | 8, 0, 1); }},
    {kNewest, "rxe.modify_qp.mask", EOPNOTSUPP, [](T& t) { return t.RateLimit(); }},
    // The kernel gives rxe no GID of RoCE v1; a world can.
    {kNewest, "rxe.av.network", EINVAL, [](T& t) { t.world_.image().device[0].ports[0].gids[0].type = 1; t.Again(); return t.Ah(); }},
    // Since 4.19 the core refuses other paths on Ethernet.
    {"linux-4.16", "rxe.modify_qp.alt_timeout", EINVAL, [](T& t) { return t.AlternatePath(32); }},
    {kNewest, "rxe.create_srq.type", EOPNOTSUPP, [](T& t) { return t.Xsrq(2); }},
    {kNewest, "rxe.modify_srq.input.fault", EFAULT, [](T& t) { t.Srq(16); return t.InvokeNowhere(33, t.SrqChange(32), 0, VABI_C(UVERBS_ATTR_UHW_IN)); }},
    {kNewest, "rxe.queue.resize.below_count", EINVAL, [](T& t) { t.Srq(63); for (uint64_t i = 0; i < 40; ++i) t.Receive(t.shared_, i, {});
        return t.Command(33, t.SrqChange(8), nullptr, Bytes(8)); }},
    {kNewest, "rxe.reg_mr.fault", EFAULT, [](T& t) { return t.Reg(65536, 8, 1); }},
    {"debian-5.10.223", "rxe.reg_mr.fault", EFAULT, [](T& t) { return t.Reg(65536, 8, 1); }},
    {"linux-5.9", "rxe.reg_mr.fault", EINVAL, [](T& t) { return t.Reg(65536, 8, 1); }},
    {kNewest, "rxe.reg_mr.memlock", ENOMEM, [](T& t) { return t.Limited(1); }},
    {"linux-5.9", "rxe.reg_mr.memlock", EINVAL, [](T& t) { return t.Limited(1); }},
    {kNewest, "rxe.reg_mr.no_lock", EPERM, [](T& t) { return t.Limited(0); }},
    {"linux-5.9", "rxe.reg_mr.no_lock", EINVAL, [](T& t) { return t.Limited(0); }},
    {kNewest, "rxe.reg_mr.on_demand.implicit", EOPNOTSUPP, [](T& t) { return t.Reg(0, UINT64_MAX, 0x41); }},
    {"debian-7.2.13", "rxe.reg_mr.on_demand.implicit", EINVAL, [](T& t) { return t.Reg(0, UINT64_MAX, 0x41); }},
    {kNewest, "rxe.dereg_mr.bound", EINVAL, [](T& t) { return t.DeregBound(); }},
    {kNewest, "rxe.rereg_mr.access", EOPNOTSUPP, [](T& t) { return t.ReregAccess(0x20); }},
    {kNewest, "rxe.create_ah.fault", EFAULT, [](T& t) { return t.InvokeNowhere(5, t.AhRequest(), t.world().Size(VABI_S(ib_uverbs_create_ah_resp)), VABI_C(UVERBS_ATTR_UHW_OUT)); }},
  };
  return *offences;
}
// clang-format on

class EachRxeRule : public testing::TestWithParam<size_t> {};

TEST_P(EachRxeRule, RefusesWithItsErrnoAndName) { ExpectRefusal(Offences()[GetParam()]); }

// rxe_param.h of 5.10: RXE_MAX_PD 0x7ffc, of which the kernel's MAD layer has one (core/mad.c:
// ib_mad_port_open); RXE_MAX_AH 100 and RXE_MAX_SRQ 960, of which it has none.
TEST(RxeLimits, AreTheKernels) {
  Rules t("debian-5.10.223");
  const auto count = [](const std::function<long()>& make) {
    int made = 0;
    while (made < 40000 && make() > 0) ++made;
    return made;
  };
  EXPECT_EQ(0x7ffc - 1 - 1, count([&] { return t.NewPd(); })) << "the fixture has one";
  EXPECT_EQ("rxe.alloc_pd.full", t.LastRule());
  EXPECT_EQ(100, count([&] { return t.Ah(); }));
  EXPECT_EQ(960, count([&] { return t.Srq(1); }));
}

// rxe_param.h:RXE_MAX_UCONTEXT: 512 up to 5.14, 1 << 20 in 5.17
TEST(RxeLimits, OfContexts) {
  for (const auto& [kernel, most] : {std::pair{"linux-5.14", 512}, {"debian-6.1.192", 600}}) {
    Rules t(kernel);
    int open = 1;
    while (open < 600 && t.Context() > 0) ++open;
    EXPECT_EQ(most, open) << kernel << ": " << t.LastRule();
  }
}

// A place is free again with its object.
TEST(RxeLimits, CountWhatThereIs) {
  Rules t(kNewest);
  EXPECT_EQ(-EINVAL, t.Overfill(KnobId::rxe_max_mr, [&] { return t.Reg(t.Memory(), 8, 1); }));
  Bytes dereg = t.Zero(VABI_S(ib_uverbs_dereg_mr));
  t.In(dereg).Set(VABI_F(ib_uverbs_dereg_mr, mr_handle), t.last_mr_);
  EXPECT_GT(t.Command(13, dereg, nullptr), 0) << t.LastRule();
  EXPECT_GT(t.Reg(t.Memory(), 8, 1), 0) << t.LastRule();
  EXPECT_EQ(-EINVAL, t.Reg(t.Memory(), 8, 1));
}

// Where the place is taken first, the address is not looked at any more (6.6); before, it decided.
TEST(RxeLimits, StandWhereEachKernelLooks) {
  for (const bool newest : {true, false}) {
    Rules t(newest ? kNewest : "debian-6.1.192");
    t.world_.image().device[0].ports[0].gids[0].type = 1;  // RoCE v1: no IP network
    t.world_.image().knob[Index(KnobId::rxe_max_ah)] = 0;
    t.Again();
    EXPECT_EQ(-EINVAL, t.Ah());
    EXPECT_EQ(newest ? "rxe.create_ah.full" : "rxe.av.network", t.LastRule());
  }
}

INSTANTIATE_TEST_SUITE_P(All, EachRxeRule, testing::Range(size_t{0}, Offences().size()),
                         [](const auto& info) { return CaseName(Offences()[info.param]); });

}  // namespace
}  // namespace vabi::rxe
