// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_TEST_FD_TABLE_H_
#define VABI_SHIMS_UVERBS_TEST_FD_TABLE_H_

#include <vector>

#include "shims/vma.h"

namespace vabi {

// What was mapped last.
const DeviceVma& NewestVma();

// As if the process had called seteuid().
void BumpCredentialGeneration();
// Closes every descriptor of the table.
void CloseAllFiles();

// Descriptors that calls of a test opened. They are closed before the world is installed anew:
// their files know it by its address.
class OpenedFds {
 public:
  OpenedFds() = default;
  ~OpenedFds() { Close(); }
  OpenedFds(const OpenedFds&) = delete;
  OpenedFds& operator=(const OpenedFds&) = delete;
  void push_back(int fd) { fds_.push_back(fd); }
  int back() const { return fds_.back(); }
  void Close();

 private:
  std::vector<int> fds_;
};

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_TEST_FD_TABLE_H_
