// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/bfregs.h"

#include <algorithm>

#include "shims/providers/mlx5/capabilities.h"

namespace vabi::mlx5 {
namespace {

uint32_t Count(const ContextState& context) {
  return context.static_pages * kUarsInPage * kNonFastPathBfregsPerUar;
}

// Registers 1 … (medium class) are shared, the low latency ones behind them have one queue pair
// each.
uint32_t MediumCount(const ContextState& context) {
  const uint32_t not_medium = context.low_latency + 1;
  return Count(context) > not_medium ? Count(context) - not_medium : 0;
}

}  // namespace

uint32_t AllocBfreg(ContextState& context) {
  std::vector<uint32_t>& users = context.bfreg_users;
  if (context.version >= 2) {
    const uint32_t medium = MediumCount(context);
    const uint32_t first_high = medium + 1;
    for (uint32_t i = first_high; i < Count(context); ++i) {
      if (users[i] != 0) continue;
      ++users[i];
      return i;
    }
    if (medium != 0) {
      uint32_t least = 1;
      for (uint32_t i = 1; i < first_high && users[least] != 0; ++i) {
        if (users[i] < users[least]) least = i;
      }
      ++users[least];
      return least;
    }
  }
  ++users[0];
  return 0;
}

void FreeBfreg(ContextState& context, uint32_t bfreg) {
  if (bfreg < context.bfreg_users.size() && context.bfreg_users[bfreg] != 0)
    --context.bfreg_users[bfreg];
}

uint32_t GrossBfreg(uint32_t bfreg) {
  return bfreg / kNonFastPathBfregsPerUar * kBfregsPerUar + bfreg % kNonFastPathBfregsPerUar;
}

bool ValidDynamicBfreg(const ContextState& context, uint32_t bfreg) {
  if (context.dyn_uar) return false;
  const uint32_t page = bfreg / (kUarsInPage * kNonFastPathBfregsPerUar) + context.static_pages;
  return page < context.pages && bfreg <= context.dyn_bfregs && context.uars[page] != kInvalidUar;
}

}  // namespace vabi::mlx5
