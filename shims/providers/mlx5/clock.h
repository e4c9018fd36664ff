// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_CLOCK_H_
#define VABI_SHIMS_PROVIDERS_MLX5_CLOCK_H_

#include <cstdint>

#include "harness/world/world.h"

// The NIC's free-running clock: time stamps in completions, the page of its register, and the page
// by which the kernel tells how to make nanoseconds of it.

namespace vabi::mlx5 {

class Clock {
 public:
  // Cycles of device_frequency_khz, as of this turn of the NIC.
  static uint64_t Cycles() { return cycles_; }
  // Takes the time; once a turn, with fabric::Lock() held. Also moves the register's page on.
  static void Tick();
  // Pages to map (shims/sys/shared_memory.h), or -errno (sys::IsError). This one holds
  // internal_timer_h and internal_timer_l, big-endian.
  static void* RegisterPage();
  // struct mlx5_ib_clock_info as this kernel lays it out.
  static void* InfoPage(const World& world);

 private:
  static uint64_t cycles_;
};

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_CLOCK_H_
