// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_BFREGS_H_
#define VABI_SHIMS_PROVIDERS_MLX5_BFREGS_H_

#include <cstdint>

#include "shims/providers/mlx5/state.h"

// Blue flame registers of a context with static UARs (qp.c:alloc_bfreg and its neighbours): which
// queue pair rings where. Only the number shows: it goes to the library.

namespace vabi::mlx5 {

// The number of the register that a new queue pair gets: register 0 is shared by all that find no
// other.
uint32_t AllocBfreg(ContextState& context);
void FreeBfreg(ContextState& context, uint32_t bfreg);
// adjust_bfregn: as user space counts them, with the fast path registers of each UAR.
uint32_t GrossBfreg(uint32_t bfreg);
// bfregn_to_uar_index for a register of a page that was mapped by MLX5_IB_MMAP_ALLOC_WC.
bool ValidDynamicBfreg(const ContextState& context, uint32_t bfreg);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_BFREGS_H_
