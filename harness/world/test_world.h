// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_TEST_WORLD_H_
#define VABI_HARNESS_WORLD_TEST_WORLD_H_

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "harness/world/compile.h"
#include "harness/world/world.h"

// A world in memory for unit tests, from the project's own matrix/ and reference-headers/. Tests
// run in the source root (cmake/VabiTest.cmake). Ends the program when the world cannot be made: a
// test without its world says nothing.

namespace vabi {

// VERBS_ABI_TEST_RELAX=RULE takes that rule away from every world of the program,
// VERBS_ABI_TEST_KNOB=NAME=VALUE sets that knob in every one, whatever its kernel says: `test
// --relax` asks which tests notice.
inline void ChangeForWatch(WorldSpec* spec) {
  if (const char* rule = std::getenv("VERBS_ABI_TEST_RELAX")) spec->relax.emplace_back(rule);
  if (const char* knob = std::getenv("VERBS_ABI_TEST_KNOB")) spec->knobs.emplace_back(knob);
}

class TestWorld {
 public:
  // TestWorld("debian-6.12.117", {"mlx5", "rxe"}, {"no-ioctl"})
  TestWorld(const std::string& kernel, std::initializer_list<const char*> providers,
            std::initializer_list<const char*> overlays = {})
      : world_(nullptr) {
    WorldSpec spec;
    spec.kernel = kernel;
    for (const char* provider : providers) spec.devices.push_back({provider, "", ""});
    for (const char* overlay : overlays) spec.overlays.push_back(OverlaySpec::Parse(overlay));
    ChangeForWatch(&spec);
    WorldCompiler compiler(".");
    auto compiled = compiler.Compile(spec);
    if (!compiled) {
      std::fprintf(stderr, "TestWorld: %s\n", compiled.error().c_str());
      std::abort();
    }
    compiled_ = std::move(*compiled);
    world_ = World(compiled_.image.get());
  }
  TestWorld(const TestWorld&) = delete;
  TestWorld& operator=(const TestWorld&) = delete;

  const World& world() const { return world_; }
  WorldImage& image() { return *compiled_.image; }
  const std::vector<SysfsEdit>& sysfs_edits() const { return compiled_.sysfs_edits; }
  void Relax(RuleId rule) { image().rule[Index(rule)].relaxed = 1; }

 private:
  CompiledWorld compiled_;
  World world_;
};

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_TEST_WORLD_H_
