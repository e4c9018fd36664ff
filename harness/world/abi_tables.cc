// SPDX-License-Identifier: BSD-2-Clause
#include "harness/world/abi_tables.h"

#include <cerrno>
#include <string_view>

#include "harness/world/image.h"

namespace vabi {
namespace {

constexpr const char* kStructNames[] = {
#define VABI_STRUCT(name) #name,
#include "harness/world/all_tables.inc"
};
constexpr FieldRow kFieldRows[] = {
#define VABI_FIELD_AT(structure, id, path) {StructId::structure, #structure, path},
#include "harness/world/all_tables.inc"
};
constexpr const char* kConstNames[] = {
#define VABI_CONST(name) #name,
#include "harness/world/all_tables.inc"
};
constexpr RuleRow kRuleRows[] = {
#define VABI_RULE(id, name, error, kind, source) {name, error, RuleKind::kind, source},
#include "harness/world/all_tables.inc"
};
constexpr KnobRow kKnobRows[] = {
#define VABI_KNOB(id, name, value, doc) {name, value, doc},
#include "harness/world/all_tables.inc"
};
constexpr const char* kWriteNames[] = {
#define VABI_WRITE(name) #name,
#include "harness/world/all_tables.inc"
};
constexpr const char* kWriteExNames[] = {
#define VABI_WRITE_EX(name) #name,
#include "harness/world/all_tables.inc"
};
constexpr MethodRow kMethodRows[] = {
#define VABI_METHOD(object, name, object_const, method_const) \
  {#object "." #name, ConstId::object_const, ConstId::method_const},
#include "harness/world/all_tables.inc"
};
constexpr const char* kOpNames[] = {
#define VABI_OP(name) #name,
#include "harness/world/all_tables.inc"
};
constexpr DriverRow kDriverRows[] = {
#define VABI_DRIVER(name, driver_id_const) {#name, ConstId::driver_id_const},
#include "harness/world/all_tables.inc"
};

constexpr uint64_t Mix(uint64_t digest, std::string_view text) {
  for (char c : text) digest = (digest ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  return (digest ^ 0xff) * 0x100000001b3ULL;
}

constexpr uint64_t Digest() {
  uint64_t digest = 0xcbf29ce484222325ULL ^ sizeof(WorldImage);
  for (const char* name : kStructNames) digest = Mix(digest, name);
  for (const FieldRow& row : kFieldRows) digest = Mix(Mix(digest, row.structure_name), row.path);
  for (const char* name : kConstNames) digest = Mix(digest, name);
  for (const RuleRow& row : kRuleRows) digest = Mix(digest, row.name);
  for (const KnobRow& row : kKnobRows) digest = Mix(digest, row.name);
  for (const char* name : kWriteNames) digest = Mix(digest, name);
  for (const char* name : kWriteExNames) digest = Mix(digest, name);
  for (const MethodRow& row : kMethodRows) digest = Mix(digest, row.name);
  for (const char* name : kOpNames) digest = Mix(digest, name);
  for (const DriverRow& row : kDriverRows) digest = Mix(digest, row.name);
  return digest;
}
// Not worked out by the compiler: a constant evaluation of this length passes its limits.
const uint64_t kDigest = Digest();

}  // namespace

std::span<const char* const> StructNames() { return kStructNames; }
std::span<const FieldRow> FieldRows() { return kFieldRows; }
std::span<const char* const> ConstNames() { return kConstNames; }
std::span<const RuleRow> RuleRows() { return kRuleRows; }
std::span<const KnobRow> KnobRows() { return kKnobRows; }
std::span<const char* const> WriteNames() { return kWriteNames; }
std::span<const char* const> WriteExNames() { return kWriteExNames; }
std::span<const MethodRow> MethodRows() { return kMethodRows; }
std::span<const char* const> OpNames() { return kOpNames; }
std::span<const DriverRow> DriverRows() { return kDriverRows; }
uint64_t TablesDigest() { return kDigest; }

}  // namespace vabi
