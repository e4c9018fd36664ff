// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_TRACE_COMMAND_H_
#define VABI_HARNESS_TRACE_COMMAND_H_

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// One line of a trace (docs/trace.md) as tests ask about it.

namespace vabi::traces {

struct Attribute {
  uint32_t id = 0;
  uint32_t length = 0;
  uint32_t flags = 0;
  std::optional<uint64_t> value;  // only where the data stands in the attribute itself
};

struct Command {
  std::string
      via;  // "open", "write", "write_ex", "ioctl", "mmap", "read", "netlink", "doorbell", "close"
  std::string device;  // empty where there is none yet
  std::string name;    // "CREATE_CQ", "CQ.CREATE", "DEVICE.INVOKE_WRITE", "mmap:UAR", "GET_CHARDEV"
  std::string inner;   // INVOKE_WRITE: the write command behind it
  int object = -1, method = -1, command = -1;  // as sent; -1: there is none
  int core_in = -1, core_out = -1;             // bytes, without headers; -1: not told
  int uhw_in = -1, uhw_out = -1;               // bytes for the driver; -1: none sent
  std::optional<uint64_t> flags;               // the driver's; of an mmap: the offset
  std::vector<Attribute> attributes;           // in the caller's order
  long result = 0;                             // 0 or more, or minus errno
  std::string error;                           // its name
  std::string rule, fault, unmodelled;
  long pid = 0;

  // The whole trace that it is from, so that a failed match can show what happened around it.
  std::shared_ptr<const std::vector<Command>> trace;
  size_t place = 0;

  bool failed() const { return result < 0; }
  // A command of the uverbs file, whichever way it came.
  bool is_verb() const { return via == "write" || via == "write_ex" || via == "ioctl"; }
  // The extended form: written so, or behind INVOKE_WRITE with that bit.
  bool extended() const;
  // What is asked for, without the way: the inner command of INVOKE_WRITE, else the name.
  const std::string& what() const { return inner.empty() ? name : inner; }
};

// One line: "#3 ioctl DEVICE.GET_CONTEXT uhw 32/72 flags 0x1: EINVAL (mlx5.ucontext.flags)".
std::ostream& operator<<(std::ostream& out, const Command& command);
std::string Text(const Command& command);

// The commands around it, one a line, itself marked.
std::string Around(const Command& command, size_t lines = 4);

}  // namespace vabi::traces

#endif  // VABI_HARNESS_TRACE_COMMAND_H_
