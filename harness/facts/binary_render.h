// SPDX-License-Identifier: BSD-2-Clause
//
// How facts and binaries compare, for people and for programs (reference-headers/README.md has the
// JSON).
#ifndef VABI_HARNESS_FACTS_BINARY_RENDER_H_
#define VABI_HARNESS_FACTS_BINARY_RENDER_H_

#include <string>
#include <vector>

#include "harness/facts/binary.h"
#include "harness/facts/cursor.h"
#include "harness/facts/modules.h"

namespace vabi::facts {

// `chosen`: the snapshot was not named, but is the one that the modules differ least from.
std::string RenderModulesText(const ModuleTypes& modules, const Snapshot& facts,
                              const LayoutReport& report, bool chosen);
std::string RenderModulesJson(const ModuleTypes& modules, const Snapshot& facts,
                              const LayoutReport& report, bool chosen);

// One library's types against each of the snapshots.
struct LibraryLayouts {
  BinaryTypes types{};
  std::vector<LayoutReport> reports{};  // in the order of the snapshots
};
std::string RenderLayoutsText(const std::vector<std::string>& snapshots,
                              const std::vector<LibraryLayouts>& libraries);
std::string RenderLayoutsJson(const std::vector<std::string>& snapshots,
                              const std::vector<LibraryLayouts>& libraries);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_BINARY_RENDER_H_
