// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/driver.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/qp_state.h"

namespace vabi {

// Queue pairs of the driver's own kind go their own way (hw/mlx5/qp.c: DCI and DCT).
bool Driver::ChecksTransition(const World&, const Qp& qp, uint32_t) const {
  return qp.qp_type != kQptDriver;
}

int DriverBase::QueryDevice(Call& call, Device&) { return call.Unmodelled("driver: query_device"); }
int DriverBase::ReregMr(Call& call, Mr&, uint32_t, uint64_t, uint64_t, uint64_t, uint32_t, Pd*) {
  return call.Unmodelled("driver: rereg_user_mr");
}
int DriverBase::RegDmMr(Call& call, Mr&) { return call.Unmodelled("driver: reg_dm_mr"); }
int DriverBase::AllocMw(Call& call, Mw&) { return call.Unmodelled("driver: alloc_mw"); }
int DriverBase::AllocDm(Call& call, Dm&, uint32_t) { return call.Unmodelled("driver: alloc_dm"); }
int DriverBase::ResizeCq(Call& call, Cq&, uint32_t) { return call.Unmodelled("driver: resize_cq"); }
int DriverBase::ModifyCq(Call& call, Cq&, uint16_t, uint16_t) {
  return call.Unmodelled("driver: modify_cq");
}
int DriverBase::ReqNotifyCq(Call& call, Cq&, bool) {
  return call.Unmodelled("driver: req_notify_cq");
}
int DriverBase::PostSend(Call& call, Qp&, uint32_t) { return call.Unmodelled("driver: post_send"); }
int DriverBase::CreateSrq(Call& call, Srq&) { return call.Unmodelled("driver: create_srq"); }
int DriverBase::ModifySrq(Call& call, Srq&, uint32_t, uint32_t, uint32_t) {
  return call.Unmodelled("driver: modify_srq");
}
int DriverBase::CreateAh(Call& call, Ah&) { return call.Unmodelled("driver: create_user_ah"); }
int DriverBase::CreateWq(Call& call, Wq&) { return call.Unmodelled("driver: create_wq"); }
int DriverBase::ModifyWq(Call& call, Wq&, uint32_t, uint32_t, uint32_t) {
  return call.Unmodelled("driver: modify_wq");
}
int DriverBase::CreateRwqIndTable(Call& call, RwqIndTable&) {
  return call.Unmodelled("driver: create_rwq_ind_table");
}
int DriverBase::CreateFlow(Call& call, Flow&) { return call.Unmodelled("driver: create_flow"); }
int DriverBase::CreateCounters(Call& call, Counters&) {
  return call.Unmodelled("driver: create_counters");
}
int DriverBase::ReadCounters(Call& call, Counters&, std::span<uint64_t>) {
  return call.Unmodelled("driver: read_counters");
}
int DriverBase::AllocXrcd(Call& call, XrcDomain&) { return call.Unmodelled("driver: alloc_xrcd"); }
int DriverBase::AttachMcast(Call& call, Qp&, const uint8_t*, uint16_t, bool) {
  return call.Unmodelled("driver: attach_mcast");
}
int DriverBase::AdviseMr(Call& call, Pd&, uint32_t, uint32_t, std::span<const fabric::Sge>) {
  return call.Unmodelled("driver: advise_mr");
}
int DriverBase::RegDmabufMr(Call& call, Mr&, uint64_t, int) {
  return call.Unmodelled("driver: reg_user_mr_dmabuf");
}
int DriverBase::PostRecv(Call& call, Qp&, std::span<const fabric::RecvRequest>, uint32_t*) {
  return call.Unmodelled("driver: post_recv");
}
int DriverBase::PostSrqRecv(Call& call, Srq&, std::span<const fabric::RecvRequest>, uint32_t*) {
  return call.Unmodelled("driver: post_srq_recv");
}
int DriverBase::PollCq(Call& call, Cq&) { return call.Unmodelled("driver: poll_cq"); }
// Most drivers answer what was created (rxe_query_srq; mlx5 asks its firmware for the same).
int DriverBase::QuerySrq(Call&, Srq&) { return 0; }
int DriverBase::QueryContext(IoctlCall& call) { return call.Unmodelled("driver: query_ucontext"); }
int DriverBase::QueryPortSpeed(Call& call, uint32_t, uint64_t*) {
  return call.Unmodelled("driver: query_port_speed");
}
int DriverBase::QueryCompletionCounters(Call& call, CompletionCounters*) {
  return call.Unmodelled("driver: query_comp_cntr_caps");
}

}  // namespace vabi
