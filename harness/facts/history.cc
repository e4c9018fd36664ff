// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/history.h"

#include <strings.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace vabi::facts {
namespace {

// "from kernel commit 6c29f57ea475 of 2018-04-16 (IB/mlx5: …)"
std::string Origin(const Snapshot& snapshot) {
  std::string out;
  for (const char* key : {"version", "date", "kernel_commit", "kernel_subject"}) {
    std::string_view value = snapshot.SourceOf(key);
    if (value.empty()) continue;
    std::string label = std::strcmp(key, "kernel_commit") == 0 ? "kernel " : "";
    out += (out.empty() ? "" : ", ") + label + std::string(value);
  }
  return out;
}

std::string Counts(const std::vector<Change>& changes) {
  std::map<std::string_view, size_t> classes;
  for (const Change& change : changes) {
    if (!change.dangerous) ++classes[ClassName(change.change_class)];
  }
  std::string out;
  for (const auto& [name, count] : classes) {
    out += (out.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(name);
  }
  return out;
}

}  // namespace

std::vector<std::string> InVersionOrder(std::vector<std::string> names) {
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return strverscmp(a.c_str(), b.c_str()) < 0;
  });
  return names;
}

std::string RenderHistory(const std::vector<Snapshot>& snapshots) {
  std::string out = "# Header history, " + snapshots.front().name() + " to " +
                    snapshots.back().name() +
                    "\n\nWhat changed with each snapshot against the one before. No ABI version "
                    "tells of any of it.\n";
  for (size_t i = 1; i < snapshots.size(); ++i) {
    const Snapshot& a = snapshots[i - 1];
    const Snapshot& b = snapshots[i];
    std::vector<Change> changes = Diff(a, b);
    if (changes.empty()) continue;
    out += "\n## " + b.name() + "\n\n";
    if (std::string origin = Origin(b); !origin.empty()) out += origin + "\n\n";
    for (const Change& change : changes) {
      if (!change.dangerous) continue;
      std::string arch =
          change.archs.size() == 1 ? ", " + std::string(ArchName(change.archs[0])) + " only" : "";
      out += "- **" + std::string(ClassName(change.change_class)) + "** `" + change.subject +
             "`: " + change.before + (change.after.empty() ? " is gone" : " → " + change.after) +
             arch + "\n";
    }
    if (std::string counts = Counts(changes); !counts.empty())
      out += "- compatible: " + counts + "\n";
  }
  return out;
}

}  // namespace vabi::facts
