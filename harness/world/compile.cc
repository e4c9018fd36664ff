// SPDX-License-Identifier: BSD-2-Clause
#include "harness/world/compile.h"

#include <cstring>

#include "harness/world/devices.h"
#include "harness/world/overlays.h"

namespace vabi {

using facts::Error;
using facts::Result;

Result<std::shared_ptr<const KernelModel>> WorldCompiler::Kernel(const std::string& name) {
  if (const auto known = kernels_.find(name); known != kernels_.end()) return known->second;
  auto model = KernelModel::Load(root_, name);
  if (!model) return Error{model.error()};
  auto kept = std::make_shared<const KernelModel>(std::move(*model));
  kernels_[name] = kept;
  return kept;
}

Result<CompiledWorld> WorldCompiler::Compile(const WorldSpec& spec) {
  auto kernel = Kernel(spec.kernel);
  if (!kernel) return Error{kernel.error()};

  CompiledWorld world;
  world.image = std::make_shared<WorldImage>((*kernel)->image());
  WorldImage* image = world.image.get();
  image->virtual_time = 1;

  for (const DeviceSpec& device : spec.devices) {
    auto added = AddDevice(root_, device, image);
    if (!added) return Error{added.error()};
    const DeviceImage& last = image->device[image->device_count - 1];
    if (!(*kernel)->HasDriver(last.driver)) {
      world.absent = spec.kernel + " has no driver " + DriverRows()[Index(last.driver)].name;
    }
  }
  DriverPresence drivers{};
  for (const OverlaySpec& overlay : spec.overlays) {
    auto applied = ApplyOverlay(root_, overlay, &world, &drivers);
    if (!applied) return Error{applied.error()};
  }
  for (const std::string& name : spec.relax) {
    bool found = false;
    for (size_t i = 0; i < RuleRows().size(); ++i) {
      if (name != RuleRows()[i].name) continue;
      image->rule[i].relaxed = 1;
      found = true;
    }
    if (!found) {
      std::vector<std::string> names;
      for (const RuleRow& row : RuleRows()) names.emplace_back(row.name);
      return Error{"unknown rule \"" + name + "\"" + Nearest(name, names)};
    }
  }

  const std::string run_dir = spec.run_dir.string();
  if (run_dir.size() >= sizeof image->run_dir || spec.trace.size() >= sizeof image->trace_path) {
    return Error{"path too long: " + (run_dir.size() >= sizeof image->run_dir ? run_dir : spec.trace)};
  }
  std::memcpy(image->run_dir, run_dir.c_str(), run_dir.size() + 1);
  std::memcpy(image->trace_path, spec.trace.c_str(), spec.trace.size() + 1);
  return world;
}

}  // namespace vabi
