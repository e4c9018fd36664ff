// SPDX-License-Identifier: BSD-2-Clause
// Tag matching: a queue pair whose shared queue has a list of tags.
#include <cstring>

#include "shims/fabric/message.h"
#include "shims/fabric/spans.h"
#include "shims/providers/mlx5/clock.h"
#include "shims/providers/mlx5/queue_pair.h"
#include "shims/trace/trace.h"

namespace vabi::mlx5 {
namespace {

using fabric::Completion;
using fabric::Outcome;
using fabric::Status;

// rdma-core's cq.c: enum MLX5_CQE_APP_OP_TM_*
enum TagAnswer : uint8_t {
  kConsumed = 0x1,
  kExpected = 0x2,
  kUnexpected = 0x3,
  kNoTag = 0x4,
  kAppended = 0x5,
  kRemoved = 0x6,
  kNothing = 0x7,
  kConsumedMessage = 0xa,
};
constexpr uint8_t kTagMatching = 1;  // MLX5_CQE_APP_TAG_MATCHING
constexpr uint32_t kSuccess = 0x80000000;

// struct mlx5_wqe_tm_seg
constexpr uint32_t kTagSegment = 32, kTagFlags = 1, kTagIndex = 2, kTagCount = 6, kTagTag = 16,
                   kTagMask = 24;
constexpr uint8_t kTagAsksForAnswer = 1 << 7, kTagTellsCount = 1 << 6;
enum TagCommand : uint8_t { kNop = 0, kAppend = 1, kRemove = 2 };

void Answer(CqeText* text, uint8_t answer, uint16_t index) {
  text->bytes[kCqeApp] = kTagMatching;
  text->bytes[kCqeAppOp] = answer;
  Store16(text->bytes + kCqeAppInfo, index);
}

}  // namespace

// An element of the queue pair through which the list is kept.
bool QueuePair::ChangeTags(const Wqe& wqe) {
  TagList* tags = parts_.srq != nullptr ? parts_.srq->tags() : nullptr;
  const uint8_t* segment = wqe.bytes + kSegment;
  if (tags == nullptr || wqe.segments * kSegment < kSegment + kTagSegment) return false;
  const uint8_t flags = segment[kTagFlags];
  if ((flags & kTagTellsCount) != 0) tags->told = Load16(segment + kTagCount);
  CqeText text;
  const uint16_t index = Load16(segment + kTagIndex);
  switch (segment[0] >> 4) {
    case kAppend: {
      TagEntry entry;
      entry.tag = Load64(segment + kTagTag);
      entry.mask = Load64(segment + kTagMask);
      const uint8_t* data = segment + kTagSegment;
      if (Load32(data + 4) != kTerminator)
        entry.buffer = {Load64(data + 8), Load32(data), Load32(data + 4)};
      if (tags->told != tags->unexpected)
        trace::Event("unmodelled", "mlx5: a tag that is added while counts differ");
      tags->Append(entry, index);
      Answer(&text, kAppended, 0);
      break;
    }
    case kRemove:
      Store32(text.bytes, tags->Remove(index) ? kSuccess : 0);
      Answer(&text, kRemoved, 0);
      break;
    case kNop:
      Answer(&text, kNothing, 0);
      break;
    default:
      return false;
  }
  if ((flags & kTagAsksForAnswer) == 0) return true;
  Store16(text.bytes + 4, tags->unexpected);
  text.opcode = kCqeNoPacket;
  Store32(text.bytes + kCqeSrqnUidx, parts_.srq->tag());
  Store32(text.bytes + kCqeOpcodeQpn, qpn);
  Store16(text.bytes + kCqeWqeCounter, wqe.index);
  Store64(text.bytes + kCqeTimestamp, Clock::Cycles());
  Emit(parts_.send_cq, text);
  return true;
}

bool QueuePair::Match(const fabric::Message& message, fabric::RecvRequest* out, uint32_t* skip) {
  TagList* tags = parts_.srq != nullptr ? parts_.srq->tags() : nullptr;
  if (tags == nullptr) return false;
  matched_ = Matched();
  matched_.answer = kNoTag;
  uint8_t* header = matched_.header;
  const uint64_t size = std::min<uint64_t>(message.length, sizeof(matched_.header));
  fabric::Spans into;
  into.Add(reinterpret_cast<uintptr_t>(header), size);
  fabric::CopySpans(into, *message.payload, size);
  const bool rendezvous = header[0] == kTagRendezvous;
  if (size < kTagHeader || (rendezvous && size < kRendezvousHeader)) return false;
  if (!rendezvous && header[0] != kTagEager) return false;
  const std::optional<TagEntry> entry = tags->Take(Load64(header + 8));
  if (!entry) {
    matched_.answer = kUnexpected;
    return false;
  }
  matched_.entry = *entry;
  matched_.answer = rendezvous ? kConsumed : kConsumedMessage;
  out->index = entry->index;
  out->sge_count = 0;
  *skip = kTagHeader;
  if (rendezvous) {
    *skip = static_cast<uint32_t>(message.length);
  } else if (entry->buffer.length != 0) {
    out->sges[out->sge_count++] = entry->buffer;
  }
  return true;
}

// What stands in the completion of a message to such a queue beside what others have.
void QueuePair::TellTag(CqeText* text) {
  Answer(text, matched_.answer, matched_.entry.index);
  if (matched_.answer == kUnexpected) ++parts_.srq->tags()->unexpected;
  if (matched_.answer == kConsumed || matched_.answer == kConsumedMessage)
    std::memcpy(text->bytes, matched_.header, kTagHeader);
  if (matched_.answer != kConsumed) return;
  // The data come by a READ of the NIC's own, and the peer is told by a message of its own.
  text->opcode = kCqeNoPacket;
  own_.push_back(matched_);
}

bool QueuePair::ProgressOwn() {
  bool worked = false;
  while (!own_.empty() && !own_sent_ && sent_ == 0 && state == fabric::EndpointState::kRts) {
    Matched& own = own_.front();
    fabric::SendRequest request;
    if (own.read) {
      own.header[0] = kTagFinish;
      request.opcode = fabric::Opcode::kSend;
      request.inline_data = own.header;
      request.inline_length = kTagHeader;
    } else {
      const uint32_t length = Load32(own.header + 28);
      request.opcode = fabric::Opcode::kRead;
      request.remote_address = Load64(own.header + 16);
      request.rkey = Load32(own.header + 24);
      request.sge_count = length == 0 ? 0 : 1;
      request.sges[0] = own.entry.buffer;
      if (length > own.entry.buffer.length)
        trace::Event("unmodelled", "mlx5: a rendezvous of more than its receive has room for");
      request.sges[0].length = std::min(length, own.entry.buffer.length);
    }
    Completion completion;
    const Outcome outcome = fabric::Execute(*this, request, own_attempt_, &completion);
    if (outcome == Outcome::kRetry) {
      ++own_attempt_;
      return worked;
    }
    worked = true;
    own_attempt_ = 0;
    if (outcome == Outcome::kSent) {
      own_sent_ = true;
      return worked;
    }
    FinishOwn(completion);
  }
  return worked;
}

void QueuePair::FinishOwn(const Completion& completion) {
  Matched& own = own_.front();
  const bool failed = completion.status != Status::kSuccess;
  if (!own.read) {
    CqeText text;
    Store32(text.bytes + kCqeSrqnUidx, parts_.srq->tag());
    Store32(text.bytes + kCqeOpcodeQpn, qpn);
    Answer(&text, kExpected, own.entry.index);
    text.opcode = failed ? kCqeResponderError : kCqeReceiveSend;
    if (failed) {
      text.bytes[kCqeSyndrome] = Syndrome(completion.status);
      text.bytes[kCqeVendor] = VendorSyndrome(completion.status, false);
    } else {
      Store32(text.bytes + kCqeByteCount, completion.byte_length);
      Store64(text.bytes + kCqeTimestamp, Clock::Cycles());
    }
    Emit(parts_.srq->tag_queue(), text);
  }
  if (own.read || failed) {
    own_.pop_front();
  } else {
    own.read = true;
  }
  if (failed) EnterError();
}

}  // namespace vabi::mlx5
