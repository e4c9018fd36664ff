// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_ABI_TABLES_H_
#define VABI_HARNESS_WORLD_ABI_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <span>

// The vocabulary shared by the harness, which fills a world from a kernel's facts, and the fake
// kernel, which reads it: every structure, field, constant, rule, knob, command and method that the
// fake kernel knows by name has one id here. The rows stand in the rooms that use them (*.def).

namespace vabi {

enum class StructId : uint16_t {
#define VABI_STRUCT(name) name,
#include "harness/world/all_tables.inc"
  kCount
};

enum class FieldId : uint16_t {
#define VABI_FIELD_AT(structure, id, path) structure##__##id,
#include "harness/world/all_tables.inc"
  kCount
};

enum class ConstId : uint16_t {
#define VABI_CONST(name) name,
#include "harness/world/all_tables.inc"
  kCount
};

enum class RuleId : uint16_t {
#define VABI_RULE(id, name, error, kind, source) id,
#include "harness/world/all_tables.inc"
  kCount
};

enum class KnobId : uint16_t {
#define VABI_KNOB(id, name, value, doc) id,
#include "harness/world/all_tables.inc"
  kCount
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
  kCount
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

// How a rule behaves when `test --relax` takes it away: a check is skipped; a structural rule (a
// handle that is not there, say) cannot be skipped, so it answers with an errno that no kernel uses
// there.
enum class RuleKind : uint8_t { check, structural };

struct FieldRow {
  StructId structure;
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

std::span<const char* const> StructNames();
std::span<const FieldRow> FieldRows();
std::span<const char* const> ConstNames();
std::span<const RuleRow> RuleRows();
std::span<const KnobRow> KnobRows();
std::span<const char* const> WriteNames();
std::span<const char* const> WriteExNames();
std::span<const MethodRow> MethodRows();
std::span<const char* const> OpNames();
std::span<const DriverRow> DriverRows();

// Changes whenever any row does; a world written for other tables is refused.
uint64_t TablesDigest();

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_ABI_TABLES_H_
