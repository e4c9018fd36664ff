// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/command_table.h"

#include "harness/world/world.h"
#include "shims/uverbs/commands.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/write_order.h"

namespace vabi {
namespace {

constexpr StructId kNone = StructId::kCount;

#define LEGACY(name, request, response, udata, needs, needs_too, ...)                        \
  {                                                                                          \
    WriteId::name, StructId::ib_uverbs_##request, response, udata, Op::needs, Op::needs_too, \
        __VA_ARGS__                                                                          \
  }
#define RESP(name) StructId::ib_uverbs_##name

// uverbs_cmd.c:uverbs_def_write_intf (7.3), with the operations that the objects need
// (uverbs_std_types*.c). clang-format off: a table
constexpr CommandRow kRows[] = {
    LEGACY(GET_CONTEXT, get_context, RESP(get_context_resp), true, alloc_ucontext, dealloc_ucontext,
           GetContext),
    LEGACY(QUERY_DEVICE, query_device, RESP(query_device_resp), false, alloc_ucontext,
           dealloc_ucontext, QueryDevice),
    LEGACY(QUERY_PORT, query_port, RESP(query_port_resp), false, query_port, alloc_ucontext,
           QueryPort),
    LEGACY(ALLOC_PD, alloc_pd, RESP(alloc_pd_resp), true, alloc_pd, dealloc_pd, AllocPd),
    LEGACY(DEALLOC_PD, dealloc_pd, kNone, false, dealloc_pd, always, DeallocPd),
    LEGACY(CREATE_AH, create_ah, RESP(create_ah_resp), true, create_user_ah, destroy_ah, CreateAh),
    LEGACY(DESTROY_AH, destroy_ah, kNone, false, create_user_ah, destroy_ah, DestroyAh),
    LEGACY(REG_MR, reg_mr, RESP(reg_mr_resp), true, reg_user_mr, dereg_mr, RegMr),
    LEGACY(REREG_MR, rereg_mr, RESP(rereg_mr_resp), true, rereg_user_mr, dereg_mr, ReregMr),
    LEGACY(DEREG_MR, dereg_mr, kNone, false, dereg_mr, always, DeregMr),
    LEGACY(ALLOC_MW, alloc_mw, RESP(alloc_mw_resp), true, alloc_mw, dealloc_mw, AllocMw),
    LEGACY(DEALLOC_MW, dealloc_mw, kNone, false, dealloc_mw, always, DeallocMw),
    LEGACY(CREATE_COMP_CHANNEL, create_comp_channel, RESP(create_comp_channel_resp), false,
           dealloc_pd, always, CreateCompChannel),
    LEGACY(CREATE_CQ, create_cq, RESP(create_cq_resp), true, create_cq, destroy_cq, CreateCq),
    LEGACY(RESIZE_CQ, resize_cq, RESP(resize_cq_resp), true, resize_cq, destroy_cq, ResizeCq),
    LEGACY(DESTROY_CQ, destroy_cq, RESP(destroy_cq_resp), false, destroy_cq, always, DestroyCq),
    LEGACY(POLL_CQ, poll_cq, RESP(poll_cq_resp), false, poll_cq, destroy_cq, PollCq),
    LEGACY(REQ_NOTIFY_CQ, req_notify_cq, kNone, false, req_notify_cq, destroy_cq, ReqNotifyCq),
    LEGACY(CREATE_QP, create_qp, RESP(create_qp_resp), true, create_qp, destroy_qp, CreateQp),
    LEGACY(QUERY_QP, query_qp, RESP(query_qp_resp), false, query_qp, destroy_qp, QueryQp),
    LEGACY(MODIFY_QP, modify_qp, kNone, false, modify_qp, destroy_qp, ModifyQp),
    LEGACY(DESTROY_QP, destroy_qp, RESP(destroy_qp_resp), false, destroy_qp, always, DestroyQp),
    LEGACY(POST_SEND, post_send, RESP(post_send_resp), false, post_send, destroy_qp, PostSend),
    LEGACY(POST_RECV, post_recv, RESP(post_recv_resp), false, post_recv, destroy_qp, PostRecv),
    LEGACY(ATTACH_MCAST, attach_mcast, kNone, false, attach_mcast, detach_mcast, AttachMcast),
    LEGACY(DETACH_MCAST, detach_mcast, kNone, false, detach_mcast, destroy_qp, DetachMcast),
    LEGACY(CREATE_SRQ, create_srq, RESP(create_srq_resp), true, create_srq, destroy_srq, CreateSrq),
    LEGACY(MODIFY_SRQ, modify_srq, kNone, true, modify_srq, destroy_srq, ModifySrq),
    LEGACY(QUERY_SRQ, query_srq, RESP(query_srq_resp), false, query_srq, destroy_srq, QuerySrq),
    LEGACY(DESTROY_SRQ, destroy_srq, RESP(destroy_srq_resp), false, destroy_srq, always,
           DestroySrq),
    LEGACY(POST_SRQ_RECV, post_srq_recv, RESP(post_srq_recv_resp), false, post_srq_recv,
           destroy_srq, PostSrqRecv),
    LEGACY(OPEN_XRCD, open_xrcd, RESP(open_xrcd_resp), true, alloc_xrcd, dealloc_xrcd, OpenXrcd),
    LEGACY(CLOSE_XRCD, close_xrcd, kNone, false, alloc_xrcd, dealloc_xrcd, CloseXrcd),
    LEGACY(CREATE_XSRQ, create_xsrq, RESP(create_srq_resp), true, create_srq, destroy_srq,
           CreateXsrq, Op::create_xrc_srq),
    LEGACY(OPEN_QP, open_qp, RESP(create_qp_resp), true, alloc_xrcd, dealloc_xrcd, OpenQp,
           Op::xrc_tgt_qp),
};
#undef LEGACY
#undef RESP

constexpr FieldId kAll = FieldId::kCount;
constexpr ExCommandRow kExRows[] = {
    {WriteExId::QUERY_DEVICE, Op::query_device, Op::alloc_ucontext, Op::query_device_ex,
     StructId::ib_uverbs_ex_query_device, kAll,
     VABI_F(ib_uverbs_ex_query_device_resp, response_length), false, QueryDeviceEx},
    {WriteExId::CREATE_CQ, Op::create_cq, Op::destroy_cq, Op::create_cq_ex,
     StructId::ib_uverbs_ex_create_cq, kAll, VABI_F(ib_uverbs_ex_create_cq_resp, response_length),
     false, CreateCqEx},
    {WriteExId::CREATE_QP, Op::create_qp, Op::destroy_qp, Op::create_qp_ex,
     StructId::ib_uverbs_ex_create_qp, VABI_F(ib_uverbs_ex_create_qp, comp_mask),
     VABI_F(ib_uverbs_ex_create_qp_resp, response_length), false, CreateQpEx},
    {WriteExId::MODIFY_QP, Op::modify_qp, Op::destroy_qp, Op::modify_qp_ex,
     StructId::ib_uverbs_ex_modify_qp, VABI_F(ib_uverbs_ex_modify_qp, base), kAll, true,
     ModifyQpEx},
    {WriteExId::CREATE_FLOW, Op::create_flow, Op::destroy_flow, Op::always,
     StructId::ib_uverbs_create_flow, kAll, VABI_F(ib_uverbs_create_flow_resp, flow_handle), false,
     CreateFlowEx},
    {WriteExId::DESTROY_FLOW, Op::destroy_flow, Op::always, Op::always,
     StructId::ib_uverbs_destroy_flow, kAll, kAll, false, DestroyFlowEx},
    {WriteExId::CREATE_WQ, Op::create_wq, Op::destroy_wq, Op::always,
     StructId::ib_uverbs_ex_create_wq, VABI_F(ib_uverbs_ex_create_wq, max_sge),
     VABI_F(ib_uverbs_ex_create_wq_resp, wqn), true, CreateWqEx},
    {WriteExId::MODIFY_WQ, Op::modify_wq, Op::destroy_wq, Op::always,
     StructId::ib_uverbs_ex_modify_wq, VABI_F(ib_uverbs_ex_modify_wq, curr_wq_state), kAll, true,
     ModifyWqEx},
    {WriteExId::DESTROY_WQ, Op::destroy_wq, Op::always, Op::always,
     StructId::ib_uverbs_ex_destroy_wq, VABI_F(ib_uverbs_ex_destroy_wq, wq_handle),
     VABI_F(ib_uverbs_ex_destroy_wq_resp, reserved), true, DestroyWqEx},
    {WriteExId::CREATE_RWQ_IND_TBL, Op::create_rwq_ind_table, Op::destroy_rwq_ind_table, Op::always,
     StructId::ib_uverbs_ex_create_rwq_ind_table,
     VABI_F(ib_uverbs_ex_create_rwq_ind_table, log_ind_tbl_size),
     VABI_F(ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_num), false, CreateRwqIndTableEx},
    {WriteExId::DESTROY_RWQ_IND_TBL, Op::destroy_rwq_ind_table, Op::always, Op::always,
     StructId::ib_uverbs_ex_destroy_rwq_ind_table,
     VABI_F(ib_uverbs_ex_destroy_rwq_ind_table, ind_tbl_handle), kAll, true, DestroyRwqIndTableEx},
    {WriteExId::MODIFY_CQ, Op::modify_cq, Op::destroy_cq, Op::always,
     StructId::ib_uverbs_ex_modify_cq, VABI_F(ib_uverbs_ex_modify_cq, reserved), kAll, true,
     ModifyCqEx},
};

constexpr ConstId kNumbers[] = {
#define VABI_WRITE(name) ConstId::IB_USER_VERBS_CMD_##name,
#include "harness/world/all_tables.inc"
};
constexpr ConstId kExNumbers[] = {
#define VABI_WRITE_EX(name) ConstId::IB_USER_VERBS_EX_CMD_##name,
#include "harness/world/all_tables.inc"
};
// Numbers never changed (ib_user_verbs.h); for names of commands that a kernel does not have.
constexpr uint32_t kExStable[] = {1, 18, 24, 26, 50, 51, 52, 53, 54, 55, 56, 57};
static_assert(std::size(kExStable) == kCountOf<WriteExId>);

bool Masked(const Device& device, Op mask) {
  return mask != Op::always && !device.world().Served(device.image().driver, mask);
}

void Raise(uint32_t* count, int64_t number) {
  if (static_cast<uint32_t>(number) >= *count) *count = static_cast<uint32_t>(number) + 1;
}

}  // namespace

std::span<const CommandRow> CommandRows() { return kRows; }
std::span<const ExCommandRow> ExCommandRows() { return kExRows; }

CommandTable::CommandTable(const Device& device) {
  const World& world = device.world();
  const bool by_number = MaskByNumber(world);
  for (const CommandRow& row : kRows) {
    const auto number = world.Constant(kNumbers[Index(row.id)]);
    if (!number || *number < 0 || *number >= static_cast<int64_t>(kMax)) continue;
    if (!world.Served(row.id)) continue;
    CommandEntry& entry = legacy_[static_cast<size_t>(*number)];
    entry.known = true;
    Raise(&known_, *number);
    if (!device.Offers(row.needs) || !device.Offers(row.needs_too) || Masked(device, row.mask))
      continue;
    entry.name = WriteNames()[Index(row.id)];
    entry.handler = row.handler;
    entry.has_udata = row.has_udata;
    entry.has_resp = row.response != kNone;
    entry.request_size = static_cast<uint16_t>(world.Size(row.request));
    entry.response_size = entry.has_resp ? static_cast<uint16_t>(world.Size(row.response)) : 0;
    Raise(&count_, *number);
  }
  for (const ExCommandRow& row : kExRows) {
    const auto number = world.Constant(kExNumbers[Index(row.id)]);
    if (!number || *number < 0 || *number >= static_cast<int64_t>(kMax)) continue;
    if (!world.Served(row.id)) continue;
    CommandEntry& entry = ex_[static_cast<size_t>(*number)];
    entry.known = true;
    Raise(&known_ex_, *number);
    if (!device.Offers(row.needs) || !device.Offers(row.needs_too)) continue;
    if (!by_number && Masked(device, row.mask)) continue;
    entry.name = WriteExNames()[Index(row.id)];
    entry.handler = row.handler;
    entry.is_ex = true;
    entry.has_udata = true;
    entry.request_size = static_cast<uint16_t>(world.Size(row.request));
    const size_t least =
        row.least_request == kAll ? entry.request_size : world.End(row.least_request);
    entry.least_request = static_cast<uint16_t>(least);
    entry.least_response =
        row.least_response == kAll ? 0 : static_cast<uint16_t>(world.End(row.least_response));
    entry.zero_tail = row.zero_tail;
    Raise(&count_ex_, *number);
  }
}

const char* CommandTable::NameOf(uint32_t number, bool extended) {
  if (!extended) return number < WriteNames().size() ? WriteNames()[number] : nullptr;
  for (size_t i = 0; i < std::size(kExStable); ++i) {
    if (kExStable[i] == number) return WriteExNames()[i];
  }
  return nullptr;
}

}  // namespace vabi
