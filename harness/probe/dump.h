// SPDX-License-Identifier: BSD-2-Clause
// What discovery sees of a machine, printed so that two machines can be compared line by line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace vabi::probe {

std::string Hex(const char* at, size_t size);

// Every question to RDMA netlink and its answers, for the device of that index. 0 on success.
int DumpNetlink(uint32_t device);

// Files, folders and links below `root`: mode, and contents or the errno of reading. Of long runs
// of numbered files (GIDs, P_Keys) only the first few are read: a table has a thousand of them.
int DumpTree(const std::string& root);

}  // namespace vabi::probe
