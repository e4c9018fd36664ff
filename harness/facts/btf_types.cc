// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/btf_types.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/facts/temporary.h"

namespace vabi::facts {
namespace {

// Types nest a few levels deep; more is damage.
constexpr int kDepth = 16;

bool IsRecord(const btf_type* type) { return btf_is_struct(type) || btf_is_union(type); }

class Reader {
 public:
  explicit Reader(const struct btf* btf) : btf_(btf) {}

  std::string Name(uint32_t offset) const {
    const char* name = btf__name_by_offset(btf_, offset);
    return name ? name : "";
  }

  Struct RecordOf(const btf_type* type, int depth) const {
    Struct record;
    record.name = Name(type->name_off);
    record.is_union = btf_is_union(type);
    record.size = type->size;
    const btf_member* members = btf_members(type);
    for (uint32_t i = 0; i < btf_vlen(type); ++i) {
      Field field;
      field.name = Name(members[i].name_off);
      uint32_t bit = btf_member_bit_offset(type, i);
      field.offset = bit / 8;
      field.bit_width = btf_member_bitfield_size(type, i);
      if (field.bit_width) field.bit_offset = bit;
      Describe(members[i].type, field, depth);
      record.fields.push_back(std::move(field));
    }
    return record;
  }

 private:
  void Describe(uint32_t id, Field& field, int depth) const {
    std::string spelled;
    const btf_type* type = btf__type_by_id(btf_, id);
    for (int i = 0; type && i < kDepth; ++i) {
      if (btf_is_array(type)) {
        const struct btf_array* array = btf_array(type);
        if (field.dims.empty() && array->nelems == 0) field.flexible = true;
        field.dims.push_back(array->nelems);
        type = btf__type_by_id(btf_, array->type);
      } else if (btf_is_typedef(type) || btf_is_mod(type)) {
        if (btf_is_typedef(type) && spelled.empty()) spelled = Name(type->name_off);
        type = btf__type_by_id(btf_, type->type);
      } else {
        break;
      }
    }
    if (!type) return;
    uint32_t size = btf_is_ptr(type) ? sizeof(void*) : type->size;
    if (IsRecord(type)) {
      if (spelled.empty()) {
        spelled = btf_is_union(type) ? "union" : "struct";
        if (std::string name = Name(type->name_off); !name.empty()) spelled += " " + name;
      }
      if (depth < kDepth) field.record = std::make_shared<const Struct>(RecordOf(type, depth + 1));
    }
    if (spelled.empty()) spelled = btf_is_ptr(type) ? "void *" : Name(type->name_off);
    for (uint32_t dim : field.dims) size *= dim;
    field.type = spelled;
    field.size = size;
  }

  const struct btf* btf_;
};

}  // namespace

Result<Btf> ParseBtf(std::string_view bytes, const Btf& base) {
  // Errors are told by the return value.
  libbpf_set_print(nullptr);
  struct btf* btf = nullptr;
  if (base) {
    // By a file: libbpf 1.1 does not export btf__new_split.
    TemporaryFolder folder;
    std::filesystem::path file = folder.path / "btf";
    std::ofstream(file, std::ios::binary) << bytes;
    btf = btf__parse_raw_split(file.c_str(), base.get());
  } else {
    btf = btf__new(bytes.data(), static_cast<__u32>(bytes.size()));
  }
  if (long code = libbpf_get_error(btf)) {
    char text[128];
    libbpf_strerror(static_cast<int>(code), text, sizeof text);
    return Error{std::string("its BTF cannot be read: ") + text};
  }
  // Its base must live as long.
  return Btf(btf, [base](struct btf* gone) { btf__free(gone); });
}

void AddBtfTypes(const Btf& btf, const std::set<std::string>& names, const std::string& file,
                 BinaryTypes& types) {
  Reader reader(btf.get());
  const struct btf* base = btf__base_btf(btf.get());
  for (uint32_t id = base ? btf__type_cnt(base) : 1; id < btf__type_cnt(btf.get()); ++id) {
    const btf_type* type = btf__type_by_id(btf.get(), id);
    if (IsRecord(type)) {
      if (names.count(reader.Name(type->name_off))) types.Add(reader.RecordOf(type, 0), file);
    } else if (btf_is_enum(type)) {
      for (uint32_t i = 0; i < btf_vlen(type); ++i)
        types.enumerators.emplace(reader.Name(btf_enum(type)[i].name_off), btf_enum(type)[i].val);
    } else if (btf_is_enum64(type)) {
      for (uint32_t i = 0; i < btf_vlen(type); ++i) {
        types.enumerators.emplace(reader.Name(btf_enum64(type)[i].name_off),
                                  static_cast<int64_t>(btf_enum64_value(&btf_enum64(type)[i])));
      }
    }
  }
}

}  // namespace vabi::facts
