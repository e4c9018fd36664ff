// SPDX-License-Identifier: BSD-2-Clause
#include "harness/trace/trace.h"

#include <algorithm>
#include <memory>
#include <sstream>

namespace vabi::traces {

void Trace::ReadOn() {
  for (Command& command : reader_.Next()) {
    command.place = seen_.size();
    seen_.push_back(std::move(command));
  }
  checked_.resize(seen_.size());
}

std::vector<Command> Trace::Where(const std::function<bool(const Command&)>& holds) {
  ReadOn();
  auto all = std::make_shared<const std::vector<Command>>(seen_);
  std::vector<Command> found;
  for (size_t i = start_; i < seen_.size(); ++i) {
    if (!holds(seen_[i])) continue;
    checked_[i] = true;
    found.push_back(seen_[i]);
    found.back().trace = all;
  }
  return found;
}

std::vector<Command> Trace::All() {
  return Where([](const Command&) { return true; });
}
std::vector<Command> Trace::Commands() {
  return Where([](const Command& command) { return command.is_verb() && !command.failed(); });
}
std::vector<Command> Trace::Ioctls() {
  return Where([](const Command& command) { return command.via == "ioctl"; });
}
std::vector<Command> Trace::Writes() {
  return Where(
      [](const Command& command) { return command.via == "write" || command.via == "write_ex"; });
}
std::vector<Command> Trace::Mmaps() {
  return Where([](const Command& command) { return command.via == "mmap"; });
}
std::vector<Command> Trace::Netlink() {
  return Where([](const Command& command) { return command.via == "netlink"; });
}
std::vector<Command> Trace::Opens() {
  return Where([](const Command& command) { return command.via == "open"; });
}
std::vector<Command> Trace::Refused() {
  return Where([](const Command& command) { return command.failed(); });
}
std::vector<Command> Trace::Of(std::initializer_list<std::string_view> names) {
  return Where([&names](const Command& command) {
    return std::find(names.begin(), names.end(), command.what()) != names.end() ||
           std::find(names.begin(), names.end(), command.name) != names.end();
  });
}

std::vector<Command> Trace::Unchecked() {
  ReadOn();
  std::vector<Command> found;
  auto all = std::make_shared<const std::vector<Command>>(seen_);
  for (size_t i = start_; i < seen_.size(); ++i) {
    if (checked_[i] || !seen_[i].is_verb()) continue;
    found.push_back(seen_[i]);
    found.back().trace = all;
  }
  return found;
}

void Trace::Forget() {
  ReadOn();
  start_ = seen_.size();
}

std::string Trace::Tail(size_t lines) {
  ReadOn();
  std::ostringstream out;
  const size_t first = seen_.size() > lines ? seen_.size() - lines : 0;
  if (first > 0) out << "  … " << first << " before\n";
  for (size_t i = first; i < seen_.size(); ++i) out << "  " << seen_[i] << '\n';
  return out.str();
}

}  // namespace vabi::traces
