// SPDX-License-Identifier: BSD-2-Clause
#include "harness/trace/matchers.h"

#include <algorithm>
#include <cstring>
#include <ostream>
#include <utility>

namespace vabi::traces {
namespace {

std::string ErrorName(long result) {
  const char* name = strerrorname_np(static_cast<int>(-result));
  return name != nullptr ? name : "errno " + std::to_string(-result);
}

}  // namespace

Wanted::Wanted(std::vector<std::string> via, std::string name, std::string inner)
    : via_(std::move(via)), name_(std::move(name)), inner_(std::move(inner)) {}

Wanted Wanted::Fails(int error) const {
  Wanted copy = *this;
  copy.result_ = -error;
  return copy;
}
Wanted Wanted::Answered(long result) const {
  Wanted copy = *this;
  copy.result_ = result;
  return copy;
}
Wanted Wanted::Extended(bool extended) const {
  Wanted copy = *this;
  copy.extended_ = extended;
  return copy;
}
Wanted Wanted::Core(int in, int out) const {
  Wanted copy = *this;
  copy.core_in_ = in;
  copy.core_out_ = out;
  return copy;
}
Wanted Wanted::Uhw(int in, int out) const {
  Wanted copy = *this;
  copy.uhw_in_ = in;
  copy.uhw_out_ = out;
  return copy;
}
Wanted Wanted::Flags(uint64_t flags) const {
  Wanted copy = *this;
  copy.flags_ = flags;
  return copy;
}
Wanted Wanted::Refusing(std::string rule) const {
  Wanted copy = *this;
  copy.rule_ = std::move(rule);
  return copy;
}
Wanted Wanted::Device(std::string device) const {
  Wanted copy = *this;
  copy.device_ = std::move(device);
  return copy;
}

bool Wanted::MatchAndExplain(const Command& command, std::ostream* why) const {
  std::string wrong;
  const auto differs = [&wrong](bool is, std::string text) {
    if (!is) return;
    wrong += (wrong.empty() ? "" : ", ") + std::move(text);
  };
  differs(!via_.empty() && std::find(via_.begin(), via_.end(), command.via) == via_.end(),
          "came by " + command.via);
  differs(command.name != name_ && (command.inner.empty() || command.inner != name_),
          "is " + command.name + (command.inner.empty() ? "" : " of " + command.inner));
  differs(!inner_.empty() && command.inner != inner_, "holds " + command.inner);
  if (!result_) {
    differs(command.failed(), "was refused with " + ErrorName(command.result));
  } else if (*result_ < 0) {
    differs(command.result != *result_, command.failed()
                                            ? "was refused with " + ErrorName(command.result)
                                            : std::string("was carried out"));
  } else {
    differs(command.result != *result_, "answered " + std::to_string(command.result));
  }
  differs(extended_ && command.extended() != *extended_,
          command.extended() ? "is extended" : "is not extended");
  differs(core_in_ && command.core_in != *core_in_,
          "has a request of " + std::to_string(command.core_in));
  differs(core_out_ && command.core_out != *core_out_,
          "has a reply of " + std::to_string(command.core_out));
  differs(uhw_in_ && command.uhw_in != *uhw_in_,
          "has a driver request of " + std::to_string(command.uhw_in));
  differs(uhw_out_ && command.uhw_out != *uhw_out_,
          "has a driver reply of " + std::to_string(command.uhw_out));
  differs(flags_ && command.flags != flags_, command.flags
                                                 ? "has flags " + std::to_string(*command.flags)
                                                 : std::string("has no flags"));
  differs(!rule_.empty() && command.rule != rule_, "was refused by rule '" + command.rule + "'");
  differs(!device_.empty() && command.device != device_, "is of device '" + command.device + "'");
  if (wrong.empty()) return true;
  if (why != nullptr) *why << "which " << wrong << "; around it:\n" << Around(command);
  return false;
}

void Wanted::DescribeTo(std::ostream* out) const {
  *out << "is ";
  for (size_t i = 0; i < via_.size(); ++i) *out << (i > 0 ? "|" : "") << via_[i];
  *out << (via_.empty() ? "" : " ") << name_;
  if (!inner_.empty()) *out << " of " << (extended_ && *extended_ ? "extended " : "") << inner_;
  if (core_in_) *out << " core " << *core_in_ << '/' << *core_out_;
  if (uhw_in_) *out << " uhw " << *uhw_in_ << '/' << *uhw_out_;
  if (flags_) *out << " flags 0x" << std::hex << *flags_ << std::dec;
  if (!result_) {
    *out << ", carried out";
  } else if (*result_ < 0) {
    *out << ", refused with " << ErrorName(*result_);
  } else {
    *out << ", answered " << *result_;
  }
  if (!rule_.empty()) *out << " by rule " << rule_;
  if (!device_.empty()) *out << ", of " << device_;
}

void Wanted::DescribeNegationTo(std::ostream* out) const {
  *out << "not: ";
  DescribeTo(out);
}

Wanted Wrote(std::string name) { return {{"write"}, std::move(name)}; }
Wanted WroteExtended(std::string name) { return {{"write_ex"}, std::move(name)}; }
Wanted Called(std::string method) { return {{"ioctl"}, std::move(method)}; }
Wanted Invoked(std::string name) {
  return Wanted({"ioctl"}, "DEVICE.INVOKE_WRITE", std::move(name)).Extended(false);
}
Wanted InvokedExtended(std::string name) {
  return Wanted({"ioctl"}, "DEVICE.INVOKE_WRITE", std::move(name)).Extended(true);
}
Wanted Failed(std::string name, int error) { return Wanted({}, std::move(name)).Fails(error); }
Wanted Mapped(std::string kind) { return {{"mmap"}, "mmap:" + std::move(kind)}; }

}  // namespace vabi::traces
