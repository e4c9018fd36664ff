// SPDX-License-Identifier: BSD-2-Clause
// What this process asks of others.
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "shims/fabric/address.h"
#include "shims/fabric/far.h"
#include "shims/fabric/pull.h"
#include "shims/sys/sys.h"

namespace vabi::fabric {
namespace {

constexpr size_t kWindow = 256;          // requests of one queue pair that may be on their way
constexpr uint64_t kLookNs = 5000000;    // so often it is asked whether peers still live
constexpr uint64_t kDropNs = 100000000;  // longest wait for a peer that reads our memory
constexpr uint32_t kPsnMask = 0xffffff;

uint64_t stall_ns = 5000000000;  // a NIC that lives answers sooner

uint64_t StallNs(const Endpoint& endpoint) {
  const uint64_t answer = uint64_t{4096} << std::min<uint32_t>(endpoint.timeout, 31);
  return std::max(stall_ns, answer * (uint64_t{endpoint.retry_count} + 1));
}

}  // namespace

void SetStallLimit(uint64_t ns) { stall_ns = ns; }

// False: no room. `pending`: what has to be answered; null: a datagram.
bool Far::SendMessage(OutChannel& channel, const FarPlace& place, const Endpoint& sender,
                      const Message& message, RequestFrame shape, Pending* pending,
                      const uint8_t* group) {
  const bool carries = message.opcode != Opcode::kRead && message.opcode != Opcode::kFlush &&
                       !IsAtomic(message.opcode);
  const uint64_t carried = carries ? message.length : 0;
  shape.kind = FrameKind::kRequest;
  shape.payload = Payload::kInline;
  uint64_t behind = carried;
  if (carried > kInlinePayload && pending != nullptr) {
    const bool pulls = channel.writer.ring()->pull.load(std::memory_order_acquire) == 1 &&
                       pending->request.inline_data == nullptr;
    shape.payload = pulls ? Payload::kSpans : Payload::kAssembled;
    shape.spans = pulls ? message.payload->count : 0;
    behind = pulls ? sizeof(Span) * message.payload->count : 0;
  }
  if (message.has_grh) behind += kGrhBytes;
  shape.has_more = IsAtomic(message.opcode) || message.opcode == Opcode::kFlush ||
                   message.service == Service::kXrcInitiator ||
                   message.service == Service::kDcInitiator || group != nullptr;
  if (shape.has_more) behind += sizeof(RequestMore);
  if (shape.payload == Payload::kAssembled) {
    if (!channel.backlog.empty()) return false;
    SendParts(channel, place.peer, *message.payload, carried);
  }
  const uint32_t size = FrameSize(sizeof(RequestFrame) + behind);
  FrameHead* head = Begin(channel, size, shape.payload == Payload::kAssembled);
  if (head == nullptr) return false;
  auto* frame = reinterpret_cast<RequestFrame*>(head);
  shape.opcode = message.opcode;
  shape.service = message.service;
  shape.solicited = message.solicited;
  shape.has_grh = message.has_grh;
  shape.on_demand = carries && message.payload->on_demand;
  shape.any_psn = !sender.checks_psn;
  shape.sl = message.sl;
  shape.path_bits = message.path_bits;
  shape.port = place.port;
  shape.device = place.device;
  shape.source_device = sender.device;
  shape.source_qpn = message.source_qpn;
  shape.length = message.length;
  shape.remote_address = message.remote_address;
  shape.rkey = message.rkey;
  shape.immediate = message.immediate;
  shape.psn = message.psn;
  shape.packets = message.packets;
  shape.mtu = message.mtu;
  shape.qkey = message.qkey;
  shape.source_lid = message.source_lid;
  std::memcpy(reinterpret_cast<uint8_t*>(frame) + sizeof(FrameHead),
              reinterpret_cast<const uint8_t*>(&shape) + sizeof(FrameHead),
              sizeof(shape) - sizeof(FrameHead));
  uint8_t* at = reinterpret_cast<uint8_t*>(frame + 1);
  if (shape.has_more) {
    RequestMore more = {};
    more.compare_add = message.compare_add;
    more.swap = message.swap;
    more.compare_mask = message.compare_mask;
    more.swap_mask = message.swap_mask;
    more.flush_access = message.flush_access;
    more.flush_region = message.flush_region;
    more.xrc_srq = message.xrc_srq;
    more.dc_key = message.dc_key;
    if (group != nullptr) std::memcpy(more.group, group, sizeof(more.group));
    std::memcpy(at, &more, sizeof(more));
    at += sizeof(more);
  }
  if (message.has_grh) {
    std::memcpy(at, message.grh, kGrhBytes);
    at += kGrhBytes;
  }
  if (shape.payload == Payload::kSpans) {
    std::memcpy(at, message.payload->at, sizeof(Span) * shape.spans);
  } else if (shape.payload == Payload::kInline && carried != 0) {
    Spans into;
    into.Add(reinterpret_cast<uintptr_t>(at), carried);
    CopySpans(into, *message.payload, carried);
  }
  const bool in_ring = channel.backlog.empty();
  End(channel, place.peer, head);
  if (pending != nullptr) {
    pending->frame = in_ring ? head : nullptr;
    pending->end = channel.writer.written();
  }
  return true;
}

bool Far::Push(Flow& flow, Requester& requester, Pending& pending) {
  OutChannel* channel = Open(flow.place);
  if (channel == nullptr) return false;
  Endpoint& endpoint = requester.endpoint();
  Message message = {};
  requester.Fill(&message);
  message.psn = pending.psn;
  RequestFrame shape = {};
  shape.answered = true;
  shape.first = flow.sent == 0;
  shape.tag = pending.tag;
  shape.qpn = endpoint.dest_qpn;
  if (message.opcode == Opcode::kRead && message.length > kInlinePayload) {
    if (!channel->tested) {
      const Peer& peer = world.peer(flow.place.peer);
      channel->tested = true;
      channel->may_read = CanPull(static_cast<int>(flow.place.identity >> 32), peer.probe_address,
                                  peer.probe_value);
    }
    shape.may_read = channel->may_read;
  }
  if (!SendMessage(*channel, flow.place, endpoint, message, shape, &pending)) return false;
  if (flow.sent++ == 0) flow.moved_ns = sys::MonotonicNs();
  return true;
}

void Far::Enlist(Flow& flow) {
  if (flow.listed) return;
  flow.listed = true;
  flows.push_back(&flow);
}

void Far::Delist(Flow& flow) {
  if (!flow.listed) return;
  flow.listed = false;
  std::erase(flows, &flow);
}

void Far::Starve(Endpoint& endpoint) {
  if (std::find(starved.begin(), starved.end(), &endpoint) == starved.end()) {
    starved.push_back(&endpoint);
  }
}

void Far::OnReply(int peer, InChannel& channel, const ReplyFrame& frame, uint32_t size) {
  Endpoint* endpoint = FindEndpoint(frame.device, frame.qpn);
  if (endpoint == nullptr || endpoint->flow == nullptr) return;
  Flow& flow = *endpoint->flow;
  if (flow.place.peer != peer || flow.answered >= flow.sent ||
      flow.pending[flow.answered].tag != frame.tag) {
    return;  // of a request that nobody waits for any more
  }
  flow.moved_ns = sys::MonotonicNs();
  if (flow.draining) {
    if (++flow.answered == flow.sent) {
      flow.sent = flow.answered = 0;
      flow.draining = false;
    }
    return;
  }
  Reply reply;
  reply.kind = frame.answer;
  reply.nak = frame.nak;
  reply.rnr_timer = frame.rnr_timer;
  reply.original = frame.original;
  reply.data.on_demand = frame.on_demand;
  const uint64_t rest = size - sizeof(ReplyFrame);
  switch (frame.payload) {
    case Payload::kInline:
      reply.data.Add(reinterpret_cast<uintptr_t>(&frame + 1), std::min(rest, frame.length));
      break;
    case Payload::kAssembled:
      reply.data.Add(reinterpret_cast<uintptr_t>(channel.assembled.data()),
                     channel.assembled.size());
      break;
    case Payload::kSpans:
      if (frame.spans > kMaxSge || sizeof(Span) * frame.spans > rest) return;
      reply.data.count = frame.spans;
      std::memcpy(reply.data.at, &frame + 1, sizeof(Span) * frame.spans);
      reply.data.process = static_cast<int>(channel.identity >> 32);
      break;
  }
  Settle(flow, reply, frame.unreached);
}

bool Far::Settle(Flow& flow, const Reply& reply, bool unreached) {
  Endpoint& endpoint = *flow.endpoint;
  Completion completion;
  Requester requester(endpoint, flow.pending.front().request, &completion);
  requester.Measure();
  if (endpoint.service == Service::kUc) return Finish(flow, completion);
  uint64_t retry_at = 0;
  const Tries tries = {&retry_at, &flow.rnr_tries, &flow.silent_tries};
  Outcome outcome = requester.Conclude(reply, tries);
  if (outcome == Outcome::kDone && unreached && completion.status == Status::kSuccess) {
    outcome = requester.FailNow(endpoint.wording->local_target);
  }
  if (outcome == Outcome::kDone) return Finish(flow, completion);
  flow.retry_at_ns = retry_at == 0 ? Flow::kNever : retry_at;
  if (flow.sent > 1) {
    flow.answered = 1;
    flow.draining = true;
  } else {
    flow.sent = flow.answered = 0;
  }
  return true;
}

bool Far::Finish(Flow& flow, const Completion& completion) {
  Endpoint& endpoint = *flow.endpoint;
  if (flow.pending.front().reads) --flow.reads;
  flow.pending.pop_front();
  if (flow.sent != 0) --flow.sent;
  flow.rnr_tries = flow.silent_tries = 0;
  flow.retry_at_ns = 0;
  if (!flow.resume) resumed.push_back(&endpoint);
  flow.resume = true;
  if (flow.pending.empty()) Delist(flow);
  const bool failed = completion.status != Status::kSuccess;
  if (failed) {
    // Nothing of what was sent behind it counts: the driver flushes it.
    DropSent(endpoint);
  }
  endpoint.Answered(completion);  // may do anything to the queue pair
  return !failed;
}

// What was sent is lost. `give_up`: and the time for trying again has passed, too.
void Far::SilenceAll(Flow& flow, bool give_up) {
  Withdraw(flow);
  flow.draining = false;
  flow.answered = 0;
  flow.sent = std::min<size_t>(flow.sent, 1);
  // Answers that come late are to none of these.
  for (Pending& pending : flow.pending) pending.tag = flow.next_tag++;
  if (give_up && flow.endpoint->timeout != 0 && flow.endpoint->retry_count != Endpoint::kForever) {
    flow.silent_tries = flow.endpoint->retry_count + 1u;
  }
  Settle(flow, Reply(), false);
}

// Sends what was not sent yet, or has to be sent again.
void Far::PushUnsent(Flow& flow) {
  Endpoint& endpoint = *flow.endpoint;
  FarPlace place;
  if (!FindFar(endpoint, endpoint.address, endpoint.dest_qpn, &place)) {
    if (flow.sent == 0) SilenceAll(flow, false);
    return;
  }
  if (flow.sent == 0) flow.place = place;
  while (flow.sent < flow.pending.size()) {
    Pending& pending = flow.pending[flow.sent];
    Completion completion;
    Requester again(endpoint, pending.request, &completion);
    if (const SgeFault fault = again.Prepare(); fault != SgeFault::kNone) {
      if (flow.sent != 0) return;  // it will be the first one
      again.FailNow(again.LocalStatus(fault));
      Finish(flow, completion);
      return;
    }
    if (!Push(flow, again, pending)) return;
  }
}

// A dead process may have left its ring full: what waits for room there would wait for ever.
bool Far::IsGone(int peer, uint64_t identity) {
  if (world.peer(peer).serves.load() == 0) return true;
  if (world.Alive(peer, identity)) return false;
  dead[static_cast<size_t>(peer)] = identity;
  return true;
}

// True: those who wait for room in a ring need not any more.
bool Far::BuryStarved() {
  bool found = false;
  for (int peer = 0; peer < kMaxPeers; ++peer) {
    const uint64_t identity = out[static_cast<size_t>(peer)].identity;
    if (identity == 0 || identity == dead[static_cast<size_t>(peer)]) continue;
    found |= IsGone(peer, identity);
  }
  return found;
}

bool Far::IsStuck(Flow& flow) {
  const OutChannel& channel = out[static_cast<size_t>(flow.place.peer)];
  const uint64_t now = sys::MonotonicNs();
  const Ring* ring = channel.writer.ring();
  const uint64_t tail = ring == nullptr ? 0 : ring->tail.load(std::memory_order_relaxed);
  if (flow.stuck_ns == 0 || flow.stuck_tail != tail) {
    flow.stuck_ns = now;
    flow.stuck_tail = tail;
  }
  return now - flow.stuck_ns > StallNs(*flow.endpoint);
}

// True: one of those who wait for room has waited for as long as it may.
bool Far::HasStuck() const {
  const uint64_t now = sys::MonotonicNs();
  return std::any_of(starved.begin(), starved.end(), [&](const Endpoint* endpoint) {
    const Flow* flow = endpoint->flow;
    return flow != nullptr && flow->stuck_ns != 0 && now > flow->stuck_ns &&
           now - flow->stuck_ns > StallNs(*endpoint);
  });
}

bool Far::Tend() {
  bool worked = false;
  const uint64_t now = sys::MonotonicNs();
  const bool look = now - looked_ns_ > kLookNs;
  if (look) looked_ns_ = now;
  if (look && !starved.empty()) worked |= BuryStarved() || HasStuck();
  const std::vector<Flow*> copy = flows;
  for (Flow* flow : copy) {
    if (std::find(flows.begin(), flows.end(), flow) == flows.end()) continue;
    if (flow->draining || flow->sent != 0) {
      const bool stalled = now - flow->moved_ns > StallNs(*flow->endpoint) && now > flow->moved_ns;
      const int peer = flow->place.peer;
      const bool gone = look && IsGone(peer, flow->place.identity);
      if (stalled || gone) {
        // It may have answered before it went.
        Receive(peer);
        if (std::find(flows.begin(), flows.end(), flow) == flows.end()) continue;
        if (flow->draining || flow->sent != 0) SilenceAll(*flow, stalled);
        worked = true;
      }
      continue;
    }
    if (flow->retry_at_ns == Flow::kNever) {
      FarPlace place;
      const Endpoint& endpoint = *flow->endpoint;
      if (look && FindFar(endpoint, endpoint.address, endpoint.dest_qpn, &place) &&
          place.identity != flow->place.identity) {
        flow->retry_at_ns = 0;
      }
      continue;
    }
    if (flow->retry_at_ns != 0 && Now() < flow->retry_at_ns) continue;
    PushUnsent(*flow);
    worked = true;
  }
  return worked;
}

void Far::ResumeAll() {
  resumed.insert(resumed.end(), starved.begin(), starved.end());
  starved.clear();
  // As many as there are now: a driver that posts without end must not keep us here.
  for (size_t left = resumed.size(); left > 0 && !resumed.empty(); --left) {
    Endpoint* endpoint = resumed.front();
    resumed.erase(resumed.begin());
    if (endpoint->flow != nullptr) endpoint->flow->resume = false;
    endpoint->Resume();
  }
}

void Far::Withdraw(Flow& flow) {
  OutChannel& channel = out[static_cast<size_t>(std::max(flow.place.peer, 0))];
  if (!world.joined() || channel.identity != flow.place.identity) return;
  const uint64_t begin = sys::MonotonicNs();
  for (size_t i = 0; i < flow.sent && i < flow.pending.size(); ++i) {
    Pending& pending = flow.pending[i];
    if (pending.frame == nullptr) continue;
    uint32_t ready = FrameHead::kReady;
    while (!channel.writer.Done(pending.end) &&
           !pending.frame->shared_state().compare_exchange_strong(ready, FrameHead::kCancelled) &&
           ready == FrameHead::kTaken && sys::MonotonicNs() - begin < kDropNs &&
           world.Alive(flow.place.peer, flow.place.identity)) {
      sched_yield();
      ready = FrameHead::kReady;
    }
    pending.frame = nullptr;
  }
}

bool IsUnderWay(const Endpoint& requester) {
  return requester.flow != nullptr && !requester.flow->pending.empty();
}

Outcome SendFar(Requester& requester, const FarPlace& place) {
  Far& far = Far::Get();
  Endpoint& endpoint = requester.endpoint();
  if (endpoint.flow == nullptr) endpoint.flow = new Flow(endpoint);
  Flow& flow = *endpoint.flow;
  const SendRequest& request = requester.request();
  const bool reads = request.opcode == Opcode::kRead || IsAtomic(request.opcode);
  if (!flow.pending.empty()) {
    const bool elsewhere = flow.place.peer != place.peer || flow.place.identity != place.identity;
    if (elsewhere || flow.draining || flow.sent != flow.pending.size() ||
        flow.pending.size() >= kWindow || (request.fence && flow.reads != 0) ||
        (reads && flow.reads >= std::max<uint32_t>(endpoint.max_rd_atomic, 1))) {
      return requester.Wait();
    }
  }
  flow.place = place;
  Pending& pending = flow.pending.emplace_back(request);
  Message message;
  requester.Fill(&message);
  pending.tag = flow.next_tag++;
  pending.psn = message.psn;
  pending.packets = message.packets;
  pending.reads = reads;
  if (!far.Push(flow, requester, pending)) {
    flow.pending.pop_back();
    if (!flow.pending.empty()) return requester.Wait();
    const bool lost = endpoint.service == Service::kUc;
    const bool for_ever =
        !lost && (endpoint.timeout == 0 || endpoint.retry_count == Endpoint::kForever);
    if (for_ever || !far.IsStuck(flow)) {
      far.Starve(endpoint);
      return requester.Wait();
    }
    // As of a process that took the request up and then stood still.
    flow.stuck_ns = 0;
    endpoint.sq_psn = endpoint.sent_psn = (message.psn + message.packets) & kPsnMask;
    return lost ? Outcome::kDone : requester.FailNow(Status::kRetryExceeded);
  }
  flow.stuck_ns = 0;
  if (reads) ++flow.reads;
  endpoint.sq_psn = endpoint.sent_psn = (pending.psn + pending.packets) & kPsnMask;
  far.Enlist(flow);
  return Outcome::kSent;
}

bool DatagramFar(const Endpoint& sender, const Message& message, const FarPlace& place) {
  Far& far = Far::Get();
  OutChannel* channel = far.Open(place);
  if (channel == nullptr || message.length > kLargestDatagram) return true;  // lost
  RequestFrame shape = {};
  shape.qpn = place.qpn;
  return far.SendMessage(*channel, place, sender, message, shape, nullptr);
}

void MulticastFar(const Endpoint& sender, const Message& message, const uint8_t gid[16]) {
  Far& far = Far::Get();
  if (!far.world.joined() || message.length > kLargestDatagram) return;
  uint32_t members = far.world.MembersOf(gid) & ~(1u << far.world.self());
  for (; members != 0; members &= members - 1) {
    FarPlace place;
    place.peer = __builtin_ctz(members);
    place.identity = far.world.peer(place.peer).identity.load();
    OutChannel* channel = far.Open(place);
    if (channel == nullptr) continue;
    RequestFrame shape = {};
    shape.multicast = true;
    far.SendMessage(*channel, place, sender, message, shape, nullptr, gid);
  }
}

void DropSent(Endpoint& requester) {
  Flow* flow = requester.flow;
  if (flow == nullptr || flow->pending.empty()) return;
  Far& far = Far::Get();
  far.Withdraw(*flow);
  far.Delist(*flow);
  flow->pending.clear();
  flow->sent = flow->answered = 0;
  flow->draining = false;
  flow->reads = flow->rnr_tries = flow->silent_tries = 0;
  flow->retry_at_ns = 0;
}

}  // namespace vabi::fabric
