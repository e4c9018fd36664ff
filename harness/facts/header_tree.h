// SPDX-License-Identifier: BSD-2-Clause
//
// Finds kernel headers in whatever a user has: a folder, a package, a kernel or rdma-core tree, a
// git revision.
#ifndef VABI_HARNESS_FACTS_HEADER_TREE_H_
#define VABI_HARNESS_FACTS_HEADER_TREE_H_

#include <filesystem>
#include <memory>
#include <string>

#include "harness/facts/model.h"
#include "harness/facts/result.h"

namespace vabi::facts {

// A folder below which headers include as <rdma/…>. What had to be unpacked for it is deleted with
// the last copy.
struct HeaderTree {
  std::filesystem::path include_dir;
  std::string
      name;  // proposed for the snapshot: "debian-6.1.192", "rdma-core-v44", "linux-6.1.192"
  Source source;
  std::shared_ptr<void> unpacked;
};

// A character of which a snapshot's name is made, which becomes a file's name.
bool MayNameSnapshots(char c);

// `spec` is one of
//   DIR              /usr/include, an unpacked package, a kernel tree, an rdma-core tree, or a
//   folder with rdma/ FILE.deb         linux-libc-dev, or a package of kernel headers FILE.rpm
//   kernel-headers or kernel-devel (needs rpm2cpio and cpio) git:PATH@REV     a revision of a
//   kernel or rdma-core repository, bare or not
// The error says what was looked for and where.
Result<HeaderTree> OpenHeaders(const std::string& spec);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_HEADER_TREE_H_
