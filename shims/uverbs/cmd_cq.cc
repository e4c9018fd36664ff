// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>

#include "shims/sys/sys.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/object_table.h"

namespace vabi {

// ib_uverbs_create_comp_channel
int CreateCompChannel(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_create_comp_channel));
  if (const int error = c.Request(request)) return error;
  if (!ObjectServed(c.device, ObjectType::kCompChannel)) return c.Refuse(RuleId::object_absent);
  vabi::Context* context;
  if (const int error = c.Context(&context)) return error;
  const int fd = ReserveEventFd();
  if (fd < 0) return fd;
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_create_comp_channel_resp));
  reply.Set(VABI_F(ib_uverbs_create_comp_channel_resp, fd), static_cast<uint64_t>(fd));
  if (const int error = c.Respond(reply)) {
    sys::Close(fd);
    return error;
  }
  auto channel = std::make_shared<CompletionChannel>(&c.file);
  c.file.AddEventFile(channel);
  InstallEventFile(fd, std::move(channel));
  return 0;
}

namespace {

struct CqRequest {
  uint64_t user_handle;
  uint32_t cqe, comp_vector;
  int32_t comp_channel;
  uint32_t flags;
};

// uverbs_cmd.c:create_cq
int MakeCq(Command& c, const CqRequest& request) {
  if (c.Violates(RuleId::cq_comp_vector, request.comp_vector >= c.device.comp_vectors())) {
    return c.Refuse(RuleId::cq_comp_vector);
  }
  if (c.Violates(RuleId::cq_cqe_zero, request.cqe == 0)) return c.Refuse(RuleId::cq_cqe_zero);
  Cq* cq;
  if (const int error = c.New(&cq)) return error;
  if (request.comp_channel >= 0) {
    cq->channel = CompletionChannel::From(FdTable::Get(request.comp_channel));
    if (!cq->channel || cq->channel->owner() != c.file.serial()) return c.Refuse(RuleId::fd_wrong);
  }
  cq->user_handle = request.user_handle;
  cq->cqe = request.cqe;
  cq->comp_vector = request.comp_vector;
  cq->flags = request.flags;
  cq->events = c.file.async_events;
  if (const int error = c.driver().CreateCq(c.call, *cq)) return error;
  c.Created();
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_ex_create_cq_resp));
  const Body base = reply.Sub(VABI_F(ib_uverbs_ex_create_cq_resp, base));
  base.Set(VABI_F(ib_uverbs_create_cq_resp, cq_handle), cq->handle);
  base.Set(VABI_F(ib_uverbs_create_cq_resp, cqe), cq->cqe);
  reply.Set(VABI_F(ib_uverbs_ex_create_cq_resp, response_length), c.ResponseLength(reply.length()));
  return c.Respond(reply);
}

}  // namespace

int CreateCq(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_create_cq));
  if (const int error = c.Request(request)) return error;
  return MakeCq(c, {request.Get(VABI_F(ib_uverbs_create_cq, user_handle)),
                    request.U32(VABI_F(ib_uverbs_create_cq, cqe)),
                    request.U32(VABI_F(ib_uverbs_create_cq, comp_vector)),
                    request.S32(VABI_F(ib_uverbs_create_cq, comp_channel)), 0});
}

int CreateCqEx(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_ex_create_cq));
  if (const int error = c.Request(request)) return error;
  if (c.Violates(RuleId::cq_ex_comp_mask,
                 request.Get(VABI_F(ib_uverbs_ex_create_cq, comp_mask)) != 0)) {
    return c.Refuse(RuleId::cq_ex_comp_mask);
  }
  if (c.Violates(RuleId::cq_ex_reserved,
                 request.Get(VABI_F(ib_uverbs_ex_create_cq, reserved)) != 0)) {
    return c.Refuse(RuleId::cq_ex_reserved);
  }
  return MakeCq(c, {request.Get(VABI_F(ib_uverbs_ex_create_cq, user_handle)),
                    request.U32(VABI_F(ib_uverbs_ex_create_cq, cqe)),
                    request.U32(VABI_F(ib_uverbs_ex_create_cq, comp_vector)),
                    request.S32(VABI_F(ib_uverbs_ex_create_cq, comp_channel)),
                    request.U32(VABI_F(ib_uverbs_ex_create_cq, flags))});
}

int ResizeCq(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_resize_cq));
  if (const int error = c.Request(request)) return error;
  const uint32_t cqe = request.U32(VABI_F(ib_uverbs_resize_cq, cqe));
  if (c.Violates(RuleId::cq_resize_zero, cqe == 0)) return c.Refuse(RuleId::cq_resize_zero);
  Cq* cq;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_resize_cq, cq_handle)), &cq))
    return error;
  if (const int error = c.driver().ResizeCq(c.call, *cq, cqe)) return error;
  if (c.call.pins.buffers.pages() != 0) cq->pins.buffers = std::move(c.call.pins.buffers);
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_resize_cq_resp));
  reply.Set(VABI_F(ib_uverbs_resize_cq_resp, cqe), cq->cqe);
  return c.Respond(reply);
}

// ib_uverbs_ex_modify_cq
int ModifyCqEx(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_ex_modify_cq));
  if (const int error = c.Request(request)) return error;
  const uint32_t mask = request.U32(VABI_F(ib_uverbs_ex_modify_cq, attr_mask));
  if (c.Violates(RuleId::cq_modify_mask_empty,
                 mask == 0 || request.Get(VABI_F(ib_uverbs_ex_modify_cq, reserved)) != 0)) {
    return c.Refuse(RuleId::cq_modify_mask_empty);
  }
  constexpr uint32_t kModerate = 1;  // IB_CQ_MODERATE
  if (c.Violates(RuleId::cq_modify_mask_unknown, mask > kModerate)) {
    return c.Refuse(RuleId::cq_modify_mask_unknown);
  }
  Cq* cq;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_ex_modify_cq, cq_handle)), &cq)) {
    return error;
  }
  const Body attr = request.Sub(VABI_F(ib_uverbs_ex_modify_cq, attr));
  return c.driver().ModifyCq(
      c.call, *cq, static_cast<uint16_t>(attr.Get(VABI_F(ib_uverbs_cq_moderation, cq_count))),
      static_cast<uint16_t>(attr.Get(VABI_F(ib_uverbs_cq_moderation, cq_period))));
}

// No modelled driver's user space polls through the kernel (rxe and mlx5 poll mapped queues); who
// does all the same learns of an empty queue. The reply is not uverbs_response's: no longer, and
// nothing behind it is zeroed.
int PollCq(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_poll_cq));
  if (const int error = c.Request(request)) return error;
  Cq* cq;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_poll_cq, cq_handle)), &cq))
    return error;
  if (request.Get(VABI_F(ib_uverbs_poll_cq, ne)) != 0) {
    if (const int error = c.driver().PollCq(c.call, *cq)) return error;
  }
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_poll_cq_resp));
  if (c.ioctl != nullptr) {
    const int error = c.ioctl->CopyOut(ConstId::UVERBS_ATTR_CORE_OUT, reply.base(), reply.length());
    return error == -ENOENT ? 0 : error;
  }
  if (UdataOut(c.out.address(), reply.length()).Copy(reply.base(), reply.length()) != 0) {
    return c.Refuse(RuleId::response_fault);
  }
  return 0;
}

int ReqNotifyCq(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_req_notify_cq));
  if (const int error = c.Request(request)) return error;
  Cq* cq;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_req_notify_cq, cq_handle)), &cq)) {
    return error;
  }
  // The driver's answer is not looked at.
  c.driver().ReqNotifyCq(c.call, *cq,
                         request.Get(VABI_F(ib_uverbs_req_notify_cq, solicited_only)) != 0);
  return 0;
}

int DestroyCq(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_destroy_cq));
  if (const int error = c.Request(request)) return error;
  std::unique_ptr<Cq> dead;
  if (const int error = c.Destroy(request.Get(VABI_F(ib_uverbs_destroy_cq, cq_handle)), &dead)) {
    return error;
  }
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_destroy_cq_resp));
  reply.Set(VABI_F(ib_uverbs_destroy_cq_resp, comp_events_reported), dead->comp_events_reported);
  reply.Set(VABI_F(ib_uverbs_destroy_cq_resp, async_events_reported), dead->async_events_reported);
  return c.Respond(reply);
}

}  // namespace vabi
