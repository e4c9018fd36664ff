// SPDX-License-Identifier: BSD-2-Clause
// ib_verbs.c: bnxt_re_create_qp and what it calls, bnxt_re_modify_qp, bnxt_re_query_qp
#include <algorithm>

#include "shims/providers/bnxt_re/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::bnxt_re {
namespace {

#define QP(field) VABI_PF(bnxt_re_qp_req, field)

constexpr uint32_t kReserved = 128;  // BNXT_QPLIB_RESERVED_QP_WRS
constexpr uint32_t kEntry = 128;     // of both queues: a header and six elements
constexpr uint32_t kPsnSearch = 8;   // struct sq_psn_search
constexpr uint64_t kFixed = 1;       // BNXT_RE_QP_REQ_MASK_FIXED_QUE_ATTR
// IB_ACCESS_LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ; what __to_ib_access_flags knows
constexpr uint32_t kLocalWrite = 1, kRemoteWrite = 2, kRemoteRead = 4;
constexpr uint32_t kKnownAccess = 0x1f | 1 << 5 | 1 << 6;

int ReadRequest(Call& call, const Body& request) {
  if (const int error = bnxt_re::ReadRequest(call, request, call.world.End(QP(qp_handle))))
    return error;
  if (call.Violates(rule::request_comp_mask, (request.Get(QP(comp_mask)) & ~kFixed) != 0))
    return call.Refuse(rule::request_comp_mask);
  return 0;
}

int CheckWish(Call& call, const Qp& qp, const Body& request) {
  const World& world = call.world;
  const auto most = static_cast<uint32_t>(world.Knob(knob::max_qp_wr));
  const QpCapabilities& cap = qp.cap;
  if (call.Violates(rule::qp_limits, cap.max_send_wr > most || cap.max_recv_wr > most ||
                                         cap.max_send_sge > kMaxSge || cap.max_recv_sge > kMaxSge ||
                                         cap.max_inline > kMaxInline))
    return call.Refuse(rule::qp_limits);
  if (qp.qp_type == kQptRawPacket && world.Knob(knob::raw_packets) != 0)
    return call.Unmodelled("bnxt_re: whether the firmware has queue pairs of raw packets");
  if (qp.qp_type != kQptRc && qp.qp_type != kQptUd) return call.Refuse(rule::qp_type);
  if (call.Violates(rule::qp_fixed,
                    world.Knob(knob::validates) != 0 && (request.Get(QP(comp_mask)) & kFixed) != 0))
    return call.Refuse(rule::qp_fixed);
  if (call.Violates(rule::qp_flags, qp.create_flags != 0)) return call.Refuse(rule::qp_flags);
  return 0;
}

uint64_t Whole(uint64_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }

}  // namespace

int BnxtReDriver::CreateQp(Call& call, Qp& qp) {
  const World& world = call.world;
  OwnedBody<64> request(world, structure::bnxt_re_qp_req);
  const bool first = world.Knob(knob::qp_request_first) != 0;
  if (first) {
    if (const int error = ReadRequest(call, request)) return error;
  }
  if (const int error = CheckWish(call, qp, request)) return error;
  if (!first) {
    if (const int error = ReadRequest(call, request)) return error;
  }
  const ContextState& context = StateOf(*call.file.context());
  const auto most = static_cast<uint32_t>(world.Knob(knob::max_qp_wr));
  const uint32_t sends = context.Depth(qp.cap.max_send_wr + kReserved + 1, most + kReserved + 1);
  const uint32_t receives = qp.srq != nullptr ? 0 : context.Depth(qp.cap.max_recv_wr + 1, most + 1);
  const uint32_t per_send = kEntry + (qp.qp_type == kQptRc ? kPsnSearch : 0);
  if (const int error =
          PinRing(call, request.Get(QP(qpsva)), Whole(uint64_t{sends} * per_send), true))
    return error;
  if (qp.srq == nullptr) {
    if (const int error =
            PinRing(call, request.Get(QP(qprva)), Whole(uint64_t{receives} * kEntry), true))
      return error;
  }
  const uint32_t number = qp.device->NextQpn();
  OwnedBody<16> reply(world, structure::bnxt_re_qp_resp);
  reply.Set(VABI_PF(bnxt_re_qp_resp, qpid), number);
  if (const int error = Reply(call, reply, knob::queue_replies)) return error;
  qp.qp_num = number;
  const bool inlines = qp.cap.max_inline != 0;
  if (inlines && world.Knob(knob::inline_rounded) != 0) qp.cap.max_inline = kMaxInline;
  auto state = std::make_unique<QpState>();
  state->made = qp.cap;
  state->made.max_send_wr = sends;
  state->made.max_recv_wr = receives;
  const auto six = world.Knob(knob::send_elements);
  if (six == 2 || (six == 1 && inlines)) state->made.max_send_sge = kMaxSge;
  if (qp.srq != nullptr) state->made.max_recv_sge = 0;
  state->region = RegionOf(call);
  if (state->region != nullptr) ++state->region->users;
  qp.driver = std::move(state);
  return 0;
}

int BnxtReDriver::ModifyQp(Call& call, Qp& qp, vabi::QpState next, const QpAttributes& attr,
                           uint32_t mask) {
  const World& world = call.world;
  const auto has = [mask](uint32_t bit) { return (mask & bit) != 0; };
  if (const int error = NoInput(call)) return error;
  const bool rates = world.Knob(knob::rate_limits) != 0;
  const uint32_t known = kQpStandardBits | (rates ? uint32_t{kQpRateLimit} : 0);
  if (call.Violates(rule::modify_mask, (mask & ~known) != 0)) return call.Refuse(rule::modify_mask);
  if (has(kQpState)) {
    const auto rate_limit = static_cast<RateLimit>(world.Knob(KnobId::qp_rate_limit));
    if (call.Violates(rule::modify_transition,
                      !ModifyQpIsOk(qp.state, next, qp.qp_type, mask, rate_limit)))
      return call.Refuse(rule::modify_transition);
    const bool on_the_way = (qp.state == vabi::QpState::kInit && next == vabi::QpState::kRtr) ||
                            (qp.state == vabi::QpState::kRtr && next == vabi::QpState::kRts) ||
                            (qp.state == vabi::QpState::kRts && next == vabi::QpState::kRts);
    if (call.Violates(rule::modify_rate_transition,
                      rates && has(kQpRateLimit) && (qp.qp_type != kQptRc || !on_the_way)))
      return call.Refuse(rule::modify_rate_transition);
  }
  if (rates && has(kQpRateLimit)) return call.Refuse(rule::modify_rate);
  // The driver looks at qp_state there, set or not.
  if (has(kQpPathMtu) && !has(kQpState) && call.On(rule::modify_mtu))
    return call.Unmodelled("bnxt_re: path_mtu without a state");
  const uint8_t mtu = qp.device->image().ports[0].active_mtu;  // iboe_get_mtu
  if (call.Violates(rule::modify_mtu, has(kQpState) && next == vabi::QpState::kRtr &&
                                          has(kQpPathMtu) && attr.path_mtu > mtu &&
                                          attr.path_mtu <= 5))  // IB_MTU_4096; others: -1
    return call.Refuse(rule::modify_mtu);
  if (call.Violates(rule::modify_reads,
                    has(kQpMaxDestRdAtomic) && attr.max_dest_rd_atomic > kMaxReads))
    return call.Refuse(rule::modify_reads);
  if (has(kQpCap)) return call.Unmodelled("bnxt_re: IB_QP_CAP, of which uverbs tells nothing");
  QpState& state = StateOf(qp);
  if (has(kQpAccessFlags)) state.has_access = true;
  if (has(kQpAv)) state.traffic_class = attr.address.traffic_class;
  return 0;
}

// What the card was told last.
int BnxtReDriver::QueryQp(Call& call, Qp& qp) {
  const World& world = call.world;
  const QpState& state = StateOf(qp);
  qp.cap = state.made;
  qp.signal_all = false;  // init_attr.sq_sig_type is REQ_WR, whatever was asked for
  if (state.has_access) {
    qp.attr.access_flags = (qp.attr.access_flags & kKnownAccess) | kLocalWrite;
    if (world.Knob(knob::qp_access_widened) != 0)
      qp.attr.access_flags |= kRemoteWrite | kRemoteRead;
  }
  qp.attr.max_rd_atomic =
      static_cast<uint8_t>(std::min<uint32_t>(qp.attr.max_rd_atomic, kMaxReads));
  qp.attr.address.traffic_class =
      world.Knob(knob::dscp_told) != 0 ? state.traffic_class >> 2 : state.traffic_class;
  // Which source port the card has chosen nobody tells.
  if (world.Knob(knob::source_port_told) != 0) qp.attr.address.flow_label = 0;
  // Where it is not told, what stands in the kernel's memory reads as zero here.
  qp.attr.port_num = world.Knob(knob::port_told) != 0 ? 1 : 0;
  return 0;
}

vabi::QpState BnxtReDriver::CurrentState(const World& world, const Qp& qp) const {
  return world.Knob(knob::current_state_told) != 0 ? vabi::QpState::kReset : qp.state;
}

int BnxtReDriver::DestroyQp(Call&, Qp& qp) {
  if (Object* const region = StateOf(qp).region; region != nullptr) --region->users;
  return 0;
}

}  // namespace vabi::bnxt_re
