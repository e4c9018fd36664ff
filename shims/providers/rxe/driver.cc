// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/rxe/driver.h"

#include <errno.h>

#include <algorithm>
#include <mutex>

#include "shims/fabric/address.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {

std::unique_ptr<Driver> MakeRxeDriver() { return std::make_unique<rxe::RxeDriver>(); }

namespace rxe {
namespace {

// All that rxe has had in any release; kernel files say which release serves it (matrix/kernels).
constexpr Op kOps[] = {
    Op::alloc_ucontext,  Op::dealloc_ucontext, Op::mmap,
    Op::alloc_pd,        Op::dealloc_pd,       Op::create_ah,
    Op::create_user_ah,  Op::query_ah,         Op::modify_ah,
    Op::destroy_ah,      Op::reg_user_mr,      Op::rereg_user_mr,
    Op::dereg_mr,        Op::advise_mr,        Op::alloc_mw,
    Op::dealloc_mw,      Op::create_cq,        Op::destroy_cq,
    Op::resize_cq,       Op::poll_cq,          Op::peek_cq,
    Op::req_notify_cq,   Op::create_qp,        Op::query_qp,
    Op::modify_qp,       Op::destroy_qp,       Op::post_send,
    Op::post_recv,       Op::attach_mcast,     Op::detach_mcast,
    Op::create_srq,      Op::modify_srq,       Op::query_srq,
    Op::destroy_srq,     Op::post_srq_recv,    Op::query_device,
    Op::query_port,      Op::query_gid,        Op::query_pkey,
    Op::process_mad,     Op::create_xrc_srq,   Op::disassociate_ucontext,
    Op::query_device_ex, Op::create_cq_ex,     Op::create_qp_ex,
    Op::modify_qp_ex,
};

// enum ib_odp_transport_cap_bits
constexpr uint32_t kOdpSend = 1, kOdpRecv = 2, kOdpWrite = 4, kOdpRead = 8, kOdpAtomic = 16,
                   kOdpSrqRecv = 32, kOdpFlush = 64, kOdpAtomicWrite = 128;

}  // namespace

bool RxeDriver::Offers(Op op) const {
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// rxe.c: rxe_init_device_param
void RxeDriver::Describe(const Device& device, DeviceAttributes* out) const {
  const World& world = device.world();
  const auto knob = [&](KnobId id) { return static_cast<uint32_t>(world.Knob(id)); };
  out->max_mr_size = static_cast<uint64_t>(world.Knob(KnobId::rxe_max_mr_size));
  out->page_size_cap = static_cast<uint64_t>(world.Knob(KnobId::rxe_page_size_cap));
  out->device_cap_flags = static_cast<uint64_t>(world.Knob(KnobId::rxe_device_cap_flags));
  out->vendor_id = knob(KnobId::rxe_vendor_id);
  out->max_qp = knob(KnobId::rxe_max_qp);
  out->max_qp_wr = knob(KnobId::rxe_max_qp_wr);
  out->max_send_sge = out->max_recv_sge = knob(KnobId::rxe_max_sge);
  out->max_sge_rd = 32;
  out->max_cq = knob(KnobId::rxe_max_cq);
  out->max_cqe = knob(KnobId::rxe_max_cqe);
  out->max_mr = knob(KnobId::rxe_max_mr);
  out->max_mw = knob(KnobId::rxe_max_mw);
  out->max_pd = knob(KnobId::rxe_max_pd);
  out->max_qp_rd_atom = 128;
  out->max_res_rd_atom = 0x3f000;
  out->max_qp_init_rd_atom = 128;
  out->atomic_cap = 1;  // IB_ATOMIC_HCA
  out->max_mcast_grp = 8192;
  out->max_mcast_qp_attach = 56;
  out->max_total_mcast_qp_attach = 0x70000;
  out->max_ah = knob(KnobId::rxe_max_ah);
  out->max_srq = knob(KnobId::rxe_max_srq);
  out->max_srq_wr = knob(KnobId::rxe_max_srq_wr);
  out->max_srq_sge = knob(KnobId::rxe_max_srq_sge);
  out->max_pkeys = static_cast<uint16_t>(knob(KnobId::rxe_max_pkeys));
  out->local_ca_ack_delay = 15;
  if (world.Knob(KnobId::rxe_odp) != 0) {
    out->odp_general_caps = 1;  // IB_ODP_SUPPORT
    out->odp_ud = kOdpSend | kOdpRecv | kOdpSrqRecv;
    out->odp_rc = kOdpSend | kOdpRecv | kOdpWrite | kOdpRead | kOdpAtomic | kOdpSrqRecv |
                  kOdpFlush | kOdpAtomicWrite;
  }
}

// rxe.c: rxe_init_port_param; the rest stands in the world's port.
void RxeDriver::DescribePort(const Device&, uint32_t, PortAttributes* out) const {
  out->max_vl_num = 1;
}

uint32_t RxeDriver::CompVectors(const Device& device) const {
  return static_cast<uint32_t>(device.world().Knob(KnobId::rxe_comp_vectors));
}

int RxeDriver::QueryDevice(Call& call, Device&) {
  if (call.Violates(RuleId::rxe_query_device_udata,
                    call.in.length() != 0 || call.out.length() != 0)) {
    return call.Refuse(RuleId::rxe_query_device_udata);
  }
  const int zero = call.in.length() == 0 ? 1 : call.in.TailIsZero(0);
  if (zero < 0) return call.Refuse(RuleId::rxe_query_device_fault);
  if (call.Violates(RuleId::rxe_query_device_input, zero == 0))
    return call.Refuse(RuleId::rxe_query_device_input);
  if (call.out.length() != 0 && call.out.ClearFrom(0) != 0)
    return call.Refuse(RuleId::rxe_query_device_fault);
  return 0;
}

RxeDevice& RxeDriver::Of(const Device& device) {
  if (rxe_ == nullptr) rxe_ = std::make_unique<RxeDevice>(device);
  return *rxe_;
}

int RxeDriver::AllocContext(Call& call, Context& context) {
  std::lock_guard lock(fabric::Lock());
  auto state = std::make_unique<ContextState>();
  state->seat = Of(*context.device).contexts.Take();
  if (call.Violates(RuleId::rxe_context_full, state->seat.over()))
    return call.Refuse(RuleId::rxe_context_full);
  context.driver = std::move(state);
  fabric::AddDevice(context.device->number(), context.device->image());
  return 0;
}

// rxe_mmap.c: rxe_mmap
int RxeDriver::Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) {
  constexpr uint64_t kPageMask = 4095;
  std::lock_guard lock(fabric::Lock());
  Arena& arena = Of(*context.device).arena;
  const auto found =
      std::find_if(arena.pending.begin(), arena.pending.end(), [&](const Arena::Pending& one) {
        return one.context == &context && static_cast<uint64_t>(one.offset) == request.offset;
      });
  if (found == arena.pending.end()) return call.Refuse(RuleId::rxe_mmap_offset);
  reply->kind = found->kind;
  const bool too_long = request.length > UINT64_MAX - kPageMask ||
                        ((request.length + kPageMask) & ~kPageMask) > found->size;
  if (call.Violates(RuleId::rxe_mmap_size, too_long)) return call.Refuse(RuleId::rxe_mmap_size);
  reply->memory = found->memory;
  reply->pages = DeviceVma::Pages::kVmalloc;
  arena.pending.erase(found);
  return 0;
}

int RxeDriver::AllocPd(Call& call, Pd& pd) {
  auto state = std::make_unique<ProtectionDomain>();
  state->seat = Of(*pd.device).pds.Take();
  if (call.Violates(RuleId::rxe_pd_full, state->seat.over()))
    return call.Refuse(RuleId::rxe_pd_full);
  state->number = pd.device->NextNumber();
  pd.driver = std::move(state);
  return 0;
}

int TellPlace(Call& call, const Queue& queue, size_t offset) {
  OwnedBody<64> place(call.world, VABI_S(mminfo));
  place.Set(VABI_F(mminfo, offset), static_cast<uint64_t>(queue.offset()));
  place.Set(VABI_F(mminfo, size), queue.size());
  if (call.out.CopyAt(offset, place.base(), place.length()) != 0)
    return call.Refuse(RuleId::rxe_reply_fault);
  return 0;
}

uint64_t PlaceAlignment(const World& world) {
  return static_cast<uint64_t>(world.Knob(KnobId::rxe_mmap_shmlba));
}

}  // namespace rxe
}  // namespace vabi
