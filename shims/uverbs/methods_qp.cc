// SPDX-License-Identifier: BSD-2-Clause
// UVERBS_OBJECT_QP (uverbs_std_types_qp.c).
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/context.h"
#include "shims/uverbs/event_fd.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/method_table.h"
#include "shims/uverbs/qp_create.h"
#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

using attr::kMandatory;
using attr::kOptional;

constexpr uint32_t kSourceQpn = 1 << 10;  // IB_QP_CREATE_SOURCE_QPN

// Bytes of ib_uverbs_qp_cap, in and out.
QpCapabilities ReadCaps(const Body& from) {
  return {from.U32(VABI_F(ib_uverbs_qp_cap, max_send_wr)),
          from.U32(VABI_F(ib_uverbs_qp_cap, max_recv_wr)),
          from.U32(VABI_F(ib_uverbs_qp_cap, max_send_sge)),
          from.U32(VABI_F(ib_uverbs_qp_cap, max_recv_sge)),
          from.U32(VABI_F(ib_uverbs_qp_cap, max_inline_data))};
}
void WriteCaps(const QpCapabilities& cap, const Body& to) {
  to.Set(VABI_F(ib_uverbs_qp_cap, max_send_wr), cap.max_send_wr);
  to.Set(VABI_F(ib_uverbs_qp_cap, max_recv_wr), cap.max_recv_wr);
  to.Set(VABI_F(ib_uverbs_qp_cap, max_send_sge), cap.max_send_sge);
  to.Set(VABI_F(ib_uverbs_qp_cap, max_recv_sge), cap.max_recv_sge);
  to.Set(VABI_F(ib_uverbs_qp_cap, max_inline_data), cap.max_inline);
}

// The handles of an XRC target: a domain, and nothing else.
int FillTarget(IoctlCall& call, Qp* qp) {
  if (call.Violates(RuleId::qp_method_tgt_handles,
                    call.Has(VABI_C(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE)) ||
                        call.Has(VABI_C(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE)) ||
                        call.Has(VABI_C(UVERBS_ATTR_CREATE_QP_PD_HANDLE)) ||
                        call.Has(VABI_C(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE)))) {
    return call.Refuse(RuleId::qp_method_tgt_handles);
  }
  qp->xrcd_handle = call.Get<Xrcd>(VABI_C(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE));
  if (qp->xrcd_handle == nullptr) return call.Refuse(RuleId::qp_method_handle_missing);
  qp->xrcd = qp->xrcd_handle->domain.get();
  return 0;
}

// The handles of all others.
int FillOther(IoctlCall& call, Qp* qp) {
  if (call.Violates(
          RuleId::qp_method_odd_handles,
          call.Has(VABI_C(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE)) ||
              (call.Has(VABI_C(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE)) && qp->qp_type == kQptXrcIni))) {
    return call.Refuse(RuleId::qp_method_odd_handles);
  }
  qp->pd = call.Get<Pd>(VABI_C(UVERBS_ATTR_CREATE_QP_PD_HANDLE));
  if (qp->pd == nullptr) return call.Refuse(RuleId::qp_method_handle_missing);
  qp->ind_table = call.Get<RwqIndTable>(VABI_C(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE));
  qp->send_cq = call.Get<Cq>(VABI_C(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE));
  if (qp->ind_table != nullptr) {
    if (call.Violates(RuleId::qp_ind_table_recv,
                      qp->cap.max_recv_wr != 0 || qp->cap.max_recv_sge != 0 ||
                          call.Has(VABI_C(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE)) ||
                          call.Has(VABI_C(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE)))) {
      return call.Refuse(RuleId::qp_ind_table_recv);
    }
    if (qp->cap.max_send_wr == 0) {
      qp->send_cq = nullptr;
    } else if (qp->send_cq == nullptr) {
      return call.Refuse(RuleId::qp_method_handle_missing);
    }
    return 0;
  }
  if (qp->send_cq == nullptr) return call.Refuse(RuleId::qp_method_handle_missing);
  if (qp->qp_type != kQptXrcIni) {
    qp->recv_cq = call.Get<Cq>(VABI_C(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE));
    if (qp->recv_cq == nullptr) return call.Refuse(RuleId::qp_method_handle_missing);
  }
  return 0;
}

int FillHandles(IoctlCall& call, uint64_t type, Qp* qp) {
  switch (type) {
    case kQptXrcTgt:
      return FillTarget(call, qp);
    case kQptRawPacket:
      if (call.Violates(RuleId::qp_raw_permission, !HasCapabilities(call.world))) {
        return call.Refuse(RuleId::qp_raw_permission);
      }
      return FillOther(call, qp);
    case kQptRc:
    case kQptUc:
    case kQptUd:
    case kQptXrcIni:
    case kQptDriver:
      return FillOther(call, qp);
    default:
      return call.Refuse(RuleId::qp_type);
  }
}

int FillFlags(IoctlCall& call, Qp* qp) {
  const World& world = call.world;
  const auto flag = [&](ConstId id) { return static_cast<uint64_t>(world.Flag(id)); };
  const uint64_t sig_all = flag(VABI_C(IB_UVERBS_QP_CREATE_SQ_SIG_ALL));
  const uint64_t scatter_fcs = flag(VABI_C(IB_UVERBS_QP_CREATE_SCATTER_FCS));
  const uint64_t cvlan = flag(VABI_C(IB_UVERBS_QP_CREATE_CVLAN_STRIPPING));
  uint64_t flags;
  if (const int error = call.GetFlags(
          VABI_C(UVERBS_ATTR_CREATE_QP_FLAGS),
          flag(VABI_C(IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK)) | scatter_fcs | cvlan |
              flag(VABI_C(IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING)) | sig_all,
          &flags)) {
    return error;
  }
  // check_creation_flags
  const uint64_t rest = flags & ~sig_all;
  if (rest != 0 && qp->qp_type != kQptDriver) {
    if (call.Violates(RuleId::qp_method_flags_type,
                      qp->qp_type != kQptRawPacket &&
                          (qp->qp_type != kQptUd || (rest & (scatter_fcs | cvlan)) != 0))) {
      return call.Refuse(RuleId::qp_method_flags_type);
    }
  }
  qp->signal_all = (flags & sig_all) != 0;
  qp->create_flags = static_cast<uint32_t>(rest);
  if (call.Has(VABI_C(UVERBS_ATTR_CREATE_QP_SOURCE_QPN))) {
    call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_QP_SOURCE_QPN), &qp->source_qpn, sizeof(qp->source_qpn));
    qp->create_flags |= kSourceQpn;
  }
  return 0;
}

int Create(IoctlCall& call) {
  auto qp = std::make_unique<Qp>();
  Introduce(*qp, call.file);
  OwnedBody<64> cap(call.world, VABI_S(ib_uverbs_qp_cap));
  if (call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_QP_CAP), cap.base(), cap.length()) != 0) {
    return call.Refuse(RuleId::request_fault);
  }
  qp->cap = ReadCaps(cap);
  call.CopyIn(VABI_C(UVERBS_ATTR_CREATE_QP_USER_HANDLE), &qp->user_handle, sizeof(qp->user_handle));
  uint64_t type = 0;
  call.GetConst(VABI_C(UVERBS_ATTR_CREATE_QP_TYPE), &type);
  qp->qp_type = static_cast<uint8_t>(type);
  if (const int error = FillHandles(call, type, qp.get())) return error;
  if (const int error = FillFlags(call, qp.get())) return error;
  if (auto* srq = call.Get<Srq>(VABI_C(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE))) {
    if (call.Violates(RuleId::qp_method_srq_type,
                      (srq->srq_type == kSrqtXrc) != (qp->qp_type == kQptXrcTgt))) {
      return call.Refuse(RuleId::qp_method_srq_type);
    }
    qp->srq = srq;
  }
  qp->events = EventsOf(call, VABI_C(UVERBS_ATTR_CREATE_QP_EVENT_FD));
  for (const ConstId buffer :
       {VABI_C(UVERBS_ATTR_CREATE_QP_BUF_UMEM), VABI_C(UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM),
        VABI_C(UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM)}) {
    if (call.Has(buffer))
      return call.Unmodelled("QP buffer given by the caller (CREATE_QP_*_UMEM)");
  }
  if (const int error = MakeQueuePair(call, *qp)) return error;
  WriteCaps(qp->cap, cap);
  const uint32_t number = qp->qp_num;
  call.Created(VABI_C(UVERBS_ATTR_CREATE_QP_HANDLE), std::move(qp));
  if (const int error =
          call.CopyOutOrZero(VABI_C(UVERBS_ATTR_CREATE_QP_RESP_CAP), cap.base(), cap.length())) {
    return error;
  }
  return call.CopyOut(VABI_C(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM), &number, sizeof(number));
}

int Destroy(IoctlCall& call) {
  const Qp* qp = call.Get<Qp>(VABI_C(UVERBS_ATTR_DESTROY_QP_HANDLE));
  OwnedBody<64> reply(call.world, VABI_S(ib_uverbs_destroy_qp_resp));
  reply.Set(VABI_F(ib_uverbs_destroy_qp_resp, events_reported), qp->events_reported);
  return call.CopyOut(VABI_C(UVERBS_ATTR_DESTROY_QP_RESP), reply.base(), reply.length());
}

constexpr AttrSpec kCreate[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_QP_HANDLE), ObjectType::kQp, Access::kNew, kMandatory),
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE), ObjectType::kXrcd, Access::kRead,
              kOptional),
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_QP_PD_HANDLE), ObjectType::kPd, Access::kRead, kOptional),
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE), ObjectType::kSrq, Access::kRead, kOptional),
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE), ObjectType::kCq, Access::kRead,
              kOptional),
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE), ObjectType::kCq, Access::kRead,
              kOptional),
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE), ObjectType::kRwqIndTable,
              Access::kRead, kOptional),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_QP_USER_HANDLE), 8, kMandatory),
    attr::InStruct(VABI_C(UVERBS_ATTR_CREATE_QP_CAP), VABI_S(ib_uverbs_qp_cap),
                   VABI_F(ib_uverbs_qp_cap, max_inline_data), kMandatory),
    attr::Const(VABI_C(UVERBS_ATTR_CREATE_QP_TYPE), kMandatory),
    attr::Flags(VABI_C(UVERBS_ATTR_CREATE_QP_FLAGS), kOptional),
    attr::In(VABI_C(UVERBS_ATTR_CREATE_QP_SOURCE_QPN), 4, kOptional),
    attr::Fd(VABI_C(UVERBS_ATTR_CREATE_QP_EVENT_FD), ObjectType::kAsyncEvent, Access::kRead,
             kOptional),
    attr::OutStruct(VABI_C(UVERBS_ATTR_CREATE_QP_RESP_CAP), VABI_S(ib_uverbs_qp_cap),
                    VABI_F(ib_uverbs_qp_cap, max_inline_data), kMandatory),
    attr::Out(VABI_C(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM), 4, kMandatory),
    attr::InType(VABI_C(UVERBS_ATTR_CREATE_QP_BUF_UMEM), VABI_S(ib_uverbs_buffer_desc), kOptional),
    attr::InType(VABI_C(UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM), VABI_S(ib_uverbs_buffer_desc),
                 kOptional),
    attr::InType(VABI_C(UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM), VABI_S(ib_uverbs_buffer_desc),
                 kOptional),
};
constexpr AttrSpec kDestroy[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_DESTROY_QP_HANDLE), ObjectType::kQp, Access::kDestroy, kMandatory),
    attr::OutType(VABI_C(UVERBS_ATTR_DESTROY_QP_RESP), VABI_S(ib_uverbs_destroy_qp_resp),
                  kMandatory),
};
constexpr MethodSpec kMethods[] = {
    {MethodId::QP__CREATE, Op::destroy_qp, kCreate, Create, true},
    {MethodId::QP__DESTROY, Op::destroy_qp, kDestroy, Destroy},
};

}  // namespace

std::span<const MethodSpec> QpMethods() { return kMethods; }

}  // namespace vabi
