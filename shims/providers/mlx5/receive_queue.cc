// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/receive_queue.h"

#include <algorithm>

#include "shims/fabric/memory.h"
#include "shims/providers/mlx5/wire_format.h"
#include "shims/uverbs/events.h"

namespace vabi::mlx5 {
namespace {

constexpr uint32_t kEventSrqError = 14;         // IB_EVENT_SRQ_ERR
constexpr uint32_t kEventSrqLimitReached = 15;  // IB_EVENT_SRQ_LIMIT_REACHED
constexpr uint32_t kMaxElement = 1024;
// A count of 0 stands for this many bytes.
constexpr uint32_t kTwoGigabytes = 0x80000000;

uint16_t LoadCounter(uint64_t at, uint16_t otherwise) {
  uint32_t value;
  if (!fabric::LoadMemory32(at, &value)) return otherwise;
  return static_cast<uint16_t>(__builtin_bswap32(value));
}

// The scatter list of an element that was read into `bytes`.
void ReadList(const uint8_t* bytes, uint32_t size, fabric::RecvRequest* out) {
  out->sge_count = 0;
  for (uint32_t at = 0; at + kSegment <= size && out->sge_count < fabric::kMaxSge; at += kSegment) {
    const uint32_t count = Load32(bytes + at), key = Load32(bytes + at + 4);
    if (key == kTerminator) return;
    if ((count & kInline) != 0) {
      out->sge_count = fabric::Endpoint::kMalformed;
      return;
    }
    out->sges[out->sge_count++] = {Load64(bytes + at + 8), count == 0 ? kTwoGigabytes : count, key};
  }
}

}  // namespace

bool ReceiveRing::Empty() {
  if (head_ != producer_) return false;
  producer_ = LoadCounter(geometry_.doorbell, producer_);
  return head_ == producer_;
}

bool ReceiveRing::Pop(fabric::RecvRequest* out) {
  if (geometry_.count == 0 || Empty()) return false;
  const uint32_t slot = head_ & (geometry_.count - 1);
  const uint32_t size = std::min(1u << geometry_.shift, kMaxElement);
  uint8_t bytes[kMaxElement];
  fabric::ReadMemory(bytes, geometry_.buffer + (uint64_t{slot} << geometry_.shift), size);
  const uint32_t first = geometry_.signature ? kSegment : 0;
  ReadList(bytes + first, size > first ? size - first : 0, out);
  out->index = head_;
  if (out->sge_count != fabric::Endpoint::kMalformed) ++head_;
  return true;
}

bool ReceiveRing::Skip(uint16_t* index) {
  if (geometry_.count == 0 || Empty()) return false;
  *index = head_++;
  return true;
}

void SharedQueue::Report(uint32_t event) {
  if (srq_->events) srq_->events->Report(srq_->user_handle, event, &srq_->events_reported, srq_);
}

bool SharedQueue::Pop(fabric::RecvRequest* out) {
  if (taken_ == posted_) {
    posted_ = LoadCounter(geometry_.doorbell, posted_);
    if (taken_ == posted_) return false;
  }
  const uint32_t size = std::min(1u << geometry_.shift, kMaxElement);
  uint8_t bytes[kMaxElement];
  const uint32_t slot = head_ & (geometry_.count - 1);
  fabric::ReadMemory(bytes, geometry_.buffer + (uint64_t{slot} << geometry_.shift), size);
  // The first segment chains (and may carry a signature).
  ReadList(bytes + kSegment, size - kSegment, out);
  out->index = static_cast<uint16_t>(slot);
  if (out->sge_count == fabric::Endpoint::kMalformed) {
    Report(kEventSrqError);
    return true;
  }
  head_ = Load16(bytes + kNextIndex);
  ++taken_;
  if (limit_ != 0) {
    posted_ = LoadCounter(geometry_.doorbell, posted_);
    if (static_cast<uint16_t>(posted_ - taken_) < limit_) {
      limit_ = 0;
      Report(kEventSrqLimitReached);
    }
  }
  return true;
}

}  // namespace vabi::mlx5
