// SPDX-License-Identifier: BSD-2-Clause
//
// The UAPI of one kernel or one library release: all facts about its rdma headers.
#ifndef VABI_HARNESS_FACTS_SNAPSHOT_H_
#define VABI_HARNESS_FACTS_SNAPSHOT_H_

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/facts/model.h"
#include "harness/facts/result.h"

namespace vabi::facts {

// A member found by path; offsets count from the start of the struct where the path began.
struct FieldRef {
  uint32_t offset = 0;  // bytes
  uint32_t size = 0;    // bytes; of one element when the path ends in an index
  std::string type;
  std::vector<uint32_t> dims;  // of what is left after indexing
  bool flexible = false;
  uint32_t bit_offset = 0;  // bits from the start; only with bit_width != 0
  uint32_t bit_width = 0;
  const Field* field = nullptr;    // the declaration; lives as long as the snapshot
  const Struct* record = nullptr;  // the type, when it is a struct or union known here; else null

  uint32_t end() const { return offset + size; }
};

class Snapshot {
 public:
  // Reads DIR/NAME.json and the header files it lists. The error names file, line or JSON pointer,
  // and what was expected there.
  static Result<Snapshot> Load(const std::filesystem::path& dir, const std::string& name);

  // A snapshot made of headers at hand. Fails when two headers define a struct of the same name
  // differently.
  static Result<Snapshot> FromHeaders(std::string name, Source source, std::vector<Header> headers,
                                      std::vector<Arch> archs = {Arch::kX86_64, Arch::kI386});

  const std::string& name() const { return name_; }
  const std::string& stack() const { return stack_; }
  uint32_t page_size() const { return page_size_; }
  const std::vector<Arch>& archs() const { return archs_; }
  const Source& source() const { return source_; }
  // Value of one source key, empty when it is not there.
  std::string_view SourceOf(std::string_view key) const;
  const std::vector<Header>& headers() const { return *headers_; }
  const Header* FindHeader(std::string_view path) const;

  // Struct or union by name, "ib_uverbs_send_wr", also one that is defined inside another. Null
  // when unknown.
  const Struct* FindStruct(std::string_view name, Arch arch = Arch::kX86_64) const;

  // Member by path from `record`: "wr.rdma.remote_addr". Members of anonymous structs and unions
  // count as members of the record around them; "[i]" picks an array element. Follows named struct
  // types that the snapshot has. Nothing when a part of the path does not exist.
  std::optional<FieldRef> FindField(const Struct& record, std::string_view path,
                                    Arch arch = Arch::kX86_64) const;
  std::optional<FieldRef> FindField(std::string_view struct_name, std::string_view path,
                                    Arch arch = Arch::kX86_64) const;

  // Value of an enumerator or of a macro that is an integer constant.
  std::optional<int64_t> Constant(std::string_view name, Arch arch = Arch::kX86_64) const;

  // By name, "" for anonymous ones is not found. Null when unknown.
  const Enum* FindEnum(std::string_view name) const;
  const Macro* FindMacro(std::string_view name) const;

  // In the order of headers and declarations. Structs: top-level ones, in the layout of `arch`.
  void ForEachStruct(const std::function<void(const Header&, const Struct&)>& visit,
                     Arch arch = Arch::kX86_64) const;
  void ForEachEnum(const std::function<void(const Header&, const Enum&)>& visit) const;
  void ForEachMacro(const std::function<void(const Header&, const Macro&)>& visit) const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  template <typename T>
  using ByName = std::unordered_map<std::string, T, Hash, std::equal_to<>>;

  std::optional<Error> Index();
  void IndexInPlace(const Struct& record);

  std::string name_;
  std::string stack_ = "rdma-core";
  uint32_t page_size_ = 4096;
  std::vector<Arch> archs_ = {Arch::kX86_64, Arch::kI386};
  Source source_;
  // Behind a pointer, so that the indexes and callers' pointers survive a move.
  std::shared_ptr<const std::vector<Header>> headers_;
  ByName<const Struct*> structs_;
  ByName<const Enum*> enums_;
  ByName<const Macro*> macros_;
  ByName<int64_t> enumerators_;

  friend class SnapshotReader;
};

// The record in the layout of `arch`.
inline const Struct& LayoutFor(const Struct& record, Arch arch) {
  return arch == Arch::kI386 && record.i386 ? *record.i386 : record;
}

// "x86_64", "i386".
std::string_view ArchName(Arch arch);

// Names of the snapshots in DIR, sorted. Empty when there is none or DIR cannot be read.
std::vector<std::string> ListSnapshots(const std::filesystem::path& dir);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_SNAPSHOT_H_
