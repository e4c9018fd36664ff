// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/write.h"

#include <cstdio>

#include "shims/sys/sys.h"
#include "shims/trace/gaps.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/command_table.h"
#include "shims/uverbs/commands.h"
#include "shims/uverbs/faults.h"
#include "shims/uverbs/write_order.h"

namespace vabi {
namespace {

constexpr uint64_t kUserEnd = 0x7ffffffff000;  // access_ok

void Describe(WriteCall& w) {
  w.call.record.front_end = w.extended ? trace::FrontEnd::kWriteEx : trace::FrontEnd::kWrite;
  w.call.record.command = static_cast<int32_t>(w.number);
  const char* name = CommandTable::NameOf(w.number, w.extended);
  if (name != nullptr) {
    std::snprintf(w.call.record.name, sizeof(w.call.record.name), "%s", name);
  } else {
    std::snprintf(w.call.record.name, sizeof(w.call.record.name), "command %u", w.number);
  }
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

int InvokeExtended(WriteCall& w) {
  const uint64_t body = w.user + sizeof(CommandHeader) + sizeof(ExCommandHeader);
  const size_t core_in = size_t{w.header.in_words} * 8, core_out = size_t{w.header.out_words} * 8;
  w.call.in = UdataIn(body + core_in, size_t{w.ex.provider_in_words} * 8);
  w.call.out = UdataOut(w.ex.response + core_out, size_t{w.ex.provider_out_words} * 8);
  size_t seen = core_in;
  if (!SizesFromTable(w.call.world)) {
    // Up to 4.20 each handler looked at lengths itself, and most ignored what was too long.
    if (core_in < w.entry->least_request) return w.call.Refuse(RuleId::write_ex_request_short);
    if (w.call.Violates(RuleId::write_ex_response_short, core_out < w.entry->least_response)) {
      return w.call.Refuse(RuleId::write_ex_response_short);
    }
    if (!w.entry->zero_tail && w.entry->handler != CreateFlowEx &&
        w.entry->handler != CreateRwqIndTableEx && seen > w.entry->request_size) {
      seen = w.entry->request_size;
    }
  }
  return Invoke(w.call, *w.entry, UdataIn(body, seen), UdataOut(w.ex.response, core_out));
}

// There is no border between core and driver in a legacy command: the kernel's sizes draw it.
int InvokeLegacy(WriteCall& w) {
  const CommandEntry& entry = *w.entry;
  const uint64_t body = w.user + sizeof(CommandHeader);
  size_t core_in = size_t{w.header.in_words} * 4 - sizeof(CommandHeader);
  size_t core_out = size_t{w.header.out_words} * 4;
  uint64_t response = 0;
  const bool old = !SizesFromTable(w.call.world);
  // Up to 4.20 the whole structure is read, however short the request was; of post commands what is
  // behind it.
  const bool has_arrays =
      entry.handler == PostSend || entry.handler == PostRecv || entry.handler == PostSrqRecv;
  if (entry.has_udata || (old && !has_arrays)) {
    const size_t header_bytes = (w.call.world.Knob(KnobId::write_udata_header) >> w.number & 1) != 0
                                    ? sizeof(CommandHeader)
                                    : 0;
    const size_t there = core_in + header_bytes;
    w.call.in = there > entry.request_size
                    ? UdataIn(body + entry.request_size, there - entry.request_size)
                    : UdataIn();
    core_in = entry.request_size;
  }
  if (entry.has_resp) {
    if (sys::CopyFromUser(&response, body, sizeof(response)) != 0) {
      return w.call.Refuse(RuleId::write_header_fault);
    }
    if (entry.has_udata && core_out >= entry.response_size) {
      w.call.out = UdataOut(response + entry.response_size, core_out - entry.response_size);
      core_out = entry.response_size;
    }
  }
  return Invoke(w.call, entry, UdataIn(body, core_in), UdataOut(response, core_out));
}

long Run(Call& call, uint64_t user, size_t count) {
  if (call.world.Knob(KnobId::write) == 0) return call.Refuse(RuleId::write_absent);
  if (call.Violates(RuleId::write_credentials, !call.file.SameCredentials())) {
    return call.Refuse(RuleId::write_credentials);
  }
  if (count < sizeof(CommandHeader)) return call.Refuse(RuleId::write_header_short);
  WriteCall w(call, user, count);
  if (sys::CopyFromUser(&w.header, user, sizeof(w.header)) != 0) {
    return call.Refuse(RuleId::write_header_fault);
  }
  if (call.world.Rule(RuleId::device_gone_destroy).on && call.file.device().gone()) {
    return call.Refuse(RuleId::device_gone_destroy);
  }
  w.extended = (w.header.command & kExtendedFlag) != 0;
  w.number = w.header.command & kCommandMask;
  Describe(w);
  if (const int fault = FaultAt(call.world, call.record.name)) {
    call.record.fault = "errno";
    return -fault;
  }
  for (const WriteStep step : WriteOrder(call.world)) {
    if (const int error = Take(step, w)) return error;
  }
  // Relaxed rules may have let pass what has no command behind it.
  if (w.entry == nullptr) return call.Refuse(RuleId::write_not_served);
  const int result = w.entry->is_ex ? InvokeExtended(w) : InvokeLegacy(w);
  return result != 0 ? result : static_cast<long>(count);
}

}  // namespace

// uverbs_main.c:verify_hdr, extended
int VerifyExtended(WriteCall& w) {
  Call& call = w.call;
  const size_t body = w.count - sizeof(CommandHeader) - sizeof(ExCommandHeader);
  const size_t in_words = size_t{w.header.in_words} + w.ex.provider_in_words;
  const size_t out_words = size_t{w.header.out_words} + w.ex.provider_out_words;
  if (call.Violates(RuleId::write_ex_in_words, in_words * 8 != body)) {
    return call.Refuse(RuleId::write_ex_in_words);
  }
  if (call.Violates(RuleId::write_ex_reserved, w.ex.reserved != 0)) {
    return call.Refuse(RuleId::write_ex_reserved);
  }
  if (w.ex.response != 0) {
    if (call.Violates(RuleId::write_ex_response_unused, out_words == 0)) {
      return call.Refuse(RuleId::write_ex_response_unused);
    }
    if (w.ex.response >= kUserEnd || out_words * 8 > kUserEnd - w.ex.response) {
      return call.Refuse(RuleId::write_ex_response_address);
    }
  } else if (call.Violates(RuleId::write_ex_response_missing, out_words != 0)) {
    return call.Refuse(RuleId::write_ex_response_missing);
  }
  return 0;
}

int VerifyWords(WriteCall& w) {
  if (size_t{w.header.in_words} * 4 == w.count) return 0;
  if (w.call.On(RuleId::write_in_words)) return w.call.Refuse(RuleId::write_in_words);
  w.header.in_words = static_cast<uint16_t>(w.count / 4);
  return 0;
}

int VerifyLegacy(WriteCall& w) {
  if (const int error = VerifyWords(w)) return error;
  if (w.count < w.entry->request_size + sizeof(CommandHeader)) {
    // rdma-core 18 and 19 send DESTROY_CQ with 16 bytes.
    if (w.entry->handler == DestroyCq && w.count == 16 &&
        w.call.world.Knob(KnobId::write_destroy_cq_exemption) != 0) {
      w.header.in_words = 6;
      return 0;
    }
    return w.call.Refuse(RuleId::write_request_short);
  }
  return VerifyResponse(w);
}

int VerifyResponse(WriteCall& w) {
  if (w.call.Violates(RuleId::write_response_short,
                      size_t{w.header.out_words} * 4 < w.entry->response_size)) {
    return w.call.Refuse(RuleId::write_response_short);
  }
  return 0;
}

ssize_t RunWrite(UverbsFile& file, const void* user, size_t count) {
  std::lock_guard lock(file.mutex());
  Call call(file.world(), file);
  call.record.front_end = trace::FrontEnd::kWrite;
  call.record.device = file.device().image().name;
  call.record.start_ns = trace::Enabled() ? sys::MonotonicNs() : 0;
  const long result = Run(call, reinterpret_cast<uintptr_t>(user), count);
  if (trace::Wants(call.record)) {
    call.record.result = result;
    trace::Write(call.record);
  }
  return result;
}

}  // namespace vabi
