// SPDX-License-Identifier: BSD-2-Clause
#include <utility>

#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"
#include "shims/uverbs/context.h"
#include "shims/uverbs/qp_create.h"
#include "shims/uverbs/qp_state.h"

namespace vabi {

int MakeQueuePair(Call& call, Qp& qp) {
  Driver& driver = qp.device->driver();
  if (qp.qp_type != kQptXrcTgt) {
    if (const int error = driver.CreateQp(call, qp)) return error;
    // ib_qp_usecnt_inc
    for (Object* used : {static_cast<Object*>(qp.pd), static_cast<Object*>(qp.send_cq),
                         static_cast<Object*>(qp.recv_cq), static_cast<Object*>(qp.srq),
                         static_cast<Object*>(qp.ind_table)}) {
      if (used != nullptr) ++used->users;
    }
    return 0;
  }
  // create_xrc_qp_user: the driver makes a queue pair of the kernel's, without the caller's udata;
  // the caller gets a handle to it.
  auto real = std::make_shared<Qp>();
  real->file = qp.file;
  real->device = qp.device;
  real->qp_type = qp.qp_type;
  real->xrcd = qp.xrcd;
  real->cap = qp.cap;
  real->signal_all = qp.signal_all;
  real->create_flags = qp.create_flags;
  const UdataIn in = std::exchange(call.in, UdataIn());
  const UdataOut out = std::exchange(call.out, UdataOut());
  const int error = driver.CreateQp(call, *real);
  call.in = in;
  call.out = out;
  if (error != 0) return error;
  qp.qp_num = real->qp_num;
  qp.cap = real->cap;
  real->open_handles = 1;
  qp.real = std::move(real);
  std::lock_guard lock(qp.device->shared_mutex());
  ++qp.xrcd->users;
  qp.device->xrc_targets[{qp.xrcd, qp.qp_num}] = qp.real;
  if (qp.xrcd_handle != nullptr) ++qp.xrcd_handle->users;
  return 0;
}

namespace {

constexpr uint32_t kSourceQpn = 1 << 10;  // IB_QP_CREATE_SOURCE_QPN

struct QpRequest {
  uint64_t user_handle = 0;
  uint32_t pd = 0, send_cq = 0, recv_cq = 0, srq = 0;
  QpCapabilities cap;
  bool signal_all = false, is_srq = false;
  uint8_t type = 0;
  uint32_t comp_mask = 0, create_flags = 0, ind_table = 0, source_qpn = 0;
};

// Legacy and extended requests begin alike but for the response pointer.
template <typename Field>
QpRequest ReadRequest(const Body& body, Field field) {
  QpRequest request;
  request.user_handle = body.Get(field[0]);
  request.pd = body.U32(field[1]);
  request.send_cq = body.U32(field[2]);
  request.recv_cq = body.U32(field[3]);
  request.srq = body.U32(field[4]);
  request.cap = {body.U32(field[5]), body.U32(field[6]), body.U32(field[7]), body.U32(field[8]),
                 body.U32(field[9])};
  request.signal_all = body.Get(field[10]) != 0;
  request.type = static_cast<uint8_t>(body.Get(field[11]));
  request.is_srq = body.Get(field[12]) != 0;
  return request;
}

#define FIELDS(s)                                                                                \
  {                                                                                              \
    VABI_F(s, user_handle), VABI_F(s, pd_handle), VABI_F(s, send_cq_handle),                     \
        VABI_F(s, recv_cq_handle), VABI_F(s, srq_handle), VABI_F(s, max_send_wr),                \
        VABI_F(s, max_recv_wr), VABI_F(s, max_send_sge), VABI_F(s, max_recv_sge),                \
        VABI_F(s, max_inline_data), VABI_F(s, sq_sig_all), VABI_F(s, qp_type), VABI_F(s, is_srq) \
  }
constexpr FieldId kLegacyFields[] = FIELDS(ib_uverbs_create_qp);
constexpr FieldId kExFields[] = FIELDS(ib_uverbs_ex_create_qp);
#undef FIELDS

void WriteCaps(const Qp& qp, const Body& to) {
  to.Set(VABI_F(ib_uverbs_create_qp_resp, max_send_wr), qp.cap.max_send_wr);
  to.Set(VABI_F(ib_uverbs_create_qp_resp, max_recv_wr), qp.cap.max_recv_wr);
  to.Set(VABI_F(ib_uverbs_create_qp_resp, max_send_sge), qp.cap.max_send_sge);
  to.Set(VABI_F(ib_uverbs_create_qp_resp, max_recv_sge), qp.cap.max_recv_sge);
  to.Set(VABI_F(ib_uverbs_create_qp_resp, max_inline_data), qp.cap.max_inline);
}

// uverbs_cmd.c:create_qp, up to the driver
int FillQp(Command& c, QpRequest& request, Qp* qp) {
  qp->user_handle = request.user_handle;
  qp->qp_type = request.type;
  const bool has_table =
      (request.comp_mask &
       static_cast<uint32_t>(c.world.Flag(VABI_C(IB_UVERBS_CREATE_QP_MASK_IND_TABLE)))) != 0;
  if (has_table) {
    if (const int error = c.Read(request.ind_table, &qp->ind_table)) return error;
    if (c.Violates(RuleId::qp_ind_table_recv, request.cap.max_recv_wr != 0 ||
                                                  request.cap.max_recv_sge != 0 ||
                                                  request.is_srq)) {
      return c.Refuse(RuleId::qp_ind_table_recv);
    }
  }
  const bool has_sq = !has_table || request.cap.max_send_wr != 0;
  if (request.type == kQptXrcTgt) {
    Object* handle = c.file.Find(ObjectType::kXrcd, request.pd);
    if (handle == nullptr) return c.Refuse(RuleId::qp_xrcd_none);
    qp->xrcd_handle = static_cast<Xrcd*>(handle);
    qp->xrcd = qp->xrcd_handle->domain.get();
  } else {
    if (request.type == kQptXrcIni) {
      request.cap.max_recv_wr = request.cap.max_recv_sge = 0;
    } else {
      if (request.is_srq) {
        if (const int error = c.Read(request.srq, &qp->srq)) return error;
        if (c.Violates(RuleId::qp_srq_is_xrc, qp->srq->srq_type == kSrqtXrc)) {
          return c.Refuse(RuleId::qp_srq_is_xrc);
        }
      }
      if (!has_table && request.recv_cq != request.send_cq) {
        if (const int error = c.Read(request.recv_cq, &qp->recv_cq)) return error;
      }
    }
    if (has_sq) {
      if (const int error = c.Read(request.send_cq, &qp->send_cq)) return error;
    }
    if (!has_table && qp->recv_cq == nullptr) qp->recv_cq = qp->send_cq;
    if (const int error = c.Read(request.pd, &qp->pd)) return error;
  }
  qp->signal_all = request.signal_all;
  qp->cap = request.cap;
  qp->create_flags = request.create_flags;
  const auto known = static_cast<uint32_t>(c.world.Knob(KnobId::qp_create_flags));
  if (c.Violates(RuleId::qp_create_flags, (request.create_flags & ~known) != 0)) {
    return c.Refuse(RuleId::qp_create_flags);
  }
  if ((request.create_flags & kSourceQpn) != 0) {
    if (c.Violates(RuleId::qp_source_qpn_permission, !HasCapabilities(c.world))) {
      return c.Refuse(RuleId::qp_source_qpn_permission);
    }
    qp->source_qpn = request.source_qpn;
  }
  qp->events = c.file.async_events;
  return 0;
}

int MakeQp(Command& c, QpRequest& request) {
  switch (request.type) {
    case kQptRawPacket:
      if (c.Violates(RuleId::qp_raw_permission, !HasCapabilities(c.world))) {
        return c.Refuse(RuleId::qp_raw_permission);
      }
      break;
    case kQptRc:
    case kQptUc:
    case kQptUd:
    case kQptXrcIni:
    case kQptXrcTgt:
    case kQptDriver:
      break;
    default:
      return c.Refuse(RuleId::qp_type);
  }
  Qp* qp;
  if (const int error = c.New(&qp)) return error;
  if (const int error = FillQp(c, request, qp)) return error;
  if (const int error = MakeQueuePair(c.call, *qp)) return error;
  c.Created();
  OwnedBody<128> reply(c.world, VABI_S(ib_uverbs_ex_create_qp_resp));
  const Body base = reply.Sub(VABI_F(ib_uverbs_ex_create_qp_resp, base));
  base.Set(VABI_F(ib_uverbs_create_qp_resp, qp_handle), qp->handle);
  base.Set(VABI_F(ib_uverbs_create_qp_resp, qpn), qp->qp_num);
  WriteCaps(*qp, base);
  reply.Set(VABI_F(ib_uverbs_ex_create_qp_resp, response_length), c.ResponseLength(reply.length()));
  return c.Respond(reply);
}

}  // namespace

int CreateQp(Command& c) {
  OwnedBody<128> body(c.world, VABI_S(ib_uverbs_create_qp));
  if (const int error = c.Request(body)) return error;
  QpRequest request = ReadRequest(body, kLegacyFields);
  return MakeQp(c, request);
}

int CreateQpEx(Command& c) {
  OwnedBody<128> body(c.world, VABI_S(ib_uverbs_ex_create_qp));
  if (const int error = c.Request(body)) return error;
  QpRequest request = ReadRequest(body, kExFields);
  request.comp_mask = body.U32(VABI_F(ib_uverbs_ex_create_qp, comp_mask));
  const auto known = static_cast<uint32_t>(c.world.Flag(VABI_C(IB_UVERBS_CREATE_QP_SUP_COMP_MASK)));
  if (c.Violates(RuleId::qp_ex_comp_mask, (request.comp_mask & ~known) != 0)) {
    return c.Refuse(RuleId::qp_ex_comp_mask);
  }
  if (c.Violates(RuleId::qp_ex_reserved, body.Get(VABI_F(ib_uverbs_ex_create_qp, reserved)) != 0)) {
    return c.Refuse(RuleId::qp_ex_reserved);
  }
  request.create_flags = body.U32(VABI_F(ib_uverbs_ex_create_qp, create_flags));
  request.ind_table = body.U32(VABI_F(ib_uverbs_ex_create_qp, rwq_ind_tbl_handle));
  request.source_qpn = body.U32(VABI_F(ib_uverbs_ex_create_qp, source_qpn));
  return MakeQp(c, request);
}

// ib_uverbs_open_qp: a second handle of an XRC target.
int OpenQp(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_open_qp));
  if (const int error = c.Request(request)) return error;
  Qp* qp;
  if (const int error = c.New(&qp)) return error;
  Object* handle =
      c.file.Find(ObjectType::kXrcd, request.Get(VABI_F(ib_uverbs_open_qp, pd_handle)));
  if (handle == nullptr) return c.Refuse(RuleId::qp_xrcd_none);
  auto* xrcd = static_cast<Xrcd*>(handle);
  if (c.Violates(RuleId::qp_open_type,
                 request.Get(VABI_F(ib_uverbs_open_qp, qp_type)) != kQptXrcTgt)) {
    return c.Refuse(RuleId::qp_open_type);
  }
  {
    std::lock_guard lock(c.device.shared_mutex());
    const auto found = c.device.xrc_targets.find(
        {xrcd->domain.get(), request.U32(VABI_F(ib_uverbs_open_qp, qpn))});
    if (found == c.device.xrc_targets.end()) return c.Refuse(RuleId::qp_open_none);
    qp->real = found->second;
    ++qp->real->open_handles;
  }
  qp->qp_type = kQptXrcTgt;
  qp->qp_num = qp->real->qp_num;
  qp->user_handle = request.Get(VABI_F(ib_uverbs_open_qp, user_handle));
  qp->xrcd = xrcd->domain.get();
  qp->xrcd_handle = xrcd;
  ++xrcd->users;
  c.Created();
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_create_qp_resp));
  reply.Set(VABI_F(ib_uverbs_create_qp_resp, qpn), qp->qp_num);
  reply.Set(VABI_F(ib_uverbs_create_qp_resp, qp_handle), qp->handle);
  return c.Respond(reply);
}

int DestroyQp(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_destroy_qp));
  if (const int error = c.Request(request)) return error;
  std::unique_ptr<Qp> dead;
  if (const int error = c.Destroy(request.Get(VABI_F(ib_uverbs_destroy_qp, qp_handle)), &dead)) {
    return error;
  }
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_destroy_qp_resp));
  reply.Set(VABI_F(ib_uverbs_destroy_qp_resp, events_reported), dead->events_reported);
  return c.Respond(reply);
}

}  // namespace vabi
