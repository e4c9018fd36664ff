// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYSFS_SYSFS_FILE_H_
#define VABI_SHIMS_SYSFS_SYSFS_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

// A file tree in memory, as a process of the world sees it.

namespace vabi::sysfs {

// One file or symbolic link. Directories exist because something stands in them.
struct File {
  std::string content;
  uint32_t mode = 0444;
  int read_errno = 0;       // not 0: it opens, and its read fails with this errno
  std::string link_target;  // not empty: a symbolic link
  bool directory = false;   // an empty directory
};

// By absolute path, without trailing slash.
class Tree {
 public:
  void Add(std::string path, std::string content, uint32_t mode = 0444);
  void AddUnreadable(std::string path, int error, uint32_t mode = 0444);
  void AddDirectory(std::string path);
  // A relative link at `path` to the absolute `target`, as sysfs makes them.
  void AddLink(std::string path, std::string_view target);

  // The path with every symbolic link on the way (not a last one) followed inside the tree.
  std::string Canonical(std::string_view path) const;

  const std::map<std::string, File>& files() const { return files_; }
  std::map<std::string, File>& files() { return files_; }

 private:
  std::map<std::string, File> files_;
};

}  // namespace vabi::sysfs

#endif  // VABI_SHIMS_SYSFS_SYSFS_FILE_H_
