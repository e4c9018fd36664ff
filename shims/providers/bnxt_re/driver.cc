// SPDX-License-Identifier: BSD-2-Clause
// main.c: bnxt_re_dev_ops; ib_verbs.c
#include "shims/providers/bnxt_re/driver.h"

#include "shims/providers/common/map_entries.h"
#include "shims/providers/common/udata.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace bnxt_re {
namespace {

#define RESP(field) VABI_PF(bnxt_re_uctx_resp, field)

constexpr uint64_t kPage = 4096;
// bnxt_re-abi.h: bits of the request, and of the reply
constexpr uint64_t kAsksPow2 = 1, kAsksMode = 2;
constexpr uint64_t kHaveChip = 0x1, kHaveMode = 0x2, kPow2Disabled = 0x10, kToggle = 0x400000;
// A BCM57414: no doorbell push, no pacing, no host MSN table, no toggle pages, elements of fixed
// size (is_chip_gen_p5_p7 is false).
constexpr uint32_t kChip = 0x16d7;
constexpr uint32_t kMaxQp = 65536, kMaxCqe = 65535, kCqeSize = 32, kDpi = 1;

struct ContextState final : DriverState {
  provider::MapEntries entries;  // since 6.6
  uint64_t doorbell = 0;         // physical, before
};

struct PdState final : DriverState {
  Context* context = nullptr;
  uint64_t entry = provider::MapEntries::kFull;
};

ContextState& StateOf(Context& context) {
  return *static_cast<ContextState*>(context.driver.get());
}

provider::How HowOf(Call& call, KnobId id) {
  constexpr provider::How kHow[] = {provider::How::kWhole, provider::How::kClip,
                                    provider::How::kZeroes};
  return kHow[call.world.Knob(id)];
}

int NoInput(Call& call, RuleId input, RuleId fault) {
  if (call.world.Knob(knob::pd_replies) != 2) return 0;  // ib_is_udata_in_empty is as old
  const int zero = call.in.length() == 0 ? 1 : call.in.TailIsZero(0);
  if (zero < 0) return call.Refuse(fault);
  if (call.Violates(input, zero == 0)) return call.Refuse(input);
  return 0;
}

// What the library asks of this kernel's driver.
int ReadRequest(Call& call, uint64_t* asked) {
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
  out->max_mr_size = uint64_t{1} << 39;
  out->page_size_cap = static_cast<uint64_t>(world.Knob(knob::page_sizes));
  out->vendor_id = 0x14e4;
  out->vendor_part_id = image.vendor_part_id;
  out->hw_ver = image.hw_ver;
  out->max_qp = kMaxQp;
  out->max_qp_wr = 65407;
  out->device_cap_flags = kCurQpStateMod | kRcRnrNakGen | kShutdownPort | kSysImageGuid |
                          kResizeMaxWr | kPortActiveEvent | kNotifyCq | kMemWindow |
                          kMemWindowType2b | kMemMgtExtensions;
  if (world.Knob(knob::kernel_flags_shown) != 0) out->device_cap_flags |= kLocalDmaLkey;
  out->max_send_sge = out->max_recv_sge = out->max_sge_rd = 6;
  out->max_cq = 65536;
  out->max_cqe = kMaxCqe;
  out->max_mr = 262144;
  out->max_pd = 65536;
  out->max_qp_rd_atom = out->max_qp_init_rd_atom = 126;
  if (world.Knob(knob::atomics_told) != 0) out->atomic_cap = out->masked_atomic_cap = 2;
  out->max_mw = 262144;
  out->max_ah = 65536;
  out->max_srq = 8192;
  out->max_srq_wr = 65407;
  out->max_srq_sge = 6;
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
  if (const int error = ReadRequest(call, &asked)) return error;
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
  state->entries.Insert({.length = kPage, .kind = "SHARED_PAGE"}, 0, 0);
  constexpr uint64_t kBar = 0x92000000;  // where the BAR is, one page for each context
  state->doorbell = kBar + context.device->NextNumber() * kPage;
  context.driver = std::move(state);
  return 0;
}

int BnxtReDriver::Map(Call& call, Context& context, uint64_t offset, uint64_t length, int,
                      MapReply* reply) {
  ContextState& state = StateOf(context);
  reply->anonymous = true;
  if (call.world.Knob(knob::entries) != 0) {
    const provider::MapEntry* entry = state.entries.FindExact(offset, length);
    if (entry == nullptr) return call.Refuse(rule::map_offset);
    reply->kind = entry->kind;
    return 0;
  }
  if (call.Violates(rule::map_length, length == 0 || length > kPage))
    return call.Refuse(rule::map_length);
  if (offset != 0 && offset != state.doorbell)
    return call.Unmodelled("bnxt_re: a page frame that the driver has not told of");
  reply->kind = offset == 0 ? "SHARED_PAGE" : "DOORBELL";
  return 0;
}

int BnxtReDriver::AllocPd(Call& call, Pd& pd) {
  if (const int error = NoInput(call, rule::pd_input, rule::pd_fault)) return error;
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

int BnxtReDriver::RegMr(Call& call, Mr&) { return call.Unmodelled("bnxt_re: reg_user_mr"); }
int BnxtReDriver::DeregMr(Call& call, Mr&) { return call.Unmodelled("bnxt_re: dereg_mr"); }
int BnxtReDriver::CreateCq(Call& call, Cq&) { return call.Unmodelled("bnxt_re: create_cq"); }
int BnxtReDriver::CreateQp(Call& call, Qp&) { return call.Unmodelled("bnxt_re: create_qp"); }
int BnxtReDriver::ModifyQp(Call& call, Qp&, QpState, const QpAttributes&, uint32_t) {
  return call.Unmodelled("bnxt_re: modify_qp");
}
int BnxtReDriver::QueryQp(Call& call, Qp&) { return call.Unmodelled("bnxt_re: query_qp"); }
int BnxtReDriver::DestroyQp(Call& call, Qp&) { return call.Unmodelled("bnxt_re: destroy_qp"); }

}  // namespace bnxt_re

std::unique_ptr<Driver> MakeBnxtReDriver() { return std::make_unique<bnxt_re::BnxtReDriver>(); }

}  // namespace vabi
