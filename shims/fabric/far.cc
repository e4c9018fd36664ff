// SPDX-License-Identifier: BSD-2-Clause
// Coming into the world, leaving it, and the NIC's turns.
#include "shims/fabric/far.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>

#include "shims/fabric/address.h"
#include "shims/sys/sys.h"

namespace vabi::fabric {
namespace {

std::atomic<bool> ever_joined{false};

}  // namespace

Far& Far::Get() {
  static Far* const far = new Far;  // never destroyed, see registry.h
  return *far;
}

bool Far::Join() {
  std::lock_guard guard(join_mutex);
  if (world.joined()) return true;
  if (tried || image == nullptr || image->run_dir[0] == '\0') return false;
  tried = true;
  if (!world.Join(image->run_dir, *image, &why)) return false;
  joiner = sys::GetPid();
  SetWorldPorts(*image);
  HandleForks();
  static bool handled = false;
  if (!handled) {
    handled = true;
    pthread_atfork(nullptr, nullptr, [] { Get().ForgetInChild(); });
  }
  SleepOn(&world.peer(world.self()).wake);
  return true;
}

void Far::Leave() {
  if (!world.joined()) return;
  SleepOn(nullptr);
  world.Leave();
  for (OutChannel& channel : out) channel = OutChannel();
  for (InChannel& channel : in) channel = InChannel();
  for (Range& range : ranges) range = {};
}

// The parent goes on; what was on its way is the parent's.
void Far::ForgetInChild() {
  world.ForgetInChild();
  for (Flow* flow : flows) {
    flow->pending.clear();
    flow->sent = flow->answered = 0;
    flow->listed = flow->draining = false;
  }
  flows.clear();
  starved.clear();
  resumed.clear();
  attended.clear();
  for (OutChannel& channel : out) channel = OutChannel();
  for (InChannel& channel : in) channel = InChannel();
  for (Range& range : ranges) range = {};
  dead = {};
  tried = false;
}

bool Far::Progress() {
  if (!world.joined()) return false;
  bool worked = false;
  Peer& me = world.peer(world.self());
  if (me.inbox.load(std::memory_order_relaxed) != 0) {
    for (uint32_t mail = me.inbox.exchange(0); mail != 0; mail &= mail - 1) {
      worked |= Receive(__builtin_ctz(mail));
    }
  }
  for (int peer = 0; peer < kMaxPeers; ++peer) {
    OutChannel& channel = out[static_cast<size_t>(peer)];
    if (channel.backlog.empty()) continue;
    worked |= Flush(peer);
    if (world.peer(peer).identity.load() != channel.identity) channel = OutChannel();
  }
  if (!flows.empty() || !starved.empty()) worked |= Tend();
  if (!resumed.empty() || (worked && !starved.empty())) ResumeAll();
  return worked;
}

// At the end of the process; what runs then may hold the lock for ever.
__attribute__((destructor)) static void LeaveAtExit() {
  if (!ever_joined.load()) return;
  Far& far = Far::Get();
  if (!far.world.joined() || far.joiner != sys::GetPid()) return;
  constexpr int kTries = 1000;
  bool held = false;
  for (int i = 0; i < kTries && !held; ++i) {
    held = Lock().try_lock();
    if (!held) sched_yield();
  }
  far.Leave();
  if (held) Lock().unlock();
}

void UseWorld(const WorldImage* image) {
  Far& far = Far::Get();
  std::lock_guard guard(Lock());
  far.Leave();
  std::lock_guard joining(far.join_mutex);
  far.image = image;
  far.why = nullptr;
  far.tried = false;
}

uint32_t ReserveQpn(uint32_t device) {
  Far& far = Far::Get();
  if (device >= static_cast<uint32_t>(kMaxDevices) || !far.Join()) return 0;
  ever_joined.store(true);
  std::lock_guard guard(far.join_mutex);
  Far::Range& range = far.ranges[device];
  if (range.next == range.end) {
    range.next = far.world.TakeBlock(device);
    if (range.next == 0) {
      far.why = "the world has no more queue pair numbers for this device";
      range.end = 0;
      return 0;
    }
    range.end = (range.next / kQpnsOfBlock + 1) * kQpnsOfBlock;
  }
  return range.next++;
}

const char* WhyAlone() { return Far::Get().why; }

void Attend(const Endpoint& endpoint) {
  Far& far = Far::Get();
  {
    std::lock_guard guard(Lock());
    if (!far.world.joined()) return;
    const EndpointState state = endpoint.state;
    if (state != EndpointState::kRtr && state != EndpointState::kRts) return;
    if (std::find(far.attended.begin(), far.attended.end(), &endpoint) != far.attended.end()) {
      return;
    }
    const bool connected = endpoint.service == Service::kRc || endpoint.service == Service::kUc ||
                           endpoint.service == Service::kXrcInitiator ||
                           endpoint.service == Service::kXrcTarget;
    // Whom it speaks to is here.
    if (connected && Resolve(endpoint, endpoint.address, endpoint.dest_qpn) != nullptr) return;
    far.attended.push_back(&endpoint);
  }
  std::lock_guard guard(far.register_mutex);
  if (far.registered) return;
  far.registered = true;
  AddPollable(&far);
  std::lock_guard lock(Lock());
  if (far.world.joined()) far.world.peer(far.world.self()).serves.store(1);
}

void Unattend() {
  Far& far = Far::Get();
  std::lock_guard guard(far.register_mutex);
  if (!far.registered) return;
  {
    std::lock_guard lock(Lock());
    if (!far.attended.empty()) return;
    if (far.world.joined()) far.world.peer(far.world.self()).serves.store(0);
  }
  far.registered = false;
  RemovePollable(&far);
}

bool FindFar(const Endpoint& from, const AddressVector& address, uint32_t qpn, FarPlace* place) {
  const Far& far = Far::Get();
  const SharedWorld& world = far.world;
  if (!world.joined()) return false;
  constexpr int kRoom = 2 * kMaxDevices;
  PortName ports[kRoom];
  const int count = FindWorldPorts(from, address, ports, kRoom);
  for (int i = 0; i < count; ++i) {
    const int owner = world.OwnerOf(ports[i].device, qpn);
    if (owner < 0 || owner == world.self()) continue;
    place->identity = world.peer(owner).identity.load(std::memory_order_acquire);
    // In a process that serves nobody, no queue pair is in a state to receive.
    if (place->identity == 0 || world.peer(owner).serves.load() == 0) continue;
    if (place->identity == far.dead[static_cast<size_t>(owner)]) continue;
    place->peer = owner;
    place->device = ports[i].device;
    place->port = ports[i].port;
    place->qpn = qpn;
    return true;
  }
  return false;
}

void AnnounceGroup(const uint8_t gid[16], bool member) {
  Far& far = Far::Get();
  if (far.world.joined()) far.world.Announce(gid, member);
}

void ForgetEndpoint(Endpoint& endpoint) {
  Far& far = Far::Get();
  DropSent(endpoint);
  delete endpoint.flow;
  endpoint.flow = nullptr;
  std::erase(far.starved, &endpoint);
  std::erase(far.resumed, &endpoint);
  std::erase(far.attended, &endpoint);
}

void ForgetFar() {
  Far& far = Far::Get();
  for (Flow* flow : far.flows) {
    flow->pending.clear();
    flow->sent = flow->answered = flow->reads = 0;
    flow->listed = flow->draining = flow->resume = false;
  }
  far.flows.clear();
  far.starved.clear();
  far.resumed.clear();
  far.attended.clear();
}

}  // namespace vabi::fabric
