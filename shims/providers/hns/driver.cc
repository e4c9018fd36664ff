// SPDX-License-Identifier: BSD-2-Clause
// hns_roce_main.c, hns_roce_mr.c, hns_roce_pd.c, hns_roce_db.c, hns_roce_ah.c
#include "shims/providers/hns/driver.h"

#include "shims/providers/hns/card.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {

std::unique_ptr<Driver> MakeHnsDriver() {
  return std::make_unique<provider::Limited<hns::HnsDriver>>();
}

namespace hns {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint32_t kReregTrans = 1, kReregAccess = 4;  // enum ib_mr_rereg_flags

}  // namespace

// hns_roce_dev_ops, hns_roce_dev_mr_ops, …_mw_ops, …_srq_ops, hns_roce_v2_dev_ops; which of them a
// program may ask for stands in uverbs_cmd_mask (matrix/kernels).
bool HnsDriver::Offers(Op op) const {
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
    case Op::dereg_mr:
    case Op::alloc_mw:
    case Op::dealloc_mw:
    case Op::create_cq:
    case Op::destroy_cq:
    case Op::modify_cq:
    case Op::create_qp:
    case Op::query_qp:
    case Op::modify_qp:
    case Op::destroy_qp:
    case Op::create_srq:
    case Op::modify_srq:
    case Op::query_srq:
    case Op::destroy_srq:
    case Op::query_device:
    case Op::query_port:
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

void HnsDriver::Describe(const Device& device, DeviceAttributes* out) const {
  const World& world = device.world();
  constexpr uint64_t kPortActiveEvent = 1 << 10, kRnrNakGen = 1 << 12, kMemMgtExtensions = 1 << 21;
  out->max_mr_size = ~uint64_t{0};
  out->page_size_cap = 0xfffff000;
  out->vendor_id = 0x19e5;
  out->vendor_part_id = world.Knob(knob::part_told) != 0 ? 0xa222 : 0;
  out->hw_ver = 0x21;
  out->max_qp = Number(world, knob::num_qps);
  out->max_qp_wr = kCard.max_wqes;
  out->device_cap_flags = kPortActiveEvent | kRnrNakGen;
  if (world.Knob(knob::fast_registration) != 0) out->device_cap_flags |= kMemMgtExtensions;
  out->max_send_sge = Number(world, knob::send_elements);
  out->max_recv_sge = Number(world, knob::receive_elements);
  out->max_sge_rd = static_cast<uint32_t>(world.Knob(knob::max_sge_read));
  out->max_cq = Number(world, knob::num_cqs);
  out->max_cqe = Number(world, knob::max_cqes);
  out->max_mr = Number(world, knob::num_mtpts);
  out->max_pd = Number(world, knob::num_pds);
  out->max_qp_rd_atom = kCard.max_qp_dest_rdma;
  out->max_qp_init_rd_atom = kCard.max_qp_init_rdma;
  if (world.Knob(knob::atomics) != 0) out->atomic_cap = 1;  // IB_ATOMIC_HCA
  out->max_pkeys = 1;
  out->max_srq = Number(world, knob::num_srqs);
  if (out->max_srq == 0) return;
  out->max_srq_wr = kCard.max_srq_wrs;
  out->max_srq_sge = Number(world, knob::srq_elements);
}

int HnsDriver::QueryDevice(Call& call, Device&) {
  if (call.world.Knob(knob::query_device_checked) == 0) return 0;
  return provider::NoUdataIo(call, rule::query_device_input, rule::reply_fault);
}

int ReadRequest(Call& call, const Body& body, const RequestLengths& lengths) {
  if (call.world.Knob(knob::requests_whole) != 0 && call.in.length() < body.length())
    return call.Unmodelled("hns: a short request, behind which this kernel reads on");
  // From 5.10 to 6.18 a short request is filled up with zeroes, a long one cut.
  const bool checked = call.world.Knob(knob::request_checked) != 0;
  return provider::CopyRequest(call, body.base(), body.length(),
                               {checked ? call.world.End(lengths.last) : 0, lengths.too_short,
                                lengths.tail, rule::input_fault});
}

int Reply(Call& call, const Body& reply) {
  const auto how =
      call.world.Knob(knob::respond_zeroes) != 0 ? provider::How::kZeroes : provider::How::kClip;
  return provider::Respond(call, reply.base(), reply.length(), how, rule::reply_fault);
}

int ReplyWhole(Call& call, const Body& reply) {
  if (call.world.Knob(knob::replies_whole) == 0) return Reply(call, reply);
  return provider::Respond(call, reply.base(), reply.length(), provider::How::kWhole,
                           rule::reply_fault);
}

int ReplyNumber(Call& call, uint32_t number) {
  const uint64_t wide = number;
  return provider::Respond(call, &wide, sizeof(wide), provider::How::kWhole, rule::reply_fault);
}

int PinBuffer(Call& call, uint64_t address, uint64_t bytes, bool writable) {
  if (call.world.Knob(knob::buffers_translated) == 0) {
    return provider::PinMemory(call, address, bytes, writable,
                               {rule::buffer_range, rule::buffer_pages, rule::buffer_fault});
  }
  if (call.Violates(rule::buffer_empty, bytes == 0 && address % kPage == 0))
    return call.Refuse(rule::buffer_empty);
  return provider::PinMemory(
      call, address, bytes, writable,
      {rule::buffer, rule::buffer, rule::buffer, rule::buffer, rule::buffer});
}

int PinRecord(Call& call, uint64_t address) {
  return provider::PinRecordPage(call, address,
                                 {rule::record_range, rule::record_range, rule::record_fault});
}

int HnsDriver::AllocContext(Call& call, Context&) {
  const World& world = call.world;
  OwnedBody<64> reply(world, structure::hns_roce_ib_alloc_ucontext_resp);
#define RESP(name) VABI_PF(hns_roce_ib_alloc_ucontext_resp, name)
  reply.Set(RESP(qp_tab_size), Number(world, knob::num_qps));
  reply.Set(RESP(cqe_size), kCard.cqe_size);
  if (world.Knob(knob::srq_tab_told) != 0)
    reply.Set(RESP(srq_tab_size), Number(world, knob::num_srqs));
  if (world.Knob(knob::context_config) != 0) {
    OwnedBody<16> request(world, structure::hns_roce_ib_alloc_ucontext);
    const RequestLengths lengths = {VABI_PF(hns_roce_ib_alloc_ucontext, reserved),
                                    rule::context_input_short, rule::context_input_tail};
    if (const int error = ReadRequest(call, request, lengths)) return error;
    // EXSGE and congestion control need a HIP09, CQE inline another firmware.
    const auto inline_receives =
        static_cast<uint64_t>(world.Flag(constant::HNS_ROCE_RQ_INLINE_FLAGS));
    if (world.Knob(knob::rq_inline) != 0 &&
        (request.Get(VABI_PF(hns_roce_ib_alloc_ucontext, config)) & inline_receives) != 0) {
      reply.Set(RESP(config),
                static_cast<uint64_t>(world.Flag(constant::HNS_ROCE_RSP_RQ_INLINE_FLAGS)));
    }
  }
#undef RESP
  return ReplyWhole(call, reply);
}

int HnsDriver::Map(Call& call, Context&, const MapRequest& request, MapReply* reply) {
  // rdma_user_mmap_io wants exactly the page; io_remap_pfn_range maps it, however long the rest is.
  const bool too_long = request.length > kPage && call.world.Knob(knob::map_exact) != 0;
  if (request.offset != 0) return call.Refuse(rule::map_entry);
  if (const int error = request.CheckShared(call)) return error;
  if (too_long) return call.Refuse(rule::map_entry);
  reply->kind = "UAR";
  reply->anonymous = true;
  return 0;
}

int HnsDriver::AllocPd(Call& call, Pd& pd) {
  OwnedBody<16> reply(call.world, structure::hns_roce_ib_alloc_pd_resp);
  const uint32_t number = pd.device->NextNumber();
  if (reply.length() == 0) return ReplyNumber(call, number);
  reply.Set(VABI_PF(hns_roce_ib_alloc_pd_resp, pdn), number);
  return ReplyWhole(call, reply);
}

int HnsDriver::RegMr(Call& call, Mr& mr) {
  if (const int error = PinBuffer(call, mr.start, mr.length, provider::AccessWrites(mr.access))) {
    return error;
  }
  const uint64_t most = Number(call.world, knob::region_pages);
  const uint64_t pages = (mr.start % kPage + mr.length + kPage - 1) / kPage;
  if (call.Violates(rule::mr_pages, most != 0 && pages > most)) return call.Refuse(rule::mr_pages);
  mr.lkey = mr.rkey = mr.device->NextNumber() << 8;
  return 0;
}

// hns_roce_rereg_user_mr: in place
int HnsDriver::ReregMr(Call& call, Mr& mr, uint32_t flags, uint64_t start, uint64_t length,
                       uint64_t, uint32_t access, Pd*) {
  const bool pinned_writable = provider::AccessWrites(mr.access);
  if (call.Violates(rule::rereg_writable, (flags & kReregAccess) != 0 &&
                                              (flags & kReregTrans) == 0 &&
                                              provider::AccessWrites(access) && !pinned_writable)) {
    return call.Refuse(rule::rereg_writable);
  }
  if ((flags & kReregTrans) == 0) return 0;
  const uint32_t now = (flags & kReregAccess) != 0 ? access : mr.access;
  mr.pins = {};  // let go before anything is pinned (free_mr_pbl, hns_roce_mhop_free)
  return PinBuffer(call, start, length, provider::AccessWrites(now));
}

int HnsDriver::AllocMw(Call&, Mw& mw) {
  mw.rkey = mw.device->NextNumber() << 8;
  return 0;
}

int HnsDriver::CreateAh(Call& call, Ah&) {
  if (call.Violates(rule::ah_card, true)) return call.Refuse(rule::ah_card);
  return 0;
}

}  // namespace hns
}  // namespace vabi
