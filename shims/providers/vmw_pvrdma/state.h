// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_VMW_PVRDMA_STATE_H_
#define VABI_SHIMS_PROVIDERS_VMW_PVRDMA_STATE_H_

#include "shims/uverbs/objects.h"

namespace vabi::vmw_pvrdma {

struct QpState final : DriverState {
  QpCapabilities asked;  // QUERY_QP tells none of it in RESET
};
inline QpState& StateOf(Qp& qp) { return *static_cast<QpState*>(qp.driver.get()); }

// What the paravirtual device says of itself (struct pvrdma_device_caps): no source tells which
// numbers a hypervisor chooses. It has QP handles (PVRDMA_QPHANDLE_VERSION), so that one below
// max_qp can stand for any number; the library masks it with 0xffff.
inline constexpr uint32_t kMaxQp = 0xfff0, kMaxQpWr = 16384, kMaxSge = 16, kMaxCqe = 65536;
inline constexpr uint32_t kMaxSrqWr = 16384, kMaxSrqSge = 16, kMaxPkeys = 1;
inline constexpr uint64_t kMaxMrSize = uint64_t{1} << 32;
inline constexpr uint64_t kPage = 4096;
inline constexpr uint64_t kDirectoryPages = 512 * 512;  // pvrdma.h: PVRDMA_PAGE_DIR_MAX_PAGES

}  // namespace vabi::vmw_pvrdma

#endif  // VABI_SHIMS_PROVIDERS_VMW_PVRDMA_STATE_H_
