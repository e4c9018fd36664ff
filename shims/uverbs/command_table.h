// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_COMMAND_TABLE_H_
#define VABI_SHIMS_UVERBS_COMMAND_TABLE_H_

#include <array>
#include <cstdint>
#include <span>

#include "harness/world/abi_tables.h"

// The write commands: what the kernel declares of each (uverbs_cmd.c:uverbs_def_write_intf), and
// which of them one device serves in one kernel (uverbs_uapi.c:uapi_finalize).

namespace vabi {

class Device;
struct Command;

using CommandHandler = int (*)(Command&);

struct CommandRow {
  WriteId id;
  StructId request;
  StructId response;  // StructId::kCount: none
  bool has_udata;
  Op needs, needs_too;
  CommandHandler handler;
  // Its bit of uverbs_cmd_mask, where that says more than the operations do: looked up in the world
  // alone.
  Op mask = Op::always;
};

// Extended commands have no sizes here: uapi_create_write takes over sizes of legacy commands only,
// so a short body is zero-extended.
struct ExCommandRow {
  WriteExId id;
  Op needs, needs_too;
  Op mask;  // the same of uverbs_ex_cmd_mask
  // Up to 4.20 handlers looked at the lengths: the last field that a request or reply must hold
  // (kCount: the whole structure, or nothing), and whether a longer request must end in zeros.
  StructId request;
  FieldId least_request, least_response;
  bool zero_tail;
  CommandHandler handler;
};

std::span<const CommandRow> CommandRows();
std::span<const ExCommandRow> ExCommandRows();

// One served command, as a front end needs it. `handler` is null for commands that are not served
// (uverbs_api.notsupp_method: not extended, no sizes).
struct CommandEntry {
  const char* name = nullptr;
  CommandHandler handler = nullptr;
  bool known = false;  // the kernel's core has the command, whether the driver serves it or not
  bool is_ex = false;
  bool has_udata = false;
  bool has_resp = false;
  uint16_t request_size = 0;  // extended: of the whole structure
  uint16_t response_size = 0;
  uint16_t least_request = 0;  // extended, up to 4.20
  uint16_t least_response = 0;
  bool zero_tail = false;
};

class CommandTable {
 public:
  static constexpr uint32_t kMax = 64;

  explicit CommandTable(const Device& device);
  // By number and form. Null: beyond the end of the table.
  const CommandEntry* Find(uint32_t number, bool extended) const {
    if (extended) return number < count_ex_ ? &ex_[number] : nullptr;
    return number < count_ ? &legacy_[number] : nullptr;
  }
  // The same in kernels whose table is the core's own, and the driver's masks are looked at apart
  // (up to 4.20): `known` and `handler` tell. Null: beyond the core's table.
  const CommandEntry* FindKnown(uint32_t number, bool extended) const {
    const CommandEntry* entry = number < kMax ? &(extended ? ex_ : legacy_)[number] : nullptr;
    return number < (extended ? known_ex_ : known_) ? entry : nullptr;
  }
  uint32_t count() const { return count_; }
  uint32_t count_ex() const { return count_ex_; }
  // Name of a command whether it is served or not; null: no kernel knows it.
  static const char* NameOf(uint32_t number, bool extended);

 private:
  std::array<CommandEntry, kMax> legacy_;
  std::array<CommandEntry, kMax> ex_;
  uint32_t count_ = 1, count_ex_ = 1;
  uint32_t known_ = 1, known_ex_ = 1;
};

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_COMMAND_TABLE_H_
