// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_COMPILE_H_
#define VABI_HARNESS_WORLD_COMPILE_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/facts/result.h"
#include "harness/world/image.h"
#include "harness/world/kernel_model.h"
#include "harness/world/spec.h"

// From a world's description to its image. Kernel models are kept between calls: many worlds share
// one.

namespace vabi {

// One change of what sysfs shows: at `path` (absolute) the file has this content, is absent, or its
// read fails.
struct SysfsEdit {
  std::string path;
  bool absent = false;
  int read_errno = 0;
  std::string content;
};

struct CompiledWorld {
  std::shared_ptr<WorldImage> image;
  std::vector<SysfsEdit> sysfs_edits;
  // Overlays that change the userland: no business of the kernel's, but such worlds are not equal.
  std::vector<std::string> userland_edits;
  // Not empty: this kernel has no such driver, so no such cell can exist.
  std::string absent;
  // Equal for worlds that a process cannot tell apart (but for the name of the kernel).
  std::string digest;
};

class WorldCompiler {
 public:
  // `root` holds matrix/ and reference-headers/.
  explicit WorldCompiler(std::filesystem::path root) : root_(std::move(root)) {}

  facts::Result<CompiledWorld> Compile(const WorldSpec& spec);
  facts::Result<std::shared_ptr<const KernelModel>> Kernel(const std::string& name);

 private:
  std::filesystem::path root_;
  std::map<std::string, std::shared_ptr<const KernelModel>> kernels_;
};

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_COMPILE_H_
