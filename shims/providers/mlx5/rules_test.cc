// SPDX-License-Identifier: BSD-2-Clause
// One offence for each rule of mlx5 that no other test comes by: the errno of
// drivers/infiniband/hw/mlx5 in the kernel named (file and function stand in abi.def), and which
// rule answered.
#include <fcntl.h>

#include "shims/fabric/address.h"
#include "shims/providers/mlx5/state.h"
#include "shims/providers/mlx5/test_mlx5.h"
#include "shims/providers/test_offence.h"
#include "shims/uverbs/context.h"
#include "shims/uverbs/mr_access.h"

namespace vabi::mlx5 {
namespace {

constexpr char kNewest[] = "debian-7.3.4";

#define CQ(field) VABI_F(mlx5_ib_create_cq, field)
#define QP(field) VABI_F(mlx5_ib_create_qp, field)
#define RSS(field) VABI_F(mlx5_ib_create_qp_rss, field)
#define WQ(field) VABI_F(mlx5_ib_create_wq, field)
#define SRQ(field) VABI_F(mlx5_ib_create_srq, field)
#define UCTX(field) VABI_F(mlx5_ib_alloc_ucontext_req_v2, field)
#define EXQP(field) VABI_F(ib_uverbs_ex_create_qp, field)
#define EXWQ(field) VABI_F(ib_uverbs_ex_create_wq, field)

Bytes Longer(Struct request, size_t more = 8) {
  Bytes bytes = request.bytes();
  bytes.resize(bytes.size() + more);
  bytes.back() = 1;
  return bytes;
}
Bytes Cut(Struct request, size_t length) {
  Bytes bytes = request.bytes();
  bytes.resize(length);
  return bytes;
}
// One byte of it is 1.
Bytes With1(Struct request, size_t at) {
  Bytes bytes = request.bytes();
  bytes[at] = 1;
  return bytes;
}

class Rules : public Mlx5Test {
 public:
  explicit Rules(const char* kernel) : Mlx5Test(kernel) {}
  void TestBody() override {}

  using Mlx5Test::C;
  using Mlx5Test::CqPrivate;
  using Mlx5Test::file_;
  using Mlx5Test::image;
  using Mlx5Test::kUarPageIndex;
  using Mlx5Test::LastRule;
  using Mlx5Test::lkey_;
  using Mlx5Test::memory_;
  using Mlx5Test::Modify;
  using Mlx5Test::ModifyRequest;
  using Mlx5Test::Mr;
  using Mlx5Test::OpenContext;
  using Mlx5Test::Pd;
  using Mlx5Test::pd_;
  using Mlx5Test::Qp;
  using Mlx5Test::QpPrivate;
  using Mlx5Test::Reinstall;
  using Mlx5Test::S;
  using Mlx5Test::Settle;
  using Mlx5Test::SrqPrivate;
  using Mlx5Test::ToInit;
  using Mlx5Test::ToRtr;
  using Mlx5Test::ToRts;
  using Mlx5Test::world;
  using Mlx5Test::Write;
  using Mlx5Test::WriteEx;

  // The NIC's port, before a context is there.
  void Ethernet() {
    image().device[0].link = LinkLayer::kEthernet;
    Reinstall();
  }
  void NotRoot() {
    image().check_permissions = 1;
    image().uid = 1000;
  }

  // Contexts
  long Context(Struct request) {
    Bytes reply(72);
    return GetContext(request.bytes(), &reply);
  }
  Struct Uctx(uint64_t lib_caps = 0, uint32_t flags = 0) { return ContextRequest(lib_caps, flags); }

  // ioctl methods
  Request New(uint64_t object, uint64_t method) {
    return Request(static_cast<uint16_t>(object), static_cast<uint16_t>(method),
                   image().device[0].driver_id);
  }
  Request New(ConstId object, ConstId method) {
    return New(static_cast<uint64_t>(C(object)), static_cast<uint64_t>(C(method)));
  }
  long Ioctl(Request& request) { return SendIoctl(*file_, request); }
  long Go(Request request) { return Ioctl(request); }
  void AddUhw(Request* call, const Bytes& in) { call->AddIn(C(VABI_C(UVERBS_ATTR_UHW_IN)), in); }
  // Room for the driver's reply.
  void AddRoom(Request* call, size_t length) {
    call->AddOut(C(VABI_C(UVERBS_ATTR_UHW_OUT)), out_).len = static_cast<uint16_t>(length);
  }
  Request CqMethod() {
    Request call = New(VABI_C(UVERBS_OBJECT_CQ), VABI_C(UVERBS_METHOD_CQ_CREATE));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_CQ_HANDLE)));
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE)), 4, 15);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_CQ_USER_HANDLE)), 8, 0);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR)), 4, 0);
    call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_CQ_RESP_CQE)), word_).len = 4;
    return call;
  }
  Request WqMethod() {
    Request call = New(VABI_C(UVERBS_OBJECT_WQ), VABI_C(UVERBS_METHOD_WQ_CREATE));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_WQ_HANDLE)));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_WQ_PD_HANDLE)), pd_);
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_WQ_CQ_HANDLE)), Queue().handle);
    call.AddConst(C(VABI_C(UVERBS_ATTR_CREATE_WQ_TYPE)), 0);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_WQ_USER_HANDLE)), 8, 1);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_WQ_MAX_WR)), 4, 16);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_WQ_MAX_SGE)), 4, 1);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_WQ_FLAGS)), 4, 0);
    call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR)), word_).len = 4;
    call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE)), word_).len = 4;
    call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM)), word_).len = 4;
    AddUhw(&call, WqPrivate().bytes());
    return call;
  }
  // DEVICE.INVOKE_WRITE of an extended command, with `room` bytes for the driver's reply.
  Request InvokeEx(uint32_t command, const Bytes& core, size_t reply, const Bytes& driver,
                   size_t room) {
    core_ = core;
    Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_INVOKE_WRITE));
    call.AddConst(C(VABI_C(UVERBS_ATTR_WRITE_CMD)), command | 0x80000000);
    call.AddIn(C(VABI_C(UVERBS_ATTR_CORE_IN)), core_);
    call.AddOut(C(VABI_C(UVERBS_ATTR_CORE_OUT)), reply_).len = static_cast<uint16_t>(reply);
    driver_ = driver;
    if (!driver_.empty()) AddUhw(&call, driver_);
    if (room != 0) AddRoom(&call, room);
    return call;
  }
  Request Uar(uint64_t type = 0) {
    Request call = New(VABI_C(MLX5_IB_OBJECT_UAR), VABI_C(MLX5_IB_METHOD_UAR_OBJ_ALLOC));
    call.AddHandle(C(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE)));
    call.AddConst(C(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE)), type);
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID)), word_).len = 4;
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH)), word_).len = 4;
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET)), out_).len = 8;
    return call;
  }
  long Map(uint64_t offset, size_t length, int protection = PROT_READ | PROT_WRITE) {
    const long at =
        file_->Mmap(nullptr, length, protection, MAP_SHARED, static_cast<int64_t>(offset));
    if (at < 0 && at > -4096) return at;
    munmap(reinterpret_cast<void*>(at), length);
    return 0;
  }
  Request Matcher(uint8_t type, uint8_t reserved) {
    Request call =
        New(VABI_C(MLX5_IB_OBJECT_FLOW_MATCHER), VABI_C(MLX5_IB_METHOD_FLOW_MATCHER_CREATE));
    RawAttr& kind = call.Add(C(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE)), 2, 0);
    kind.elem_id = type;
    kind.elem_reserved = reserved;
    return call;
  }
  Request Port(uint32_t port) {
    Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(MLX5_IB_METHOD_QUERY_PORT));
    call.Add(C(VABI_C(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM)), 4, port);
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_QUERY_PORT)), out_);
    return call;
  }
  Request Devx(uint16_t opcode) {
    core_ = Bytes(16);
    Put16(core_.data(), opcode);
    Request call = New(VABI_C(MLX5_IB_OBJECT_DEVX), VABI_C(MLX5_IB_METHOD_DEVX_OTHER));
    call.AddIn(C(VABI_C(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN)), core_);
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT)), out_).len = 16;
    return call;
  }
  Request DevxNumber(ConstId method, ConstId in, ConstId out, uint32_t number) {
    Request call = New(VABI_C(MLX5_IB_OBJECT_DEVX), method);
    call.Add(C(in), 4, number);
    call.AddOut(C(out), word_).len = 4;
    return call;
  }
  Request Dm(uint64_t length, uint32_t log_alignment = 0, int type = -1) {
    Request call = New(VABI_C(UVERBS_OBJECT_DM), VABI_C(UVERBS_METHOD_DM_ALLOC));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_ALLOC_DM_HANDLE)));
    call.Add(C(VABI_C(UVERBS_ATTR_ALLOC_DM_LENGTH)), 8, length);
    call.Add(C(VABI_C(UVERBS_ATTR_ALLOC_DM_ALIGNMENT)), 4, log_alignment);
    call.AddOut(C(VABI_C(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET)), out_).len = 8;
    if (type >= 0)
      call.AddConst(C(VABI_C(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE)), static_cast<uint64_t>(type));
    return call;
  }
  uint64_t MakeDm() {
    Request call = Dm(4096);
    EXPECT_EQ(0, Ioctl(call)) << LastRule();
    return call.attrs()[0].data;
  }
  Request DmMr(uint32_t access) {
    Request call = New(VABI_C(UVERBS_OBJECT_MR), VABI_C(UVERBS_METHOD_DM_MR_REG));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_REG_DM_MR_HANDLE)));
    call.Add(C(VABI_C(UVERBS_ATTR_REG_DM_MR_OFFSET)), 8, 0);
    call.Add(C(VABI_C(UVERBS_ATTR_REG_DM_MR_LENGTH)), 8, 4096);
    call.AddHandle(C(VABI_C(UVERBS_ATTR_REG_DM_MR_PD_HANDLE)), pd_);
    call.Add(C(VABI_C(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS)), 4, access);
    call.AddHandle(C(VABI_C(UVERBS_ATTR_REG_DM_MR_DM_HANDLE)), MakeDm());
    call.AddOut(C(VABI_C(UVERBS_ATTR_REG_DM_MR_RESP_LKEY)), word_).len = 4;
    call.AddOut(C(VABI_C(UVERBS_ATTR_REG_DM_MR_RESP_RKEY)), word_).len = 4;
    return call;
  }
  Request Advise(uint64_t advice, uint32_t key, uint32_t pd, uint32_t flags = 0,
                 uint32_t length = 64) {
    Struct sge = S(VABI_S(ib_uverbs_sge))
                     .With(VABI_F(ib_uverbs_sge, addr), Address(memory_.base()))
                     .With(VABI_F(ib_uverbs_sge, length), length)
                     .With(VABI_F(ib_uverbs_sge, lkey), key);
    core_ = sge.bytes();
    Request call = New(VABI_C(UVERBS_OBJECT_MR), VABI_C(UVERBS_METHOD_ADVISE_MR));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_ADVISE_MR_PD_HANDLE)), pd);
    call.AddConst(C(VABI_C(UVERBS_ATTR_ADVISE_MR_ADVICE)), advice);
    call.Add(C(VABI_C(UVERBS_ATTR_ADVISE_MR_FLAGS)), 4, flags);
    call.AddIn(C(VABI_C(UVERBS_ATTR_ADVISE_MR_SGE_LIST)), core_);
    return call;
  }
  // A region that is paged on demand.
  uint32_t Paged(uint32_t access) {
    uint32_t key = 0;
    EXPECT_GT(Mr(memory_.base(), 4096, &key, access | kOnDemand), 0) << LastRule();
    return key;
  }

  // Regions
  long RegMr(uint64_t start, uint64_t length, uint64_t iova, uint32_t access) {
    MrMade mr;
    const long result = Mlx5Test::RegMr(start, length, iova, access, &mr);
    mr_ = mr.handle;
    return result;
  }
  long ReregAccess(uint32_t access) {
    Bytes reply(8);
    return Write(11,
                 S(VABI_S(ib_uverbs_rereg_mr))
                     .With(VABI_F(ib_uverbs_rereg_mr, mr_handle), mr_)
                     .With(VABI_F(ib_uverbs_rereg_mr, flags), 4)
                     .With(VABI_F(ib_uverbs_rereg_mr, access_flags), access),
                 &reply);
  }
  long Window(const Bytes& driver) {
    Bytes reply(8);
    return Write(kAllocMw,
                 S(VABI_S(ib_uverbs_alloc_mw))
                     .With(VABI_F(ib_uverbs_alloc_mw, pd_handle), pd_)
                     .With(VABI_F(ib_uverbs_alloc_mw, mw_type), 1),
                 &reply, driver);
  }

  // Completion queues
  Cq& Queue() {
    if (queue_.number == 0) MakeCq(&queue_);
    return queue_;
  }
  Struct CqDriver() { return CqPrivate(ring_); }
  long NewCq(const Bytes& driver) { return MakeCq(&ring_, driver); }
  long NewCqEx(uint32_t cqe, uint32_t flags) {
    Bytes reply((world().Size(VABI_S(ib_uverbs_ex_create_cq_resp)) + 7) / 8 * 8 + 8);
    return WriteEx(18,
                   S(VABI_S(ib_uverbs_ex_create_cq))
                       .With(VABI_F(ib_uverbs_ex_create_cq, cqe), cqe)
                       .With(VABI_F(ib_uverbs_ex_create_cq, comp_channel), ~0u)
                       .With(VABI_F(ib_uverbs_ex_create_cq, flags), flags)
                       .bytes(),
                   &reply, CqDriver().bytes(), 8);
  }
  Struct Resizing() {
    return S(VABI_S(mlx5_ib_resize_cq))
        .With(VABI_F(mlx5_ib_resize_cq, buf_addr), Address(memory_.base()))
        .With(VABI_F(mlx5_ib_resize_cq, cqe_size), 64);
  }
  long Resize(uint32_t cqe, const Bytes& driver) {
    Bytes reply(8);
    return Write(kResizeCq,
                 S(VABI_S(ib_uverbs_resize_cq))
                     .With(VABI_F(ib_uverbs_resize_cq, cq_handle), Queue().handle)
                     .With(VABI_F(ib_uverbs_resize_cq, cqe), cqe),
                 &reply, driver);
  }
  long Moderate(uint16_t period) {
    Struct request = S(VABI_S(ib_uverbs_ex_modify_cq))
                         .With(VABI_F(ib_uverbs_ex_modify_cq, cq_handle), Queue().handle)
                         .With(VABI_F(ib_uverbs_ex_modify_cq, attr_mask), 1);
    request.Sub(VABI_F(ib_uverbs_ex_modify_cq, attr))
        .Set(VABI_F(ib_uverbs_cq_moderation, cq_period), period);
    return WriteEx(57, request.bytes(), nullptr);
  }

  // Queue pairs
  Struct QpDriver() { return QpPrivate(qp_); }
  long NewQp(const Bytes& driver, uint8_t type = 2) {
    qp_.type = type;
    return MakeQp(Queue(), Queue(), &qp_, driver);
  }
  Qp& Pair(uint8_t type = 2) {
    EXPECT_GT(NewQp(QpDriver().bytes(), type), 0) << LastRule();
    return qp_;
  }
  long NewQpEx(std::initializer_list<std::pair<FieldId, uint64_t>> fields, const Bytes& driver,
               uint16_t driver_out = 40) {
    Struct request = S(VABI_S(ib_uverbs_ex_create_qp));
    request.Set(EXQP(pd_handle), pd_);
    request.Set(EXQP(qp_type), 2);
    for (const auto& [field, value] : fields) request.Set(field, value);
    const size_t core = (world().Size(VABI_S(ib_uverbs_ex_create_qp_resp)) + 7) / 8 * 8;
    Bytes reply(core + driver_out);
    const long result = WriteEx(24, request.bytes(), &reply, driver, driver_out);
    qp_.handle = In(reply).U32(VABI_F(ib_uverbs_create_qp_resp, qp_handle));
    return result;
  }
  long NewRss(const Bytes& driver, uint64_t create_flags = 0, bool sends = false,
              uint16_t driver_out = 40, uint8_t type = 8) {
    const uint32_t table = MakeTable();
    return NewQpEx({{EXQP(comp_mask), 1},
                    {EXQP(qp_type), type},
                    {EXQP(rwq_ind_tbl_handle), table},
                    {EXQP(create_flags), create_flags},
                    {EXQP(send_cq_handle), sends ? Queue().handle : 0},
                    {EXQP(max_send_wr), sends}},
                   driver, driver_out);
  }
  Struct RssDriver() {
    return S(VABI_S(mlx5_ib_create_qp_rss))
        .With(RSS(rx_hash_fields_mask), 1 | 2)
        .With(RSS(rx_hash_function), 1)
        .With(RSS(rx_key_len), 40);
  }
  // Extended MODIFY_QP from RESET to INIT.
  long InitEx(const Bytes& driver) {
    Bytes request = ModifyRequest(Pair(), 0x1 | 0x10 | 0x20 | 0x8,
                                  {{MODIFY(qp_state), 1}, {MODIFY(port_num), 1}})
                        .bytes();
    request.resize(world().Size(VABI_S(ib_uverbs_ex_modify_qp)));
    return WriteEx(26, request, nullptr, driver);
  }
  static constexpr uint32_t kRtrMask = 0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000;
  // To RTR, with one value of the destination changed.
  long RtrTo(FieldId field, uint64_t value) {
    EXPECT_GT(ToInit(Pair()), 0) << LastRule();
    Struct request = ModifyRequest(
        qp_, kRtrMask,
        {{MODIFY(qp_state), 2}, {MODIFY(path_mtu), 3}, {MODIFY(max_dest_rd_atomic), 1}});
    request.Sub(MODIFY(dest)).Set(field, value);
    return Write(kModifyQp, request, nullptr);
  }
  void Connect() { Mlx5Test::Connect(Pair(), qp_.number); }
  long Query() {
    Bytes reply(world().Size(VABI_S(ib_uverbs_query_qp_resp)));
    return Write(
        kQueryQp,
        S(VABI_S(ib_uverbs_query_qp)).With(VABI_F(ib_uverbs_query_qp, qp_handle), qp_.handle),
        &reply);
  }
  long Multicast(uint32_t command) {
    Struct request = S(VABI_S(ib_uverbs_attach_mcast))
                         .With(VABI_F(ib_uverbs_attach_mcast, qp_handle), qp_.handle)
                         .With(VABI_F(ib_uverbs_attach_mcast, mlid), 0xc001);
    request.SetBytes(VABI_F(ib_uverbs_attach_mcast, gid), kGroup, sizeof(kGroup));
    return Write(command, request, nullptr);
  }
  static constexpr uint8_t kGroup[16] = {0xff, 0x12};

  // Work queues
  Struct WqPrivate() {
    return S(VABI_S(mlx5_ib_create_wq))
        .With(WQ(buf_addr), Address(qp_.ring.base()))
        .With(WQ(db_addr), Address(qp_.record.base()))
        .With(WQ(rq_wqe_count), 16)
        .With(WQ(rq_wqe_shift), 5)
        .With(WQ(user_index), 0x55);
  }
  long NewWq(const Bytes& driver, std::initializer_list<std::pair<FieldId, uint64_t>> fields = {}) {
    Struct request = S(VABI_S(ib_uverbs_ex_create_wq));
    request.Set(EXWQ(pd_handle), pd_);
    request.Set(EXWQ(cq_handle), Queue().handle);
    request.Set(EXWQ(max_wr), 16);
    request.Set(EXWQ(max_sge), 1);
    for (const auto& [field, value] : fields) request.Set(field, value);
    Bytes reply((world().Size(VABI_S(ib_uverbs_ex_create_wq_resp)) + 7) / 8 * 8 + 8);
    const long result = WriteEx(52, request.bytes(), &reply, driver, 8);
    wq_ = In(reply).U32(VABI_F(ib_uverbs_ex_create_wq_resp, wq_handle));
    return result;
  }
  void MakeWq() { EXPECT_GT(NewWq(WqPrivate().bytes()), 0) << LastRule(); }
  long ModifyWq(const Bytes& driver, uint32_t mask = 1, uint32_t flags = 0) {
    return WriteEx(53,
                   S(VABI_S(ib_uverbs_ex_modify_wq))
                       .With(VABI_F(ib_uverbs_ex_modify_wq, attr_mask), mask)
                       .With(VABI_F(ib_uverbs_ex_modify_wq, wq_handle), wq_)
                       .With(VABI_F(ib_uverbs_ex_modify_wq, wq_state), 1)
                       .With(VABI_F(ib_uverbs_ex_modify_wq, flags), flags)
                       .With(VABI_F(ib_uverbs_ex_modify_wq, flags_mask), flags)
                       .bytes(),
                   nullptr, driver);
  }
  Bytes TableRequest(uint32_t log_size) {
    Struct request =
        S(VABI_S(ib_uverbs_ex_create_rwq_ind_table))
            .With(VABI_F(ib_uverbs_ex_create_rwq_ind_table, log_ind_tbl_size), log_size);
    Bytes bytes = request.bytes();
    const size_t start = bytes.size();
    bytes.resize(start + (size_t{4} << log_size));
    for (size_t at = start; at < bytes.size(); at += 4) std::memcpy(bytes.data() + at, &wq_, 4);
    bytes.resize((bytes.size() + 7) / 8 * 8);
    return bytes;
  }
  long NewTable(uint32_t log_size) {
    Bytes reply((world().Size(VABI_S(ib_uverbs_ex_create_rwq_ind_table_resp)) + 7) / 8 * 8);
    const long result = WriteEx(55, TableRequest(log_size), &reply);
    table_ = In(reply).U32(VABI_F(ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_handle));
    return result;
  }
  uint32_t MakeTable() {
    if (table_log_ >= 0) {
      MakeWq();
      EXPECT_GT(NewTable(static_cast<uint32_t>(table_log_)), 0) << LastRule();
    }
    return table_;
  }
  int table_log_ = 0;  // of the next table's size

  // Shared receive queues
  Struct SrqDriver() { return SrqPrivate(srq_); }
  long NewSrq(const Bytes& driver, uint32_t max_sge = 1) { return MakeSrq(&srq_, driver, max_sge); }
  long NewXsrq(uint32_t type, const Bytes& driver) {
    Bytes xrcd(8);
    EXPECT_GT(Write(37,
                    S(VABI_S(ib_uverbs_open_xrcd))
                        .With(VABI_F(ib_uverbs_open_xrcd, fd), ~0u)
                        .With(VABI_F(ib_uverbs_open_xrcd, oflags), O_CREAT),
                    &xrcd),
              0)
        << LastRule();
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_srq_resp)) + 8);
    return Write(39,
                 S(VABI_S(ib_uverbs_create_xsrq))
                     .With(VABI_F(ib_uverbs_create_xsrq, srq_type), type)
                     .With(VABI_F(ib_uverbs_create_xsrq, pd_handle), pd_)
                     .With(VABI_F(ib_uverbs_create_xsrq, max_wr), 15)
                     .With(VABI_F(ib_uverbs_create_xsrq, max_sge), 1)
                     .With(VABI_F(ib_uverbs_create_xsrq, xrcd_handle),
                           In(xrcd).U32(VABI_F(ib_uverbs_open_xrcd_resp, xrcd_handle)))
                     .With(VABI_F(ib_uverbs_create_xsrq, cq_handle), Queue().handle),
                 &reply, driver);
  }
  long ModifySrq(uint32_t mask, uint32_t max_wr, uint32_t limit) {
    EXPECT_GT(NewSrq(SrqDriver().bytes()), 0) << LastRule();
    return Write(kModifySrq,
                 S(VABI_S(ib_uverbs_modify_srq))
                     .With(VABI_F(ib_uverbs_modify_srq, srq_handle), srq_.handle)
                     .With(VABI_F(ib_uverbs_modify_srq, attr_mask), mask)
                     .With(VABI_F(ib_uverbs_modify_srq, max_wr), max_wr)
                     .With(VABI_F(ib_uverbs_modify_srq, srq_limit), limit),
                 nullptr);
  }

  // Address handles
  long Ah(bool global, uint8_t rate, size_t room) {
    Struct request =
        S(VABI_S(ib_uverbs_create_ah)).With(VABI_F(ib_uverbs_create_ah, pd_handle), pd_);
    const Body attr = request.Sub(VABI_F(ib_uverbs_create_ah, attr));
    attr.Set(VABI_F(ib_uverbs_ah_attr, port_num), 1);
    attr.Set(VABI_F(ib_uverbs_ah_attr, dlid), 1);
    attr.Set(VABI_F(ib_uverbs_ah_attr, static_rate), rate);
    attr.Set(VABI_F(ib_uverbs_ah_attr, is_global), global);
    attr.Sub(VABI_F(ib_uverbs_ah_attr, grh))
        .SetBytes(VABI_F(ib_uverbs_global_route, dgid), image().device[0].ports[0].gids[0].raw, 16);
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_ah_resp)) + room);
    return Write(5, request, &reply);
  }
  // EX_QUERY_DEVICE
  Bytes DeviceRequest() { return S(VABI_S(ib_uverbs_ex_query_device)).bytes(); }
  size_t DeviceReply() {
    return (world().Size(VABI_S(ib_uverbs_ex_query_device_resp)) + 7) / 8 * 8;
  }

  Cq queue_{64}, ring_{16};
  Srq srq_{16};
  Qp qp_;
  uint32_t wq_ = 0, table_ = 0, mr_ = 0;
  Bytes out_ = Bytes(512), word_ = Bytes(8), core_, driver_, reply_ = Bytes(512);
};

using Offence = vabi::Offence<Rules>;

using T = Rules;

// What most offences begin with.
std::function<long(T&)> Open(std::function<long(T&)> commit) {
  return [commit](T& t) {
    t.OpenContext();
    return commit(t);
  };
}
std::function<long(T&)> OnEthernet(std::function<long(T&)> commit) {
  return [commit](T& t) {
    t.Ethernet();
    t.OpenContext();
    return commit(t);
  };
}

// clang-format off
const std::vector<Offence>& Offences() {
  static const auto* const offences = new std::vector<Offence>{
    // main.c:mlx5_ib_alloc_ucontext
    {"linux-4.4", "mlx5.ucontext.reserved.first", EINVAL, [](T& t) { return t.Context(t.Uctx().With(UCTX(reserved), 1)); }},
    {"linux-4.10", "mlx5.ucontext.bfregs.zero.first", EINVAL, [](T& t) { return t.Context(t.Uctx().With(UCTX(total_num_uuars), 0).With(UCTX(num_low_latency_uuars), 0)); }},
    {kNewest, "mlx5.ucontext.low_latency", EINVAL, [](T& t) { return t.Context(t.Uctx().With(UCTX(num_low_latency_bfregs), 16)); }},
    {"linux-4.19", "mlx5.ucontext.devx.link", EPERM, [](T& t) { return t.Context(t.Uctx(0, 1)); }},

    // core/uverbs_ioctl.c:uverbs_process_attr, for the kinds of attributes that only mlx5's methods have
    {kNewest, "ioctl.enum.unknown", EOPNOTSUPP, Open([](T& t) { return t.Go(t.Matcher(4, 0)); })},
    {kNewest, "ioctl.enum.reserved", EINVAL, Open([](T& t) { return t.Go(t.Matcher(0, 1)); })},
    {kNewest, "ioctl.array.length", EINVAL, Open([](T& t) { Request call = t.New(VABI_C(UVERBS_OBJECT_FLOW), VABI_C(MLX5_IB_METHOD_CREATE_FLOW));
        call.AddIn(t.C(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS)), t.out_).len = 12; return t.Go(call); })},

    // Private requests and replies, whichever command they belong to
    {kNewest, "mlx5.request.fault", EFAULT, Open([](T& t) { Request call = t.CqMethod(); call.Add(t.C(VABI_C(UVERBS_ATTR_UHW_IN)), 32, 64); return t.Go(call); })},
    {kNewest, "mlx5.reply.fault", EFAULT, Open([](T& t) { Request call = t.CqMethod(); Bytes own = t.CqDriver().bytes(); t.AddUhw(&call, own);
        call.Add(t.C(VABI_C(UVERBS_ATTR_UHW_OUT)), 16, 64); return t.Go(call); })},
    {kNewest, "mlx5.no_context", EINVAL, [](T& t) { return t.Go(t.Port(1)); }},

    // main.c:mlx5_ib_mmap, ib_core_uverbs.c
    {kNewest, "mlx5.mmap.clock_info.length", EINVAL, Open([](T& t) { return t.Map(7 << 20, 8192, PROT_READ); })},
    {kNewest, "mlx5.mmap.entry.length", EINVAL, Open([](T& t) { Request call = t.Uar(); EXPECT_EQ(0, t.Ioctl(call)) << t.LastRule();
        uint64_t offset; std::memcpy(&offset, t.out_.data(), 8); return t.Map(offset, 8192); })},
    // One entry as long as all offsets: sixteen million objects are too many for a test.
    {kNewest, "mlx5.mmap.entries_full", ENOMEM, Open([](T& t) { ContextState& state = StateOf(*t.file_->context());
        EXPECT_NE(0u, state.Insert(9, 255, {MapEntry::Kind::kUarNonCached, uint64_t{247 << 16} * 4096, 0})); return t.Go(t.Uar()); })},
    {kNewest, "mlx5.uar.type", EOPNOTSUPP, Open([](T& t) { return t.Go(t.Uar(2)); })},

    // umem.c:ib_umem_get, doorbell.c
    {kNewest, "mlx5.memory.range", EINVAL, Open([](T& t) { return t.RegMr(~uint64_t{4095}, 8192, ~uint64_t{4095}, 1); })},
    {"debian-6.12.117", "mlx5.memory.nothing", EINVAL, Open([](T& t) { const uint64_t at = Address(t.memory_.base()); return t.RegMr(at, 0, at, kOnDemand); })},
    {kNewest, "mlx5.memory.odp_range", EOVERFLOW, Open([](T& t) { return t.RegMr(~uint64_t{4095}, 8192, ~uint64_t{4095}, kOnDemand); })},
    {"debian-6.12.117", "mlx5.memory.odp_range", EOVERFLOW, Open([](T& t) { return t.RegMr(~uint64_t{8191}, 8190, ~uint64_t{8191}, kOnDemand); })},
    {"linux-5.3", "mlx5.memory.odp_range", EINVAL, Open([](T& t) { return t.RegMr(~uint64_t{4095}, 8192, ~uint64_t{4095}, kOnDemand); })},
    {"linux-6.6", "mlx5.memory.nothing", EINVAL, Open([](T& t) { return t.RegMr(Address(t.memory_.base()), 1ULL << 50, Address(t.memory_.base()), 1); })},
    {kNewest, "mlx5.memory.nothing", EINVAL, Open([](T& t) { return t.RegMr(Address(t.memory_.base()), 0, Address(t.memory_.base()), 1); })},
    {kNewest, "mlx5.doorbell.straddles", EINVAL, Open([](T& t) { return t.NewCq(t.CqDriver().With(CQ(db_addr), Address(t.memory_.base()) + 4092).bytes()); })},

    // cq.c
    {kNewest, "mlx5.create_cq.entries", EINVAL, Open([](T& t) { return t.NewCqEx((1 << 22) + 1, 0); })},
    {kNewest, "mlx5.create_cq.flags", EOPNOTSUPP, Open([](T& t) { return t.NewCqEx(15, 4); })},
    {"linux-4.10", "mlx5.create_cq.flags", EOPNOTSUPP, Open([](T& t) { return t.NewCqEx(15, 4); })},
    {kNewest, "mlx5.create_cq.length", EINVAL, Open([](T& t) { return t.NewCq(Cut(t.CqDriver(), 16)); })},
    {kNewest, "mlx5.create_cq.padding", EOPNOTSUPP, Open([](T& t) { return t.NewCq(t.CqDriver().With(CQ(flags), 1).bytes()); })},
    {kNewest, "mlx5.resize_cq.entries", EINVAL, Open([](T& t) { return t.Resize((1 << 22) + 1, t.Resizing().bytes()); })},
    {"debian-6.12.117", "mlx5.resize_cq.entries", EINVAL, Open([](T& t) { return t.Resize(0, t.Resizing().bytes()); })},
    {kNewest, "mlx5.resize_cq.length", EINVAL, Open([](T& t) { return t.Resize(127, Cut(t.Resizing(), 12)); })},
    {kNewest, "mlx5.resize_cq.tail", EOPNOTSUPP, Open([](T& t) { return t.Resize(127, Longer(t.Resizing())); })},
    {kNewest, "mlx5.resize_cq.reserved", EINVAL, Open([](T& t) { return t.Resize(127, t.Resizing().With(VABI_F(mlx5_ib_resize_cq, reserved0), 1).bytes()); })},
    {kNewest, "mlx5.modify_cq.period", EINVAL, Open([](T& t) { return t.Moderate(0x1000); })},

    // qp.c:mlx5_ib_create_qp
    {kNewest, "mlx5.create_qp.raw_index", EINVAL, [](T& t) { t.Ethernet(); t.Context(t.Uctx().With(UCTX(max_cqe_version), 0)); t.pd_ = t.Pd();
        return t.NewQp(t.QpDriver().bytes(), 8); }},
    {kNewest, "mlx5.create_qp.ind_table", EINVAL, OnEthernet([](T& t) { return t.NewRss(t.RssDriver().bytes(), 0, false, 40, 4); })},
    {"linux-5.3", "mlx5.create_qp.vendor_flag_support", EOPNOTSUPP, Open([](T& t) { return t.NewQp(t.QpDriver().With(QP(flags), 1 << 2).bytes()); })},
    {kNewest, "mlx5.create_qp.flags", EOPNOTSUPP, Open([](T& t) { const uint32_t cq = t.Queue().handle;  // CROSS_CHANNEL
        return t.NewQpEx({{EXQP(create_flags), 1 << 2}, {EXQP(send_cq_handle), cq}, {EXQP(recv_cq_handle), cq}}, t.QpDriver().bytes()); })},
    {kNewest, "mlx5.create_qp.recv_wr", EINVAL, Open([](T& t) { const uint32_t cq = t.Queue().handle;
        return t.NewQpEx({{EXQP(max_recv_wr), 32769}, {EXQP(send_cq_handle), cq}, {EXQP(recv_cq_handle), cq}}, t.QpDriver().bytes()); })},
    {kNewest, "mlx5.create_qp.rq_signature", EINVAL, Open([](T& t) { return t.NewQp(t.QpDriver().With(QP(flags), 1).With(QP(rq_wqe_shift), 3).bytes()); })},
    {kNewest, "mlx5.create_qp.bfreg", EINVAL, Open([](T& t) { return t.NewQp(t.QpDriver().With(QP(flags), 1 << 3).With(QP(bfreg_index), 5).bytes()); })},
    {kNewest, "mlx5.memory.fault", EFAULT, Open([](T& t) { return t.NewQp(t.QpDriver().With(QP(buf_addr), 0).bytes()); })},
    {kNewest, "mlx5.create_qp.overflow", EINVAL, Open([](T& t) { return t.NewQp(t.QpDriver().With(QP(rq_wqe_count), 1 << 23).With(QP(rq_wqe_shift), 9).bytes()); })},

    // qp.c:create_rss_raw_qp_tir and what comes before it
    {kNewest, "mlx5.create_rss.reply", EINVAL, OnEthernet([](T& t) { return t.NewRss(t.RssDriver().bytes(), 0, false, 0); })},
    {kNewest, "mlx5.create_rss.tail", EINVAL, OnEthernet([](T& t) { return t.NewRss(Longer(t.RssDriver())); })},
    {"linux-4.16", "mlx5.create_rss.tail", EOPNOTSUPP, OnEthernet([](T& t) { return t.NewRss(Longer(t.RssDriver())); })},
    {kNewest, "mlx5.create_rss.create_flags", EINVAL, OnEthernet([](T& t) { return t.NewRss(t.RssDriver().bytes(), 1 << 1); })},
    {kNewest, "mlx5.create_rss.send_cq", EINVAL, OnEthernet([](T& t) { return t.NewRss(t.RssDriver().bytes(), 0, true); })},
    {"linux-4.10", "mlx5.create_rss.reserved", EOPNOTSUPP, OnEthernet([](T& t) { return t.NewRss(t.RssDriver().With(RSS(reserved1), 1).bytes()); })},
    {kNewest, "mlx5.create_rss.no_fields", EINVAL, OnEthernet([](T& t) { t.table_log_ = 1; return t.NewRss(t.RssDriver().With(RSS(rx_hash_fields_mask), 0).bytes()); })},

    // qp.c: work queues and tables
    {kNewest, "mlx5.create_wq.reply", EINVAL, OnEthernet([](T& t) { Request call = t.WqMethod(); t.AddRoom(&call, 4); return t.Go(call); })},
    {kNewest, "mlx5.create_wq.permission", EPERM, OnEthernet([](T& t) { t.Queue(); t.NotRoot(); return t.NewWq(t.WqPrivate().bytes(), {{EXWQ(create_flags), 4}}); })},
    {kNewest, "mlx5.create_wq.type", EINVAL, OnEthernet([](T& t) { return t.NewWq(t.WqPrivate().bytes(), {{EXWQ(wq_type), 1}}); })},
    {kNewest, "mlx5.create_wq.tail", EOPNOTSUPP, OnEthernet([](T& t) { return t.NewWq(Longer(t.WqPrivate())); })},
    {"linux-4.10", "mlx5.create_wq.reserved", EOPNOTSUPP, OnEthernet([](T& t) { return t.NewWq(t.WqPrivate().With(WQ(reserved), 1).bytes()); })},
    {kNewest, "mlx5.create_wq.depth", EINVAL, OnEthernet([](T& t) { return t.NewWq(t.WqPrivate().bytes(), {{EXWQ(max_wr), (1 << 20) + 1}}); })},
    {kNewest, "mlx5.create_wq.overflow", EINVAL, OnEthernet([](T& t) { return t.NewWq(t.WqPrivate().With(WQ(rq_wqe_shift), 32).bytes()); })},
    {kNewest, "mlx5.create_wq.buffer_offset", EINVAL, OnEthernet([](T& t) { return t.NewWq(t.WqPrivate().With(WQ(buf_addr), Address(t.qp_.ring.base()) + 16).bytes()); })},
    {kNewest, "mlx5.modify_wq.tail", EOPNOTSUPP, OnEthernet([](T& t) { t.MakeWq(); return t.ModifyWq(Longer(t.S(VABI_S(mlx5_ib_modify_wq)))); })},
    {kNewest, "mlx5.modify_wq.flags", EOPNOTSUPP, OnEthernet([](T& t) { t.MakeWq(); return t.ModifyWq(Bytes(8), 4, 1); })},
    {kNewest, "mlx5.create_rwq_ind_table.size", EINVAL, OnEthernet([](T& t) { t.MakeWq(); return t.NewTable(10); })},
    {kNewest, "mlx5.create_rwq_ind_table.reply", EINVAL, OnEthernet([](T& t) { t.MakeWq();
        return t.Go(t.InvokeEx(55, t.TableRequest(0), t.world().Size(VABI_S(ib_uverbs_ex_create_rwq_ind_table_resp)), {}, 4)); })},

    // qp.c:mlx5_ib_modify_qp, mlx5_ib_query_qp; main.c:mlx5_ib_mcg_detach
    {kNewest, "mlx5.modify_qp.rss", ENOSYS, OnEthernet([](T& t) { EXPECT_GT(t.NewRss(t.RssDriver().bytes()), 0) << t.LastRule();
        return t.Modify(t.qp_, 0x1 | 0x20, {{MODIFY(qp_state), 1}, {MODIFY(port_num), 1}}); })},
    {kNewest, "mlx5.query_qp.rss", ENOSYS, OnEthernet([](T& t) { EXPECT_GT(t.NewRss(t.RssDriver().bytes()), 0) << t.LastRule(); return t.Query(); })},
    {kNewest, "mlx5.modify_qp.reserved", EOPNOTSUPP, Open([](T& t) { return t.InitEx(With1(t.S(VABI_S(mlx5_ib_modify_qp)), 10)); })},
    {kNewest, "mlx5.modify_qp.out_of_order", EOPNOTSUPP, Open([](T& t) { return t.InitEx(With1(t.S(VABI_S(mlx5_ib_modify_qp)), 0)); })},
    {kNewest, "mlx5.modify_qp.pkey", EINVAL, Open([](T& t) { return t.Modify(t.Pair(), 0x1 | 0x10 | 0x20 | 0x8, {{MODIFY(qp_state), 1}, {MODIFY(port_num), 1}, {MODIFY(pkey_index), 0xffff}}); })},
    // Since 4.19 the core looks at both before the driver does.
    {"linux-4.16", "mlx5.modify_qp.sgid", EINVAL, Open([](T& t) { return t.RtrTo(VABI_F(ib_uverbs_qp_dest, sgid_index), 255); })},
    {"linux-4.16", "mlx5.modify_qp.grh", EINVAL, OnEthernet([](T& t) { return t.RtrTo(VABI_F(ib_uverbs_qp_dest, is_global), 0); })},
    // 300, 600 and 800 Gb/s were the highest.
    {"linux-4.20", "mlx5.modify_qp.static_rate", EINVAL, Open([](T& t) { return t.RtrTo(VABI_F(ib_uverbs_qp_dest, static_rate), 19); })},
    {"linux-6.6", "mlx5.modify_qp.static_rate", EINVAL, Open([](T& t) { return t.RtrTo(VABI_F(ib_uverbs_qp_dest, static_rate), 23); })},
    {"linux-6.16", "mlx5.modify_qp.static_rate", EINVAL, Open([](T& t) { return t.RtrTo(VABI_F(ib_uverbs_qp_dest, static_rate), 24); })},
    {kNewest, "mlx5.modify_qp.static_rate", EINVAL, Open([](T& t) { return t.RtrTo(VABI_F(ib_uverbs_qp_dest, static_rate), 1); })},
    {kNewest, "mlx5.modify_qp.transition", EINVAL, Open([](T& t) { t.Connect(); return t.Modify(t.qp_, 0x1, {{MODIFY(qp_state), 4}}); })},
    {kNewest, "mlx5.modify_qp.rate_limit", EOPNOTSUPP, Open([](T& t) { t.Connect();
        Bytes request = t.ModifyRequest(t.qp_, 0x1 | 1 << 25, {{MODIFY(qp_state), 3}}).bytes();
        request.resize(t.world().Size(VABI_S(ib_uverbs_ex_modify_qp)));
        request[request.size() - 8] = 1;
        return t.WriteEx(26, request, nullptr); })},
    // A SEND from memory that is nobody's: the queue pair is in error before anybody has asked for it.
    {kNewest, "mlx5.modify_qp.firmware", EINVAL, Open([](T& t) { t.Connect(); Bytes wqe(32); Put32(wqe.data() + 16, 8); Put32(wqe.data() + 20, 0x12345600);
        t.qp_.Post(wqe, 0x0a, 8); T::Settle(); return t.Modify(t.qp_, 0x1, {{MODIFY(qp_state), 3}}); })},
    {kNewest, "mlx5.detach_mcast.none", EINVAL, Open([](T& t) { t.Pair(4); EXPECT_GT(t.Multicast(30), 0) << t.LastRule();
        auto* qp = static_cast<vabi::Qp*>(t.file_->Find(ObjectType::kQp, t.qp_.handle));
        fabric::DetachMulticast(qp->endpoint, T::kGroup);  // the NIC forgets it
        return t.Multicast(31); })},

    // srq.c
    {kNewest, "mlx5.create_srq.type", EOPNOTSUPP, Open([](T& t) { return t.NewXsrq(3, t.SrqDriver().bytes()); })},
    {kNewest, "mlx5.create_srq.sges", EINVAL, Open([](T& t) { return t.NewSrq(t.SrqDriver().bytes(), 33); })},
    {kNewest, "mlx5.create_srq.length", EINVAL, Open([](T& t) { return t.NewSrq(Cut(t.SrqDriver(), 16)); })},
    {kNewest, "mlx5.create_srq.tail", EOPNOTSUPP, Open([](T& t) { return t.NewSrq(Longer(t.SrqDriver())); })},
    {"debian-6.1.192", "mlx5.create_srq.tail", EINVAL, Open([](T& t) { return t.NewSrq(Longer(t.SrqDriver())); })},
    {kNewest, "mlx5.create_srq.user_index", EINVAL, Open([](T& t) { return t.NewXsrq(1, t.SrqDriver().With(SRQ(uidx), 0xffffff).bytes()); })},
    {kNewest, "mlx5.create_srq.tags", EINVAL, OnEthernet([](T& t) { return t.NewXsrq(2, t.SrqDriver().With(SRQ(uidx), 5).bytes()); })},
    {kNewest, "mlx5.modify_srq.resize", EINVAL, Open([](T& t) { return t.ModifySrq(1, 8, 0); })},
    {kNewest, "mlx5.modify_srq.limit", EINVAL, Open([](T& t) { return t.ModifySrq(2, 0, 16); })},

    // ah.c
    {kNewest, "mlx5.create_ah.reply", EINVAL, OnEthernet([](T& t) { return t.Ah(true, 0, 0); })},
    {kNewest, "mlx5.create_ah.rate", EINVAL, Open([](T& t) { return t.Ah(false, 1, 0); })},

    // mr.c, odp.c
    {kNewest, "mlx5.reg_mr.implicit.iova", EINVAL, Open([](T& t) { return t.RegMr(0, UINT64_MAX, 4096, kOnDemand); })},
    {"linux-4.10", "mlx5.reg_mr.implicit", EINVAL, Open([](T& t) { return t.RegMr(0, UINT64_MAX, 0, kOnDemand); })},
    {kNewest, "mlx5.rereg_mr.writable", EACCES, Open([](T& t) { const uint64_t at = Address(t.memory_.base()); t.RegMr(at, 4096, at, kRemoteRead); return t.ReregAccess(kLocalWrite); })},
    {kNewest, "mlx5.rereg_mr.implicit", EOPNOTSUPP, Open([](T& t) { t.RegMr(0, UINT64_MAX, 0, kOnDemand | kLocalWrite); return t.ReregAccess(kLocalWrite); })},
    {kNewest, "mlx5.reg_dm_mr.access", EINVAL, Open([](T& t) { return t.Go(t.DmMr(kZeroBased | kMwBind)); })},
    {kNewest, "mlx5.advise_mr.advice", EOPNOTSUPP, Open([](T& t) { return t.Go(t.Advise(3, t.Paged(kLocalWrite), t.pd_)); })},
    {"linux-5.9", "mlx5.advise_mr.advice", EOPNOTSUPP, Open([](T& t) { return t.Go(t.Advise(2, t.Paged(kLocalWrite), t.pd_)); })},
    {kNewest, "mlx5.advise_mr.key", ENOENT, Open([](T& t) { return t.Go(t.Advise(0, 0x12345600, t.pd_)); })},
    {kNewest, "mlx5.advise_mr.pd", EPERM, Open([](T& t) { return t.Go(t.Advise(0, t.Paged(kLocalWrite), t.Pd())); })},
    {kNewest, "mlx5.advise_mr.write", EPERM, Open([](T& t) { return t.Go(t.Advise(1, t.Paged(kRemoteRead), t.pd_)); })},
    {kNewest, "mlx5.alloc_mw.length", EINVAL, Open([](T& t) { return t.Window(Bytes(4)); })},
    {kNewest, "mlx5.alloc_mw.tail", EOPNOTSUPP, Open([](T& t) { return t.Window(Longer(t.S(VABI_S(mlx5_ib_alloc_mw)))); })},

    // dm.c
    {kNewest, "mlx5.alloc_dm.permission", EPERM, Open([](T& t) { t.NotRoot(); return t.Go(t.Dm(4096, 0, 1)); })},
    {kNewest, "mlx5.alloc_dm.type", EOPNOTSUPP, Open([](T& t) { return t.Go(t.Dm(4096, 0, 1)); })},
    {kNewest, "mlx5.alloc_dm.length", EINVAL, Open([](T& t) { return t.Go(t.Dm(0)); })},
    {kNewest, "mlx5.alloc_dm.alignment", EINVAL, Open([](T& t) { return t.Go(t.Dm(4096, 13)); })},
    {kNewest, "mlx5.alloc_dm.memory", ENOMEM, Open([](T& t) { return t.Go(t.Dm((256 << 10) + 1)); })},
    {kNewest, "mlx5.dm.operation", EOPNOTSUPP, Open([](T& t) { Request call = t.New(VABI_C(UVERBS_OBJECT_DM), VABI_C(MLX5_IB_METHOD_DM_MAP_OP_ADDR));
        call.AddHandle(t.C(VABI_C(MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_HANDLE)), t.MakeDm()); call.Add(t.C(VABI_C(MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_OP)), 1, 0);
        call.AddOut(t.C(VABI_C(MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_START_OFFSET)), t.out_).len = 8; return t.Go(call); })},

    // main.c:mlx5_ib_query_device, std_types.c, devx.c
    {"linux-4.4", "mlx5.query_device.any_uhw", EINVAL, Open([](T& t) { Bytes reply(t.DeviceReply()); return t.WriteEx(1, t.DeviceRequest(), &reply, Bytes(8)); })},
    {kNewest, "mlx5.query_device.reply", EINVAL, Open([](T& t) { return t.Go(t.InvokeEx(1, t.DeviceRequest(), t.DeviceReply(), {}, 4)); })},
    {kNewest, "mlx5.query_device.input", EOPNOTSUPP, Open([](T& t) { Bytes reply(t.DeviceReply()); return t.WriteEx(1, t.DeviceRequest(), &reply, Bytes(8, 1)); })},
    {"debian-6.1.192", "mlx5.query_device.input", EINVAL, Open([](T& t) { Bytes reply(t.DeviceReply()); return t.WriteEx(1, t.DeviceRequest(), &reply, Bytes(8, 1)); })},
    {kNewest, "mlx5.query_port.number", EINVAL, Open([](T& t) { return t.Go(t.Port(2)); })},
    {kNewest, "mlx5.data_direct.none", ENODEV, Open([](T& t) { Request call = t.New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(MLX5_IB_METHOD_GET_DATA_DIRECT_SYSFS_PATH));
        call.AddOut(t.C(VABI_C(MLX5_IB_ATTR_GET_DATA_DIRECT_SYSFS_PATH)), t.out_); return t.Go(call); })},
    {kNewest, "mlx5.devx.no_uid", EINVAL, Open([](T& t) { return t.Go(t.Devx(0x101)); })},
    {"linux-4.19", "mlx5.devx.no_uid", EPERM, Open([](T& t) { return t.Go(t.Devx(0x100)); })},  // no list of exceptions yet
    {kNewest, "mlx5.devx.not_general", EINVAL, [](T& t) { t.OpenContext(0, 1); return t.Go(t.Devx(0x500)); }},
    {kNewest, "mlx5.devx.uar", EINVAL, Open([](T& t) { return t.Go(t.DevxNumber(VABI_C(MLX5_IB_METHOD_DEVX_QUERY_UAR), VABI_C(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX), VABI_C(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX), 0)); })},
    {kNewest, "mlx5.devx.eqn", ENOENT, Open([](T& t) { return t.Go(t.DevxNumber(VABI_C(MLX5_IB_METHOD_DEVX_QUERY_EQN), VABI_C(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC), VABI_C(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN), 99)); })},
  };
  return *offences;
}
// clang-format on

// odp.c:mlx5_ib_prefetch_sg_list, pagefault_mr: with FLUSH the pages are fetched at once.
TEST(Advice, IsCarriedOutAtOnceOnlyWhereItsPagesAre) {
  Rules rules(kNewest);
  rules.OpenContext();
  const uint32_t key = rules.Paged(kLocalWrite);
  EXPECT_EQ(0, rules.Go(rules.Advise(0, key, rules.pd_, 1, 4096))) << rules.LastRule();
  EXPECT_EQ(0, rules.Go(rules.Advise(0, key, rules.pd_, 0, 4097))) << rules.LastRule();
  // The kernel's errno is EFAULT from 5.6 on; told as unmodelled, by no rule.
  EXPECT_NE(0, rules.Go(rules.Advise(0, key, rules.pd_, 1, 4097)));
  EXPECT_EQ("", rules.LastRule());
}

class EachMlx5Rule : public testing::TestWithParam<size_t> {};

TEST_P(EachMlx5Rule, RefusesWithItsErrnoAndName) { ExpectRefusal(Offences()[GetParam()]); }

INSTANTIATE_TEST_SUITE_P(All, EachMlx5Rule, testing::Range(size_t{0}, Offences().size()),
                         [](const auto& info) { return CaseName(Offences()[info.param]); });

}  // namespace
}  // namespace vabi::mlx5
