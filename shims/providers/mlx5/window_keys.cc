// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/window_keys.h"

#include <map>
#include <utility>

namespace vabi::mlx5 {
namespace {

using Table = std::map<std::pair<uint32_t, uint32_t>, uint32_t>;

Table& Get() {
  static auto* const table =
      new Table();  // never destroyed: the NIC's thread may outlive destructors
  return *table;
}

}  // namespace

void AddWindow(uint32_t device, uint32_t key) { Get()[{device, key >> 8}] = key; }

void RemoveWindow(uint32_t device, uint32_t key) { Get().erase({device, key >> 8}); }

uint32_t* WindowKey(uint32_t device, uint32_t any_key) {
  const auto found = Get().find({device, any_key >> 8});
  return found == Get().end() ? nullptr : &found->second;
}

}  // namespace vabi::mlx5
