// SPDX-License-Identifier: BSD-2-Clause
#include "shims/rdma_cm/manager.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "shims/rdma_cm/path.h"
#include "shims/sys/later.h"
#include "shims/sys/sys.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/restrack.h"
#include "shims/uverbs/script.h"

namespace vabi::rdma_cm {
namespace {

// include/rdma/ib_cm.h: IB_CM_*_PRIVATE_DATA_SIZE
constexpr size_t kRequestData = 92, kReplyData = 196, kRejectData = 148, kSidrRequestData = 216,
                 kSidrReplyData = 136;
constexpr size_t kHeader = 36;                 // struct cma_hdr in front of what programs give
constexpr uint32_t kDefaultQkey = 0x01234567;  // RDMA_UDP_QKEY
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
  touched_.clear();
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
  Touch(id);
  return id;
}

void Manager::Touch(const IdPointer& id) {
  if (id != nullptr && (touched_.empty() || touched_.back() != id)) touched_.push_back(id);
}

IdPointer Manager::Find(uint32_t number) {
  const auto found = ids_.find(number);
  if (found == ids_.end()) return nullptr;
  Touch(found->second);
  return found->second;
}

IdPointer Manager::FindKey(uint32_t key) {
  const auto take = [&](const IdPointer& id) {
    if (id->key == key) Touch(id);
    return id->key == key;
  };
  for (const auto& [number, id] : ids_) {
    if (take(id)) return id;
  }
  for (const auto& id : unnumbered_) {
    if (take(id)) return id;
  }
  return nullptr;
}

void Manager::NumberLate(const IdPointer& id) {
  if (std::erase(unnumbered_, id) == 0) return;
  id->number = FreeNumber();
  ids_[id->number] = id;
  Touch(id);
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
  if (world_ != nullptr) UntrackEntry(world_->image(), &id->track);
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
    holder.port_space = id->bound_space;
    holder.port = id->bound_port;
    holder.address = id->source;
    holder.device = id->place.device;
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
    if (holder.port_space != id.bound_space || holder.port != id.bound_port) continue;
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
      return holder.port == next_port_ && holder.port_space == id->bound_space;
    });
    if (taken) continue;
    id->bound_port = next_port_;
    id->source.SetPort(next_port_);
    return 0;
  }
  return -EADDRNOTAVAIL;
}

namespace {

// cma_select_ib_ps: the port space that a service id names; 0: none that the identifier may have.
// The address then names it in full.
uint16_t SpaceOfService(const Identifier& id, Address* address) {
  constexpr uint64_t kSpaceMask = ~0xffffULL;  // RDMA_IB_IP_PS_MASK
  const uint64_t mask = address->service_mask & kSpaceMask, service = address->service & mask;
  for (const uint16_t space : {uint16_t{kIb}, uint16_t{kTcp}, uint16_t{kUdp}}) {
    const uint64_t named = uint64_t{space} << 16;
    if ((id.port_space != kIb && id.port_space != space) || service != (named & mask)) continue;
    address->service = named | address->port;
    address->service_mask |= kSpaceMask;
    return space;
  }
  return 0;
}

}  // namespace

// cma_get_port
int Manager::UsePort(Decision& call, const IdPointer& id) {
  id->bound_space =
      id->source.family == kFamilyIb ? SpaceOfService(*id, &id->source) : id->port_space;
  if (id->bound_space == 0) return call.Refuse(RuleId::rdma_cm_bind_service);
  if (id->source.port == 0) return AnyPort(id);
  constexpr uint16_t kFirstFree = 1024;  // PROT_SOCK
  const WorldImage& image = call.world.image();
  const bool may = image.check_permissions == 0 || image.uid == 0;
  if (call.Violates(RuleId::rdma_cm_port_privileged, id->source.port < kFirstFree && !may))
    return call.Refuse(RuleId::rdma_cm_port_privileged);
  id->bound_port = id->source.port;
  id->source.SetPort(id->source.port);
  const RuleId conflict = PortConflict(call, *id, id->reuse);
  if (conflict == RuleId::kCount) return 0;
  id->bound_port = 0;
  return call.Refuse(conflict);
}

// cma_attach_to_dev, and what cma_translate_addr has found of the address (struct rdma_dev_addr).
void Manager::Attach(const IdPointer& id, const Place& place) {
  id->place = place;
  GidOf(*world_, id->source, place, id->source_gid);
  const Device& device = *FindDevice(static_cast<uint32_t>(place.device));
  const bool infiniband = device.image().link == LinkLayer::kInfiniband;
  id->has_broadcast = infiniband && id->source.family != kFamilyIb;
  id->pkey = id->source.family == kFamilyIb ? id->source.pkey
             : infiniband                   ? device.port(place.port).pkeys[0]
                                            : uint16_t{0};
}

// rdma_bind_addr
int Manager::Bind(Decision& call, const IdPointer& id, const Address& address) {
  if (address.family != AF_INET && address.family != AF_INET6 && address.family != kFamilyIb)
    return call.Refuse(RuleId::rdma_cm_bind_family);
  if (id->state != IdState::kIdle) return call.Refuse(RuleId::rdma_cm_bind_state);
  if (call.Violates(RuleId::rdma_cm_bind_link_local, address.IsLinkLocal() && address.scope == 0))
    return call.Refuse(RuleId::rdma_cm_bind_link_local);
  Place place;
  if (!address.IsAny()) {
    if (address.IsLinkLocal() && !HasInterface(call.world, address.scope))
      return call.Refuse(RuleId::rdma_cm_bind_interface);
    const bool found = FindPlace(call.world, address, &place);
    if (!found && !address.IsLinkLocal() && address.family != kFamilyIb)
      return call.Refuse(RuleId::rdma_cm_bind_address);
    const bool infiniband =
        address.family == kFamilyIb ||
        (found &&
         FindDevice(static_cast<uint32_t>(place.device))->image().link == LinkLayer::kInfiniband);
    if (id->port_space == kIpoib && !infiniband) return call.Refuse(RuleId::rdma_cm_bind_ipoib);
    if (!found) return call.Refuse(RuleId::rdma_cm_bind_device);
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

// cma_resolve_ib_dev: a port whose table has the GID, or that is of its subnet.
bool Manager::FindOnSubnet(const Address& target, Place* place) const {
  const bool first = world_->Knob(KnobId::rdma_cm_first_on_subnet) != 0;
  for (uint32_t d = 0; d < DeviceCount(); ++d) {
    const Device* device = FindDevice(d);
    if (device == nullptr || device->node_gone() || device->IsIwarp() ||
        device->image().link == LinkLayer::kUnspecified) {
      continue;
    }
    for (uint8_t p = 1; p <= device->image().port_count; ++p) {
      const PortImage& port = device->port(p);
      uint16_t index;
      if (!FindPkey(port, target.pkey, &index)) continue;
      for (uint8_t g = 0; g < port.gid_count; ++g) {
        const bool same = std::memcmp(port.gids[g].raw, target.gid, 16) == 0;
        const bool active = !first || device->PortState(p) == 4;  // IB_PORT_ACTIVE
        const bool near =
            place->device < 0 && active && std::memcmp(port.gids[g].raw, target.gid, 8) == 0;
        if (same || near) *place = {static_cast<int>(d), p, g};
        if (same || (near && first)) return true;
      }
    }
  }
  return place->device >= 0;
}

// rdma_resolve_addr; addr_handler tells of the end of it.
int Manager::ResolveAddress(Decision& call, const IdPointer& id, const Address& source,
                            const Address& target, uint32_t timeout_ms) {
  if (id->state == IdState::kIdle) {
    Address any = source;
    if (source.family == 0) {
      any = {};
      any.family = target.family;
      any.scope = target.scope;
      any.pkey = target.pkey;
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
      id->loopback = true;
      std::memset(id->source.gid, 0, sizeof(id->source.gid));  // cma_set_loopback
      if (target.family == AF_INET) {
        const uint8_t loopback[6] = {0xff, 0xff, 127, 0, 0, 1};
        std::memcpy(id->source.gid + 10, loopback, sizeof(loopback));
      } else {
        id->source.gid[15] = 1;
      }
      Attach(id, place);
      const PortImage& port = FindDevice(static_cast<uint32_t>(place.device))->port(place.port);
      std::memcpy(id->source_gid, port.gids[0].raw, 16);
      id->pkey = port.pkeys[0];
      id->has_broadcast = false;
      Publish();
    }
    std::memcpy(id->target_gid, id->source_gid, 16);
    id->state = IdState::kAddressResolved;
    Tell(id, CmEvent::kAddressResolved, 0);
    return 0;
  }
  if (target.family == kFamilyIb) {  // cma_resolve_ib_addr
    if (!id->HasDevice()) {
      Place own;
      if (!FindOnSubnet(target, &own)) return call.Refuse(RuleId::rdma_cm_resolve_subnet);
      const PortImage& port = FindDevice(static_cast<uint32_t>(own.device))->port(own.port);
      std::memcpy(id->source.gid, port.gids[own.gid_index].raw, 16);
      Attach(id, own);
      Publish();
    }
    std::memcpy(id->target_gid, target.gid, 16);
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
      manager.Touch(waiting);
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
  if (there.device >= 0) {
    GidOf(call.world, target, there, id->target_gid);
  } else if (id->has_broadcast) {
    GroupGid(target, false, id->pkey, id->target_gid);  // arp_mc_map
  } else {
    std::memcpy(id->target_gid, target.gid, 16);
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
  if (!device.IsRoce()) return AskSubnet(call, id, device, timeout_ms);
  // cma_iboe_set_path_rec_l2_fields: nothing says which interface a loopback address is on, nor one
  // of the family AF_IB.
  if (id->loopback || id->source.family == kFamilyIb)
    return call.Refuse(RuleId::rdma_cm_route_interface);
  id->path = RocePath(*id);
  id->state = IdState::kRouteResolved;
  Tell(id, CmEvent::kRouteResolved, 0);
  return 0;
}

// cma_resolve_ib_route, cma_query_handler
int Manager::AskSubnet(Decision& call, const IdPointer& id, const Device& device,
                       uint32_t timeout_ms) {
  if (device.PortState(id->place.port) != 4) {  // IB_PORT_ACTIVE: the question goes nowhere
    const uint64_t wait = call.world.image().virtual_time != 0 ? 0 : uint64_t{timeout_ms} * 1000000;
    id->state = IdState::kRouteQuery;
    sys::Later(wait, [weak = std::weak_ptr<Identifier>(id)] {
      Manager& manager = Get();
      const auto lock = manager.Lock();
      const IdPointer waiting = weak.lock();
      if (waiting == nullptr || waiting->state != IdState::kRouteQuery) return;
      manager.Touch(waiting);
      waiting->state = IdState::kAddressResolved;
      manager.Tell(waiting, CmEvent::kRouteError, -ETIMEDOUT);
      manager.Drain();
    });
    return 0;
  }
  if (!SubnetPath(call.world, *id, &id->path)) {
    Tell(id, CmEvent::kRouteError, -EINVAL);
    return 0;
  }
  id->state = IdState::kRouteResolved;
  Tell(id, CmEvent::kRouteResolved, 0);
  return 0;
}

// ucma_set_ib_path, rdma_set_ib_path: what the program itself knows of the way.
int Manager::SetPath(Decision& call, const IdPointer& id, const Path& path) {
  if (call.Violates(RuleId::rdma_cm_option_path,
                    !id->HasDevice() || id->state != IdState::kAddressResolved)) {
    return call.Refuse(RuleId::rdma_cm_option_path);
  }
  if (id->HasDevice() && FindDevice(static_cast<uint32_t>(id->place.device))->IsRoce())
    return call.Unmodelled("a path record of the program's own, on RoCE");
  id->path = path;
  id->path.known = true;
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
  return message;
}

namespace {

// cma.c:cma_user_data_offset: what stands in front of the program's data in a request.
size_t HeaderSize(const Identifier& id) { return id.source.family == kFamilyIb ? 0 : kHeader; }

// rdma_get_service_id
uint64_t ServiceOf(const Identifier& id, const Address& address) {
  if (address.family == kFamilyIb) return address.service;
  return (uint64_t{id.port_space} << 16) + address.port;
}

// struct cma_hdr at the start of a request's private data: version, IP version, port and the two
// addresses. Of AF_IB the program has put it there itself, if it wants to be understood.
struct IpHeader {
  uint8_t version = 0, ip_version = 0;
  Address source, target;  // the requester's own and the one that it asks for
};

void FormatHeader(const Identifier& id, uint8_t data[kHeader]) {
  std::memset(data, 0, kHeader);
  const bool four = id.source.family == AF_INET;
  data[1] = static_cast<uint8_t>((four ? 4 : 6) << 4);
  data[2] = static_cast<uint8_t>(id.source.port >> 8);
  data[3] = static_cast<uint8_t>(id.source.port);
  const size_t from = four ? 12 : 0;
  std::memcpy(data + 4 + from, id.source.gid + from, 16 - from);
  std::memcpy(data + 20 + from, id.target.gid + from, 16 - from);
}

IpHeader ReadHeader(const Message& request) {
  const uint8_t* const data = request.parameters.private_data;
  IpHeader header;
  header.version = data[0];
  header.ip_version = data[1] >> 4;
  const bool four = header.ip_version == 4;
  for (const auto& [address, at] :
       {std::pair{&header.source, data + 4}, std::pair{&header.target, data + 20}}) {
    address->family = four ? AF_INET : AF_INET6;
    if (four) {
      address->gid[10] = address->gid[11] = 0xff;
      std::memcpy(address->gid + 12, at + 12, 4);
    } else {
      std::memcpy(address->gid, at, 16);
    }
  }
  header.source.port = static_cast<uint16_t>(data[2] << 8 | data[3]);
  header.target.port = static_cast<uint16_t>(request.service);
  return header;
}

// cma_get_net_dev, validate_net_dev: an interface of the port that the request comes to, with a way
// back to where it comes from.
bool HasInterfaceFor(const World& world, const IpHeader& header, const Place& there) {
  const PortImage& port = FindDevice(static_cast<uint32_t>(there.device))->port(there.port);
  if (port.ndev[0] == '\0') return false;
  const Address *const source = &header.source, *const target = &header.target;
  if (header.ip_version == 4 &&
      (source->IsZero() || source->IsLoopback() || target->IsZero() || target->IsLoopback())) {
    return false;
  }
  Address way = *source;
  if (way.IsLinkLocal()) way.scope = port.ndev_ifindex;
  return HasRoute(world, way);
}

// cma_match_private_data
bool WantsRequest(const PortHolder& holder, const IpHeader& header) {
  const bool any = holder.address.IsAny();
  if ((any && !holder.family_only) || holder.address.family == kFamilyIb) return true;
  if (header.ip_version != (holder.address.family == AF_INET ? 4 : 6)) return false;
  return any || std::memcmp(holder.address.gid, header.target.gid, 16) == 0;
}

constexpr int kNoSuchService = -1, kNoListener = -2;

}  // namespace

// cm.c:cm_find_listen, then cma.c: cma_ib_id_from_event, cma_find_listener. The process that
// listens and its identifier, or why nobody does.
int Manager::FindListener(const Message& request, const Place& there, uint32_t* listener) const {
  const auto port = static_cast<uint16_t>(request.service);
  const auto space = static_cast<uint16_t>(request.service >> 16);
  std::vector<PortHolder> all = Holders(nullptr);
  const std::vector<PortHolder> others = wire_.Others();
  all.insert(all.end(), others.begin(), others.end());
  std::erase_if(all, [&](const PortHolder& holder) {
    return !holder.listening || holder.port_space != space || holder.port != port ||
           (holder.device >= 0 && holder.device != there.device);
  });
  if (all.empty() || (request.service >> 32) != 0) return kNoSuchService;
  const IpHeader header = ReadHeader(request);
  const bool ip = header.ip_version == 4 || header.ip_version == 6;
  if (header.version != 0 || (ip && !HasInterfaceFor(*world_, header, there))) return kNoListener;
  for (const PortHolder& holder : all) {
    if (!WantsRequest(holder, header)) continue;
    if (!ip && holder.address.family != kFamilyIb) continue;  // cma_match_net_dev
    *listener = holder.number;
    return holder.process;
  }
  return kNoListener;
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
  for (const IdPointer& id : touched_) {
    const auto found = ids_.find(id->number);
    if (found != ids_.end() && found->second == id) TrackId(*id);  // not one that has gone since
  }
  touched_.clear();
}

// rdma_restrack_add, of those that have a device.
void Manager::TrackId(Identifier& id) const {
  if (!id.HasDevice() || id.removed) return;
  Tracked entry = {};
  entry.type = TrackType::kCmId;
  entry.device = static_cast<uint8_t>(id.place.device);
  entry.kind = id.qp_type;
  entry.state = static_cast<uint8_t>(id.state);
  entry.port = id.place.port;
  entry.qpn = id.qpn;
  entry.port_space = id.port_space;
  WriteAddress(id.source, entry.source);
  WriteAddress(id.target, entry.target);
  TrackEntry(world_->image(), entry, &id.track);
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

namespace {

// The port that a message to the other side comes to.
bool FindArrival(const Identifier& id, Place* place) {
  Address gid;
  gid.family = kFamilyIb;
  std::memcpy(gid.gid, id.path.target, 16);
  const Device& device = *FindDevice(static_cast<uint32_t>(id.place.device));
  return FindPlace(device.world(), device.IsRoce() ? id.target : gid, place);
}

}  // namespace

// rdma_connect
int Manager::Connect(Decision& call, const IdPointer& id, const ConnectionParameters& parameters,
                     const Ece& ece) {
  if (id->state != IdState::kRouteResolved) return call.Refuse(RuleId::rdma_cm_connect_state);
  const bool datagram = id->qp_type == kUd;
  const size_t header = HeaderSize(*id);
  const size_t room = (datagram ? kSidrRequestData : kRequestData) - header;
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
  const uint8_t life = id->path.life;
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
  request.path = id->path;
  request.service = ServiceOf(*id, id->target);
  request.ece = ece;
  if (header != 0) FormatHeader(*id, request.parameters.private_data);
  std::memcpy(request.parameters.private_data + header, parameters.private_data,
              parameters.private_length);
  // cma_format_hdr: the version is the kernel's to write, also over what the program put there.
  request.parameters.private_data[0] = 0;

  // Who listens there?
  uint32_t listener = 0;
  int process = kNoSuchService;
  if (FindArrival(*id, &request.place)) process = FindListener(request, request.place, &listener);
  if (process < 0) {
    Message reply = request;
    reply.kind = datagram ? MessageKind::kSidrReply : MessageKind::kReject;
    const bool unknown = process == kNoSuchService;
    reply.status = datagram ? (unknown ? kSidrUnsupported : kSidrReject)
                            : (unknown ? kUnsupportedService : kConsumerDefined);
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

// In host order.
uint32_t FlowLabel(const Path& path) { return __builtin_bswap32(path.flow); }

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
void Manager::WritePath(const Identifier& id, uint8_t out[32]) const {
  std::memset(out, 0, 32);
  const Path& path = id.path;
  const bool roce = FindDevice(static_cast<uint32_t>(id.place.device))->IsRoce();
  if (roce || path.hop_limit != 0) {
    std::memcpy(out, path.target, 16);
    const uint32_t flow = FlowLabel(path);
    std::memcpy(out + 16, &flow, 4);
    out[20] = id.place.gid_index;
    out[21] = path.hop_limit;
    out[22] = path.traffic_class;
    out[29] = 1;  // is_global
  }
  std::memcpy(out + 24, &path.target_lid, 2);
  out[26] = path.service_level;
  out[28] = path.rate;
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
    manager.Touch(id);
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
      if (id->cm != CmState::kReplySent && id->cm != CmState::kEstablished &&
          id->cm != CmState::kDisconnectSent) {
        break;
      }
      id->cm = CmState::kDisconnectReceived;
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
  place = message.place;
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
  // cma_save_net_info: the family is the listener's.
  const IpHeader header = ReadHeader(message);
  const bool by_gid = listener->source.family == kFamilyIb;
  if (!datagram) {
    id->path = Reversed(message.path, message.service, message.timeout);
  }
  if (by_gid) {
    id->source = id->target = {};
    id->source.family = id->target.family = kFamilyIb;
    if (datagram) {
      id->source = listener->source;
    } else {
      id->source.pkey = id->target.pkey = id->path.pkey;
      id->source.flow = id->target.flow = id->path.flow;
      std::memcpy(id->source.gid, id->path.source, 16);
      std::memcpy(id->target.gid, id->path.target, 16);
      id->source.service = message.service;
      id->source.port = static_cast<uint16_t>(message.service);
    }
    id->source.service_mask = ~0ULL;
  } else {
    id->source = header.target;
    id->target = header.source;
  }
  Attach(id, place);
  std::memcpy(id->source_gid, message.path.target, 16);
  std::memcpy(id->target_gid, message.path.source, 16);
  id->peer_process = message.from_process;
  id->peer = message.from;
  id->peer_qpn = message.parameters.qpn;
  id->peer_psn = message.psn;
  id->service_type = listener->service_type;
  id->initiator_depth = message.parameters.responder_resources;
  id->responder_resources = message.parameters.initiator_depth;
  id->retry_count = message.parameters.retry_count;
  id->rnr_retry_count = message.parameters.rnr_retry_count;
  // cm_req_handler: the life of a packet follows from the requester's timeout.
  const uint8_t life = message.timeout > 0 ? static_cast<uint8_t>(message.timeout - 1) : 0;
  id->timeout = static_cast<uint8_t>(life + 1);
  if (world_->Knob(KnobId::rdma_cm_early_ids) != 0) {
    id->number = FreeNumber();
    ids_[id->number] = id;
    Touch(id);
  } else {
    unnumbered_.push_back(id);
  }
  ConnectionParameters seen = message.parameters;
  seen.responder_resources = message.parameters.initiator_depth;
  seen.initiator_depth = message.parameters.responder_resources;
  const size_t offset = HeaderSize(*listener);
  seen.private_length = static_cast<uint8_t>((datagram ? kSidrRequestData : kRequestData) - offset);
  std::memset(seen.private_data, 0, sizeof(seen.private_data));
  std::memcpy(seen.private_data, message.parameters.private_data + offset, seen.private_length);
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
    WritePath(*id, path);
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
  if (device.IsIwarp()) return call.Unmodelled("multicast groups of iWARP devices");
  if (!device.IsRoce()) return JoinSubnet(call, id, group, uid, member);
  if (group.IsZero()) return call.Refuse(RuleId::rdma_cm_join_address);
  if (id->loopback) return call.Refuse(RuleId::rdma_cm_route_interface);
  constexpr uint8_t kRoceV2 = 2;
  const bool second = DefaultGidType(call.world, device.port(id->place.port)) == kRoceV2;
  if (group.family == AF_INET6 && second) return call.Refuse(RuleId::rdma_cm_join_ipv6);
  if (id->qkey == 0) id->qkey = kDefaultQkey;
  uint8_t mgid[16];
  std::memcpy(mgid, group.gid, sizeof(mgid));
  if (group.family == AF_INET && !second) {  // cma_iboe_set_mgid
    mgid[0] = 0xff;
    mgid[1] = 0x0e;
  }
  uint8_t way[32] = {};
  std::memcpy(way, mgid, 16);
  way[20] = id->place.gid_index;
  way[21] = second && group.family == AF_INET ? kHopLimit : 1;
  way[22] = id->service_type;
  way[26] = id->service_type >> 5;
  way[29] = 1;  // is_global
  way[30] = id->place.port;
  *member = AddMember(id, uid, way);
  return 0;
}

// cma_join_ib_multicast, cma_make_mc_event: ib_init_ah_from_mcmember
int Manager::JoinSubnet(Decision& call, const IdPointer& id, const Address& group, uint64_t uid,
                        uint32_t* member) {
  if (!id->has_broadcast) return call.Refuse(RuleId::rdma_cm_join_broadcast);
  if (group.IsAny()) return call.Unmodelled("a group that the subnet administrator names");
  constexpr uint32_t kBroadcastQkey = 0x0b1b;  // OSM_IPOIB_BROADCAST_MGRP_QKEY
  if (id->qkey == 0) id->qkey = id->port_space == kIpoib ? kBroadcastQkey : kDefaultQkey;
  uint8_t way[32] = {};
  GroupGid(group, id->port_space == kUdp, id->pkey, way);
  const PortImage& port = FindDevice(static_cast<uint32_t>(id->place.device))->port(id->place.port);
  const Group joined = JoinedGroup(port, way);
  way[20] = id->place.gid_index;
  std::memcpy(way + 24, &joined.lid, 2);
  way[28] = joined.rate;
  way[29] = 1;  // is_global
  way[30] = id->place.port;
  *member = AddMember(id, uid, way);
  return 0;
}

uint32_t Manager::AddMember(const IdPointer& id, uint64_t uid, const uint8_t way[32]) {
  uint32_t number = 0;
  while (members_.count(number) != 0) ++number;
  members_[number] = {id, id->file, uid, 0};
  Event event;
  BeginEvent(&event, id, uid, number, CmEvent::kMulticastJoin, 0);
  event.group = number + 1;
  uint8_t* at = event.bytes + kParameters;
  Put32(at, kMulticastQpn);
  Put32(at + 4, id->qkey);
  std::memcpy(at + 8, way, 32);
  id->file->events().push_back(std::move(event));
  id->file->Signal();
  return number;
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
