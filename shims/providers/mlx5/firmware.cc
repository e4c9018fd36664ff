// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/firmware.h"

#include <mutex>

#include "shims/fabric/nic.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/providers/mlx5/firmware_queues.h"
#include "shims/providers/mlx5/schedule.h"
#include "shims/providers/mlx5/window_keys.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

struct IndirectKey final : DevxState {
  uint32_t device = 0, key = 0;
  ~IndirectKey() override {
    std::lock_guard lock(fabric::Lock());
    fabric::RemoveKey(device, key);
    RemoveIndirect(device, key);
  }
};

// A key that work requests fill with pieces of other regions (UMR).
FirmwareAnswer CreateMkey(IoctlCall& call, std::span<const uint8_t> in, std::span<uint8_t> out) {
  const auto mkc = [&](PrmField field) { return PrmGet(in, field.In(prm::kMkey)); };
  if ((mkc(prm::kMkeyAccessLow) | mkc(prm::kMkeyAccessHigh) << 2) != prm::kAccessKlms)
    return Unknown("mlx5: CREATE_MKEY of another kind than KLMs");
  if (mkc(prm::kMkeyBsf) != 0) return Unknown("mlx5: CREATE_MKEY with signatures");
  if (mkc(prm::kMkeyFreeBit) == 0 || mkc(prm::kMkeyUmr) == 0)
    return Unknown("mlx5: CREATE_MKEY that is not left to work requests");
  const auto pd = static_cast<uint32_t>(mkc(prm::kMkeyPd));
  if (const Ownership found = PdState::Find(call.file, pd); found != Ownership::kOwn)
    return NotOwn(found);
  fabric::MemoryKey key = {};
  key.kind = fabric::MemoryKey::Kind::kIndirect;
  key.iova = mkc(prm::kMkeyStartAddress);
  key.length = mkc(prm::kMkeyLen);
  key.pd = pd;
  key.invalidated = true;
  key.remote_invalidate = mkc(prm::kMkeyRemoteInvalidate) != 0;
  auto object = std::make_unique<IndirectKey>();
  const uint32_t index = NextKey(call.file.device()) >> 8;
  object->device = call.file.device().number();
  object->key = index << 8 | static_cast<uint32_t>(mkc(prm::kMkeyTag));
  object->id = EncodedId(PrmOpcode::kCreateMkey, index);
  PrmSet(out, prm::kNumber, index);
  std::lock_guard lock(fabric::Lock());
  fabric::AddKey(object->device, object->key, key);
  AddIndirect(object->device, object->key, static_cast<uint32_t>(mkc(prm::kMkeyTranslations)));
  return {.object = std::move(object)};
}

// Numbers that no queue pair gets: connection managers give them to peers.
FirmwareAnswer ReserveNumbers(IoctlCall& call, std::span<const uint8_t> in,
                              std::span<uint8_t> out) {
  if (PrmGet(in, prm::kObjectRange) != static_cast<uint64_t>(kCaps.log_reserved_qpn_granularity))
    return Unknown("mlx5: reserved queue pair numbers of another range than the granularity");
  constexpr uint32_t kCount = 1u << kCaps.log_reserved_qpn_granularity;
  constexpr int kMostTries = 8 * kCount;
  uint32_t first = call.file.device().NextQpn(), count = 1;
  for (int i = 0; i < kMostTries && count < kCount; ++i) {
    const uint32_t next = call.file.device().NextQpn();
    if (next == first + count) {
      ++count;
    } else {
      first = next, count = 1;
    }
  }
  if (count < kCount) return Fails(PrmStatus::kNoResources);
  auto object = std::make_unique<DevxState>();
  object->id = GeneralId(GeneralObject::kReservedQpn, first);
  PrmSet(out, prm::kOutObjectId, first);
  return {.object = std::move(object)};
}

// Congestion control of an address goes by that of a queue pair; no message shows it.
FirmwareAnswer MapAddress(IoctlCall& call, std::span<const uint8_t> in, std::span<uint8_t> out) {
  constexpr PrmField kQpn = {96, 32};
  const auto qpn = static_cast<uint32_t>(PrmGet(in, kQpn.In(128)));
  {
    std::lock_guard lock(fabric::Lock());
    if (fabric::FindEndpoint(call.file.device().number(), qpn) == nullptr)
      return Unknown("mlx5: AV_QP_MAPPING to a queue pair that is not there");
  }
  auto object = std::make_unique<DevxState>();
  const uint32_t number = call.file.device().NextNumber();
  object->id = GeneralId(GeneralObject::kAvQpMapping, number);
  PrmSet(out, prm::kOutObjectId, number);
  return {.object = std::move(object)};
}

FirmwareAnswer CreateGeneral(IoctlCall& call, std::span<const uint8_t> in, std::span<uint8_t> out) {
  switch (static_cast<GeneralObject>(PrmGet(in, prm::kObjectType))) {
    case GeneralObject::kReservedQpn:
      return ReserveNumbers(call, in, out);
    case GeneralObject::kSchedulingElement:
      return CreateScheduler(call, in, out);
    case GeneralObject::kAvQpMapping:
      return MapAddress(call, in, out);
    default:
      return Unknown("mlx5: CREATE_GENERAL_OBJECT of a type that the NIC does not tell of");
  }
}

// The queue pair must be in RTS. What changes is told by masks; nothing else is looked at.
FirmwareAnswer Rts2Rts(Object& object, std::span<const uint8_t> in) {
  if (object.type != ObjectType::kQp) return Unknown("mlx5: RTS2RTS_QP of a DEVX object");
  QueuePair* pair = StateOf(static_cast<Qp&>(object)).pair.get();
  const uint64_t high = PrmGet(in, prm::kOptionalHigh);
  if (PrmGet(in, prm::kOptional) != 0 || (high & ~(prm::kOptStream | prm::kOptUdpSport)) != 0)
    return Unknown("mlx5: RTS2RTS_QP with other changes than a port or a stream");
  std::lock_guard lock(fabric::Lock());
  if (pair->state != fabric::EndpointState::kRts) return Fails(PrmStatus::kBadResourceState);
  if ((high & prm::kOptUdpSport) != 0) {
    const bool ethernet = static_cast<Qp&>(object).device->image().link == LinkLayer::kEthernet;
    const uint64_t port = PrmGet(in, prm::kPathUdpSport.In(prm::kPrimaryPath));
    if (!ethernet || port < kCaps.roce_min_src_udp_port)
      return Unknown("mlx5: RTS2RTS_QP to a UDP port outside of the NIC's range");
    // No packet shows it.
  }
  if ((high & prm::kOptStream) != 0) {
    const auto stream =
        static_cast<uint16_t>(PrmGet(in, prm::kExtensionStream.In(prm::kQpcExtension)));
    if (PrmGet(in, prm::kQpcExtended) == 0 || !pair->ResetStream(stream))
      return Fails(PrmStatus::kBadResourceState);
  }
  return {.object = nullptr};
}

}  // namespace

FirmwareAnswer FirmwareCreate(IoctlCall& call, std::span<const uint8_t> in,
                              std::span<uint8_t> out) {
  switch (static_cast<PrmOpcode>(PrmGet(in, prm::kOpcode))) {
    case PrmOpcode::kCreateMkey:
      return CreateMkey(call, in, out);
    case PrmOpcode::kCreateGeneralObject:
      return CreateGeneral(call, in, out);
    case PrmOpcode::kCreateCq:
      return CreateCqObject(call, in, out);
    case PrmOpcode::kCreateQp:
      return CreateQpObject(call, in, out);
    default:
      return Unknown("mlx5: DEVX_OBJ.CREATE of this kind of object");
  }
}

FirmwareAnswer FirmwareModify(IoctlCall&, Object& object, std::span<const uint8_t> in,
                              std::span<uint8_t>) {
  if (object.type == ObjectType::kPrivate) {
    auto& own = *static_cast<DevxState*>(object.driver.get());
    if (own.id >> 32 == static_cast<uint64_t>(PrmOpcode::kCreateQp)) return ModifyQpObject(own, in);
  }
  switch (static_cast<PrmOpcode>(PrmGet(in, prm::kOpcode))) {
    case PrmOpcode::kRts2RtsQp:
      return Rts2Rts(object, in);
    case PrmOpcode::kModifyGeneralObject:
      if (static_cast<GeneralObject>(PrmGet(in, prm::kObjectType)) ==
          GeneralObject::kSchedulingElement)
        return ModifyScheduler(*static_cast<DevxState*>(object.driver.get()), in);
      return Unknown("mlx5: MODIFY_GENERAL_OBJECT of this type");
    default:
      return Unknown("mlx5: DEVX_OBJ.MODIFY with this command");
  }
}

FirmwareAnswer FirmwareQuery(IoctlCall&, Object&, std::span<const uint8_t>, std::span<uint8_t>) {
  return Unknown("mlx5: DEVX_OBJ.QUERY");
}

}  // namespace vabi::mlx5
