// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/history.h"

#include <strings.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "harness/facts/text.h"

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

// What changed with no danger by itself, and with nothing that tells of it: told by name.
bool IsQuiet(const Change& change) {
  switch (change.change_class) {
    case ChangeClass::kAppended:
    case ChangeClass::kZeroFilled:
    case ChangeClass::kCarvedReserved:
    case ChangeClass::kCarvedPadding:
    case ChangeClass::kRealigned:
    case ChangeClass::kRenamed:
      return !change.dangerous;
    default:
      return false;
  }
}

std::string Counts(const std::vector<Change>& changes) {
  std::map<std::string_view, size_t> classes;
  for (const Change& change : changes) {
    if (!change.dangerous && !IsQuiet(change)) ++classes[ClassName(change.change_class)];
  }
  std::string out;
  for (const auto& [name, count] : classes) {
    out += (out.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(name);
  }
  return out;
}

std::string Line(const Change& change) {
  std::string arch =
      change.archs.size() == 1 ? ", " + std::string(ArchName(change.archs[0])) + " only" : "";
  std::string name(ClassName(change.change_class));
  if (change.dangerous) name = "**" + name + "**";
  return "- " + name + " `" + change.subject + "`: " + change.before +
         (change.after.empty() ? " is gone" : " → " + change.after) + arch + "\n";
}

// An ABI version that has another value now.
bool IsVersion(const Change& change) {
  return change.change_class == ChangeClass::kRenumbered &&
         change.subject.find("ABI_VERSION") != std::string::npos;
}

}  // namespace

std::vector<std::string> InVersionOrder(std::vector<std::string> names) {
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return strverscmp(a.c_str(), b.c_str()) < 0;
  });
  return names;
}

std::vector<Snapshot> InKernelOrder(std::vector<Snapshot> snapshots) {
  constexpr std::string_view kLinux = "linux-";
  auto key = [&](const Snapshot& snapshot) {
    bool vanilla = snapshot.name().starts_with(kLinux);
    std::string kernel(vanilla ? std::string_view(snapshot.name()).substr(kLinux.size())
                               : snapshot.SourceOf("kernel"));
    return std::pair(kernel, vanilla);
  };
  auto before = [&](const Snapshot& a, const Snapshot& b) {
    auto [kernel_a, vanilla_a] = key(a);
    auto [kernel_b, vanilla_b] = key(b);
    if (kernel_a.empty() || kernel_b.empty()) return !kernel_a.empty() && kernel_b.empty();
    int order = strverscmp(kernel_a.c_str(), kernel_b.c_str());
    return order != 0 ? order < 0 : vanilla_a < vanilla_b;
  };
  std::stable_sort(snapshots.begin(), snapshots.end(), before);
  return snapshots;
}

std::string RenderHistory(const std::vector<Snapshot>& snapshots) {
  std::string out, versions;
  for (size_t i = 1; i < snapshots.size(); ++i) {
    const Snapshot& a = snapshots[i - 1];
    const Snapshot& b = snapshots[i];
    std::vector<Change> changes = Diff(a, b);
    if (changes.empty()) continue;
    out += "\n## " + b.name();
    if (std::string_view kernel = b.SourceOf("kernel"); !kernel.empty())
      out += ", kernel " + std::string(kernel);
    out += "\n\n";
    if (std::string origin = Origin(b); !origin.empty()) out += origin + "\n\n";
    for (const Change& change : changes) {
      if (change.dangerous) out += Line(change);
      if (IsVersion(change)) AddItem(versions, change.subject + " in " + b.name());
    }
    for (const Change& change : changes) {
      if (IsQuiet(change)) out += Line(change);
    }
    if (std::string counts = Counts(changes); !counts.empty()) out += "- and " + counts + "\n";
  }
  std::string head = "# Header history, " + snapshots.front().name() + " to " +
                     snapshots.back().name() +
                     "\n\nWhat changed with each snapshot against the one before; what can hurt a "
                     "library is **bold**. ";
  head += versions.empty() ? "No ABI version changed, so none tells of any of it.\n"
                           : "ABI versions that changed: " + versions + ".\n";
  return head + out;
}

}  // namespace vabi::facts
