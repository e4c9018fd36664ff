// SPDX-License-Identifier: BSD-2-Clause
#include "harness/world/compile.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "harness/world/devices.h"
#include "harness/world/model_changes.h"
#include "harness/world/overlays.h"

namespace vabi {
namespace {

// Of everything that a process can notice: the image without its name, how its rules are known and
// where it runs, and what sysfs shows otherwise.
std::string DigestOf(const CompiledWorld& world) {
  auto image = std::make_unique<WorldImage>(*world.image);
  std::memset(image->kernel, 0, sizeof image->kernel);
  image->known_by = KnownBy::kSource;
  for (RuleEntry& rule : image->rule) rule.known_by = KnownBy::kSource;
  uint64_t digest[2] = {0xcbf29ce484222325ULL, 0x84222325cbf29ce4ULL};
  const auto mix = [&digest](const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      const uint8_t byte = static_cast<const uint8_t*>(data)[i];
      digest[0] = (digest[0] ^ byte) * 0x100000001b3ULL;
      digest[1] = (digest[1] ^ byte) * 0x10000000233ULL;
    }
  };
  mix(image.get(), sizeof *image);
  for (const SysfsEdit& edit : world.sysfs_edits) {
    mix(edit.path.c_str(), edit.path.size() + 1);
    mix(edit.content.c_str(), edit.content.size() + 1);
    const int rest[] = {edit.absent, edit.read_errno};
    mix(rest, sizeof rest);
  }
  for (const std::string& edit : world.userland_edits) mix(edit.c_str(), edit.size() + 1);
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(digest[0]),
                static_cast<unsigned long long>(digest[1]));
  return text;
}

using facts::Error;
using facts::Result;

// "NAME=VALUE"
Result<bool> SetKnob(const std::string& text, WorldImage* image) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  char* end = nullptr;
  const long long number = std::strtoll(value.c_str(), &end, 0);
  if (value.empty() || *end != '\0') return Error{"knob \"" + text + "\": expected NAME=NUMBER"};
  DriverPresence unused{};
  return ApplyModelChange({{"knob", name}, {"value", number}}, image, &unused);
}

}  // namespace

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
  for (const std::string& knob : spec.knobs) {
    auto set = SetKnob(knob, image);
    if (!set) return Error{set.error()};
  }

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
  AddModuleNodes(image);
  for (const std::string& name : spec.relax) {
    bool found = false;
    for (size_t i = 0; i < RuleRows().size(); ++i) {
      if (name != RuleRows()[i].name) continue;
      image->rule[i].relaxed = 1;
      found = true;
    }
    if (!found) {
      std::vector<std::string> names;
      for (size_t i = 0; i < RuleRows().size(); ++i) names.emplace_back(RuleRows()[i].name);
      return Error{"unknown rule \"" + name + "\"" + Nearest(name, names)};
    }
  }

  world.digest = DigestOf(world);

  const std::string run_dir = spec.run_dir.string();
  if (run_dir.size() >= sizeof image->run_dir || spec.trace.size() >= sizeof image->trace_path) {
    return Error{"path too long: " +
                 (run_dir.size() >= sizeof image->run_dir ? run_dir : spec.trace)};
  }
  std::memcpy(image->run_dir, run_dir.c_str(), run_dir.size() + 1);
  std::memcpy(image->trace_path, spec.trace.c_str(), spec.trace.size() + 1);
  return world;
}

}  // namespace vabi
