// SPDX-License-Identifier: BSD-2-Clause
// UVERBS_OBJECT_SRQ (uverbs_std_types_srq.c).
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/event_fd.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/method_table.h"
#include "shims/uverbs/qp_create.h"
#include "shims/uverbs/srq_create.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

using attr::kMandatory;
using attr::kOptional;

int Create(IoctlCall& call) {
  auto srq = std::make_unique<Srq>();
  Introduce(*srq, call.file);
  srq->pd = call.Get<Pd>(VABI_C(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE));
  call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_SRQ_MAX_SGE), &srq->max_sge, sizeof(srq->max_sge));
  call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_SRQ_MAX_WR), &srq->max_wr, sizeof(srq->max_wr));
  call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_SRQ_LIMIT), &srq->srq_limit, sizeof(srq->srq_limit));
  call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE), &srq->user_handle,
              sizeof(srq->user_handle));
  uint64_t type = 0;
  call.GetConst(VABI_C(UVERBS_ATTR_CREATE_SRQ_TYPE), &type);
  if (call.Violates(RuleId::ioctl_const_range, type > UINT32_MAX)) {
    return call.Refuse(RuleId::ioctl_const_range);
  }
  srq->srq_type = static_cast<uint32_t>(type);
  if (type == kSrqtXrc || type == kSrqtTm) {  // ib_srq_has_cq
    srq->cq = call.Get<Cq>(VABI_C(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE));
    if (srq->cq == nullptr) return call.Refuse(RuleId::srq_method_missing);
  }
  if (type == kSrqtXrc) {
    srq->xrcd = call.Get<Xrcd>(VABI_C(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE));
    if (srq->xrcd == nullptr) return call.Refuse(RuleId::srq_method_missing);
  } else if (type == kSrqtTm) {
    if (!call.Has(VABI_C(UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS))) {
      return call.Refuse(RuleId::srq_method_missing);
    }
    call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS), &srq->max_num_tags,
                sizeof(srq->max_num_tags));
  } else if (type != kSrqtBasic) {
    return call.Refuse(RuleId::srq_method_type);
  }
  srq->events = EventsOf(call, VABI_C(UVERBS_ATTR_CREATE_SRQ_EVENT_FD));
  if (call.Has(VABI_C(UVERBS_ATTR_CREATE_SRQ_BUF_UMEM))) {
    return call.Unmodelled("SRQ buffer given by the caller (CREATE_SRQ_BUF_UMEM)");
  }
  if (const int error = MakeSharedQueue(call, *srq)) return error;
  const uint32_t max_wr = srq->max_wr, max_sge = srq->max_sge, number = srq->srqn;
  call.Created(VABI_C(UVERBS_ATTR_CREATE_SRQ_HANDLE), std::move(srq));
  if (const int error =
          call.CopyOut(VABI_C(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR), &max_wr, sizeof(max_wr))) {
    return error;
  }
  if (const int error =
          call.CopyOut(VABI_C(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE), &max_sge, sizeof(max_sge))) {
    return error;
  }
  if (type != kSrqtXrc) return 0;
  if (!call.Has(VABI_C(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM)))
    return call.Refuse(RuleId::srq_method_missing);
  return call.CopyOut(VABI_C(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM), &number, sizeof(number));
}

int Destroy(IoctlCall& call) {
  const Srq* srq = call.Get<Srq>(VABI_C(UVERBS_ATTR_DESTROY_SRQ_HANDLE));
  OwnedBody<64> reply(call.world, VABI_S(ib_uverbs_destroy_srq_resp));
  reply.Set(VABI_F(ib_uverbs_destroy_srq_resp, events_reported), srq->events_reported);
  return call.CopyOut(VABI_C(UVERBS_ATTR_DESTROY_SRQ_RESP), reply.base(), reply.length());
}

constexpr AttrSpec kCreate[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_SRQ_HANDLE), ObjectType::kSrq, Access::kNew, kMandatory),
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE), ObjectType::kPd, Access::kRead, kMandatory),
    attr::Const(VABI_C(UVERBS_ATTR_CREATE_SRQ_TYPE), kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE), 8, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_SRQ_MAX_WR), 4, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_SRQ_MAX_SGE), 4, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_SRQ_LIMIT), 4, kMandatory),
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE), ObjectType::kXrcd, Access::kRead,
              kOptional),
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE), ObjectType::kCq, Access::kRead, kOptional),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS), 4, kOptional),
    attr::Fd(VABI_C(UVERBS_ATTR_CREATE_SRQ_EVENT_FD), ObjectType::kAsyncEvent, Access::kRead,
             kOptional),
    attr::Out(VABI_C(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR), 4, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE), 4, kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM), 4, kOptional),
    attr::InType(VABI_C(UVERBS_ATTR_CREATE_SRQ_BUF_UMEM), VABI_S(ib_uverbs_buffer_desc), kOptional),
};
constexpr AttrSpec kDestroy[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_DESTROY_SRQ_HANDLE), ObjectType::kSrq, Access::kDestroy,
              kMandatory),
    attr::OutType(VABI_C(UVERBS_ATTR_DESTROY_SRQ_RESP), VABI_S(ib_uverbs_destroy_srq_resp),
                  kMandatory),
};
constexpr MethodSpec kMethods[] = {
    {MethodId::SRQ__CREATE, Op::destroy_srq, kCreate, Create, true},
    {MethodId::SRQ__DESTROY, Op::destroy_srq, kDestroy, Destroy},
};

}  // namespace

std::span<const MethodSpec> SrqMethods() { return kMethods; }

}  // namespace vabi
