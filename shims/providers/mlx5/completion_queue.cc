// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/completion_queue.h"

#include "shims/fabric/memory.h"
#include "shims/providers/mlx5/wire_format.h"
#include "shims/uverbs/events.h"

namespace vabi::mlx5 {
namespace {

constexpr uint32_t kEventCqError = 0;  // IB_EVENT_CQ_ERR

uint32_t LoadRecord(uint64_t at) {
  uint32_t value = 0;
  return fabric::LoadMemory32(at, &value) ? __builtin_bswap32(value) : 0;
}

}  // namespace

CompletionQueue::CompletionQueue(uint32_t number, const Geometry& geometry, Cq* cq,
                                 bool ignores_overrun)
    : number_(number), geometry_(geometry), cq_(cq), ignores_overrun_(ignores_overrun) {
  // The first arm command is 0 where nothing was polled yet, like memory that was never written.
  arm_record_ = kArmPoison;
  fabric::WriteMemory(geometry_.doorbell + kArmRecord, &arm_record_, sizeof(arm_record_));
}

uint32_t CompletionQueue::Outstanding() {
  consumer_ = LoadRecord(geometry_.doorbell + kConsumerRecord) & kIndexMask;
  return (producer_ - consumer_) & kIndexMask;
}

// The record is read only where what was read last leaves no room.
bool CompletionQueue::Full() {
  if (((producer_ - consumer_) & kIndexMask) < geometry_.entries) return false;
  return Outstanding() >= geometry_.entries;
}

void CompletionQueue::Put(const CqeText& text) {
  const uint32_t slot = producer_ & (geometry_.entries - 1);
  const uint64_t at =
      geometry_.buffer + uint64_t{slot} * geometry_.cqe_size + (geometry_.cqe_size - kCqeSize);
  const auto owner = static_cast<uint8_t>((producer_ & geometry_.entries) != 0);
  if (geometry_.pads) {
    static constexpr uint8_t kNothing[kCqeSize] = {};
    fabric::WriteMemory(at - kCqeSize, kNothing, sizeof(kNothing));
  }
  fabric::WriteMemory(at, text.bytes, kCqeOpOwn);
  fabric::StoreMemory8(
      at + kCqeOpOwn,
      static_cast<uint8_t>(text.opcode << 4 | (text.solicited ? kCqeSolicited : 0) | owner));
  ++producer_;
  if (text.solicited) {
    solicited_ = producer_;
    any_solicited_ = true;
  }
}

bool CompletionQueue::Write(const CqeText& text) {
  if (error_) return false;
  if (!ignores_overrun_ && Full()) {
    error_ = true;
    if (cq_ != nullptr && cq_->events)
      cq_->events->Report(cq_->user_handle, kEventCqError, &cq_->async_events_reported, cq_);
    return false;
  }
  Put(text);
  if (armed_) MaybeNotify();
  return true;
}

void CompletionQueue::Resize(uint64_t buffer, uint32_t entries) {
  CqeText marker;
  marker.opcode = kCqeResize;
  Put(marker);
  geometry_.buffer = buffer;
  geometry_.entries = entries;
}

bool CompletionQueue::MaybeNotify() {
  const uint32_t from = arm_record_ & kIndexMask;
  const bool only_solicited = (arm_record_ & kArmSolicited) != 0;
  if (only_solicited && !any_solicited_) return false;
  const uint32_t ahead = ((only_solicited ? solicited_ : producer_) - from) & kIndexMask;
  if (ahead == 0 || ahead > kIndexMask / 2) return false;
  armed_ = false;
  fired_ = true;
  fired_sequence_ = arm_record_ >> kArmSequenceShift;
  cq_->channel->Notify(*cq_);
  return true;
}

bool CompletionQueue::PollArm() {
  if (!wants_polling()) return false;
  uint32_t record;
  if (!fabric::LoadMemory32(geometry_.doorbell + kArmRecord, &record)) return false;
  record = __builtin_bswap32(record);
  if (record == arm_record_ || record == kArmPoison) return false;
  arm_record_ = record;
  // One event for each sequence number: the program counts it up when it has read the event.
  if (fired_ && record >> kArmSequenceShift == fired_sequence_) return false;
  armed_ = true;
  return MaybeNotify();
}

}  // namespace vabi::mlx5
