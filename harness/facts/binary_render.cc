// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/binary_render.h"

#include "harness/facts/text.h"

namespace vabi::facts {
namespace {

std::string Line(const LayoutDifference& one) {
  const Change& change = one.change;
  std::string text = "  " + std::string(change.dangerous ? "! " : "  ") +
                     std::string(ClassName(change.change_class)) + "  " + change.subject + "  " +
                     (change.before.empty() ? "(nothing)" : change.before) + " → " +
                     (change.after.empty() ? "(nothing)" : change.after);
  if (!one.file.empty()) text += "  [" + one.file + "]";
  return text + "\n" + (change.dangerous ? "        " + change.why + "\n" : "");
}

std::string Lines(const LayoutReport& report) {
  std::string out;
  for (bool dangerous : {true, false}) {
    for (const LayoutDifference& one : report.differences) {
      if (one.change.dangerous == dangerous) out += Line(one);
    }
  }
  return out;
}

Json DifferencesJson(const LayoutReport& report) {
  Json list = Json::array();
  for (const LayoutDifference& one : report.differences) {
    list.push_back({{"class", ClassName(one.change.change_class)},
                    {"dangerous", one.change.dangerous},
                    {"same_place", one.change.same_place},
                    {"header", one.change.header},
                    {"subject", one.change.subject},
                    {"facts", one.change.before},
                    {"binary", one.change.after},
                    {"why", one.change.why},
                    {"file", one.file}});
  }
  return list;
}

// Names in lines of at most 100 columns.
std::string Wrapped(const std::vector<std::string>& names) {
  std::string out, line;
  for (const std::string& name : names) {
    if (line.size() + name.size() > 94) {
      out += "    " + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + name;
  }
  return line.empty() ? out : out + "    " + line + "\n";
}

}  // namespace

std::string RenderModulesText(const ModuleTypes& modules, const Snapshot& facts,
                              const LayoutReport& report, bool chosen) {
  std::string out = modules.release.empty() ? "modules" : modules.release;
  if (!modules.version.empty()) out += " (package " + modules.version + ")";
  out += " against the headers of " + facts.name() +
         (chosen ? " (none was named; these differ least)" : "") + "\n";
  out += std::to_string(report.equal.size()) + " structs are laid out as the headers say, " +
         std::to_string(report.differences.size()) + " differences, " +
         std::to_string(report.absent.size()) + " structs are not in the BTF of " +
         std::to_string(modules.types.files.size()) + " modules\n";
  out += Lines(report);
  if (!modules.types.silent.empty())
    out += "modules without BTF: " + JoinItems(modules.types.silent) + "\n";
  if (!report.absent.empty())
    out += "not in BTF (no code refers to them, or their module is not here):\n" +
           Wrapped(report.absent);
  return out;
}

std::string RenderModulesJson(const ModuleTypes& modules, const Snapshot& facts,
                              const LayoutReport& report, bool chosen) {
  Json out = {{"format", 1},
              {"release", modules.release},
              {"version", modules.version},
              {"modules", modules.types.files},
              {"silent", modules.types.silent},
              {"facts", facts.name()},
              {"chosen", chosen},
              {"equal", report.equal},
              {"absent", report.absent},
              {"differences", DifferencesJson(report)}};
  return out.dump(1) + "\n";
}

std::string RenderLayoutsText(const std::vector<std::string>& snapshots,
                              const std::vector<LibraryLayouts>& libraries) {
  std::string out;
  for (const LibraryLayouts& one : libraries) {
    const std::string& name = one.types.files.front();
    if (!one.types.silent.empty()) {
      out += name + ": has no debug information; build it with -g\n";
      continue;
    }
    for (size_t i = 0; i < snapshots.size(); ++i) {
      const LayoutReport& report = one.reports[i];
      out += name + " against " + snapshots[i] + ": " + std::to_string(report.equal.size()) +
             " structs agree, " + std::to_string(report.differences.size()) + " differences\n" +
             Lines(report);
    }
  }
  return out;
}

std::string RenderLayoutsJson(const std::vector<std::string>& snapshots,
                              const std::vector<LibraryLayouts>& libraries) {
  Json list = Json::array();
  for (const LibraryLayouts& one : libraries) {
    Json names = Json::array(), reports = Json::array();
    for (const auto& [name, variants] : one.types.structs) names.push_back(name);
    for (size_t i = 0; i < one.reports.size(); ++i) {
      reports.push_back({{"facts", snapshots[i]},
                         {"equal", one.reports[i].equal},
                         {"differences", DifferencesJson(one.reports[i])}});
    }
    list.push_back({{"file", one.types.files.front()},
                    {"debug", one.types.silent.empty()},
                    {"structs", names},
                    {"reports", reports}});
  }
  return Json({{"format", 1}, {"libraries", list}}).dump(1) + "\n";
}

}  // namespace vabi::facts
