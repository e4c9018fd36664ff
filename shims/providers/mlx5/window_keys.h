// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_WINDOW_KEYS_H_
#define VABI_SHIMS_PROVIDERS_MLX5_WINDOW_KEYS_H_

#include <cstdint>

// Memory windows by the index in their key: work requests name a window by any of its keys, of
// which only the upper 24 bits count. With fabric::Lock() held.

namespace vabi::mlx5 {

void AddWindow(uint32_t device, uint32_t key);
void RemoveWindow(uint32_t device, uint32_t key);
// Keys that stand for pieces of other regions, with room for so many translations.
void AddIndirect(uint32_t device, uint32_t key, uint32_t room);
void RemoveIndirect(uint32_t device, uint32_t key);
// Null: no such key.
const uint32_t* IndirectRoom(uint32_t device, uint32_t key);
// The key that the window has now, to be changed when it is bound; null: no window.
uint32_t* WindowKey(uint32_t device, uint32_t any_key);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_WINDOW_KEYS_H_
