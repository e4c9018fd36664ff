// SPDX-License-Identifier: BSD-2-Clause
// srq.c
#include <algorithm>
#include <mutex>

#include "shims/fabric/nic.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/qp_create.h"
#include "shims/uverbs/srq_create.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

#define REQ(field) VABI_F(mlx5_ib_create_srq, field)

constexpr uint32_t kQuantum = 64;
constexpr uint32_t kLeastElement = 32;
// enum ib_srq_attr_mask
constexpr uint32_t kSrqMaxWr = 1 << 0, kSrqLimit = 1 << 1;

uint32_t Log2(uint32_t value) {  // rounded up
  uint32_t log = 0;
  while ((1u << log) < value) ++log;
  return log;
}

struct Request {
  uint64_t buffer, doorbell;
  uint32_t flags, user_index;
  bool reserved, covers_index;
};

int ReadRequest(Call& call, Request* request) {
  const World& world = call.world;
  OwnedBody<64> body(world, VABI_S(mlx5_ib_create_srq));
  const RequestRules rules = {static_cast<size_t>(world.Knob(KnobId::mlx5_create_srq_minimum)),
                              RuleId::mlx5_create_srq_length, RuleId::mlx5_create_srq_tail};
  // 4.4 took a request as one of two sizes, and read on behind a short one.
  const auto reads = static_cast<size_t>(world.Knob(KnobId::mlx5_create_srq_reads));
  if (call.in.length() < reads)
    return call.Unmodelled("mlx5: a CREATE_SRQ request shorter than the kernel reads");
  const size_t size = reads != 0 && call.in.length() < body.length() ? reads : body.length();
  // Up to 6.18 the tail was looked at behind the reserved fields, with the same errno.
  if (const int error = CopyRequest(call, body.base(), size, rules)) return error;
  request->buffer = body.Get(REQ(buf_addr));
  request->doorbell = body.Get(REQ(db_addr));
  request->flags = body.U32(REQ(flags));
  request->user_index = body.U32(REQ(uidx));
  request->reserved =
      (body.Get(REQ(reserved0)) | body.Get(REQ(reserved1)) | body.Get(REQ(reserved))) != 0;
  request->covers_index = world.Has(REQ(uidx)) && world.End(REQ(uidx)) <= call.in.length();
  return 0;
}

// get_srq_user_index
int CheckUserIndex(Call& call, const Request& request) {
  const bool version1 = ContextOf(call.file).cqe_version != 0;
  if (request.covers_index && !version1 && request.user_index == kDefaultUserIndex) return 0;
  const bool wrong = request.covers_index != version1 ||
                     (version1 && (request.user_index == kDefaultUserIndex ||
                                   (request.user_index & ~kUserIndexMask) != 0));
  if (call.Violates(RuleId::mlx5_create_srq_index, wrong))
    return call.Refuse(RuleId::mlx5_create_srq_index);
  return 0;
}

}  // namespace

int Mlx5Driver::CreateSrq(Call& call, Srq& srq) {
  if (call.Violates(RuleId::mlx5_create_srq_type, srq.srq_type > kSrqtTm)) {
    return call.Refuse(RuleId::mlx5_create_srq_type);
  }
  const uint32_t most = 1u << kCaps.log_max_srq_sz;
  if (srq.max_wr >= most) return call.Refuse(RuleId::mlx5_create_srq_depth);
  constexpr uint32_t kMaxSge = static_cast<uint32_t>(kCaps.max_wqe_sz_rq) / kSegment;
  if (call.Violates(RuleId::mlx5_create_srq_sges, srq.max_sge > kMaxSge)) {
    return call.Refuse(RuleId::mlx5_create_srq_sges);
  }
  const uint32_t log_entries = Log2(srq.max_wr + 1);
  // Without the rule the driver goes on with any number, and the NIC answers.
  if (srq.max_sge > kMaxSge)
    return call.Unmodelled("mlx5: an SRQ with more elements than the NIC takes");
  const uint32_t element = std::max(kLeastElement, 1u << Log2(kSegment + srq.max_sge * kSegment));
  Request request = {};
  if (const int error = ReadRequest(call, &request)) return error;
  if (call.Violates(RuleId::mlx5_create_srq_reserved, request.reserved)) {
    return call.Refuse(RuleId::mlx5_create_srq_reserved);
  }
  const bool basic = srq.srq_type == kSrqtBasic;
  if (!basic) {
    if (const int error = CheckUserIndex(call, request)) return error;
  }
  if (const IoctlCall* ioctl = AsIoctl(call);
      ioctl != nullptr && ioctl->Has(VABI_C(MLX5_IB_ATTR_CREATE_SRQ_DBR_BUF_UMEM))) {
    return call.Unmodelled("mlx5: a doorbell record in a buffer object");
  }
  const uint32_t entries = 1u << log_entries;
  if (const int error = PinMemory(call, request.buffer, uint64_t{entries} * element, false))
    return error;
  if (call.Violates(RuleId::mlx5_create_srq_buffer_offset, request.buffer % kQuantum != 0)) {
    return call.Refuse(RuleId::mlx5_create_srq_buffer_offset);
  }
  if (const int error = PinDoorbell(call, request.doorbell)) return error;
  // ilog2(max_num_tags) + 1 against log_tag_matching_list_sz, which is 0 where there is no such
  // thing
  const bool matches = MatchesTags(call.world, *srq.device);
  if (call.Violates(RuleId::mlx5_create_srq_tags,
                    srq.srq_type == kSrqtTm &&
                        (!matches || srq.max_num_tags >> kCaps.log_tag_matching_list_sz != 0))) {
    return call.Refuse(RuleId::mlx5_create_srq_tags);
  }

  auto state = std::make_unique<SrqState>();
  const uint32_t number = srq.device->NextNumber();
  OwnedBody<32> reply(call.world, VABI_S(mlx5_ib_create_srq_resp));
  reply.Set(VABI_F(mlx5_ib_create_srq_resp, srqn), number);
  const bool whole = call.world.Knob(KnobId::mlx5_respond_zeroes) != 0;
  const size_t size = whole || call.world.Knob(KnobId::mlx5_create_srq_reply_whole) != 0
                          ? reply.length()
                          : call.world.End(VABI_F(mlx5_ib_create_srq_resp, srqn));
  const OldRespond how = call.world.Knob(KnobId::mlx5_create_srq_reply_whole) != 0
                             ? OldRespond::kClip
                             : OldRespond::kWhole;
  if (const int error = Respond(call, reply.base(), size, how)) return error;
  srq.srqn = number;
  srq.max_wr = entries - 1;
  state->entries = entries;
  const bool version1 = ContextOf(call.file).cqe_version != 0;
  const bool signature =
      (request.flags & static_cast<uint32_t>(call.world.Flag(VABI_C(MLX5_SRQ_FLAG_SIGNATURE)))) !=
      0;
  state->queue = std::make_unique<SharedQueue>(
      number, version1 && !basic ? request.user_index : number,
      SharedQueue::Geometry{request.buffer, entries, Log2(element), signature, request.doorbell},
      &srq);
  if (srq.srq_type == kSrqtTm) state->queue->MatchTags(StateOf(*srq.cq).queue.get());
  if (srq.srq_type == kSrqtXrc) {
    std::lock_guard lock(fabric::Lock());
    AddXrcQueue(srq.device->number(), state->queue.get(), StateOf(*srq.cq).queue.get(),
                StateOf(*srq.pd).pdn);
  }
  srq.driver = std::move(state);
  return 0;
}

int Mlx5Driver::ModifySrq(Call& call, Srq& srq, uint32_t, uint32_t limit, uint32_t mask) {
  if (call.Violates(RuleId::mlx5_modify_srq_resize, (mask & kSrqMaxWr) != 0)) {
    return call.Refuse(RuleId::mlx5_modify_srq_resize);
  }
  if ((mask & kSrqLimit) == 0) return 0;
  if (call.Violates(RuleId::mlx5_modify_srq_limit, limit >= StateOf(srq).entries)) {
    return call.Refuse(RuleId::mlx5_modify_srq_limit);
  }
  std::lock_guard lock(fabric::Lock());
  StateOf(srq).queue->Arm(limit);
  srq.srq_limit = limit;
  return 0;
}

int Mlx5Driver::QuerySrq(Call&, Srq& srq) {
  std::lock_guard lock(fabric::Lock());
  srq.srq_limit = StateOf(srq).queue->limit();
  return 0;
}

void Mlx5Driver::DestroySrq(Srq& srq) {
  std::lock_guard lock(fabric::Lock());
  RemoveXrcQueue(srq.device->number(), StateOf(srq).queue.get());
  srq.driver.reset();
}

}  // namespace vabi::mlx5
