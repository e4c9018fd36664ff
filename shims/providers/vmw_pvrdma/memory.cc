// SPDX-License-Identifier: BSD-2-Clause
// Private requests and replies, user memory; pvrdma_mr.c
#include "shims/providers/common/udata.h"
#include "shims/providers/vmw_pvrdma/driver.h"
#include "shims/uverbs/device.h"

namespace vabi::vmw_pvrdma {

int ReadRequest(Call& call, const Body& body) {
  if (call.world.Knob(knob::validates) == 0 && call.in.length() < body.length())
    return call.Unmodelled("vmw_pvrdma: a request shorter than the kernel reads");
  return provider::CopyRequest(
      call, body.base(), body.length(),
      {body.length(), rule::request_short, rule::request_tail, rule::request_fault});
}

int Reply(Call& call, const Body& body, bool numbered, RuleId fault) {
  if (call.world.Knob(knob::validates) != 0)
    return provider::Respond(call, body.base(), body.length(), provider::How::kZeroes, fault);
  const bool alone = numbered && call.world.Knob(knob::number_alone) != 0;
  return provider::Respond(call, body.base(), alone ? sizeof(uint32_t) : body.length(),
                           provider::How::kWhole, fault);
}

int Pin(Call& call, uint64_t address, uint64_t size, uint32_t access, uint64_t* pages) {
  if (call.Violates(rule::pin_empty, size == 0)) return call.Refuse(rule::pin_empty);
  if (const int error = provider::PinMemory(call, address, size, provider::AccessWrites(access),
                                            {rule::pin_range, rule::pin_nothing, rule::pin_fault}))
    return error;
  *pages += (address % kPage + size + kPage - 1) / kPage;
  return 0;
}

int CheckDirectory(Call& call, uint64_t pages) {
  if (call.Violates(rule::directory, pages > kDirectoryPages)) return call.Refuse(rule::directory);
  return 0;
}

int VmwPvrdmaDriver::RegMr(Call& call, Mr& mr) {
  if (call.Violates(rule::mr_length, mr.length == 0 || mr.length > kMaxMrSize))
    return call.Refuse(rule::mr_length);
  uint64_t pages = 0;
  if (const int error = Pin(call, mr.start, mr.length, mr.access, &pages)) return error;
  if (const int error = CheckDirectory(call, pages)) return error;
  mr.lkey = mr.rkey = mr.device->NextNumber() + 1;
  return 0;
}

int VmwPvrdmaDriver::DeregMr(Call&, Mr&) { return 0; }

}  // namespace vabi::vmw_pvrdma
