// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_KERNEL_MODEL_H_
#define VABI_HARNESS_WORLD_KERNEL_MODEL_H_

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/facts/result.h"
#include "harness/facts/snapshot.h"
#include "harness/world/model_changes.h"

// A kernel model: the facts of its header snapshot, then the changes of its file in matrix/kernels
// and of all its parents, the oldest first.
//
// matrix/kernels/NAME.json:
//   "name", "parent" (absent in the oldest), "headers" (a snapshot of reference-headers, else the
//   parent's), "known_by", "calibrated" (["core", "rxe"]: parts that a real kernel of this version
//   has confirmed), "released" ("2016-01-10"), "changes" (see model_changes.h; each with a "why").

namespace vabi {

class KernelModel {
 public:
  // `root` is the folder that holds matrix/ and reference-headers/.
  static facts::Result<KernelModel> Load(const std::filesystem::path& root, const std::string& name,
                                         facts::Arch arch = facts::Arch::kX86_64);

  const std::string& name() const { return name_; }
  const std::string& headers() const { return headers_; }
  const facts::Snapshot& snapshot() const { return *snapshot_; }
  // The image with the kernel's part filled in and no devices.
  const WorldImage& image() const { return *image_; }
  bool HasDriver(DriverId driver) const { return drivers_.present[Index(driver)]; }

 private:
  std::string name_, headers_;
  std::shared_ptr<const facts::Snapshot> snapshot_;
  std::shared_ptr<WorldImage> image_;
  DriverPresence drivers_{};
};

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_KERNEL_MODEL_H_
