// SPDX-License-Identifier: BSD-2-Clause
// User memory: what the kernel pins, and private requests and replies.
#include <algorithm>
#include <cerrno>

#include "shims/providers/common/udata.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/uverbs/ioctl.h"

namespace vabi::mlx5 {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kRecord = 8;  // bytes of a doorbell record

constexpr provider::PinRules kPin = {RuleId::mlx5_pin_range, RuleId::mlx5_pin_nothing,
                                     RuleId::mlx5_pin_fault};

}  // namespace

int PinMemory(Call& call, uint64_t address, uint64_t size, bool writable) {
  return provider::PinMemory(call, address, size, writable, kPin);
}

int PinDoorbell(Call& call, uint64_t address) {
  if (call.Violates(RuleId::mlx5_doorbell_straddles, (address & (kPage - 1)) > kPage - kRecord)) {
    return call.Refuse(RuleId::mlx5_doorbell_straddles);
  }
  return provider::PinRecordPage(call, address, kPin);
}

int CopyRequest(Call& call, void* to, size_t size, const RequestRules& rules) {
  if (call.Violates(rules.too_short, call.in.length() < rules.minimum))
    return call.Refuse(rules.too_short);
  if (call.in.length() > size && call.On(rules.tail)) {
    const int clear = call.in.TailIsZero(size);
    if (clear < 0) return call.Refuse(RuleId::mlx5_request_fault);
    if (clear == 0) return call.Refuse(rules.tail);
  }
  if (call.in.Copy(to, size) != 0) return call.Refuse(RuleId::mlx5_request_fault);
  return 0;
}

int Respond(Call& call, const void* from, size_t size, OldRespond before) {
  if (call.world.Knob(KnobId::mlx5_respond_zeroes) == 0) {
    const int error = before == OldRespond::kWhole ? trace::Reply(call.out.address(), from, size)
                                                   : call.out.Copy(from, size);
    return error != 0 ? call.Refuse(RuleId::mlx5_reply_fault) : 0;
  }
  if (call.out.length() == 0) return 0;
  if (call.out.Copy(from, size) != 0 ||
      (call.out.length() > size && call.out.ClearFrom(size) != 0)) {
    return call.Refuse(RuleId::mlx5_reply_fault);
  }
  return 0;
}

}  // namespace vabi::mlx5
