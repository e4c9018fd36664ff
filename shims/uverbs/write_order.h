// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_WRITE_ORDER_H_
#define VABI_SHIMS_UVERBS_WRITE_ORDER_H_

#include <cstdint>
#include <span>

#include "shims/uverbs/call.h"
#include "shims/uverbs/command_table.h"

// In which order ib_uverbs_write looks at a command. It changed six times; each order is a row of
// steps, and the knob write.order picks one.

namespace vabi {

// struct ib_uverbs_cmd_hdr and ib_uverbs_ex_cmd_hdr: they never changed.
struct CommandHeader {
  uint32_t command;
  uint16_t in_words;
  uint16_t out_words;
};
struct ExCommandHeader {
  uint64_t response;
  uint16_t provider_in_words;
  uint16_t provider_out_words;
  uint32_t reserved;
};
static_assert(sizeof(CommandHeader) == 8 && sizeof(ExCommandHeader) == 16);

inline constexpr uint32_t kExtendedFlag = 0x80000000;  // IB_USER_VERBS_CMD_FLAG_EXTENDED
inline constexpr uint32_t kCommandMask = 0xff;         // IB_USER_VERBS_CMD_COMMAND_MASK

// One write() on its way.
struct WriteCall {
  WriteCall(Call& call, uint64_t user, size_t count) : call(call), user(user), count(count) {}

  Call& call;
  uint64_t user;
  size_t count;
  CommandHeader header = {};
  ExCommandHeader ex = {};
  bool extended = false;
  uint32_t number = 0;
  const CommandEntry* entry = nullptr;
};

enum class WriteStep : uint8_t {
  kTable,            // 5.0: the device's own table, then lengths by its sizes
  kFlags,            // flags other than "extended"
  kMiddleBits,       // bits 8 to 23
  kBits,             // all bits that mean nothing
  kRange,            // beyond the core's table
  kKnown,            // beyond the core's table, or a hole in it
  kContext,          // no context yet, and not GET_CONTEXT
  kContextByNumber,  // the same by number alone, in whichever form
  kContextExtended,  // no context yet, extended
  kMask,             // the driver's uverbs_cmd_mask or uverbs_ex_cmd_mask
  kExHeader,         // the extended header is there
  kWords,            // verify_hdr without sizes
  kResponse,         // the reply is large enough (in handlers)
};

std::span<const WriteStep> WriteOrder(const World& world);
// 0, or what the write answers.
int Take(WriteStep step, WriteCall& w);

// From 5.0 on the table of commands has sizes; before, each handler looked for itself.
bool SizesFromTable(const World& world);
// An extended command with the number of a legacy one goes by the legacy mask.
bool MaskByNumber(const World& world);
// uverbs_main.c:verify_hdr, and its parts
int VerifyExtended(WriteCall& w);
int VerifyLegacy(WriteCall& w);
int VerifyWords(WriteCall& w);
int VerifyResponse(WriteCall& w);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_WRITE_ORDER_H_
