// SPDX-License-Identifier: BSD-2-Clause
//
// vabi-facts: ABI facts on the command line. `verbs-abi facts` calls it.
//
// Exit status: 0 fine, 1 a dangerous difference or a header that did not parse, 2 usage or unusable
// input.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/facts/binary.h"
#include "harness/facts/binary_render.h"
#include "harness/facts/diff.h"
#include "harness/facts/extract.h"
#include "harness/facts/generate.h"
#include "harness/facts/header_tree.h"
#include "harness/facts/history.h"
#include "harness/facts/json.h"
#include "harness/facts/modules.h"
#include "harness/facts/show.h"
#include "harness/facts/text.h"

namespace vabi::facts {
namespace {

namespace fs = std::filesystem;
constexpr int kFine = 0, kDifferent = 1, kUsage = 2;

constexpr char kHelp[] =
    R"(usage: vabi-facts [--reference DIR] COMMAND …

  extract SOURCE [--name NAME] [-o DIR]    facts from headers; into DIR, else a summary
  diff A B [--json | --markdown] [--only FILE]
                                           what changed; 1 when something dangerous did; of structs
                                           that FILE names, one a line, when it is given
  headers SNAPSHOT DIR                     C headers from facts
  modules SOURCE [--against SNAPSHOT] [--base VMLINUX] [--json]
                                           what a kernel was compiled with, from its modules' BTF
  modules SOURCE --name NAME -o DIR [--against SNAPSHOT]
                                           a snapshot of it: the headers' facts, with its layouts
  layout LIBRARY … --against SNAPSHOT … [--json]
                                           libraries' structs, from DWARF, against a kernel's
  show SNAPSHOT [NAME …] [--i386]          a snapshot, or structs, members, enums, constants of it
  history [SNAPSHOT …]                     silent changes of all snapshots in order, as Markdown
  list                                     the snapshots in the reference folder

SOURCE is a folder with headers, a kernel or rdma-core tree, a .deb, a .rpm, or git:PATH@REVISION;
for modules a folder with lib/modules, a kernel's .deb, or /sys/kernel/btf.
A, B and SNAPSHOT are names in the reference folder (default: reference-headers), or a SOURCE.
)";

struct Arguments {
  fs::path reference = "reference-headers";
  std::vector<std::string> rest;  // without options
  std::string name, output, base, only;
  std::vector<std::string> against;
  bool json = false, markdown = false, i386 = false;
};

int Complain(const std::string& message) {
  std::fprintf(stderr, "vabi-facts: %s\n", message.c_str());
  return kUsage;
}

// Names of snapshots become names of files in the reference folder.
bool IsFileName(const std::string& name) {
  return !name.empty() && !name.starts_with('.') &&
         std::all_of(name.begin(), name.end(), MayNameSnapshots);
}

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// "; nearest: a, b", or nothing.
std::string Nearest(const std::vector<std::string>& names) {
  return names.empty() ? "" : "; nearest: " + JoinItems(names);
}

void PrintProblems(const std::vector<Problem>& problems) {
  for (const Problem& problem : problems) {
    std::fprintf(stderr, "%s:%u: %s\n", problem.header.c_str(), problem.line,
                 problem.message.c_str());
  }
}

Result<Extraction> Extract(const std::string& source, const std::string& name) {
  Result<HeaderTree> tree = OpenHeaders(source);
  if (!tree) return Error{tree.error()};
  return ExtractFacts(tree->include_dir, name.empty() ? tree->name : name, tree->source);
}

// A stored snapshot by its name, or one that is extracted now.
Result<Snapshot> Open(const Arguments& arguments, const std::string& what) {
  std::error_code error;
  if (fs::exists(arguments.reference / (what + ".json"), error))
    return Snapshot::Load(arguments.reference, what);
  fs::path path(what);
  if (path.extension() == ".json" && fs::exists(path, error)) {
    return Snapshot::Load(path.has_parent_path() ? path.parent_path() : fs::path("."),
                          path.stem().string());
  }
  if (!what.starts_with("git:") && !fs::exists(path, error)) {
    std::string near = Nearest(NearestNames(what, ListSnapshots(arguments.reference)));
    return Error{"'" + what + "' is no snapshot in " + arguments.reference.string() +
                 " and no file or folder" + near};
  }
  Result<Extraction> extraction = Extract(what, "");
  if (!extraction) return Error{extraction.error()};
  PrintProblems(extraction->problems);
  return std::move(extraction->snapshot);
}

int RunExtract(const Arguments& arguments) {
  if (arguments.rest.size() != 1) return Complain("extract: expected one SOURCE");
  Result<Extraction> extraction = Extract(arguments.rest[0], arguments.name);
  if (!extraction) return Complain(extraction.error());
  PrintProblems(extraction->problems);
  if (arguments.output.empty()) {
    Print(ShowSnapshot(extraction->snapshot));
  } else {
    Result<fs::path> file = SaveSnapshot(extraction->snapshot, arguments.output);
    if (!file) return Complain(file.error());
    Print(file->string() + "\n");
  }
  return extraction->problems.empty() ? kFine : kDifferent;
}

// One name a line; empty lines and lines after '#' are left out.
Result<std::set<std::string>> NamesIn(const std::string& file) {
  std::ifstream in(file);
  if (!in) return Error{file + ": cannot be read"};
  std::set<std::string> names;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') names.insert(line);
  }
  if (names.empty()) return Error{file + ": names no struct; expected one a line"};
  return names;
}

int RunDiff(const Arguments& arguments) {
  if (arguments.rest.size() != 2) return Complain("diff: expected two snapshots");
  if (arguments.json && arguments.markdown)
    return Complain("diff: expected one of --json and --markdown, not both");
  Result<Snapshot> a = Open(arguments, arguments.rest[0]);
  if (!a) return Complain(a.error());
  Result<Snapshot> b = Open(arguments, arguments.rest[1]);
  if (!b) return Complain(b.error());
  std::vector<Change> changes = Diff(*a, *b);
  if (!arguments.only.empty()) {
    Result<std::set<std::string>> names = NamesIn(arguments.only);
    if (!names) return Complain(names.error());
    changes = OfStructs(std::move(changes), *names);
  }
  auto render = arguments.json ? RenderJson : arguments.markdown ? RenderMarkdown : RenderText;
  Print(render(*a, *b, changes));
  return AnyDangerous(changes) ? kDifferent : kFine;
}

int RunHeaders(const Arguments& arguments) {
  if (arguments.rest.size() != 2) return Complain("headers: expected a SNAPSHOT and a DIR");
  Result<Snapshot> snapshot = Open(arguments, arguments.rest[0]);
  if (!snapshot) return Complain(snapshot.error());
  Result<size_t> written = GenerateHeaders(*snapshot, arguments.rest[1]);
  if (!written) return Complain(written.error());
  Print(std::to_string(*written) + " headers in " + arguments.rest[1] + "\n");
  return kFine;
}

int RunShow(const Arguments& arguments) {
  if (arguments.rest.empty()) return Complain("show: expected a SNAPSHOT");
  Result<Snapshot> snapshot = Open(arguments, arguments.rest[0]);
  if (!snapshot) return Complain(snapshot.error());
  if (arguments.rest.size() == 1) Print(ShowSnapshot(*snapshot));
  for (size_t i = 1; i < arguments.rest.size(); ++i) {
    const std::string& name = arguments.rest[i];
    std::string text = ShowName(*snapshot, name, arguments.i386 ? Arch::kI386 : Arch::kX86_64);
    if (text.empty()) {
      std::string near = Nearest(NearestNames(name, AllNames(*snapshot)));
      return Complain(
          std::string(snapshot->name()).append(" has no '").append(name).append("'").append(near));
    }
    Print(text);
  }
  return kFine;
}

int PrintHistory(const Arguments& arguments, const std::vector<std::string>& names,
                 bool by_kernel = false) {
  std::vector<Snapshot> snapshots;
  for (const std::string& name : names) {
    Result<Snapshot> snapshot = Open(arguments, name);
    if (!snapshot) return Complain(snapshot.error());
    snapshots.push_back(std::move(*snapshot));
  }
  if (by_kernel) snapshots = InKernelOrder(std::move(snapshots));
  Print(RenderHistory(snapshots));
  return kFine;
}

int RunHistory(const Arguments& arguments) {
  if (arguments.rest.size() == 1) return Complain("history: expected at least two snapshots");
  if (arguments.rest.size() >= 2) return PrintHistory(arguments, arguments.rest);
  // The kernel's own line, as the releases of rdma-core saw it, and packaged kernels by vendor:
  // these carry backports and are no part of it.
  std::vector<std::string> all = InVersionOrder(ListSnapshots(arguments.reference));
  std::map<std::string, std::vector<std::string>> lines;
  for (const std::string& name : all) {
    bool own = name.starts_with("linux-") || name.starts_with("rdma-core-");
    lines[own ? "" : name.substr(0, name.find('-'))].push_back(name);
  }
  if (lines[""].size() < 2) return Complain("history: expected at least two snapshots");
  for (const auto& [vendor, names] : lines) {
    if (names.size() < 2) continue;
    if (!vendor.empty()) Print("\n");
    if (int status = PrintHistory(arguments, names, vendor.empty())) return status;
  }
  return kFine;
}

int RunList(const Arguments& arguments) {
  if (!arguments.rest.empty()) return Complain("list: takes no argument");
  std::vector<std::string> names = InVersionOrder(ListSnapshots(arguments.reference));
  if (names.empty()) return Complain(arguments.reference.string() + ": has no snapshot");
  for (const std::string& name : names) Print(name + "\n");
  return kFine;
}

// The snapshot that the modules differ least from, of all in the reference folder.
Result<Snapshot> Closest(const Arguments& arguments, const BinaryTypes& types) {
  std::optional<Snapshot> best;
  size_t least = 0, most_equal = 0;
  for (const std::string& name : InVersionOrder(ListSnapshots(arguments.reference))) {
    Result<Snapshot> snapshot = Snapshot::Load(arguments.reference, name);
    if (!snapshot) return snapshot;
    LayoutReport report = CompareLayouts(*snapshot, types);
    size_t differences = report.differences.size(), equal = report.equal.size();
    if (best && (differences > least || (differences == least && equal <= most_equal))) continue;
    best = std::move(*snapshot);
    least = differences;
    most_equal = equal;
  }
  if (!best) return Error{arguments.reference.string() + ": has no snapshot"};
  return std::move(*best);
}

// Names of structs in any snapshot that the modules or libraries are compared with.
Result<std::set<std::string>> KnownStructs(const Arguments& arguments,
                                           const std::vector<std::string>& snapshots) {
  std::set<std::string> names;
  for (const std::string& name : snapshots) {
    Result<Snapshot> snapshot = Open(arguments, name);
    if (!snapshot) return Error{snapshot.error()};
    names.merge(StructNames(*snapshot));
  }
  return names;
}

int RunModules(const Arguments& arguments) {
  if (arguments.rest.size() != 1) return Complain("modules: expected one SOURCE");
  if (arguments.against.size() > 1) return Complain("modules: expected at most one --against");
  bool chosen = arguments.against.empty();
  Result<std::set<std::string>> names =
      KnownStructs(arguments, chosen ? ListSnapshots(arguments.reference) : arguments.against);
  if (!names) return Complain(names.error());
  Result<ModuleTypes> modules = ReadModules(arguments.rest[0], arguments.base, *names);
  if (!modules) return Complain(modules.error());
  Result<Snapshot> facts =
      chosen ? Closest(arguments, modules->types) : Open(arguments, arguments.against[0]);
  if (!facts) return Complain(facts.error());
  LayoutReport report = CompareLayouts(*facts, modules->types);
  if (report.equal.empty() && report.differences.empty()) {
    return Complain(arguments.rest[0] + ": its BTF holds none of the structs of " + facts->name() +
                    "; expected the modules of a kernel with RDMA drivers");
  }
  if (!arguments.output.empty()) {
    if (arguments.name.empty()) return Complain("modules: -o needs a --name for the snapshot");
    Source source = {{"kind", "btf"}, {"release", modules->release}};
    Result<Snapshot> taken = TakeLayouts(*facts, modules->types, arguments.name, source);
    if (!taken) return Complain(taken.error());
    Result<fs::path> file = SaveSnapshot(*taken, arguments.output);
    if (!file) return Complain(file.error());
    Print(file->string() + "\n");
    return kFine;
  }
  auto render = arguments.json ? RenderModulesJson : RenderModulesText;
  Print(render(*modules, *facts, report, chosen));
  return report.dangerous() ? kDifferent : kFine;
}

int RunLayout(const Arguments& arguments) {
  if (arguments.rest.empty() || arguments.against.empty())
    return Complain("layout: expected libraries and --against SNAPSHOT");
  Result<std::set<std::string>> names = KnownStructs(arguments, arguments.against);
  if (!names) return Complain(names.error());
  std::vector<LibraryLayouts> libraries;
  for (const std::string& file : arguments.rest) {
    Result<BinaryTypes> types = ReadDwarf(file, *names);
    if (!types) return Complain(types.error());
    libraries.push_back({std::move(*types), {}});
  }
  bool dangerous = false;
  for (const std::string& name : arguments.against) {
    Result<Snapshot> facts = Open(arguments, name);
    if (!facts) return Complain(facts.error());
    for (LibraryLayouts& library : libraries) {
      library.reports.push_back(CompareLayouts(*facts, library.types));
      dangerous |= library.reports.back().dangerous();
    }
  }
  auto render = arguments.json ? RenderLayoutsJson : RenderLayoutsText;
  Print(render(arguments.against, libraries));
  // The JSON says of each library whether there was something to compare.
  const bool silent = std::any_of(libraries.begin(), libraries.end(), [](const auto& library) {
    return !library.types.silent.empty();
  });
  if (silent && !arguments.json) return kUsage;
  return dangerous ? kDifferent : kFine;
}

struct Command {
  const char* name;
  int (*run)(const Arguments&);
};
constexpr Command kCommands[] = {
    {"extract", RunExtract}, {"diff", RunDiff}, {"headers", RunHeaders}, {"modules", RunModules},
    {"layout", RunLayout},   {"show", RunShow}, {"history", RunHistory}, {"list", RunList}};

// Takes `word` for an option that a value follows; null when it is none.
std::string* ValueOf(const std::string& word, Arguments& arguments, std::string& reference) {
  if (word == "--reference") return &reference;
  if (word == "--name") return &arguments.name;
  if (word == "-o") return &arguments.output;
  if (word == "--base") return &arguments.base;
  if (word == "--only") return &arguments.only;
  if (word == "--against") return &arguments.against.emplace_back();
  return nullptr;
}

int Main(std::vector<std::string> words) {
  Arguments arguments;
  std::string reference;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (std::string* value = ValueOf(word, arguments, reference)) {
      if (++i == words.size()) return Complain(word + ": expected a value after it");
      *value = words[i];
      if (!reference.empty()) arguments.reference = reference;
    } else if (word == "--json") {
      arguments.json = true;
    } else if (word == "--markdown") {
      arguments.markdown = true;
    } else if (word == "--i386") {
      arguments.i386 = true;
    } else if (word == "-h" || word == "--help") {
      Print(kHelp);
      return kFine;
    } else if (word.starts_with('-')) {
      return Complain("unknown option '" + word + "'; vabi-facts --help lists them");
    } else {
      arguments.rest.push_back(word);
    }
  }
  if (arguments.rest.empty()) {
    std::fputs(kHelp, stderr);
    return kUsage;
  }
  if (!arguments.name.empty() && !IsFileName(arguments.name)) {
    return Complain("--name '" + arguments.name +
                    "': expected letters, digits and any of .-_+~, for it becomes a file's name");
  }
  std::string name = arguments.rest[0];
  arguments.rest.erase(arguments.rest.begin());
  std::vector<std::string> known;
  for (const Command& command : kCommands) {
    if (name == command.name) return command.run(arguments);
    known.emplace_back(command.name);
  }
  std::string near = Nearest(NearestNames(name, known));
  return Complain("unknown command '" + name + "'" + near);
}

}  // namespace
}  // namespace vabi::facts

int main(int argc, char** argv) {
  try {
    return vabi::facts::Main({argv + 1, argv + argc});
  } catch (const std::exception& error) {  // of the libraries: a name that is no UTF-8, no memory
    return vabi::facts::Complain(error.what());
  }
}
