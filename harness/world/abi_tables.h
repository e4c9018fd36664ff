// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_ABI_TABLES_H_
#define VABI_HARNESS_WORLD_ABI_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <span>

// The vocabulary shared by the harness, which fills a world from a kernel's facts, and the fake
// kernel, which reads it: every structure, field, constant, rule, knob, command and method that the
// fake kernel knows by name has one id here. The rows stand in the rooms that use them (*.def).

// Rows of a provider that has a block (provider_blocks.inc) are numbered apart: a row more or less
// changes nothing for anybody else, and their ids stand in the provider's own header
// (provider_ids.inc).

namespace vabi {

// The providers with blocks.
enum class Block : uint16_t {
#define VABI_BLOCK(name) name,
#include "harness/world/provider_blocks.inc"
  kCount
};

// How many rows a block has room for; abi_tables.cc checks that they suffice.
inline constexpr uint16_t kBlockStructs = 32, kBlockFields = 192, kBlockConsts = 48,
                          kBlockRules = 128, kBlockKnobs = 64, kBlockMethods = 8;

enum class StructId : uint16_t {
#define VABI_STRUCT(name) name,
#include "harness/world/all_tables.inc"
  kShared,
  kCount = kShared + static_cast<uint16_t>(Block::kCount) * kBlockStructs
};

enum class FieldId : uint16_t {
#define VABI_FIELD_AT(structure, id, path) structure##__##id,
#include "harness/world/all_tables.inc"
  kShared,
  kCount = kShared + static_cast<uint16_t>(Block::kCount) * kBlockFields
};

enum class ConstId : uint16_t {
#define VABI_CONST(name) name,
#include "harness/world/all_tables.inc"
  kShared,
  kCount = kShared + static_cast<uint16_t>(Block::kCount) * kBlockConsts
};

enum class RuleId : uint16_t {
#define VABI_RULE(id, name, error, kind, source) id,
#include "harness/world/all_tables.inc"
  kShared,
  kCount = kShared + static_cast<uint16_t>(Block::kCount) * kBlockRules
};

enum class KnobId : uint16_t {
#define VABI_KNOB(id, name, value, doc) id,
#include "harness/world/all_tables.inc"
  kShared,
  kCount = kShared + static_cast<uint16_t>(Block::kCount) * kBlockKnobs
};

enum class WriteId : uint16_t {
#define VABI_WRITE(name) name,
#include "harness/world/all_tables.inc"
  kCount
};

enum class WriteExId : uint16_t {
#define VABI_WRITE_EX(name) name,
#include "harness/world/all_tables.inc"
  kCount
};

enum class MethodId : uint16_t {
#define VABI_METHOD(object, name, object_const, method_const) object##__##name,
#include "harness/world/all_tables.inc"
  kShared,
  kCount = kShared + static_cast<uint16_t>(Block::kCount) * kBlockMethods
};

enum class Op : uint16_t {
#define VABI_OP(name) name,
#include "harness/world/all_tables.inc"
  kCount
};

enum class DriverId : uint16_t {
#define VABI_DRIVER(name, driver_id_const) name,
#include "harness/world/all_tables.inc"
  kCount
};

template <typename Id>
inline constexpr size_t kCountOf = static_cast<size_t>(Id::kCount);

template <typename Id>
constexpr size_t Index(Id id) {
  return static_cast<size_t>(id);
}

// Row `row` of a provider's block.
template <typename Id>
constexpr Id InBlock(Block block, uint16_t capacity, uint16_t row) {
  return static_cast<Id>(static_cast<uint16_t>(Id::kShared) +
                         static_cast<uint16_t>(block) * capacity + row);
}

// The rows of one vocabulary, by id. An id that no row has (the free room of a block) reads as a
// row without a name: "".
template <typename Row>
class Table {
 public:
  constexpr Table(std::span<const Row> shared, std::span<const std::span<const Row>> blocks,
                  uint16_t capacity, const Row& none)
      : shared_(shared), blocks_(blocks), capacity_(capacity), none_(&none) {}
  size_t size() const { return shared_.size() + blocks_.size() * capacity_; }
  // All rows that there are: f(span) for those of all rooms and for each block.
  template <typename F>
  void ForParts(F f) const {
    f(shared_);
    for (const std::span<const Row> rows : blocks_) f(rows);
  }
  const Row& operator[](size_t id) const {
    if (id < shared_.size()) return shared_[id];
    const size_t block = (id - shared_.size()) / capacity_, row = (id - shared_.size()) % capacity_;
    return block < blocks_.size() && row < blocks_[block].size() ? blocks_[block][row] : *none_;
  }

 private:
  std::span<const Row> shared_;
  std::span<const std::span<const Row>> blocks_;
  size_t capacity_;
  const Row* none_;
};

// How a rule behaves when `test --relax` takes it away: a check is skipped; a structural rule (a
// handle that is not there, say) cannot be skipped, so it answers with an errno that no kernel uses
// there.
enum class RuleKind : uint8_t { check, structural };

struct FieldRow {
  const char* structure_name;
  const char* path;
};
struct RuleRow {
  const char* name;  // "ioctl.attr.unknown_mandatory"
  int error;         // positive errno
  RuleKind kind;
  const char* source;  // file, function and version that it was taken from
};
struct KnobRow {
  const char* name;
  int64_t value;
  const char* doc;
};
struct MethodRow {
  const char* name;  // "DEVICE.GET_CONTEXT"
  ConstId object;
  ConstId method;
};
struct DriverRow {
  const char* name;
  ConstId driver_id;
};

const Table<const char*>& StructNames();
const Table<FieldRow>& FieldRows();
const Table<const char*>& ConstNames();
const Table<RuleRow>& RuleRows();
const Table<KnobRow>& KnobRows();
std::span<const char* const> WriteNames();
std::span<const char* const> WriteExNames();
const Table<MethodRow>& MethodRows();
std::span<const char* const> OpNames();
std::span<const DriverRow> DriverRows();

// Changes whenever any row does; a world written for other tables is refused.
uint64_t TablesDigest();

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_ABI_TABLES_H_
