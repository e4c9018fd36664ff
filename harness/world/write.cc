// SPDX-License-Identifier: BSD-2-Clause
#include "harness/world/write.h"

#include <cstring>
#include <fstream>
#include <string>

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

}  // namespace

Result<fs::path> WriteWorld(const CompiledWorld& world, const fs::path& run_dir,
                            const fs::path& cache_dir) {
  WorldImage& image = *world.image;
  try {
    fs::create_directories(run_dir);
    const fs::path cache = cache_dir.empty() ? run_dir / "trees" : cache_dir;
    fs::create_directories(cache);
    sysfs::Tree tree;
    sysfs::DescribeSysfs(image, &tree);
    sysfs::DescribeDev(image, &tree);
    sysfs::ApplyEdits(world.sysfs_edits, &tree);
    const sysfs::Materialised made = sysfs::Materialise(tree, cache);
    if (!made.error.empty()) return Error{made.error};
    if (auto added = AddRedirects(made.root, &image); !added) return Error{added.error()};
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
