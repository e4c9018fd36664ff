// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/binary.h"

#include <algorithm>
#include <functional>

#include "harness/facts/json.h"
#include "harness/facts/sha256.h"
#include "harness/facts/text.h"

namespace vabi::facts {
namespace {

bool SameLayout(const Struct& a, const Struct& b) {
  if (a.is_union != b.is_union || a.size != b.size || a.fields.size() != b.fields.size())
    return false;
  for (size_t i = 0; i < a.fields.size(); ++i) {
    const Field &x = a.fields[i], &y = b.fields[i];
    if (x.name != y.name || x.offset != y.offset || x.size != y.size || x.dims != y.dims ||
        x.bit_offset != y.bit_offset || x.bit_width != y.bit_width ||
        static_cast<bool>(x.record) != static_cast<bool>(y.record))
      return false;
    if (x.record && !SameLayout(*x.record, *y.record)) return false;
  }
  return true;
}

// Paths of members whose type the facts define in place, and of those that they do not.
void SortPaths(const Struct& record, const std::string& prefix, std::set<std::string>& in_place,
               std::set<std::string>& plain) {
  for (const Field& field : record.fields) {
    std::string path = prefix;
    if (!field.name.empty()) path += (prefix.empty() ? "" : ".") + field.name;
    if (!field.record) {
      plain.insert(path);
      continue;
    }
    if (!field.name.empty()) in_place.insert(path);
    SortPaths(*field.record, path, in_place, plain);
  }
}

// A binary does not tell whether a type was defined in place: this takes apart what the facts take
// apart, so that both name the same members.
Struct Shaped(const Struct& record, const std::string& prefix,
              const std::set<std::string>& in_place, const std::set<std::string>& plain) {
  Struct shaped = record;
  for (Field& field : shaped.fields) {
    if (!field.record) continue;
    std::string path = prefix;
    if (!field.name.empty()) path += (prefix.empty() ? "" : ".") + field.name;
    bool apart = field.name.empty() || in_place.count(path) ||
                 (field.record->name.empty() && !plain.count(path));
    field.record =
        apart ? std::make_shared<const Struct>(Shaped(*field.record, path, in_place, plain))
              : nullptr;
  }
  return shaped;
}

// Spelling of types, and members that a library adds as another view of the same bytes.
bool IsNoise(const Change& change) {
  return change.change_class == ChangeClass::kRetyped ||
         change.change_class == ChangeClass::kRealigned ||
         (change.change_class == ChangeClass::kAdded && !change.dangerous);
}

size_t Dangers(const std::vector<Change>& changes) {
  return static_cast<size_t>(std::count_if(changes.begin(), changes.end(), [](const Change& one) {
    return one.dangerous && !IsNoise(one);
  }));
}

void CompareOne(const Header& header, const Struct& facts, const BinaryStruct& binary,
                LayoutReport& report, bool& equal) {
  std::set<std::string> in_place, plain;
  SortPaths(facts, "", in_place, plain);
  Struct shaped = Shaped(binary.layout, "", in_place, plain);
  // The older one comes first, so that what the newer one added counts as that. The shorter one is
  // the older: growth at the end is what both sides are made for. Of equal length, the order that
  // finds less danger: what was carved from reserved members looks like a loss from the other side.
  bool binary_first = shaped.size < facts.size;
  std::vector<Change> changes = DiffStruct(header.path, facts, shaped);
  if (shaped.size <= facts.size) {
    std::vector<Change> reversed = DiffStruct(header.path, shaped, facts);
    if (binary_first || Dangers(reversed) < Dangers(changes)) {
      binary_first = true;
      changes = std::move(reversed);
    }
  }
  for (Change& change : changes) {
    if (IsNoise(change)) continue;
    if (binary_first) std::swap(change.before, change.after);
    change.archs = {Arch::kX86_64};
    equal = false;
    report.differences.push_back({std::move(change), binary.file});
  }
}

// BTF tells no sign of 32-bit values.
bool SameNumber(int64_t a, int64_t b) {
  return a == b || (a <= UINT32_MAX && static_cast<uint32_t>(a) == static_cast<uint32_t>(b));
}

void CompareEnumerators(const Snapshot& facts, const BinaryTypes& binary, LayoutReport& report) {
  facts.ForEachEnum([&](const Header& header, const Enum& e) {
    for (const auto& [name, value] : e.values) {
      auto found = binary.enumerators.find(name);
      if (found == binary.enumerators.end()) continue;
      // A maximum that follows its enum is never sent.
      if (SameNumber(value, found->second) || name.find("MAX") != std::string::npos) continue;
      Change change;
      change.change_class = ChangeClass::kRenumbered;
      change.dangerous = true;
      change.header = header.path;
      change.subject = name;
      change.before = std::to_string(value);
      change.after = std::to_string(found->second);
      change.why = "the two sides mean different things by the same number";
      report.differences.push_back({std::move(change), ""});
    }
  });
}

}  // namespace

void BinaryTypes::Add(Struct layout, const std::string& file) {
  std::vector<BinaryStruct>& known = structs[layout.name];
  for (const BinaryStruct& one : known) {
    if (SameLayout(one.layout, layout)) return;
  }
  known.push_back({std::move(layout), file});
}

bool LayoutReport::dangerous() const {
  return std::any_of(differences.begin(), differences.end(),
                     [](const LayoutDifference& one) { return one.change.dangerous; });
}

LayoutReport CompareLayouts(const Snapshot& facts, const BinaryTypes& binary) {
  LayoutReport report;
  facts.ForEachStruct([&](const Header& header, const Struct& record) {
    auto found = binary.structs.find(record.name);
    if (found == binary.structs.end()) {
      report.absent.push_back(record.name);
      return;
    }
    bool equal = true;
    for (const BinaryStruct& one : found->second) CompareOne(header, record, one, report, equal);
    if (equal) report.equal.push_back(record.name);
  });
  CompareEnumerators(facts, binary, report);
  return report;
}

Result<Snapshot> TakeLayouts(const Snapshot& base, const BinaryTypes& binary, std::string name,
                             Source source) {
  std::string replaced;
  std::vector<Header> headers = base.headers();
  for (Header& header : headers) {
    for (Decl& decl : header.decls) {
      if (auto* record = std::get_if<Struct>(&decl)) {
        auto found = binary.structs.find(record->name);
        bool equal = true;
        LayoutReport ignored;
        if (found == binary.structs.end()) continue;
        CompareOne(header, *record, found->second.front(), ignored, equal);
        if (equal) continue;
        std::set<std::string> in_place, plain;
        SortPaths(*record, "", in_place, plain);
        uint32_t align = record->align;
        *record = Shaped(found->second.front().layout, "", in_place, plain);
        record->align = align;
        AddItem(replaced, record->name, " ");
      } else if (auto* e = std::get_if<Enum>(&decl)) {
        for (auto& [constant, value] : e->values) {
          auto found = binary.enumerators.find(constant);
          if (found == binary.enumerators.end() || SameNumber(value, found->second)) continue;
          value = found->second;
          AddItem(replaced, constant, " ");
        }
      }
    }
    header.digest = ShortDigest(WriteHeader(header));
  }
  source.emplace_back("base", base.name());
  if (replaced.empty())
    return Snapshot::FromHeaders(std::move(name), std::move(source), std::move(headers));
  source.emplace_back("replaced", replaced);
  for (Header& header : headers) {
    for (Decl& decl : header.decls) {
      if (auto* record = std::get_if<Struct>(&decl)) record->i386 = nullptr;
    }
    header.digest = ShortDigest(WriteHeader(header));
  }
  return Snapshot::FromHeaders(std::move(name), std::move(source), std::move(headers),
                               {Arch::kX86_64});
}

std::set<std::string> StructNames(const Snapshot& snapshot) {
  std::set<std::string> names;
  snapshot.ForEachStruct([&](const Header&, const Struct& record) { names.insert(record.name); });
  return names;
}

}  // namespace vabi::facts
