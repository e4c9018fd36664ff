// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"
#include "shims/uverbs/qp_create.h"
#include "shims/uverbs/srq_create.h"

namespace vabi {

// verbs.c:ib_create_srq_user
int MakeSharedQueue(Call& call, Srq& srq) {
  if (const int error = srq.device->driver().CreateSrq(call, srq)) return error;
  ++srq.pd->users;
  if (srq.cq != nullptr) ++srq.cq->users;
  if (srq.xrcd != nullptr) {
    std::lock_guard lock(srq.device->shared_mutex());
    ++srq.xrcd->domain->users;
    ++srq.xrcd->users;
  }
  return 0;
}

namespace {

struct SrqRequest {
  uint64_t user_handle;
  uint32_t type, pd, max_wr, max_sge, limit, max_num_tags, xrcd, cq;
};

// uverbs_cmd.c:__uverbs_create_xsrq
int MakeSrq(Command& c, const SrqRequest& request) {
  Srq* srq;
  if (const int error = c.New(&srq)) return error;
  srq->srq_type = request.type;
  if (request.type == kSrqtTm) srq->max_num_tags = request.max_num_tags;
  if (request.type == kSrqtXrc) {
    Object* handle = c.file.Find(ObjectType::kXrcd, request.xrcd);
    if (handle == nullptr) return c.Refuse(RuleId::srq_xrcd_none);
    srq->xrcd = static_cast<Xrcd*>(handle);
  }
  if (request.type == kSrqtXrc || request.type == kSrqtTm) {  // ib_srq_has_cq
    if (const int error = c.Read(request.cq, &srq->cq)) return error;
  }
  if (const int error = c.Read(request.pd, &srq->pd)) return error;
  srq->user_handle = request.user_handle;
  srq->max_wr = request.max_wr;
  srq->max_sge = request.max_sge;
  srq->srq_limit = request.limit;
  srq->events = c.file.async_events;
  if (const int error = MakeSharedQueue(c.call, *srq)) return error;
  c.Created();
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_create_srq_resp));
  reply.Set(VABI_F(ib_uverbs_create_srq_resp, srq_handle), srq->handle);
  reply.Set(VABI_F(ib_uverbs_create_srq_resp, max_wr), srq->max_wr);
  reply.Set(VABI_F(ib_uverbs_create_srq_resp, max_sge), srq->max_sge);
  if (request.type == kSrqtXrc) reply.Set(VABI_F(ib_uverbs_create_srq_resp, srqn), srq->srqn);
  return c.Respond(reply);
}

}  // namespace

int CreateSrq(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_create_srq));
  if (const int error = c.Request(request)) return error;
  return MakeSrq(c, {request.Get(VABI_F(ib_uverbs_create_srq, user_handle)), kSrqtBasic,
                     request.U32(VABI_F(ib_uverbs_create_srq, pd_handle)),
                     request.U32(VABI_F(ib_uverbs_create_srq, max_wr)),
                     request.U32(VABI_F(ib_uverbs_create_srq, max_sge)),
                     request.U32(VABI_F(ib_uverbs_create_srq, srq_limit)), 0, 0, 0});
}

int CreateXsrq(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_create_xsrq));
  if (const int error = c.Request(request)) return error;
  return MakeSrq(c, {request.Get(VABI_F(ib_uverbs_create_xsrq, user_handle)),
                     request.U32(VABI_F(ib_uverbs_create_xsrq, srq_type)),
                     request.U32(VABI_F(ib_uverbs_create_xsrq, pd_handle)),
                     request.U32(VABI_F(ib_uverbs_create_xsrq, max_wr)),
                     request.U32(VABI_F(ib_uverbs_create_xsrq, max_sge)),
                     request.U32(VABI_F(ib_uverbs_create_xsrq, srq_limit)),
                     request.U32(VABI_F(ib_uverbs_create_xsrq, max_num_tags)),
                     request.U32(VABI_F(ib_uverbs_create_xsrq, xrcd_handle)),
                     request.U32(VABI_F(ib_uverbs_create_xsrq, cq_handle))});
}

int ModifySrq(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_modify_srq));
  if (const int error = c.Request(request)) return error;
  Srq* srq;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_modify_srq, srq_handle)), &srq))
    return error;
  return c.driver().ModifySrq(c.call, *srq, request.U32(VABI_F(ib_uverbs_modify_srq, max_wr)),
                              request.U32(VABI_F(ib_uverbs_modify_srq, srq_limit)),
                              request.U32(VABI_F(ib_uverbs_modify_srq, attr_mask)));
}

int QuerySrq(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_query_srq));
  if (const int error = c.Request(request)) return error;
  Srq* srq;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_query_srq, srq_handle)), &srq))
    return error;
  if (const int error = c.driver().QuerySrq(c.call, *srq)) return error;
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_query_srq_resp));
  reply.Set(VABI_F(ib_uverbs_query_srq_resp, max_wr), srq->max_wr);
  reply.Set(VABI_F(ib_uverbs_query_srq_resp, max_sge), srq->max_sge);
  reply.Set(VABI_F(ib_uverbs_query_srq_resp, srq_limit), srq->srq_limit);
  return c.Respond(reply);
}

int DestroySrq(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_destroy_srq));
  if (const int error = c.Request(request)) return error;
  std::unique_ptr<Srq> dead;
  if (const int error = c.Destroy(request.Get(VABI_F(ib_uverbs_destroy_srq, srq_handle)), &dead)) {
    return error;
  }
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_destroy_srq_resp));
  reply.Set(VABI_F(ib_uverbs_destroy_srq_resp, events_reported), dead->events_reported);
  return c.Respond(reply);
}

}  // namespace vabi
