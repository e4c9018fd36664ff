// SPDX-License-Identifier: BSD-2-Clause
// verbs.c: irdma_create_cq, irdma_resize_cq
#include <algorithm>

#include "shims/providers/common/udata.h"
#include "shims/providers/irdma/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::irdma {
namespace {

constexpr uint32_t kLeastSize = 4;  // elements

}  // namespace

int IrdmaDriver::CreateCq(Call& call, Cq& cq) {
  const World& world = call.world;
  const auto taken = static_cast<uint32_t>(world.Knob(knob::cq_flags_taken));
  if (call.Violates(rule::cq_flags, (cq.flags & ~taken) != 0)) return call.Refuse(rule::cq_flags);
  OwnedBody<16> reply(world, structure::irdma_create_cq_resp);
  OwnedBody<32> request(world, structure::irdma_create_cq_req);
  const size_t least = world.End(VABI_PF(irdma_create_cq_req, user_cq_buf));
  if (call.Violates(rule::cq_reply, call.out.length() < reply.length()))
    return call.Refuse(rule::cq_reply);
  if (world.Knob(knob::looks_at_lengths) == 0 && call.in.length() < request.length())
    return call.Unmodelled("irdma: a short CREATE_CQ request, the rest of which is not set");
  if (const int error =
          provider::CopyRequest(call, request.base(), request.length(),
                                {least, rule::cq_short, rule::cq_tail, rule::cq_fault}))
    return error;
  ContextState& context = ContextOf(call.file);
  auto state = std::make_unique<CqState>();
  // What is found waits no longer, whatever comes of the rest.
  const uint64_t buffer = request.Get(VABI_PF(irdma_create_cq_req, user_cq_buf)),
                 shadow = request.Get(VABI_PF(irdma_create_cq_req, user_shadow_area));
  state->buffer = context.Take(Memory::kCq, buffer);
  if (state->buffer == nullptr) return call.Refuse(rule::cq_buffer);
  const auto give_up = [&](RuleId rule) {
    --state->buffer->rings;
    if (state->shadow != nullptr) --state->shadow->rings;
    return call.Refuse(rule);
  };
  state->shadow = context.Take(Memory::kCq, shadow);
  if (state->shadow == nullptr) return give_up(rule::cq_shadow);
  state->size = std::max(cq.cqe, kLeastSize);
  if (state->size > kMaxCqSize) return give_up(rule::cq_size);
  reply.Set(VABI_PF(irdma_create_cq_resp, cq_id), cq.device->NextNumber());
  reply.Set(VABI_PF(irdma_create_cq_resp, cq_size), state->size);
  if (const int error = Reply(call, reply, rule::cq_reply_fault)) {
    --state->buffer->rings;
    --state->shadow->rings;
    return error;
  }
  cq.cqe = state->size;
  cq.driver = std::move(state);
  return 0;
}

int IrdmaDriver::ResizeCq(Call& call, Cq& cq, uint32_t cqe) {
  const World& world = call.world;
  OwnedBody<16> request(world, structure::irdma_resize_cq_req);
  const bool request_later = world.Knob(knob::validates) != 0;
  if (!request_later && call.Violates(rule::resize_short, call.in.length() < request.length()))
    return call.Refuse(rule::resize_short);
  if (call.Violates(rule::resize_entries, cqe > kMaxCqSize))
    return call.Refuse(rule::resize_entries);
  if (request_later && call.out.length() != 0 && call.out.ClearFrom(0) != 0)
    return call.Refuse(rule::reply_fault);
  CqState& state = StateOf(cq);
  const uint32_t size = std::max(cqe, kLeastSize);
  if (size == state.size - 1) return 0;
  if (world.Knob(knob::looks_at_lengths) == 0 && call.in.length() < request.length())
    return call.Unmodelled("irdma: a short RESIZE_CQ request, the rest of which is not set");
  if (const int error = provider::CopyRequest(
          call, request.base(), request.length(),
          {request.length(), rule::resize_short, rule::resize_tail, rule::resize_fault}))
    return error;
  MrState* buffer = ContextOf(call.file).Take(
      Memory::kCq, request.Get(VABI_PF(irdma_resize_cq_req, user_cq_buffer)));
  if (buffer == nullptr) return call.Refuse(rule::resize_buffer);
  --state.buffer->rings;
  state.buffer = buffer;
  state.size = size;
  cq.cqe = size - 1;
  return 0;
}

void IrdmaDriver::DestroyCq(Cq& cq) {
  CqState& state = StateOf(cq);
  --state.buffer->rings;
  --state.shadow->rings;
}

}  // namespace vabi::irdma
