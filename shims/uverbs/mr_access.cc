// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/mr_access.h"

#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

// IB_DEVICE_FLUSH_GLOBAL, IB_DEVICE_FLUSH_PERSISTENT (bits 38 and 39)
constexpr uint64_t kDeviceFlushGlobal = 1ULL << 38;
constexpr uint64_t kDeviceFlushPersistent = 1ULL << 39;

}  // namespace

uint32_t SupportedAccess(const World& world) {
  // All flags that the kernel's headers have, and since 5.5 the optional range, of which the kernel
  // ignores what it does not know.
  uint32_t known = 0;
  constexpr ConstId kFlags[] = {
      VABI_C(IB_UVERBS_ACCESS_LOCAL_WRITE),   VABI_C(IB_UVERBS_ACCESS_REMOTE_WRITE),
      VABI_C(IB_UVERBS_ACCESS_REMOTE_READ),   VABI_C(IB_UVERBS_ACCESS_REMOTE_ATOMIC),
      VABI_C(IB_UVERBS_ACCESS_MW_BIND),       VABI_C(IB_UVERBS_ACCESS_ZERO_BASED),
      VABI_C(IB_UVERBS_ACCESS_ON_DEMAND),     VABI_C(IB_UVERBS_ACCESS_HUGETLB),
      VABI_C(IB_UVERBS_ACCESS_FLUSH_GLOBAL),  VABI_C(IB_UVERBS_ACCESS_FLUSH_PERSISTENT),
      VABI_C(IB_UVERBS_ACCESS_OPTIONAL_RANGE)};
  for (const ConstId flag : kFlags) known |= static_cast<uint32_t>(world.Flag(flag));
  // Headers before 4.18 keep the numbers to themselves (enum ib_access_flags, ib_verbs.h).
  return known != 0 ? known : 0xff;
}

int CheckMrAccess(Call& call, uint32_t access) {
  const DeviceAttributes& device = call.file.device().attributes();
  if (call.Violates(
          RuleId::mr_access_needs_local_write,
          (access & (kRemoteAtomic | kRemoteWrite)) != 0 && (access & kLocalWrite) == 0)) {
    return call.Refuse(RuleId::mr_access_needs_local_write);
  }
  if (call.Violates(RuleId::mr_access_unknown, (access & ~SupportedAccess(call.world)) != 0)) {
    return call.Refuse(RuleId::mr_access_unknown);
  }
  if (call.Violates(RuleId::mr_access_odp,
                    (access & kOnDemand) != 0 && (device.odp_general_caps & 1) == 0)) {
    return call.Refuse(RuleId::mr_access_odp);
  }
  const uint64_t caps = device.device_cap_flags;
  if (call.Violates(
          RuleId::mr_access_flush,
          ((access & kFlushGlobal) != 0 && (caps & kDeviceFlushGlobal) == 0) ||
              ((access & kFlushPersistent) != 0 && (caps & kDeviceFlushPersistent) == 0))) {
    return call.Refuse(RuleId::mr_access_flush);
  }
  return 0;
}

}  // namespace vabi
