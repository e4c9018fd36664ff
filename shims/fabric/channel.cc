// SPDX-License-Identifier: BSD-2-Clause
// Frames in and out of the rings, or behind each other where a ring is full.
#include <cstring>

#include "shims/fabric/far.h"

namespace vabi::fabric {

OutChannel* Far::Open(const FarPlace& place) {
  OutChannel& channel = out[static_cast<size_t>(place.peer)];
  if (channel.identity == place.identity) return &channel;
  if (place.identity == 0) return nullptr;
  channel = OutChannel();
  channel.identity = place.identity;
  channel.writer.Begin(&world.ring(world.self(), place.peer), world.identity(), place.identity);
  return &channel;
}

FrameHead* Far::Begin(OutChannel& channel, uint32_t size, bool may_queue) {
  if (channel.backlog.empty()) {
    if (FrameHead* frame = channel.writer.Reserve(size)) return frame;
  }
  if (!may_queue) return nullptr;
  channel.backlog.emplace_back(size);
  auto* frame = reinterpret_cast<FrameHead*>(channel.backlog.back().data());
  frame->size = size;
  return frame;
}

void Far::End(OutChannel& channel, int peer, FrameHead* frame) {
  if (channel.backlog.empty()) channel.writer.Commit(frame);
  Notify(peer);
}

// The reader clears its mark before it looks at the ring: where the mark is seen here, behind the
// barrier, the frame is seen there.
void Far::Notify(int peer) {
  Peer& to = world.peer(peer);
  const uint32_t me = 1u << world.self();
#ifndef __SANITIZE_THREAD__  // which knows no fences
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if ((to.inbox.load(std::memory_order_seq_cst) & me) != 0) return;
#endif
  if ((to.inbox.fetch_or(me) & me) == 0) Kick(to.wake, true);
}

bool Far::Flush(int peer) {
  OutChannel& channel = out[static_cast<size_t>(peer)];
  bool worked = false;
  while (!channel.backlog.empty()) {
    const std::vector<uint8_t> frame = std::move(channel.backlog.front());
    const auto size = static_cast<uint32_t>(frame.size());
    FrameHead* place = channel.writer.Reserve(size);
    if (place == nullptr) {
      channel.backlog.front() = frame;
      break;
    }
    std::memcpy(static_cast<void*>(place + 1), frame.data() + sizeof(FrameHead),
                size - sizeof(FrameHead));
    channel.backlog.pop_front();
    channel.writer.Commit(place);
    worked = true;
  }
  if (worked) Notify(peer);
  return worked;
}

void Far::SendParts(OutChannel& channel, int peer, const Spans& payload, uint64_t length) {
  std::vector<uint8_t> bytes(length);
  Spans into;
  into.Add(reinterpret_cast<uintptr_t>(bytes.data()), length);
  CopySpans(into, payload, length);
  for (uint64_t done = 0; done < length;) {
    const auto part = static_cast<uint32_t>(std::min<uint64_t>(kPartBytes, length - done));
    FrameHead* head = Begin(channel, FrameSize(sizeof(PartFrame) + part), true);
    auto* frame = reinterpret_cast<PartFrame*>(head);
    frame->kind = FrameKind::kPart;
    frame->length = part;
    std::memcpy(frame + 1, bytes.data() + done, part);
    End(channel, peer, head);
    done += part;
  }
}

}  // namespace vabi::fabric
