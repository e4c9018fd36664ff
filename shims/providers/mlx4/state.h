// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX4_STATE_H_
#define VABI_SHIMS_PROVIDERS_MLX4_STATE_H_

#include "shims/uverbs/objects.h"

// What the driver keeps for each object of the core.

namespace vabi::mlx4 {

struct ContextState final : DriverState {
  uint32_t mapped = 0;  // a bit for each page of the BAR that was mapped
};

struct MrState final : DriverState {
  bool writable = false;  // ib_umem.writable
};

struct CqState final : DriverState {
  uint64_t buffer = 0;    // of the program
  uint32_t entries = 0;   // power of two
  uint32_t produced = 0;  // elements that the NIC has written
};

struct SrqState final : DriverState {
  uint32_t entries = 0;  // power of two
};

struct QpState final : DriverState {
  uint32_t rq_count = 0, rq_sges = 0;
};

inline ContextState& StateOf(Context& context) {
  return *static_cast<ContextState*>(context.driver.get());
}
inline MrState& StateOf(Mr& mr) { return *static_cast<MrState*>(mr.driver.get()); }
inline CqState& StateOf(Cq& cq) { return *static_cast<CqState*>(cq.driver.get()); }
inline SrqState& StateOf(Srq& srq) { return *static_cast<SrqState*>(srq.driver.get()); }
inline QpState& StateOf(Qp& qp) { return *static_cast<QpState*>(qp.driver.get()); }

}  // namespace vabi::mlx4

#endif  // VABI_SHIMS_PROVIDERS_MLX4_STATE_H_
