// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_MR_ACCESS_H_
#define VABI_SHIMS_UVERBS_MR_ACCESS_H_

#include "shims/uverbs/call.h"

namespace vabi {

// enum ib_access_flags: the numbers of the UAPI (ib_user_ioctl_verbs.h), the same in every kernel.
enum AccessFlag : uint32_t {
  kLocalWrite = 1 << 0,
  kRemoteWrite = 1 << 1,
  kRemoteRead = 1 << 2,
  kRemoteAtomic = 1 << 3,
  kMwBind = 1 << 4,
  kZeroBased = 1 << 5,
  kOnDemand = 1 << 6,
  kHugeTlb = 1 << 7,
  kFlushGlobal = 1 << 8,
  kFlushPersistent = 1 << 9,
  kRelaxedOrdering = 1 << 20,
};

// IB_ACCESS_SUPPORTED of this kernel.
uint32_t SupportedAccess(const World& world);
// ib_verbs.h:ib_check_mr_access
int CheckMrAccess(Call& call, uint32_t access);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_MR_ACCESS_H_
