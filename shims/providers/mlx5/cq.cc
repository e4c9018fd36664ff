// SPDX-License-Identifier: BSD-2-Clause
// cq.c: mlx5_ib_create_user_cq (mlx5_ib_create_cq before 7.x), mlx5_ib_resize_cq, mlx5_ib_modify_cq
#include <algorithm>
#include <mutex>

#include "shims/fabric/nic.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/doorbell.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/events.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

#define REQ(field) VABI_F(mlx5_ib_create_cq, field)

// enum ib_uverbs_ex_create_cq_flags
constexpr uint32_t kIgnoreOverrun = 1 << 1;
constexpr uint64_t kQuantum = 64;  // what an offset inside a page must be a multiple of

uint32_t RoundUpPowerOfTwo(uint32_t value) {
  uint32_t power = 1;
  while (power < value) power *= 2;
  return power;
}

struct Request {
  uint64_t buffer, doorbell;
  uint32_t cqe_size, flags;
  bool compression, reserved;
};

// create_cq_user, the request itself
int ReadRequest(Call& call, Request* request) {
  const World& world = call.world;
  OwnedBody<64> body(world, VABI_S(mlx5_ib_create_cq));
  const RequestRules rules = {static_cast<size_t>(world.Knob(KnobId::mlx5_create_cq_minimum)),
                              RuleId::mlx5_create_cq_length, RuleId::mlx5_create_cq_tail};
  // Up to 5.6 the kernel read on behind a short request.
  const auto reads = static_cast<size_t>(world.Knob(KnobId::mlx5_create_cq_reads));
  if (call.in.length() < reads)
    return call.Unmodelled("mlx5: a CREATE_CQ request shorter than the kernel reads");
  // … and took a request as one of two sizes.
  const size_t size = reads != 0 && call.in.length() < body.length() ? reads : body.length();
  if (const int error = CopyRequest(call, body.base(), size, rules)) return error;
  request->buffer = body.Get(REQ(buf_addr));
  request->doorbell = body.Get(REQ(db_addr));
  request->cqe_size = body.U32(REQ(cqe_size));
  request->flags = body.U32(REQ(flags));
  request->compression = body.Get(REQ(cqe_comp_en)) == 1;
  request->reserved =
      (body.Get(REQ(reserved0)) | body.Get(REQ(reserved1)) | body.Get(REQ(reserved))) != 0;
  return 0;
}

int CheckRequest(Call& call, const Request& request, uint32_t entries) {
  const World& world = call.world;
  const auto known =
      static_cast<uint32_t>(world.Flag(VABI_C(MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD)) |
                            world.Flag(VABI_C(MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX)) |
                            world.Flag(VABI_C(MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS)));
  if (call.Violates(RuleId::mlx5_create_cq_vendor_flags, (request.flags & ~known) != 0)) {
    return call.Refuse(RuleId::mlx5_create_cq_vendor_flags);
  }
  // One condition in the kernel, so the order of these two shows nothing.
  if (request.cqe_size != 64 && request.cqe_size != 128)
    return call.Refuse(RuleId::mlx5_create_cq_size);
  if (call.Violates(RuleId::mlx5_create_cq_reserved, request.reserved)) {
    return call.Refuse(RuleId::mlx5_create_cq_reserved);
  }
  if (const int error = PinMemory(call, request.buffer, uint64_t{entries} * request.cqe_size, true))
    return error;
  if (call.Violates(RuleId::mlx5_create_cq_buffer_offset, request.buffer % kQuantum != 0)) {
    return call.Refuse(RuleId::mlx5_create_cq_buffer_offset);
  }
  if (const int error = PinDoorbell(call, request.doorbell)) return error;
  const IoctlCall* ioctl = AsIoctl(call);
  const bool page_given =
      (ioctl != nullptr && ioctl->Has(VABI_C(MLX5_IB_ATTR_CREATE_CQ_UAR_INDEX))) ||
      (request.flags &
       static_cast<uint32_t>(world.Flag(VABI_C(MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX)))) != 0;
  if (call.Violates(RuleId::mlx5_create_cq_no_uar, !page_given && ContextOf(call.file).dyn_uar)) {
    return call.Refuse(RuleId::mlx5_create_cq_no_uar);
  }
  if (call.Violates(RuleId::mlx5_create_cq_compression,
                    request.compression && !kCaps.cqe_compression)) {
    return call.Refuse(RuleId::mlx5_create_cq_compression);
  }
  const auto pads = static_cast<uint32_t>(world.Flag(VABI_C(MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD)));
  if (call.Violates(
          RuleId::mlx5_create_cq_padding,
          (request.flags & pads) != 0 && (request.cqe_size != 128 || !kCaps.cqe_128_always))) {
    return call.Refuse(RuleId::mlx5_create_cq_padding);
  }
  return 0;
}

}  // namespace

int Mlx5Driver::CreateCq(Call& call, Cq& cq) {
  const uint32_t most = 1u << kCaps.log_max_cq_sz;
  if (cq.cqe > most) return call.Refuse(RuleId::mlx5_create_cq_entries);
  // 4.4 knew none, but there only the extended command, which mlx5 did not offer, has flags.
  constexpr uint32_t kTimestampCompletion = 1, kIgnoreOverrun = 2;
  if (call.Violates(RuleId::mlx5_create_cq_flags,
                    (cq.flags & ~(kTimestampCompletion | kIgnoreOverrun)) != 0)) {
    return call.Refuse(RuleId::mlx5_create_cq_flags);
  }
  const uint32_t entries = RoundUpPowerOfTwo(cq.cqe + 1);
  if (entries > most) return call.Refuse(RuleId::mlx5_create_cq_entries);
  Request request = {};
  if (const int error = ReadRequest(call, &request)) return error;
  if (const IoctlCall* ioctl = AsIoctl(call);
      ioctl != nullptr && ioctl->Has(VABI_C(MLX5_IB_ATTR_CREATE_CQ_DBR_BUF_UMEM))) {
    return call.Unmodelled("mlx5: a doorbell record in a buffer object");
  }
  if (const int error = CheckRequest(call, request, entries)) return error;

  auto state = std::make_unique<CqState>();
  state->cqe_size = request.cqe_size;
  const auto real_time =
      static_cast<uint32_t>(call.world.Flag(VABI_C(MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS)));
  state->real_time = (request.flags & real_time) != 0;
  const auto pads =
      static_cast<uint32_t>(call.world.Flag(VABI_C(MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD)));
  const uint32_t number = cq.device->NextNumber();
  OwnedBody<32> reply(call.world, VABI_S(mlx5_ib_create_cq_resp));
  reply.Set(VABI_F(mlx5_ib_create_cq_resp, cqn), number);
  // Before 7.2 only the number was copied.
  const bool whole = call.world.Knob(KnobId::mlx5_respond_zeroes) != 0;
  const size_t size = whole ? reply.length() : call.world.End(VABI_F(mlx5_ib_create_cq_resp, cqn));
  if (const int error = Respond(call, reply.base(), size, OldRespond::kWhole)) return error;
  cq.cqe = entries - 1;
  {
    std::lock_guard lock(fabric::Lock());
    state->queue = std::make_unique<CompletionQueue>(
        number,
        CompletionQueue::Geometry{request.buffer, entries, request.cqe_size, request.doorbell,
                                  (request.flags & pads) != 0},
        &cq, (cq.flags & kIgnoreOverrun) != 0);
  }
  Watch(state->queue.get());
  cq.driver = std::move(state);
  return 0;
}

void Mlx5Driver::DestroyCq(Cq& cq) {
  Unwatch(StateOf(cq).queue.get());
  std::lock_guard lock(fabric::Lock());
  cq.driver.reset();
}

int Mlx5Driver::ResizeCq(Call& call, Cq& cq, uint32_t cqe) {
  const uint32_t most = 1u << kCaps.log_max_cq_sz;
  if (call.Violates(RuleId::mlx5_resize_cq_entries, cqe < 1 || cqe > most))
    return call.Refuse(RuleId::mlx5_resize_cq_entries);
  const uint32_t entries = RoundUpPowerOfTwo(cqe + 1);
  if (entries > most + 1) return call.Refuse(RuleId::mlx5_resize_cq_entries);
  if (entries == cq.cqe + 1) return 0;
  OwnedBody<32> body(call.world, VABI_S(mlx5_ib_resize_cq));
  const RequestRules rules = {static_cast<size_t>(call.world.Knob(KnobId::mlx5_resize_cq_minimum)),
                              RuleId::mlx5_resize_cq_length, RuleId::mlx5_resize_cq_tail};
  if (rules.minimum == 0 && call.in.length() < body.length()) {
    return call.Unmodelled("mlx5: a RESIZE_CQ request shorter than the kernel reads");
  }
  if (const int error = CopyRequest(call, body.base(), body.length(), rules)) return error;
  if (call.Violates(RuleId::mlx5_resize_cq_reserved,
                    (body.Get(VABI_F(mlx5_ib_resize_cq, reserved0)) |
                     body.Get(VABI_F(mlx5_ib_resize_cq, reserved1))) != 0)) {
    return call.Refuse(RuleId::mlx5_resize_cq_reserved);
  }
  const uint64_t buffer = body.Get(VABI_F(mlx5_ib_resize_cq, buf_addr));
  const uint32_t cqe_size = body.U32(VABI_F(mlx5_ib_resize_cq, cqe_size));
  if (const int error = PinMemory(call, buffer, uint64_t{cqe_size} * entries, true)) return error;
  if (call.Violates(RuleId::mlx5_create_cq_buffer_offset, buffer % kQuantum != 0)) {
    return call.Refuse(RuleId::mlx5_create_cq_buffer_offset);
  }
  CqState& state = StateOf(cq);
  // The device cannot change the size of elements (MODIFY_CQ answers bad parameter).
  if (cqe_size != state.cqe_size)
    return call.Unmodelled("mlx5: RESIZE_CQ to another size of elements");
  Settle();
  std::lock_guard lock(fabric::Lock());
  if (call.Violates(RuleId::mlx5_resize_cq_outstanding, state.queue->Outstanding() > entries)) {
    return call.Refuse(RuleId::mlx5_resize_cq_outstanding);
  }
  state.queue->Resize(buffer, entries);
  cq.cqe = entries - 1;
  return 0;
}

int Mlx5Driver::ModifyCq(Call& call, Cq&, uint16_t, uint16_t period) {
  if (call.Violates(RuleId::mlx5_modify_cq_moderation, !kCaps.cq_moderation)) {
    return call.Refuse(RuleId::mlx5_modify_cq_moderation);
  }
  constexpr uint16_t kMaxPeriod = 0xfff;  // MLX5_MAX_CQ_PERIOD: 12 bits of the CQ context
  if (call.Violates(RuleId::mlx5_modify_cq_period, period > kMaxPeriod)) {
    return call.Refuse(RuleId::mlx5_modify_cq_period);
  }
  return 0;  // completions are never held back
}

}  // namespace vabi::mlx5
