// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/write_order.h"

#include "shims/sys/sys.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

using S = WriteStep;

// uverbs_main.c:ib_uverbs_write in each release.
constexpr S k44[] = {S::kFlags, S::kMiddleBits, S::kKnown, S::kContext,
                     S::kMask,  S::kExHeader,   S::kWords, S::kResponse};
constexpr S k49[] = {S::kMiddleBits,      S::kMask,     S::kContextByNumber, S::kFlags,   S::kKnown,
                     S::kContextExtended, S::kExHeader, S::kWords,           S::kResponse};
constexpr S k414[] = {
    S::kMiddleBits, S::kRange,           S::kMask,     S::kContextByNumber, S::kFlags,
    S::kKnown,      S::kContextExtended, S::kExHeader, S::kWords,           S::kResponse};
constexpr S k417[] = {S::kBits,  S::kKnown, S::kContext, S::kExHeader,
                      S::kWords, S::kMask,  S::kResponse};
constexpr S k418[] = {S::kBits,    S::kKnown, S::kExHeader, S::kWords,
                      S::kContext, S::kMask,  S::kResponse};
constexpr S k419[] = {S::kBits, S::kKnown, S::kExHeader, S::kWords, S::kMask, S::kResponse};
constexpr S k50[] = {S::kBits, S::kTable};

constexpr std::span<const S> kOrders[] = {k50, k44, k49, k414, k417, k418, k419, k50};

const CommandTable& TableOf(const WriteCall& w) { return w.call.file.device().commands(); }

bool IsGetContext(const WriteCall& w) { return w.number == 0; }

int ReadExHeader(WriteCall& w) {
  if (w.count < sizeof(CommandHeader) + sizeof(ExCommandHeader)) {
    return w.call.Refuse(RuleId::write_ex_header_short);
  }
  if (sys::CopyFromUser(&w.ex, w.user + sizeof(CommandHeader), sizeof(w.ex)) != 0) {
    return w.call.Refuse(RuleId::write_header_fault);
  }
  return 0;
}

// rdma_core.h:uapi_get_method. A command that is not served has no sizes and is not extended, in
// whichever form it was sent.
int LookInTable(WriteCall& w) {
  w.entry = TableOf(w).Find(w.number, w.extended);
  if (w.entry == nullptr) return w.call.Refuse(RuleId::write_command_range);
  if (!w.entry->is_ex) return VerifyLegacy(w);
  if (const int error = ReadExHeader(w)) return error;
  return VerifyExtended(w);
}

// The driver's mask.
bool Masked(const WriteCall& w) {
  if (w.extended && w.number <= 40 && MaskByNumber(w.call.world)) {
    const CommandEntry* legacy = TableOf(w).FindKnown(w.number, false);
    return legacy == nullptr || legacy->handler == nullptr;
  }
  const CommandEntry* entry = TableOf(w).FindKnown(w.number, w.extended);
  return entry == nullptr || entry->handler == nullptr;
}

}  // namespace

std::span<const WriteStep> WriteOrder(const World& world) {
  const auto order = static_cast<size_t>(world.Knob(KnobId::write_order));
  return order < std::size(kOrders) ? kOrders[order] : kOrders[0];
}
bool MaskByNumber(const World& world) { return world.Knob(KnobId::write_mask_by_number) != 0; }
bool SizesFromTable(const World& world) { return world.Knob(KnobId::write_sizes_from_table) != 0; }

int Take(WriteStep step, WriteCall& w) {
  Call& call = w.call;
  switch (step) {
    case S::kTable:
      return LookInTable(w);
    case S::kFlags: {
      const uint32_t flags = w.header.command >> 24;
      return flags == 0 || flags == 0x80 ? 0 : call.Refuse(RuleId::write_flags);
    }
    case S::kMiddleBits:
      if (call.Violates(RuleId::write_command_bits, (w.header.command & 0xffff00) != 0)) {
        return call.Refuse(RuleId::write_command_bits);
      }
      return 0;
    case S::kBits:
      if (call.Violates(RuleId::write_command_bits,
                        (w.header.command & ~(kExtendedFlag | kCommandMask)) != 0)) {
        return call.Refuse(RuleId::write_command_bits);
      }
      return 0;
    case S::kRange:
      if (TableOf(w).FindKnown(w.number, w.extended) == nullptr) {
        return call.Refuse(RuleId::write_command_beyond);
      }
      return 0;
    case S::kKnown:
      w.entry = TableOf(w).FindKnown(w.number, w.extended);
      if (w.entry == nullptr || !w.entry->known) {
        return call.Refuse(w.extended ? RuleId::write_ex_command_unknown
                                      : RuleId::write_command_unknown);
      }
      return 0;
    case S::kContext:
      if (call.file.context() == nullptr && (!IsGetContext(w) || w.extended)) {
        return call.Refuse(RuleId::write_no_context);
      }
      return 0;
    case S::kContextByNumber:
      if (call.file.context() == nullptr && !IsGetContext(w))
        return call.Refuse(RuleId::write_no_context);
      return 0;
    case S::kContextExtended:
      if (call.file.context() == nullptr && w.extended)
        return call.Refuse(RuleId::write_no_context);
      return 0;
    case S::kMask:
      if (w.number > 63) return call.Unmodelled("a command number beyond the driver's mask");
      if (Masked(w))
        return call.Refuse(w.extended ? RuleId::write_ex_masked : RuleId::write_masked);
      return 0;
      return 0;
    case S::kExHeader:
      return w.extended ? ReadExHeader(w) : 0;
    case S::kWords:
      return w.extended ? VerifyExtended(w) : VerifyWords(w);
    case S::kResponse:
      return w.extended ? 0 : VerifyResponse(w);
  }
  return 0;
}

}  // namespace vabi
