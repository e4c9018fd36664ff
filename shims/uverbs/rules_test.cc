// SPDX-License-Identifier: BSD-2-Clause
// One offence for each rule of the core: the kernel's errno, the rule's name in the trace, and that
// somebody notices when the rule is taken away (`test --relax`).
#include <fcntl.h>
#include <sys/mman.h>

#include <functional>

#include "shims/uverbs/mr_access.h"
#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/test_uverbs.h"

namespace vabi {
namespace {

class RulesTest;

struct Offence {
  RuleId rule;
  std::function<long(RulesTest&)> commit;
};

class RulesTest : public UverbsTest {
 public:
  // Shorthands that lambdas outside of the class may use.
  using UverbsTest::AllocPd;
  using UverbsTest::C;
  using UverbsTest::CqRequest;
  using UverbsTest::CreateChannel;
  using UverbsTest::CreateCq;
  using UverbsTest::CreateQp;
  using UverbsTest::DestroyPd;
  using UverbsTest::device;
  using UverbsTest::fds_;
  using UverbsTest::file;
  using UverbsTest::image;
  using UverbsTest::Invoke;
  using UverbsTest::Ioctl;
  using UverbsTest::LastRule;
  using UverbsTest::New;
  using UverbsTest::OpenContext;
  using UverbsTest::QpRequest;
  using UverbsTest::Reinstall;
  using UverbsTest::S;
  using UverbsTest::script;
  using UverbsTest::U32;
  using UverbsTest::world;
  using UverbsTest::Write;
  using UverbsTest::WriteEx;

  void TestBody() override {}

  Bytes out = Bytes(64);

  // A legacy command with room for an answer.
  long Do(uint32_t command, const Struct& request) { return Write(command, request, &out); }
  long DoEx(uint32_t command, Struct request) { return WriteEx(command, request.bytes(), &out); }
  long Header(uint32_t command, uint16_t in_words, uint16_t out_words, size_t count) {
    Bytes all(std::max<size_t>(count, 8));
    std::memcpy(all.data(), &command, 4);
    std::memcpy(all.data() + 4, &in_words, 2);
    std::memcpy(all.data() + 6, &out_words, 2);
    return file().Write(all.data(), count);
  }
  // An extended header and `body` bytes of nothing.
  long ExHeader(uint16_t in_words, uint16_t out_words, uint64_t response, uint32_t reserved,
                size_t body) {
    Bytes all(24 + body);
    const uint32_t command = 0x80000001;
    std::memcpy(all.data(), &command, 4);
    std::memcpy(all.data() + 4, &in_words, 2);
    std::memcpy(all.data() + 6, &out_words, 2);
    std::memcpy(all.data() + 8, &response, 8);
    std::memcpy(all.data() + 20, &reserved, 4);
    return file().Write(all.data(), all.size());
  }
  Request Cq() {
    Request call = New(VABI_C(UVERBS_OBJECT_CQ), VABI_C(UVERBS_METHOD_CQ_CREATE));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_CQ_HANDLE)));
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE)), 4, 16);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_CQ_USER_HANDLE)), 8, 0);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR)), 4, 0);
    call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_CQ_RESP_CQE)), out);
    call.attrs().back().len = 4;
    return call;
  }
  Bytes cap = Bytes(20), more = Bytes(64);
  Request Qp(uint64_t type, bool with_cqs = true) {
    Request call = New(VABI_C(UVERBS_OBJECT_QP), VABI_C(UVERBS_METHOD_QP_CREATE));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_QP_HANDLE)));
    if (with_cqs) {
      const uint32_t pd = AllocPd(), cq = CreateCq();
      call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_QP_PD_HANDLE)), pd);
      call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE)), cq);
      call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE)), cq);
    }
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_QP_USER_HANDLE)), 8, 1);
    call.AddIn(C(VABI_C(UVERBS_ATTR_CREATE_QP_CAP)), cap);
    call.AddConst(C(VABI_C(UVERBS_ATTR_CREATE_QP_TYPE)), type);
    call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_QP_RESP_CAP)), more).len = 20;
    call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM)), out).len = 4;
    return call;
  }
  Request Srq(uint64_t type) {
    Request call = New(VABI_C(UVERBS_OBJECT_SRQ), VABI_C(UVERBS_METHOD_SRQ_CREATE));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_SRQ_HANDLE)));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE)), AllocPd());
    call.AddConst(C(VABI_C(UVERBS_ATTR_CREATE_SRQ_TYPE)), type);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE)), 8, 1);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_SRQ_MAX_WR)), 4, 1);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_SRQ_MAX_SGE)), 4, 1);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_SRQ_LIMIT)), 4, 0);
    call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR)), out).len = 4;
    call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE)), more).len = 4;
    return call;
  }
  Request Wq(uint64_t type, bool with_number = true) {
    Request call = New(VABI_C(UVERBS_OBJECT_WQ), VABI_C(UVERBS_METHOD_WQ_CREATE));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_WQ_HANDLE)));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_WQ_PD_HANDLE)), AllocPd());
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_WQ_CQ_HANDLE)), CreateCq());
    call.AddConst(C(VABI_C(UVERBS_ATTR_CREATE_WQ_TYPE)), type);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_WQ_USER_HANDLE)), 8, 1);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_WQ_MAX_WR)), 4, 1);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_WQ_MAX_SGE)), 4, 1);
    call.Add(C(VABI_C(UVERBS_ATTR_CREATE_WQ_FLAGS)), 4, 0);
    call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR)), out).len = 4;
    call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE)), more).len = 4;
    if (with_number) call.AddOut(C(VABI_C(UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM)), cap).len = 4;
    return call;
  }
  Request Context() { return New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_GET_CONTEXT)); }
  Request Info(uint64_t object, size_t list) {
    Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_INFO_HANDLES));
    call.AddConst(C(VABI_C(UVERBS_ATTR_INFO_OBJECT_ID)), object);
    call.AddOut(C(VABI_C(UVERBS_ATTR_INFO_HANDLES_LIST)), out).len = static_cast<uint16_t>(list);
    return call;
  }
  Request Gids(uint64_t entry_size, size_t room) {
    Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_QUERY_GID_TABLE));
    call.AddConst(C(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE)), entry_size);
    call.AddOut(C(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES)), out).len =
        static_cast<uint16_t>(room);
    call.AddOut(C(VABI_C(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES)), more).len = 8;
    return call;
  }
  Request Gid(uint64_t port, uint64_t index) {
    Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_QUERY_GID_ENTRY));
    call.AddConst(C(VABI_C(UVERBS_ATTR_QUERY_GID_ENTRY_PORT)), port);
    call.AddConst(C(VABI_C(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX)), index);
    call.Add(C(VABI_C(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS)), 4, 0);
    call.AddOut(C(VABI_C(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY)), out);
    return call;
  }
  Struct Mr(uint32_t access, uint64_t start = 0x1000) {
    return S(VABI_S(ib_uverbs_reg_mr))
        .With(VABI_F(ib_uverbs_reg_mr, start), start)
        .With(VABI_F(ib_uverbs_reg_mr, hca_va), 0x1000)
        .With(VABI_F(ib_uverbs_reg_mr, length), 4096)
        .With(VABI_F(ib_uverbs_reg_mr, access_flags), access)
        .With(VABI_F(ib_uverbs_reg_mr, pd_handle), AllocPd());
  }
  Struct Rereg(uint32_t flags) {
    Do(9, Mr(kLocalWrite));
    const uint32_t mr = U32(out, VABI_F(ib_uverbs_reg_mr_resp, mr_handle));
    return S(VABI_S(ib_uverbs_rereg_mr))
        .With(VABI_F(ib_uverbs_rereg_mr, mr_handle), mr)
        .With(VABI_F(ib_uverbs_rereg_mr, flags), flags);
  }
  uint64_t AllocDm() {
    Request alloc = New(VABI_C(UVERBS_OBJECT_DM), VABI_C(UVERBS_METHOD_DM_ALLOC));
    alloc.AddHandle(C(VABI_C(UVERBS_ATTR_ALLOC_DM_HANDLE)));
    alloc.Add(C(VABI_C(UVERBS_ATTR_ALLOC_DM_LENGTH)), 8, 4096);
    alloc.Add(C(VABI_C(UVERBS_ATTR_ALLOC_DM_ALIGNMENT)), 4, 0);
    EXPECT_EQ(0, Ioctl(alloc));
    return alloc.attrs()[0].data;
  }
  Request DmMr(uint32_t access, uint64_t length, uint64_t dm) {
    Request reg = New(VABI_C(UVERBS_OBJECT_MR), VABI_C(UVERBS_METHOD_DM_MR_REG));
    reg.AddHandle(C(VABI_C(UVERBS_ATTR_REG_DM_MR_HANDLE)));
    reg.Add(C(VABI_C(UVERBS_ATTR_REG_DM_MR_OFFSET)), 8, 0);
    reg.Add(C(VABI_C(UVERBS_ATTR_REG_DM_MR_LENGTH)), 8, length);
    reg.AddHandle(C(VABI_C(UVERBS_ATTR_REG_DM_MR_PD_HANDLE)), AllocPd());
    reg.Add(C(VABI_C(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS)), 4, access);
    reg.AddHandle(C(VABI_C(UVERBS_ATTR_REG_DM_MR_DM_HANDLE)), dm);
    reg.AddOut(C(VABI_C(UVERBS_ATTR_REG_DM_MR_RESP_LKEY)), out).len = 4;
    reg.AddOut(C(VABI_C(UVERBS_ATTR_REG_DM_MR_RESP_RKEY)), more).len = 4;
    return reg;
  }
  Request RegMr(bool address, bool offset) {
    Request reg = New(VABI_C(UVERBS_OBJECT_MR), VABI_C(UVERBS_METHOD_REG_MR));
    reg.AddHandle(C(VABI_C(UVERBS_ATTR_REG_MR_HANDLE)));
    reg.AddHandle(C(VABI_C(UVERBS_ATTR_REG_MR_PD_HANDLE)), AllocPd());
    reg.Add(C(VABI_C(UVERBS_ATTR_REG_MR_IOVA)), 8, 0);
    reg.Add(C(VABI_C(UVERBS_ATTR_REG_MR_LENGTH)), 8, 4096);
    reg.Add(C(VABI_C(UVERBS_ATTR_REG_MR_ACCESS_FLAGS)), 4, kLocalWrite);
    if (address) reg.Add(C(VABI_C(UVERBS_ATTR_REG_MR_ADDR)), 8, 0x1000);
    if (offset) reg.Add(C(VABI_C(UVERBS_ATTR_REG_MR_FD_OFFSET)), 8, 0);
    reg.AddOut(C(VABI_C(UVERBS_ATTR_REG_MR_RESP_LKEY)), out).len = 4;
    reg.AddOut(C(VABI_C(UVERBS_ATTR_REG_MR_RESP_RKEY)), more).len = 4;
    return reg;
  }
  Struct Ah(uint8_t port, bool global, uint8_t index = 0) {
    Struct request =
        S(VABI_S(ib_uverbs_create_ah)).With(VABI_F(ib_uverbs_create_ah, pd_handle), AllocPd());
    const Body attr = request.Sub(VABI_F(ib_uverbs_create_ah, attr));
    attr.Set(VABI_F(ib_uverbs_ah_attr, port_num), port);
    attr.Set(VABI_F(ib_uverbs_ah_attr, is_global), global);
    const Body route = attr.Sub(VABI_F(ib_uverbs_ah_attr, grh));
    route.Set(VABI_F(ib_uverbs_global_route, sgid_index), index);
    route.SetBytes(VABI_F(ib_uverbs_global_route, dgid), device().port(1).gids[0].raw, 16);
    return request;
  }
  // MODIFY_QP of a new RC queue pair in RTS-like state `from`.
  Struct Modify(uint32_t mask, QpState from = QpState::kReset, uint8_t type = kQptRc) {
    const uint32_t handle = CreateQp(AllocPd(), CreateCq(), type);
    auto* qp = static_cast<vabi::Qp*>(file().Find(ObjectType::kQp, handle));
    qp->state = from;
    qp->port = 1;
    return S(VABI_S(ib_uverbs_modify_qp))
        .With(VABI_F(ib_uverbs_modify_qp, qp_handle), handle)
        .With(VABI_F(ib_uverbs_modify_qp, attr_mask), mask);
  }
  Struct ModifyAv(uint32_t mask, QpState from, uint8_t port, uint8_t qp_port = 1) {
    Struct request = Modify(mask, from);
    const Body dest = request.Sub(VABI_F(ib_uverbs_modify_qp, dest));
    dest.SetBytes(VABI_F(ib_uverbs_qp_dest, dgid), device().port(1).gids[0].raw, 16);
    dest.Set(VABI_F(ib_uverbs_qp_dest, is_global), 1);
    dest.Set(VABI_F(ib_uverbs_qp_dest, port_num), port);
    request.Set(VABI_F(ib_uverbs_modify_qp, port_num), qp_port);
    return request;
  }
  Struct Flow(uint32_t type = 0, uint32_t flags = 0, uint8_t specs = 0, uint16_t size = 0,
              uint8_t port = 1, uint8_t qp_type = kQptUd) {
    Struct request = S(VABI_S(ib_uverbs_create_flow), size);
    request.Set(VABI_F(ib_uverbs_create_flow, qp_handle), CreateQp(AllocPd(), CreateCq(), qp_type));
    const Body attr = request.Sub(VABI_F(ib_uverbs_create_flow, flow_attr));
    attr.Set(VABI_F(ib_uverbs_flow_attr, type), type);
    attr.Set(VABI_F(ib_uverbs_flow_attr, flags), flags);
    attr.Set(VABI_F(ib_uverbs_flow_attr, num_of_specs), specs);
    attr.Set(VABI_F(ib_uverbs_flow_attr, size), size);
    attr.Set(VABI_F(ib_uverbs_flow_attr, port), port);
    return request;
  }
  // With one spec.
  long FlowSpec(uint32_t type, uint16_t size, uint16_t reserved = 0,
                std::initializer_list<size_t> ones = {}) {
    Struct request = Flow(0, 0, 1, size);
    uint8_t* spec = request.bytes().data() + world().Size(VABI_S(ib_uverbs_create_flow));
    std::memcpy(spec, &type, 4);
    std::memcpy(spec + 4, &size, 2);
    std::memcpy(spec + 6, &reserved, 2);
    for (const size_t at : ones) spec[at] = 0xff;
    return DoEx(50, request);
  }
  Struct ExWq() {
    return S(VABI_S(ib_uverbs_ex_create_wq))
        .With(VABI_F(ib_uverbs_ex_create_wq, pd_handle), AllocPd())
        .With(VABI_F(ib_uverbs_ex_create_wq, cq_handle), CreateCq());
  }
  Struct ModifyWq(uint32_t mask, uint32_t state = 0) {
    DoEx(52, ExWq());
    return S(VABI_S(ib_uverbs_ex_modify_wq))
        .With(VABI_F(ib_uverbs_ex_modify_wq, wq_handle),
              U32(out, VABI_F(ib_uverbs_ex_create_wq_resp, wq_handle)))
        .With(VABI_F(ib_uverbs_ex_modify_wq, attr_mask), mask)
        .With(VABI_F(ib_uverbs_ex_modify_wq, wq_state), state)
        .With(VABI_F(ib_uverbs_ex_modify_wq, curr_wq_state), state);
  }
  Struct IndTable(uint32_t log_size, uint32_t wq, size_t tail) {
    Struct table = S(VABI_S(ib_uverbs_ex_create_rwq_ind_table), tail)
                       .With(VABI_F(ib_uverbs_ex_create_rwq_ind_table, log_ind_tbl_size), log_size);
    if (tail >= 4) {
      std::memcpy(table.bytes().data() + world().Size(VABI_S(ib_uverbs_ex_create_rwq_ind_table)),
                  &wq, 4);
    }
    return table;
  }
  uint32_t MakeWq() {
    EXPECT_GT(DoEx(52, ExWq()), 0);
    return U32(out, VABI_F(ib_uverbs_ex_create_wq_resp, wq_handle));
  }
  uint32_t MakeIndTable() {
    const uint32_t wq = MakeWq();
    EXPECT_GT(DoEx(55, IndTable(0, wq, 8)), 0);
    return U32(out, VABI_F(ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_handle));
  }
  uint64_t MakeCounters() {
    Request call = New(VABI_C(UVERBS_OBJECT_COUNTERS), VABI_C(UVERBS_METHOD_COUNTERS_CREATE));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_COUNTERS_HANDLE)));
    EXPECT_EQ(0, Ioctl(call));
    return call.attrs()[0].data;
  }
  long DestroyBy(ConstId object, ConstId method, ConstId attribute, uint64_t handle) {
    Request call = New(object, method);
    call.AddHandle(C(attribute), handle);
    return Ioctl(call);
  }
  uint32_t OpenXrcd(int fd, uint32_t flags) {
    EXPECT_GT(Do(37, Xrcd(fd, flags)), 0);
    return U32(out, VABI_F(ib_uverbs_open_xrcd_resp, xrcd_handle));
  }
  Struct Xrcd(int fd, uint32_t flags) {
    return S(VABI_S(ib_uverbs_open_xrcd))
        .With(VABI_F(ib_uverbs_open_xrcd, fd), static_cast<uint32_t>(fd))
        .With(VABI_F(ib_uverbs_open_xrcd, oflags), flags);
  }
  int Temporary() {
    fds_.push_back(memfd_create("xrcd", 0));
    return fds_.back();
  }
  Struct Mcast(uint32_t qp, uint8_t first) {
    Struct attach =
        S(VABI_S(ib_uverbs_attach_mcast)).With(VABI_F(ib_uverbs_attach_mcast, qp_handle), qp);
    const uint8_t gid[16] = {first};
    attach.SetBytes(VABI_F(ib_uverbs_attach_mcast, gid), gid, 16);
    return attach;
  }
  Struct Post(uint32_t count, uint32_t wqe_size, size_t tail) {
    return S(VABI_S(ib_uverbs_post_send), tail)
        .With(VABI_F(ib_uverbs_post_send, qp_handle), CreateQp(AllocPd(), CreateCq()))
        .With(VABI_F(ib_uverbs_post_send, wr_count), count)
        .With(VABI_F(ib_uverbs_post_send, wqe_size), wqe_size);
  }
  void NotRoot() {
    image().check_permissions = 1;
    image().uid = 1000;
  }
  void OldOrder(int order) {
    image().knob[Index(KnobId::write_order)] = order;
    image().knob[Index(KnobId::write_sizes_from_table)] = 0;
    image().knob[Index(KnobId::write_mask_by_number)] = order == 2 || order == 3;
  }
  void NoContext() { Reinstall(); }
  void Lack(Op op) {
    script().lacks.insert(op);
    Reinstall();
    OpenContext();
  }
  int OpenNode() {
    Opened opened;
    const int result = FakeKernel::OpenNode("/dev/infiniband/uverbs0", O_RDWR, &opened);
    if (result == 0) fds_.push_back(opened.fd);
    return result;
  }
  NodeView& Node() {
    for (uint32_t i = 0; i < image().node_count; ++i) {
      if (std::strcmp(image().node[i].path, "/dev/infiniband/uverbs0") == 0) return image().node[i];
    }
    return image().node[0];
  }
  std::shared_ptr<CompletionChannel> Channel() {
    return CompletionChannel::From(FdTable::Get(CreateChannel()));
  }
};

using T = RulesTest;
constexpr uint64_t kBad = 16;  // an address where nothing is

long Ioctl(T& t, Request call) { return t.Ioctl(call); }

// clang-format off: a table
const std::vector<Offence>& Offences() {
  static const auto* offences = new std::vector<Offence>{
    // The node
    {RuleId::open_no_node, [](T& t) { t.Node().present = 0; return t.OpenNode(); }},
    {RuleId::open_permission, [](T& t) { t.NotRoot(); t.Node().mode = 0600; t.Node().uid = 0; return t.OpenNode(); }},
    {RuleId::open_no_device, [](T& t) { t.Node().minor = 1; return t.OpenNode(); }},
    {RuleId::device_gone_open, [](T& t) { t.device().SetGone(false); return t.OpenNode(); }},
    {RuleId::device_gone, [](T& t) { t.device().SetGone(true); return t.Do(3, t.S(VABI_S(ib_uverbs_alloc_pd))); }},
    {RuleId::device_gone_destroy, [](T& t) {
        t.image().rule[Index(RuleId::device_gone_destroy)].on = 1;
        t.device().SetGone(true);
        return t.Do(4, t.S(VABI_S(ib_uverbs_dealloc_pd))); }},
    {RuleId::ioctl_fd_untranslated, [](T& t) {
        t.image().rule[Index(RuleId::ioctl_fd_untranslated)].on = 1;
        Request call = t.New(VABI_C(UVERBS_OBJECT_CQ), VABI_C(UVERBS_METHOD_CQ_CREATE));
        call.AddHandle(t.C(VABI_C(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL)), 0);
        return t.Ioctl(call); }},
    {RuleId::mmap_no_context, [](T& t) { t.NoContext(); return t.file().Mmap(nullptr, 4096, 1, 1, 0); }},
    {RuleId::mmap_private, [](T& t) { return t.file().Mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, 0); }},
    {RuleId::mmap_absent, [](T& t) { t.Lack(Op::mmap); return t.file().Mmap(nullptr, 4096, 1, 1, 0); }},

    // write()
    {RuleId::write_absent, [](T& t) { t.image().knob[Index(KnobId::write)] = 0; return t.Header(3, 4, 1, 16); }},
    {RuleId::write_credentials, [](T& t) { BumpCredentialGeneration(); return t.Do(3, t.S(VABI_S(ib_uverbs_alloc_pd))); }},
    {RuleId::write_header_short, [](T& t) { return t.Header(3, 1, 0, 4); }},
    {RuleId::write_header_fault, [](T& t) { return t.file().Write(reinterpret_cast<void*>(kBad), 8); }},
    {RuleId::write_command_bits, [](T& t) { return t.Do(0x40000003, t.S(VABI_S(ib_uverbs_alloc_pd))); }},
    {RuleId::write_command_range, [](T& t) { return t.Header(41, 4, 1, 16); }},
    {RuleId::write_ex_header_short, [](T& t) { return t.Header(0x80000001, 1, 0, 16); }},
    {RuleId::write_ex_in_words, [](T& t) { return t.ExHeader(2, 0, 0, 0, 8); }},
    {RuleId::write_ex_reserved, [](T& t) { return t.ExHeader(1, 0, 0, 1, 8); }},
    {RuleId::write_ex_response_unused, [](T& t) { return t.ExHeader(1, 0, 4096, 0, 8); }},
    {RuleId::write_ex_response_address, [](T& t) { return t.ExHeader(1, 1, ~7ULL, 0, 8); }},
    {RuleId::write_ex_response_missing, [](T& t) { return t.ExHeader(1, 1, 0, 0, 8); }},
    {RuleId::write_in_words, [](T& t) { return t.Header(4, 4, 0, 12); }},
    {RuleId::write_request_short, [](T& t) { return t.Header(9, 4, 3, 16); }},
    {RuleId::write_response_short, [](T& t) { t.out.resize(32); return t.Do(24, t.QpRequest(t.AllocPd(), t.CreateCq())) < 0 ? -1 : t.Header(24, 16, 1, 64); }},
    {RuleId::write_not_served, [](T& t) { t.Lack(Op::alloc_mw); return t.Do(14, t.S(VABI_S(ib_uverbs_alloc_mw))); }},
    // Before 5.0
    {RuleId::write_flags, [](T& t) { t.OldOrder(1); return t.Header(0x40000003, 4, 1, 16); }},
    {RuleId::write_command_beyond, [](T& t) { t.OldOrder(3); return t.Header(200, 4, 1, 16); }},
    {RuleId::write_command_unknown, [](T& t) { t.OldOrder(4); return t.Header(200, 4, 1, 16); }},
    {RuleId::write_ex_command_unknown, [](T& t) { t.OldOrder(1); return t.Header(0x80000003, 0, 0, 24); }},
    {RuleId::write_no_context, [](T& t) { t.OldOrder(1); t.NoContext(); return t.Header(3, 4, 1, 16); }},
    {RuleId::write_masked, [](T& t) { t.OldOrder(1); t.Lack(Op::alloc_mw); return t.Header(14, 6, 2, 24); }},
    {RuleId::write_ex_masked, [](T& t) { t.OldOrder(1); t.Lack(Op::create_wq); return t.Header(0x80000034, 0, 0, 24); }},
    {RuleId::write_ex_request_short, [](T& t) { t.OldOrder(1); return t.WriteEx(18, Bytes(8), &t.out); }},
    {RuleId::write_ex_response_short, [](T& t) { t.OldOrder(1); t.out.resize(8);
        return t.WriteEx(18, t.S(VABI_S(ib_uverbs_ex_create_cq)).With(VABI_F(ib_uverbs_ex_create_cq, cqe), 1)
                                 .With(VABI_F(ib_uverbs_ex_create_cq, comp_channel), 0xffffffff).bytes(), &t.out); }},

    // ioctl()
    {RuleId::ioctl_absent, [](T& t) { t.image().knob[Index(KnobId::ioctl)] = 0; return Ioctl(t, t.Cq()); }},
    {RuleId::ioctl_number, [](T& t) { Request call = t.Cq(); return t.Ioctl(call, 0x1234); }},
    {RuleId::ioctl_header_fault, [](T& t) { return t.file().Ioctl(0xc0181b01, reinterpret_cast<void*>(kBad)); }},
    {RuleId::ioctl_length, [](T& t) { Request call = t.Cq(); call.keep_length = true; call.header().num_attrs = 5; call.header().length = 24 + 16 * 5 + 8; return t.Ioctl(call); }},
    {RuleId::ioctl_reserved, [](T& t) { Request call = t.Cq(); call.header().reserved2 = 1; return t.Ioctl(call); }},
    {RuleId::ioctl_driver_id, [](T& t) { Request call = t.Cq(); call.header().driver_id = 77; return t.Ioctl(call); }},
    {RuleId::ioctl_method_unknown, [](T& t) { Request call = t.Cq(); call.header().method_id = 21; return t.Ioctl(call); }},
    {RuleId::ioctl_attributes_fault, [](T& t) {
        // An attribute array that ends in the unmapped half of two pages.
        auto* pages = static_cast<uint8_t*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        munmap(pages + 4096, 4096);
        Request call = t.Context();
        call.header().num_attrs = 1;
        call.header().length = 40;
        std::memcpy(pages + 4096 - 24, &call.header(), 24);
        const long result = t.file().Ioctl(0xc0181b01, pages + 4096 - 24);
        munmap(pages, 4096);
        return result; }},
    {RuleId::ioctl_no_context, [](T& t) { t.image().knob[Index(KnobId::ioctl_early)] = 1; t.NoContext(); return Ioctl(t, t.Cq()); }},
    {RuleId::ioctl_no_attributes, [](T& t) { t.image().knob[Index(KnobId::ioctl_early)] = 1; return Ioctl(t, t.Context()); }},
    {RuleId::ioctl_attr_unknown_mandatory, [](T& t) { Request call = t.Cq(); call.Add(31, 0, 0); return t.Ioctl(call); }},
    {RuleId::ioctl_attr_duplicate, [](T& t) { Request call = t.Cq(); call.Add(t.C(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE)), 4, 8); return t.Ioctl(call); }},
    {RuleId::ioctl_attr_tail, [](T& t) { t.cap.assign(24, 1); return Ioctl(t, t.Qp(kQptRc)); }},
    {RuleId::ioctl_attr_short, [](T& t) { t.cap.assign(16, 1); return Ioctl(t, t.Qp(kQptRc)); }},
    {RuleId::ioctl_attr_long, [](T& t) { Request call = t.Cq(); call.Find(t.C(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE)))->len = 8; return t.Ioctl(call); }},
    {RuleId::ioctl_attr_reserved, [](T& t) { Request call = t.Cq(); call.Find(t.C(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE)))->elem_id = 1; return t.Ioctl(call); }},
    {RuleId::ioctl_attr_fault, [](T& t) { t.NoContext(); Request call = t.Context(); call.Add(t.C(VABI_C(UVERBS_ATTR_GET_CONTEXT_FD_ARR)), 12, kBad); return t.Ioctl(call); }},
    {RuleId::ioctl_object_reserved, [](T& t) { Request call = t.Cq(); call.attrs()[0].elem_reserved = 1; return t.Ioctl(call); }},
    {RuleId::ioctl_object_length, [](T& t) { Request call = t.Cq(); call.attrs()[0].len = 4; return t.Ioctl(call); }},
    {RuleId::ioctl_raw_fd, [](T& t) { Request call = t.RegMr(true, false); call.Add(t.C(VABI_C(UVERBS_ATTR_REG_MR_FD)), 4, 0); return t.Ioctl(call); }},
    {RuleId::ioctl_handle_negative, [](T& t) { return t.DestroyBy(VABI_C(UVERBS_OBJECT_PD), VABI_C(UVERBS_METHOD_PD_DESTROY), VABI_C(UVERBS_ATTR_DESTROY_PD_HANDLE), ~0ULL); }},
    {RuleId::ioctl_handle_none, [](T& t) { return t.DestroyBy(VABI_C(UVERBS_OBJECT_PD), VABI_C(UVERBS_METHOD_PD_DESTROY), VABI_C(UVERBS_ATTR_DESTROY_PD_HANDLE), 7); }},
    {RuleId::ioctl_fd_range, [](T& t) { Request call = t.Cq(); call.AddHandle(t.C(VABI_C(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL)), 1ULL << 40); return t.Ioctl(call); }},
    {RuleId::fd_wrong, [](T& t) { return t.Do(18, t.CqRequest().With(VABI_F(ib_uverbs_create_cq, comp_channel), 0)); }},
    {RuleId::ioctl_mandatory_missing, [](T& t) { Request call = t.Cq(); call.attrs().pop_back(); return t.Ioctl(call); }},
    {RuleId::ioctl_const_range, [](T& t) { return Ioctl(t, t.Info(0x10000 + static_cast<uint64_t>(t.C(VABI_C(UVERBS_OBJECT_PD))), 4)); }},
    {RuleId::ioctl_flags_length, [](T& t) { Request call = t.Cq(); call.Add(t.C(VABI_C(UVERBS_ATTR_CREATE_CQ_FLAGS)), 5, 0); return t.Ioctl(call); }},
    {RuleId::ioctl_flags_unknown, [](T& t) { Request call = t.Cq(); call.Add(t.C(VABI_C(UVERBS_ATTR_CREATE_CQ_FLAGS)), 4, 0x80); return t.Ioctl(call); }},
    {RuleId::method_no_operation, [](T& t) { t.Lack(Op::alloc_dm); Request call = t.New(VABI_C(UVERBS_OBJECT_DM), VABI_C(UVERBS_METHOD_DM_ALLOC));
        call.AddHandle(t.C(VABI_C(UVERBS_ATTR_ALLOC_DM_HANDLE))); call.Add(t.C(VABI_C(UVERBS_ATTR_ALLOC_DM_LENGTH)), 8, 1);
        call.Add(t.C(VABI_C(UVERBS_ATTR_ALLOC_DM_ALIGNMENT)), 4, 0); return t.Ioctl(call); }},

    // Requests and replies
    {RuleId::request_tail, [](T& t) { Struct request = t.S(VABI_S(ib_uverbs_query_device), 4); request.bytes().back() = 1; t.out.resize(400); return t.Do(1, request); }},
    {RuleId::request_tail_fault, [](T& t) { Request call = t.New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_INVOKE_WRITE));
        call.AddConst(t.C(VABI_C(UVERBS_ATTR_WRITE_CMD)), 3); call.Add(t.C(VABI_C(UVERBS_ATTR_CORE_IN)), 16, kBad);
        call.AddOut(t.C(VABI_C(UVERBS_ATTR_CORE_OUT)), t.out); return t.Ioctl(call); }},
    {RuleId::request_fault, [](T& t) { Request call = t.New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_INVOKE_WRITE));
        call.AddConst(t.C(VABI_C(UVERBS_ATTR_WRITE_CMD)), 18); call.Add(t.C(VABI_C(UVERBS_ATTR_CORE_IN)), 32, kBad);
        call.AddOut(t.C(VABI_C(UVERBS_ATTR_CORE_OUT)), t.out); return t.Ioctl(call); }},
    {RuleId::request_start_short, [](T& t) { return t.WriteEx(55, {}, &t.out); }},
    {RuleId::request_next_short, [](T& t) { return t.DoEx(55, t.IndTable(3, 0, 8)); }},
    {RuleId::request_finish_tail, [](T& t) { Struct table = t.IndTable(0, t.MakeWq(), 16); table.bytes().back() = 1; return t.DoEx(55, table); }},
    {RuleId::response_fault, [](T& t) { Request call = t.Cq(); call.attrs().back().data = kBad; return t.Ioctl(call); }},
    {RuleId::invoke_request_short, [](T& t) { return t.Invoke(3, Bytes(4), &t.out); }},
    {RuleId::invoke_response_short, [](T& t) { return t.Invoke(3, Bytes(8)); }},
    {RuleId::object_absent, [](T& t) { t.Lack(Op::dealloc_pd); return t.Do(14, t.S(VABI_S(ib_uverbs_alloc_mw)).With(VABI_F(ib_uverbs_alloc_mw, mw_type), 1)); }},
    {RuleId::handle_read_none, [](T& t) { return t.Do(14, t.S(VABI_S(ib_uverbs_alloc_mw)).With(VABI_F(ib_uverbs_alloc_mw, pd_handle), 9)); }},
    {RuleId::handle_write_none, [](T& t) { return t.Do(11, t.S(VABI_S(ib_uverbs_rereg_mr)).With(VABI_F(ib_uverbs_rereg_mr, flags), 4)); }},
    {RuleId::handle_destroy_none, [](T& t) { return t.DestroyPd(5); }},
    {RuleId::handle_kind, [](T& t) { return t.DestroyPd(t.CreateCq()); }},
    {RuleId::context_none, [](T& t) { t.NoContext(); return t.Do(3, t.S(VABI_S(ib_uverbs_alloc_pd))); }},
    {RuleId::context_twice, [](T& t) { return Ioctl(t, t.Context()); }},
    {RuleId::context_fd_array, [](T& t) { t.NoContext(); Request call = t.Context(); call.Add(t.C(VABI_C(UVERBS_ATTR_GET_CONTEXT_FD_ARR)), 5, 0); return t.Ioctl(call); }},
    {RuleId::context_fd_bad, [](T& t) { t.NoContext(); Request call = t.Context(); call.Add(t.C(VABI_C(UVERBS_ATTR_GET_CONTEXT_FD_ARR)), 4, 0x7fffffff); return t.Ioctl(call); }},

    // Device
    {RuleId::query_device_comp_mask, [](T& t) { return t.DoEx(1, t.S(VABI_S(ib_uverbs_ex_query_device)).With(VABI_F(ib_uverbs_ex_query_device, comp_mask), 1)); }},
    {RuleId::query_device_reserved, [](T& t) { return t.DoEx(1, t.S(VABI_S(ib_uverbs_ex_query_device)).With(VABI_F(ib_uverbs_ex_query_device, reserved), 1)); }},
    {RuleId::port_invalid, [](T& t) { return t.Do(2, t.S(VABI_S(ib_uverbs_query_port)).With(VABI_F(ib_uverbs_query_port, port_num), 2)); }},
    {RuleId::info_handles_list, [](T& t) { return Ioctl(t, t.Info(static_cast<uint64_t>(t.C(VABI_C(UVERBS_OBJECT_PD))), 6)); }},
    {RuleId::info_handles_object, [](T& t) { return Ioctl(t, t.Info(99, 4)); }},
    {RuleId::info_handles_total, [](T& t) { return Ioctl(t, t.Info(static_cast<uint64_t>(t.C(VABI_C(UVERBS_OBJECT_PD))), 4)); }},
    {RuleId::gid_table_entry_size, [](T& t) { return Ioctl(t, t.Gids(0, 32)); }},
    {RuleId::gid_table_length, [](T& t) { return Ioctl(t, t.Gids(32, 33)); }},
    {RuleId::gid_table_full, [](T& t) { return Ioctl(t, t.Gids(32, 32)); }},
    {RuleId::gid_entry_range, [](T& t) { return Ioctl(t, t.Gid(1, 100000)); }},
    {RuleId::gid_entry_empty, [](T& t) { return Ioctl(t, t.Gid(1, 1000)); }},

    // Memory
    {RuleId::pd_in_use, [](T& t) { const uint32_t pd = t.AllocPd(); t.CreateQp(pd, t.CreateCq()); return t.DestroyPd(pd); }},
    {RuleId::mw_type, [](T& t) { return t.Do(14, t.S(VABI_S(ib_uverbs_alloc_mw)).With(VABI_F(ib_uverbs_alloc_mw, pd_handle), t.AllocPd()).With(VABI_F(ib_uverbs_alloc_mw, mw_type), 3)); }},
    {RuleId::mr_page_offset, [](T& t) { return t.Do(9, t.Mr(kLocalWrite, 0x1001)); }},
    {RuleId::mr_access_needs_local_write, [](T& t) { return t.Do(9, t.Mr(kRemoteWrite)); }},
    {RuleId::mr_access_unknown, [](T& t) { return t.Do(9, t.Mr(1 << 15)); }},
    {RuleId::mr_access_odp, [](T& t) { return t.Do(9, t.Mr(kOnDemand)); }},
    {RuleId::mr_access_flush, [](T& t) { return t.Do(9, t.Mr(kFlushGlobal)); }},
    {RuleId::mr_rereg_nothing, [](T& t) { return t.Do(11, t.Rereg(0)); }},
    {RuleId::mr_rereg_flags, [](T& t) { return t.Do(11, t.Rereg(8)); }},
    {RuleId::mr_rereg_range, [](T& t) { t.image().rule[Index(RuleId::mr_rereg_range)].on = 1; return t.Do(11, t.Rereg(1)); }},
    {RuleId::mr_rereg_dm, [](T& t) { Request reg = t.DmMr(kZeroBased, 4096, t.AllocDm()); t.Ioctl(reg);
        return t.Do(11, t.S(VABI_S(ib_uverbs_rereg_mr)).With(VABI_F(ib_uverbs_rereg_mr, mr_handle), reg.attrs()[0].data).With(VABI_F(ib_uverbs_rereg_mr, flags), 4)); }},
    {RuleId::mr_advise_list, [](T& t) { Request call = t.New(VABI_C(UVERBS_OBJECT_MR), VABI_C(UVERBS_METHOD_ADVISE_MR));
        call.AddHandle(t.C(VABI_C(UVERBS_ATTR_ADVISE_MR_PD_HANDLE)), t.AllocPd()); call.AddConst(t.C(VABI_C(UVERBS_ATTR_ADVISE_MR_ADVICE)), 0);
        call.Add(t.C(VABI_C(UVERBS_ATTR_ADVISE_MR_FLAGS)), 4, 0); call.AddOut(t.C(VABI_C(UVERBS_ATTR_ADVISE_MR_SGE_LIST)), t.out).len = 17; return t.Ioctl(call); }},
    {RuleId::mr_dm_zero_based, [](T& t) { return Ioctl(t, t.DmMr(kLocalWrite, 4096, t.AllocDm())); }},
    {RuleId::mr_dm_range, [](T& t) { return Ioctl(t, t.DmMr(kZeroBased, 4097, t.AllocDm())); }},
    {RuleId::mr_method_combination, [](T& t) { return Ioctl(t, t.RegMr(true, true)); }},
    {RuleId::dm_in_use, [](T& t) { const uint64_t dm = t.AllocDm(); Ioctl(t, t.DmMr(kZeroBased, 4096, dm));
        return t.DestroyBy(VABI_C(UVERBS_OBJECT_DM), VABI_C(UVERBS_METHOD_DM_FREE), VABI_C(UVERBS_ATTR_FREE_DM_HANDLE), dm); }},

    // Completion queues
    {RuleId::cq_comp_vector, [](T& t) { return t.Do(18, t.CqRequest().With(VABI_F(ib_uverbs_create_cq, comp_vector), 2)); }},
    {RuleId::cq_cqe_zero, [](T& t) { return t.Do(18, t.CqRequest().With(VABI_F(ib_uverbs_create_cq, cqe), 0)); }},
    {RuleId::cq_method_cqe_zero, [](T& t) { Request call = t.Cq(); call.Find(t.C(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE)))->data = 0; return t.Ioctl(call); }},
    {RuleId::cq_ex_comp_mask, [](T& t) { return t.DoEx(18, t.S(VABI_S(ib_uverbs_ex_create_cq)).With(VABI_F(ib_uverbs_ex_create_cq, comp_mask), 1)); }},
    {RuleId::cq_ex_reserved, [](T& t) { return t.DoEx(18, t.S(VABI_S(ib_uverbs_ex_create_cq)).With(VABI_F(ib_uverbs_ex_create_cq, reserved), 1)); }},
    {RuleId::cq_resize_zero, [](T& t) { return t.Do(19, t.S(VABI_S(ib_uverbs_resize_cq))); }},
    {RuleId::cq_modify_mask_empty, [](T& t) { return t.WriteEx(57, t.S(VABI_S(ib_uverbs_ex_modify_cq)).bytes()); }},
    {RuleId::cq_modify_mask_unknown, [](T& t) { return t.WriteEx(57, t.S(VABI_S(ib_uverbs_ex_modify_cq)).With(VABI_F(ib_uverbs_ex_modify_cq, attr_mask), 2).bytes()); }},
    {RuleId::cq_in_use, [](T& t) { const uint32_t cq = t.CreateCq(); t.CreateQp(t.AllocPd(), cq); return t.Do(20, t.S(VABI_S(ib_uverbs_destroy_cq)).With(VABI_F(ib_uverbs_destroy_cq, cq_handle), cq)); }},

    // Addresses
    {RuleId::ah_port, [](T& t) { return t.Do(5, t.Ah(2, true)); }},
    {RuleId::address_port, [](T& t) { t.image().rule[Index(RuleId::ah_port)].on = 0; return t.Do(5, t.Ah(2, true)); }},
    {RuleId::address_grh_required, [](T& t) { return t.Do(5, t.Ah(1, false)); }},
    {RuleId::address_sgid_range, [](T& t) { t.image().device[0].ports[0].gid_table_length = 8; return t.Do(5, t.Ah(1, true, 8)); }},
    {RuleId::address_sgid_empty, [](T& t) { return t.Do(5, t.Ah(1, true, 200)); }},

    // Queue pairs
    {RuleId::qp_type, [](T& t) { return t.Do(24, t.QpRequest(0, 0, 77)); }},
    {RuleId::qp_raw_permission, [](T& t) { t.NotRoot(); return t.Do(24, t.QpRequest(t.AllocPd(), t.CreateCq(), kQptRawPacket)); }},
    {RuleId::qp_ex_comp_mask, [](T& t) { return t.DoEx(24, t.S(VABI_S(ib_uverbs_ex_create_qp)).With(VABI_F(ib_uverbs_ex_create_qp, comp_mask), 2)); }},
    {RuleId::qp_ex_reserved, [](T& t) { return t.DoEx(24, t.S(VABI_S(ib_uverbs_ex_create_qp)).With(VABI_F(ib_uverbs_ex_create_qp, reserved), 1)); }},
    {RuleId::qp_ind_table_recv, [](T& t) { const uint32_t table = t.MakeIndTable();
        return t.DoEx(24, t.S(VABI_S(ib_uverbs_ex_create_qp)).With(VABI_F(ib_uverbs_ex_create_qp, comp_mask), 1).With(VABI_F(ib_uverbs_ex_create_qp, qp_type), kQptUd)
                              .With(VABI_F(ib_uverbs_ex_create_qp, rwq_ind_tbl_handle), table).With(VABI_F(ib_uverbs_ex_create_qp, max_recv_wr), 1)); }},
    {RuleId::qp_xrcd_none, [](T& t) { return t.Do(24, t.QpRequest(9, 9, kQptXrcTgt)); }},
    {RuleId::qp_srq_is_xrc, [](T& t) { const uint32_t xrcd = t.OpenXrcd(-1, 0), cq = t.CreateCq(), pd = t.AllocPd();
        t.Do(39, t.S(VABI_S(ib_uverbs_create_xsrq)).With(VABI_F(ib_uverbs_create_xsrq, srq_type), 1).With(VABI_F(ib_uverbs_create_xsrq, pd_handle), pd)
                     .With(VABI_F(ib_uverbs_create_xsrq, xrcd_handle), xrcd).With(VABI_F(ib_uverbs_create_xsrq, cq_handle), cq));
        const uint32_t srq = t.U32(t.out, VABI_F(ib_uverbs_create_srq_resp, srq_handle));
        return t.Do(24, t.QpRequest(pd, cq).With(VABI_F(ib_uverbs_create_qp, is_srq), 1).With(VABI_F(ib_uverbs_create_qp, srq_handle), srq)); }},
    {RuleId::qp_create_flags, [](T& t) { return t.DoEx(24, t.S(VABI_S(ib_uverbs_ex_create_qp)).With(VABI_F(ib_uverbs_ex_create_qp, qp_type), kQptRc).With(VABI_F(ib_uverbs_ex_create_qp, create_flags), 1)
        .With(VABI_F(ib_uverbs_ex_create_qp, pd_handle), t.AllocPd()).With(VABI_F(ib_uverbs_ex_create_qp, send_cq_handle), t.CreateCq()).With(VABI_F(ib_uverbs_ex_create_qp, recv_cq_handle), 1)); }},
    {RuleId::qp_source_qpn_permission, [](T& t) { t.NotRoot(); return t.DoEx(24, t.S(VABI_S(ib_uverbs_ex_create_qp)).With(VABI_F(ib_uverbs_ex_create_qp, qp_type), kQptUd).With(VABI_F(ib_uverbs_ex_create_qp, create_flags), 1 << 10)
        .With(VABI_F(ib_uverbs_ex_create_qp, pd_handle), t.AllocPd()).With(VABI_F(ib_uverbs_ex_create_qp, send_cq_handle), t.CreateCq()).With(VABI_F(ib_uverbs_ex_create_qp, recv_cq_handle), 1)); }},
    {RuleId::qp_method_tgt_handles, [](T& t) { Request call = t.Qp(kQptXrcTgt); call.AddHandle(t.C(VABI_C(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE)), t.OpenXrcd(-1, 0)); return t.Ioctl(call); }},
    {RuleId::qp_method_odd_handles, [](T& t) { Request call = t.Qp(kQptRc); call.AddHandle(t.C(VABI_C(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE)), t.OpenXrcd(-1, 0)); return t.Ioctl(call); }},
    {RuleId::qp_method_handle_missing, [](T& t) { return Ioctl(t, t.Qp(kQptRc, false)); }},
    {RuleId::qp_method_flags_type, [](T& t) { Request call = t.Qp(kQptRc); call.Add(t.C(VABI_C(UVERBS_ATTR_CREATE_QP_FLAGS)), 4, 2); return t.Ioctl(call); }},
    {RuleId::qp_method_srq_type, [](T& t) { const uint32_t xrcd = t.OpenXrcd(-1, 0), cq = t.CreateCq(), pd = t.AllocPd();
        t.Do(39, t.S(VABI_S(ib_uverbs_create_xsrq)).With(VABI_F(ib_uverbs_create_xsrq, srq_type), 1).With(VABI_F(ib_uverbs_create_xsrq, pd_handle), pd)
                     .With(VABI_F(ib_uverbs_create_xsrq, xrcd_handle), xrcd).With(VABI_F(ib_uverbs_create_xsrq, cq_handle), cq));
        const uint32_t srq = t.U32(t.out, VABI_F(ib_uverbs_create_srq_resp, srq_handle));
        Request call = t.Qp(kQptRc); call.AddHandle(t.C(VABI_C(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE)), srq); return t.Ioctl(call); }},
    {RuleId::qp_open_type, [](T& t) { return t.Do(40, t.S(VABI_S(ib_uverbs_open_qp)).With(VABI_F(ib_uverbs_open_qp, pd_handle), t.OpenXrcd(-1, 0)).With(VABI_F(ib_uverbs_open_qp, qp_type), kQptRc)); }},
    {RuleId::qp_open_none, [](T& t) { return t.Do(40, t.S(VABI_S(ib_uverbs_open_qp)).With(VABI_F(ib_uverbs_open_qp, pd_handle), t.OpenXrcd(-1, 0)).With(VABI_F(ib_uverbs_open_qp, qp_type), kQptXrcTgt)); }},
    {RuleId::qp_mcast_attached, [](T& t) { const uint32_t qp = t.CreateQp(t.AllocPd(), t.CreateCq(), kQptUd); t.Write(30, t.Mcast(qp, 0xff));
        return t.Do(27, t.S(VABI_S(ib_uverbs_destroy_qp)).With(VABI_F(ib_uverbs_destroy_qp, qp_handle), qp)); }},
    {RuleId::qp_in_use, [](T& t) { Struct flow = t.Flow(); const uint32_t qp = static_cast<uint32_t>(flow.Get(VABI_F(ib_uverbs_create_flow, qp_handle))); t.DoEx(50, flow);
        return t.Do(27, t.S(VABI_S(ib_uverbs_destroy_qp)).With(VABI_F(ib_uverbs_destroy_qp, qp_handle), qp)); }},
    {RuleId::qp_modify_mask, [](T& t) { return t.Write(26, t.Modify(1u << 21)); }},
    {RuleId::qp_modify_ex_mask, [](T& t) { return t.WriteEx(26, t.Modify(1u << 31).bytes()); }},
    {RuleId::qp_modify_port, [](T& t) { return t.Write(26, t.Modify(kQpPort).With(VABI_F(ib_uverbs_modify_qp, port_num), 2)); }},
    {RuleId::qp_modify_av_port, [](T& t) { return t.Write(26, t.ModifyAv(kQpAv, QpState::kSqd, 2)); }},
    {RuleId::qp_modify_av_other_port, [](T& t) { Struct request = t.ModifyAv(kQpState | kQpAv, QpState::kInit, 1); request.Set(VABI_F(ib_uverbs_modify_qp, qp_state), 2);
        static_cast<vabi::Qp*>(t.file().Find(ObjectType::kQp, request.Get(VABI_F(ib_uverbs_modify_qp, qp_handle))))->port = 2; return t.Write(26, request); }},
    {RuleId::qp_modify_av_and_port, [](T& t) { t.image().device[0].port_count = 2; t.image().device[0].ports[1] = t.image().device[0].ports[0]; return t.Write(26, t.ModifyAv(kQpAv | kQpPort, QpState::kSqd, 1, 2)); }},
    {RuleId::qp_modify_alt_port, [](T& t) { return t.Write(26, t.Modify(kQpAltPath).With(VABI_F(ib_uverbs_modify_qp, alt_port_num), 2)); }},
    {RuleId::qp_modify_state_range, [](T& t) { return t.Write(26, t.Modify(kQpState).With(VABI_F(ib_uverbs_modify_qp, qp_state), 7)); }},
    {RuleId::qp_modify_qkey_permission, [](T& t) { t.NotRoot(); return t.Write(26, t.Modify(kQpQkey, QpState::kRts, kQptUd).With(VABI_F(ib_uverbs_modify_qp, qkey), 0x80000001)); }},
    {RuleId::qp_modify_alt_path_roce, [](T& t) { Struct request = t.Modify(kQpAltPath, QpState::kRts); request.Set(VABI_F(ib_uverbs_modify_qp, alt_port_num), 1);
        const Body dest = request.Sub(VABI_F(ib_uverbs_modify_qp, alt_dest)); dest.Set(VABI_F(ib_uverbs_qp_dest, port_num), 1); dest.Set(VABI_F(ib_uverbs_qp_dest, is_global), 1); return t.Write(26, request); }},
    {RuleId::qp_modify_transition, [](T& t) { return t.Write(26, t.Modify(kQpState).With(VABI_F(ib_uverbs_modify_qp, qp_state), 3)); }},
    {RuleId::post_send_wqe_size, [](T& t) { return t.Do(28, t.Post(0, 8, 0)); }},
    {RuleId::post_recv_wqe_size, [](T& t) { return t.Do(29, t.S(VABI_S(ib_uverbs_post_recv))
        .With(VABI_F(ib_uverbs_post_recv, wqe_size), 15)); }},
    {RuleId::post_sge_count, [](T& t) { Struct request = t.Post(1, 64, 64); request.bytes()[request.bytes().size() - 64 + 8] = 1; return t.Do(28, request); }},
    {RuleId::post_send_opcode, [](T& t) { Struct request = t.Post(1, 64, 64); request.bytes()[request.bytes().size() - 64 + 12] = 7; return t.Do(28, request); }},
    {RuleId::mcast_address, [](T& t) { return t.Write(30, t.Mcast(t.CreateQp(t.AllocPd(), t.CreateCq(), kQptUd), 0xfe)); }},
    {RuleId::mcast_none, [](T& t) { return t.Write(31, t.Mcast(t.CreateQp(t.AllocPd(), t.CreateCq(), kQptUd), 0xff)); }},

    // Shared receive queues, XRC
    {RuleId::srq_xrcd_none, [](T& t) { return t.Do(39, t.S(VABI_S(ib_uverbs_create_xsrq)).With(VABI_F(ib_uverbs_create_xsrq, srq_type), 1).With(VABI_F(ib_uverbs_create_xsrq, xrcd_handle), 9)); }},
    {RuleId::srq_method_missing, [](T& t) { return Ioctl(t, t.Srq(1)); }},
    {RuleId::srq_method_type, [](T& t) { return Ioctl(t, t.Srq(7)); }},
    {RuleId::srq_in_use, [](T& t) { Request call = t.Srq(0); t.Ioctl(call); const uint64_t srq = call.attrs()[0].data; const uint32_t pd = t.AllocPd(), cq = t.CreateCq();
        t.Do(24, t.QpRequest(pd, cq).With(VABI_F(ib_uverbs_create_qp, is_srq), 1).With(VABI_F(ib_uverbs_create_qp, srq_handle), srq));
        return t.Do(35, t.S(VABI_S(ib_uverbs_destroy_srq)).With(VABI_F(ib_uverbs_destroy_srq, srq_handle), srq)); }},
    {RuleId::xrcd_fd, [](T& t) { return t.Do(37, t.Xrcd(0x7ffffff, O_CREAT)); }},
    {RuleId::xrcd_not_there, [](T& t) { return t.Do(37, t.Xrcd(t.Temporary(), 0)); }},
    {RuleId::xrcd_exclusive, [](T& t) { const int fd = t.Temporary(); t.OpenXrcd(fd, O_CREAT); return t.Do(37, t.Xrcd(fd, O_EXCL)); }},
    {RuleId::xrcd_handle_in_use, [](T& t) { const uint32_t xrcd = t.OpenXrcd(-1, 0); t.Do(24, t.QpRequest(xrcd, 0, kQptXrcTgt));
        return t.Write(38, t.S(VABI_S(ib_uverbs_close_xrcd)).With(VABI_F(ib_uverbs_close_xrcd, xrcd_handle), xrcd)); }},
    {RuleId::xrcd_in_use, [](T& t) { const uint32_t xrcd = t.OpenXrcd(-1, 0); t.Do(24, t.QpRequest(xrcd, 0, kQptXrcTgt)); t.file().Find(ObjectType::kXrcd, xrcd)->users = 0;
        const long result = t.Write(38, t.S(VABI_S(ib_uverbs_close_xrcd)).With(VABI_F(ib_uverbs_close_xrcd, xrcd_handle), xrcd));
        if (Object* object = t.file().Find(ObjectType::kXrcd, xrcd)) object->users = 1;
        return result; }},

    // Work queues
    {RuleId::wq_comp_mask, [](T& t) { return t.DoEx(52, t.ExWq().With(VABI_F(ib_uverbs_ex_create_wq, comp_mask), 1)); }},
    {RuleId::wq_modify_mask_empty, [](T& t) { return t.WriteEx(53, t.ModifyWq(0).bytes()); }},
    {RuleId::wq_modify_mask_unknown, [](T& t) { return t.WriteEx(53, t.ModifyWq(8).bytes()); }},
    {RuleId::wq_modify_state, [](T& t) { return t.WriteEx(53, t.ModifyWq(1, 3).bytes()); }},
    {RuleId::wq_method_type, [](T& t) { return Ioctl(t, t.Wq(1)); }},
    {RuleId::wq_method_number, [](T& t) { return Ioctl(t, t.Wq(0, false)); }},
    {RuleId::wq_in_use, [](T& t) { const uint32_t wq = t.MakeWq(); t.DoEx(55, t.IndTable(0, wq, 8));
        return t.DoEx(54, t.S(VABI_S(ib_uverbs_ex_destroy_wq)).With(VABI_F(ib_uverbs_ex_destroy_wq, wq_handle), wq)); }},
    {RuleId::ind_table_comp_mask, [](T& t) { return t.DoEx(55, t.IndTable(0, t.MakeWq(), 8).With(VABI_F(ib_uverbs_ex_create_rwq_ind_table, comp_mask), 1)); }},
    {RuleId::ind_table_size, [](T& t) { return t.DoEx(55, t.IndTable(14, 0, 8)); }},
    {RuleId::ind_table_in_use, [](T& t) { const uint32_t table = t.MakeIndTable();
        t.DoEx(24, t.S(VABI_S(ib_uverbs_ex_create_qp)).With(VABI_F(ib_uverbs_ex_create_qp, comp_mask), 1).With(VABI_F(ib_uverbs_ex_create_qp, qp_type), kQptUd)
                       .With(VABI_F(ib_uverbs_ex_create_qp, pd_handle), t.AllocPd()).With(VABI_F(ib_uverbs_ex_create_qp, rwq_ind_tbl_handle), table));
        return t.WriteEx(56, t.S(VABI_S(ib_uverbs_ex_destroy_rwq_ind_table)).With(VABI_F(ib_uverbs_ex_destroy_rwq_ind_table, ind_tbl_handle), table).bytes()); }},

    // Flows
    {RuleId::flow_comp_mask, [](T& t) { return t.DoEx(50, t.Flow().With(VABI_F(ib_uverbs_create_flow, comp_mask), 1)); }},
    {RuleId::flow_permission, [](T& t) { t.NotRoot(); return t.DoEx(50, t.Flow()); }},
    {RuleId::flow_flags, [](T& t) { return t.DoEx(50, t.Flow(0, 8)); }},
    {RuleId::flow_dont_trap, [](T& t) { return t.DoEx(50, t.Flow(1, 2)); }},
    {RuleId::flow_specs_many, [](T& t) { return t.DoEx(50, t.Flow(0, 0, 11)); }},
    {RuleId::flow_specs_size, [](T& t) { return t.DoEx(50, t.Flow(0, 0, 1, 96)); }},
    {RuleId::flow_reserved, [](T& t) { Struct request = t.Flow(); const uint8_t one[2] = {1, 0};
        request.Sub(VABI_F(ib_uverbs_create_flow, flow_attr)).SetBytes(VABI_F(ib_uverbs_flow_attr, reserved), one, 2); return t.DoEx(50, request); }},
    {RuleId::flow_port, [](T& t) { return t.DoEx(50, t.Flow(0, 0, 0, 0, 2)); }},
    {RuleId::flow_qp_type, [](T& t) { return t.DoEx(50, t.Flow(0, 0, 0, 0, 1, kQptRc)); }},
    {RuleId::flow_spec, [](T& t) { return t.FlowSpec(0x22, 40); }},
    {RuleId::flow_spec_reserved, [](T& t) { return t.FlowSpec(0x20, 40, 1); }},
    {RuleId::flow_spec_tail, [](T& t) { return t.FlowSpec(0x40, 24, 0, {8 + 8 + 7}); }},
    {RuleId::flow_spec_range, [](T& t) { return t.FlowSpec(0x50, 16, 0, {8}); }},
    {RuleId::flow_spec_action_size, [](T& t) { return t.FlowSpec(0x1002, 24); }},
    {RuleId::flow_specs_left, [](T& t) { return t.DoEx(50, t.Flow(0, 0, 1, 4)); }},
    {RuleId::counters_in_use, [](T& t) { const uint64_t counters = t.MakeCounters(); t.file().Find(ObjectType::kCounters, counters)->users = 1;
        const long result = t.DestroyBy(VABI_C(UVERBS_OBJECT_COUNTERS), VABI_C(UVERBS_METHOD_COUNTERS_DESTROY), VABI_C(UVERBS_ATTR_DESTROY_COUNTERS_HANDLE), counters);
        if (Object* object = t.file().Find(ObjectType::kCounters, counters)) object->users = 0;
        return result; }},
    {RuleId::counters_unbound, [](T& t) { const uint64_t counters = t.MakeCounters(); Request call = t.New(VABI_C(UVERBS_OBJECT_COUNTERS), VABI_C(UVERBS_METHOD_COUNTERS_READ));
        call.AddHandle(t.C(VABI_C(UVERBS_ATTR_READ_COUNTERS_HANDLE)), counters); call.AddOut(t.C(VABI_C(UVERBS_ATTR_READ_COUNTERS_BUFF)), t.out); return t.Ioctl(call); }},

    {RuleId::flow_action_in_use, [](T& t) { auto action = std::make_unique<FlowAction>(); action->users = 1;
        action->device = &t.device(); action->handle = t.file().ReserveHandle(ObjectType::kFlowAction);
        FlowAction* there = action.get(); const uint32_t handle = action->handle; t.file().Commit(std::move(action));
        const long result = t.DestroyBy(VABI_C(UVERBS_OBJECT_FLOW_ACTION), VABI_C(UVERBS_METHOD_FLOW_ACTION_DESTROY), VABI_C(UVERBS_ATTR_DESTROY_FLOW_ACTION_HANDLE), handle);
        if (t.file().Find(ObjectType::kFlowAction, handle) != nullptr) there->users = 0;
        return result; }},

    // Events
    {RuleId::event_read_short, [](T& t) { auto channel = t.Channel(); vabi::Cq cq; channel->Notify(cq); const long result = channel->Read(t.out.data(), 7, true); channel->ForgetCq(cq); return result; }},
    {RuleId::event_read_again, [](T& t) { return t.Channel()->Read(t.out.data(), 8, true); }},
    {RuleId::event_read_closed, [](T& t) { auto channel = t.Channel(); t.file().Release(); return channel->Read(t.out.data(), 8, true); }},
  };
  return *offences;
}
// clang-format on

class EachRule : public testing::TestWithParam<size_t> {};

TEST_P(EachRule, RefusesWithItsErrnoAndName) {
  const Offence& offence = Offences()[GetParam()];
  const RuleRow& row = RuleRows()[Index(offence.rule)];
  RulesTest t;
  t.OpenContext();
  EXPECT_EQ(-row.error, offence.commit(t));
  EXPECT_EQ(row.name, t.LastRule());
}

TEST_P(EachRule, IsMissedWhenItIsTakenAway) {
  const Offence& offence = Offences()[GetParam()];
  RulesTest t;
  t.OpenContext();
  t.image().rule[Index(offence.rule)].relaxed = 1;
  const long result = offence.commit(t);
  if (RuleRows()[Index(offence.rule)].kind == RuleKind::structural) {
    EXPECT_EQ(-EXFULL, result);
  } else {
    EXPECT_NE(RuleRows()[Index(offence.rule)].name, t.LastRule());
  }
}

INSTANTIATE_TEST_SUITE_P(All, EachRule, testing::Range(size_t{0}, Offences().size()),
                         [](const auto& info) {
                           return CaseName(RuleRows()[Index(Offences()[info.param].rule)].name);
                         });

// No rule of this room without an offence, but for those that no test driver's method can offend,
// and those of memory, which drivers pin.
TEST(Rules, AllHaveAnOffence) {
  constexpr RuleId kOfDrivers[] = {RuleId::ioctl_enum_unknown, RuleId::ioctl_enum_reserved,
                                   RuleId::ioctl_array_length, RuleId::ioctl_fd_access,
                                   RuleId::umem_no_lock,       RuleId::umem_memlock};
  constexpr RuleId kOfThisRoom[] = {
#define VABI_RULE(id, name, error, kind, source) RuleId::id,
#include "shims/uverbs/rules.def"
#undef VABI_RULE
  };
  for (const RuleId rule : kOfThisRoom) {
    const bool has = std::any_of(Offences().begin(), Offences().end(),
                                 [&](const Offence& offence) { return offence.rule == rule; });
    const bool excused =
        std::find(std::begin(kOfDrivers), std::end(kOfDrivers), rule) != std::end(kOfDrivers);
    EXPECT_TRUE(has || excused) << RuleRows()[Index(rule)].name;
  }
}

}  // namespace
}  // namespace vabi
