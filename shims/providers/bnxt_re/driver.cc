// SPDX-License-Identifier: BSD-2-Clause
// main.c: bnxt_re_dev_ops; ib_verbs.c
#include "shims/providers/bnxt_re/driver.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "shims/sys/shared_memory.h"
#include "shims/sys/sys.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace bnxt_re {
namespace {

#define RESP(field) VABI_PF(bnxt_re_uctx_resp, field)

// bnxt_re-abi.h: bits of the request, and of the reply
constexpr uint64_t kAsksPow2 = 1, kAsksMode = 2;
constexpr uint64_t kHaveChip = 0x1, kHaveMode = 0x2, kPow2Disabled = 0x10, kToggle = 0x400000;
constexpr uint32_t kChip = 0x16d7;  // BCM57414
constexpr char kSharedPage[] = "SHARED_PAGE";
constexpr uint32_t kCqeSize = 32;
constexpr size_t kAvidAt = 0x10;  // BNXT_RE_AVID_OFFT: of the shared page

// ib_is_udata_in_empty
int NoPdInput(Call& call) {
  if (call.world.Knob(knob::validates) == 0) return 0;
  const int zero = call.in.length() == 0 ? 1 : call.in.TailIsZero(0);
  if (zero < 0) return call.Refuse(rule::pd_fault);
  if (call.Violates(rule::pd_input, zero == 0)) return call.Refuse(rule::pd_input);
  return 0;
}

// What the library asks of this kernel's driver.
int ReadHandshake(Call& call, uint64_t* asked) {
  const World& world = call.world;
  OwnedBody<16> request(world, structure::bnxt_re_uctx_req);
  const auto reads = world.Knob(knob::reads_request);
  if (reads == 0 || call.in.length() == 0 || (reads == 1 && call.in.length() < request.length()))
    return 0;
  if (const int error = provider::CopyRequest(
          call, request.base(), request.length(),
          {request.length(), rule::context_short, rule::context_tail, rule::context_fault}))
    return error;
  *asked = request.Get(VABI_PF(bnxt_re_uctx_req, comp_mask));
  if (call.Violates(rule::context_comp_mask, (*asked & ~(kAsksPow2 | kAsksMode)) != 0))
    return call.Refuse(rule::context_comp_mask);
  return 0;
}

}  // namespace

ContextState::ContextState() {
  void* const memory = sys::MakeShared(kPage);
  if (!sys::IsError(memory)) shared = memory;
}

ContextState::~ContextState() {
  if (shared != nullptr) sys::Munmap(shared, kPage);
}

uint32_t ContextState::Depth(uint32_t wanted, uint32_t most) const {
  return std::min(depths_as_asked ? wanted : std::bit_ceil(wanted), most);
}

// What a program reaches in any release; kernel files say in which.
bool BnxtReDriver::Offers(Op op) const {
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
    case Op::reg_user_mr_dmabuf:
    case Op::dereg_mr:
    case Op::create_cq:
    case Op::destroy_cq:
    case Op::resize_cq:
    case Op::poll_cq:
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

void BnxtReDriver::Describe(const Device& device, DeviceAttributes* out) const {
  constexpr uint64_t kShutdownPort = 1 << 8, kPortActiveEvent = 1 << 10, kSysImageGuid = 1 << 11,
                     kRcRnrNakGen = 1 << 12, kNotifyCq = 1 << 14, kLocalDmaLkey = 1 << 15,
                     kMemWindow = 1 << 17, kMemMgtExtensions = 1 << 21, kMemWindowType2b = 1 << 24,
                     kResizeMaxWr = 1 << 0, kCurQpStateMod = 1 << 7;
  const World& world = device.world();
  const DeviceImage& image = device.image();
  out->max_mr_size = kMaxMrSize;
  out->page_size_cap = static_cast<uint64_t>(world.Knob(knob::page_sizes));
  out->vendor_id = 0x14e4;
  out->vendor_part_id = image.vendor_part_id;
  out->hw_ver = image.hw_ver;
  out->max_qp = kMaxQp;
  out->max_qp_wr = static_cast<uint32_t>(world.Knob(knob::max_qp_wr));
  out->device_cap_flags = kCurQpStateMod | kRcRnrNakGen | kShutdownPort | kSysImageGuid |
                          kResizeMaxWr | kPortActiveEvent | kNotifyCq | kMemWindow |
                          kMemWindowType2b | kMemMgtExtensions;
  if (world.Knob(knob::kernel_flags_shown) != 0) out->device_cap_flags |= kLocalDmaLkey;
  out->max_send_sge = out->max_recv_sge = out->max_sge_rd = kMaxSge;
  out->max_cq = 65536;
  out->max_cqe = kMaxCqe;
  out->max_mr = 262144;
  out->max_pd = 65536;
  out->max_qp_rd_atom = out->max_qp_init_rd_atom = kMaxReads;
  if (world.Knob(knob::atomics_told) != 0) out->atomic_cap = out->masked_atomic_cap = 2;
  out->max_mw = 262144;
  out->max_ah = 65536;
  out->max_srq = 8192;
  out->max_srq_wr = kMaxSrqWr;
  out->max_srq_sge = kMaxSge;
  out->max_pkeys = 1;
  out->local_ca_ack_delay = 16;
}

// This card has no rates to tell of (_is_modify_qp_rate_limit_supported): all zero.
int BnxtReDriver::QueryDevice(Call& call, Device&) {
  if (call.world.Knob(knob::query_device_replies) == 0) return 0;
  return provider::NoUdataIo(call, rule::query_device_input, rule::query_device_fault);
}

int BnxtReDriver::AllocContext(Call& call, Context& context) {
  const World& world = call.world;
  uint64_t asked = 0;
  if (const int error = ReadHandshake(call, &asked)) return error;
  uint64_t told = 0;
  if (world.Knob(knob::chip_told) != 0) told |= kHaveChip;
  if (world.Knob(knob::mode_told) != 0 || (asked & kAsksMode) != 0) told |= kHaveMode;
  if (world.Knob(knob::toggle_told) != 0) told |= kToggle;
  if ((asked & kAsksPow2) != 0) told |= kPow2Disabled;
  OwnedBody<64> reply(world, structure::bnxt_re_uctx_resp);
  reply.Set(RESP(dev_id), 0);  // PCI function 0
  reply.Set(RESP(max_qp), kMaxQp);
  reply.Set(RESP(pg_size), kPage);
  reply.Set(RESP(cqe_sz), kCqeSize);
  reply.Set(RESP(max_cqd), kMaxCqe);
  if (world.Knob(knob::chip_told) != 0) {
    reply.Set(RESP(comp_mask), told);
    reply.Set(RESP(chip_id0), kChip);
  }
  if (const int error = provider::Respond(call, reply.base(), reply.length(),
                                          HowOf(call, knob::context_replies), rule::context_fault))
    return error;
  auto state = std::make_unique<ContextState>();
  if (state->shared == nullptr) return call.Unmodelled("bnxt_re: no memory for the shared page");
  state->depths_as_asked = (asked & kAsksPow2) != 0;
  state->entries.Insert({.length = kPage, .kind = kSharedPage}, 0, 0);
  constexpr uint64_t kBar = 0x92000000;  // where the BAR is, one page for each context
  state->doorbell = kBar + context.device->NextNumber() * kPage;
  context.driver = std::move(state);
  return 0;
}

int BnxtReDriver::Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) {
  ContextState& state = StateOf(context);
  const auto [offset, length] = std::pair(request.offset, request.length);
  const bool entries = call.world.Knob(knob::entries) != 0;
  const auto give = [&](const char* kind) {
    reply->kind = kind;
    if (strcmp(kind, kSharedPage) == 0) {
      reply->memory = state.shared;
      if (entries) reply->pages = DeviceVma::Pages::kInserted;
    } else {
      reply->anonymous = true;
    }
    return 0;
  };
  if (entries) {
    if (const int error = request.CheckShared(call)) return error;
    const provider::MapEntry* entry = state.entries.FindExact(offset, length);
    if (entry == nullptr) return call.Refuse(rule::map_offset);
    return give(entry->kind);
  }
  if (call.Violates(rule::map_length, length == 0 || length > kPage))
    return call.Refuse(rule::map_length);
  if (offset != 0 && offset != state.doorbell)
    return call.Unmodelled("bnxt_re: a page frame that the driver has not told of");
  return give(offset == 0 ? kSharedPage : "DOORBELL");
}

int BnxtReDriver::AllocPd(Call& call, Pd& pd) {
  if (const int error = NoPdInput(call)) return error;
  Context& context = *call.file.context();
  ContextState& state = StateOf(context);
  const bool entries = call.world.Knob(knob::entries) != 0;
  const uint64_t where =
      entries ? state.entries.Insert({.length = kPage, .kind = "DOORBELL"}) : state.doorbell;
  OwnedBody<16> reply(call.world, structure::bnxt_re_pd_resp);
  reply.Set(VABI_PF(bnxt_re_pd_resp, pdid), pd.device->NextNumber());
  reply.Set(VABI_PF(bnxt_re_pd_resp, dpi), kDpi);
  reply.Set(VABI_PF(bnxt_re_pd_resp, dbr), where);
  if (const int error = provider::Respond(call, reply.base(), reply.length(),
                                          HowOf(call, knob::pd_replies), rule::pd_fault)) {
    if (entries) state.entries.Remove(where);
    return error;
  }
  state.has_doorbell = true;
  auto kept = std::make_unique<PdState>();
  kept->context = &context;
  if (entries) kept->entry = where;
  pd.driver = std::move(kept);
  return 0;
}

void BnxtReDriver::DeallocPd(Pd& pd) {
  const auto* state = static_cast<PdState*>(pd.driver.get());
  if (state == nullptr || state->entry == provider::MapEntries::kFull) return;
  if (state->context->driver != nullptr) StateOf(*state->context).entries.Remove(state->entry);
}

// The library takes the number of the address handle from the page that both see.
int BnxtReDriver::CreateAh(Call& call, Ah& ah) {
  if (const int error = NoInput(call)) return error;
  const uint32_t number = ah.device->NextNumber();
  memcpy(static_cast<uint8_t*>(StateOf(*call.file.context()).shared) + kAvidAt, &number,
         sizeof(number));
  return 0;
}

}  // namespace bnxt_re

std::unique_ptr<Driver> MakeBnxtReDriver() {
  return std::make_unique<provider::Limited<bnxt_re::BnxtReDriver>>();
}

}  // namespace vabi
