// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_FACTS_SHOW_H_
#define VABI_HARNESS_FACTS_SHOW_H_

#include <string>

#include "harness/facts/snapshot.h"

namespace vabi::facts {

// Where a snapshot comes from, its headers and how much each declares.
std::string ShowSnapshot(const Snapshot& snapshot);

// The declaration of a struct, a struct's member ("s.path"), an enum or a constant, with its
// header. Empty when the snapshot has nothing of that name.
std::string ShowName(const Snapshot& snapshot, const std::string& name, Arch arch);

// All names that ShowName knows, for suggestions.
std::vector<std::string> AllNames(const Snapshot& snapshot);

// Those of `known` that look most like `name`, best first, at most three.
std::vector<std::string> NearestNames(const std::string& name,
                                      const std::vector<std::string>& known);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_SHOW_H_
