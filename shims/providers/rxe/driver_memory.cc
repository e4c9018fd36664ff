// SPDX-License-Identifier: BSD-2-Clause
// Memory regions and windows, address handles.
#include <errno.h>

#include <mutex>

#include "shims/fabric/address.h"
#include "shims/fabric/memory.h"
#include "shims/fabric/window.h"
#include "shims/providers/common/udata.h"
#include "shims/providers/rxe/driver.h"
#include "shims/sys/sys.h"

namespace vabi::rxe {
namespace {

using fabric::MemoryKey;

// enum ib_access_flags
constexpr uint32_t kRemote = 2 | 4 | 8, kWritable = 1 | 2 | 8 | 16, kOnDemand = 64,
                   kFlushPersistent = 1 << 9;
// RXE_ACCESS_SUPPORTED_MR: LOCAL_WRITE, the remote three, MW_BIND, ON_DEMAND, FLUSH_*, and the
// optional range
constexpr uint32_t kSupported = 0x35f | 0x3ff00000;
// enum ib_mr_rereg_flags
constexpr uint32_t kReregPd = 2, kReregAccess = 4;

// The low byte of a key. rxe takes a random one; here it depends on the index, so that runs are
// alike.
uint32_t KeyOf(uint32_t index) { return index << 8 | ((index * 37 + 11) & 0xff); }

struct Window : DriverState {
  uint32_t index = 0;
  Pool::Seat seat;
};

// What struct ib_umem keeps of how a region was registered.
struct Region : DriverState {
  bool writable = false;
  Pool::Seat seat;
};

}  // namespace

// core/umem.c: __ib_umem_get_va, rxe_odp.c: rxe_odp_mr_init_user
int RxeDriver::CheckRange(Call& call, uint64_t start, uint64_t length, uint32_t access) const {
  constexpr uint64_t kPage = 4096;
  const bool on_demand = (access & kOnDemand) != 0;
  if (on_demand && call.world.Knob(KnobId::rxe_odp) != 0 &&
      call.Violates(RuleId::rxe_mr_odp_implicit, start == 0 && length == UINT64_MAX)) {
    return call.Refuse(RuleId::rxe_mr_odp_implicit);
  }
  if (call.Violates(RuleId::rxe_mr_empty, length == 0)) return call.Refuse(RuleId::rxe_mr_empty);
  const uint64_t end = start + length;
  const bool wraps = end < start || end > UINT64_MAX - (kPage - 1);
  if (on_demand && call.world.Knob(KnobId::rxe_odp) != 0) {
    // core/umem_odp.c:ib_init_umem_odp
    if (call.Violates(RuleId::rxe_mr_odp_wraps, wraps))
      return call.Refuse(RuleId::rxe_mr_odp_wraps);
    const bool empty = (end + kPage - 1) / kPage == start / kPage;
    return call.Violates(RuleId::rxe_mr_range, empty) ? call.Refuse(RuleId::rxe_mr_range) : 0;
  }
  constexpr provider::PinRules kPin = {RuleId::rxe_mr_range, RuleId::rxe_mr_range,
                                       RuleId::rxe_mr_fault, RuleId::rxe_mr_no_lock,
                                       RuleId::rxe_mr_memlock};
  if (call.Violates(RuleId::rxe_mr_range, wraps)) return call.Refuse(RuleId::rxe_mr_range);
  if (const int error = provider::CheckMayLock(call, kPin)) return error;
  if (call.Violates(RuleId::rxe_mr_odp, on_demand)) return call.Refuse(RuleId::rxe_mr_odp);
  if (const int error = provider::PinMemory(call, start, length, (access & kWritable) != 0, kPin))
    return error;
  if (call.Violates(RuleId::rxe_mr_persistent, (access & kFlushPersistent) != 0)) {
    return call.Refuse(RuleId::rxe_mr_persistent);
  }
  return 0;
}

int RxeDriver::RegMr(Call& call, Mr& mr) {
  if (call.Violates(RuleId::rxe_mr_access, (mr.access & ~kSupported) != 0))
    return call.Refuse(RuleId::rxe_mr_access);
  RxeDevice& rxe = Of(*mr.device);
  Pool::Seat seat = rxe.regions.Take();
  if (call.Violates(RuleId::rxe_mr_full, seat.over())) return call.Refuse(RuleId::rxe_mr_full);
  if (const int error = CheckRange(call, mr.start, mr.length, mr.access)) return error;
  std::lock_guard lock(fabric::Lock());
  MemoryKey key = {};
  key.base = mr.start;
  key.iova = mr.iova;
  key.length = mr.length;
  key.access = mr.access;
  key.pd = NumberOf(mr.pd);
  mr.lkey = KeyOf(rxe.next_region++);
  const bool remote = (mr.access & kRemote) != 0 || call.world.Knob(KnobId::rxe_rkey_always) != 0;
  mr.rkey = remote ? mr.lkey : 0;
  fabric::AddKey(rxe.number, mr.lkey, key);
  auto state = std::make_unique<Region>();
  state->writable = (mr.access & kWritable) != 0;
  state->seat = std::move(seat);
  mr.driver = std::move(state);
  return 0;
}

int RxeDriver::ReregMr(Call& call, Mr& mr, uint32_t flags, uint64_t, uint64_t, uint64_t,
                       uint32_t access, Pd* pd) {
  if (call.Violates(RuleId::rxe_rereg_flags, (flags & ~(kReregPd | kReregAccess)) != 0)) {
    return call.Refuse(RuleId::rxe_rereg_flags);
  }
  const bool takes_access = (flags & kReregAccess) != 0;
  const bool writable = static_cast<const Region*>(mr.driver.get())->writable;
  if (call.Violates(RuleId::rxe_rereg_writable,
                    takes_access && (access & kWritable) != 0 && !writable)) {
    return call.Refuse(RuleId::rxe_rereg_writable);
  }
  if (call.Violates(RuleId::rxe_rereg_access, takes_access && (access & ~kSupported) != 0)) {
    return call.Refuse(RuleId::rxe_rereg_access);
  }
  std::lock_guard lock(fabric::Lock());
  MemoryKey* key = fabric::FindKey(mr.device->number(), mr.lkey);
  if (key == nullptr) return 0;
  if ((flags & kReregPd) != 0) key->pd = NumberOf(pd);
  if (takes_access) key->access = access;
  return 0;
}

int RxeDriver::DeregMr(Call& call, Mr& mr) {
  std::lock_guard lock(fabric::Lock());
  const MemoryKey* key = fabric::FindKey(mr.device->number(), mr.lkey);
  if (call.Violates(RuleId::rxe_mr_bound, key != nullptr && key->windows != 0)) {
    return call.Refuse(RuleId::rxe_mr_bound);
  }
  fabric::RemoveKey(mr.device->number(), mr.lkey);
  return 0;
}

// rxe_mw.c: rxe_alloc_mw
int RxeDriver::AllocMw(Call& call, Mw& mw) {
  constexpr uint8_t kType1 = 1;  // IB_MW_TYPE_1
  std::lock_guard lock(fabric::Lock());
  RxeDevice& rxe = Of(*mw.device);
  auto state = std::make_unique<Window>();
  state->seat = rxe.windows.Take();
  if (call.Violates(RuleId::rxe_mw_full, state->seat.over()))
    return call.Refuse(RuleId::rxe_mw_full);
  state->index = rxe.next_window++;
  MemoryKey key = {};
  key.pd = NumberOf(mw.pd);
  key.kind = mw.mw_type == kType1 ? MemoryKey::Kind::kWindow1 : MemoryKey::Kind::kWindow2;
  key.invalidated = true;
  mw.rkey = KeyOf(state->index);
  fabric::AddKey(rxe.number, mw.rkey, key);
  mw.driver = std::move(state);
  return 0;
}

void RxeDriver::DeallocMw(Mw& mw) {
  std::lock_guard lock(fabric::Lock());
  // A bind may have changed the low byte of its key.
  const uint32_t index = static_cast<Window*>(mw.driver.get())->index;
  for (uint32_t low = 0; low < 256; ++low)
    fabric::ForgetWindow(mw.device->number(), index << 8 | low);
}

// rxe_odp.c: rxe_ib_advise_mr. Pages are where they are; there is nothing to bring in. Without
// FLUSH the region's bounds are looked at later, and nobody hears of it.
int RxeDriver::AdviseMr(Call& call, Pd& pd, uint32_t advice, uint32_t flags,
                        std::span<const fabric::Sge> list) {
  constexpr uint32_t kLastAdvice = 2;  // IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT
  constexpr uint32_t kAdvicePrefetchWrite = 1, kLocalWrite = 1;
  if (call.Violates(RuleId::rxe_advise_kind, advice > kLastAdvice)) {
    return call.Refuse(RuleId::rxe_advise_kind);
  }
  std::lock_guard lock(fabric::Lock());
  for (const fabric::Sge& sge : list) {
    const MemoryKey* key = fabric::FindKey(pd.device->number(), sge.lkey);
    if (key == nullptr || key->kind != MemoryKey::Kind::kRegion || key->pd != NumberOf(&pd) ||
        key->invalidated || (key->access & kLocalWrite) == 0) {
      return call.Refuse(RuleId::rxe_advise_key);
    }
    if (flags == 0) continue;
    if ((key->access & kOnDemand) == 0) {
      // The driver takes the region's umem for one of pages on demand, and reads behind its end.
      return call.Unmodelled("rxe: ADVISE_MR with FLUSH of a region that is not on demand");
    }
    // The region's bounds are those of its pages (ib_umem_start, ib_umem_end).
    constexpr uint64_t kInPage = 4095;
    const uint64_t end = (key->base + key->length + kInPage) & ~kInPage;
    const bool outside = sge.address < (key->base & ~kInPage) || sge.address + sge.length > end;
    const bool faults =
        advice != kLastAdvice &&
        !sys::UserRangeMapped(sge.address, sge.length, advice == kAdvicePrefetchWrite);
    if (outside || faults) return call.Refuse(RuleId::rxe_advise_range);
  }
  return 0;
}

// rxe_av.c: chk_attr. Only RoCE v2 has an IP network.
static bool HasIpNetwork(const Device& device, const fabric::AddressVector& address) {
  constexpr uint8_t kRoceV2 = 2;
  uint8_t type = 0;
  const uint8_t* gid = fabric::SourceGid(device.number(), 1, address.sgid_index, &type);
  return gid != nullptr && type == kRoceV2;
}

int RxeDriver::CreateAh(Call& call, Ah& ah) {
  std::lock_guard lock(fabric::Lock());
  RxeDevice& rxe = Of(*ah.device);
  Pool::Seat seat = rxe.handles.Take();
  if (call.Violates(RuleId::rxe_ah_full, seat.over())) return call.Refuse(RuleId::rxe_ah_full);
  if (call.Violates(RuleId::rxe_av_network,
                    ah.address.is_global && !HasIpNetwork(*ah.device, ah.address))) {
    return call.Refuse(RuleId::rxe_av_network);
  }
  if (call.Violates(RuleId::rxe_ah_full_late, seat.over()))
    return call.Refuse(RuleId::rxe_ah_full_late);
  // A program with room for it gets a number to put into its requests; others send the address
  // along.
  const size_t size = call.world.Size(VABI_S(rxe_create_ah_resp));
  const uint32_t number = rxe.next_ah++;
  if (size != 0 && call.out.length() >= size) {
    const auto at = static_cast<size_t>(call.world.At(VABI_F(rxe_create_ah_resp, ah_num)).offset);
    if (call.out.CopyAt(at, &number, sizeof(number)) != 0) return call.Refuse(RuleId::rxe_ah_fault);
  }
  rxe.address_handles[number] = &ah;
  struct AddressHandle : DriverState {
    uint32_t number = 0;
    Pool::Seat seat;
  };
  auto state = std::make_unique<AddressHandle>();
  state->number = number;
  state->seat = std::move(seat);
  ah.driver = std::move(state);
  return 0;
}

void RxeDriver::DestroyAh(Ah& ah) {
  std::lock_guard lock(fabric::Lock());
  std::erase_if(Of(*ah.device).address_handles,
                [&ah](const auto& entry) { return entry.second == &ah; });
}

}  // namespace vabi::rxe
