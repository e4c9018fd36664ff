// SPDX-License-Identifier: BSD-2-Clause
// DESTROY methods that answer nothing: the front end destroys, the handler has nothing left to do
// (uverbs_destroy_def_handler; DECLARE_UVERBS_NAMED_METHOD_DESTROY).
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/method_table.h"

namespace vabi {
namespace {

int Nothing(IoctlCall&) { return 0; }

#define DESTROY(name, attribute, type) \
  constexpr AttrSpec name[] = {        \
      attr::Idr(VABI_C(attribute), ObjectType::type, Access::kDestroy, attr::kMandatory)}
DESTROY(kPd, UVERBS_ATTR_DESTROY_PD_HANDLE, kPd);
DESTROY(kMr, UVERBS_ATTR_DESTROY_MR_HANDLE, kMr);
DESTROY(kMw, UVERBS_ATTR_DESTROY_MW_HANDLE, kMw);
DESTROY(kAh, UVERBS_ATTR_DESTROY_AH_HANDLE, kAh);
DESTROY(kFlow, UVERBS_ATTR_DESTROY_FLOW_HANDLE, kFlow);
DESTROY(kXrcd, UVERBS_ATTR_DESTROY_XRCD_HANDLE, kXrcd);
DESTROY(kIndTable, UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, kRwqIndTable);
DESTROY(kFlowAction, UVERBS_ATTR_DESTROY_FLOW_ACTION_HANDLE, kFlowAction);
DESTROY(kCounters, UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, kCounters);
DESTROY(kDm, UVERBS_ATTR_FREE_DM_HANDLE, kDm);
#undef DESTROY

constexpr MethodSpec kMethods[] = {
    {MethodId::PD__DESTROY, Op::dealloc_pd, kPd, Nothing},
    {MethodId::MR__MR_DESTROY, Op::dereg_mr, kMr, Nothing},
    {MethodId::MW__DESTROY, Op::dealloc_mw, kMw, Nothing},
    {MethodId::AH__DESTROY, Op::destroy_ah, kAh, Nothing},
    {MethodId::FLOW__DESTROY, Op::destroy_flow, kFlow, Nothing},
    {MethodId::XRCD__DESTROY, Op::dealloc_xrcd, kXrcd, Nothing},
    {MethodId::RWQ_IND_TBL__DESTROY, Op::destroy_rwq_ind_table, kIndTable, Nothing},
    {MethodId::FLOW_ACTION__DESTROY, Op::destroy_flow_action, kFlowAction, Nothing},
    {MethodId::COUNTERS__DESTROY, Op::destroy_counters, kCounters, Nothing},
    {MethodId::DM__FREE, Op::dealloc_dm, kDm, Nothing},
};

}  // namespace

std::span<const MethodSpec> DestroyMethods() { return kMethods; }

}  // namespace vabi
