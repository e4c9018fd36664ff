// SPDX-License-Identifier: BSD-2-Clause
// MODIFY_QP and QUERY_QP (uverbs_cmd.c:modify_qp, verbs.c:_ib_modify_qp).
#include <cerrno>

#include "shims/uverbs/address.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"
#include "shims/uverbs/context.h"
#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/restrack.h"
#include "shims/uverbs/write_order.h"

namespace vabi {
namespace {

constexpr uint32_t kPrivilegedQkey = 0x80000000;  // IB_QP_SET_QKEY
constexpr uint32_t kPsnMask = 0xffffff;
constexpr uint64_t kLastState = static_cast<uint64_t>(QpState::kErr);

#define FIELD(name) VABI_F(ib_uverbs_modify_qp, name)

struct ModifyRequest {
  Body body;  // struct ib_uverbs_modify_qp
  uint32_t mask;
  uint32_t rate_limit;
  uint8_t port;
};

// What the command says of ports, before the verbs layer.
int CheckPorts(Command& c, Qp& qp, ModifyRequest* request, const fabric::AddressVector& dest,
               const fabric::AddressVector& alternate) {
  const uint32_t mask = request->mask;
  if (c.Violates(RuleId::qp_modify_port,
                 (mask & kQpPort) != 0 && !c.device.ValidPort(request->port))) {
    return c.Refuse(RuleId::qp_modify_port);
  }
  if ((mask & kQpAv) != 0) {
    if (c.Violates(RuleId::qp_modify_av_port, !c.device.ValidPort(dest.port_num))) {
      return c.Refuse(RuleId::qp_modify_av_port);
    }
    if ((mask & kQpState) != 0 &&
        request->body.Get(FIELD(qp_state)) == static_cast<uint64_t>(QpState::kRtr)) {
      if (c.Violates(RuleId::qp_modify_av_other_port, dest.port_num != qp.Real().port)) {
        return c.Refuse(RuleId::qp_modify_av_other_port);
      }
    } else {
      if (c.Violates(RuleId::qp_modify_av_and_port,
                     (mask & kQpPort) != 0 && request->port != dest.port_num)) {
        return c.Refuse(RuleId::qp_modify_av_and_port);
      }
      if ((mask & kQpPort) == 0) {
        request->mask |= kQpPort;
        request->port = dest.port_num;
      }
    }
  }
  const uint64_t alt_port = request->body.Get(FIELD(alt_port_num));
  if (c.Violates(RuleId::qp_modify_alt_port,
                 (mask & kQpAltPath) != 0 &&
                     (!c.device.ValidPort(alt_port) || !c.device.ValidPort(alternate.port_num) ||
                      alt_port != alternate.port_num))) {
    return c.Refuse(RuleId::qp_modify_alt_port);
  }
  if (c.Violates(
          RuleId::qp_modify_state_range,
          ((mask & kQpCurState) != 0 && request->body.Get(FIELD(cur_qp_state)) > kLastState) ||
              ((mask & kQpState) != 0 && request->body.Get(FIELD(qp_state)) > kLastState))) {
    return c.Refuse(RuleId::qp_modify_state_range);
  }
  return 0;
}

// modify_qp_mask: fields that this service ignores
uint32_t Useful(uint8_t type, uint32_t mask) {
  if (type == kQptXrcIni) return mask & ~(kQpMaxDestRdAtomic | kQpMinRnrTimer);
  if (type == kQptXrcTgt) return mask & ~(kQpMaxRdAtomic | kQpRetryCnt | kQpRnrRetry);
  return mask;
}

// The values named by the mask, over `attr`.
void Apply(const ModifyRequest& request, QpAttributes* attr) {
  const Body& body = request.body;
  const auto take = [&](uint32_t bit, FieldId field, auto* to) {
    if ((request.mask & bit) != 0)
      *to = static_cast<std::remove_reference_t<decltype(*to)>>(body.Get(field));
  };
  take(kQpPathMtu, FIELD(path_mtu), &attr->path_mtu);
  take(kQpPathMigState, FIELD(path_mig_state), &attr->path_mig_state);
  take(kQpQkey, FIELD(qkey), &attr->qkey);
  take(kQpRqPsn, FIELD(rq_psn), &attr->rq_psn);
  take(kQpSqPsn, FIELD(sq_psn), &attr->sq_psn);
  take(kQpDestQpn, FIELD(dest_qp_num), &attr->dest_qp_num);
  take(kQpAccessFlags, FIELD(qp_access_flags), &attr->access_flags);
  take(kQpPkeyIndex, FIELD(pkey_index), &attr->pkey_index);
  take(kQpEnSqdAsyncNotify, FIELD(en_sqd_async_notify), &attr->en_sqd_async_notify);
  take(kQpMaxRdAtomic, FIELD(max_rd_atomic), &attr->max_rd_atomic);
  take(kQpMaxDestRdAtomic, FIELD(max_dest_rd_atomic), &attr->max_dest_rd_atomic);
  take(kQpMinRnrTimer, FIELD(min_rnr_timer), &attr->min_rnr_timer);
  take(kQpTimeout, FIELD(timeout), &attr->timeout);
  take(kQpRetryCnt, FIELD(retry_cnt), &attr->retry_cnt);
  take(kQpRnrRetry, FIELD(rnr_retry), &attr->rnr_retry);
  take(kQpAltPath, FIELD(alt_port_num), &attr->alt_port_num);
  take(kQpAltPath, FIELD(alt_timeout), &attr->alt_timeout);
  take(kQpAltPath, FIELD(alt_pkey_index), &attr->alt_pkey_index);
  take(kQpCurState, FIELD(cur_qp_state), &attr->cur_qp_state);
  if ((request.mask & kQpPort) != 0) attr->port_num = request.port;
  if ((request.mask & kQpRateLimit) != 0) attr->rate_limit = request.rate_limit;
}

bool IsConnected(uint8_t type) {
  return type == kQptUc || type == kQptRc || type == kQptXrcIni || type == kQptXrcTgt;
}

// _ib_modify_qp: addresses and packet numbers
int CheckPaths(Command& c, const Qp& qp, uint32_t mask, QpAttributes* attr) {
  if ((mask & kQpAv) != 0) {
    if (const int error = CheckAddress(c.call, attr->address)) return error;
    if (IsConnected(qp.qp_type)) {
      if (const int error = ResolveMac(c.call, &attr->address)) return error;
    }
  }
  if ((mask & kQpAltPath) != 0) {
    if (const int error = CheckAddress(c.call, attr->alternate)) return error;
    if (c.Violates(RuleId::qp_modify_alt_path_roce,
                   c.device.image().link != LinkLayer::kInfiniband)) {
      return c.Refuse(RuleId::qp_modify_alt_path_roce);
    }
  }
  if (!c.device.IsIwarp()) {
    if ((mask & kQpRqPsn) != 0) attr->rq_psn &= kPsnMask;
    if ((mask & kQpSqPsn) != 0) attr->sq_psn &= kPsnMask;
  }
  return 0;
}

int Modify(Command& c, ModifyRequest request) {
  Qp* handle;
  if (const int error = c.Read(request.body.Get(FIELD(qp_handle)), &handle)) return error;
  Qp& qp = handle->Real();
  const fabric::AddressVector dest = ReadDestination(request.body.Sub(FIELD(dest)));
  const fabric::AddressVector alternate = ReadDestination(request.body.Sub(FIELD(alt_dest)));
  if (const int error = CheckPorts(c, *handle, &request, dest, alternate)) return error;
  if (c.Violates(RuleId::qp_modify_qkey_permission,
                 (request.mask & kQpQkey) != 0 &&
                     (request.body.Get(FIELD(qkey)) & kPrivilegedQkey) != 0 &&
                     !HasCapabilities(c.world))) {
    return c.Refuse(RuleId::qp_modify_qkey_permission);
  }
  QpAttributes attr = qp.attr;
  Apply(request, &attr);
  if ((request.mask & kQpAv) != 0) attr.address = dest;
  if ((request.mask & kQpAltPath) != 0) attr.alternate = alternate;
  const uint32_t mask = Useful(handle->qp_type, request.mask);
  if (const int error = CheckPaths(c, qp, mask, &attr)) return error;

  const auto current = (mask & kQpCurState) != 0
                           ? static_cast<QpState>(request.body.Get(FIELD(cur_qp_state)))
                           : qp.state;
  const auto next =
      (mask & kQpState) != 0 ? static_cast<QpState>(request.body.Get(FIELD(qp_state))) : current;
  // A state that is out of range gets here only with its rule relaxed.
  if (current > QpState::kErr || next > QpState::kErr) return -EINVAL;
  const auto rate_limit = static_cast<RateLimit>(c.world.Knob(KnobId::qp_rate_limit));
  if (c.Violates(RuleId::qp_modify_transition,
                 c.driver().ChecksTransition(c.world, qp, mask) &&
                     !ModifyQpIsOk(current, next, qp.qp_type, mask, rate_limit))) {
    return c.Refuse(RuleId::qp_modify_transition);
  }
  if (const int error = c.driver().ModifyQp(c.call, qp, next, attr, mask)) return error;
  qp.attr = attr;
  if ((mask & kQpPort) != 0) qp.port = attr.port_num;
  qp.state = c.driver().StateAfter(qp, next, mask);
  if (qp.track != 0) Track(qp);
  return 0;
}

}  // namespace

int ModifyQp(Command& c) {
  OwnedBody<256> body(c.world, VABI_S(ib_uverbs_modify_qp));
  if (const int error = c.Request(body)) return error;
  const uint32_t mask = body.U32(FIELD(attr_mask));
  if (c.Violates(RuleId::qp_modify_mask, (mask & ~kQpStandardBits) != 0)) {
    return c.Refuse(RuleId::qp_modify_mask);
  }
  return Modify(c, {body, mask, 0, static_cast<uint8_t>(body.Get(FIELD(port_num)))});
}

int ModifyQpEx(Command& c) {
  OwnedBody<256> whole(c.world, VABI_S(ib_uverbs_ex_modify_qp));
  if (const int error = c.Request(whole)) return error;
  const Body body = whole.Sub(VABI_F(ib_uverbs_ex_modify_qp, base));
  const uint32_t mask = body.U32(FIELD(attr_mask));
  const auto known = static_cast<uint32_t>(c.world.Knob(KnobId::qp_modify_ex_mask));
  if (c.Violates(RuleId::qp_modify_ex_mask, (mask & ~known) != 0)) {
    return c.Refuse(RuleId::qp_modify_ex_mask);
  }
  const uint32_t rate = whole.U32(VABI_F(ib_uverbs_ex_modify_qp, rate_limit));
  if (const int error =
          Modify(c, {body, mask, rate, static_cast<uint8_t>(body.Get(FIELD(port_num)))})) {
    return error;
  }
  if (!SizesFromTable(c.world)) return 0;  // no reply before 5.0
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_ex_modify_qp_resp));
  reply.Set(VABI_F(ib_uverbs_ex_modify_qp_resp, response_length), c.ResponseLength(reply.length()));
  return c.Respond(reply);
}
#undef FIELD

int QueryQp(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_query_qp));
  if (const int error = c.Request(request)) return error;
  Qp* handle;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_query_qp, qp_handle)), &handle))
    return error;
  Qp& qp = handle->Real();
  const uint32_t mask = request.U32(VABI_F(ib_uverbs_query_qp, attr_mask));
  if (const int error = c.driver().CheckQuery(c.call, qp, mask)) return error;
  if (const int error = c.driver().QueryQp(c.call, qp)) return error;
  OwnedBody<256> reply(c.world, VABI_S(ib_uverbs_query_qp_resp));
#define FIELD(name) VABI_F(ib_uverbs_query_qp_resp, name)
  reply.Set(FIELD(qp_state), static_cast<uint64_t>(qp.state));
  reply.Set(FIELD(cur_qp_state), static_cast<uint64_t>(c.driver().CurrentState(c.world, qp)));
  reply.Set(FIELD(path_mtu), qp.attr.path_mtu);
  reply.Set(FIELD(path_mig_state), qp.attr.path_mig_state);
  reply.Set(FIELD(qkey), qp.attr.qkey);
  reply.Set(FIELD(rq_psn), qp.attr.rq_psn);
  reply.Set(FIELD(sq_psn), qp.attr.sq_psn);
  reply.Set(FIELD(dest_qp_num), qp.attr.dest_qp_num);
  reply.Set(FIELD(qp_access_flags), qp.attr.access_flags);
  reply.Set(FIELD(pkey_index), qp.attr.pkey_index);
  reply.Set(FIELD(alt_pkey_index), qp.attr.alt_pkey_index);
  reply.Set(FIELD(sq_draining), qp.attr.sq_draining);
  reply.Set(FIELD(max_rd_atomic), qp.attr.max_rd_atomic);
  reply.Set(FIELD(max_dest_rd_atomic), qp.attr.max_dest_rd_atomic);
  reply.Set(FIELD(min_rnr_timer), qp.attr.min_rnr_timer);
  reply.Set(FIELD(port_num), qp.attr.port_num);
  reply.Set(FIELD(timeout), qp.attr.timeout);
  reply.Set(FIELD(retry_cnt), qp.attr.retry_cnt);
  reply.Set(FIELD(rnr_retry), qp.attr.rnr_retry);
  reply.Set(FIELD(alt_port_num), qp.attr.alt_port_num);
  reply.Set(FIELD(alt_timeout), qp.attr.alt_timeout);
  WriteDestination(qp.attr.address, reply.Sub(FIELD(dest)));
  WriteDestination(qp.attr.alternate, reply.Sub(FIELD(alt_dest)));
  reply.Set(FIELD(max_send_wr), qp.cap.max_send_wr);
  reply.Set(FIELD(max_recv_wr), qp.cap.max_recv_wr);
  reply.Set(FIELD(max_send_sge), qp.cap.max_send_sge);
  reply.Set(FIELD(max_recv_sge), qp.cap.max_recv_sge);
  reply.Set(FIELD(max_inline_data), qp.cap.max_inline);
  reply.Set(FIELD(sq_sig_all), qp.signal_all);
#undef FIELD
  return c.Respond(reply);
}

}  // namespace vabi
