// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYSFS_WRITE_TREE_H_
#define VABI_SHIMS_SYSFS_WRITE_TREE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "harness/world/compile.h"
#include "shims/sysfs/sysfs_file.h"

namespace vabi::sysfs {

// What an overlay changes. An edit's path may go through links
// ("/sys/class/infiniband_verbs/uverbs0/…").
void ApplyEdits(const std::vector<SysfsEdit>& edits, Tree* tree);

// Changes whenever anything in the tree does.
std::string Digest(const Tree& tree);

// Writes the tree below `root`, which must not exist. Files of equal content share an inode. A file
// whose read must fail has the sticky bit and holds the errno as a decimal number; the shim knows
// it by that. Empty, or why it failed.
std::string WriteTree(const Tree& tree, const std::filesystem::path& root);

struct Materialised {
  std::filesystem::path root;
  std::string error;  // not empty: what failed
};
// The tree below `cache`, written on first use and then shared read-only by every world that shows
// the same. Safe when several processes do it at once.
Materialised Materialise(const Tree& tree, const std::filesystem::path& cache);

}  // namespace vabi::sysfs

#endif  // VABI_SHIMS_SYSFS_WRITE_TREE_H_
