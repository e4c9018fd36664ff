// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_BNXT_RE_STATE_H_
#define VABI_SHIMS_PROVIDERS_BNXT_RE_STATE_H_

#include "shims/providers/common/map_entries.h"
#include "shims/uverbs/objects.h"

// What the driver keeps of each object, and what the card is: a BCM57414 whose firmware has no
// doorbell push, no pacing, no host MSN table, no toggle pages, and entries of one size
// (bnxt_qplib_is_chip_gen_p5_p7 is false, wqe_mode is STATIC). What no source tells is chosen: the
// numbers that firmware answers to CMDQ_QUERY_FUNC.

namespace vabi::bnxt_re {

inline constexpr uint64_t kPage = 4096;
inline constexpr uint32_t kMaxQp = 65536, kMaxCqe = 65535, kMaxSrqWr = 65407, kMaxSge = 6;
inline constexpr uint32_t kMaxInline = 96, kMaxReads = 126, kDpi = 1;
inline constexpr uint64_t kMaxMrSize = uint64_t{1} << 39;  // BNXT_RE_MAX_MR_SIZE

struct ContextState final : DriverState {
  ContextState();
  ~ContextState() override;
  provider::MapEntries entries;  // since 6.6
  uint64_t doorbell = 0;         // physical, before
  void* shared = nullptr;        // bnxt_re_ucontext.shpg: one page
  bool depths_as_asked = false;  // BNXT_RE_UCNTX_CAP_POW2_DISABLED
  bool has_doorbell = false;     // its first protection domain has got it one
  // bnxt_re_init_depth
  uint32_t Depth(uint32_t wanted, uint32_t most) const;
};

struct PdState final : DriverState {
  Context* context = nullptr;
  uint64_t entry = provider::MapEntries::kFull;
};

// struct bnxt_re_dbr_obj
struct RegionState final : DriverState {
  Context* context = nullptr;
  uint64_t entry = provider::MapEntries::kFull;
};

struct CqState final : DriverState {
  uint64_t ring = 0;      // where it is
  bool resizing = false;  // bnxt_re_cq.resize_umem
};

struct SrqState final : DriverState {
  uint32_t entries = 0;
};

struct QpState final : DriverState {
  QpCapabilities made;      // what QUERY_QP tells
  bool has_access = false;  // some MODIFY_QP has set access flags
  uint8_t traffic_class = 0;
  Object* region = nullptr;  // where it rings
};

inline ContextState& StateOf(Context& context) {
  return *static_cast<ContextState*>(context.driver.get());
}
inline QpState& StateOf(Qp& qp) { return *static_cast<QpState*>(qp.driver.get()); }

}  // namespace vabi::bnxt_re

#endif  // VABI_SHIMS_PROVIDERS_BNXT_RE_STATE_H_
