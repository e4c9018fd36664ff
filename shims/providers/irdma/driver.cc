// SPDX-License-Identifier: BSD-2-Clause
// verbs.c: irdma_dev_ops, irdma_roce_dev_ops, irdma_query_device
#include "shims/providers/irdma/driver.h"

#include "shims/providers/common/udata.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace irdma {

// What an E810 has in any release; kernel files say which release serves it. SRQs and, since 6.18,
// memory windows are for the next generation only.
bool IrdmaDriver::Offers(Op op) const {
  switch (op) {
    case Op::alloc_ucontext:
    case Op::dealloc_ucontext:
    case Op::disassociate_ucontext:
    case Op::mmap:
    case Op::alloc_pd:
    case Op::dealloc_pd:
    case Op::create_ah:
    case Op::create_user_ah:
    case Op::destroy_ah:
    case Op::reg_user_mr:
    case Op::rereg_user_mr:
    case Op::reg_user_mr_dmabuf:
    case Op::dereg_mr:
    case Op::alloc_mw:
    case Op::dealloc_mw:
    case Op::create_cq:
    case Op::destroy_cq:
    case Op::resize_cq:
    case Op::create_qp:
    case Op::query_qp:
    case Op::modify_qp:
    case Op::destroy_qp:
    case Op::attach_mcast:
    case Op::detach_mcast:
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

uint8_t Generation(const Device& device) {
  // drivers/net/ethernet/intel/i40e/i40e_devids.h: X722
  const uint32_t part = device.image().vendor_part_id;
  return part >= 0x37cc && part <= 0x37d3 ? 1 : 2;
}

ContextState& ContextOf(UverbsFile& file) { return StateOf(*file.context()); }

int Reply(Call& call, const Body& body, RuleId fault) {
  const bool responds = call.world.Knob(knob::responds) != 0;
  return provider::Respond(call, body.base(), body.length(),
                           responds ? provider::How::kZeroes : provider::How::kClip, fault);
}

int NoInput(Call& call) {
  if (call.world.Knob(knob::validates) == 0) return 0;
  const int zero = call.in.length() == 0 ? 1 : call.in.TailIsZero(0);
  if (zero < 0) return call.Refuse(rule::input_fault);
  if (call.Violates(rule::input, zero == 0)) return call.Refuse(rule::input);
  return 0;
}

void IrdmaDriver::Describe(const Device& device, DeviceAttributes* out) const {
  const World& world = device.world();
  const auto knob = [&](KnobId id) { return static_cast<uint64_t>(world.Knob(id)); };
  const DeviceImage& image = device.image();
  constexpr uint64_t kPageSizes = 4096 | 1 << 21 | 1 << 30;
  constexpr uint32_t kMaxMcast = 8;  // IRDMA_MAX_MGS_PER_CTX
  out->fw_ver = uint64_t{1} << 32 | 71;
  out->device_cap_flags = knob(knob::device_cap_flags);
  out->vendor_id = image.vendor_id;
  out->vendor_part_id = image.vendor_part_id;
  out->hw_ver = image.hw_ver;
  out->page_size_cap = kPageSizes;
  out->max_mr_size = kMaxMrSize;
  out->max_qp = kMaxQps - 3;
  out->max_qp_wr = (kMaxQuanta - kSqReserved) / kMaxQuantaPerWr;  // IRDMA_MAX_QP_WRS
  out->max_send_sge = out->max_recv_sge = kMaxFragments;
  out->max_cq = 2 * kMaxQps - 3;
  out->max_cqe = static_cast<uint32_t>(knob(knob::max_cqe));
  out->max_mr = (1 << 21) - 1;
  if (knob(knob::windows) != 0) out->max_mw = out->max_mr;
  out->max_pd = kMaxPds - 1;
  out->max_sge_rd = kMaxReadSges;
  out->max_qp_rd_atom = kMaxIrd;
  out->max_qp_init_rd_atom = kMaxOrd;
  out->max_pkeys = 1;
  out->max_ah = 131072;
  out->max_mcast_grp = 131072;
  out->max_mcast_qp_attach = kMaxMcast;
  out->max_total_mcast_qp_attach = kMaxQps * kMaxMcast;
  out->timestamp_mask = knob(knob::timestamps);
  if (knob(knob::srqs) != 0) {
    out->max_srq_wr = (kMaxQuanta - kRqReserved) / kMaxQuantaPerWr;  // IRDMA_MAX_SRQ_WRS
    out->max_srq_sge = kMaxFragments;
  }
}

int IrdmaDriver::QueryDevice(Call& call, Device&) {
  if (call.Violates(rule::query_device_any, call.in.length() != 0 || call.out.length() != 0))
    return call.Refuse(rule::query_device_any);
  return provider::NoUdataIo(call, rule::input, rule::input_fault);
}

// irdma_attach_mcast
int IrdmaDriver::AttachMcast(Call&, Qp&, const uint8_t*, uint16_t, bool) { return 0; }

}  // namespace irdma

std::unique_ptr<Driver> MakeIrdmaDriver() {
  return std::make_unique<provider::Limited<irdma::IrdmaDriver>>();
}

}  // namespace vabi
