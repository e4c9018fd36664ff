// SPDX-License-Identifier: BSD-2-Clause
// What other processes ask for, and where their answers go.
#include <algorithm>
#include <cstring>

#include "shims/fabric/address.h"
#include "shims/fabric/far.h"
#include "shims/fabric/pull.h"

namespace vabi::fabric {
namespace {

constexpr int kFramesATurn = 64;  // of one peer
constexpr uint64_t kLargestMessage = 1ULL << 31;

}  // namespace

bool Far::Receive(int peer) {
  InChannel& channel = in[static_cast<size_t>(peer)];
  Ring& ring = world.ring(peer, world.self());
  const uint64_t writer = ring.writer.load(std::memory_order_acquire);
  if (writer == 0 || ring.reader.load() != world.identity()) return false;
  if (channel.identity != writer) {
    channel = InChannel();
    channel.identity = writer;
    channel.reader = RingReader(&ring);
    const Peer& other = world.peer(peer);
    const bool may =
        other.identity.load() == writer &&
        CanPull(static_cast<int>(writer >> 32), other.probe_address, other.probe_value);
    ring.pull.store(may ? 1 : 2, std::memory_order_release);
  }
  if (channel.broken) return false;
  for (int i = 0; i < kFramesATurn; ++i) {
    FrameHead* head = channel.reader.Next(&channel.broken);
    if (channel.broken) channel.assembled.clear();
    if (head == nullptr) return i != 0;
    const uint32_t size = channel.reader.size();
    const FrameKind kind = reinterpret_cast<const PartFrame*>(head)->kind;
    if (kind == FrameKind::kRequest && size >= sizeof(RequestFrame)) {
      Serve(peer, channel, *reinterpret_cast<const RequestFrame*>(head), size, head);
      channel.assembled.clear();
    } else if (kind == FrameKind::kReply && size >= sizeof(ReplyFrame)) {
      OnReply(peer, channel, *reinterpret_cast<const ReplyFrame*>(head), size);
      channel.assembled.clear();
    } else if (kind == FrameKind::kPart && size >= sizeof(PartFrame)) {
      const auto* part = reinterpret_cast<const PartFrame*>(head);
      const uint32_t length = std::min<uint32_t>(part->length, size - sizeof(PartFrame));
      const auto* bytes = reinterpret_cast<const uint8_t*>(part + 1);
      if (channel.assembled.size() + length <= kLargestMessage) {
        channel.assembled.insert(channel.assembled.end(), bytes, bytes + length);
      }
    } else {
      channel.broken = true;
      return true;
    }
    channel.reader.Consume();
  }
  world.peer(world.self()).inbox.fetch_or(1u << peer);  // there may be more
  return true;
}

void Far::Serve(int peer, InChannel& channel, const RequestFrame& frame, uint32_t size,
                FrameHead* head) {
  const auto* at = reinterpret_cast<const uint8_t*>(&frame + 1);
  uint64_t rest = size - sizeof(RequestFrame);
  Message message = {};
  RequestMore more = {};
  if (frame.has_more) {
    if (rest < sizeof(more)) return;
    std::memcpy(&more, at, sizeof(more));
    at += sizeof(more);
    rest -= sizeof(more);
  }
  if (frame.has_grh) {
    if (rest < kGrhBytes) return;
    std::memcpy(message.grh, at, kGrhBytes);
    at += kGrhBytes;
    rest -= kGrhBytes;
  }
  Spans payload;
  payload.on_demand = frame.on_demand;
  switch (frame.payload) {
    case Payload::kInline:
      payload.Add(reinterpret_cast<uintptr_t>(at), std::min(rest, frame.length));
      break;
    case Payload::kAssembled:
      payload.Add(reinterpret_cast<uintptr_t>(channel.assembled.data()), channel.assembled.size());
      break;
    case Payload::kSpans:
      if (frame.spans > kMaxSge || sizeof(Span) * frame.spans > rest) return;
      payload.count = frame.spans;
      std::memcpy(payload.at, at, sizeof(Span) * frame.spans);
      payload.process = static_cast<int>(channel.identity >> 32);
      payload.lost = world.peer(peer).identity.load() != channel.identity;
      break;
  }
  message.opcode = frame.opcode;
  message.service = frame.service;
  message.solicited = frame.solicited;
  message.length = frame.length;
  message.payload = &payload;
  message.remote_address = frame.remote_address;
  message.rkey = frame.rkey;
  message.immediate = frame.immediate;
  message.compare_add = more.compare_add;
  message.swap = more.swap;
  message.compare_mask = more.compare_mask;
  message.swap_mask = more.swap_mask;
  message.flush_access = more.flush_access;
  message.flush_region = more.flush_region;
  message.xrc_srq = more.xrc_srq;
  message.dc_key = more.dc_key;
  message.psn = frame.psn;
  message.packets = frame.packets;
  message.mtu = std::max(frame.mtu, 1u);
  message.sender = nullptr;
  message.source_qpn = frame.source_qpn;
  message.qkey = frame.qkey;
  message.source_lid = frame.source_lid;
  message.sl = frame.sl;
  message.path_bits = frame.path_bits;
  message.has_grh = frame.has_grh;
  if (payload.lost) return;
  if (frame.multicast) {
    VisitGroup(
        more.group,
        [](Endpoint* member, void* argument) {
          Reply ignored;
          Deliver(*member, *static_cast<const Message*>(argument), &ignored);
        },
        &message);
    return;
  }
  Reply reply;
  Endpoint* endpoint = FindEndpoint(frame.device, frame.qpn);
  const bool there = endpoint != nullptr && endpoint->port == frame.port;
  if (there && !frame.answered) {
    Deliver(*endpoint, message, &reply);
    return;
  }
  if (there && frame.service == Service::kDcInitiator) {
    // From anybody, and one at a time: there is nothing behind a request that was not taken.
    if (frame.any_psn) message.psn = endpoint->rq_psn;
    Deliver(*endpoint, message, &reply);
  } else if (there && endpoint->dest_qpn == frame.source_qpn) {
    if (frame.first) endpoint->skips = false;
    if (!endpoint->skips) {
      if (frame.any_psn) message.psn = endpoint->rq_psn;
      Deliver(*endpoint, message, &reply);
      endpoint->skips = reply.kind != Reply::Kind::kAck && frame.service != Service::kUc;
    }
  }
  if (payload.lost) return;
  uint32_t taken = FrameHead::kTaken;
  head->shared_state().compare_exchange_strong(taken, FrameHead::kPulled);
  Answer(peer, frame, reply);
}

void Far::Answer(int peer, const RequestFrame& request, const Reply& reply) {
  FarPlace place;
  place.peer = peer;
  place.identity = in[static_cast<size_t>(peer)].identity;
  if (world.peer(peer).identity.load() != place.identity) return;  // it is gone
  OutChannel* channel = Open(place);
  if (channel == nullptr) return;
  const bool reads = request.opcode == Opcode::kRead && reply.kind == Reply::Kind::kAck;
  const uint64_t length = reads ? request.length : 0;
  Payload payload = Payload::kInline;
  uint64_t behind = length;
  if (length > kInlinePayload) {
    payload = request.may_read ? Payload::kSpans : Payload::kAssembled;
    behind = request.may_read ? sizeof(Span) * reply.data.count : 0;
  }
  if (payload == Payload::kAssembled) SendParts(*channel, peer, reply.data, length);
  FrameHead* head = Begin(*channel, FrameSize(sizeof(ReplyFrame) + behind), true);
  auto* frame = reinterpret_cast<ReplyFrame*>(head);
  frame->kind = FrameKind::kReply;
  frame->payload = payload;
  frame->answer = reply.kind;
  frame->nak = reply.nak;
  frame->rnr_timer = reply.rnr_timer;
  frame->on_demand = reply.data.on_demand;
  frame->unreached = false;
  frame->tag = request.tag;
  frame->device = request.source_device;
  frame->qpn = request.source_qpn;
  frame->spans = payload == Payload::kSpans ? reply.data.count : 0;
  frame->original = reply.original;
  frame->length = length;
  if (payload == Payload::kSpans) {
    std::memcpy(frame + 1, reply.data.at, sizeof(Span) * reply.data.count);
  } else if (payload == Payload::kInline && length != 0) {
    Spans into;
    into.Add(reinterpret_cast<uintptr_t>(frame + 1), length);
    frame->unreached = !CopySpans(into, reply.data, length);
  }
  End(*channel, peer, head);
}

}  // namespace vabi::fabric
