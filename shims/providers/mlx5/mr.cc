// SPDX-License-Identifier: BSD-2-Clause
// mr.c, odp.c: memory regions and windows
#include <mutex>

#include "shims/fabric/nic.h"
#include "shims/fabric/window.h"
#include "shims/providers/common/udata.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/providers/mlx5/window_keys.h"
#include "shims/sys/sys.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/mr_access.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

// Key indices begin behind the ones that mean something (0x100 ends scatter lists).
constexpr uint32_t kFirstIndex = 0x800;
// enum ib_mw_type
constexpr uint8_t kMwType1 = 1;
// enum ib_uverbs_advise_mr_advice
constexpr uint32_t kPrefetchWrite = 1, kLastAdvice = 2;

constexpr uint64_t kPage = 4096;
uint64_t PageEnd(uint64_t address) { return (address + kPage - 1) & ~(kPage - 1); }

int CheckMemory(Call& call, uint64_t start, uint64_t length, uint64_t iova, uint32_t access) {
  if ((access & kOnDemand) == 0)
    return PinMemory(call, start, length, provider::AccessWrites(access));
  // create_user_odp_mr
  if (call.Violates(RuleId::mlx5_reg_mr_odp, !kCaps.pg))
    return call.Refuse(RuleId::mlx5_reg_mr_odp);
  if (start == 0 && length == UINT64_MAX) {
    if (call.Violates(RuleId::mlx5_reg_mr_implicit_iova, iova != 0)) {
      return call.Refuse(RuleId::mlx5_reg_mr_implicit_iova);
    }
    if (call.Violates(RuleId::mlx5_reg_mr_implicit,
                      call.world.Knob(KnobId::mlx5_odp_implicit) == 0)) {
      return call.Refuse(RuleId::mlx5_reg_mr_implicit);
    }
    return 0;
  }
  // ib_umem_odp_get: nothing is looked at before it is used.
  const uint64_t end = start + length, aligned = PageEnd(end);
  if (call.Violates(RuleId::mlx5_odp_range, end < start || aligned < end))
    return call.Refuse(RuleId::mlx5_odp_range);
  // ib_init_umem_odp, and up to 5.3 mr_umem_get
  if (call.Violates(RuleId::mlx5_pin_nothing, aligned == (start & ~(kPage - 1))))
    return call.Refuse(RuleId::mlx5_pin_nothing);
  return 0;
}

fabric::MemoryKey KeyOf(const Mr& mr, uint32_t pdn) {
  fabric::MemoryKey key = {};
  key.base = mr.start;
  key.iova = mr.iova;
  key.length = mr.length;
  key.access = mr.access;
  key.pd = pdn;
  return key;
}

// pagefault_mr: does the region, in whole pages, have what the list says, and the program still?
bool CanFetch(const fabric::MemoryKey& key, const fabric::Sge& sge, uint32_t advice) {
  if (sge.address < key.iova) return false;
  if (key.base == 0 && key.length == UINT64_MAX) return true;  // implicit
  const uint64_t offset = sge.address - key.iova, at = key.base + offset;
  const uint64_t end = PageEnd(key.base + key.length);
  if (at < offset || at >= end || end - at < sge.length) return false;
  return advice == kLastAdvice || sys::UserRangeMapped(at, sge.length, advice == kPrefetchWrite);
}

}  // namespace

uint32_t NextKey(Device& device) {
  const uint32_t number = device.NextNumber();
  // The low byte is the variant: mlx5 counts it up from key to key.
  return ((kFirstIndex + number) & 0xffffff) << 8 | (number & 0xff);
}

int Mlx5Driver::RegMr(Call& call, Mr& mr) {
  if (const int error = CheckMemory(call, mr.start, mr.length, mr.iova, mr.access)) return error;
  mr.lkey = mr.rkey = NextKey(*mr.device);
  std::lock_guard lock(fabric::Lock());
  fabric::AddKey(mr.device->number(), mr.lkey, KeyOf(mr, StateOf(*mr.pd).pdn));
  return 0;
}

int Mlx5Driver::ReregMr(Call& call, Mr& mr, uint32_t flags, uint64_t start, uint64_t length,
                        uint64_t iova, uint32_t access, Pd* pd) {
  constexpr uint32_t kTrans = 1, kPd = 2, kAccess = 4;
  if (call.Violates(RuleId::mlx5_rereg_flags, (flags & ~(kTrans | kPd | kAccess)) != 0)) {
    return call.Refuse(RuleId::mlx5_rereg_flags);
  }
  const uint32_t new_access = (flags & kAccess) != 0 ? access : mr.access;
  // core/umem.c:ib_umem_check_rereg
  if (call.Violates(RuleId::mlx5_rereg_writable, (flags & kAccess) != 0 && (flags & kTrans) == 0 &&
                                                     (mr.access & kOnDemand) == 0 &&
                                                     !provider::AccessWrites(mr.access) &&
                                                     provider::AccessWrites(access))) {
    return call.Refuse(RuleId::mlx5_rereg_writable);
  }
  const bool implicit = mr.start == 0 && mr.length == UINT64_MAX;
  if (implicit && (flags & kTrans) == 0 && (new_access & kOnDemand) == 0) {
    return call.Refuse(RuleId::mlx5_rereg_implicit);
  }
  if ((flags & kTrans) == 0 && ((new_access ^ mr.access) & kOnDemand) != 0) {
    return call.Unmodelled("mlx5: REREG_MR between paged and pinned memory");
  }
  if (call.world.Knob(KnobId::mlx5_rereg_releases_first) != 0 && (flags & kTrans) != 0)
    mr.pins = {};
  if ((flags & kTrans) != 0) {
    if (const int error = CheckMemory(call, start, length, iova, new_access)) return error;
  }
  Mr changed;
  changed.start = (flags & kTrans) != 0 ? start : mr.start;
  changed.length = (flags & kTrans) != 0 ? length : mr.length;
  changed.iova = (flags & kTrans) != 0 ? iova : mr.iova;
  changed.access = new_access;
  std::lock_guard lock(fabric::Lock());
  fabric::AddKey(mr.device->number(), mr.lkey,
                 KeyOf(changed, StateOf((flags & kPd) != 0 ? *pd : *mr.pd).pdn));
  return 0;
}

int Mlx5Driver::DeregMr(Call&, Mr& mr) {
  std::lock_guard lock(fabric::Lock());
  fabric::RemoveKey(mr.device->number(), mr.lkey);
  return 0;
}

// mlx5_ib_reg_dm_mr
int Mlx5Driver::RegDmMr(Call& call, Mr& mr) {
  constexpr uint32_t kAllowed =
      kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kZeroBased;
  if (call.Violates(RuleId::mlx5_reg_dm_access, (mr.access & ~kAllowed) != 0)) {
    return call.Refuse(RuleId::mlx5_reg_dm_access);
  }
  mr.lkey = mr.rkey = NextKey(*mr.device);
  fabric::MemoryKey key = KeyOf(mr, StateOf(*mr.pd).pdn);
  key.base = reinterpret_cast<uintptr_t>(StateOf(*mr.dm).base) + mr.start;
  key.iova = mr.iova;
  std::lock_guard lock(fabric::Lock());
  fabric::AddKey(mr.device->number(), mr.lkey, key);
  return 0;
}

// mlx5_ib_advise_mr
int Mlx5Driver::AdviseMr(Call& call, Pd& pd, uint32_t advice, uint32_t flags,
                         std::span<const fabric::Sge> list) {
  constexpr uint32_t kFlush = 1;  // IB_UVERBS_ADVISE_MR_FLAG_FLUSH
  const uint32_t last =
      call.world.Knob(KnobId::mlx5_advice_no_fault) != 0 ? kLastAdvice : kLastAdvice - 1;
  if (call.Violates(RuleId::mlx5_advise_mr_advice, advice > last)) {
    return call.Refuse(RuleId::mlx5_advise_mr_advice);
  }
  // get_prefetchable_mr: each key must be of a region that is paged on demand, of this domain.
  std::lock_guard lock(fabric::Lock());
  for (const fabric::Sge& sge : list) {
    const fabric::MemoryKey* key = fabric::FindKey(call.file.device().number(), sge.lkey);
    if (key == nullptr || (key->access & kOnDemand) == 0)
      return call.Refuse(RuleId::mlx5_advise_mr_key);
    if (call.Violates(RuleId::mlx5_advise_mr_pd, key->pd != StateOf(pd).pdn)) {
      return call.Refuse(RuleId::mlx5_advise_mr_pd);
    }
    if (call.Violates(RuleId::mlx5_advise_mr_write,
                      advice == kPrefetchWrite && !provider::AccessWrites(key->access))) {
      return call.Refuse(RuleId::mlx5_advise_mr_write);
    }
    // Without the flag the pages come later, and nobody hears how that ended.
    if ((flags & kFlush) != 0 && !CanFetch(*key, sge, advice))
      return call.Unmodelled("mlx5: ADVISE_MR with FLUSH of what the region or the program lacks");
  }
  return 0;
}

int Mlx5Driver::AllocMw(Call& call, Mw& mw) {
  OwnedBody<32> body(call.world, VABI_S(mlx5_ib_alloc_mw));
  if (call.in.length() != 0) {
    const RequestRules rules = {static_cast<size_t>(call.world.Knob(KnobId::mlx5_alloc_mw_minimum)),
                                RuleId::mlx5_alloc_mw_length, RuleId::mlx5_alloc_mw_tail};
    if (const int error = CopyRequest(call, body.base(), body.length(), rules)) return error;
  }
  if (call.Violates(RuleId::mlx5_alloc_mw_reserved,
                    (body.Get(VABI_F(mlx5_ib_alloc_mw, comp_mask)) |
                     body.Get(VABI_F(mlx5_ib_alloc_mw, reserved1)) |
                     body.Get(VABI_F(mlx5_ib_alloc_mw, reserved2))) != 0)) {
    return call.Refuse(RuleId::mlx5_alloc_mw_reserved);
  }
  // The reply has no name in the UAPI: comp_mask, response_length.
  uint32_t reply[2] = {};
  const size_t length = std::min(sizeof(reply), call.out.length());
  reply[1] = static_cast<uint32_t>(length);
  if (length != 0) {
    const size_t size = call.world.Knob(KnobId::mlx5_respond_zeroes) != 0 ? sizeof(reply) : length;
    if (const int error = Respond(call, reply, size, OldRespond::kClip)) return error;
  }
  mw.rkey = NextKey(*mw.device);
  fabric::MemoryKey key = {};
  key.pd = StateOf(*mw.pd).pdn;
  key.invalidated = true;
  key.kind = mw.mw_type == kMwType1 ? fabric::MemoryKey::Kind::kWindow1
                                    : fabric::MemoryKey::Kind::kWindow2;
  std::lock_guard lock(fabric::Lock());
  fabric::AddKey(mw.device->number(), mw.rkey, key);
  AddWindow(mw.device->number(), mw.rkey);
  return 0;
}

void Mlx5Driver::DeallocMw(Mw& mw) {
  const uint32_t device = mw.device->number();
  std::lock_guard lock(fabric::Lock());
  if (const uint32_t* key = WindowKey(device, mw.rkey)) fabric::ForgetWindow(device, *key);
  RemoveWindow(device, mw.rkey);
}

}  // namespace vabi::mlx5
