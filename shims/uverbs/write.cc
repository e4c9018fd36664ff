// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/write.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "shims/sys/sys.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/command_table.h"
#include "shims/uverbs/commands.h"
#include "shims/uverbs/faults.h"

namespace vabi {
namespace {

// struct ib_uverbs_cmd_hdr and ib_uverbs_ex_cmd_hdr: they never changed.
struct Header {
  uint32_t command;
  uint16_t in_words;
  uint16_t out_words;
};
struct ExHeader {
  uint64_t response;
  uint16_t provider_in_words;
  uint16_t provider_out_words;
  uint32_t reserved;
};
static_assert(sizeof(Header) == 8 && sizeof(ExHeader) == 16);

constexpr uint32_t kExtendedFlag = 0x80000000;  // IB_USER_VERBS_CMD_FLAG_EXTENDED
constexpr uint32_t kCommandMask = 0xff;         // IB_USER_VERBS_CMD_COMMAND_MASK
constexpr uint64_t kUserEnd = 0x7ffffffff000;   // access_ok

void Describe(Call& call, const Header& header) {
  const bool extended = (header.command & kExtendedFlag) != 0;
  const uint32_t number = header.command & kCommandMask;
  call.record.front_end = extended ? trace::FrontEnd::kWriteEx : trace::FrontEnd::kWrite;
  call.record.command = static_cast<int32_t>(number);
  const char* name = CommandTable::NameOf(number, extended);
  if (name != nullptr) {
    std::snprintf(call.record.name, sizeof(call.record.name), "%s", name);
  } else {
    std::snprintf(call.record.name, sizeof(call.record.name), "command %u", number);
  }
}

// uverbs_main.c:verify_hdr, extended
int VerifyExtended(Call& call, const Header& header, const ExHeader& ex, size_t count) {
  const size_t body = count - sizeof(Header) - sizeof(ExHeader);
  const size_t in_words = size_t{header.in_words} + ex.provider_in_words;
  const size_t out_words = size_t{header.out_words} + ex.provider_out_words;
  if (call.Violates(RuleId::write_ex_in_words, in_words * 8 != body)) {
    return call.Refuse(RuleId::write_ex_in_words);
  }
  if (call.Violates(RuleId::write_ex_reserved, ex.reserved != 0)) {
    return call.Refuse(RuleId::write_ex_reserved);
  }
  if (ex.response != 0) {
    if (call.Violates(RuleId::write_ex_response_unused, out_words == 0)) {
      return call.Refuse(RuleId::write_ex_response_unused);
    }
    if (ex.response >= kUserEnd || out_words * 8 > kUserEnd - ex.response) {
      return call.Refuse(RuleId::write_ex_response_address);
    }
  } else if (call.Violates(RuleId::write_ex_response_missing, out_words != 0)) {
    return call.Refuse(RuleId::write_ex_response_missing);
  }
  return 0;
}

// uverbs_main.c:verify_hdr, not extended
int VerifyLegacy(Call& call, Header* header, size_t count, const CommandEntry& entry) {
  if (size_t{header->in_words} * 4 != count) {
    if (call.On(RuleId::write_in_words)) return call.Refuse(RuleId::write_in_words);
    header->in_words = static_cast<uint16_t>(count / 4);
  }
  if (count < entry.request_size + sizeof(Header)) {
    // rdma-core 18 and 19 send DESTROY_CQ with 16 bytes.
    if (entry.handler == DestroyCq && count == 16 &&
        call.world.Knob(KnobId::write_destroy_cq_exemption) != 0) {
      header->in_words = 6;
      return 0;
    }
    return call.Refuse(RuleId::write_request_short);
  }
  if (call.Violates(RuleId::write_response_short,
                    size_t{header->out_words} * 4 < entry.response_size)) {
    return call.Refuse(RuleId::write_response_short);
  }
  return 0;
}

int Invoke(Call& call, const CommandEntry& entry, UdataIn in, UdataOut out) {
  call.record.core_in = static_cast<int32_t>(in.length());
  call.record.core_out = static_cast<int32_t>(out.length());
  if (call.in.length() > 0) call.record.uhw_in = static_cast<int32_t>(call.in.length());
  if (call.out.length() > 0) call.record.uhw_out = static_cast<int32_t>(call.out.length());
  if (entry.handler == nullptr) return call.Refuse(RuleId::write_not_served);
  Command command(call, in, out);
  return command.Finish(entry.handler(command));
}

long Run(Call& call, uint64_t user, size_t count) {
  if (call.world.Knob(KnobId::write) == 0) return call.Refuse(RuleId::write_absent);
  if (call.Violates(RuleId::write_credentials, !call.file.SameCredentials())) {
    return call.Refuse(RuleId::write_credentials);
  }
  if (count < sizeof(Header)) return call.Refuse(RuleId::write_header_short);
  Header header;
  if (sys::CopyFromUser(&header, user, sizeof(header)) != 0) {
    return call.Refuse(RuleId::write_header_fault);
  }
  Describe(call, header);
  if (const int fault = FaultAt(call.world, call.record.name)) {
    call.record.fault = "errno";
    return -fault;
  }

  // rdma_core.h:uapi_get_method
  const bool extended = (header.command & kExtendedFlag) != 0;
  if (call.Violates(RuleId::write_command_bits,
                    (header.command & ~(kExtendedFlag | kCommandMask)) != 0)) {
    return call.Refuse(RuleId::write_command_bits);
  }
  const CommandEntry* entry =
      call.file.device().commands().Find(header.command & kCommandMask, extended);
  if (entry == nullptr) return call.Refuse(RuleId::write_command_range);

  ExHeader ex = {};
  if (entry->is_ex) {
    if (count < sizeof(header) + sizeof(ex)) return call.Refuse(RuleId::write_ex_header_short);
    if (sys::CopyFromUser(&ex, user + sizeof(header), sizeof(ex)) != 0) {
      return call.Refuse(RuleId::write_header_fault);
    }
    if (const int error = VerifyExtended(call, header, ex, count)) return error;
    const uint64_t body = user + sizeof(header) + sizeof(ex);
    const size_t core_in = size_t{header.in_words} * 8, core_out = size_t{header.out_words} * 8;
    call.in = UdataIn(body + core_in, size_t{ex.provider_in_words} * 8);
    call.out = UdataOut(ex.response + core_out, size_t{ex.provider_out_words} * 8);
    const int result = Invoke(call, *entry, UdataIn(body, core_in), UdataOut(ex.response, core_out));
    return result != 0 ? result : static_cast<long>(count);
  }

  // A command that is not served has no sizes and is not extended, in whichever form it was sent.
  if (const int error = VerifyLegacy(call, &header, count, *entry)) return error;
  const uint64_t body = user + sizeof(header);
  size_t core_in = size_t{header.in_words} * 4 - sizeof(header);
  size_t core_out = size_t{header.out_words} * 4;
  uint64_t response = 0;
  if (entry->has_udata) {
    call.in = UdataIn(body + entry->request_size, core_in - entry->request_size);
    core_in = entry->request_size;
  }
  if (entry->has_resp) {
    if (sys::CopyFromUser(&response, body, sizeof(response)) != 0) {
      return call.Refuse(RuleId::write_header_fault);
    }
    if (entry->has_udata && core_out >= entry->response_size) {
      call.out = UdataOut(response + entry->response_size, core_out - entry->response_size);
      core_out = entry->response_size;
    }
  }
  const int result = Invoke(call, *entry, UdataIn(body, core_in), UdataOut(response, core_out));
  return result != 0 ? result : static_cast<long>(count);
}

}  // namespace

ssize_t RunWrite(UverbsFile& file, const void* user, size_t count) {
  std::lock_guard lock(file.mutex());
  Call call(file.world(), file);
  call.record.front_end = trace::FrontEnd::kWrite;
  call.record.device = file.device().image().name;
  call.record.start_ns = trace::Enabled() ? sys::MonotonicNs() : 0;
  const long result = Run(call, reinterpret_cast<uint64_t>(user), count);
  if (trace::Enabled()) {
    call.record.result = result;
    trace::Write(call.record);
  }
  return result;
}

}  // namespace vabi
