// SPDX-License-Identifier: BSD-2-Clause
#include "harness/world/abi_tables.h"

#include <cerrno>
#include <string_view>

#include "harness/world/image.h"
#include "shims/providers/bnxt_re/ids.h"
#include "shims/providers/efa/ids.h"
#include "shims/providers/erdma/ids.h"
#include "shims/providers/hns/ids.h"
#include "shims/providers/irdma/ids.h"
#include "shims/providers/mlx4/ids.h"
#include "shims/providers/siw/ids.h"
#include "shims/providers/vmw_pvrdma/ids.h"

namespace vabi {
namespace {

// Every row of every room; then those of each provider with a block.
namespace shared_rows {
#define VABI_ROWS "harness/world/all_tables.inc"
#define VABI_ROWS_CONST(name) ConstId::name
#include "harness/world/rows.inc"
}  // namespace shared_rows
namespace bnxt_re_rows {
#define VABI_ROWS "shims/providers/bnxt_re/abi.def"
#define VABI_ROWS_CONST(name) bnxt_re::constant::name
#include "harness/world/rows.inc"
}  // namespace bnxt_re_rows
namespace efa_rows {
#define VABI_ROWS "shims/providers/efa/abi.def"
#define VABI_ROWS_CONST(name) efa::constant::name
#include "harness/world/rows.inc"
}  // namespace efa_rows
namespace erdma_rows {
#define VABI_ROWS "shims/providers/erdma/abi.def"
#define VABI_ROWS_CONST(name) erdma::constant::name
#include "harness/world/rows.inc"
}  // namespace erdma_rows
namespace hns_rows {
#define VABI_ROWS "shims/providers/hns/abi.def"
#define VABI_ROWS_CONST(name) hns::constant::name
#include "harness/world/rows.inc"
}  // namespace hns_rows
namespace irdma_rows {
#define VABI_ROWS "shims/providers/irdma/abi.def"
#define VABI_ROWS_CONST(name) irdma::constant::name
#include "harness/world/rows.inc"
}  // namespace irdma_rows
namespace mlx4_rows {
#define VABI_ROWS "shims/providers/mlx4/abi.def"
#define VABI_ROWS_CONST(name) mlx4::constant::name
#include "harness/world/rows.inc"
}  // namespace mlx4_rows
namespace siw_rows {
#define VABI_ROWS "shims/providers/siw/abi.def"
#define VABI_ROWS_CONST(name) siw::constant::name
#include "harness/world/rows.inc"
}  // namespace siw_rows
namespace vmw_pvrdma_rows {
#define VABI_ROWS "shims/providers/vmw_pvrdma/abi.def"
#define VABI_ROWS_CONST(name) vmw_pvrdma::constant::name
#include "harness/world/rows.inc"
}  // namespace vmw_pvrdma_rows

using Name = const char*;
constexpr uint16_t kWhole = 0xffff;
template <typename Row, size_t kSize>
constexpr std::span<const Row> Behind(const Row (&rows)[kSize], uint16_t room) {
  return std::span<const Row>(rows).subspan(1, kSize - 1 <= room ? kSize - 1 : throw "no room");
}

// One table: its rows of all rooms, and by block.
#define VABI_TABLE(Row, rows, room)                                                       \
  constexpr std::span<const Row> rows##Blocks[] = {VABI_BLOCK_ROWS(rows, room)};          \
  constexpr Table<Row> rows##Table(Behind(shared_rows::rows, kWhole), rows##Blocks, room, \
                                   shared_rows::rows[0]);
#define VABI_BLOCK_ROWS(rows, room)                                                                \
  Behind(bnxt_re_rows::rows, room), Behind(efa_rows::rows, room), Behind(erdma_rows::rows, room),  \
      Behind(hns_rows::rows, room), Behind(irdma_rows::rows, room), Behind(mlx4_rows::rows, room), \
      Behind(siw_rows::rows, room), Behind(vmw_pvrdma_rows::rows, room)
VABI_TABLE(Name, kStructNames, kBlockStructs)
VABI_TABLE(FieldRow, kFieldRows, kBlockFields)
VABI_TABLE(Name, kConstNames, kBlockConsts)
VABI_TABLE(RuleRow, kRuleRows, kBlockRules)
VABI_TABLE(KnobRow, kKnobRows, kBlockKnobs)
VABI_TABLE(MethodRow, kMethodRows, kBlockMethods)
#undef VABI_TABLE
#undef VABI_BLOCK_ROWS

constexpr const char* kWriteNames[] = {
#define VABI_WRITE(name) #name,
#include "harness/world/all_tables.inc"
};
constexpr const char* kWriteExNames[] = {
#define VABI_WRITE_EX(name) #name,
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

template <typename Row, typename Name>
constexpr void MixPart(std::span<const Row> rows, uint64_t* digest, Name name) {
  for (const Row& row : rows) *digest = Mix(*digest, name(row));
  *digest = Mix(*digest, "/");
}
template <typename Row, typename Name>
constexpr void MixParts(std::span<const Row> shared, std::span<const std::span<const Row>> blocks,
                        uint64_t* digest, Name name) {
  MixPart(shared, digest, name);
  for (const std::span<const Row> rows : blocks) MixPart(rows, digest, name);
}
#define VABI_MIX(Row, rows, name) \
  MixParts<Row>(Behind(shared_rows::rows, kWhole), rows##Blocks, &digest, name)

constexpr uint64_t Digest() {
  uint64_t digest = 0xcbf29ce484222325ULL ^ sizeof(WorldImage);
  VABI_MIX(Name, kStructNames, [](const char* name) { return name; });
  VABI_MIX(FieldRow, kFieldRows, [](const FieldRow& row) { return row.structure_name; });
  VABI_MIX(FieldRow, kFieldRows, [](const FieldRow& row) { return row.path; });
  VABI_MIX(Name, kConstNames, [](const char* name) { return name; });
  VABI_MIX(RuleRow, kRuleRows, [](const RuleRow& row) { return row.name; });
  VABI_MIX(KnobRow, kKnobRows, [](const KnobRow& row) { return row.name; });
  VABI_MIX(MethodRow, kMethodRows, [](const MethodRow& row) { return row.name; });
  for (const char* name : kWriteNames) digest = Mix(digest, name);
  for (const char* name : kWriteExNames) digest = Mix(digest, name);
  for (const char* name : kOpNames) digest = Mix(digest, name);
  for (const DriverRow& row : kDriverRows) digest = Mix(digest, row.name);
  return digest;
}
#undef VABI_MIX
// Worked out by the compiler: the shim asks for it before any constructor has run.
constexpr uint64_t kDigest = Digest();

}  // namespace

const Table<const char*>& StructNames() { return kStructNamesTable; }
const Table<FieldRow>& FieldRows() { return kFieldRowsTable; }
const Table<const char*>& ConstNames() { return kConstNamesTable; }
const Table<RuleRow>& RuleRows() { return kRuleRowsTable; }
const Table<KnobRow>& KnobRows() { return kKnobRowsTable; }
std::span<const char* const> WriteNames() { return kWriteNames; }
std::span<const char* const> WriteExNames() { return kWriteExNames; }
const Table<MethodRow>& MethodRows() { return kMethodRowsTable; }
std::span<const char* const> OpNames() { return kOpNames; }
std::span<const DriverRow> DriverRows() { return kDriverRows; }
uint64_t TablesDigest() { return kDigest; }

}  // namespace vabi
