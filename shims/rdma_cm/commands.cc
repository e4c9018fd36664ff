// SPDX-License-Identifier: BSD-2-Clause
// The commands of core/ucma.c. Offsets are those of include/uapi/rdma/rdma_user_cm.h, which no
// release moved.
#include "shims/rdma_cm/commands.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "shims/rdma_cm/manager.h"
#include "shims/sys/blocking.h"
#include "shims/sys/sys.h"
#include "shims/uverbs/device.h"

namespace vabi::rdma_cm {
namespace {

constexpr size_t kMaxRequest = 512;
constexpr uint32_t kTails = 8;  // bytes that 5.8 put behind some structures

struct Caller {
  Decision& call;
  CmFile& file;
  Manager& manager;
  uint64_t in;
  uint32_t in_length, out_length;
  uint8_t request[kMaxRequest] = {};

  const World& world() const { return call.world; }
  bool HasTails() const { return world().Knob(KnobId::rdma_cm_tails) != 0; }
  uint64_t U64(size_t at) const { return Number<uint64_t>(at); }
  uint32_t U32(size_t at) const { return Number<uint32_t>(at); }
  uint16_t U16(size_t at) const { return Number<uint16_t>(at); }
  // copy_from_user of the structure.
  int Read(size_t size) {
    return sys::CopyFromUser(request, in, size) == 0 ? 0
                                                     : call.Refuse(RuleId::rdma_cm_request_fault);
  }
  int NeedRoom(size_t size) {
    return call.Violates(RuleId::rdma_cm_reply_short, out_length < size)
               ? call.Refuse(RuleId::rdma_cm_reply_short)
               : 0;
  }
  int Reply(uint64_t to, const void* from, size_t size) {
    return trace::Reply(to, from, size) == 0 ? 0 : call.Refuse(RuleId::rdma_cm_reply_fault);
  }
  // ucma_get_ctx, and with a device ucma_get_ctx_dev.
  int Find(uint32_t number, bool with_device, IdPointer* id) {
    *id = manager.Find(number);
    if (*id == nullptr) return call.Refuse(RuleId::rdma_cm_id_none);
    if ((*id)->file != &file) return call.Refuse(RuleId::rdma_cm_id_file);
    if ((*id)->removed) return call.Refuse(RuleId::rdma_cm_id_removed);
    if (!with_device) return 0;
    if (!(*id)->HasDevice()) return call.Refuse(RuleId::rdma_cm_id_device);
    call.record.device = FindDevice(static_cast<uint32_t>((*id)->place.device))->image().name;
    return 0;
  }

 private:
  template <typename Type>
  Type Number(size_t at) const {
    Type value;
    std::memcpy(&value, request + at, sizeof(value));
    return value;
  }
};

constexpr size_t kLongestAddress = 48;  // struct sockaddr_ib

#define VABI_TRY(expression) \
  if (const int error = (expression)) return error

long CreateId(Caller& at) {
  VABI_TRY(at.NeedRoom(4));
  VABI_TRY(at.Read(24));
  // ucma_get_qp_type
  const uint16_t port_space = at.U16(16);
  uint8_t qp_type;
  switch (port_space) {
    case kTcp:
      qp_type = kRc;
      break;
    case kUdp:
    case kIpoib:
      qp_type = kUd;
      break;
    case kIb:
      qp_type = at.request[18];
      break;
    default:
      return at.call.Refuse(RuleId::rdma_cm_port_space);
  }
  const IdPointer id = at.manager.Create(&at.file, at.world());
  id->uid = at.U64(0);
  id->port_space = port_space;
  id->qp_type = qp_type;
  const int error = at.Reply(at.U64(8), &id->number, sizeof(id->number));
  if (error != 0) at.manager.Destroy(id);
  return error;
}

long DestroyId(Caller& at) {
  VABI_TRY(at.NeedRoom(4));
  VABI_TRY(at.Read(16));
  // _ucma_find_context: also one whose device is gone.
  const IdPointer id = at.manager.Find(at.U32(8));
  if (id == nullptr) return at.call.Refuse(RuleId::rdma_cm_id_none);
  if (id->file != &at.file) return at.call.Refuse(RuleId::rdma_cm_id_file);
  const uint32_t reported = at.manager.Destroy(id);
  return at.Reply(at.U64(0), &reported, sizeof(reported));
}

// ucma_bind_ip, ucma_resolve_ip: an address in the room of a sockaddr_in6.
bool FitsIn6(const uint8_t* address) {
  const size_t size = AddressSize(ReadAddress(address).family);
  return size != 0 && size <= 28;
}

long BindIp(Caller& at) {
  VABI_TRY(at.Read(40));
  if (at.call.Violates(RuleId::rdma_cm_address_family, !FitsIn6(at.request + 8)))
    return at.call.Refuse(RuleId::rdma_cm_address_family);
  IdPointer id;
  VABI_TRY(at.Find(at.U32(36), false, &id));
  return at.manager.Bind(at.call, id, ReadAddress(at.request + 8));
}

long Bind(Caller& at) {
  VABI_TRY(at.Read(136));
  const uint16_t size = at.U16(4);
  if (at.call.Violates(
          RuleId::rdma_cm_address_size,
          at.U16(6) != 0 || size == 0 || size != AddressSize(ReadAddress(at.request + 8).family))) {
    return at.call.Refuse(RuleId::rdma_cm_address_size);
  }
  IdPointer id;
  VABI_TRY(at.Find(at.U32(0), false, &id));
  return at.manager.Bind(at.call, id, ReadAddress(at.request + 8));
}

long ResolveIp(Caller& at) {
  VABI_TRY(at.Read(64));
  if (at.call.Violates(RuleId::rdma_cm_address_family,
                       (at.U16(0) != 0 && !FitsIn6(at.request)) || !FitsIn6(at.request + 28))) {
    return at.call.Refuse(RuleId::rdma_cm_address_family);
  }
  IdPointer id;
  VABI_TRY(at.Find(at.U32(56), false, &id));
  return at.manager.ResolveAddress(at.call, id, ReadAddress(at.request),
                                   ReadAddress(at.request + 28), at.U32(60));
}

long ResolveAddress(Caller& at) {
  VABI_TRY(at.Read(272));
  const uint16_t source = at.U16(8), target = at.U16(10);
  const uint8_t* const addresses = at.request + 16;
  if (at.call.Violates(RuleId::rdma_cm_address_size,
                       at.U32(12) != 0 ||
                           (source != 0 && source != AddressSize(ReadAddress(addresses).family)) ||
                           target == 0 ||
                           target != AddressSize(ReadAddress(addresses + 128).family))) {
    return at.call.Refuse(RuleId::rdma_cm_address_size);
  }
  IdPointer id;
  VABI_TRY(at.Find(at.U32(0), false, &id));
  return at.manager.ResolveAddress(at.call, id, ReadAddress(addresses),
                                   ReadAddress(addresses + 128), at.U32(4));
}

long ResolveRoute(Caller& at) {
  VABI_TRY(at.Read(8));
  IdPointer id;
  VABI_TRY(at.Find(at.U32(0), true, &id));
  return at.manager.ResolveRoute(at.call, id, at.U32(4));
}

const Device* DeviceOf(const Identifier& id) {
  return id.HasDevice() ? FindDevice(static_cast<uint32_t>(id.place.device)) : nullptr;
}

void PutBig16(uint8_t* to, uint16_t value) {
  to[0] = static_cast<uint8_t>(value >> 8);
  to[1] = static_cast<uint8_t>(value);
}
void Put64Big(uint8_t* to, uint64_t value) {
  for (int i = 0; i < 8; ++i) to[i] = static_cast<uint8_t>(value >> (56 - 8 * i));
}

constexpr uint8_t kExactly = 2;  // IB_SA_EQ

// The device's part of the replies of QUERY_ROUTE and QUERY: GUID, port; index where it is told.
void PutDevice(const Identifier& id, uint8_t* reply, size_t port_at, size_t index_at) {
  const Device* device = DeviceOf(id);
  if (device == nullptr) return;
  Put64Big(reply, device->image().node_guid);
  reply[port_at] = id.place.port;
  std::memcpy(reply + index_at, &device->image().index, 4);
}

// ucma_query_route: struct rdma_ucm_query_route_resp
long QueryRoute(Caller& at) {
  constexpr size_t kOld = 200;
  VABI_TRY(at.NeedRoom(kOld));
  VABI_TRY(at.Read(16));
  IdPointer id;
  VABI_TRY(at.Find(at.U32(8), false, &id));
  uint8_t reply[kOld + kTails] = {};
  PutDevice(*id, reply, 196, 200);
  // Of AF_IB as much as a sockaddr_in6 has room for.
  uint8_t address[kLongestAddress];
  constexpr size_t kRoom = 28;
  size_t length = WriteAddress(id->source, address);
  std::memcpy(reply + 136, address, std::min(length, kRoom));
  length = WriteAddress(id->target, address);
  std::memcpy(reply + 164, address, std::min(length, kRoom));
  if (const Device* device = DeviceOf(*id); device != nullptr && !device->IsIwarp()) {
    // struct ib_user_path_rec
    uint8_t* path = reply + 8;
    const Path& known = id->path;
    if (known.known) {
      const uint32_t reversible = 1, mtu = known.mtu, paths = 1;
      std::memcpy(path, known.target, 16);
      std::memcpy(path + 16, known.source, 16);
      PutBig16(path + 32, known.target_lid);
      PutBig16(path + 34, known.source_lid);
      std::memcpy(path + 40, &known.flow, 4);
      std::memcpy(path + 44, &reversible, 4);
      std::memcpy(path + 48, &mtu, 4);
      PutBig16(path + 52, known.pkey);
      path[54] = known.hop_limit;
      path[55] = known.traffic_class;
      path[57] = known.service_level;
      path[58] = path[59] = path[61] = kExactly;
      path[60] = known.rate;
      path[62] = known.life;
      std::memcpy(reply + 192, &paths, 4);
    } else if (device->IsRoce()) {  // ucma_copy_iboe_route
      std::memcpy(path, id->target.gid, 16);
      std::memcpy(path + 16, id->source.gid, 16);
      PutBig16(path + 52, 0xffff);
    } else {  // ucma_copy_ib_route
      std::memcpy(path, id->target_gid, 16);
      std::memcpy(path + 16, id->source_gid, 16);
      PutBig16(path + 52, id->pkey);
    }
  }
  const size_t size = kOld + (at.HasTails() ? kTails : 0);
  return at.Reply(at.U64(0), reply, std::min<size_t>(at.out_length, size));
}

// ucma_query_addr and ucma_query_gid: struct rdma_ucm_query_addr_resp
long QueryAddress(Caller& at, const Identifier& id, bool gids) {
  constexpr size_t kOld = 272;
  VABI_TRY(at.NeedRoom(kOld));
  uint8_t reply[kOld + kTails] = {};
  PutDevice(id, reply, 8, 272);
  const uint16_t pkey = id.HasDevice() ? id.pkey : uint16_t{0};
  PutBig16(reply + 10, pkey);
  const Address* const addresses[] = {&id.source, &id.target};
  const bool roce = id.HasDevice() && DeviceOf(id)->IsRoce();
  for (int i = 0; i < 2; ++i) {
    uint8_t* const to = reply + 16 + 128 * i;
    uint16_t size;
    if (!gids || addresses[i]->family == kFamilyIb) {
      size = static_cast<uint16_t>(WriteAddress(*addresses[i], to));
    } else {  // struct sockaddr_ib
      size = 48;
      std::memcpy(to, &kFamilyIb, 2);
      PutBig16(to + 2, pkey);
      const uint8_t* const own = i == 0 ? id.source_gid : id.target_gid;  // rdma_read_gids
      if (id.HasDevice()) std::memcpy(to + 8, roce ? addresses[i]->gid : own, 16);
      // rdma_get_service_id
      Put64Big(to + 24, (static_cast<uint64_t>(id.port_space) << 16) + addresses[i]->port);
    }
    std::memcpy(reply + 12 + 2 * i, &size, 2);
  }
  const size_t size = kOld + (at.HasTails() ? kTails : 0);
  return at.Reply(at.U64(0), reply, std::min<size_t>(at.out_length, size));
}

// ucma_query_path: struct rdma_ucm_query_path_resp with struct ib_path_rec_data, whose record has
// the form of a MAD (ib_sa_pack_path).
long QueryPath(Caller& at, const Identifier& id) {
  constexpr size_t kHead = 8, kRecord = 72;
  VABI_TRY(at.NeedRoom(kHead));
  uint8_t reply[kHead + kRecord] = {};
  const Path& path = id.path;
  const uint32_t paths = path.known ? 1 : 0;
  std::memcpy(reply, &paths, 4);
  size_t size = kHead;
  if (paths != 0 && at.out_length - kHead >= kRecord) {
    size += kRecord;
    uint8_t* const data = reply + kHead;
    data[0] = 1 | 2 | 32;  // IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL
    uint8_t* const record = data + 8;
    Put64Big(record, path.service);
    std::memcpy(record + 8, path.target, 16);
    std::memcpy(record + 24, path.source, 16);
    PutBig16(record + 40, path.target_lid);
    PutBig16(record + 42, path.source_lid);
    std::memcpy(record + 44, &path.flow, 4);
    record[47] = path.hop_limit;
    record[48] = path.traffic_class;
    record[49] = 0x80;  // reversible
    PutBig16(record + 50, path.pkey);
    record[53] = path.service_level;
    record[54] = static_cast<uint8_t>(kExactly << 6 | path.mtu);
    record[55] = static_cast<uint8_t>(kExactly << 6 | path.rate);
    record[56] = static_cast<uint8_t>(kExactly << 6 | path.life);
  }
  return at.Reply(at.U64(0), reply, size);
}

long Query(Caller& at) {
  VABI_TRY(at.Read(16));
  IdPointer id;
  VABI_TRY(at.Find(at.U32(8), false, &id));
  switch (at.U32(12)) {
    case 0:
      return QueryAddress(at, *id, false);
    case 1:
      return QueryPath(at, *id);
    case 2:
      return QueryAddress(at, *id, true);
    default:
      if (at.U32(12) == 3 && at.world().Knob(KnobId::rdma_cm_commands) > 23)
        return at.call.Unmodelled("service records");
      return at.call.Refuse(RuleId::rdma_cm_query_option);
  }
}

// struct rdma_ucm_conn_param; a Q_Key counts for AF_IB alone (ucma_copy_conn_param).
ConnectionParameters ReadParameters(const uint8_t* from, const Identifier& id) {
  ConnectionParameters out;
  uint32_t qpn;
  std::memcpy(&qpn, from, 4);
  out.qpn = qpn & 0xffffff;
  if (id.source.family == kFamilyIb) std::memcpy(&out.qkey, from + 4, 4);
  std::memcpy(out.private_data, from + 8, sizeof(out.private_data));
  out.private_length = from[264];
  out.srq = from[265];
  out.responder_resources = from[266];
  out.initiator_depth = from[267];
  out.flow_control = from[268];
  out.retry_count = from[269];
  out.rnr_retry_count = from[270];
  return out;
}
bool IsValid(const uint8_t* parameters) { return parameters[271] != 0; }

// CONNECT and ACCEPT may end before ece: since 5.8 they are as long as the caller says.
int ReadWithEce(Caller& at, size_t without, Ece* ece) {
  if (!at.HasTails()) return at.Read(without);
  if (at.call.Violates(RuleId::rdma_cm_request_length, at.in_length < without))
    return at.call.Refuse(RuleId::rdma_cm_request_length);
  const size_t size = std::min<size_t>(at.in_length, without + kTails);
  if (const int error = at.Read(size)) return error;
  if (size < without + kTails) return 0;
  ece->vendor_id = at.U32(without);
  ece->attr_mod = at.U32(without + 4);
  return 0;
}

long Connect(Caller& at) {
  Ece ece;
  VABI_TRY(ReadWithEce(at, 280, &ece));
  if (at.call.Violates(RuleId::rdma_cm_connect_valid, !IsValid(at.request)))
    return at.call.Refuse(RuleId::rdma_cm_connect_valid);
  IdPointer id;
  VABI_TRY(at.Find(at.U32(272), true, &id));
  return at.manager.Connect(at.call, id, ReadParameters(at.request, *id), ece);
}

long Listen(Caller& at) {
  VABI_TRY(at.Read(8));
  IdPointer id;
  VABI_TRY(at.Find(at.U32(0), false, &id));
  const auto most = static_cast<int32_t>(at.world().Knob(KnobId::rdma_cm_max_backlog));
  const auto asked = static_cast<int32_t>(at.U32(4));
  id->backlog = static_cast<uint32_t>(asked <= 0 || asked > most ? most : asked);
  return at.manager.Listen(at.call, id);
}

long Accept(Caller& at) {
  Ece ece;
  VABI_TRY(ReadWithEce(at, 288, &ece));
  IdPointer id;
  VABI_TRY(at.Find(at.U32(280), true, &id));
  const uint8_t* const from = at.request + 8;
  if (!IsValid(from)) return at.manager.Accept(at.call, id, nullptr, ece);
  const ConnectionParameters parameters = ReadParameters(from, *id);
  const long result = at.manager.Accept(at.call, id, &parameters, ece);
  if (result == 0) id->uid = at.U64(0);
  return result;
}

long Reject(Caller& at) {
  VABI_TRY(at.Read(264));
  constexpr uint8_t kConsumerDefined = 28, kVendorOption = 35;  // enum ib_cm_rej_reason
  uint8_t reason = at.HasTails() ? at.request[5] : 0;
  if (reason == 0) reason = kConsumerDefined;
  if (at.call.Violates(RuleId::rdma_cm_reject_reason,
                       reason != kConsumerDefined && reason != kVendorOption)) {
    return at.call.Refuse(RuleId::rdma_cm_reject_reason);
  }
  IdPointer id;
  VABI_TRY(at.Find(at.U32(0), true, &id));
  return at.manager.Reject(at.call, id, at.request + 8, at.request[4], reason);
}

long Disconnect(Caller& at) {
  VABI_TRY(at.Read(4));
  IdPointer id;
  VABI_TRY(at.Find(at.U32(0), true, &id));
  return at.manager.Disconnect(at.call, id);
}

// enum ib_qp_attr_mask
constexpr uint32_t kState = 1, kAccess = 1 << 3, kPkeyIndex = 1 << 4, kPort = 1 << 5,
                   kQkey = 1 << 6, kAv = 1 << 7, kPathMtu = 1 << 8, kTimeout = 1 << 9,
                   kRetryCount = 1 << 10, kRnrRetry = 1 << 11, kRqPsn = 1 << 12,
                   kMaxRdAtomic = 1 << 13, kMinRnrTimer = 1 << 15, kSqPsn = 1 << 16,
                   kMaxDestRdAtomic = 1 << 17, kDestQpn = 1 << 20;

// Where struct ib_uverbs_qp_attr has what the connection manager fills.
struct QpAttributes {
  uint8_t bytes[144] = {};
  void Put32(size_t at, uint32_t value) { std::memcpy(bytes + at, &value, 4); }
  void set_mask(uint32_t mask) { Put32(0, mask); }
};

// rdma_init_qp_attr: what a queue pair needs to enter the state.
int FillQpAttributes(Caller& at, const Identifier& id, uint32_t state, QpAttributes* out) {
  constexpr uint32_t kInit = 1, kRtr = 2, kRts = 3;
  out->Put32(4, state);
  if (id.cm == CmState::kNone || id.qp_type == kUd) {  // cma_ib_init_qp_attr
    out->bytes[133] = id.place.port;
    const Device& device = *FindDevice(static_cast<uint32_t>(id.place.device));
    uint16_t index = 0;
    if (!device.IsRoce()) FindPkey(device.port(id.place.port), id.pkey, &index);
    std::memcpy(out->bytes + 124, &index, 2);
    if (id.qp_type == kUd) {
      out->Put32(20, id.qkey != 0 ? id.qkey : 0x01234567);
      out->set_mask(kState | kPkeyIndex | kPort | kQkey);
    } else {
      out->set_mask(kState | kPkeyIndex | kPort | kAccess);
    }
    if (state == kRtr) out->Put32(24, id.psn);
    return 0;
  }
  // ib_cm_init_qp_attr
  const bool asked = id.cm == CmState::kRequestSent || id.cm == CmState::kRequestReceived;
  const bool answered = id.cm == CmState::kReplyReceived || id.cm == CmState::kReplySent ||
                        id.cm == CmState::kEstablished;
  const bool reliable = id.qp_type == kRc;
  if (state == kInit) {
    if (!asked && !answered) return at.call.Refuse(RuleId::rdma_cm_qp_attr_state);
    constexpr uint32_t kRemoteWrite = 2, kRemoteRead = 4, kRemoteAtomic = 8;
    out->Put32(36, kRemoteWrite | (id.responder_resources != 0 ? kRemoteRead | kRemoteAtomic : 0));
    out->bytes[133] = id.place.port;
    out->set_mask(kState | kAccess | kPkeyIndex | kPort);
    return 0;
  }
  const bool ready = answered || id.cm == CmState::kRequestReceived;
  if (state == kRtr) {
    if (!ready) return at.call.Refuse(RuleId::rdma_cm_qp_attr_state);
    out->Put32(12, id.path.mtu);
    out->Put32(24, id.psn);
    out->Put32(32, id.peer_qpn);
    at.manager.WritePath(id, out->bytes + 40);
    uint32_t mask = kState | kAv | kPathMtu | kDestQpn | kRqPsn;
    if (reliable) {
      mask |= kMaxDestRdAtomic | kMinRnrTimer;
      out->bytes[131] = id.responder_resources;
    }
    out->set_mask(mask);
    return 0;
  }
  if (state == kRts) {
    if (!ready) return at.call.Refuse(RuleId::rdma_cm_qp_attr_state);
    out->Put32(28, id.peer_psn);
    uint32_t mask = kState | kSqPsn;
    if (reliable) {
      mask |= kRetryCount | kRnrRetry | kMaxRdAtomic | kTimeout;
      out->bytes[135] = id.retry_count;
      out->bytes[136] = id.rnr_retry_count;
      out->bytes[130] = id.initiator_depth;
      out->bytes[134] = id.ack_timeout_set ? id.ack_timeout : id.timeout;
    }
    out->set_mask(mask);
    return 0;
  }
  // ib_cm_init_qp_attr: other states are none of its business.
  return at.call.Refuse(RuleId::rdma_cm_qp_attr_state);
}

long InitQpAttributes(Caller& at) {
  VABI_TRY(at.NeedRoom(144));
  VABI_TRY(at.Read(16));
  constexpr uint32_t kError = 6;
  const uint32_t state = at.U32(12);
  if (at.call.Violates(RuleId::rdma_cm_qp_state, state > kError))
    return at.call.Refuse(RuleId::rdma_cm_qp_state);
  IdPointer id;
  VABI_TRY(at.Find(at.U32(8), true, &id));
  QpAttributes reply;
  VABI_TRY(FillQpAttributes(at, *id, state, &reply));
  return at.Reply(at.U64(0), reply.bytes, sizeof(reply.bytes));
}

long SetIdOption(Caller& at, const IdPointer& id, const std::vector<uint8_t>& value,
                 uint32_t name) {
  constexpr uint32_t kServiceType = 0, kReuse = 1, kFamilyOnly = 2, kAckTimeout = 3;
  const bool known =
      name <= kFamilyOnly ||
      (name == kAckTimeout && at.world().Rule(RuleId::rdma_cm_option_service).on != 0);
  if (!known) return at.call.Refuse(RuleId::rdma_cm_option_unknown);
  const size_t size = name == kServiceType || name == kAckTimeout ? 1 : 4;
  if (at.call.Violates(RuleId::rdma_cm_option_length, value.size() != size))
    return at.call.Refuse(RuleId::rdma_cm_option_length);
  const bool set = std::any_of(value.begin(), value.end(), [](uint8_t byte) { return byte != 0; });
  const bool idle = id->state == IdState::kIdle;
  switch (name) {
    case kServiceType:
      id->service_type = value.empty() ? 0 : value[0];
      return 0;
    case kReuse:
      if (at.call.Violates(RuleId::rdma_cm_option_state,
                           !idle && !(set && id->state != IdState::kListen))) {
        return at.call.Refuse(RuleId::rdma_cm_option_state);
      }
      id->reuse = set;
      break;
    case kFamilyOnly:
      if (at.call.Violates(RuleId::rdma_cm_option_state,
                           !idle && id->state != IdState::kAddressBound)) {
        return at.call.Refuse(RuleId::rdma_cm_option_state);
      }
      id->family_only = set;
      id->family_only_set = true;
      break;
    default:
      if (at.call.Violates(RuleId::rdma_cm_option_service,
                           id->qp_type != kRc && id->qp_type != kXrcInitiator)) {
        return at.call.Refuse(RuleId::rdma_cm_option_service);
      }
      id->ack_timeout = value.empty() ? 0 : value[0];
      id->ack_timeout_set = true;
      return 0;
  }
  if (id->bound_port != 0) at.manager.Changed();
  return 0;
}

// ucma_set_ib_path: the first record that is good for everything (struct ib_path_rec_data).
long SetPath(Caller& at, const IdPointer& id, const std::vector<uint8_t>& value) {
  constexpr size_t kRecord = 72;
  constexpr uint32_t kAll = 1 | 2 | 32;  // IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL
  const uint8_t* record = nullptr;
  for (size_t i = 0; i + kRecord <= value.size() && record == nullptr; i += kRecord) {
    uint32_t flags;
    std::memcpy(&flags, value.data() + i, 4);
    if (flags == kAll) record = value.data() + i + 8;
  }
  if (value.size() % kRecord != 0 || record == nullptr)
    return at.call.Refuse(RuleId::rdma_cm_option_path);
  const auto big16 = [&](size_t offset) {
    return static_cast<uint16_t>(record[offset] << 8 | record[offset + 1]);
  };
  Path path;  // ib_sa_unpack_path
  for (int i = 0; i < 8; ++i) path.service = path.service << 8 | record[i];
  std::memcpy(path.target, record + 8, 16);
  std::memcpy(path.source, record + 24, 16);
  path.target_lid = big16(40);
  path.source_lid = big16(42);
  const uint8_t flow[4] = {0, static_cast<uint8_t>(record[44] & 0x0f), record[45], record[46]};
  std::memcpy(&path.flow, flow, 4);
  path.hop_limit = record[47];
  path.traffic_class = record[48];
  path.pkey = big16(50);
  path.service_level = record[53] & 0x0f;
  path.mtu = record[54] & 0x3f;
  path.rate = record[55] & 0x3f;
  path.life = record[56] & 0x3f;
  return at.manager.SetPath(at.call, id, path);
}

long SetOption(Caller& at) {
  VABI_TRY(at.Read(24));
  constexpr uint32_t kMost = 4 << 20;  // KMALLOC_MAX_SIZE
  const uint32_t size = at.U32(20);
  if (size > kMost) return at.call.Refuse(RuleId::rdma_cm_option_size);
  IdPointer id;
  VABI_TRY(at.Find(at.U32(8), false, &id));
  std::vector<uint8_t> value(size);
  if (sys::CopyFromUser(value.data(), at.U64(0), size) != 0)
    return at.call.Refuse(RuleId::rdma_cm_option_fault);
  constexpr uint32_t kId = 0, kIbLevel = 1, kIbPath = 1;
  if (at.U32(12) == kId) return SetIdOption(at, id, value, at.U32(16));
  if (at.U32(12) == kIbLevel && at.U32(16) == kIbPath) return SetPath(at, id, value);
  return at.call.Refuse(RuleId::rdma_cm_option_unknown);
}

long Notify(Caller& at) {
  VABI_TRY(at.Read(8));
  IdPointer id;
  VABI_TRY(at.Find(at.U32(0), true, &id));
  if (id->cm == CmState::kNone) return at.call.Refuse(RuleId::rdma_cm_no_connection);
  return at.call.Unmodelled("an event that the program tells the connection manager");
}

long Join(Caller& at, uint64_t response, uint64_t uid, uint32_t number, const uint8_t* address,
          uint16_t flags) {
  VABI_TRY(at.NeedRoom(4));
  if (at.call.Violates(RuleId::rdma_cm_join_flags, flags > 1))
    return at.call.Refuse(RuleId::rdma_cm_join_flags);
  IdPointer id;
  VABI_TRY(at.Find(number, true, &id));
  uint32_t member = 0;
  VABI_TRY(at.manager.Join(at.call, id, ReadAddress(address), flags == 1, uid, &member));
  const int error = at.Reply(response, &member, sizeof(member));
  uint32_t reported;
  if (error != 0) at.manager.Leave(at.call, &at.file, member, &reported);
  return error;
}

long JoinIp(Caller& at) {
  VABI_TRY(at.Read(48));
  if (at.call.Violates(RuleId::rdma_cm_join_address, !FitsIn6(at.request + 16)))
    return at.call.Refuse(RuleId::rdma_cm_join_address);
  return Join(at, at.U64(0), at.U64(8), at.U32(44), at.request + 16, 0);
}

long JoinGroup(Caller& at) {
  VABI_TRY(at.Read(152));
  const size_t size = AddressSize(ReadAddress(at.request + 24).family);
  if (at.call.Violates(RuleId::rdma_cm_join_address, size == 0 || at.U16(20) != size))
    return at.call.Refuse(RuleId::rdma_cm_join_address);
  return Join(at, at.U64(0), at.U64(8), at.U32(16), at.request + 24, at.U16(22));
}

long Leave(Caller& at) {
  VABI_TRY(at.NeedRoom(4));
  VABI_TRY(at.Read(16));
  uint32_t reported = 0;
  VABI_TRY(at.manager.Leave(at.call, &at.file, at.U32(8), &reported));
  return at.Reply(at.U64(0), &reported, sizeof(reported));
}

// The identifier of another file comes over to this one, with its events.
long Migrate(Caller& at) {
  VABI_TRY(at.Read(16));
  const std::shared_ptr<File> any = FdTable::Get(static_cast<int>(at.U32(12)));
  if (any == nullptr) return at.call.Refuse(RuleId::rdma_cm_migrate_none);
  const std::shared_ptr<CmFile> from = CmFile::From(any);
  if (from == nullptr) return at.call.Refuse(RuleId::rdma_cm_migrate_file);
  const IdPointer id = at.manager.Find(at.U32(8));
  if (id == nullptr) return at.call.Refuse(RuleId::rdma_cm_id_none);
  if (id->file != from.get()) return at.call.Refuse(RuleId::rdma_cm_id_file);
  if (from.get() != &at.file) {
    auto& old = from->events();
    for (Event& event : old) {
      if (event.about == id) at.file.events().push_back(event);
    }
    std::erase_if(old, [&](const Event& event) { return event.about == id; });
    from->Signal();
    at.file.Signal();
    id->file = &at.file;
  }
  return at.Reply(at.U64(0), &id->events_reported, sizeof(id->events_reported));
}

// ucma_get_event, once there is one.
long TakeEvent(Caller& at) {
  const size_t size = Event::kSize - (at.HasTails() ? 0 : kTails);
  Event& event = at.file.events().front();
  if (event.request != nullptr && at.world().Knob(KnobId::rdma_cm_early_ids) == 0) {
    at.manager.NumberLate(event.request);
    std::memcpy(event.bytes + 8, &event.request->number, 4);
  }
  VABI_TRY(at.Reply(at.U64(0), event.bytes, std::min<size_t>(at.out_length, size)));
  ++event.about->events_reported;
  if (event.group != 0) at.manager.CountGroupEvent(event.group - 1);
  if (event.request != nullptr) ++event.about->backlog;
  at.file.events().pop_front();
  at.file.Signal();
  return 0;
}

// Waits without the lock.
long GetEvent(Decision& call, CmFile& file, uint64_t in, uint32_t in_length, uint32_t out_length) {
  Manager& manager = Manager::Get();
  Caller at{call, file, manager, in, in_length, out_length};
  constexpr size_t kLeast = Event::kSize - kTails - 4;  // without ece and what is reserved
  VABI_TRY(at.NeedRoom(kLeast));
  VABI_TRY(at.Read(8));
  for (;;) {
    uint32_t turn;
    {
      const auto lock = manager.Lock();
      if (!file.events().empty()) return TakeEvent(at);
      turn = file.turns().now();
    }
    if (sys::IsNonBlocking(file.backing_fd())) return call.Refuse(RuleId::rdma_cm_event_again);
    if (const int waited = file.turns().WaitFor(turn)) return waited;
  }
}

struct CommandRow {
  const char* name;
  long (*run)(Caller&);
};
constexpr CommandRow kCommands[] = {
    {"CREATE_ID", CreateId},
    {"DESTROY_ID", DestroyId},
    {"BIND_IP", BindIp},
    {"RESOLVE_IP", ResolveIp},
    {"RESOLVE_ROUTE", ResolveRoute},
    {"QUERY_ROUTE", QueryRoute},
    {"CONNECT", Connect},
    {"LISTEN", Listen},
    {"ACCEPT", Accept},
    {"REJECT", Reject},
    {"DISCONNECT", Disconnect},
    {"INIT_QP_ATTR", InitQpAttributes},
    {"GET_EVENT", nullptr},
    {"GET_OPTION", nullptr},
    {"SET_OPTION", SetOption},
    {"NOTIFY", Notify},
    {"JOIN_IP_MCAST", JoinIp},
    {"LEAVE_MCAST", Leave},
    {"MIGRATE_ID", Migrate},
    {"QUERY", Query},
    {"BIND", Bind},
    {"RESOLVE_ADDR", ResolveAddress},
    {"JOIN_MCAST", JoinGroup},
    {"RESOLVE_IB_SERVICE", nullptr},
    {"WRITE_CM_EVENT", nullptr},
};
constexpr uint32_t kGetEvent = 12, kGetOption = 13;

}  // namespace

long RunCommand(Decision& call, CmFile& file, uint32_t command, uint64_t in, uint32_t in_length,
                uint32_t out_length) {
  if (command >= std::size(kCommands)) return call.Refuse(RuleId::rdma_cm_command_range);
  const CommandRow& row = kCommands[command];
  std::snprintf(call.record.name, sizeof(call.record.name), "rdma_cm:%s", row.name);
  if (command == kGetOption) return call.Refuse(RuleId::rdma_cm_command_absent);
  if (command == kGetEvent) return GetEvent(call, file, in, in_length, out_length);
  if (row.run == nullptr) return call.Unmodelled("a command that came after 6.17");
  Manager& manager = Manager::Get();
  const auto lock = manager.Lock();
  Caller at{call, file, manager, in, in_length, out_length};
  const long result = row.run(at);
  manager.Drain();
  return result;
}

}  // namespace vabi::rdma_cm
