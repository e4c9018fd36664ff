// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_RATE_H_
#define VABI_SHIMS_PROVIDERS_MLX5_RATE_H_

#include "harness/world/world.h"

namespace vabi::mlx5 {

// qp.c:mlx5r_ib_rate (ib_rate_to_mlx5 before): enum ib_rate from 2.5 Gb/s to the highest that this
// kernel knows, or the port's own.
inline bool ValidRate(const World& world, uint8_t rate) {
  constexpr uint8_t kPortCurrent = 0, kLowest = 2;
  return rate == kPortCurrent || (rate >= kLowest && rate <= world.Knob(KnobId::mlx5_highest_rate));
}

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_RATE_H_
