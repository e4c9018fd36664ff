// SPDX-License-Identifier: BSD-2-Clause
// pvrdma_cq.c: pvrdma_create_cq; pvrdma_srq.c; pvrdma_qp.c
#include <bit>

#include "shims/providers/common/udata.h"
#include "shims/providers/vmw_pvrdma/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/qp_create.h"
#include "shims/uverbs/qp_state.h"

namespace vabi::vmw_pvrdma {
namespace {

#define QP(field) VABI_PF(pvrdma_create_qp, field)

constexpr uint32_t kLocalWrite = 1;

// One buffer with all that the device shares with the library.
int PinRing(Call& call, uint64_t address, uint64_t size, uint32_t access) {
  uint64_t pages = 0;
  if (const int error = Pin(call, address, size, access, &pages)) return error;
  return CheckDirectory(call, pages);
}

// PVRDMA_CMD_CREATE_QP: the device's own limits
bool WithinLimits(const QpCapabilities& cap) {
  return cap.max_send_wr <= kMaxQpWr && cap.max_recv_wr <= kMaxQpWr &&
         cap.max_send_sge <= kMaxSge && cap.max_recv_sge <= kMaxSge;
}

}  // namespace

int VmwPvrdmaDriver::CreateCq(Call& call, Cq& cq) {
  if (call.Violates(rule::cq_flags, cq.flags != 0)) return call.Refuse(rule::cq_flags);
  if (cq.cqe == 0)  // roundup_pow_of_two(0) is not defined
    return call.Unmodelled("vmw_pvrdma: a completion queue of no entry");
  if (cq.cqe > kMaxCqe) return call.Refuse(rule::cq_entries);
  OwnedBody<32> request(call.world, structure::pvrdma_create_cq);
  if (const int error = ReadRequest(call, request)) return error;
  if (const int error = PinRing(call, request.Get(VABI_PF(pvrdma_create_cq, buf_addr)),
                                request.Get(VABI_PF(pvrdma_create_cq, buf_size)), kLocalWrite))
    return error;
  OwnedBody<16> reply(call.world, structure::pvrdma_create_cq_resp);
  reply.Set(VABI_PF(pvrdma_create_cq_resp, cqn), cq.device->NextNumber());
  if (const int error = Reply(call, reply, true, rule::queue_reply_fault)) return error;
  cq.cqe = std::bit_ceil(cq.cqe);
  return 0;
}

// pvrdma_req_notify_cq rings the doorbell of the context.
int VmwPvrdmaDriver::ReqNotifyCq(Call&, Cq&, bool) { return 0; }

int VmwPvrdmaDriver::CreateSrq(Call& call, Srq& srq) {
  if (srq.srq_type != kSrqtBasic) return call.Refuse(rule::srq_type);
  if (call.Violates(rule::srq_size, srq.max_wr > kMaxSrqWr || srq.max_sge > kMaxSrqSge))
    return call.Refuse(rule::srq_size);
  OwnedBody<32> request(call.world, structure::pvrdma_create_srq);
  if (const int error = ReadRequest(call, request)) return error;
  if (const int error = PinRing(call, request.Get(VABI_PF(pvrdma_create_srq, buf_addr)),
                                request.Get(VABI_PF(pvrdma_create_srq, buf_size)), 0))
    return error;
  srq.srqn = srq.device->NextNumber();
  OwnedBody<16> reply(call.world, structure::pvrdma_create_srq_resp);
  reply.Set(VABI_PF(pvrdma_create_srq_resp, srqn), srq.srqn);
  return Reply(call, reply, false, rule::queue_reply_fault);
}

int VmwPvrdmaDriver::ModifySrq(Call& call, Srq& srq, uint32_t, uint32_t limit, uint32_t mask) {
  constexpr uint32_t kMaxWr = 1, kLimit = 2;  // enum ib_srq_attr_mask
  if ((mask & kLimit) == 0) return call.Refuse(rule::modify_srq_limit);
  if ((mask & kMaxWr) != 0) return call.Unmodelled("vmw_pvrdma: max_wr along with a limit");
  srq.srq_limit = limit;
  return 0;
}

int VmwPvrdmaDriver::QuerySrq(Call&, Srq&) { return 0; }

int VmwPvrdmaDriver::CreateQp(Call& call, Qp& qp) {
  const World& world = call.world;
  if (call.Violates(rule::qp_flags, qp.create_flags != 0)) return call.Refuse(rule::qp_flags);
  if (qp.qp_type != kQptRc && qp.qp_type != kQptUd) return call.Refuse(rule::qp_type);
  OwnedBody<64> request(world, structure::pvrdma_create_qp);
  if (const int error = ReadRequest(call, request)) return error;
  OwnedBody<16> reply(world, structure::pvrdma_create_qp_resp);
  if (call.Violates(rule::qp_reply, call.out.length() < reply.length()))
    return call.Refuse(rule::qp_reply);
  uint64_t pages = 0;
  if (qp.srq == nullptr) {
    if (const int error =
            Pin(call, request.Get(QP(rbuf_addr)), request.Get(QP(rbuf_size)), 0, &pages))
      return error;
  }
  if (const int error =
          Pin(call, request.Get(QP(sbuf_addr)), request.Get(QP(sbuf_size)), 0, &pages))
    return error;
  if (const int error = CheckDirectory(call, pages)) return error;
  if (!WithinLimits(qp.cap))
    return call.Unmodelled("vmw_pvrdma: a queue pair beyond what the device can");
  const uint32_t number = qp.device->NextQpn();
  reply.Set(VABI_PF(pvrdma_create_qp_resp, qpn), number);
  reply.Set(VABI_PF(pvrdma_create_qp_resp, qp_handle), 1 + number % (kMaxQp - 1));
  if (world.Knob(knob::qp_replies) != 0) {
    const auto how =
        world.Knob(knob::validates) != 0 ? provider::How::kZeroes : provider::How::kClip;
    if (const int error =
            provider::Respond(call, reply.base(), reply.length(), how, rule::queue_reply_fault))
      return error;
  }
  qp.qp_num = number;
  qp.cap.max_inline = 0;
  auto state = std::make_unique<QpState>();
  state->asked = qp.cap;
  qp.driver = std::move(state);
  return 0;
}

bool VmwPvrdmaDriver::ChecksTransition(const World& world, const Qp&, uint32_t mask) const {
  const RuleEntry& refuses = world.Rule(rule::modify_qp_mask);
  return !refuses.on || refuses.relaxed || (mask & ~kQpStandardBits) == 0;
}

int VmwPvrdmaDriver::ModifyQp(Call& call, Qp& qp, vabi::QpState, const QpAttributes& attr,
                              uint32_t mask) {
  const auto has = [mask](uint32_t bit) { return (mask & bit) != 0; };
  if (call.Violates(rule::modify_qp_mask, (mask & ~kQpStandardBits) != 0))
    return call.Refuse(rule::modify_qp_mask);
  if (call.Violates(rule::modify_qp_rnr_timer, has(kQpMinRnrTimer) && attr.min_rnr_timer > 31))
    return call.Refuse(rule::modify_qp_rnr_timer);
  if (call.Violates(rule::modify_qp_pkey, has(kQpPkeyIndex) && attr.pkey_index >= kMaxPkeys))
    return call.Refuse(rule::modify_qp_pkey);
  // The device judges such a change by itself.
  if (has(kQpCurState) && static_cast<vabi::QpState>(attr.cur_qp_state) != qp.state)
    return call.Unmodelled("vmw_pvrdma: IB_QP_CUR_STATE that is not the queue pair's state");
  return 0;
}

int VmwPvrdmaDriver::QueryQp(Call&, Qp& qp) {
  qp.signal_all = true;  // init_attr.sq_sig_type is 0, whatever was asked for
  if (qp.state == vabi::QpState::kReset) {
    qp.attr = {};
    qp.cap = {};
  } else {
    qp.cap = StateOf(qp).asked;
  }
  return 0;
}

int VmwPvrdmaDriver::DestroyQp(Call&, Qp&) { return 0; }

}  // namespace vabi::vmw_pvrdma
