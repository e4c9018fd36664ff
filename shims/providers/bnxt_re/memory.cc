// SPDX-License-Identifier: BSD-2-Clause
// Private requests and replies, user memory; ib_verbs.c: bnxt_re_reg_user_mr
#include "shims/providers/bnxt_re/driver.h"
#include "shims/uverbs/device.h"

namespace vabi::bnxt_re {

provider::How HowOf(Call& call, KnobId id) {
  constexpr provider::How kHow[] = {provider::How::kWhole, provider::How::kClip,
                                    provider::How::kZeroes};
  return kHow[call.world.Knob(id)];
}

int NoInput(Call& call) {
  if (call.world.Knob(knob::validates) == 0) return 0;
  return provider::NoUdataIo(call, rule::input, rule::input_fault);
}

int ReadRequest(Call& call, const Body& body, size_t minimum) {
  if (call.world.Knob(knob::validates) == 0 && call.in.length() < minimum)
    return call.Unmodelled("bnxt_re: a request shorter than the kernel reads");
  return provider::CopyRequest(
      call, body.base(), body.length(),
      {minimum, rule::request_short, rule::request_tail, rule::request_fault});
}

int Reply(Call& call, const Body& body, KnobId how) {
  return provider::Respond(call, body.base(), body.length(), HowOf(call, how), rule::reply_fault);
}

int PinRing(Call& call, uint64_t address, uint64_t bytes, bool pages) {
  if (const int error = provider::PinMemory(
          call, address, bytes, true, {rule::queue_range, rule::queue_range, rule::queue_fault}))
    return error;
  if (pages && call.Violates(rule::queue_alignment, address % kPage != 0))
    return call.Refuse(rule::queue_alignment);
  return 0;
}

int BnxtReDriver::RegMr(Call& call, Mr& mr) {
  if (call.world.Knob(knob::validates) != 0) {
    const int zero = call.in.length() == 0 ? 1 : call.in.TailIsZero(0);
    if (zero < 0) return call.Refuse(rule::input_fault);
    if (call.Violates(rule::input, zero == 0)) return call.Refuse(rule::input);
  }
  const bool first = call.world.Knob(knob::length_first) != 0;
  if (first && call.Violates(rule::mr_length, mr.length > kMaxMrSize))
    return call.Refuse(rule::mr_length);
  if (const int error = provider::PinMemory(
          call, mr.start, mr.length, provider::AccessWrites(mr.access),
          {rule::mr_range, rule::mr_nothing, rule::mr_fault, rule::mr_no_lock, rule::mr_memlock}))
    return error;
  if (call.Violates(rule::mr_length, mr.length > kMaxMrSize)) return call.Refuse(rule::mr_length);
  if (mr.length == 0) return call.Unmodelled("bnxt_re: what the firmware makes of an empty region");
  if (call.world.Knob(knob::regions_small) != 0 && mr.length > uint64_t{1} << 30)
    return call.Unmodelled("bnxt_re: a region above 1 GiB, which must be of huge pages");
  mr.lkey = mr.rkey = (mr.device->NextNumber() + 1) << 8;
  return 0;
}

int BnxtReDriver::DeregMr(Call&, Mr&) { return 0; }

}  // namespace vabi::bnxt_re
