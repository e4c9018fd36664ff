// SPDX-License-Identifier: BSD-2-Clause
// verbs.c: irdma_reg_user_mr and what it calls, irdma_rereg_user_mr, irdma_dereg_mr, irdma_alloc_mw
#include "shims/providers/common/udata.h"
#include "shims/providers/irdma/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::irdma {
namespace {

#define REQ(field) VABI_PF(irdma_mem_reg_req, field)

constexpr uint64_t kPage = 4096;

struct Request {
  uint16_t type;
  uint32_t cq_pages, rq_pages, sq_pages;
};

int ReadRequest(Call& call, Request* request) {
  const World& world = call.world;
  OwnedBody<16> body(world, structure::irdma_mem_reg_req);
  if (world.Knob(knob::looks_at_lengths) == 0 && call.in.length() < body.length())
    return call.Unmodelled("irdma: a short REG_MR request, the rest of which is not set");
  if (const int error =
          provider::CopyRequest(call, body.base(), body.length(),
                                {body.length(), rule::mr_short, rule::mr_tail, rule::mr_fault}))
    return error;
  request->type = static_cast<uint16_t>(body.Get(REQ(reg_type)));
  request->cq_pages = body.U32(REQ(cq_pages));
  request->rq_pages = body.U32(REQ(rq_pages));
  request->sq_pages = body.U32(REQ(sq_pages));
  return 0;
}

int PinRegion(Call& call, uint64_t start, uint64_t length, uint32_t access) {
  return provider::PinMemory(call, start, length, provider::AccessWrites(access),
                             {rule::pin_range, rule::pin_nothing, rule::pin_fault});
}

// The pages that a queue needs must be in the region.
int CheckPages(Call& call, const Request& request, uint64_t there) {
  constexpr uint32_t kShadow = 1;  // page
  switch (static_cast<Memory>(request.type)) {
    case Memory::kRegion:
      return 0;
    case Memory::kQp:
      if (call.Violates(rule::mr_qp_pages, request.sq_pages + request.rq_pages + kShadow > there))
        return call.Refuse(rule::mr_qp_pages);
      return 0;
    case Memory::kCq:  // the shadow area of an E810's CQ is memory of its own
      if (call.Violates(rule::mr_cq_pages, request.cq_pages > there))
        return call.Refuse(rule::mr_cq_pages);
      return 0;
    case Memory::kSrq:
      if (!call.On(rule::mr_srq_pages)) break;
      if (request.rq_pages + kShadow > there) return call.Refuse(rule::mr_srq_pages);
      return 0;
  }
  return call.Refuse(rule::mr_type);
}

uint32_t NextStag(Device& device) {
  constexpr uint32_t kFirst = 0x10;
  const uint32_t number = kFirst + device.NextNumber();
  return number << 8 | ((number * 37 + 11) & 0xff);  // irdma_create_stag: a random low byte
}

}  // namespace

int IrdmaDriver::RegMr(Call& call, Mr& mr) {
  Request request = {};
  const bool request_first = call.world.Knob(knob::validates) != 0;
  if (request_first) {
    if (const int error = ReadRequest(call, &request)) return error;
    if (call.out.length() != 0 && call.out.ClearFrom(0) != 0) return call.Refuse(rule::reply_fault);
  }
  if (call.Violates(rule::mr_length, mr.length > kMaxMrSize)) return call.Refuse(rule::mr_length);
  // The length of the request is looked at before the memory, the rest behind it.
  if (!request_first &&
      call.Violates(rule::mr_short,
                    call.in.length() < call.world.Size(structure::irdma_mem_reg_req)))
    return call.Refuse(rule::mr_short);
  if (const int error = PinRegion(call, mr.start, mr.length, mr.access)) return error;
  if (!request_first) {
    if (const int error = ReadRequest(call, &request)) return error;
  }
  const uint64_t pages = (mr.start + mr.length + kPage - 1) / kPage - mr.start / kPage;
  if (const int error = CheckPages(call, request, pages)) return error;
  auto state = std::make_unique<MrState>();
  state->type = static_cast<Memory>(request.type);
  state->base = mr.iova;
  state->writable = provider::AccessWrites(mr.access);
  if (state->type == Memory::kRegion) {
    mr.lkey = mr.rkey = NextStag(*mr.device);
  } else {
    ContextOf(call.file).waiting.push_back(state.get());
  }
  mr.driver = std::move(state);
  return 0;
}

int IrdmaDriver::ReregMr(Call& call, Mr& mr, uint32_t flags, uint64_t start, uint64_t length,
                         uint64_t, uint32_t access, Pd*) {
  constexpr uint32_t kTrans = 1, kAccess = 4;  // enum ib_mr_rereg_flags
  if (call.world.Knob(knob::validates) != 0) {
    if (const int error = provider::NoUdataIo(call, rule::input, rule::input_fault)) return error;
  }
  if (call.Violates(rule::mr_length, length > kMaxMrSize)) return call.Refuse(rule::mr_length);
  MrState& state = StateOf(mr);
  if (call.Violates(rule::rereg_type, state.type != Memory::kRegion))
    return call.Refuse(rule::rereg_type);
  if (state.type != Memory::kRegion)
    return call.Unmodelled(
        "irdma: REREG_MR of a queue's memory, which this kernel takes for a region");
  if (call.Violates(rule::rereg_readable, (flags & kAccess) != 0 && (flags & kTrans) == 0 &&
                                              provider::AccessWrites(access) && !state.writable))
    return call.Refuse(rule::rereg_readable);
  if ((flags & kTrans) == 0) return 0;
  const uint32_t now = (flags & kAccess) != 0 ? access : mr.access;
  mr.pins = {};  // irdma_rereg_mr_trans lets it go before it pins
  if (const int error = PinRegion(call, start, length, now)) return error;
  state.writable = provider::AccessWrites(now);
  return 0;
}

int IrdmaDriver::DeregMr(Call& call, Mr& mr) {
  MrState& state = StateOf(mr);
  if (call.Violates(rule::dereg_ring, state.rings > 0)) return call.Refuse(rule::dereg_ring);
  if (state.rings > 0) return call.Unmodelled("irdma: the memory of a queue that is still there");
  if (mr.file != nullptr && mr.file->context() != nullptr)
    StateOf(*mr.file->context()).Forget(&state);
  return 0;
}

int IrdmaDriver::AllocMw(Call& call, Mw& mw) {
  if (call.world.Knob(knob::validates) != 0) {
    if (const int error = provider::NoUdataIo(call, rule::input, rule::input_fault)) return error;
  }
  mw.rkey = NextStag(*mw.device);
  return 0;
}

}  // namespace vabi::irdma
