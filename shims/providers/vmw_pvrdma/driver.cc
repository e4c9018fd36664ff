// SPDX-License-Identifier: BSD-2-Clause
// pvrdma_main.c: pvrdma_dev_ops, pvrdma_dev_srq_ops; pvrdma_verbs.c
#include "shims/providers/vmw_pvrdma/driver.h"

#include "shims/providers/common/udata.h"
#include "shims/uverbs/device.h"

namespace vabi {
namespace vmw_pvrdma {

// What a program reaches in any release; kernel files say in which. Nothing tells its files that
// the device is gone (it has no disassociate_ucontext).
bool VmwPvrdmaDriver::Offers(Op op) const {
  switch (op) {
    case Op::alloc_ucontext:
    case Op::dealloc_ucontext:
    case Op::mmap:
    case Op::alloc_pd:
    case Op::dealloc_pd:
    case Op::create_ah:
    case Op::create_user_ah:
    case Op::destroy_ah:
    case Op::reg_user_mr:
    case Op::dereg_mr:
    case Op::create_cq:
    case Op::destroy_cq:
    case Op::poll_cq:
    case Op::req_notify_cq:
    case Op::create_qp:
    case Op::query_qp:
    case Op::modify_qp:
    case Op::destroy_qp:
    case Op::post_send:
    case Op::post_recv:
    case Op::create_srq:
    case Op::modify_srq:
    case Op::query_srq:
    case Op::destroy_srq:
    case Op::post_srq_recv:
    case Op::query_device:
    case Op::query_port:
    case Op::query_gid:
    case Op::query_pkey:
    case Op::query_device_ex:
    case Op::create_cq_ex:
    case Op::create_qp_ex:
    case Op::modify_qp_ex:
      return true;
    default:
      return false;
  }
}

void VmwPvrdmaDriver::Describe(const Device& device, DeviceAttributes* out) const {
  constexpr uint64_t kPortActiveEvent = 1 << 10, kRcRnrNakGen = 1 << 12,
                     kMemMgtExtensions = 1 << 21;
  const DeviceImage& image = device.image();
  out->max_mr_size = kMaxMrSize;
  out->page_size_cap = kPage;
  out->vendor_id = 0x15ad;
  out->vendor_part_id = image.vendor_part_id;
  out->hw_ver = image.hw_ver;
  out->max_qp = kMaxQp;
  out->max_qp_wr = kMaxQpWr;
  out->device_cap_flags = kMemMgtExtensions | kPortActiveEvent | kRcRnrNakGen;
  out->max_send_sge = out->max_recv_sge = out->max_sge_rd = kMaxSge;
  out->max_srq = 1024;
  out->max_srq_wr = kMaxSrqWr;
  out->max_srq_sge = kMaxSrqSge;
  out->max_cq = 65536;
  out->max_cqe = kMaxCqe;
  out->max_mr = 131072;
  out->max_pd = 65536;
  out->max_ah = 65536;
  out->max_qp_rd_atom = out->max_qp_init_rd_atom = 16;
  out->max_pkeys = kMaxPkeys;
  out->local_ca_ack_delay = 5;
}

int VmwPvrdmaDriver::QueryDevice(Call& call, Device&) {
  if (call.Violates(rule::query_device_udata, call.in.length() != 0 || call.out.length() != 0))
    return call.Refuse(rule::query_device_udata);
  return provider::NoUdataIo(call, rule::query_device_input, rule::query_device_fault);
}

// The request is empty: nothing of it is looked at.
int VmwPvrdmaDriver::AllocContext(Call& call, Context&) {
  OwnedBody<16> reply(call.world, structure::pvrdma_alloc_ucontext_resp);
  reply.Set(VABI_PF(pvrdma_alloc_ucontext_resp, qp_tab_size), kMaxQp);
  return Reply(call, reply, false, rule::reply_fault);
}

// Any offset is the context's UAR.
int VmwPvrdmaDriver::Map(Call& call, Context&, const MapRequest& request, MapReply* reply) {
  if (call.Violates(rule::map_length, request.length == 0 || request.length > kPage))
    return call.Refuse(rule::map_length);
  reply->kind = "UAR";
  reply->anonymous = true;
  reply->dont_copy = true;
  return 0;
}

int VmwPvrdmaDriver::AllocPd(Call& call, Pd& pd) {
  OwnedBody<16> reply(call.world, structure::pvrdma_alloc_pd_resp);
  reply.Set(VABI_PF(pvrdma_alloc_pd_resp, pdn), pd.device->NextNumber());
  return Reply(call, reply, true, rule::reply_fault);
}

int VmwPvrdmaDriver::CreateAh(Call& call, Ah& ah) {
  // An address without a route never comes here: the core has looked at it.
  if (call.Violates(rule::ah_multicast, ah.address.dgid[0] == 0xff))
    return call.Refuse(rule::ah_multicast);
  return 0;
}

}  // namespace vmw_pvrdma

std::unique_ptr<Driver> MakeVmwPvrdmaDriver() {
  return std::make_unique<provider::Limited<vmw_pvrdma::VmwPvrdmaDriver>>();
}

}  // namespace vabi
