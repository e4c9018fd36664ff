// SPDX-License-Identifier: BSD-2-Clause
// verbs.c: irdma_alloc_ucontext, irdma_mmap, irdma_alloc_pd, irdma_create_user_ah
#include "shims/providers/common/udata.h"
#include "shims/providers/irdma/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::irdma {
namespace {

#define REQ(field) VABI_PF(irdma_alloc_ucontext_req, field)
#define RESP(field) VABI_PF(irdma_alloc_ucontext_resp, field)

constexpr uint64_t kPage = 4096;
constexpr uint64_t kFeatures = 1 | 2;  // IRDMA_FEATURE_RTS_AE, IRDMA_FEATURE_CQ_RESIZE

struct Request {
  uint8_t version;
  uint64_t comp_mask;
};

int ReadRequest(Call& call, Request* request) {
  const World& world = call.world;
  OwnedBody<32> body(world, structure::irdma_alloc_ucontext_req);
  const size_t least_reply = world.End(RESP(rsvd)), least = world.End(REQ(rsvd8));
  if (call.Violates(rule::ucontext_reply, call.out.length() < least_reply))
    return call.Refuse(rule::ucontext_reply);
  if (world.Knob(knob::looks_at_lengths) == 0 && call.in.length() < world.End(REQ(userspace_ver)))
    return call.Unmodelled("irdma: a GET_CONTEXT request without a version, which is not set then");
  const provider::RequestRules rules = {least, rule::ucontext_short, rule::ucontext_tail,
                                        rule::ucontext_fault};
  if (const int error = provider::CopyRequest(call, body.base(), body.length(), rules))
    return error;
  request->version = static_cast<uint8_t>(body.Get(REQ(userspace_ver)));
  request->comp_mask = body.Get(REQ(comp_mask));
  const auto known = static_cast<uint64_t>(world.Flag(constant::IRDMA_ALLOC_UCTX_USE_RAW_ATTR) |
                                           world.Flag(constant::IRDMA_SUPPORT_WQE_FORMAT_V2));
  if (call.Violates(rule::ucontext_comp_mask, (request->comp_mask & ~known) != 0))
    return call.Refuse(rule::ucontext_comp_mask);
  if (call.Violates(rule::ucontext_version,
                    request->version < kOldestAbi || request->version > kAbi))
    return call.Refuse(rule::ucontext_version);
  return 0;
}

// libi40iw's reply has room for the first 16 bytes only.
bool IsLegacy(const Call& call) {
  if (call.world.Knob(knob::looks_at_lengths) == 0)
    return call.out.length() < call.world.Size(structure::irdma_alloc_ucontext_resp);
  return call.out.length() == call.world.End(RESP(rsvd));
}

void Fill(const Device& device, uint64_t key, const Body& reply) {
  const World& world = device.world();
  reply.Set(RESP(kernel_ver), kAbi);
  reply.Set(RESP(feature_flags), kFeatures);
  reply.Set(RESP(db_mmap_key), key);
  reply.Set(RESP(max_hw_wq_frags), kMaxFragments);
  reply.Set(RESP(max_hw_read_sges), kMaxReadSges);
  reply.Set(RESP(max_hw_inline), kMaxInline);
  reply.Set(RESP(max_hw_rq_quanta), kMaxQuanta);
  reply.Set(RESP(max_hw_wq_quanta), kMaxQuanta);
  reply.Set(RESP(max_hw_sq_chunk), kMaxQuantaPerWr);
  reply.Set(RESP(max_hw_cq_size), kMaxCqSize);
  reply.Set(RESP(min_hw_cq_size), kMinCqSize);
  reply.Set(RESP(hw_rev), Generation(device));
  int64_t mask = 0;
  if (world.Knob(knob::raw_attributes) != 0)
    mask |= world.Flag(constant::IRDMA_ALLOC_UCTX_USE_RAW_ATTR);
  if (world.Knob(knob::least_wq_told) != 0) {
    mask |= world.Flag(constant::IRDMA_ALLOC_UCTX_MIN_HW_WQ_SIZE);
    reply.Set(RESP(min_hw_wq_size), kMinWqSize);
  }
  // An E810 has no SRQs: none of their quanta.
  if (world.Knob(knob::srq_quanta_told) != 0)
    mask |= world.Flag(constant::IRDMA_ALLOC_UCTX_MAX_HW_SRQ_QUANTA);
  reply.Set(RESP(comp_mask), static_cast<uint64_t>(mask));
}

}  // namespace

int IrdmaDriver::AllocContext(Call& call, Context& context) {
  const World& world = call.world;
  const Device& device = *context.device;
  Request request = {};
  if (const int error = ReadRequest(call, &request)) return error;
  auto state = std::make_unique<ContextState>();
  const auto raw = static_cast<uint64_t>(world.Flag(constant::IRDMA_ALLOC_UCTX_USE_RAW_ATTR));
  state->raw_attributes = world.Knob(knob::raw_attributes) != 0 && (request.comp_mask & raw) != 0;
  OwnedBody<128> reply(world, structure::irdma_alloc_ucontext_resp);
  if (IsLegacy(call)) {
    if (call.Violates(rule::ucontext_legacy, Generation(device) != 1))
      return call.Refuse(rule::ucontext_legacy);
    state->legacy = true;
    constexpr uint32_t kWqSize = 2 * ((2048 - kSqReserved) / kMaxQuantaPerWr);
    reply.Set(RESP(max_qps), kMaxQps);
    reply.Set(RESP(max_pds), kMaxPds);
    reply.Set(RESP(wq_size), kWqSize);
    reply.Set(RESP(kernel_ver), request.version);
  } else {
    const uint64_t key = state->entries.Insert({.length = kPage, .kind = "DOORBELL"});
    Fill(device, key, reply);
  }
  if (const int error = Reply(call, reply, rule::reply_fault)) return error;
  context.driver = std::move(state);
  return 0;
}

int IrdmaDriver::Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) {
  ContextState& state = StateOf(context);
  reply->kind = "DOORBELL";
  if (state.legacy) {
    if (request.offset != 0 || request.length > kPage) return call.Refuse(rule::map_offset);
    if (const int error = request.CheckShared(call)) return error;
  } else {
    if (const int error = request.CheckShared(call)) return error;
    if (state.entries.FindExact(request.offset, request.length) == nullptr)
      return call.Refuse(rule::map_offset);
  }
  reply->anonymous = true;
  return 0;
}

int IrdmaDriver::AllocPd(Call& call, Pd& pd) {
  if (const int error = NoInput(call)) return error;
  OwnedBody<16> reply(call.world, structure::irdma_alloc_pd_resp);
  if (call.Violates(rule::pd_reply, call.out.length() < reply.length()))
    return call.Refuse(rule::pd_reply);
  reply.Set(VABI_PF(irdma_alloc_pd_resp, pd_id), pd.device->NextNumber());
  return Reply(call, reply, rule::reply_fault);
}

int IrdmaDriver::CreateAh(Call& call, Ah& ah) {
  if (const int error = NoInput(call)) return error;
  OwnedBody<16> reply(call.world, structure::irdma_create_ah_resp);
  if (call.Violates(rule::ah_reply, call.out.length() < reply.length()))
    return call.Refuse(rule::ah_reply);
  reply.Set(VABI_PF(irdma_create_ah_resp, ah_id), ah.device->NextNumber());
  return Reply(call, reply, rule::reply_fault);
}

}  // namespace vabi::irdma
