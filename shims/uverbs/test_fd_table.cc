// SPDX-License-Identifier: BSD-2-Clause
// The process' descriptor table for unit tests, where no libc call is interposed.
#include "shims/uverbs/test_fd_table.h"

#include <unistd.h>

#include <map>

#include "shims/file.h"
#include "shims/vma.h"

namespace vabi {
namespace {

std::map<int, std::shared_ptr<File>>& Table() {
  static auto* table = new std::map<int, std::shared_ptr<File>>;
  return *table;
}
uint64_t generation = 1;
DeviceVma newest_vma;

}  // namespace

void FdTable::Install(int fd, std::shared_ptr<File> file) { Table()[fd] = std::move(file); }

std::shared_ptr<File> FdTable::Get(int fd) {
  const auto found = Table().find(fd);
  return found == Table().end() ? nullptr : found->second;
}

void FdTable::Remove(int fd) {
  const auto found = Table().find(fd);
  if (found == Table().end()) return;
  std::shared_ptr<File> file = std::move(found->second);
  Table().erase(found);
  file->Release();
}

uint64_t FdTable::CredentialGeneration() { return generation; }

void VmaTable::Add(const DeviceVma& vma) { newest_vma = vma; }

const DeviceVma& NewestVma() { return newest_vma; }

void BumpCredentialGeneration() { ++generation; }

void CloseAllFiles() {
  while (!Table().empty()) {
    const int fd = Table().begin()->first;
    FdTable::Remove(fd);
    close(fd);
  }
}

void OpenedFds::Close() {
  for (const int fd : fds_) {
    FdTable::Remove(fd);
    close(fd);
  }
  fds_.clear();
}

}  // namespace vabi
