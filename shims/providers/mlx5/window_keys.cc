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

Table& Indirect() {
  static auto* const table = new Table();
  return *table;
}

}  // namespace

void AddWindow(uint32_t device, uint32_t key) { Get()[{device, key >> 8}] = key; }

void RemoveWindow(uint32_t device, uint32_t key) { Get().erase({device, key >> 8}); }

void AddIndirect(uint32_t device, uint32_t key, uint32_t room) { Indirect()[{device, key}] = room; }

void RemoveIndirect(uint32_t device, uint32_t key) { Indirect().erase({device, key}); }

const uint32_t* IndirectRoom(uint32_t device, uint32_t key) {
  const auto found = Indirect().find({device, key});
  return found == Indirect().end() ? nullptr : &found->second;
}

uint32_t* WindowKey(uint32_t device, uint32_t any_key) {
  const auto found = Get().find({device, any_key >> 8});
  return found == Get().end() ? nullptr : &found->second;
}

}  // namespace vabi::mlx5
