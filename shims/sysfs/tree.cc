// SPDX-License-Identifier: BSD-2-Clause
#include <vector>

#include "shims/sysfs/sysfs_file.h"

namespace vabi::sysfs {
namespace {

std::vector<std::string_view> Components(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.push_back(part);
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return parts;
}

std::string Parent(std::string path) {
  path.resize(path.rfind('/'));
  return path;
}

}  // namespace

void Tree::Add(std::string path, std::string content, uint32_t mode) {
  files_[std::move(path)] = {std::move(content), mode, 0, "", false};
}

void Tree::AddUnreadable(std::string path, int error, uint32_t mode) {
  files_[std::move(path)] = {"", mode, error, "", false};
}

void Tree::AddDirectory(std::string path) { files_[std::move(path)] = {"", 0755, 0, "", true}; }

void Tree::AddLink(std::string path, std::string_view target) {
  const auto from = Components(path);
  const auto to = Components(target);
  size_t common = 0;
  while (common + 1 < from.size() && common < to.size() && from[common] == to[common]) ++common;
  std::string relative;
  for (size_t i = common + 1; i < from.size(); ++i) relative += "../";
  for (size_t i = common; i < to.size(); ++i) {
    relative += to[i];
    if (i + 1 < to.size()) relative += '/';
  }
  files_[std::move(path)] = {"", 0777, 0, std::move(relative), false};
}

std::string Tree::Canonical(std::string_view path) const {
  std::string seen;
  // Links of a tree made here never loop, but edits come from outside: bound the steps.
  int links_left = 40;
  std::vector<std::string> rest;
  const auto parts = Components(path);
  rest.assign(parts.rbegin(), parts.rend());
  while (!rest.empty()) {
    const std::string part = rest.back();
    rest.pop_back();
    if (part == "..") {
      if (!seen.empty()) seen = Parent(seen);
      continue;
    }
    const std::string next = seen + "/" + part;
    const auto found = files_.find(next);
    if (found != files_.end() && !found->second.link_target.empty() && !rest.empty() &&
        links_left-- > 0) {
      const auto target = Components(found->second.link_target);
      for (auto it = target.rbegin(); it != target.rend(); ++it) rest.emplace_back(*it);
      continue;
    }
    seen = next;
  }
  return seen;
}

}  // namespace vabi::sysfs
