// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/snapshot.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "harness/facts/scalar.h"

namespace vabi::facts {
namespace {

constexpr std::string_view kStructPrefix = "struct ";
constexpr std::string_view kUnionPrefix = "union ";

// "struct ib_uverbs_wc" → "ib_uverbs_wc"; empty when the type is no record or a pointer to one.
std::string_view RecordName(std::string_view type) {
  if (type.ends_with('*')) return {};
  for (std::string_view prefix : {kStructPrefix, kUnionPrefix}) {
    if (type.starts_with(prefix)) return type.substr(prefix.size());
  }
  return {};
}

struct Part {
  std::string_view name;
  std::vector<uint32_t> indexes;
};

// "sg[1][2]" → sg, {1, 2}. Nothing when the text is malformed.
std::optional<Part> ParsePart(std::string_view text) {
  Part part;
  size_t bracket = text.find('[');
  part.name = text.substr(0, bracket);
  if (part.name.empty()) return std::nullopt;
  while (bracket != std::string_view::npos) {
    size_t close = text.find(']', bracket);
    if (close == std::string_view::npos) return std::nullopt;
    uint32_t index = 0;
    const char* last = text.data() + close;
    auto [end, error] = std::from_chars(text.data() + bracket + 1, last, index);
    if (error != std::errc() || end != last) return std::nullopt;
    part.indexes.push_back(index);
    bracket = close + 1 == text.size() ? std::string_view::npos : close + 1;
    if (bracket != std::string_view::npos && text[bracket] != '[') return std::nullopt;
  }
  return part;
}

struct Member {
  const Field* field;
  uint32_t offset;  // from the record that was searched
};

// Looks through anonymous members as the C compiler does.
std::optional<Member> FindMember(const Struct& record, std::string_view name, uint32_t base) {
  for (const Field& field : record.fields) {
    if (field.name == name) return Member{&field, base + field.offset};
    if (field.name.empty() && field.record) {
      if (auto found = FindMember(*field.record, name, base + field.offset)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view ArchName(Arch arch) { return arch == Arch::kI386 ? "i386" : "x86_64"; }

std::string_view Snapshot::SourceOf(std::string_view key) const {
  for (const auto& [name, value] : source_) {
    if (name == key) return value;
  }
  return {};
}

const Header* Snapshot::FindHeader(std::string_view path) const {
  for (const Header& header : *headers_) {
    if (header.path == path) return &header;
  }
  return nullptr;
}

const Struct* Snapshot::FindStruct(std::string_view name, Arch arch) const {
  auto found = structs_.find(name);
  return found == structs_.end() ? nullptr : &LayoutFor(*found->second, arch);
}

std::optional<FieldRef> Snapshot::FindField(std::string_view struct_name, std::string_view path,
                                            Arch arch) const {
  const Struct* record = FindStruct(struct_name, arch);
  return record ? FindField(*record, path, arch) : std::nullopt;
}

std::optional<FieldRef> Snapshot::FindField(const Struct& start, std::string_view path,
                                            Arch arch) const {
  const Struct* record = &LayoutFor(start, arch);
  FieldRef ref;
  while (true) {
    size_t dot = path.find('.');
    std::optional<Part> part = ParsePart(path.substr(0, dot));
    if (!part || !record) return std::nullopt;
    std::optional<Member> member = FindMember(*record, part->name, ref.offset);
    if (!member) return std::nullopt;

    const Field& field = *member->field;
    ref.field = &field;
    ref.bit_offset =
        field.is_bitfield() ? (member->offset - field.offset) * 8 + field.bit_offset : 0;
    ref.bit_width = field.bit_width;
    ref.offset = member->offset;
    ref.size = field.size;
    ref.type = field.type;
    ref.dims = field.dims;
    ref.flexible = field.flexible;
    std::string_view type_name = RecordName(field.type);
    ref.record = field.record        ? field.record.get()
                 : type_name.empty() ? nullptr
                                     : FindStruct(type_name, arch);

    for (uint32_t index : part->indexes) {
      if (ref.dims.empty()) return std::nullopt;
      uint32_t element = 0;
      if (ref.flexible) {
        // Only the type knows the size of what a flexible array repeats.
        element = ref.record ? ref.record->size : ScalarSize(ref.type, arch).value_or(0);
        for (size_t i = 1; i < ref.dims.size(); ++i) element *= ref.dims[i];
        if (element == 0) return std::nullopt;
      } else {
        if (index >= ref.dims[0]) return std::nullopt;
        element = ref.size / ref.dims[0];
      }
      ref.offset += index * element;
      ref.size = element;
      ref.dims.erase(ref.dims.begin());
      ref.flexible = false;
    }
    if (dot == std::string_view::npos) return ref;
    path.remove_prefix(dot + 1);
    record = ref.record;
  }
}

std::optional<int64_t> Snapshot::Constant(std::string_view name, Arch arch) const {
  if (auto found = enumerators_.find(name); found != enumerators_.end()) return found->second;
  const Macro* macro = FindMacro(name);
  if (!macro) return std::nullopt;
  return arch == Arch::kI386 && macro->value_i386 ? macro->value_i386 : macro->value;
}

const Enum* Snapshot::FindEnum(std::string_view name) const {
  auto found = enums_.find(name);
  return found == enums_.end() ? nullptr : found->second;
}

const Macro* Snapshot::FindMacro(std::string_view name) const {
  auto found = macros_.find(name);
  return found == macros_.end() ? nullptr : found->second;
}

void Snapshot::ForEachStruct(const std::function<void(const Header&, const Struct&)>& visit,
                             Arch arch) const {
  for (const Header& header : *headers_) {
    for (const Decl& decl : header.decls) {
      if (auto* record = std::get_if<Struct>(&decl)) visit(header, LayoutFor(*record, arch));
    }
  }
}

void Snapshot::ForEachEnum(const std::function<void(const Header&, const Enum&)>& visit) const {
  for (const Header& header : *headers_) {
    for (const Decl& decl : header.decls) {
      if (auto* e = std::get_if<Enum>(&decl)) visit(header, *e);
    }
  }
}

void Snapshot::ForEachMacro(const std::function<void(const Header&, const Macro&)>& visit) const {
  for (const Header& header : *headers_) {
    for (const Decl& decl : header.decls) {
      if (auto* macro = std::get_if<Macro>(&decl)) visit(header, *macro);
    }
  }
}

Result<Snapshot> Snapshot::FromHeaders(std::string name, Source source, std::vector<Header> headers,
                                       std::vector<Arch> archs) {
  Snapshot snapshot;
  snapshot.name_ = std::move(name);
  snapshot.archs_ = std::move(archs);
  snapshot.source_ = std::move(source);
  snapshot.headers_ = std::make_shared<const std::vector<Header>>(std::move(headers));
  if (auto error = snapshot.Index()) return *error;
  return snapshot;
}

// Types defined in place can be found by their own name, as C puts them into file scope.
void Snapshot::IndexInPlace(const Struct& record) {
  for (const Field& field : record.fields) {
    if (!field.record) continue;
    if (!field.record->name.empty()) structs_.emplace(field.record->name, field.record.get());
    IndexInPlace(*field.record);
  }
}

std::optional<Error> Snapshot::Index() {
  for (const Header& header : *headers_) {
    for (const Decl& decl : header.decls) {
      if (auto* record = std::get_if<Struct>(&decl)) {
        if (!structs_.emplace(record->name, record).second) {
          return Error{name_ + ": " + header.path + " defines '" + record->name +
                       "' a second time: a struct must be defined once in a snapshot"};
        }
        IndexInPlace(*record);
      } else if (auto* e = std::get_if<Enum>(&decl)) {
        if (!e->name.empty()) enums_.emplace(e->name, e);
        for (const auto& [enumerator, value] : e->values) enumerators_.emplace(enumerator, value);
      } else if (auto* macro = std::get_if<Macro>(&decl)) {
        macros_.emplace(macro->name, macro);
      }
    }
  }
  return std::nullopt;
}

std::vector<std::string> ListSnapshots(const std::filesystem::path& dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(dir, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::filesystem::path& path = it->path();
    if (path.extension() == ".json" && path.stem().extension() != ".schema")
      names.push_back(path.stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace vabi::facts
