// SPDX-License-Identifier: BSD-2-Clause
// Private requests and replies, user memory.
#include "shims/providers/common/udata.h"
#include "shims/providers/mlx4/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/mr_access.h"

namespace vabi::mlx4 {
namespace {

constexpr provider::PinRules kPin = {rule::pin_range, rule::pin_nothing, rule::pin_fault};

bool Validates(const Call& call) { return call.world.Knob(knob::validates) != 0; }

}  // namespace

int ReadRequest(Call& call, const Body& body) {
  if (!Validates(call) && call.in.length() < body.length()) {
    return call.Unmodelled("mlx4: a request shorter than the kernel reads");
  }
  return provider::CopyRequest(
      call, body.base(), body.length(),
      {body.length(), rule::request_short, rule::request_tail, rule::request_fault});
}

int Reply(Call& call, const Body& body, size_t told) {
  if (Validates(call)) {
    return provider::Respond(call, body.base(), body.length(), provider::How::kZeroes,
                             rule::reply_fault);
  }
  return provider::Respond(call, body.base(), told, provider::How::kWhole, rule::reply_fault);
}

int Pin(Call& call, uint64_t address, uint64_t size, uint32_t access) {
  if (call.Violates(rule::pin_empty, size == 0)) return call.Refuse(rule::pin_empty);
  return provider::PinMemory(call, address, size, provider::AccessWrites(access), kPin);
}

int PinDoorbell(Call& call, uint64_t address) {
  return provider::PinRecordPage(call, address, kPin);
}

uint32_t NextKey(Device& device) {
  constexpr uint32_t kFirstIndex = 0x100;  // behind the reserved ones
  const uint32_t index = kFirstIndex + device.NextNumber();
  return index >> 24 | index << 8;
}

}  // namespace vabi::mlx4
