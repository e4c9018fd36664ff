// SPDX-License-Identifier: BSD-2-Clause
// UVERBS_OBJECT_CQ (uverbs_std_types_cq.c).
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
  Device& device = call.file.device();
  if (!device.Offers(Op::create_cq) || !device.Offers(Op::destroy_cq)) {
    return call.Refuse(RuleId::method_no_operation);
  }
  auto cq = std::make_unique<Cq>();
  Introduce(*cq, call.file);
  call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR), &cq->comp_vector, sizeof(cq->comp_vector));
  call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE), &cq->cqe, sizeof(cq->cqe));
  if (call.Violates(RuleId::cq_method_cqe_zero, cq->cqe == 0)) {
    return call.Refuse(RuleId::cq_method_cqe_zero);
  }
  call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_CQ_USER_HANDLE), &cq->user_handle, sizeof(cq->user_handle));
  const auto known =
      static_cast<uint64_t>(call.world.Flag(VABI_C(IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)) |
                            call.world.Flag(VABI_C(IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN)));
  uint64_t flags;
  if (const int error = call.GetFlags(VABI_C(UVERBS_ATTR_CREATE_CQ_FLAGS), known, &flags))
    return error;
  cq->flags = static_cast<uint32_t>(flags);
  cq->channel = CompletionChannel::From(call.GetFile(VABI_C(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL)));
  cq->events = EventsOf(call, VABI_C(UVERBS_ATTR_CREATE_CQ_EVENT_FD));
  if (call.Violates(RuleId::cq_comp_vector, cq->comp_vector >= device.comp_vectors())) {
    return call.Refuse(RuleId::cq_comp_vector);
  }
  for (const ConstId buffer :
       {VABI_C(UVERBS_ATTR_CREATE_CQ_BUFFER_VA), VABI_C(UVERBS_ATTR_CREATE_CQ_BUFFER_LENGTH),
        VABI_C(UVERBS_ATTR_CREATE_CQ_BUFFER_FD), VABI_C(UVERBS_ATTR_CREATE_CQ_BUFFER_OFFSET),
        VABI_C(UVERBS_ATTR_CREATE_CQ_BUF_UMEM)}) {
    if (!device.driver().ReadsCqBuffer(device)) break;
    if (call.Has(buffer))
      return call.Unmodelled("CQ buffer given by the caller (CREATE_CQ_BUFFER_*)");
  }
  if (const int error = device.driver().CreateCq(call, *cq)) return error;
  const uint32_t granted = cq->cqe;
  call.Created(VABI_C(UVERBS_ATTR_CREATE_CQ_HANDLE), std::move(cq));
  return call.CopyOut(VABI_C(UVERBS_ATTR_CREATE_CQ_RESP_CQE), &granted, sizeof(granted));
}

int Destroy(IoctlCall& call) {
  const Cq* cq = call.Get<Cq>(VABI_C(UVERBS_ATTR_DESTROY_CQ_HANDLE));
  OwnedBody<64> reply(call.world, VABI_S(ib_uverbs_destroy_cq_resp));
  reply.Set(VABI_F(ib_uverbs_destroy_cq_resp, comp_events_reported), cq->comp_events_reported);
  reply.Set(VABI_F(ib_uverbs_destroy_cq_resp, async_events_reported), cq->async_events_reported);
  return call.CopyOut(VABI_C(UVERBS_ATTR_DESTROY_CQ_RESP), reply.base(), reply.length());
}

constexpr AttrSpec kCreate[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_CQ_HANDLE), ObjectType::kCq, Access::kNew, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_CQ_CQE), 4, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_CQ_USER_HANDLE), 8, kMandatory),
    attr::Fd(VABI_C(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL), ObjectType::kCompChannel, Access::kRead,
             kOptional),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR), 4, kMandatory),
    attr::Flags(VABI_C(UVERBS_ATTR_CREATE_CQ_FLAGS), kOptional),
    attr::Out(VABI_C(UVERBS_ATTR_CREATE_CQ_RESP_CQE), 4, kMandatory),
    attr::Fd(VABI_C(UVERBS_ATTR_CREATE_CQ_EVENT_FD), ObjectType::kAsyncEvent, Access::kRead,
             kOptional),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_CQ_BUFFER_VA), 8, kOptional),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_CQ_BUFFER_LENGTH), 8, kOptional),
    attr::RawFd(VABI_C(UVERBS_ATTR_CREATE_CQ_BUFFER_FD), kOptional),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_CQ_BUFFER_OFFSET), 8, kOptional),
    attr::InType(VABI_C(UVERBS_ATTR_CREATE_CQ_BUF_UMEM), VABI_S(ib_uverbs_buffer_desc), kOptional),
};
constexpr AttrSpec kDestroy[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_DESTROY_CQ_HANDLE), ObjectType::kCq, Access::kDestroy, kMandatory),
    attr::OutType(VABI_C(UVERBS_ATTR_DESTROY_CQ_RESP), VABI_S(ib_uverbs_destroy_cq_resp),
                  kMandatory),
};
constexpr MethodSpec kMethods[] = {
    {MethodId::CQ__CREATE, Op::destroy_cq, kCreate, Create, true},
    {MethodId::CQ__DESTROY, Op::destroy_cq, kDestroy, Destroy},
};

}  // namespace

std::span<const MethodSpec> CqMethods() { return kMethods; }

}  // namespace vabi
