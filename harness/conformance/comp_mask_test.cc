// SPDX-License-Identifier: BSD-2-Clause
//
// comp_mask, flags and reserved fields: each bit that a side knows is taken, each other one is
// refused with the errno of the kernel's source, and a call that was refused has made nothing.
// Kernel: drivers/infiniband/core/uverbs_cmd.c, uverbs_std_types_*.c, hw/mlx5/{main,cq}.c; the
// library's own checks: providers/mlx5/verbs.c, libibverbs/cmd_*.c.

#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "harness/conformance/framework/abi_test.h"
#include "harness/conformance/framework/raw.h"
#include "harness/conformance/framework/raw_mlx5.h"
#include "harness/conformance/framework/verbs.h"

namespace vabi::conformance {
namespace {

using ::testing::IsEmpty;

// Objects of one kind that a file has: DEVICE.INFO_HANDLES; none is ENOENT
// (core/uverbs_std_types_device.c).
uint32_t Count(int fd, uint16_t object) {
  uint32_t total = 0;
  uint32_t handles[64] = {};
  RawIoctl call(fd, DriverId(), UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
  call.Value(UVERBS_ATTR_INFO_OBJECT_ID, object)
      .Out(UVERBS_ATTR_INFO_TOTAL_HANDLES, &total, sizeof total)
      .Out(UVERBS_ATTR_INFO_HANDLES_LIST, handles, sizeof handles);
  const Error error = call.Call();
  if (error.value == ENOENT) return 0;
  Must("INFO_HANDLES", error);
  return total;
}

// Sends `request` once for each of 32 bits of the word at `offset` of its core, all others zero
// there, and wants each refused with `error`, but for those in `known`.
void EachBitIsRefused(int fd, const RawRequest& request, size_t offset, size_t core_reply,
                      int error, uint32_t known = 0, size_t driver_reply = 0) {
  for (uint32_t bit = 1; bit != 0; bit <<= 1) {
    if ((known & bit) != 0) continue;
    Guarded reply(512);
    RawRequest other = request;
    other.reply = &reply;
    std::memcpy(other.core.data() + offset, &bit, sizeof bit);
    EXPECT_THAT(RawExtended(fd, other, core_reply, driver_reply), FailsWith(error))
        << "bit 0x" << std::hex << bit;
    EXPECT_EQ(reply.written(), 0u) << "bit 0x" << std::hex << bit;
  }
}

ib_uverbs_ex_create_cq UsualCq() {
  ib_uverbs_ex_create_cq cq = {};
  cq.cqe = 16;
  cq.comp_channel = -1;
  return cq;
}

ib_uverbs_ex_create_qp UsualQp(const ProtectionDomain& pd, const CompletionQueue& cq) {
  ib_uverbs_ex_create_qp qp = {};
  qp.pd_handle = pd->handle;
  qp.send_cq_handle = qp.recv_cq_handle = cq->handle;
  qp.max_send_wr = qp.max_recv_wr = 8;
  qp.max_send_sge = qp.max_recv_sge = 1;
  qp.qp_type = IB_UVERBS_QPT_RC;
  return qp;
}

// rdma/rdma_user_rxe.h: struct rxe_create_cq_resp, struct rxe_create_qp_resp.
constexpr size_t kRxeCqReply = 16, kRxeQpReply = 32;

// The request as it is, for what it makes to go with its context.
Error Make(int fd, RawRequest request, size_t core_reply, size_t driver_reply) {
  Guarded reply(512);
  request.reply = &reply;
  const Error error = RawExtended(fd, request, core_reply, driver_reply);
  EXPECT_TRUE(reply.intact());
  return error;
}

// A context of mlx5 by the method of its own, on a file of its own.
Error GetContext(const mlx5_ib_alloc_ucontext_req_v2& request, mlx5_ib_alloc_ucontext_resp* reply) {
  RawFile file;
  return GetMlx5Context(file.fd(), request, reply, sizeof *reply);
}

}  // namespace

// uverbs_cmd.c:ib_uverbs_ex_query_device: no bit is known, and reserved is zero.
ABI_TEST(CompMask, QueryDeviceKnowsNoBit,
         Needs{.served = {"EX_QUERY_DEVICE"}, .ops = {"query_device_ex"}}) {
  Context context = OpenOnlyDevice();
  const auto request =
      RawRequest::Of(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, ib_uverbs_ex_query_device{});
  const size_t reply = cell().SizeOf("ib_uverbs_ex_query_device_resp");
  EachBitIsRefused(context->cmd_fd, request, offsetof(ib_uverbs_ex_query_device, comp_mask), reply,
                   EINVAL);
  EachBitIsRefused(context->cmd_fd, request, offsetof(ib_uverbs_ex_query_device, reserved), reply,
                   EINVAL);
}

// uverbs_cmd.c:ib_uverbs_ex_create_cq. The request is one that rxe carries out (its reply wants 16
// bytes of its own), so that nothing but the bit can be refused.
ABI_TEST(CompMask, CreateCqKnowsNoBit,
         Needs{.provider = "rxe", .served = {"EX_CREATE_CQ"}, .ops = {"create_cq_ex"}}) {
  Context context = OpenOnlyDevice();
  const auto request = RawRequest::Of(IB_USER_VERBS_EX_CMD_CREATE_CQ, UsualCq());
  const size_t reply = sizeof(ib_uverbs_ex_create_cq_resp);
  EachBitIsRefused(context->cmd_fd, request, offsetof(ib_uverbs_ex_create_cq, comp_mask), reply,
                   EINVAL, 0, kRxeCqReply);
  EachBitIsRefused(context->cmd_fd, request, offsetof(ib_uverbs_ex_create_cq, reserved), reply,
                   EINVAL, 0, kRxeCqReply);
  EXPECT_THAT(Make(context->cmd_fd, request, reply, kRxeCqReply), Succeeds());
}

// mlx5 wants a request of its own, which is looked at later: the bits are refused before.
ABI_TEST(CompMask, CreateCqOfMlx5KnowsNoBit,
         Needs{.provider = "mlx5", .served = {"EX_CREATE_CQ"}, .ops = {"create_cq_ex"}}) {
  Context context = OpenOnlyDevice();
  trace().Forget();
  const auto request = RawRequest::Of(IB_USER_VERBS_EX_CMD_CREATE_CQ, UsualCq());
  const size_t reply = sizeof(ib_uverbs_ex_create_cq_resp);
  EachBitIsRefused(context->cmd_fd, request, offsetof(ib_uverbs_ex_create_cq, comp_mask), reply,
                   EINVAL);
  for (const Command& command : trace().Refused())
    EXPECT_NE(command.rule.substr(0, 4), "mlx5") << command;
}

// uverbs_cmd.c:ib_uverbs_ex_create_qp: IND_TABLE is known since 4.6, and nothing else is.
ABI_TEST(CompMask, CreateQpKnowsTheIndirectionTable,
         Needs{.provider = "rxe", .served = {"EX_CREATE_QP"}, .ops = {"create_qp_ex"}}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);
  const auto request = RawRequest::Of(IB_USER_VERBS_EX_CMD_CREATE_QP, UsualQp(pd, cq));
  const size_t reply = sizeof(ib_uverbs_ex_create_qp_resp);
  EachBitIsRefused(context->cmd_fd, request, offsetof(ib_uverbs_ex_create_qp, comp_mask), reply,
                   EINVAL, IB_UVERBS_CREATE_QP_MASK_IND_TABLE, kRxeQpReply);
  EachBitIsRefused(context->cmd_fd, request, offsetof(ib_uverbs_ex_create_qp, reserved), reply,
                   EINVAL, 0, kRxeQpReply);
  // Nothing was made that still holds them; what the request makes without those bits does.
  EXPECT_THAT(cq.TryDestroy(), Succeeds());
  cq = context.CreateCq(16);
  EXPECT_THAT(Make(context->cmd_fd, RawRequest::Of(IB_USER_VERBS_EX_CMD_CREATE_QP, UsualQp(pd, cq)),
                   reply, kRxeQpReply),
              Succeeds());
  EXPECT_THAT(cq.TryDestroy(), FailsWith(EBUSY));
  cq.Release();
  pd.Release();
}

// The known bit is taken: what is refused then is the handle of a table that is not there
// (uobj_get_obj_read; ENOENT where the lookup's errno is passed on: 6.12 on, and Debian's 6.1.192).
ABI_TEST(CompMask, TheIndirectionTablesBitLooksTheTableUp,
         Needs{
             .provider = "mlx5",
             .link = "roce",
             .kernels = {"debian-6.1.192", "debian-6.12*", "debian-7*", "linux-6.12", "linux-6.16"},
             .served = {"EX_CREATE_QP"},
             .ops = {"create_rwq_ind_table"},
             .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);
  ib_uverbs_ex_create_qp qp = UsualQp(pd, cq);
  qp.comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE;
  qp.rwq_ind_tbl_handle = 0x7777;
  Guarded reply(512);
  auto request = RawRequest::Of(IB_USER_VERBS_EX_CMD_CREATE_QP, qp);
  request.reply = &reply;
  EXPECT_THAT(RawExtended(context->cmd_fd, request, sizeof(ib_uverbs_ex_create_qp_resp), 0),
              FailsWith(ENOENT));
}

// uverbs_cmd.c:ib_uverbs_ex_modify_cq: an empty mask is EINVAL, bits other than MODERATE are
// EOPNOTSUPP.
ABI_TEST(CompMask, ModifyCqKnowsModeration,
         Needs{.provider = "mlx5",
               .served = {"EX_MODIFY_CQ"},
               .ops = {"modify_cq"},
               .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  CompletionQueue cq = context.CreateCq(16);
  ib_uverbs_ex_modify_cq modify = {};
  modify.cq_handle = cq->handle;
  auto request = RawRequest::Of(IB_USER_VERBS_EX_CMD_MODIFY_CQ, modify);
  EXPECT_THAT(RawExtended(context->cmd_fd, request, 0, 0), FailsWith(EINVAL));
  for (uint32_t bit = 2; bit != 0; bit <<= 1) {
    std::memcpy(request.core.data() + offsetof(ib_uverbs_ex_modify_cq, attr_mask), &bit,
                sizeof bit);
    EXPECT_THAT(RawExtended(context->cmd_fd, request, 0, 0), FailsWith(EOPNOTSUPP)) << bit;
  }
  modify.attr_mask = 1;  // IB_CQ_MODERATE
  modify.attr.cq_count = 4;
  modify.attr.cq_period = 10;
  EXPECT_THAT(
      RawExtended(context->cmd_fd, RawRequest::Of(IB_USER_VERBS_EX_CMD_MODIFY_CQ, modify), 0, 0),
      Succeeds());
  modify.reserved = 1;
  EXPECT_THAT(
      RawExtended(context->cmd_fd, RawRequest::Of(IB_USER_VERBS_EX_CMD_MODIFY_CQ, modify), 0, 0),
      FailsWith(EINVAL));
}

// uverbs_cmd.c: work queues and indirection tables say EOPNOTSUPP. mlx5 has them on Ethernet
// (hw/mlx5/main.c:mlx5_ib_dev_common_roce_ops).
ABI_TEST(CompMask, WorkQueuesKnowNoBit,
         Needs{.provider = "mlx5",
               .link = "roce",
               .served = {"EX_CREATE_WQ", "EX_DESTROY_WQ"},
               .ops = {"create_wq"},
               .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);
  ib_uverbs_ex_create_wq create = {};
  create.pd_handle = pd->handle;
  create.cq_handle = cq->handle;
  create.max_wr = 4;
  create.max_sge = 1;
  EachBitIsRefused(context->cmd_fd, RawRequest::Of(IB_USER_VERBS_EX_CMD_CREATE_WQ, create),
                   offsetof(ib_uverbs_ex_create_wq, comp_mask), sizeof(ib_uverbs_ex_create_wq_resp),
                   EOPNOTSUPP);
  EachBitIsRefused(context->cmd_fd,
                   RawRequest::Of(IB_USER_VERBS_EX_CMD_DESTROY_WQ, ib_uverbs_ex_destroy_wq{}),
                   offsetof(ib_uverbs_ex_destroy_wq, comp_mask),
                   sizeof(ib_uverbs_ex_destroy_wq_resp), EOPNOTSUPP);
  EXPECT_THAT(cq.TryDestroy(), Succeeds());
  EXPECT_THAT(pd.TryDestroy(), Succeeds());
}

ABI_TEST(CompMask, IndirectionTablesKnowNoBit,
         Needs{.provider = "mlx5",
               .link = "roce",
               .served = {"EX_CREATE_RWQ_IND_TBL", "EX_DESTROY_RWQ_IND_TBL"},
               .ops = {"create_rwq_ind_table"}}) {
  Context context = OpenOnlyDevice();
  // struct ib_uverbs_ex_create_rwq_ind_table with two work queues: comp_mask, log_ind_tbl_size,
  // wq_handles[].
  struct {
    uint32_t comp_mask, log_size, wqs[2];
  } create = {};
  EachBitIsRefused(context->cmd_fd, RawRequest::Of(IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, create),
                   0, sizeof(ib_uverbs_ex_create_rwq_ind_table_resp), EOPNOTSUPP);
  EachBitIsRefused(context->cmd_fd,
                   RawRequest::Of(IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL,
                                  ib_uverbs_ex_destroy_rwq_ind_table{}),
                   offsetof(ib_uverbs_ex_destroy_rwq_ind_table, comp_mask), 0, EOPNOTSUPP);
}

// Refused calls leave nothing behind: counted by the kernel itself, before and after.
ABI_TEST(CompMask, RefusedCallsMakeNothing,
         Needs{.provider = "rxe",
               .served = {"DEVICE.INFO_HANDLES", "EX_CREATE_CQ", "EX_CREATE_QP"},
               .ops = {"create_cq_ex", "create_qp_ex"}}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);
  ASSERT_EQ(Count(context->cmd_fd, UVERBS_OBJECT_PD), 1u);
  ASSERT_EQ(Count(context->cmd_fd, UVERBS_OBJECT_CQ), 1u);
  ASSERT_EQ(Count(context->cmd_fd, UVERBS_OBJECT_QP), 0u);
  const auto create_cq = RawRequest::Of(IB_USER_VERBS_EX_CMD_CREATE_CQ, UsualCq());
  EachBitIsRefused(context->cmd_fd, create_cq, offsetof(ib_uverbs_ex_create_cq, comp_mask),
                   sizeof(ib_uverbs_ex_create_cq_resp), EINVAL, 0, kRxeCqReply);
  EachBitIsRefused(context->cmd_fd, RawRequest::Of(IB_USER_VERBS_EX_CMD_CREATE_QP, UsualQp(pd, cq)),
                   offsetof(ib_uverbs_ex_create_qp, comp_mask), sizeof(ib_uverbs_ex_create_qp_resp),
                   EINVAL, IB_UVERBS_CREATE_QP_MASK_IND_TABLE, kRxeQpReply);
  EXPECT_EQ(Count(context->cmd_fd, UVERBS_OBJECT_PD), 1u);
  EXPECT_EQ(Count(context->cmd_fd, UVERBS_OBJECT_CQ), 1u);
  EXPECT_EQ(Count(context->cmd_fd, UVERBS_OBJECT_QP), 0u);
  EXPECT_THAT(Make(context->cmd_fd, create_cq, sizeof(ib_uverbs_ex_create_cq_resp), kRxeCqReply),
              Succeeds());
  EXPECT_EQ(Count(context->cmd_fd, UVERBS_OBJECT_CQ), 2u);
}

// uverbs_std_types_cq.c: uverbs_get_flags32 of TIMESTAMP_COMPLETION and IGNORE_OVERRUN; other bits
// are EINVAL before the driver is asked.
ABI_TEST(CompMask, TheCqMethodKnowsTwoFlags,
         Needs{.provider = "rxe", .served = {"CQ.CREATE", "DEVICE.INFO_HANDLES"}}) {
  Context context = OpenOnlyDevice();
  const auto create = [&context](uint32_t flags) {
    uint32_t cqe = 0;
    uint8_t driver[kRxeCqReply] = {};
    RawIoctl call(context->cmd_fd, DriverId(), UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
    return call.NewHandle(UVERBS_ATTR_CREATE_CQ_HANDLE)
        .Value(UVERBS_ATTR_CREATE_CQ_CQE, 16, 4)
        .Value(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 1, 8)
        .Value(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 0, 4)
        .Value(UVERBS_ATTR_CREATE_CQ_FLAGS, flags, 4)
        .Out(UVERBS_ATTR_CREATE_CQ_RESP_CQE, &cqe, sizeof cqe)
        .Out(UVERBS_ATTR_UHW_OUT, driver, sizeof driver)
        .Call();
  };
  for (uint32_t bit = 4; bit != 0; bit <<= 1) {
    EXPECT_THAT(create(bit), FailsWith(EINVAL)) << "flag 0x" << std::hex << bit;
  }
  EXPECT_EQ(Count(context->cmd_fd, UVERBS_OBJECT_CQ), 0u);
  EXPECT_THAT(create(0), Succeeds());
  EXPECT_EQ(Count(context->cmd_fd, UVERBS_OBJECT_CQ), 1u);
}

// uverbs_std_types_qp.c: five flags are known; other bits are EINVAL. check_creation_flags leaves a
// UD queue pair two of them, which rxe_verbs.c has not (5.14 on: EOPNOTSUPP); SQ_SIG_ALL is the
// core's own.
ABI_TEST(CompMask, TheQpMethodKnowsItsFlags,
         Needs{.provider = "rxe",
               .kernels = {"linux-5.14", "linux-6.*", "debian-[67].*"},
               .served = {"QP.CREATE", "DEVICE.INFO_HANDLES"}}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);
  const auto create = [&](uint32_t flags) {
    const ib_uverbs_qp_cap cap = {8, 8, 1, 1, 0};
    ib_uverbs_qp_cap granted = {};
    uint32_t number = 0;
    uint8_t driver[kRxeQpReply] = {};
    RawIoctl call(context->cmd_fd, DriverId(), UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
    return call.NewHandle(UVERBS_ATTR_CREATE_QP_HANDLE)
        .Handle(UVERBS_ATTR_CREATE_QP_PD_HANDLE, pd->handle)
        .Handle(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, cq->handle)
        .Handle(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, cq->handle)
        .Value(UVERBS_ATTR_CREATE_QP_USER_HANDLE, 1, 8)
        .In(UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof cap)
        .Value(UVERBS_ATTR_CREATE_QP_TYPE, IB_UVERBS_QPT_UD)
        .Value(UVERBS_ATTR_CREATE_QP_FLAGS, flags, 4)
        .Out(UVERBS_ATTR_CREATE_QP_RESP_CAP, &granted, sizeof granted)
        .Out(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &number, sizeof number)
        .Out(UVERBS_ATTR_UHW_OUT, driver, sizeof driver)
        .Call();
  };
  const uint32_t for_the_driver =
      IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK | IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING;
  for (uint32_t bit = 1; bit != 0; bit <<= 1) {
    if (bit == IB_UVERBS_QP_CREATE_SQ_SIG_ALL) continue;
    EXPECT_THAT(create(bit), FailsWith((bit & for_the_driver) != 0 ? EOPNOTSUPP : EINVAL))
        << "flag " << bit;
  }
  EXPECT_EQ(Count(context->cmd_fd, UVERBS_OBJECT_QP), 0u);
  EXPECT_THAT(create(IB_UVERBS_QP_CREATE_SQ_SIG_ALL), Succeeds());
  EXPECT_EQ(Count(context->cmd_fd, UVERBS_OBJECT_QP), 1u);
  cq.Release();
  pd.Release();
}

// uverbs_cmd.c:ib_uverbs_modify_qp: attr_mask knows IB_QP_STATE to IB_QP_DEST_QPN (bits 0 to 20);
// others are EOPNOTSUPP since 4.9, and change nothing.
ABI_TEST(CompMask, ModifyQpKnowsTheStandardBits,
         Needs{.kernels = {"linux-4.1*", "linux-4.20", "linux-[5-9].*", "debian-*"},
               .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);
  QueuePair qp = pd.CreateRc(cq.get());
  ib_uverbs_modify_qp modify = {};
  modify.qp_handle = qp->handle;
  modify.qp_state = IBV_QPS_INIT;
  modify.port_num = 1;
  const uint32_t known = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  for (uint32_t bit = 1u << 21; bit != 0; bit <<= 1) {
    modify.attr_mask = known | bit;
    EXPECT_THAT(RawWrite(context->cmd_fd, RawRequest::Of(IB_USER_VERBS_CMD_MODIFY_QP, modify)),
                FailsWith(EOPNOTSUPP))
        << "bit 0x" << std::hex << bit;
  }
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  Must("ibv_query_qp", FromVerb(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init)));
  EXPECT_EQ(attr.qp_state, IBV_QPS_RESET);
  modify.attr_mask = known;
  EXPECT_THAT(RawWrite(context->cmd_fd, RawRequest::Of(IB_USER_VERBS_CMD_MODIFY_QP, modify)),
              Succeeds());
  Must("ibv_query_qp", FromVerb(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init)));
  EXPECT_EQ(attr.qp_state, IBV_QPS_INIT);
}

// uverbs_ioctl.c: an attribute that the method does not know is refused when it is mandatory, and
// left alone else.
ABI_TEST(CompMask, AnUnknownAttributeIsRefusedOnlyWhenMandatory,
         Needs{.served = {"DEVICE.QUERY_PORT"}}) {
  Context context = OpenOnlyDevice();
  for (const bool optional : {false, true}) {
    Guarded reply(sizeof(ib_uverbs_query_port_resp_ex));
    RawIoctl call(context->cmd_fd, DriverId(), UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
    call.Value(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1)
        .Out(UVERBS_ATTR_QUERY_PORT_RESP, reply.data(), static_cast<uint16_t>(reply.size()))
        .Value(0x0fff, 0);
    if (optional) call.Optional();
    EXPECT_EQ(call.Call(), (Error{optional ? 0 : EPROTONOSUPPORT}));
    EXPECT_EQ(reply.written() != 0, optional);
  }
}

// hw/mlx5/main.c:mlx5_ib_alloc_ucontext: comp_mask and the reserved fields must be zero: EOPNOTSUPP
// since 4.9.
ABI_TEST(CompMask, Mlx5ContextsKnowNoBit,
         Needs{.provider = "mlx5", .served = {"DEVICE.GET_CONTEXT"}}) {
  mlx5_ib_alloc_ucontext_resp reply = {};
  for (uint32_t bit = 1; bit != 0; bit <<= 1) {
    mlx5_ib_alloc_ucontext_req_v2 request = UsualMlx5Context();
    request.comp_mask = bit;
    EXPECT_THAT(GetContext(request, &reply), FailsWith(EOPNOTSUPP)) << "bit 0x" << std::hex << bit;
  }
  mlx5_ib_alloc_ucontext_req_v2 request = UsualMlx5Context();
  request.reserved2 = 1;
  EXPECT_THAT(GetContext(request, &reply), FailsWith(EOPNOTSUPP));
}

// The same function: of flags it knows DEVX (check_mask since 4.19: EOPNOTSUPP), of lib_caps it
// takes what it knows and looks at nothing else.
ABI_TEST(CompMask, Mlx5ContextsKnowDevx,
         Needs{.provider = "mlx5", .served = {"DEVICE.GET_CONTEXT"}}) {
  mlx5_ib_alloc_ucontext_resp reply = {};
  mlx5_ib_alloc_ucontext_req_v2 request = UsualMlx5Context();
  request.flags = MLX5_IB_ALLOC_UCTX_DEVX;
  EXPECT_THAT(GetContext(request, &reply), Succeeds());
  for (uint32_t bit = 2; bit != 0; bit <<= 1) {
    request.flags = bit;
    EXPECT_THAT(GetContext(request, &reply), FailsWith(EOPNOTSUPP)) << "flag 0x" << std::hex << bit;
  }
  request.flags = 0;
  for (uint64_t bit = 1; bit != 0; bit <<= 1) {
    request.lib_caps = bit;
    EXPECT_THAT(GetContext(request, &reply), Succeeds()) << "capability 0x" << std::hex << bit;
  }
}

// MLX5_LIB_CAP_DYN_UAR (5.7): such a context has no registers of its own; any other has what was
// asked for.
ABI_TEST(CompMask, Mlx5DynamicUarsAreTakenByLibCaps,
         Needs{.provider = "mlx5",
               .served = {"DEVICE.GET_CONTEXT"},
               .knobs = {{"mlx5.dyn_uar", 1, 1}}}) {
  mlx5_ib_alloc_ucontext_resp reply = {};
  mlx5_ib_alloc_ucontext_req_v2 request = UsualMlx5Context();
  request.lib_caps = MLX5_LIB_CAP_DYN_UAR;
  ASSERT_THAT(GetContext(request, &reply), Succeeds());
  EXPECT_EQ(reply.tot_bfregs, 0u);
  request.lib_caps = MLX5_LIB_CAP_4K_UAR;
  ASSERT_THAT(GetContext(request, &reply), Succeeds());
  EXPECT_EQ(reply.tot_bfregs, 16u);
}

// What the library itself does not know never reaches the kernel.
// libibverbs/cmd_device.c, verbs.h: input->comp_mask is EINVAL.
ABI_TEST(CompMask, TheLibraryRefusesAQueryMaskItself, Needs{}) {
  Context context = OpenOnlyDevice();
  trace().Forget();
  for (uint32_t bit = 1; bit != 0; bit <<= 1) {
    ibv_query_device_ex_input input = {};
    input.comp_mask = bit;
    ibv_device_attr_ex attr = {};
    EXPECT_THAT(FromVerb(ibv_query_device_ex(context.get(), &input, &attr)), FailsWith(EINVAL));
  }
  EXPECT_THAT(trace().All(), IsEmpty());
}

// providers/mlx5/verbs.c:create_cq: FLAGS and PD are known; EINVAL.
ABI_TEST(CompMask, Mlx5RefusesCqMasksItself, Needs{.provider = "mlx5"}) {
  Context context = OpenOnlyDevice();
  trace().Forget();
  for (uint32_t bit = 4; bit != 0; bit <<= 1) {
    ibv_cq_init_attr_ex attr = {};
    attr.cqe = 16;
    attr.comp_mask = bit;
    errno = 0;
    EXPECT_EQ(ibv_create_cq_ex(context.get(), &attr), nullptr);
    EXPECT_EQ(ErrorName(errno), "EINVAL") << bit;
  }
  EXPECT_THAT(trace().All(), IsEmpty());
}

// providers/mlx5/verbs.c:create_qp: a bit that it does not know ends it before the kernel is asked
// (errno is left as it was). Every release knows bits up to SEND_OPS_FLAGS (1 << 6). L1-08.
ABI_TEST(CompMask, Mlx5RefusesQpMasksItself, Needs{.provider = "mlx5", .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  ProtectionDomain pd = context.AllocPd();
  CompletionQueue cq = context.CreateCq(16);
  trace().Forget();
  for (uint32_t bit = 1u << 7; bit != 0; bit <<= 1) {
    ibv_qp_init_attr_ex attr = {};
    attr.send_cq = attr.recv_cq = cq.get();
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {4, 4, 1, 1, 0};
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | bit;
    attr.pd = pd.get();
    EXPECT_EQ(ibv_create_qp_ex(context.get(), &attr), nullptr) << bit;
  }
  EXPECT_THAT(trace().All(), IsEmpty());
}

ABI_TEST(CompMask, Mlx5TakesTheCqMasksThatItKnows,
         Needs{.provider = "mlx5", .served = {"CQ.CREATE"}, .queue_pairs = true}) {
  Context context = OpenOnlyDevice();
  ibv_cq_init_attr_ex attr = {};
  attr.cqe = 16;
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  trace().Forget();
  errno = 0;
  ibv_cq_ex* cq = ibv_create_cq_ex(context.get(), &attr);
  ASSERT_NE(cq, nullptr) << ErrorName(errno);
  const std::vector<Command> created = trace().Of("CQ.CREATE");
  ASSERT_EQ(created.size(), 1u);
  bool told = false;
  for (const traces::Attribute& attribute : created[0].attributes) {
    told = told || (attribute.id == UVERBS_ATTR_CREATE_CQ_FLAGS &&
                    attribute.value == IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN);
  }
  EXPECT_TRUE(told) << created[0];
  EXPECT_THAT(FromVerb(ibv_destroy_cq(ibv_cq_ex_to_cq(cq))), Succeeds());
}

}  // namespace vabi::conformance
