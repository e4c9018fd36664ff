// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/faults.h"

#include <atomic>
#include <cstring>

#include "shims/trace/gaps.h"

namespace vabi {
namespace {

constexpr size_t kMaxFaults = std::extent_v<decltype(WorldImage::fault)>;
std::atomic<uint32_t> calls[kMaxFaults];

}  // namespace

int FaultAt(const World& world, const char* step) {
  const WorldImage& image = world.image();
  for (uint32_t i = 0; i < image.fault_count && i < kMaxFaults; ++i) {
    const Fault& fault = image.fault[i];
    if (std::strcmp(fault.step, step) != 0) continue;
    const uint32_t before = calls[i].fetch_add(1, std::memory_order_relaxed);
    if (before < fault.after) continue;
    if (fault.count != 0 && before - fault.after >= fault.count) continue;
    if (before == fault.after) trace::Fault(step);
    return fault.error;
  }
  return 0;
}

void ResetFaults() {
  for (auto& counter : calls) counter.store(0, std::memory_order_relaxed);
}

}  // namespace vabi
