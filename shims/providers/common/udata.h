// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_COMMON_UDATA_H_
#define VABI_SHIMS_PROVIDERS_COMMON_UDATA_H_

#include <cstddef>
#include <cstdint>

#include "shims/uverbs/call.h"

// What kernel drivers do with their private requests and replies (struct ib_udata). Each driver has
// rules of its own for each refusal, so that a trace tells whose it was; sizes are this kernel's.

namespace vabi::provider {

// How a request of `size` bytes is taken.
struct RequestRules {
  size_t minimum;    // bytes; a shorter request: too_short
  RuleId too_short;  // EINVAL
  RuleId tail;       // what is behind `size` must be zero, in kernels that have the rule
  RuleId fault;      // EFAULT: not readable
};

// Fills `size` bytes at `to` with what was sent, and zeroes. ib_copy_from_udata with the checks
// around it; since 7.2 ib_copy_validate_udata_in (core/ib_core_uverbs.c), which looks at the tail
// before it copies.
int CopyRequest(Call& call, void* to, size_t size, const RequestRules& rules);

// How a reply is given.
enum class How : uint8_t {
  kWhole,   // ib_copy_to_udata of everything: the size of the caller's buffer is not looked at
  kClip,    // ib_copy_to_udata of min(size, outlen)
  kZeroes,  // ib_respond_udata (7.2): clipped, and the rest of the caller's buffer becomes zero
};
// 0, or the refusal of `fault` (EFAULT: not writable).
int Respond(Call& call, const void* from, size_t size, How how, RuleId fault);

// ib_no_udata_io (7.2): input must be zero (`input`), the reply becomes zero.
int NoUdataIo(Call& call, RuleId input, RuleId fault);

// Which refusals a driver's ib_umem_get (ib_umem_get_va since 7.2) makes.
struct PinRules {
  RuleId range;                           // EINVAL: wraps around
  RuleId pages;                           // EINVAL: none, or more than 32 bits count
  RuleId fault;                           // EFAULT: not mapped, or not writable where it must be
  RuleId no_lock = RuleId::umem_no_lock;  // EPERM: may lock nothing
  RuleId memlock = RuleId::umem_memlock;  // ENOMEM: more than RLIMIT_MEMLOCK
};
// can_do_mlock, which PinMemory asks as well
int CheckMayLock(Call& call, const PinRules& rules);
// core/umem.c:ib_umem_get of [address, address + size).
int PinMemory(Call& call, uint64_t address, uint64_t size, bool writable, const PinRules& rules);
// The page that holds the doorbell record at `address`: pinned once, for all objects of the context
// that have theirs there (mlx5_ib_db_map_user, hns_roce_db_map_user …).
int PinRecordPage(Call& call, uint64_t address, const PinRules& rules);
// ib_access_writable: LOCAL_WRITE, REMOTE_WRITE, REMOTE_ATOMIC, MW_BIND.
bool AccessWrites(uint32_t access);

}  // namespace vabi::provider

#endif  // VABI_SHIMS_PROVIDERS_COMMON_UDATA_H_
