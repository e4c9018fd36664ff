// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_FACTS_HISTORY_H_
#define VABI_HARNESS_FACTS_HISTORY_H_

#include <string>
#include <vector>

#include "harness/facts/diff.h"
#include "harness/facts/snapshot.h"

namespace vabi::facts {

// Snapshot names in the order of their versions: rdma-core-v9 before rdma-core-v17.
std::vector<std::string> InVersionOrder(std::vector<std::string> names);

// By the kernel that each is of: what the source says, or "linux-" says in the name. At one kernel
// releases of rdma-core stand first, as they were given, and those that name no kernel stay last.
std::vector<Snapshot> InKernelOrder(std::vector<Snapshot> snapshots);

// A Markdown page: each snapshot in order, with what changed in it since the one before: the
// dangerous changes one by one, the others counted.
std::string RenderHistory(const std::vector<Snapshot>& snapshots);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_HISTORY_H_
