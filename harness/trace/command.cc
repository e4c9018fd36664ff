// SPDX-License-Identifier: BSD-2-Clause
#include "harness/trace/command.h"

#include <cstring>
#include <ostream>
#include <sstream>

namespace vabi::traces {
namespace {

constexpr uint32_t kWriteCommand = 2;           // UVERBS_ATTR_WRITE_CMD
constexpr uint64_t kExtendedFlag = 0x80000000;  // IB_USER_VERBS_CMD_FLAG_EXTENDED

}  // namespace

bool Command::extended() const {
  if (via == "write_ex") return true;
  if (inner.empty()) return false;
  for (const Attribute& attribute : attributes) {
    if (attribute.id == kWriteCommand && attribute.value)
      return (*attribute.value & kExtendedFlag) != 0;
  }
  return false;
}

std::ostream& operator<<(std::ostream& out, const Command& command) {
  out << '#' << command.place << ' ' << command.via << ' ' << command.name;
  if (!command.inner.empty())
    out << (command.extended() ? " of extended " : " of ") << command.inner;
  if (command.core_in >= 0 || command.core_out >= 0) {
    out << " core " << command.core_in << '/' << command.core_out;
  }
  if (command.uhw_in >= 0 || command.uhw_out >= 0) {
    out << " uhw " << command.uhw_in << '/' << command.uhw_out;
  }
  if (command.flags) out << " flags 0x" << std::hex << *command.flags << std::dec;
  out << ": ";
  if (!command.failed()) return out << "ok";
  if (command.error.empty()) {
    out << "errno " << -command.result;
  } else {
    out << command.error;
  }
  if (!command.rule.empty()) out << " (" << command.rule << ')';
  if (!command.fault.empty()) out << " (overlay " << command.fault << ')';
  if (!command.unmodelled.empty()) out << " (unmodelled: " << command.unmodelled << ')';
  return out;
}

std::string Text(const Command& command) {
  std::ostringstream out;
  out << command;
  return out.str();
}

std::string Around(const Command& command, size_t lines) {
  std::ostringstream out;
  if (command.trace == nullptr) return {};
  const std::vector<Command>& all = *command.trace;
  const size_t first = command.place > lines ? command.place - lines : 0;
  for (size_t i = first; i < all.size() && i <= command.place + lines; ++i) {
    out << (i == command.place ? "  > " : "    ") << all[i] << '\n';
  }
  return out.str();
}

}  // namespace vabi::traces
