// SPDX-License-Identifier: BSD-2-Clause
#include "harness/world/write.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "harness/world/stages.h"
#include "shims/sysfs/describe.h"
#include "shims/sysfs/write_tree.h"

namespace vabi {
namespace {

using facts::Error;
using facts::Result;
namespace fs = std::filesystem;

Result<bool> AddRedirects(const fs::path& tree, WorldImage* image) {
  for (const std::string& prefix : sysfs::RedirectedPrefixes(*image)) {
    const std::string target = tree.string() + prefix;
    Redirect& redirect = image->redirect[image->redirect_count];
    if (image->redirect_count == std::size(image->redirect) ||
        prefix.size() >= sizeof redirect.from || target.size() >= sizeof redirect.to) {
      return Error{"the world's redirects do not fit: " + target};
    }
    std::memcpy(redirect.from, prefix.c_str(), prefix.size() + 1);
    std::memcpy(redirect.to, target.c_str(), target.size() + 1);
    ++image->redirect_count;
  }
  return true;
}

// /sys and /dev of the world in one stage.
sysfs::Materialised WriteTree(const CompiledWorld& world, const Stage& stage,
                              const fs::path& cache) {
  auto image = std::make_unique<WorldImage>(*world.image);
  for (uint32_t d = 0; d < image->device_count; ++d) {
    const char letter = stage.letters[d];
    DeviceImage& device = image->device[d];
    for (PortImage& port : device.ports) {
      port.phys_state = PortPhysStateIn(letter, port);
      port.state = PortStateIn(letter, port);
    }
    if (letter == kUnplugged) sysfs::TakeAway(d, image.get());
  }
  sysfs::Tree tree;
  sysfs::DescribeSysfs(*image, &tree);
  sysfs::DescribeDev(*image, &tree);
  sysfs::ApplyEdits(world.sysfs_edits, &tree);
  return sysfs::Materialise(tree, cache);
}

// All stages that the script can lead to, whatever comes first.
std::vector<Stage> StagesOf(const WorldImage& image) {
  constexpr size_t kMost = 256;
  std::vector<Stage> all = {Stage::First(image)};
  for (size_t i = 0; i < all.size() && all.size() < kMost; ++i) {
    for (uint32_t step = 0; step < image.script_count; ++step) {
      Stage next = all[i];
      char& letter = next.letters[image.script[step].device];
      letter = LetterAfter(letter, image.script[step]);
      const bool known = std::any_of(all.begin(), all.end(), [&](const Stage& stage) {
        return std::strcmp(stage.letters, next.letters) == 0;
      });
      if (!known) all.push_back(next);
    }
  }
  return all;
}

// Where the process' redirects lead: the tree itself, or in a world with a script a link to the one
// of the stage that is now.
Result<fs::path> WriteTrees(const CompiledWorld& world, const fs::path& run_dir,
                            const fs::path& cache) {
  if (world.image->script_count == 0) {
    const sysfs::Materialised made = WriteTree(world, Stage::First(*world.image), cache);
    if (!made.error.empty()) return Error{made.error};
    return made.root;
  }
  const fs::path now = run_dir / "tree";
  fs::remove(now);
  for (const Stage& stage : StagesOf(*world.image)) {
    const sysfs::Materialised made = WriteTree(world, stage, cache);
    if (!made.error.empty()) return Error{made.error};
    const fs::path name = std::string("tree.") + stage.letters;
    fs::remove(run_dir / name);
    fs::create_symlink(fs::absolute(made.root), run_dir / name);
    if (!fs::is_symlink(now)) fs::create_symlink(name, now);
  }
  return now;
}

}  // namespace

Result<fs::path> WriteWorld(const CompiledWorld& world, const fs::path& run_dir,
                            const fs::path& cache_dir) {
  WorldImage& image = *world.image;
  try {
    fs::create_directories(run_dir);
    const fs::path cache = cache_dir.empty() ? run_dir / "trees" : cache_dir;
    fs::create_directories(cache);
    auto root = WriteTrees(world, run_dir, cache);
    if (!root) return Error{root.error()};
    if (auto added = AddRedirects(*root, &image); !added) return Error{added.error()};
  } catch (const fs::filesystem_error& error) {
    return Error{error.what()};
  }
  const fs::path path = run_dir / "world";
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&image), sizeof image);
  out.close();
  if (!out) return Error{path.string() + ": cannot be written"};
  return path;
}

}  // namespace vabi
