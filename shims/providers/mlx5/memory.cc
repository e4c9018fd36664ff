// SPDX-License-Identifier: BSD-2-Clause
// User memory: what the kernel pins, and private requests and replies.
#include <algorithm>
#include <cerrno>

#include "shims/providers/mlx5/driver.h"
#include "shims/sys/sys.h"
#include "shims/uverbs/ioctl.h"

namespace vabi::mlx5 {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kRecord = 8;  // bytes of a doorbell record

}  // namespace

// core/umem.c:ib_umem_get (ib_umem_get_va since 7.2)
int PinMemory(Call& call, uint64_t address, uint64_t size, bool writable) {
  const uint64_t end = address + size;
  const uint64_t rounded_end = (end + kPage - 1) & ~(kPage - 1), start = address & ~(kPage - 1);
  if (call.Violates(RuleId::mlx5_pin_range, end < address || rounded_end < end)) {
    return call.Refuse(RuleId::mlx5_pin_range);
  }
  const uint64_t pages = (rounded_end - start) / kPage;
  if (call.Violates(RuleId::mlx5_pin_nothing, pages == 0 || pages > UINT32_MAX)) {
    return call.Refuse(RuleId::mlx5_pin_nothing);
  }
  if (!sys::UserRangeMapped(start, rounded_end - start, writable))
    return call.Refuse(RuleId::mlx5_pin_fault);
  return 0;
}

int PinDoorbell(Call& call, uint64_t address) {
  if (call.Violates(RuleId::mlx5_doorbell_straddles, (address & (kPage - 1)) > kPage - kRecord)) {
    return call.Refuse(RuleId::mlx5_doorbell_straddles);
  }
  return PinMemory(call, address & ~(kPage - 1), kPage, false);
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
