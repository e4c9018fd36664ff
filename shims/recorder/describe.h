// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_RECORDER_DESCRIBE_H_
#define VABI_SHIMS_RECORDER_DESCRIBE_H_

#include <cstddef>
#include <cstdint>

#include "shims/trace/trace.h"

// A command as the program sent it, in the trace's words. Nothing here asks a kernel's model: all
// numbers and sizes are those that never changed. The caller's memory is read as the kernel reads
// it; what cannot be read is left out.

namespace vabi::recorder {

// A descriptor that a command gave to the program.
struct NewFile {
  enum class Kind : uint8_t { kNone, kCompletionEvents, kAsyncEvents } kind = Kind::kNone;
  uint64_t address = 0;  // where the kernel writes its number, 4 bytes
};

// write() of `size` bytes to a device.
void DescribeWrite(const void* user, size_t size, trace::Record* record, NewFile* made);
// ioctl() of a device. Call before the kernel does: it writes into the attributes.
void DescribeIoctl(unsigned long request, const void* argument, trace::Record* record,
                   NewFile* made);
// A request to RDMA netlink, from its message's type.
void DescribeNetlink(uint16_t type, size_t payload, trace::Record* record);

}  // namespace vabi::recorder

#endif  // VABI_SHIMS_RECORDER_DESCRIBE_H_
