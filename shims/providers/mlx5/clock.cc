// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/clock.h"

#include <sys/mman.h>

#include <cerrno>

#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/wire_format.h"
#include "shims/sys/sys.h"

namespace vabi::mlx5 {
namespace {

constexpr size_t kPage = 4096;
constexpr uint64_t kNsPerMs = 1000000;
// The register counts in so many bits; the kernel's clocksource uses 41 of them (en/clock:
// MLX5_CYCLES).
constexpr uint64_t kMask = (1ULL << 41) - 1;

struct Page {
  int fd = -1;
  uint8_t* bytes = nullptr;
};
Page register_page;

int MakePage(const char* name, Page* page) {
  const int fd = sys::MemfdCreate(name, MFD_CLOEXEC);
  if (fd < 0) return fd;
  if (const int error = sys::Ftruncate(fd, kPage); error != 0) {
    sys::Close(fd);
    return error;
  }
  void* mapped = sys::Mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (sys::IsError(mapped)) {
    sys::Close(fd);
    return sys::ErrorOf(mapped);
  }
  page->fd = fd;
  page->bytes = static_cast<uint8_t*>(mapped);
  return fd;
}

uint64_t CyclesNow() {
  const uint64_t ns = sys::MonotonicNs();
  constexpr uint64_t khz = kCaps.device_frequency_khz;
  return ns / kNsPerMs * khz + ns % kNsPerMs * khz / kNsPerMs;
}

}  // namespace

uint64_t Clock::cycles_ = 1;

void Clock::Tick() {
  cycles_ = CyclesNow();
  if (register_page.bytes != nullptr) Store64(register_page.bytes, cycles_);
}

int Clock::RegisterPage() {
  if (register_page.fd >= 0) return register_page.fd;
  const int fd = MakePage("mlx5-core-clock", &register_page);
  if (fd >= 0) Store64(register_page.bytes, CyclesNow());
  return fd;
}

int Clock::InfoPage(const World& world) {
  static Page page;
  if (page.fd >= 0) return page.fd;
  const int fd = MakePage("mlx5-clock-info", &page);
  if (fd < 0) return fd;
  // timecounter: ns = cycles * mult >> shift.
  constexpr int kShift = 21;
  constexpr uint64_t kMult = (kNsPerMs << kShift) / kCaps.device_frequency_khz;
  const uint64_t cycles = CyclesNow() & kMask;
  Body info(world, page.bytes, kPage);
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
  return fd;
}

}  // namespace vabi::mlx5
