// SPDX-License-Identifier: BSD-2-Clause
// UVERBS_OBJECT_WQ (uverbs_std_types_wq.c).
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/event_fd.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/method_table.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

using attr::kMandatory;
using attr::kOptional;

int Create(IoctlCall& call) {
  auto wq = std::make_unique<Wq>();
  Introduce(*wq, call.file);
  wq->pd = call.Get<Pd>(VABI_C(UVERBS_ATTR_CREATE_WQ_PD_HANDLE));
  wq->cq = call.Get<Cq>(VABI_C(UVERBS_ATTR_CREATE_WQ_CQ_HANDLE));
  const World& world = call.world;
  uint64_t flags;
  if (const int error = call.GetFlags(
          VABI_C(UVERBS_ATTR_CREATE_WQ_FLAGS),
          static_cast<uint64_t>(world.Flag(VABI_C(IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING)) |
                                world.Flag(VABI_C(IB_UVERBS_WQ_FLAGS_SCATTER_FCS)) |
                                world.Flag(VABI_C(IB_UVERBS_WQ_FLAGS_DELAY_DROP)) |
                                world.Flag(VABI_C(IB_UVERBS_WQ_FLAGS_PCI_WRITE_END_PADDING))),
          &flags)) {
    return error;
  }
  wq->create_flags = static_cast<uint32_t>(flags);
  call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_WQ_MAX_SGE), &wq->max_sge, sizeof(wq->max_sge));
  call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_WQ_MAX_WR), &wq->max_wr, sizeof(wq->max_wr));
  call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_WQ_USER_HANDLE), &wq->user_handle, sizeof(wq->user_handle));
  uint64_t type = 0;
  call.GetConst(VABI_C(UVERBS_ATTR_CREATE_WQ_TYPE), &type);
  if (call.Violates(RuleId::wq_method_type, type != 0)) {  // IB_WQT_RQ
    return call.Refuse(RuleId::wq_method_type);
  }
  // The kernel takes a missing CQ for one and crashes in the driver.
  if (wq->cq == nullptr) return call.Unmodelled("WQ_CREATE without a CQ");
  wq->events = EventsOf(call, VABI_C(UVERBS_ATTR_CREATE_WQ_EVENT_FD));
  if (const int error = call.file.device().driver().CreateWq(call, *wq)) return error;
  ++wq->pd->users;
  ++wq->cq->users;
  const uint32_t max_wr = wq->max_wr, max_sge = wq->max_sge, number = wq->wqn;
  call.Created(VABI_C(UVERBS_ATTR_CREATE_WQ_HANDLE), std::move(wq));
  if (const int error =
          call.CopyOut(VABI_C(UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR), &max_wr, sizeof(max_wr))) {
    return error;
  }
  if (const int error =
          call.CopyOut(VABI_C(UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE), &max_sge, sizeof(max_sge))) {
    return error;
  }
  // Optional in the declaration, needed in the handler.
  if (!call.Has(VABI_C(UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM)))
    return call.Refuse(RuleId::wq_method_number);
  return call.CopyOut(VABI_C(UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM), &number, sizeof(number));
}

int Destroy(IoctlCall& call) {
  const Wq* wq = call.Get<Wq>(VABI_C(UVERBS_ATTR_DESTROY_WQ_HANDLE));
  return call.CopyOut(VABI_C(UVERBS_ATTR_DESTROY_WQ_RESP), &wq->events_reported,
                      sizeof(wq->events_reported));
}

constexpr AttrSpec kCreate[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_WQ_HANDLE), ObjectType::kWq, Access::kNew, kMandatory),
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_WQ_PD_HANDLE), ObjectType::kPd, Access::kRead, kMandatory),
    attr::Const(VABI_C(UVERBS_ATTR_CREATE_WQ_TYPE), kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_WQ_USER_HANDLE), 8, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_WQ_MAX_WR), 4, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_WQ_MAX_SGE), 4, kMandatory),
    attr::Flags(VABI_C(UVERBS_ATTR_CREATE_WQ_FLAGS), kMandatory),
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_WQ_CQ_HANDLE), ObjectType::kCq, Access::kRead, kOptional),
    attr::Fd(VABI_C(UVERBS_ATTR_CREATE_WQ_EVENT_FD), ObjectType::kAsyncEvent, Access::kRead,
             kOptional),
    attr::Out(VABI_C(UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR), 4, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE), 4, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM), 4, kOptional),
};
constexpr AttrSpec kDestroy[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_DESTROY_WQ_HANDLE), ObjectType::kWq, Access::kDestroy, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_DESTROY_WQ_RESP), 4, kMandatory),
};
constexpr MethodSpec kMethods[] = {
    {MethodId::WQ__CREATE, Op::destroy_wq, kCreate, Create, true},
    {MethodId::WQ__DESTROY, Op::destroy_wq, kDestroy, Destroy},
};

}  // namespace

std::span<const MethodSpec> WqMethods() { return kMethods; }

}  // namespace vabi
