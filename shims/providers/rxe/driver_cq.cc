// SPDX-License-Identifier: BSD-2-Clause
// Completion queues: rxe_verbs.c, rxe_cq.c
#include <errno.h>

#include <mutex>

#include "shims/providers/rxe/completion_queue.h"
#include "shims/providers/rxe/driver.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::rxe {
namespace {

// Headers before 4.18 call no structure by that name; rxe wrote a bare mminfo.
size_t ReplySize(const World& world, StructId structure) {
  const size_t size = world.Size(structure);
  return size != 0 ? size : world.Size(VABI_S(mminfo));
}

}  // namespace

int RxeDriver::CreateCq(Call& call, Cq& cq) {
  const World& world = call.world;
  const bool reply_short = call.out.length() < ReplySize(world, VABI_S(rxe_create_cq_resp));
  const bool reply_first = world.Knob(KnobId::rxe_reply_required) != 0;
  if (reply_first && reply_short) return call.Refuse(RuleId::rxe_cq_reply_short);
  if (call.Violates(RuleId::rxe_cq_flags, cq.flags != 0)) return call.Refuse(RuleId::rxe_cq_flags);
  if (call.Violates(RuleId::rxe_cq_cqe, cq.cqe == 0 || cq.cqe > cq.device->attributes().max_cqe)) {
    return call.Refuse(RuleId::rxe_cq_cqe);
  }
  if (reply_short) return call.Refuse(RuleId::rxe_cq_reply_short);
  std::lock_guard lock(fabric::Lock());
  RxeDevice& rxe = Of(*cq.device);
  auto state = std::make_unique<CompletionQueue>(cq);
  state->seat = rxe.cqs.Take();
  if (call.Violates(RuleId::rxe_cq_full, state->seat.over()))
    return call.Refuse(RuleId::rxe_cq_full);
  uint32_t count = cq.cqe;
  if (const int error = state->queue.Create(rxe.arena, rxe.layout, Queue::Kind::kToClient, &count,
                                            rxe.entry_size, PlaceAlignment(world))) {
    return error;
  }
  if (const int error = TellPlace(call, state->queue, 0)) return error;
  if (call.Violates(RuleId::rxe_cq_full_late, state->seat.over()))
    return call.Refuse(RuleId::rxe_cq_full_late);
  state->queue.AnnounceTo(call.file.context(), "CQ");
  cq.cqe = count;
  cq.driver = std::move(state);
  return 0;
}

// rxe_resize_cq, rxe_queue_resize
int RxeDriver::ResizeCq(Call& call, Cq& cq, uint32_t cqe) {
  const World& world = call.world;
  if (call.out.length() < ReplySize(world, VABI_S(rxe_resize_cq_resp))) {
    return call.Refuse(RuleId::rxe_resize_reply_short);
  }
  std::lock_guard lock(fabric::Lock());
  RxeDevice& rxe = Of(*cq.device);
  CompletionQueue& state = CompletionQueue::Of(cq);
  if (call.Violates(RuleId::rxe_resize_none, cqe == 0)) return call.Refuse(RuleId::rxe_resize_none);
  if (call.Violates(RuleId::rxe_resize_cqe,
                    cqe > cq.device->attributes().max_cqe || cqe < state.queue.Count())) {
    return call.Refuse(RuleId::rxe_resize_cqe);
  }
  Queue fresh;
  uint32_t count = cqe;
  if (const int error = fresh.Create(rxe.arena, rxe.layout, Queue::Kind::kToClient, &count,
                                     rxe.entry_size, PlaceAlignment(world))) {
    return error;
  }
  if (const int error = TellPlace(call, fresh, 0)) return error;
  if (state.queue.Count() > count) return call.Refuse(RuleId::rxe_resize_below_count);
  fresh.AnnounceTo(call.file.context(), "CQ");
  fresh.TakeOver(state.queue, rxe.entry_size);
  state.queue.Swap(fresh);
  cq.cqe = count;
  return 0;
}

void RxeDriver::DestroyCq(Cq& cq) {
  std::lock_guard lock(fabric::Lock());
  CompletionQueue::Of(cq).queue.Destroy();
}

// rxe_poll_cq. What stands in a program's queue is no struct ib_wc: copy_wc_to_user follows a queue
// pair's address that is not there.
int RxeDriver::PollCq(Call& call, Cq& cq) {
  std::lock_guard lock(fabric::Lock());
  if (CompletionQueue::Of(cq).queue.Empty()) return 0;
  return call.Unmodelled("rxe: POLL_CQ of a completion takes this kernel down");
}

// rxe_req_notify_cq
int RxeDriver::ReqNotifyCq(Call&, Cq& cq, bool solicited_only) {
  std::lock_guard lock(fabric::Lock());
  CompletionQueue::Of(cq).notify |= solicited_only ? 1 : 2;
  return 0;
}

}  // namespace vabi::rxe
