// SPDX-License-Identifier: BSD-2-Clause
// Shared receive queues: rxe_verbs.c, rxe_srq.c
#include <errno.h>

#include <algorithm>
#include <mutex>

#include "shims/providers/rxe/driver.h"
#include "shims/providers/rxe/shared_receive_queue.h"
#include "shims/sys/sys.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::rxe {
namespace {

constexpr uint32_t kBasic = 0;              // IB_SRQT_BASIC
constexpr uint32_t kMaxWr = 1, kLimit = 2;  // enum ib_srq_attr_mask

uint64_t ElementSize(const RxeDevice& rxe, uint32_t max_sge) {
  return rxe.layout.recv_size + static_cast<uint64_t>(max_sge) * rxe.layout.sge_size;
}

}  // namespace

int RxeDriver::CreateSrq(Call& call, Srq& srq) {
  const World& world = call.world;
  const DeviceAttributes& limits = srq.device->attributes();
  const bool told = world.Has(VABI_S(rxe_create_srq_resp));
  const size_t reply_size =
      told ? world.Size(VABI_S(rxe_create_srq_resp)) : world.Size(VABI_S(mminfo));
  const bool reply_short = call.out.length() < reply_size;
  if (world.Knob(KnobId::rxe_reply_required) != 0 && reply_short)
    return call.Refuse(RuleId::rxe_srq_reply_short);
  if (call.Violates(RuleId::rxe_srq_type, srq.srq_type != kBasic))
    return call.Refuse(RuleId::rxe_srq_type);
  if (call.Violates(RuleId::rxe_srq_max_wr, srq.max_wr > limits.max_srq_wr || srq.max_wr == 0)) {
    return call.Refuse(RuleId::rxe_srq_max_wr);
  }
  if (call.Violates(RuleId::rxe_srq_max_sge, srq.max_sge > limits.max_srq_sge)) {
    return call.Refuse(RuleId::rxe_srq_max_sge);
  }
  if (reply_short) return call.Refuse(RuleId::rxe_srq_reply_short);
  std::lock_guard lock(fabric::Lock());
  RxeDevice& rxe = Of(*srq.device);
  auto state = std::make_unique<SharedReceiveQueue>();
  state->seat = rxe.srqs.Take();
  if (call.Violates(RuleId::rxe_srq_full, state->seat.over()))
    return call.Refuse(RuleId::rxe_srq_full);
  state->max_sge = std::max(srq.max_sge, 1u);
  state->limit = srq.srq_limit;
  uint32_t count = srq.max_wr;
  if (const int error =
          state->queue.Create(rxe.arena, rxe.layout, Queue::Kind::kFromClient, &count,
                              ElementSize(rxe, state->max_sge), PlaceAlignment(world))) {
    return error;
  }
  if (const int error = TellPlace(call, state->queue, 0)) return error;
  const uint32_t number = rxe.next_srq++;
  const size_t number_at =
      told ? static_cast<size_t>(world.At(VABI_F(rxe_create_srq_resp, srq_num)).offset)
           : reply_size;
  if (call.out.length() >= number_at + sizeof(number) &&
      call.out.CopyAt(number_at, &number, sizeof(number)) != 0) {
    return call.Refuse(RuleId::rxe_reply_fault);
  }
  state->queue.AnnounceTo(call.file.context(), "SRQ");
  srq.srqn = number;
  // Since 6.3 the caller learns how many there really are.
  if (world.Knob(KnobId::rxe_depth_told) != 0) srq.max_wr = count;
  srq.max_sge = state->max_sge;
  srq.driver = std::move(state);
  return 0;
}

int RxeDriver::ModifySrq(Call& call, Srq& srq, uint32_t max_wr, uint32_t limit, uint32_t mask) {
  const World& world = call.world;
  const DeviceAttributes& limits = srq.device->attributes();
  uint64_t place_at = 0;
  if (world.Has(VABI_S(rxe_modify_srq_cmd))) {
    if (call.in.length() < world.End(VABI_F(rxe_modify_srq_cmd, mmap_info_addr))) {
      return call.Refuse(RuleId::rxe_modify_srq_short);
    }
    OwnedBody<64> request(world, VABI_S(rxe_modify_srq_cmd));
    if (call.in.Copy(request.base(), request.length()) != 0)
      return call.Refuse(RuleId::rxe_modify_srq_fault);
    const int zero = call.in.TailIsZero(request.length());
    if (call.On(RuleId::rxe_modify_srq_tail)) {
      if (zero < 0) return call.Refuse(RuleId::rxe_modify_srq_fault);
      if (zero == 0) return call.Refuse(RuleId::rxe_modify_srq_tail);
    }
    place_at = request.Get(VABI_F(rxe_modify_srq_cmd, mmap_info_addr));
  } else if ((mask & kMaxWr) != 0) {
    return call.Unmodelled("rxe: resizing an SRQ through the reply, as up to 4.16");
  }
  std::lock_guard lock(fabric::Lock());
  RxeDevice& rxe = Of(*srq.device);
  SharedReceiveQueue& state = SharedReceiveQueue::Of(srq);
  if ((mask & kMaxWr) != 0) {
    if (call.Violates(RuleId::rxe_srq_max_wr, max_wr > limits.max_srq_wr || max_wr == 0)) {
      return call.Refuse(RuleId::rxe_srq_max_wr);
    }
    if (call.Violates(RuleId::rxe_modify_srq_below_limit,
                      state.limit != 0 && max_wr < state.limit)) {
      return call.Refuse(RuleId::rxe_modify_srq_below_limit);
    }
  }
  if ((mask & kLimit) != 0 &&
      call.Violates(RuleId::rxe_modify_srq_limit,
                    limit > limits.max_srq_wr || limit > state.queue.mask())) {
    return call.Refuse(RuleId::rxe_modify_srq_limit);
  }
  if ((mask & kMaxWr) != 0) {
    Queue fresh;
    uint32_t count = max_wr;
    const uint64_t element = ElementSize(rxe, state.max_sge);
    if (const int error = fresh.Create(rxe.arena, rxe.layout, Queue::Kind::kFromClient, &count,
                                       element, PlaceAlignment(world))) {
      return error;
    }
    // The new place goes to where the request says, not into the reply; to nowhere: it cannot be
    // mapped.
    if (place_at != 0) {
      OwnedBody<64> place(world, VABI_S(mminfo));
      place.Set(VABI_F(mminfo, offset), static_cast<uint64_t>(fresh.offset()));
      place.Set(VABI_F(mminfo, size), fresh.size());
      if (trace::Reply(place_at, place.base(), place.length()) != 0)
        return call.Refuse(RuleId::rxe_reply_fault);
      fresh.AnnounceTo(call.file.context(), "SRQ");
    }
    if (state.queue.Count() > count) return call.Refuse(RuleId::rxe_resize_below_count);
    fresh.TakeOver(state.queue, element);
    state.queue.Swap(fresh);
  }
  if ((mask & kLimit) != 0) state.limit = limit;
  return 0;
}

// rxe_query_srq
int RxeDriver::QuerySrq(Call&, Srq& srq) {
  std::lock_guard lock(fabric::Lock());
  const SharedReceiveQueue& state = SharedReceiveQueue::Of(srq);
  srq.max_wr = state.queue.mask();
  srq.max_sge = state.max_sge;
  srq.srq_limit = state.limit;
  return 0;
}

void RxeDriver::DestroySrq(Srq& srq) {
  std::lock_guard lock(fabric::Lock());
  SharedReceiveQueue::Of(srq).queue.Destroy();
}

// rxe_post_srq_recv
int RxeDriver::PostSrqRecv(Call& call, Srq& srq, std::span<const fabric::RecvRequest> list,
                           uint32_t* posted) {
  std::lock_guard lock(fabric::Lock());
  SharedReceiveQueue& state = SharedReceiveQueue::Of(srq);
  return PostReceives(call, state.queue, state.max_sge, list, posted);
}

}  // namespace vabi::rxe
