// SPDX-License-Identifier: BSD-2-Clause
// ib_verbs.c: bnxt_re_create_cq and bnxt_re_create_user_cq, bnxt_re_resize_cq, bnxt_re_create_srq
// and those beside it
#include "shims/providers/bnxt_re/driver.h"
#include "shims/sys/sys.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/qp_create.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::bnxt_re {
namespace {

constexpr uint32_t kCqe = 32, kRqe = 128;  // struct cq_base, struct rq_wqe of six elements
constexpr uint32_t kRqeHeader = 32, kElement = 16;
constexpr uint8_t kFirstPhase = 1;     // BNXT_QPLIB_QUEUE_START_PERIOD
constexpr uint64_t kFixedEntries = 1;  // BNXT_RE_CQ_FIXED_NUM_CQE_ENABLE

// The card ends the old ring of a queue that is resized with an element of its own (roce_hsi.h:
// struct cq_cutoff), which the library waits for (providers/bnxt_re/verbs.c:bnxt_re_resize_cq).
// Nothing else was put there: it is the first, of the first phase.
int TellCutOff(Call& call, uint64_t ring) {
  constexpr uint8_t kCutOff = 0xf << 1 | kFirstPhase;
  constexpr uint64_t kTypeAt = 24;
  if (sys::CopyToUser(ring + kTypeAt, &kCutOff, sizeof(kCutOff)) == 0) return 0;
  return call.Unmodelled("bnxt_re: a completion queue whose memory has gone");
}

}  // namespace

int BnxtReDriver::CreateCq(Call& call, Cq& cq) {
  const World& world = call.world;
  if (call.Violates(rule::cq_flags, cq.flags != 0)) return call.Refuse(rule::cq_flags);
  if (call.Violates(rule::cq_entries, cq.cqe > kMaxCqe)) return call.Refuse(rule::cq_entries);
  OwnedBody<32> request(world, structure::bnxt_re_cq_req);
  if (const int error = ReadRequest(call, request, world.End(VABI_PF(bnxt_re_cq_req, cq_handle))))
    return error;
  const uint64_t mask = request.Get(VABI_PF(bnxt_re_cq_req, comp_mask));
  if (call.Violates(rule::request_comp_mask, (mask & ~kFixedEntries) != 0))
    return call.Refuse(rule::request_comp_mask);
  const ContextState& context = StateOf(*call.file.context());
  const uint32_t entries =
      (mask & kFixedEntries) != 0 ? cq.cqe : context.Depth(cq.cqe + 1, kMaxCqe + 1);
  const uint64_t ring = request.Get(VABI_PF(bnxt_re_cq_req, cq_va));
  if (const int error = PinRing(call, ring, uint64_t{entries} * kCqe, true)) return error;
  OwnedBody<32> reply(world, structure::bnxt_re_cq_resp);
  reply.Set(VABI_PF(bnxt_re_cq_resp, cqid), cq.device->NextNumber());
  reply.Set(VABI_PF(bnxt_re_cq_resp, phase), kFirstPhase);
  if (const int error = Reply(call, reply, knob::cq_replies)) return error;
  cq.cqe = entries;
  auto state = std::make_unique<CqState>();
  state->ring = ring;
  cq.driver = std::move(state);
  return 0;
}

int BnxtReDriver::ResizeCq(Call& call, Cq& cq, uint32_t cqe) {
  auto& state = *static_cast<CqState*>(cq.driver.get());
  if (call.Violates(rule::resize_busy, state.resizing)) return call.Refuse(rule::resize_busy);
  if (call.Violates(rule::cq_entries, cqe < 1 || cqe > kMaxCqe))
    return call.Refuse(rule::cq_entries);
  const uint32_t entries = StateOf(*call.file.context()).Depth(cqe + 1, kMaxCqe + 1);
  OwnedBody<16> request(call.world, structure::bnxt_re_resize_cq_req);
  if (const int error = ReadRequest(call, request, request.length())) return error;
  if (call.world.Knob(knob::validates) != 0 && call.out.length() != 0 &&
      call.out.ClearFrom(0) != 0)  // ib_respond_empty_udata
    return call.Refuse(rule::reply_fault);
  const uint64_t ring = request.Get(VABI_PF(bnxt_re_resize_cq_req, cq_va));
  if (const int error = PinRing(call, ring, uint64_t{entries} * kCqe, false)) return error;
  if (const int error = TellCutOff(call, state.ring)) return error;
  state.ring = ring;
  state.resizing = true;
  cq.cqe = entries;
  return 0;
}

// bnxt_re_poll_cq: of a program's queue it ends what RESIZE_CQ began, and never gives a completion.
int BnxtReDriver::PollCq(Call&, Cq& cq) {
  static_cast<CqState*>(cq.driver.get())->resizing = false;
  return 0;
}

int BnxtReDriver::CreateSrq(Call& call, Srq& srq) {
  const World& world = call.world;
  if (call.Violates(rule::srq_size, srq.max_wr >= kMaxSrqWr)) return call.Refuse(rule::srq_size);
  if (srq.srq_type != kSrqtBasic) return call.Refuse(rule::srq_type);
  const uint32_t entries = StateOf(*call.file.context()).Depth(srq.max_wr + 1, kMaxSrqWr + 1);
  OwnedBody<16> request(world, structure::bnxt_re_srq_req);
  if (const int error = ReadRequest(call, request, request.length())) return error;
  const uint64_t size =
      world.Knob(knob::srq_by_elements) != 0 ? kRqeHeader + uint64_t{kElement} * srq.max_sge : kRqe;
  const uint64_t bytes = (entries * size + kPage - 1) & ~(kPage - 1);
  if (const int error = PinRing(call, request.Get(VABI_PF(bnxt_re_srq_req, srqva)), bytes, false))
    return error;
  srq.srqn = srq.device->NextNumber();
  OwnedBody<16> reply(world, structure::bnxt_re_srq_resp);
  reply.Set(VABI_PF(bnxt_re_srq_resp, srqid), srq.srqn);
  if (const int error = Reply(call, reply, knob::queue_replies)) return error;
  auto state = std::make_unique<SrqState>();
  state->entries = entries;
  srq.driver = std::move(state);
  return 0;
}

int BnxtReDriver::ModifySrq(Call& call, Srq& srq, uint32_t, uint32_t limit, uint32_t mask) {
  constexpr uint32_t kMaxWr = 1, kLimit = 2;  // enum ib_srq_attr_mask
  if (const int error = NoInput(call)) return error;
  if (mask == kMaxWr) {
    if (call.On(rule::modify_srq_resize)) return call.Refuse(rule::modify_srq_resize);
    return 0;
  }
  if (call.Violates(rule::modify_srq_mask, mask != kLimit))
    return call.Refuse(rule::modify_srq_mask);
  const uint32_t entries = static_cast<SrqState*>(srq.driver.get())->entries;
  if (call.Violates(rule::modify_srq_limit, limit > entries))
    return call.Refuse(rule::modify_srq_limit);
  srq.srq_limit = limit;
  return 0;
}

// The limit is the card's: what it was armed with last.
int BnxtReDriver::QuerySrq(Call&, Srq& srq) {
  srq.max_wr = static_cast<SrqState*>(srq.driver.get())->entries;
  return 0;
}

}  // namespace vabi::bnxt_re
