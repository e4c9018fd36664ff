// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/extract.h"

#include <algorithm>
#include <map>

#include "harness/facts/clang_parse.h"
#include "harness/facts/json.h"
#include "harness/facts/sha256.h"

namespace vabi::facts {
namespace {

namespace fs = std::filesystem;

// librdmacm installs its own public headers into the same folder; they are no kernel interface.
constexpr std::string_view kLibraryHeaders[] = {"rdma/rdma_cma.h", "rdma/rdma_cma_abi.h",
                                                "rdma/rdma_verbs.h", "rdma/rsocket.h"};

std::vector<std::string> HeadersIn(const fs::path& include_dir) {
  std::vector<std::string> paths;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(include_dir / "rdma", error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code none;  // a link to itself is no file
    if (!it->is_regular_file(none) || it->path().extension() != ".h") continue;
    std::string path = it->path().lexically_relative(include_dir).string();
    if (std::find(std::begin(kLibraryHeaders), std::end(kLibraryHeaders), path) ==
        std::end(kLibraryHeaders)) {
      paths.push_back(std::move(path));
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool SameLayout(const Struct& a, const Struct& b) {
  if (a.size != b.size || a.align != b.align || a.fields.size() != b.fields.size()) return false;
  for (size_t i = 0; i < a.fields.size(); ++i) {
    const Field& x = a.fields[i];
    const Field& y = b.fields[i];
    if (x.offset != y.offset || x.size != y.size || x.dims != y.dims ||
        x.bit_offset != y.bit_offset || (x.record && !SameLayout(*x.record, *y.record))) {
      return false;
    }
  }
  return true;
}

// Types defined in place carry their own 32-bit layout too.
void KeepInPlace32(Struct& record, const Struct& record32) {
  for (size_t i = 0; i < record.fields.size(); ++i) {
    Field& field = record.fields[i];
    if (!field.record || SameLayout(*field.record, *record32.fields[i].record)) continue;
    Struct copy = *field.record;
    KeepInPlace32(copy, *record32.fields[i].record);
    copy.i386 = record32.fields[i].record;
    field.record = std::make_shared<const Struct>(std::move(copy));
  }
}

// Puts what 32 bit has different into the 64-bit facts. False when the two do not declare the same
// things.
bool Merge(Header& header, const Header& header32) {
  if (header.decls.size() != header32.decls.size()) return false;
  for (size_t i = 0; i < header.decls.size(); ++i) {
    Decl& decl = header.decls[i];
    const Decl& decl32 = header32.decls[i];
    if (decl.index() != decl32.index()) return false;
    if (auto* record = std::get_if<Struct>(&decl)) {
      const auto& record32 = std::get<Struct>(decl32);
      if (record->name != record32.name || record->fields.size() != record32.fields.size())
        return false;
      if (SameLayout(*record, record32)) continue;
      KeepInPlace32(*record, record32);
      record->i386 = std::make_shared<const Struct>(record32);
    } else if (auto* macro = std::get_if<Macro>(&decl)) {
      const auto& macro32 = std::get<Macro>(decl32);
      if (macro->name != macro32.name) return false;
      if (macro->value != macro32.value) macro->value_i386 = macro32.value;
    } else if (auto* type = std::get_if<Typedef>(&decl)) {
      type->size_i386 = std::get<Typedef>(decl32).size;
      type->align_i386 = std::get<Typedef>(decl32).align;
    } else if (std::get<Enum>(decl).values != std::get<Enum>(decl32).values) {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<Extraction> ExtractFacts(const fs::path& include_dir, const std::string& name,
                                const Source& source) {
  std::vector<std::string> paths = HeadersIn(include_dir);
  if (paths.empty()) {
    return Error{include_dir.string() +
                 ": has no rdma/*.h; expected a folder of kernel headers that include as <rdma/…>"};
  }
  ClangParser parser64(include_dir, Arch::kX86_64), parser32(include_dir, Arch::kI386);
  std::vector<Header> headers;
  std::vector<Problem> problems;
  for (const std::string& path : paths) {
    Problem problem;
    std::optional<Header> header = parser64.Parse(path, problem);
    std::optional<Header> header32 = header ? parser32.Parse(path, problem) : std::nullopt;
    if (header32 && !Merge(*header, *header32)) {
      problem.message =
          "declares other things for i386 than for x86_64, which the facts cannot hold";
      header32.reset();
    }
    if (!header32) {
      problems.push_back(problem);
      continue;
    }
    header->digest = ShortDigest(WriteHeader(*header));
    headers.push_back(std::move(*header));
  }
  if (headers.empty()) {
    const Problem& first = problems.front();
    return Error{include_dir.string() + ": none of its " + std::to_string(paths.size()) +
                 " headers can be parsed; the first: " + first.header + ":" +
                 std::to_string(first.line) + ": " + first.message};
  }
  Source marked = source;
  std::string broken;
  for (const Problem& problem : problems) broken += (broken.empty() ? "" : " ") + problem.header;
  if (!broken.empty()) marked.emplace_back("broken", broken);
  Result<Snapshot> snapshot = Snapshot::FromHeaders(name, std::move(marked), std::move(headers));
  if (!snapshot) return Error{snapshot.error()};
  return Extraction{std::move(*snapshot), std::move(problems)};
}

}  // namespace vabi::facts
