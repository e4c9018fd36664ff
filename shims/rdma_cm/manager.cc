// SPDX-License-Identifier: BSD-2-Clause
#include "shims/rdma_cm/manager.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "shims/sys/later.h"
#include "shims/sys/sys.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/script.h"

namespace vabi::rdma_cm {
namespace {

// include/rdma/ib_cm.h: IB_CM_*_PRIVATE_DATA_SIZE
constexpr size_t kRequestData = 92, kReplyData = 196, kRejectData = 148, kSidrRequestData = 216,
                 kSidrReplyData = 136;
constexpr size_t kHeader = 36;                 // struct cma_hdr in front of what programs give
constexpr uint8_t kPacketLife = 16;            // CMA_IBOE_PACKET_LIFETIME
constexpr uint32_t kDefaultQkey = 0x01234567;  // RDMA_UDP_QKEY
constexpr uint8_t kMtu1024 = 3;                // iboe_get_mtu(1500)
constexpr uint8_t kHopLimit = 64;              // ip4_dst_hoplimit
constexpr uint32_t kUnsupportedService = 8, kConsumerDefined = 28;  // enum ib_cm_rej_reason
constexpr uint32_t kRejectTimeout = 4;
constexpr uint32_t kSidrUnsupported = 1, kSidrReject = 2;  // enum ib_cm_sidr_status
constexpr uint32_t kMulticastQpn = 0xffffff;
// How long a connection stays in IB_CM_TIMEWAIT: 4.096 us << timeout, and the same for the peer.
constexpr uint64_t kTimewaitNs = 1073741824;

uint8_t Smaller(uint8_t value, uint8_t most) { return value < most ? value : most; }

}  // namespace

namespace {

std::atomic<bool> in_use{false};

}  // namespace

bool Manager::InUse() { return in_use.load(); }

Manager& Manager::Get() {
  in_use.store(true);
  static auto* const manager = new Manager();  // never destroyed: its thread outlives destructors
  return *manager;
}

std::unique_lock<std::mutex> Manager::Lock() {
  std::unique_lock lock(mutex_);
  Enter();
  return lock;
}

void Manager::Enter() {
  if (process_ == sys::GetPid()) return;
  process_ = sys::GetPid();
  ids_.clear();
  unnumbered_.clear();
  members_.clear();
  loop_.clear();
  wire_.Forget();
}

// xa_alloc, idr_alloc: the lowest one.
uint32_t Manager::FreeNumber() const {
  uint32_t number = 0;
  for (const auto& [used, id] : ids_) {
    if (used != number) break;
    ++number;
  }
  return number;
}

IdPointer Manager::Create(CmFile* file, const World& world) {
  world_ = &world;
  wire_.Start(world.image().run_dir, &FromWire);
  WhenUnplugged(&DeviceGone);
  auto id = std::make_shared<Identifier>();
  id->file = file;
  id->number = FreeNumber();
  id->key = next_key_++;
  id->psn = next_psn_ += 0x1000;  // cma.c has a random one
  ids_[id->number] = id;
  return id;
}

IdPointer Manager::Find(uint32_t number) const {
  const auto found = ids_.find(number);
  return found == ids_.end() ? nullptr : found->second;
}

IdPointer Manager::FindKey(uint32_t key) const {
  for (const auto& [number, id] : ids_) {
    if (id->key == key) return id;
  }
  for (const auto& id : unnumbered_) {
    if (id->key == key) return id;
  }
  return nullptr;
}

void Manager::NumberLate(const IdPointer& id) {
  if (std::erase(unnumbered_, id) == 0) return;
  id->number = FreeNumber();
  ids_[id->number] = id;
}

// ib_destroy_cm_id, _destroy_id, ucma_cleanup_ctx_events
uint32_t Manager::Destroy(const IdPointer& id) {
  switch (id->cm) {
    case CmState::kRequestSent: {
      Message reject = Begin(id, MessageKind::kReject);
      reject.status = kRejectTimeout;
      Send(id->peer_process, reject);
      break;
    }
    case CmState::kRequestReceived:
    case CmState::kReplySent:
    case CmState::kReplyReceived: {
      Message reject = Begin(id, MessageKind::kReject);
      reject.status = kConsumerDefined;
      Send(id->peer_process, reject);
      break;
    }
    case CmState::kEstablished:
      SendDisconnect(id, false);
      break;
    case CmState::kDisconnectReceived:
      SendDisconnect(id, true);
      break;
    case CmState::kSidrRequestReceived: {
      Message reply = Begin(id, MessageKind::kSidrReply);
      reply.status = kSidrReject;
      Send(id->peer_process, reply);
      break;
    }
    default:
      break;
  }
  id->cm = CmState::kNone;
  id->state = IdState::kIdle;
  if (id->file != nullptr) {
    auto& events = id->file->events();
    std::vector<IdPointer> undelivered;
    std::erase_if(events, [&](const Event& event) {
      if (event.about != id) return false;
      if (event.request != nullptr) undelivered.push_back(event.request);
      return true;
    });
    id->file->Signal();
    for (const IdPointer& request : undelivered) Destroy(request);
  }
  std::erase_if(members_, [&](const auto& entry) { return entry.second.id.lock() == id; });
  std::erase(unnumbered_, id);
  const auto found = ids_.find(id->number);
  if (found != ids_.end() && found->second == id) ids_.erase(found);
  const bool held = id->bound_port != 0;
  id->bound_port = 0;
  if (held) Publish();
  Watch();
  return id->events_reported;
}

void Manager::DestroyAll(CmFile* file) {
  std::vector<IdPointer> all;
  for (const auto& [number, id] : ids_) {
    if (id->file == file) all.push_back(id);
  }
  for (const IdPointer& id : all) Destroy(id);
}

void Manager::DestroyEverything() {
  std::vector<IdPointer> all = unnumbered_;
  for (const auto& [number, id] : ids_) all.push_back(id);
  for (const IdPointer& id : all) Destroy(id);
}

// Ports

std::vector<PortHolder> Manager::Holders(const Identifier* but) const {
  std::vector<PortHolder> held;
  for (const auto& [number, id] : ids_) {
    if (id.get() == but || id->bound_port == 0) continue;
    PortHolder holder;
    holder.process = process_;
    holder.number = id->key;
    holder.port_space = id->port_space;
    holder.port = id->bound_port;
    holder.address = id->source;
    holder.reuse = id->reuse;
    holder.family_only = id->family_only;
    holder.listening = id->state == IdState::kListen;
    held.push_back(holder);
  }
  return held;
}

void Manager::Publish() { wire_.Publish(Holders(nullptr)); }

// cma_check_port
RuleId Manager::PortConflict(const Decision& call, const Identifier& id, bool reuse) {
  std::vector<PortHolder> all = Holders(&id);
  const std::vector<PortHolder> others = wire_.Others();
  all.insert(all.end(), others.begin(), others.end());
  for (const PortHolder& holder : all) {
    if (holder.port_space != id.port_space || holder.port != id.bound_port) continue;
    if (reuse && holder.reuse) continue;
    const bool same_family = holder.address.family == id.source.family;
    if (id.family_only && holder.family_only && !same_family) continue;
    const bool any = id.source.IsAny() || holder.address.IsAny();
    if (call.Violates(RuleId::rdma_cm_port_any, any)) return RuleId::rdma_cm_port_any;
    if (call.Violates(RuleId::rdma_cm_port_in_use, !any && id.source.SameHost(holder.address)))
      return RuleId::rdma_cm_port_in_use;
  }
  return RuleId::kCount;
}

// cma_alloc_any_port: one of net.ipv4.ip_local_port_range that nobody has. The kernel takes a
// random one.
int Manager::AnyPort(const IdPointer& id) {
  constexpr uint16_t kFirst = 32768, kLast = 60999;
  std::vector<PortHolder> all = Holders(id.get());
  const std::vector<PortHolder> others = wire_.Others();
  all.insert(all.end(), others.begin(), others.end());
  if (next_port_ == 0) next_port_ = static_cast<uint16_t>(kFirst + process_ % (kLast - kFirst));
  for (int tries = 0; tries <= kLast - kFirst; ++tries) {
    next_port_ = next_port_ >= kLast ? kFirst : static_cast<uint16_t>(next_port_ + 1);
    const bool taken = std::any_of(all.begin(), all.end(), [&](const PortHolder& holder) {
      return holder.port == next_port_ && holder.port_space == id->port_space;
    });
    if (taken) continue;
    id->bound_port = id->source.port = next_port_;
    return 0;
  }
  return -EADDRNOTAVAIL;
}

// cma_get_port
int Manager::UsePort(Decision& call, const IdPointer& id) {
  if (id->source.port == 0) return AnyPort(id);
  constexpr uint16_t kFirstFree = 1024;  // PROT_SOCK
  const WorldImage& image = call.world.image();
  const bool may = image.check_permissions == 0 || image.uid == 0;
  if (call.Violates(RuleId::rdma_cm_port_privileged, id->source.port < kFirstFree && !may))
    return call.Refuse(RuleId::rdma_cm_port_privileged);
  id->bound_port = id->source.port;
  const RuleId conflict = PortConflict(call, *id, id->reuse);
  if (conflict == RuleId::kCount) return 0;
  id->bound_port = 0;
  return call.Refuse(conflict);
}

void Manager::Attach(const IdPointer& id, const Place& place) { id->place = place; }

// rdma_bind_addr
int Manager::Bind(Decision& call, const IdPointer& id, const Address& address) {
  // Of the family AF_IB only the address that is none: by it librdmacm finds out whether the kernel
  // knows the family.
  if (address.family == kFamilyIb && !address.IsZero())
    return call.Unmodelled("addresses of the family AF_IB");
  if (address.family != AF_INET && address.family != AF_INET6 && address.family != kFamilyIb)
    return call.Refuse(RuleId::rdma_cm_bind_family);
  if (id->state != IdState::kIdle) return call.Refuse(RuleId::rdma_cm_bind_state);
  if (call.Violates(RuleId::rdma_cm_bind_link_local, address.IsLinkLocal() && address.scope == 0))
    return call.Refuse(RuleId::rdma_cm_bind_link_local);
  Place place;
  if (!address.IsAny()) {
    if (address.IsLinkLocal() && !HasInterface(call.world, address.scope))
      return call.Refuse(RuleId::rdma_cm_bind_interface);
    if (!FindPlace(call.world, address, &place)) {
      return call.Refuse(address.IsLinkLocal() ? RuleId::rdma_cm_bind_device
                                               : RuleId::rdma_cm_bind_address);
    }
    if (id->port_space == kIpoib) return call.Refuse(RuleId::rdma_cm_bind_device);
  }
  const Address before = id->source;
  id->source = address;
  if (!id->family_only_set && address.family == AF_INET) id->family_only = true;
  if (const int error = UsePort(call, id)) {
    id->source = before;
    return error;
  }
  if (place.device >= 0) Attach(id, place);
  id->state = IdState::kAddressBound;
  id->target.family = address.family;
  Publish();
  return 0;
}

// rdma_resolve_addr; addr_handler tells of the end of it.
int Manager::ResolveAddress(Decision& call, const IdPointer& id, const Address& source,
                            const Address& target, uint32_t timeout_ms) {
  if (target.family == kFamilyIb) return call.Unmodelled("addresses of the family AF_IB");
  if (id->state == IdState::kIdle) {
    Address any = source;
    if (source.family == 0) {
      any = {};
      any.family = target.family;
      any.scope = target.scope;
      if (target.family == AF_INET) any.gid[10] = any.gid[11] = 0xff;
    }
    if (const int error = Bind(call, id, any)) return error;
  }
  if (id->state != IdState::kAddressBound) return call.Refuse(RuleId::rdma_cm_resolve_state);
  if (call.Violates(RuleId::rdma_cm_resolve_family, id->source.family != target.family))
    return call.Refuse(RuleId::rdma_cm_resolve_family);
  id->target = target;
  if (target.IsAny()) {
    // cma_bind_loopback: the first device with a port that is up, else the first one.
    if (!id->HasDevice()) {
      Place place;
      for (uint32_t d = 0; d < DeviceCount(); ++d) {
        const Device* device = FindDevice(d);
        if (device == nullptr || device->node_gone()) continue;
        const bool up = device->PortState(1) == 4;  // IB_PORT_ACTIVE
        if (place.device < 0 ||
            (up && FindDevice(static_cast<uint32_t>(place.device))->PortState(1) != 4)) {
          place = {static_cast<int>(d), 1, 0};
        }
      }
      if (place.device < 0) return call.Refuse(RuleId::rdma_cm_resolve_loopback);
      Attach(id, place);
      id->loopback = true;
      const uint16_t port = id->source.port;
      id->source = {};
      id->source.family = target.family;
      id->source.port = port;
      if (target.family == AF_INET) {
        const uint8_t loopback[6] = {0xff, 0xff, 127, 0, 0, 1};
        std::memcpy(id->source.gid + 10, loopback, sizeof(loopback));
      } else {
        id->source.gid[15] = 1;
      }
      Publish();
    }
    id->state = IdState::kAddressResolved;
    Tell(id, CmEvent::kAddressResolved, 0);
    return 0;
  }
  Place there;
  // net/ipv4/route.c:ip_route_output_key_hash_rcu: a group is reached through the interface of the
  // source address, and needs no neighbour.
  const bool group = target.family == AF_INET && (target.gid[12] & 0xf0) == 0xe0;
  const bool local = FindPlace(call.world, target, &there) || (group && id->HasDevice());
  if (!local && !HasRoute(call.world, target))
    return call.Refuse(RuleId::rdma_cm_resolve_unreachable);
  if (!local) {
    // A neighbour that never answers.
    id->state = IdState::kAddressQuery;
    const uint64_t wait = call.world.image().virtual_time != 0 ? 0 : uint64_t{timeout_ms} * 1000000;
    sys::Later(wait, [weak = std::weak_ptr<Identifier>(id)] {
      Manager& manager = Get();
      const auto lock = manager.Lock();
      const IdPointer waiting = weak.lock();
      if (waiting == nullptr || waiting->state != IdState::kAddressQuery) return;
      waiting->state = IdState::kAddressBound;
      manager.Tell(waiting, CmEvent::kAddressError, -ETIMEDOUT);
      manager.Drain();
    });
    return 0;
  }
  if (!id->HasDevice()) {
    // The route to an address of the machine itself starts at that address.
    const uint16_t port = id->source.port;
    if (id->source.IsZero()) {
      id->source = target;
      id->source.port = port;
    }
    Place own;
    if (!FindPlace(call.world, id->source, &own)) {
      Tell(id, CmEvent::kAddressError, -ENODEV);
      return 0;
    }
    Attach(id, own);
    Publish();
  }
  id->state = IdState::kAddressResolved;
  Tell(id, CmEvent::kAddressResolved, 0);
  return 0;
}

// rdma_resolve_route
int Manager::ResolveRoute(Decision& call, const IdPointer& id, uint32_t timeout_ms) {
  if (call.Violates(RuleId::rdma_cm_route_timeout, timeout_ms == 0))
    return call.Refuse(RuleId::rdma_cm_route_timeout);
  if (id->state != IdState::kAddressResolved) return call.Refuse(RuleId::rdma_cm_route_state);
  const Device& device = *FindDevice(static_cast<uint32_t>(id->place.device));
  if (device.IsIwarp()) return call.Unmodelled("connections of iWARP devices");
  if (!device.IsRoce()) return call.Unmodelled("a path record of the subnet administrator");
  // cma_iboe_set_path_rec_l2_fields: nothing says which interface a loopback address is on.
  if (id->loopback) return call.Refuse(RuleId::rdma_cm_route_interface);
  id->mtu = kMtu1024;
  id->state = IdState::kRouteResolved;
  Tell(id, CmEvent::kRouteResolved, 0);
  return 0;
}

// rdma_listen
int Manager::Listen(Decision& call, const IdPointer& id) {
  if (id->state == IdState::kIdle) {
    Address any;
    any.family = AF_INET;
    any.gid[10] = any.gid[11] = 0xff;
    if (const int error = Bind(call, id, any)) return error;
  }
  if (id->state != IdState::kAddressBound) return call.Refuse(RuleId::rdma_cm_listen_state);
  if (id->reuse) {
    const RuleId conflict = PortConflict(call, *id, false);
    if (conflict != RuleId::kCount) return call.Refuse(conflict);
    id->reuse = false;
  }
  if (id->HasDevice() && FindDevice(static_cast<uint32_t>(id->place.device))->IsIwarp())
    return call.Unmodelled("connections of iWARP devices");
  id->state = IdState::kListen;
  Publish();
  return 0;
}

Message Manager::Begin(const IdPointer& id, MessageKind kind) const {
  Message message;
  message.kind = kind;
  message.from_process = process_;
  message.from = id->key;
  message.to = id->peer;
  message.port_space = id->port_space;
  message.qp_type = id->qp_type;
  message.source = id->source;
  message.target = id->target;
  return message;
}

void Manager::Send(int process, Message message) {
  if (process == process_) {
    loop_.push_back(message);
  } else {
    wire_.Send(process, message);
  }
}

void Manager::Drain() {
  // A message may make another one.
  constexpr size_t kMost = 10000;
  for (size_t i = 0; i < loop_.size() && i < kMost; ++i) {
    const Message message = loop_[i];
    Receive(message);
  }
  loop_.clear();
}

uint8_t Manager::AckTimeout(const Identifier&, uint8_t delay, uint8_t life) const {
  int timeout = life + 1;
  if (timeout >= delay) {
    timeout += delay >= timeout - 1;
  } else {
    timeout = delay + (timeout >= delay - 1);
  }
  return static_cast<uint8_t>(std::min(31, timeout));
}

// rdma_connect
int Manager::Connect(Decision& call, const IdPointer& id, const ConnectionParameters& parameters,
                     const Ece& ece) {
  if (id->state != IdState::kRouteResolved) return call.Refuse(RuleId::rdma_cm_connect_state);
  const bool datagram = id->qp_type == kUd;
  const size_t room = (datagram ? kSidrRequestData : kRequestData) - kHeader;
  if (call.Violates(RuleId::rdma_cm_private_data, parameters.private_length > room))
    return call.Refuse(RuleId::rdma_cm_private_data);
  if (!datagram && id->qp_type != kRc && id->qp_type != kUc)
    return call.Unmodelled("connections of XRC queue pairs");
  id->state = IdState::kConnect;
  id->cm = datagram ? CmState::kSidrRequestSent : CmState::kRequestSent;
  id->qpn = parameters.qpn;
  id->ece = ece;
  const Device& device = *FindDevice(static_cast<uint32_t>(id->place.device));
  const uint8_t delay = device.attributes().local_ca_ack_delay;
  const uint8_t life = id->ack_timeout_set && id->ack_timeout != 0
                           ? static_cast<uint8_t>(id->ack_timeout - 1)
                           : kPacketLife;
  id->timeout = static_cast<uint8_t>(life + 1);
  id->responder_resources = parameters.responder_resources;
  id->initiator_depth = parameters.initiator_depth;
  id->retry_count = Smaller(parameters.retry_count, 7);
  Message request = Begin(id, datagram ? MessageKind::kSidrRequest : MessageKind::kRequest);
  request.parameters = parameters;
  request.parameters.retry_count = id->retry_count;
  request.parameters.rnr_retry_count = Smaller(parameters.rnr_retry_count, 7);
  request.psn = id->psn;
  request.timeout = AckTimeout(*id, delay, life);
  request.mtu = id->mtu;
  request.ece = ece;

  // Who listens there? cma_find_listener
  int process = -1;
  uint32_t listener = 0;
  std::vector<PortHolder> all = Holders(nullptr);
  const std::vector<PortHolder> others = wire_.Others();
  all.insert(all.end(), others.begin(), others.end());
  for (const PortHolder& holder : all) {
    if (!holder.listening || holder.port_space != id->port_space ||
        holder.port != id->target.port) {
      continue;
    }
    const bool family = holder.address.family == id->target.family ||
                        (holder.address.family == AF_INET6 && !holder.family_only);
    if (!family || (!holder.address.IsZero() && !holder.address.SameHost(id->target))) continue;
    process = holder.process;
    listener = holder.number;
    break;
  }
  if (process < 0) {
    Message reply = request;
    reply.kind = datagram ? MessageKind::kSidrReply : MessageKind::kReject;
    reply.status = datagram ? kSidrUnsupported : kUnsupportedService;
    reply.to = id->key;
    reply.parameters = {};
    loop_.push_back(reply);
    return 0;
  }
  request.to = listener;
  id->peer_process = process;
  Send(process, request);
  Watch();
  return 0;
}

// rdma_accept
int Manager::Accept(Decision& call, const IdPointer& id, const ConnectionParameters* parameters,
                    const Ece& ece) {
  if (id->state != IdState::kConnect) return call.Refuse(RuleId::rdma_cm_accept_state);
  id->ece = ece;
  if (parameters != nullptr) id->qpn = parameters->qpn;
  const auto fail = [&](RuleId rule) {
    const int error = call.Refuse(rule);
    // rdma_accept: what cannot be accepted is rejected.
    if (id->cm == CmState::kRequestReceived || id->cm == CmState::kReplyReceived) {
      Message reject = Begin(id, MessageKind::kReject);
      reject.status = kConsumerDefined;
      Send(id->peer_process, reject);
      id->cm = CmState::kIdle;
    }
    return error;
  };
  if (id->qp_type == kUd) {
    const uint32_t qkey = parameters != nullptr ? parameters->qkey : 0;
    if (call.Violates(RuleId::rdma_cm_qkey, qkey != 0 && id->qkey != 0 && id->qkey != qkey))
      return fail(RuleId::rdma_cm_qkey);
    id->qkey = qkey != 0 ? qkey : kDefaultQkey;
    if (parameters != nullptr &&
        call.Violates(RuleId::rdma_cm_private_data, parameters->private_length > kSidrReplyData)) {
      return fail(RuleId::rdma_cm_private_data);
    }
    if (id->cm != CmState::kSidrRequestReceived) return fail(RuleId::rdma_cm_reply_state);
    Message reply = Begin(id, MessageKind::kSidrReply);
    if (parameters != nullptr) reply.parameters = *parameters;
    reply.parameters.qpn = id->qpn;
    reply.parameters.qkey = id->qkey;
    reply.ece = ece;
    id->cm = CmState::kIdle;
    Send(id->peer_process, reply);
    return 0;
  }
  if (parameters == nullptr) {  // cma_rep_recv
    if (id->cm != CmState::kReplyReceived) return fail(RuleId::rdma_cm_reply_state);
    id->cm = CmState::kEstablished;
    Send(id->peer_process, Begin(id, MessageKind::kReadyToUse));
    return 0;
  }
  if (call.Violates(RuleId::rdma_cm_private_data, parameters->private_length > kReplyData))
    return fail(RuleId::rdma_cm_private_data);
  if (id->cm != CmState::kRequestReceived) return fail(RuleId::rdma_cm_reply_state);
  id->responder_resources = parameters->responder_resources;
  id->initiator_depth = parameters->initiator_depth;
  id->cm = CmState::kReplySent;
  Message reply = Begin(id, MessageKind::kReply);
  reply.parameters = *parameters;
  reply.parameters.rnr_retry_count = Smaller(parameters->rnr_retry_count, 7);
  reply.psn = id->psn;
  reply.ack_delay =
      FindDevice(static_cast<uint32_t>(id->place.device))->attributes().local_ca_ack_delay;
  reply.ece = ece;
  Send(id->peer_process, reply);
  Watch();
  return 0;
}

// rdma_reject
int Manager::Reject(Decision& call, const IdPointer& id, const uint8_t* data, uint8_t length,
                    uint8_t reason) {
  if (id->cm == CmState::kNone) return call.Refuse(RuleId::rdma_cm_no_connection);
  const bool datagram = id->qp_type == kUd;
  if (call.Violates(RuleId::rdma_cm_private_data,
                    length > (datagram ? kSidrReplyData : kRejectData))) {
    return call.Refuse(RuleId::rdma_cm_private_data);
  }
  Message message = Begin(id, datagram ? MessageKind::kSidrReply : MessageKind::kReject);
  std::memcpy(message.parameters.private_data, data, length);
  message.parameters.private_length = length;
  if (datagram) {
    if (id->cm != CmState::kSidrRequestReceived) return call.Refuse(RuleId::rdma_cm_reply_state);
    message.status = kSidrReject;
  } else {
    const bool may = id->cm == CmState::kRequestSent || id->cm == CmState::kRequestReceived ||
                     id->cm == CmState::kReplySent || id->cm == CmState::kReplyReceived;
    if (!may) return call.Refuse(RuleId::rdma_cm_disconnect_state);
    message.status = reason;
  }
  id->cm = CmState::kIdle;
  Send(id->peer_process, message);
  return 0;
}

void Manager::SendDisconnect(const IdPointer& id, bool reply) {
  Send(id->peer_process,
       Begin(id, reply ? MessageKind::kDisconnectReply : MessageKind::kDisconnectRequest));
}

// rdma_disconnect: begins it, or answers to the peer's. Nothing to do is no failure.
int Manager::Disconnect(Decision& call, const IdPointer& id) {
  if (id->cm == CmState::kNone) return call.Refuse(RuleId::rdma_cm_no_connection);
  if (id->cm == CmState::kEstablished) {
    id->cm = CmState::kDisconnectSent;
    SendDisconnect(id, false);
  } else if (id->cm == CmState::kDisconnectReceived) {
    id->cm = CmState::kTimewait;
    SendDisconnect(id, true);
  }
  return 0;
}

// Events

namespace {

void Put32(uint8_t* at, uint32_t value) { std::memcpy(at, &value, sizeof(value)); }

void BeginEvent(Event* event, const IdPointer& id, uint64_t uid, uint32_t number, CmEvent kind,
                int status) {
  std::memcpy(event->bytes, &uid, sizeof(uid));
  Put32(event->bytes + 8, number);
  Put32(event->bytes + 12, static_cast<uint32_t>(kind));
  Put32(event->bytes + 16, static_cast<uint32_t>(status));
  event->about = id;
}

constexpr size_t kParameters = 20, kEce = 328;

}  // namespace

// ucma_event_handler. `told`: the listener, of a request.
void Manager::Tell(const IdPointer& id, CmEvent kind, int status,
                   const ConnectionParameters* parameters, const Ece* ece, const IdPointer& request,
                   const IdPointer& told) {
  const IdPointer& whose = told != nullptr ? told : id;
  // What a program has not accepted yet is none of its business.
  if (whose->file == nullptr || (request == nullptr && whose->uid == 0)) return;
  Event event;
  BeginEvent(&event, whose, whose->uid, id->number, kind, status);
  event.request = request;
  uint8_t* at = event.bytes + kParameters;
  if (parameters != nullptr) {
    Put32(at, parameters->qpn);
    std::memcpy(at + 8, parameters->private_data, parameters->private_length);
    at[264] = parameters->private_length;
    at[265] = parameters->srq;
    at[266] = parameters->responder_resources;
    at[267] = parameters->initiator_depth;
    at[268] = parameters->flow_control;
    at[269] = parameters->retry_count;
    at[270] = parameters->rnr_retry_count;
  }
  if (ece != nullptr) {
    Put32(event.bytes + kEce, ece->vendor_id);
    Put32(event.bytes + kEce + 4, ece->attr_mod);
  }
  whose->file->events().push_back(std::move(event));
  whose->file->Signal();
}

void Manager::TellDatagram(const IdPointer& id, CmEvent kind, int status,
                           const ConnectionParameters& parameters, const uint8_t* path,
                           const IdPointer& request, const IdPointer& told) {
  const IdPointer& whose = told != nullptr ? told : id;
  if (whose->file == nullptr || (request == nullptr && whose->uid == 0)) return;
  Event event;
  BeginEvent(&event, whose, whose->uid, id->number, kind, status);
  event.request = request;
  uint8_t* at = event.bytes + kParameters;
  Put32(at, parameters.qpn);
  Put32(at + 4, parameters.qkey);
  if (path != nullptr) std::memcpy(at + 8, path, 32);
  std::memcpy(at + 40, parameters.private_data, parameters.private_length);
  at[296] = parameters.private_length;
  whose->file->events().push_back(std::move(event));
  whose->file->Signal();
}

// ib_copy_ah_attr_to_user of ib_init_ah_attr_from_path
void Manager::WritePath(const Identifier& id, const uint8_t target[16], uint8_t out[32]) const {
  std::memset(out, 0, 32);
  std::memcpy(out, target, 16);
  out[20] = id.place.gid_index;
  out[21] = kHopLimit;
  out[22] = id.service_type;
  out[26] = id.service_type >> 5;  // sl: iboe_tos_to_sl of an interface without a priority map
  out[29] = 1;                     // is_global
  out[30] = id.place.port;
}

// Messages

void Manager::FromWire(const Message& message) {
  Manager& manager = Get();
  const auto lock = manager.Lock();
  manager.Receive(message);
  manager.Drain();
}

void Manager::GoneOnWire(int process) {
  Manager& manager = Get();
  const auto lock = manager.Lock();
  manager.PeerGone(process);
  manager.Drain();
}

// cma_process_remove, ucma_event_handler: the program is told, and can only destroy the identifier.
void Manager::DeviceGone(Device& device) {
  Manager& manager = Get();
  const auto lock = manager.Lock();
  std::vector<IdPointer> all;
  for (const auto& [number, id] : manager.ids_) {
    if (id->HasDevice() && id->place.device == static_cast<int>(device.number())) all.push_back(id);
  }
  for (const IdPointer& id : all) {
    manager.Tell(id, CmEvent::kDeviceRemoval, 0);
    id->removed = true;
    id->cm = CmState::kNone;
  }
  manager.Drain();
}

// What the kernel says for a process that ended: its files were closed.
void Manager::PeerGone(int process) {
  std::vector<IdPointer> all;
  for (const auto& [number, id] : ids_) {
    if (id->peer_process == process) all.push_back(id);
  }
  for (const IdPointer& id : all) {
    Message message;
    message.from_process = process;
    message.from = id->peer;
    message.to = id->key;
    message.kind = MessageKind::kReject;
    message.status = kConsumerDefined;
    if (id->cm == CmState::kEstablished) message.kind = MessageKind::kDisconnectRequest;
    if (id->cm == CmState::kDisconnectSent) message.kind = MessageKind::kDisconnectReply;
    if (id->cm == CmState::kSidrRequestSent) {
      message.kind = MessageKind::kSidrReply;
      message.status = kSidrReject;
    }
    id->peer_process = 0;
    Receive(message);
  }
  Watch();
}

void Manager::Watch() {
  std::vector<int> processes;
  for (const auto& [number, id] : ids_) {
    const bool alive =
        id->cm != CmState::kNone && id->cm != CmState::kIdle && id->cm != CmState::kTimewait;
    if (alive && id->peer_process > 0 && id->peer_process != process_ &&
        std::find(processes.begin(), processes.end(), id->peer_process) == processes.end()) {
      processes.push_back(id->peer_process);
    }
  }
  wire_.Watch(std::move(processes), &GoneOnWire);
}

void Manager::Receive(const Message& message) {
  if (message.kind == MessageKind::kRequest || message.kind == MessageKind::kSidrRequest)
    return ReceiveRequest(message);
  const IdPointer id = FindKey(message.to);
  if (id == nullptr) return;
  switch (message.kind) {
    case MessageKind::kReply:
    case MessageKind::kSidrReply:
      ReceiveReply(id, message);
      break;
    case MessageKind::kReadyToUse:
      if (id->cm != CmState::kReplySent) break;
      id->cm = CmState::kEstablished;
      Tell(id, CmEvent::kEstablished, 0);
      break;
    case MessageKind::kReject: {
      const bool waits = id->cm == CmState::kRequestSent || id->cm == CmState::kReplySent ||
                         id->cm == CmState::kReplyReceived || id->cm == CmState::kRequestReceived;
      if (!waits || id->state != IdState::kConnect) break;
      id->cm = CmState::kIdle;
      ConnectionParameters parameters = message.parameters;
      parameters.private_length = kRejectData;
      parameters.qpn = 0;
      Tell(id, CmEvent::kRejected, static_cast<int>(message.status), &parameters);
      break;
    }
    case MessageKind::kDisconnectRequest:
      // cm_dreq_handler; one that crosses the other's request is an answer to it.
      if (id->cm == CmState::kReplySent || id->cm == CmState::kEstablished) {
        id->cm = CmState::kDisconnectReceived;
      } else if (id->cm == CmState::kDisconnectSent) {
        id->cm = CmState::kDisconnectReceived;
      } else {
        break;
      }
      if (id->state != IdState::kConnect) break;
      id->state = IdState::kDisconnect;
      Tell(id, CmEvent::kDisconnected, 0);
      break;
    case MessageKind::kDisconnectReply: {
      if (id->cm != CmState::kDisconnectSent && id->cm != CmState::kDisconnectReceived) break;
      id->cm = CmState::kTimewait;
      if (id->state == IdState::kConnect) {
        id->state = IdState::kDisconnect;
        Tell(id, CmEvent::kDisconnected, 0);
      }
      sys::Later(kTimewaitNs, [weak = std::weak_ptr<Identifier>(id)] {
        Manager& manager = Get();
        const auto lock = manager.Lock();
        const IdPointer waiting = weak.lock();
        if (waiting == nullptr || waiting->cm != CmState::kTimewait) return;
        waiting->cm = CmState::kIdle;
        manager.Tell(waiting, CmEvent::kTimewaitExit, 0);
      });
      break;
    }
    default:
      break;
  }
}

// cma_ib_req_handler, ucma_connect_event_handler
void Manager::ReceiveRequest(const Message& message) {
  const bool datagram = message.kind == MessageKind::kSidrRequest;
  const IdPointer listener = FindKey(message.to);
  const auto refuse = [&](uint32_t status) {
    Message reply = message;
    reply.kind = datagram ? MessageKind::kSidrReply : MessageKind::kReject;
    reply.from_process = process_;
    reply.to = message.from;
    reply.status = status;
    reply.parameters = {};
    Send(message.from_process, reply);
  };
  const bool kind_fits = listener != nullptr && (datagram ? listener->qp_type == kUd
                                                          : listener->qp_type == message.qp_type ||
                                                                listener->qp_type == kRc);
  if (listener == nullptr || listener->state != IdState::kListen || !kind_fits)
    return refuse(datagram ? kSidrUnsupported : kUnsupportedService);
  Place place;
  if (!FindPlace(*world_, message.target, &place))
    return refuse(datagram ? kSidrUnsupported : kUnsupportedService);
  if (listener->backlog == 0) {
    // The kernel drops it, and the other side sends it again until there is room.
    trace::Event("unmodelled", "a connection request beyond the listener's backlog");
    return;
  }
  --listener->backlog;
  auto id = std::make_shared<Identifier>();
  id->file = listener->file;
  id->key = next_key_++;
  id->psn = next_psn_ += 0x1000;
  id->port_space = message.port_space;
  id->qp_type = datagram ? uint8_t{kUd} : message.qp_type;
  id->state = IdState::kConnect;
  id->cm = datagram ? CmState::kSidrRequestReceived : CmState::kRequestReceived;
  id->source = message.target;
  id->target = message.source;
  id->place = place;
  id->peer_process = message.from_process;
  id->peer = message.from;
  id->peer_qpn = message.parameters.qpn;
  id->peer_psn = message.psn;
  id->service_type = listener->service_type;
  id->initiator_depth = message.parameters.responder_resources;
  id->responder_resources = message.parameters.initiator_depth;
  id->retry_count = message.parameters.retry_count;
  id->rnr_retry_count = message.parameters.rnr_retry_count;
  id->mtu = message.mtu;
  // cm_req_handler: the life of a packet follows from the requester's timeout.
  const uint8_t life = message.timeout > 0 ? static_cast<uint8_t>(message.timeout - 1) : 0;
  id->timeout = static_cast<uint8_t>(life + 1);
  if (world_->Knob(KnobId::rdma_cm_early_ids) != 0) {
    id->number = FreeNumber();
    ids_[id->number] = id;
  } else {
    unnumbered_.push_back(id);
  }
  ConnectionParameters seen = message.parameters;
  seen.responder_resources = message.parameters.initiator_depth;
  seen.initiator_depth = message.parameters.responder_resources;
  seen.private_length =
      static_cast<uint8_t>((datagram ? kSidrRequestData : kRequestData) - kHeader);
  seen.qkey = 0;
  if (datagram) {
    seen.qpn = 0;
    TellDatagram(id, CmEvent::kConnectRequest, 0, seen, nullptr, id, listener);
  } else {
    Tell(id, CmEvent::kConnectRequest, 0, &seen, &message.ece, id, listener);
  }
  Watch();
}

void Manager::ReceiveReply(const IdPointer& id, const Message& message) {
  if (id->state != IdState::kConnect) return;
  if (message.kind == MessageKind::kSidrReply) {  // cma_sidr_rep_handler
    if (id->cm != CmState::kSidrRequestSent) return;
    id->cm = CmState::kIdle;
    ConnectionParameters parameters = message.parameters;
    parameters.private_length = kSidrReplyData;
    if (message.status != 0) {
      parameters.qpn = parameters.qkey = 0;
      TellDatagram(id, CmEvent::kUnreachable, static_cast<int>(message.status), parameters,
                   nullptr);
      return;
    }
    if (id->qkey != 0 && id->qkey != parameters.qkey) {
      TellDatagram(id, CmEvent::kAddressError, -EINVAL, parameters, nullptr);
      return;
    }
    id->qkey = parameters.qkey;
    uint8_t path[32];
    WritePath(*id, id->target.gid, path);
    TellDatagram(id, CmEvent::kEstablished, 0, parameters, path);
    return;
  }
  if (id->cm != CmState::kRequestSent) return;
  id->cm = CmState::kReplyReceived;
  id->peer_process = message.from_process;
  id->peer = message.from;
  id->peer_qpn = message.parameters.qpn;
  id->peer_psn = message.psn;
  id->initiator_depth = message.parameters.responder_resources;
  id->responder_resources = message.parameters.initiator_depth;
  id->rnr_retry_count = message.parameters.rnr_retry_count;
  id->timeout = AckTimeout(*id, message.ack_delay, static_cast<uint8_t>(id->timeout - 1));
  ConnectionParameters seen = message.parameters;
  seen.responder_resources = message.parameters.initiator_depth;
  seen.initiator_depth = message.parameters.responder_resources;
  seen.private_length = kReplyData;
  seen.retry_count = 0;
  Tell(id, CmEvent::kConnectResponse, 0, &seen, &message.ece);
  Watch();
}

// Groups

// rdma_join_multicast, cma_iboe_join_multicast
int Manager::Join(Decision& call, const IdPointer& id, const Address& group, bool, uint64_t uid,
                  uint32_t* member) {
  if (id->state != IdState::kAddressBound && id->state != IdState::kAddressResolved)
    return call.Refuse(RuleId::rdma_cm_join_state);
  if (call.Violates(RuleId::rdma_cm_join_service, id->qp_type != kUd))
    return call.Refuse(RuleId::rdma_cm_join_service);
  const Device& device = *FindDevice(static_cast<uint32_t>(id->place.device));
  if (!device.IsRoce()) return call.Unmodelled("multicast groups of the subnet administrator");
  if (group.IsZero()) return call.Refuse(RuleId::rdma_cm_join_address);
  if (id->loopback) return call.Refuse(RuleId::rdma_cm_route_interface);
  constexpr uint8_t kRoceV2 = 2;
  const bool second = DefaultGidType(call.world, device.port(id->place.port)) == kRoceV2;
  if (group.family == AF_INET6 && second) return call.Refuse(RuleId::rdma_cm_join_ipv6);
  if (id->qkey == 0) id->qkey = kDefaultQkey;
  uint32_t number = 0;
  while (members_.count(number) != 0) ++number;
  members_[number] = {id, id->file, uid, 0};
  *member = number;

  uint8_t mgid[16];
  std::memcpy(mgid, group.gid, sizeof(mgid));
  if (group.family == AF_INET && !second) {  // cma_iboe_set_mgid
    mgid[0] = 0xff;
    mgid[1] = 0x0e;
  }
  Event event;
  BeginEvent(&event, id, uid, number, CmEvent::kMulticastJoin, 0);
  event.group = number + 1;
  uint8_t* at = event.bytes + kParameters;
  Put32(at, kMulticastQpn);
  Put32(at + 4, id->qkey);
  WritePath(*id, mgid, at + 8);
  at[8 + 21] = second && group.family == AF_INET ? kHopLimit : 1;
  id->file->events().push_back(std::move(event));
  id->file->Signal();
  return 0;
}

int Manager::Leave(Decision& call, CmFile* file, uint32_t member, uint32_t* events_reported) {
  const auto found = members_.find(member);
  if (found == members_.end()) return call.Refuse(RuleId::rdma_cm_leave_none);
  if (found->second.file != file) return call.Refuse(RuleId::rdma_cm_leave_file);
  std::erase_if(file->events(), [&](const Event& event) { return event.group == member + 1; });
  file->Signal();
  *events_reported = found->second.events_reported;
  members_.erase(found);
  return 0;
}

void Manager::CountGroupEvent(uint32_t member) {
  const auto found = members_.find(member);
  if (found != members_.end()) ++found->second.events_reported;
}

}  // namespace vabi::rdma_cm
