// SPDX-License-Identifier: BSD-2-Clause
// efa_main.c, efa_verbs.c: device, context, memory, address handles
#include "shims/providers/efa/driver.h"

#include <sys/mman.h>

#include <algorithm>

#include "shims/providers/efa/card.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {

std::unique_ptr<Driver> MakeEfaDriver() {
  return std::make_unique<provider::Limited<efa::EfaDriver>>();
}

namespace efa {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kLargest = 4 << 20;  // alloc_pages_exact: order 10
constexpr int kOldKindShift = 56;       // EFA_MMAP_FLAG_SHIFT
constexpr uint32_t kAccessOptional = 0x3ff00000;
constexpr uint32_t kAccessLocalWrite = 1;

const MethodSpec kMethods[] = {
    {.id = method::EFA_MR__QUERY,
     .needs = Op::always,
     .attributes = {},
     .handler = nullptr,
     .unmodelled = "efa: MR.QUERY"},
};

}  // namespace

bool EfaDriver::Offers(Op op) const {
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
    case Op::reg_user_mr_dmabuf:
    case Op::dereg_mr:
    case Op::create_cq:
    case Op::destroy_cq:
    case Op::create_qp:
    case Op::query_qp:
    case Op::modify_qp:
    case Op::destroy_qp:
    case Op::query_device:
    case Op::query_port:
    case Op::query_port_speed:
    case Op::query_gid:
    case Op::query_pkey:
    case Op::create_comp_cntr:
    case Op::query_device_ex:
    case Op::create_cq_ex:
    case Op::create_qp_ex:
    case Op::modify_qp_ex:
      return true;
    default:
      return false;
  }
}

std::span<const MethodSpec> EfaDriver::PrivateMethods() const { return kMethods; }

void EfaDriver::Describe(const Device& device, DeviceAttributes* out) const {
  const World& world = device.world();
  out->max_mr_size = kCard.max_mr_pages * kPage;
  out->page_size_cap = kCard.page_size_cap;
  out->vendor_id = 0x1d0f;
  out->vendor_part_id = 0xefa1;
  out->hw_ver = 0xefa1;  // the PCI subsystem's device
  out->max_qp = kCard.max_qp;
  out->max_cq = kCard.max_cq;
  out->max_pd = kCard.max_pd;
  out->max_mr = kCard.max_mr;
  out->max_ah = kCard.max_ah;
  out->max_cqe = kCard.max_cq_depth;
  out->max_qp_wr = std::min(kCard.max_sq_depth, kCard.max_rq_depth);
  out->max_send_sge = kCard.max_sq_sge;
  out->max_recv_sge = kCard.max_rq_sge;
  out->max_sge_rd = static_cast<uint32_t>(world.Knob(knob::max_sge_rd));
  out->max_pkeys = static_cast<uint16_t>(world.Knob(knob::max_pkeys));
}

uint32_t EfaDriver::CompVectors(const Device& device) const {
  return static_cast<uint32_t>(device.world().Knob(knob::comp_vectors));
}

int Reply(Call& call, const Body& reply) {
  if (call.out.length() == 0) return 0;
  const auto how =
      call.world.Knob(knob::respond_zeroes) != 0 ? provider::How::kZeroes : provider::How::kClip;
  return provider::Respond(call, reply.base(), reply.length(), how, rule::reply_fault);
}

int EmptyInput(Call& call, RuleId input, uint64_t bytes) {
  if (call.in.length() == 0) return 0;
  int zero = 1;
  if (bytes != 0 && bytes < call.in.length()) {
    uint64_t first = 0;
    zero = call.in.Copy(&first, std::min<uint64_t>(bytes, sizeof(first)));
    if (zero == 0) zero = first == 0 ? 1 : 0;
  } else {
    zero = call.in.TailIsZero(0);
  }
  if (zero < 0) return call.Refuse(rule::input_fault);
  return call.Violates(input, zero == 0) ? call.Refuse(input) : 0;
}

int Allocate(Call& call, uint64_t bytes) {
  return call.Violates(rule::queue_memory, bytes > kLargest) ? call.Refuse(rule::queue_memory) : 0;
}

int EfaDriver::QueryDevice(Call& call, Device&) {
  const World& world = call.world;
  if (const int error = EmptyInput(call, rule::query_device_input)) return error;
  OwnedBody<64> reply(world, structure::efa_ibv_ex_query_device_resp);
  reply.Set(VABI_PF(efa_ibv_ex_query_device_resp, max_sq_wr), kCard.max_sq_depth);
  reply.Set(VABI_PF(efa_ibv_ex_query_device_resp, max_rq_wr), kCard.max_rq_depth);
  reply.Set(VABI_PF(efa_ibv_ex_query_device_resp, max_sq_sge), kCard.max_sq_sge);
  reply.Set(VABI_PF(efa_ibv_ex_query_device_resp, max_rq_sge), kCard.max_rq_sge);
  reply.Set(VABI_PF(efa_ibv_ex_query_device_resp, max_rdma_size), kCard.max_rdma_size);
  // This card can do all of these; a driver tells what its header has a name for.
  uint64_t caps = 0;
  for (const ConstId cap :
       {constant::EFA_QUERY_DEVICE_CAPS_RDMA_READ, constant::EFA_QUERY_DEVICE_CAPS_RNR_RETRY,
        constant::EFA_QUERY_DEVICE_CAPS_CQ_NOTIFICATIONS,
        constant::EFA_QUERY_DEVICE_CAPS_CQ_WITH_SGID,
        constant::EFA_QUERY_DEVICE_CAPS_DATA_POLLING_128,
        constant::EFA_QUERY_DEVICE_CAPS_RDMA_WRITE,
        constant::EFA_QUERY_DEVICE_CAPS_UNSOLICITED_WRITE_RECV,
        constant::EFA_QUERY_DEVICE_CAPS_CQ_WITH_EXT_MEM}) {
    caps |= static_cast<uint64_t>(world.Flag(cap));
  }
  reply.Set(VABI_PF(efa_ibv_ex_query_device_resp, device_caps), caps);
  return Reply(call, reply);
}

int EfaDriver::QueryPortSpeed(Call&, uint32_t, uint64_t* speed) {
  *speed = kCard.link_gbps * 10;
  return 0;
}

// efa_query_comp_cntr_caps: this card has no event counters.
int EfaDriver::QueryCompletionCounters(Call&, CompletionCounters* limits) {
  *limits = {};
  return 0;
}

// A longer request is taken: the driver answers what it knows of it.
int EfaDriver::AllocContext(Call& call, Context& context) {
  const World& world = call.world;
  OwnedBody<16> request(world, structure::efa_ibv_alloc_ucontext_cmd);
  if (call.in.Copy(request.base(), request.length()) != 0) return call.Refuse(rule::input_fault);
  const uint32_t known = request.U32(VABI_PF(efa_ibv_alloc_ucontext_cmd, supported_caps)) |
                         request.U32(VABI_PF(efa_ibv_alloc_ucontext_cmd, comp_mask));
  const auto needs = static_cast<uint32_t>(world.Knob(knob::card_needs));
  if (call.Violates(rule::handshake, (needs & ~known) != 0)) return call.Refuse(rule::handshake);
  OwnedBody<64> reply(world, structure::efa_ibv_alloc_ucontext_resp);
  reply.Set(VABI_PF(efa_ibv_alloc_ucontext_resp, cmds_supp_udata_mask),
            3);  // QUERY_DEVICE, CREATE_AH
  reply.Set(VABI_PF(efa_ibv_alloc_ucontext_resp, sub_cqs_per_cq), kCard.sub_cqs_per_cq);
  reply.Set(VABI_PF(efa_ibv_alloc_ucontext_resp, inline_buf_size), kCard.inline_buf_size);
  reply.Set(VABI_PF(efa_ibv_alloc_ucontext_resp, inline_buf_size_ex), kCard.inline_buf_size);
  reply.Set(VABI_PF(efa_ibv_alloc_ucontext_resp, max_llq_size), kCard.max_llq_size);
  reply.Set(VABI_PF(efa_ibv_alloc_ucontext_resp, max_tx_batch), kCard.max_tx_batch);
  reply.Set(VABI_PF(efa_ibv_alloc_ucontext_resp, min_sq_wr), kCard.min_sq_depth);
  if (const int error = Reply(call, reply)) return error;
  context.driver = std::make_unique<ContextState>();
  return 0;
}

uint64_t ContextState::Insert(const World& world, uint64_t length, const char* kind, How how) {
  if (world.Knob(knob::map_entries) != 0)
    return entries.Insert({.length = length, .kind = kind, .flag = how});
  // mmap_entry_insert
  const uint64_t key = uint64_t{how} << kOldKindShift | next_page * kPage;
  next_page += length / kPage;
  old_entries[key] = {.length = length, .kind = kind, .flag = how};
  return key;
}

void ContextState::Remove(uint64_t offset) { entries.Remove(offset); }

int EfaDriver::Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) {
  if (const int error = request.CheckShared(call)) return error;
  ContextState& state = StateOf(context);
  const provider::MapEntry* entry = nullptr;
  if (call.world.Knob(knob::map_entries) != 0) {
    entry = state.entries.FindExact(request.offset, request.length);
  } else {
    if (call.Violates(rule::map_exec, (request.protection & PROT_EXEC) != 0))
      return call.Refuse(rule::map_exec);
    const auto found = state.old_entries.find(request.offset);
    if (found != state.old_entries.end() &&
        found->second.length == ((request.length + kPage - 1) & ~(kPage - 1))) {
      entry = &found->second;
    }
  }
  if (entry == nullptr) return call.Refuse(rule::map_entry);
  reply->kind = entry->kind;
  if (entry->flag == ContextState::kPages) reply->pages = DeviceVma::Pages::kInserted;
  reply->anonymous = true;
  return 0;
}

int EfaDriver::AllocPd(Call& call, Pd& pd) {
  if (const int error = EmptyInput(call, rule::pd_input)) return error;
  OwnedBody<16> reply(call.world, structure::efa_ibv_alloc_pd_resp);
  reply.Set(VABI_PF(efa_ibv_alloc_pd_resp, pdn), pd.device->NextNumber());
  return Reply(call, reply);
}

int EfaDriver::RegMr(Call& call, Mr& mr) {
  const World& world = call.world;
  const auto bytes = static_cast<uint64_t>(world.Knob(knob::mr_input_bytes));
  if (const int error = EmptyInput(call, rule::mr_input, bytes)) return error;
  uint32_t access = mr.access;
  if (world.Knob(knob::optional_access) != 0) access &= ~kAccessOptional;
  const uint32_t supported =
      kAccessLocalWrite | static_cast<uint32_t>(world.Knob(knob::remote_access));
  if (call.Violates(rule::mr_access, (access & ~supported) != 0))
    return call.Refuse(rule::mr_access);
  if (const int error =
          provider::PinMemory(call, mr.start, mr.length, provider::AccessWrites(access),
                              {rule::pin_range, rule::pin_nothing, rule::pin_fault})) {
    return error;
  }
  mr.lkey = mr.rkey = mr.device->NextNumber();
  return 0;
}

int EfaDriver::CreateAh(Call& call, Ah& ah) {
  if (const int error = EmptyInput(call, rule::ah_input)) return error;
  OwnedBody<16> reply(call.world, structure::efa_ibv_create_ah_resp);
  reply.Set(VABI_PF(efa_ibv_create_ah_resp, efa_address_handle), ah.device->NextNumber());
  return Reply(call, reply);
}

}  // namespace efa
}  // namespace vabi
