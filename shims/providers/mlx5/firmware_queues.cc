// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/firmware_queues.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "shims/fabric/address.h"
#include "shims/fabric/nic.h"
#include "shims/fabric/remote.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/doorbell.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

using Name = std::pair<uint32_t, uint32_t>;  // device, number

struct CqObject;

// By name: memory and completion queues. Guarded by the mutex.
struct Registry {
  std::mutex mutex;
  std::map<Name, UmemState*> memory;
  std::map<Name, CqObject*> queues;
};
Registry& All() {
  static auto* const registry = new Registry();  // files may be closed while the process ends
  return *registry;
}

// create_cq_in, cqc
constexpr uint16_t kCqc = 128;
constexpr PrmField kCqSize = PrmField{8, 3}.In(kCqc), kCqIgnoreOverrun = PrmField{14, 1}.In(kCqc),
                   kCqCompresses = PrmField{17, 1}.In(kCqc), kCqRecord = PrmField{32, 32}.In(kCqc),
                   kCqLogSize = PrmField{99, 5}.In(kCqc), kCqUar = PrmField{104, 24}.In(kCqc),
                   kCqEqn = PrmField{184, 8}.In(kCqc), kCqRecordOffset = PrmField{448, 64}.In(kCqc),
                   kCqOffset = {640, 64}, kCqMemory = {704, 32};
// create_qp_in, qpc
constexpr PrmField kQpOffset = {2048, 64}, kQpMemory = {2112, 32};
constexpr PrmField Qpc(uint16_t bit, uint16_t width) { return PrmField{bit, width}.In(prm::kQpc); }
constexpr PrmField Path(uint16_t bit, uint16_t width) {
  return PrmField{bit, width}.In(prm::kPrimaryPath);
}

// A part of registered memory, which stays as long as this.
class Place {
 public:
  Place() = default;
  Place(const UverbsFile& file, uint64_t number, uint64_t offset, uint64_t size) {
    std::lock_guard lock(All().mutex);
    const auto found = All().memory.find({file.device().number(), static_cast<uint32_t>(number)});
    if (found == All().memory.end()) return;
    UmemState& memory = *found->second;
    if (memory.owner != &file) found_ = Ownership::kForeign;
    if (found_ == Ownership::kForeign || offset > memory.length || size > memory.length - offset)
      return;
    memory_ = &memory;
    ++memory.users;
    address_ = memory.address + offset;
    found_ = Ownership::kOwn;
  }
  ~Place() {
    if (memory_ == nullptr) return;
    std::lock_guard lock(All().mutex);
    --memory_->users;
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  // None: no such memory, or not so much of it.
  Ownership found() const { return found_; }
  uint64_t address() const { return address_; }

 private:
  Ownership found_ = Ownership::kNone;
  UmemState* memory_ = nullptr;
  uint64_t address_ = 0;
};
using PlacePtr = std::unique_ptr<const Place>;
Ownership Both(const Place& one, const Place& other) {
  return one.found() != Ownership::kOwn ? one.found() : other.found();
}

struct CqObject final : DevxState {
  const UverbsFile* owner = nullptr;
  uint32_t device = 0;
  PlacePtr buffer, record;
  std::unique_ptr<CompletionQueue> queue;
  ~CqObject() override {
    if (queue == nullptr) return;
    std::lock_guard lock(All().mutex);
    All().queues.erase({device, queue->number()});
  }
};

struct QpObject final : DevxState {
  PlacePtr buffer, record;
  std::unique_ptr<QueuePair> pair;
  ~QpObject() override {
    if (pair == nullptr) return;
    Unwatch(pair.get());
    {
      std::lock_guard lock(fabric::Lock());
      fabric::RemoveEndpoint(pair.get());
    }
    fabric::Unattend();
  }
};

// Has the context a doorbell page of that number?
bool HasUar(const ContextState& context, uint64_t number) {
  const auto is_uar = [](const MapEntry& entry) {
    return entry.kind == MapEntry::Kind::kUarWriteCombining ||
           entry.kind == MapEntry::Kind::kUarNonCached;
  };
  return std::any_of(context.uars.begin(), context.uars.end(),
                     [&](uint32_t first) {
                       return first != kInvalidUar && number >= first &&
                              number - first < kUarsInPage;
                     }) ||
         std::any_of(context.entries.begin(), context.entries.end(), [&](const auto& entry) {
           return is_uar(entry.second) && entry.second.page_index == number;
         });
}

// Of those that CREATE_CQ made for the context.
CompletionQueue* FindQueue(const UverbsFile& file, uint64_t number) {
  std::lock_guard lock(All().mutex);
  const auto found = All().queues.find({file.device().number(), static_cast<uint32_t>(number)});
  if (found == All().queues.end() || found->second->owner != &file) return nullptr;
  return found->second->queue.get();
}

}  // namespace

UmemState::UmemState(const UverbsFile& file, uint32_t number, uint64_t at, uint64_t size)
    : owner(&file), device(file.device().number()), id(number), address(at), length(size) {
  std::lock_guard lock(All().mutex);
  All().memory[{device, id}] = this;
}

UmemState::~UmemState() {
  std::lock_guard lock(All().mutex);
  All().memory.erase({device, id});
}

bool InUse(const UmemState& memory) {
  std::lock_guard lock(All().mutex);
  return memory.users != 0;
}

FirmwareAnswer CreateCqObject(IoctlCall& call, std::span<const uint8_t> in,
                              std::span<uint8_t> out) {
  const uint32_t device = call.file.device().number();
  const uint64_t kind = PrmGet(in, kCqSize);
  if (kind > 2 || PrmGet(in, kCqCompresses) != 0)
    return Unknown("mlx5: CREATE_CQ of elements that the NIC does not tell of");
  const uint64_t log_size = PrmGet(in, kCqLogSize);
  if (log_size > static_cast<uint64_t>(kCaps.log_max_cq_sz)) return Fails(PrmStatus::kBadParameter);
  const uint64_t vector = PrmGet(in, kCqEqn) - kFirstEqn;
  if (!HasUar(ContextOf(call.file), PrmGet(in, kCqUar)) ||
      vector >= call.file.device().comp_vectors()) {
    return Unknown("mlx5: CREATE_CQ with a UAR that the context has not, or an EQ that is none");
  }
  CompletionQueue::Geometry geometry = {};
  geometry.entries = 1u << log_size;
  geometry.cqe_size = kind == 0 ? 64 : 128;
  geometry.pads = kind == 2;
  const uint64_t bytes = uint64_t{geometry.entries} * geometry.cqe_size;
  auto object = std::make_unique<CqObject>();
  object->buffer =
      std::make_unique<Place>(call.file, PrmGet(in, kCqMemory), PrmGet(in, kCqOffset), bytes);
  object->record =
      std::make_unique<Place>(call.file, PrmGet(in, kCqRecord), PrmGet(in, kCqRecordOffset), 8);
  if (const Ownership found = Both(*object->buffer, *object->record); found != Ownership::kOwn)
    return NotOwn(found);
  geometry.buffer = object->buffer->address();
  geometry.doorbell = object->record->address();
  const uint32_t number = call.file.device().NextNumber() & 0xffffff;
  object->owner = &call.file;
  object->device = device;
  object->id = EncodedId(PrmOpcode::kCreateCq, number);
  {
    std::lock_guard lock(fabric::Lock());
    object->queue = std::make_unique<CompletionQueue>(number, geometry, nullptr,
                                                      PrmGet(in, kCqIgnoreOverrun) != 0);
  }
  PrmSet(out, prm::kNumber, number);
  std::lock_guard lock(All().mutex);
  All().queues[{device, number}] = object.get();
  return {.object = std::move(object)};
}

FirmwareAnswer CreateQpObject(IoctlCall& call, std::span<const uint8_t> in,
                              std::span<uint8_t> out) {
  const uint32_t device = call.file.device().number();
  const auto get = [&](PrmField field) { return PrmGet(in, field); };
  if (get(Qpc(8, 8)) != 0) return Unknown("mlx5: CREATE_QP of another service than RC");
  if (get(Qpc(1381, 3)) != 0 || get(Qpc(80, 1)) != 0 || get(Qpc(32, 1)) != 0)
    return Unknown("mlx5: CREATE_QP with an SRQ, without a send queue or with signatures");
  if (!HasUar(ContextOf(call.file), get(Qpc(104, 24))))
    return Unknown("mlx5: CREATE_QP with a UAR that the context has not");
  const auto pd = static_cast<uint32_t>(get(Qpc(40, 24)));
  if (const Ownership found = PdState::Find(call.file, pd); found != Ownership::kOwn)
    return NotOwn(found);
  QueuePair::Parts parts;
  parts.send_cq = FindQueue(call.file, get(Qpc(1000, 24)));
  parts.recv_cq = FindQueue(call.file, get(Qpc(1256, 24)));
  if (parts.send_cq == nullptr || parts.recv_cq == nullptr)
    return Unknown("mlx5: CREATE_QP on a completion queue that no CREATE_CQ of the context made");
  parts.receive.count = 1u << get(Qpc(73, 4));
  parts.receive.shift = static_cast<uint32_t>(get(Qpc(77, 3))) + 4;
  parts.send.blocks = 1u << get(Qpc(81, 4));
  const uint64_t receives = uint64_t{parts.receive.count} << parts.receive.shift;
  const uint64_t sends = uint64_t{parts.send.blocks} * kBlock;
  auto object = std::make_unique<QpObject>();
  object->buffer =
      std::make_unique<Place>(call.file, get(kQpMemory), get(kQpOffset), receives + sends);
  object->record = std::make_unique<Place>(call.file, get(Qpc(1824, 32)), get(Qpc(1280, 64)), 8);
  if (const Ownership found = Both(*object->buffer, *object->record); found != Ownership::kOwn)
    return NotOwn(found);
  const uint64_t buffer = object->buffer->address(), record = object->record->address();
  parts.receive.buffer = buffer;
  parts.receive.doorbell = record + kReceiveRecord;
  parts.send.buffer = buffer + receives;
  parts.send.doorbell = record;
  parts.user_indices = true;
  parts.user_index = static_cast<uint32_t>(get(Qpc(136, 24)));
  object->pair = std::make_unique<QueuePair>(parts);
  QueuePair& pair = *object->pair;
  pair.device = device;
  pair.qpn = call.file.device().NextQpn();
  pair.pd = pd;
  pair.service = fabric::Service::kRc;
  object->id = EncodedId(PrmOpcode::kCreateQp, pair.qpn);
  PrmSet(out, prm::kNumber, pair.qpn);
  {
    std::lock_guard lock(fabric::Lock());
    fabric::AddEndpoint(&pair);
  }
  Watch(&pair);
  return {.object = std::move(object)};
}

FirmwareAnswer ModifyQpObject(DevxState& state, std::span<const uint8_t> in) {
  enum : uint64_t {
    kRst2Init = 0x502,
    kInit2Rtr = 0x503,
    kRtr2Rts = 0x504,
    k2Err = 0x507,
    k2Rst = 0x50a
  };
  using fabric::EndpointState;
  QueuePair& pair = *static_cast<QpObject&>(state).pair;
  const auto get = [&](PrmField field) { return PrmGet(in, field); };
  const auto opcode = get(prm::kOpcode);
  {
    std::lock_guard lock(fabric::Lock());
    const EndpointState now = pair.state;
    switch (opcode) {
      case kRst2Init:
        if (now != EndpointState::kReset) return Fails(PrmStatus::kBadResourceState);
        pair.access = (get(Qpc(1168, 1)) != 0 ? fabric::kAccessRemoteRead : 0) |
                      (get(Qpc(1169, 1)) != 0 ? fabric::kAccessRemoteWrite : 0) |
                      (get(Qpc(1170, 1)) != 0 ? fabric::kAccessRemoteAtomic : 0);
        pair.port = static_cast<uint8_t>(get(Path(296, 8)));
        pair.state = EndpointState::kInit;
        break;
      case kInit2Rtr: {
        if (now != EndpointState::kInit) return Fails(PrmStatus::kBadResourceState);
        pair.mtu = 128u << get(Qpc(64, 3));
        pair.dest_qpn = static_cast<uint32_t>(get(Qpc(168, 24)));
        pair.min_rnr_timer = static_cast<uint8_t>(get(Qpc(1187, 5)));
        pair.rq_psn = static_cast<uint32_t>(get(Qpc(1192, 24)));
        pair.max_dest_rd_atomic = static_cast<uint8_t>(1u << get(Qpc(1160, 3)));
        pair.checks_psn = true;
        fabric::AddressVector& address = pair.address;
        address.dlid = static_cast<uint16_t>(get(Path(48, 16)));
        address.is_global = get(Path(40, 1)) != 0 || !fabric::IsInfiniband(pair.device, pair.port);
        address.sgid_index = static_cast<uint8_t>(get(Path(72, 8)));
        for (uint16_t i = 0; i < 16; ++i)
          address.dgid[i] = static_cast<uint8_t>(get(Path(static_cast<uint16_t>(128 + 8 * i), 8)));
        fabric::SendAs(&pair, address.sgid_index);
        pair.state = EndpointState::kRtr;
        break;
      }
      case kRtr2Rts:
        if (now != EndpointState::kRtr) return Fails(PrmStatus::kBadResourceState);
        pair.retry_count = static_cast<uint8_t>(get(Qpc(909, 3)));
        pair.rnr_retry = static_cast<uint8_t>(get(Qpc(912, 3)));
        pair.sq_psn = static_cast<uint32_t>(get(Qpc(968, 24)));
        pair.max_rd_atomic = static_cast<uint8_t>(1u << get(Qpc(904, 3)));
        pair.timeout = static_cast<uint8_t>(get(Path(64, 5)));
        pair.state = EndpointState::kRts;
        break;
      case k2Err:
        pair.ToError();
        break;
      case k2Rst:
        pair.Reset();
        pair.state = EndpointState::kReset;
        break;
      default:
        return Unknown("mlx5: DEVX_OBJ.MODIFY of a queue pair with this command");
    }
  }
  fabric::Kick();
  fabric::Attend(pair);
  return {.object = nullptr};
}

}  // namespace vabi::mlx5
