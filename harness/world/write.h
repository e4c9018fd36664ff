// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_WRITE_H_
#define VABI_HARNESS_WORLD_WRITE_H_

#include <filesystem>

#include "harness/facts/result.h"
#include "harness/world/compile.h"

// Puts a compiled world where a process can use it: the image in RUN_DIR/world, its /sys and /dev
// as file trees. Trees that are equal are written once, into CACHE_DIR (or into RUN_DIR when that
// is empty), and shared. A world with a script has one for each stage (harness/world/stages.h).

namespace vabi {

// The path of the image.
facts::Result<std::filesystem::path> WriteWorld(const CompiledWorld& world,
                                                const std::filesystem::path& run_dir,
                                                const std::filesystem::path& cache_dir);

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_WRITE_H_
