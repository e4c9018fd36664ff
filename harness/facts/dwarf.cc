// SPDX-License-Identifier: BSD-2-Clause
//
// Struct layouts out of DWARF, by libdw.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <unistd.h>

#include <functional>
#include <optional>

#include "harness/facts/binary.h"

namespace vabi::facts {
namespace {

namespace fs = std::filesystem;

// Types nest a few levels deep; more is damage.
constexpr int kDepth = 16;

std::string NameOf(Dwarf_Die* die) {
  const char* name = dwarf_diename(die);
  return name ? name : "";
}

std::optional<Dwarf_Die> TypeOf(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  Dwarf_Die type;
  if (!dwarf_attr_integrate(die, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, &type))
    return std::nullopt;
  return type;
}

std::optional<uint64_t> Number(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value;
  if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0)
    return std::nullopt;
  return value;
}

bool IsRecord(int tag) { return tag == DW_TAG_structure_type || tag == DW_TAG_union_type; }

void ForEachChild(Dwarf_Die* die, const std::function<void(Dwarf_Die*)>& visit) {
  Dwarf_Die child;
  if (dwarf_child(die, &child) != 0) return;
  do visit(&child);
  while (dwarf_siblingof(&child, &child) == 0);
}

Struct RecordOf(Dwarf_Die* die, int depth);

// Array lengths, outermost first.
void AddDims(Dwarf_Die* array, Field& field) {
  ForEachChild(array, [&](Dwarf_Die* child) {
    if (dwarf_tag(child) != DW_TAG_subrange_type) return;
    std::optional<uint64_t> count = Number(child, DW_AT_count), bound;
    if (!count && (bound = Number(child, DW_AT_upper_bound))) count = *bound + 1;
    // [] has no length, and gcc gives [0] none or an upper bound of -1.
    uint32_t length = count ? static_cast<uint32_t>(*count) : 0;
    if (field.dims.empty() && length == 0) field.flexible = true;
    field.dims.push_back(length);
  });
}

// The type of a member: its spelling, size, dimensions and, for a struct or union, its members.
void Describe(Dwarf_Die type, Field& field, int depth) {
  std::string spelled;
  for (int i = 0; i < kDepth; ++i) {
    int tag = dwarf_tag(&type);
    if (tag == DW_TAG_array_type) AddDims(&type, field);
    if (tag == DW_TAG_typedef && spelled.empty()) spelled = NameOf(&type);
    if (tag != DW_TAG_array_type && tag != DW_TAG_typedef && tag != DW_TAG_const_type &&
        tag != DW_TAG_volatile_type)
      break;
    std::optional<Dwarf_Die> next = TypeOf(&type);
    if (!next) break;
    type = *next;
  }
  int tag = dwarf_tag(&type);
  uint64_t size = 0;
  if (tag == DW_TAG_pointer_type) {
    size = sizeof(void*);
    if (spelled.empty()) spelled = "void *";
  } else {
    size = Number(&type, DW_AT_byte_size).value_or(0);
  }
  if (IsRecord(tag)) {
    if (spelled.empty()) {
      spelled = tag == DW_TAG_union_type ? "union" : "struct";
      if (std::string name = NameOf(&type); !name.empty()) spelled += " " + name;
    }
    if (depth < kDepth) field.record = std::make_shared<const Struct>(RecordOf(&type, depth + 1));
  }
  field.type = spelled.empty() ? NameOf(&type) : spelled;
  for (uint32_t dim : field.dims) size *= dim;
  field.size = static_cast<uint32_t>(size);
}

Struct RecordOf(Dwarf_Die* die, int depth) {
  Struct record;
  record.name = NameOf(die);
  record.is_union = dwarf_tag(die) == DW_TAG_union_type;
  record.size = static_cast<uint32_t>(Number(die, DW_AT_byte_size).value_or(0));
  ForEachChild(die, [&](Dwarf_Die* child) {
    if (dwarf_tag(child) != DW_TAG_member) return;
    Field field;
    field.name = NameOf(child);
    field.offset = static_cast<uint32_t>(Number(child, DW_AT_data_member_location).value_or(0));
    if (auto type = TypeOf(child)) Describe(*type, field, depth);
    if (auto width = Number(child, DW_AT_bit_size)) {
      field.bit_width = static_cast<uint32_t>(*width);
      field.bit_offset = static_cast<uint32_t>(
          Number(child, DW_AT_data_bit_offset).value_or(uint64_t{field.offset} * 8));
      field.offset = field.bit_offset / 8;
    }
    record.fields.push_back(std::move(field));
  });
  return record;
}

struct File {
  explicit File(const fs::path& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (dwarf) dwarf_end(dwarf);
    if (fd >= 0) close(fd);
  }
  int fd;
  Dwarf* dwarf = nullptr;
};

}  // namespace

Result<BinaryTypes> ReadDwarf(const fs::path& path, const std::set<std::string>& names) {
  BinaryTypes types;
  File file(path);
  if (file.fd < 0) return Error{path.string() + ": cannot be read"};
  char magic[4] = {};
  if (pread(file.fd, magic, sizeof magic, 0) != 4 || std::string(magic, 4) !=
                                                         "\x7f"
                                                         "ELF")
    return Error{path.string() + ": is no ELF file; expected a library built with -g"};
  types.files.push_back(path.filename().string());
  file.dwarf = dwarf_begin(file.fd, DWARF_C_READ);
  Dwarf_Off offset = 0, next = 0;
  size_t header_size = 0;
  bool any = false;
  while (file.dwarf &&
         dwarf_nextcu(file.dwarf, offset, &next, &header_size, nullptr, nullptr, nullptr) == 0) {
    Dwarf_Die unit;
    if (dwarf_offdie(file.dwarf, offset + header_size, &unit)) {
      any = true;
      ForEachChild(&unit, [&](Dwarf_Die* die) {
        if (!IsRecord(dwarf_tag(die)) || dwarf_hasattr(die, DW_AT_declaration)) return;
        if (std::string name = NameOf(die); names.count(name))
          types.Add(RecordOf(die, 0), path.filename().string());
      });
    }
    offset = next;
  }
  if (!any) types.silent.push_back(path.filename().string());
  return types;
}

}  // namespace vabi::facts
