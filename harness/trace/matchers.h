// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_TRACE_MATCHERS_H_
#define VABI_HARNESS_TRACE_MATCHERS_H_

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

#include "harness/trace/command.h"

// Matchers of single commands, to stand in ElementsAre, Contains, Each and so on. A mismatch names
// what differs and shows the trace around the command.

namespace vabi::traces {

// What a command is wanted to be; unset fields do not matter. Matchers are made by the functions
// below and refined by its methods: Called("DEVICE.GET_CONTEXT").Uhw(32,
// 72).Flags(1).Fails(EINVAL).
class Wanted {
 public:
  using is_gtest_matcher = void;

  Wanted(std::vector<std::string> via, std::string name, std::string inner = {});

  Wanted Fails(int error) const;  // an errno
  Wanted Answered(long result) const;
  Wanted Extended(bool extended) const;
  Wanted Core(int in, int out) const;
  Wanted Uhw(int in, int out) const;  // -1: none sent
  Wanted Flags(uint64_t flags) const;
  Wanted Refusing(std::string rule) const;
  Wanted Device(std::string device) const;

  bool MatchAndExplain(const Command& command, std::ostream* why) const;
  void DescribeTo(std::ostream* out) const;
  void DescribeNegationTo(std::ostream* out) const;

 private:
  std::vector<std::string> via_;  // one of them; empty: any
  std::string name_, inner_, rule_, device_;
  std::optional<long> result_;  // unset: carried out
  std::optional<bool> extended_;
  std::optional<int> core_in_, core_out_, uhw_in_, uhw_out_;
  std::optional<uint64_t> flags_;
};

// Carried out: as a legacy write(), as an extended one, as an ioctl method of its own, behind
// INVOKE_WRITE.
Wanted Wrote(std::string name);
Wanted WroteExtended(std::string name);
Wanted Called(std::string method);
Wanted Invoked(std::string name);
Wanted InvokedExtended(std::string name);
// Refused with this errno: an ioctl method ("DEVICE.INVOKE_WRITE"), a write command ("ALLOC_PD") by
// any way, an mmap ("mmap:UAR"), a netlink operation.
Wanted Failed(std::string name, int error);
Wanted Mapped(std::string kind);

}  // namespace vabi::traces

#endif  // VABI_HARNESS_TRACE_MATCHERS_H_
