// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_TRACE_TRACE_H_
#define VABI_SHIMS_TRACE_TRACE_H_

#include <cstddef>
#include <cstdint>

#include "harness/world/abi_tables.h"

// The record of every command that crosses the user/kernel border. One JSON object a line, written
// with one write() when the command ends, so that a crash loses nothing before it. No cost when
// there is no trace. The format is documented in docs/trace.md.

namespace vabi::trace {

enum class FrontEnd : uint8_t {
  kOpen,
  kWrite,
  kWriteEx,
  kIoctl,
  kMmap,
  kRead,
  kNetlink,
  kDoorbell,
  kClose
};

struct Attribute {
  uint16_t id;
  uint16_t length;
  uint16_t flags;
  uint64_t value;  // inline value, handle or pointer as sent; pointers are not printed
  bool is_inline;
};

inline constexpr int kMaxAttributes = 32;

struct Record {
  FrontEnd front_end;
  const char* device = "";  // "mlx5_0"
  char name[80] = {};       // "CREATE_CQ", "DEVICE.INVOKE_WRITE", "mmap:UAR", "GET_CHARDEV"
  char inner[40] = {};      // INVOKE_WRITE: the write command behind it
  int32_t object = -1, method = -1;     // ioctl numbers as sent
  int32_t command = -1;                 // write number as sent
  int32_t core_in = -1, core_out = -1;  // bytes, without headers
  int32_t uhw_in = -1, uhw_out = -1;    // bytes; -1: none sent
  uint64_t flags = 0;  // driver flags worth seeing (mlx5 GET_CONTEXT flags, comp_mask)
  bool has_flags = false;
  int attribute_count = 0;
  Attribute attributes[kMaxAttributes];
  long result = 0;                   // >= 0, or -errno
  int rule = -1;                     // RuleId that refused it
  const char* fault = nullptr;       // an overlay answered, not the kernel
  const char* unmodelled = nullptr;  // what the fake kernel does not model here
  uint64_t start_ns = 0;
};

// What the answer that is being made told the program: every part of it, in order. The next Write
// of this thread has it as the line's `answer`, unless nothing was said. Words that are addresses
// in the program (its user_handle, say) differ from run to run and count as zero.
void Answered(const void* bytes, size_t size);
// copy_to_user of such a part: 0 or -EFAULT. Commands that answer write to the program by this
// alone.
int Reply(uint64_t to, const void* from, size_t size);

// True when this process writes a trace. Cheap; ask before filling a Record's details.
bool Enabled();
void Open(const char* path);  // empty: none
void Write(const Record& record);
// A line of its own for what is no command: {"event": name, "text": text}.
void Event(const char* name, const char* text);
// The event "sysfs": what the program found in a file when it opened it, or the errno (positive; 0:
// none). `text` need not end with a NUL and may be null. Not written where only gaps are.
void Sysfs(const char* path, const char* text, size_t length, int error);
// Would a process of a world with this trace_path write more than gaps?
bool WritesAll(const char* trace_path);

}  // namespace vabi::trace

#endif  // VABI_SHIMS_TRACE_TRACE_H_
