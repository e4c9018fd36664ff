// SPDX-License-Identifier: BSD-2-Clause
// mr.c
#include "shims/providers/common/udata.h"
#include "shims/providers/mlx4/driver.h"
#include "shims/sys/sys.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/mr_access.h"

namespace vabi::mlx4 {
namespace {

// mlx4_get_umem_mr: the access with which the memory is pinned. The NIC keeps to what was asked
// for; the kernel takes more, so that REREG_MR can give it later.
uint32_t PinnedAccess(const World& world, uint64_t start, uint64_t length, uint32_t access) {
  if (provider::AccessWrites(access)) return access;
  // A mapping that cannot be written to is pinned for reading. (The kernel wants it to be one
  // mapping; where it is not, it pins for writing and fails.)
  const bool readable_only = world.Knob(knob::writable_pins) != 0 &&
                             !sys::UserRangeMapped(start, length, true) &&
                             sys::UserRangeMapped(start, length, false);
  return readable_only ? access : access | kLocalWrite;
}

}  // namespace

// mlx4_ib_reg_user_mr
int Mlx4Driver::RegMr(Call& call, Mr& mr) {
  const uint32_t pinned = PinnedAccess(call.world, mr.start, mr.length, mr.access);
  if (const int error = Pin(call, mr.start, mr.length, pinned)) return error;
  mr.lkey = mr.rkey = NextKey(*mr.device);
  auto state = std::make_unique<MrState>();
  state->writable = provider::AccessWrites(pinned);
  mr.driver = std::move(state);
  return 0;
}

// mlx4_ib_rereg_user_mr. The keys stay.
int Mlx4Driver::ReregMr(Call& call, Mr& mr, uint32_t flags, uint64_t start, uint64_t length,
                        uint64_t, uint32_t access, Pd*) {
  constexpr uint32_t kTrans = 1, kAccess = 4;  // enum ib_mr_rereg_flags
  MrState& state = StateOf(mr);
  const bool writes = (flags & kAccess) != 0 && provider::AccessWrites(access) && !state.writable;
  if (call.Violates(rule::rereg_pinned_readable, writes && (flags & kTrans) == 0))
    return call.Refuse(rule::rereg_pinned_readable);
  if (call.Violates(rule::rereg_writable, writes)) return call.Refuse(rule::rereg_writable);
  if ((flags & kTrans) == 0) return 0;
  const uint32_t pinned =
      PinnedAccess(call.world, start, length, (flags & kAccess) != 0 ? access : mr.access);
  // What was pinned before is gone, whatever comes of this.
  mr.pins = {};
  if (const int error = Pin(call, start, length, pinned)) return error;
  state.writable = provider::AccessWrites(pinned);
  return 0;
}

int Mlx4Driver::DeregMr(Call&, Mr&) { return 0; }

// mlx4_ib_alloc_mw: this card has both kinds.
int Mlx4Driver::AllocMw(Call&, Mw& mw) {
  mw.rkey = NextKey(*mw.device);
  return 0;
}

}  // namespace vabi::mlx4
