// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/bitmap.h"

#include <cerrno>

namespace vabi::conformance {

using traces::Command;

std::vector<std::string> Bitmap::Follow(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (command.via == "ioctl" && command.name != "DEVICE.INVOKE_WRITE") {
      FollowIoctl(command);
    } else if (command.is_verb()) {
      FollowWritten(command);
    }
  }
  return wrong_;
}

void Bitmap::FollowIoctl(const Command& command) {
  const FallbackRow* row = FallbackOfMethod(command.name, release_);
  if (row == nullptr) return;  // DEVX, UAR: these look at no bit
  if (IsMarked(row->bit))
    Wrong(command, "is tried although bit " + std::string(row->bit) + " is set");
  if (command.result == -ENOTTY) all_ = true;
  if (command.result == -EPROTONOSUPPORT) marked_.insert(std::string(row->bit));
}

// The probe at open, INVOKE_WRITE of QUERY_DEVICE, stands for no method, and marks nothing whatever
// it is answered.
void Bitmap::FollowWritten(const Command& command) {
  const FallbackRow* row = FallbackOfCommand(command.what(), command.extended());
  if (row == nullptr || IsMarked(row->bit)) return;
  Wrong(command, "is written although bit " + std::string(row->bit) + " is not set");
}

void Bitmap::Wrong(const Command& command, const std::string& text) {
  wrong_.push_back(traces::Text(command) + " " + text + "\n" + traces::Around(command));
}

}  // namespace vabi::conformance
