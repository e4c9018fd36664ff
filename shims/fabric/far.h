// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_FAR_H_
#define VABI_SHIMS_FABRIC_FAR_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "shims/fabric/flow.h"
#include "shims/fabric/frame.h"
#include "shims/fabric/nic.h"
#include "shims/fabric/remote.h"
#include "shims/fabric/requester.h"
#include "shims/fabric/shared_world.h"

// This process among those of its world: what remote.h offers. Everything with Lock() held, but for
// joining. far.cc: coming and going; channel.cc: frames; far_request.cc and far_serve.cc: the two
// sides of a request.

namespace vabi::fabric {

struct OutChannel {
  uint64_t identity = 0;  // of the reader
  RingWriter writer;
  // Whole frames that found no room, in order.
  std::deque<std::vector<uint8_t>> backlog;
  bool tested = false, may_read = false;  // can this process read that one's memory
};

struct InChannel {
  uint64_t identity = 0;  // of the writer
  RingReader reader;
  std::vector<uint8_t> assembled;
  bool broken = false;
};

class Far final : public Pollable {
 public:
  static Far& Get();

  bool Progress() override;
  bool NeedsPolling() const override {
    if (!flows.empty() || !starved.empty()) return true;
    return std::any_of(out.begin(), out.end(),
                       [](const OutChannel& channel) { return !channel.backlog.empty(); });
  }

  // Takes part in the world, if there is one. `why`: see WhyAlone.
  bool Join();
  void Leave();
  void ForgetInChild();

  OutChannel* Open(const FarPlace& place);
  // A frame of `size` bytes to fill, in the ring or, if it may, in the backlog; null: no room.
  FrameHead* Begin(OutChannel& channel, uint32_t size, bool may_queue);
  void End(OutChannel& channel, int peer, FrameHead* frame);
  bool Flush(int peer);
  void Notify(int peer);
  // Puts the payload of a frame that does not carry it in front of it.
  void SendParts(OutChannel& channel, int peer, const Spans& payload, uint64_t length);

  bool Push(Flow& flow, Requester& requester, Pending& pending);
  bool SendMessage(OutChannel& channel, const FarPlace& place, const Endpoint& sender,
                   const Message& message, RequestFrame shape, Pending* pending,
                   const uint8_t* group = nullptr);
  void Enlist(Flow& flow);
  void Delist(Flow& flow);
  void Starve(Endpoint& endpoint);
  // There is no room for the flow's first request: has its reader made none for as long as one may
  // stall?
  bool IsStuck(Flow& flow);
  // Takes back what the other process has not taken yet; waits for what it has.
  void Withdraw(Flow& flow);

  SharedWorld world;
  const WorldImage* image = nullptr;
  const char* why = nullptr;
  std::mutex join_mutex;      // guards the places and numbers, and `why`
  std::mutex register_mutex;  // guards `registered`
  bool tried = false;
  struct Range {
    uint32_t next, end;
  } ranges[kMaxDevices] = {};
  bool registered = false;  // with the NIC
  int joiner = 0;           // process that joined
  std::array<OutChannel, kMaxPeers> out;
  std::array<InChannel, kMaxPeers> in;
  // Who was found dead at each place: it is still entered there, but nobody empties its ring.
  std::array<uint64_t, kMaxPeers> dead = {};
  std::vector<Flow*> flows;        // with pending requests
  std::vector<Endpoint*> starved;  // no room in a ring, and nothing on its way
  std::vector<Endpoint*> resumed;  // may go on
  std::vector<const Endpoint*> attended;

 private:
  bool Receive(int peer);
  void Serve(int peer, InChannel& channel, const RequestFrame& frame, uint32_t size,
             FrameHead* head);
  void Answer(int peer, const RequestFrame& request, const Reply& reply);
  void OnReply(int peer, InChannel& channel, const ReplyFrame& frame, uint32_t size);
  // The oldest one was answered so; false: the flow may be gone.
  bool Settle(Flow& flow, const Reply& reply, bool unreached);
  bool Finish(Flow& flow, const Completion& completion);
  void SilenceAll(Flow& flow, bool give_up);
  bool Tend();
  bool IsGone(int peer, uint64_t identity);
  bool BuryStarved();
  bool HasStuck() const;
  void PushUnsent(Flow& flow);
  void ResumeAll();

  uint64_t looked_ns_ = 0;
};

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_FAR_H_
