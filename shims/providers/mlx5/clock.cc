// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/clock.h"

#include <cerrno>

#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/wire_format.h"
#include "shims/sys/shared_memory.h"
#include "shims/sys/sys.h"

namespace vabi::mlx5 {
namespace {

constexpr size_t kPage = 4096;
constexpr uint64_t kNsPerMs = 1000000;
// The register counts in so many bits; the kernel's clocksource uses 41 of them (en/clock:
// MLX5_CYCLES).
constexpr uint64_t kMask = (1ULL << 41) - 1;

uint8_t* register_page;

uint64_t CyclesNow() {
  const uint64_t ns = sys::MonotonicNs();
  constexpr uint64_t khz = kCaps.device_frequency_khz;
  return ns / kNsPerMs * khz + ns % kNsPerMs * khz / kNsPerMs;
}

}  // namespace

uint64_t Clock::cycles_ = 1;

void Clock::Tick() {
  cycles_ = CyclesNow();
  if (register_page != nullptr) Store64(register_page, cycles_);
}

void* Clock::RegisterPage() {
  if (register_page != nullptr) return register_page;
  void* page = sys::MakeShared(kPage);
  if (sys::IsError(page)) return page;
  register_page = static_cast<uint8_t*>(page);
  Store64(register_page, CyclesNow());
  return page;
}

void* Clock::InfoPage(const World& world) {
  static void* made;
  if (made != nullptr) return made;
  void* page = sys::MakeShared(kPage);
  if (sys::IsError(page)) return page;
  made = page;
  // timecounter: ns = cycles * mult >> shift.
  constexpr int kShift = 21;
  constexpr uint64_t kMult = (kNsPerMs << kShift) / kCaps.device_frequency_khz;
  const uint64_t cycles = CyclesNow() & kMask;
  Body info(world, static_cast<uint8_t*>(page), kPage);
  const uint64_t now = sys::MonotonicNs();
  // The structure became a generic one in 7.3; a kernel has one name or the other.
#define SET(field, value)                               \
  info.Set(VABI_F(mlx5_ib_clock_info, field), (value)); \
  info.Set(VABI_F(ib_uverbs_clock_info, field), (value))
  SET(sign, 2);  // even: nobody is writing
  SET(nsec, now);
  SET(cycles, cycles);
  SET(mult, kMult);
  SET(shift, kShift);
  SET(mask, kMask);
  SET(overflow_period, 10 * kNsPerMs * 1000);
#undef SET
  return page;
}

}  // namespace vabi::mlx5
