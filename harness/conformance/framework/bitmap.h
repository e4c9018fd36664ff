// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CONFORMANCE_FRAMEWORK_BITMAP_H_
#define VABI_HARNESS_CONFORMANCE_FRAMEWORK_BITMAP_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/conformance/framework/fallback_table.h"
#include "harness/trace/command.h"

namespace vabi::conformance {

// The bitmap of one context as libibverbs keeps it
// (libibverbs/cmd_fallback.c:_execute_ioctl_fallback), led along a trace: every ioctl must be of a
// method whose bit is not set, every written command that stands for a method must be of one whose
// bit is set.
class Bitmap {
 public:
  explicit Bitmap(Release release) : release_(release) {}

  // What contradicts it, each with the trace around; nothing when all is well.
  std::vector<std::string> Follow(const std::vector<traces::Command>& commands);
  const std::set<std::string, std::less<>>& marked() const { return marked_; }

 private:
  void FollowIoctl(const traces::Command& command);
  void FollowWritten(const traces::Command& command);
  bool IsMarked(std::string_view bit) const { return all_ || marked_.find(bit) != marked_.end(); }
  void Wrong(const traces::Command& command, const std::string& text);

  const Release release_;
  bool all_ = false;
  std::set<std::string, std::less<>> marked_;
  std::vector<std::string> wrong_;
};

}  // namespace vabi::conformance

#endif  // VABI_HARNESS_CONFORMANCE_FRAMEWORK_BITMAP_H_
