// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/object_table.h"

namespace vabi {
namespace {

constexpr ObjectRow kRows[] = {
    {ObjectType::kPd, VABI_C(UVERBS_OBJECT_PD), Op::dealloc_pd, Op::always},
    {ObjectType::kMr, VABI_C(UVERBS_OBJECT_MR), Op::dereg_mr, Op::always},
    {ObjectType::kMw, VABI_C(UVERBS_OBJECT_MW), Op::dealloc_mw, Op::always},
    {ObjectType::kCq, VABI_C(UVERBS_OBJECT_CQ), Op::destroy_cq, Op::always},
    {ObjectType::kQp, VABI_C(UVERBS_OBJECT_QP), Op::destroy_qp, Op::always},
    {ObjectType::kSrq, VABI_C(UVERBS_OBJECT_SRQ), Op::destroy_srq, Op::always},
    // Needs create_user_ah too since 5.11 (uverbs_cmd.c); drivers have both or none.
    {ObjectType::kAh, VABI_C(UVERBS_OBJECT_AH), Op::destroy_ah, Op::create_user_ah},
    {ObjectType::kXrcd, VABI_C(UVERBS_OBJECT_XRCD), Op::dealloc_xrcd, Op::alloc_xrcd},
    {ObjectType::kWq, VABI_C(UVERBS_OBJECT_WQ), Op::destroy_wq, Op::always},
    {ObjectType::kRwqIndTable, VABI_C(UVERBS_OBJECT_RWQ_IND_TBL), Op::destroy_rwq_ind_table,
     Op::always},
    {ObjectType::kFlow, VABI_C(UVERBS_OBJECT_FLOW), Op::destroy_flow, Op::always},
    {ObjectType::kFlowAction, VABI_C(UVERBS_OBJECT_FLOW_ACTION), Op::destroy_flow_action,
     Op::always},
    {ObjectType::kCounters, VABI_C(UVERBS_OBJECT_COUNTERS), Op::destroy_counters, Op::always},
    {ObjectType::kDm, VABI_C(UVERBS_OBJECT_DM), Op::dealloc_dm, Op::always},
    {ObjectType::kCompChannel, VABI_C(UVERBS_OBJECT_COMP_CHANNEL), Op::dealloc_pd, Op::always},
    {ObjectType::kAsyncEvent, VABI_C(UVERBS_OBJECT_ASYNC_EVENT), Op::always, Op::always},
};

}  // namespace

const ObjectRow* FindObjectRow(ObjectType type) {
  for (const ObjectRow& row : kRows) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

std::optional<ObjectType> ObjectTypeOf(const World& world, uint64_t object_id) {
  for (const ObjectRow& row : kRows) {
    const auto id = world.Constant(row.id);
    if (id && static_cast<uint64_t>(*id) == object_id) return row.type;
  }
  return std::nullopt;
}

bool ObjectServed(const Device& device, ObjectType type) {
  const ObjectRow* row = FindObjectRow(type);
  return row != nullptr && device.Offers(row->needs) && device.Offers(row->needs_too);
}

}  // namespace vabi
