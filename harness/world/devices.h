// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_DEVICES_H_
#define VABI_HARNESS_WORLD_DEVICES_H_

#include <filesystem>

#include "harness/facts/result.h"
#include "harness/world/image.h"
#include "harness/world/spec.h"

namespace vabi {

// Adds the device that `spec` asks for, as matrix/providers/NAME.json describes it, with addresses
// of its own: GUIDs, LIDs, GIDs and PCI slots are made from its number in the world, so that equal
// worlds are equal byte for byte.
facts::Result<bool> AddDevice(const std::filesystem::path& root, const DeviceSpec& spec,
                              WorldImage* image);

// Adds the nodes of ib_umad and rdma_ucm, where the world's knobs say that these are loaded.
void AddModuleNodes(WorldImage* image);

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_DEVICES_H_
