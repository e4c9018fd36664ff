// SPDX-License-Identifier: BSD-2-Clause
// main.c: mlx5_ib_alloc_ucontext, set_ucontext_resp, mlx5_ib_alloc_pd
#include "shims/uverbs/context.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "shims/fabric/address.h"
#include "shims/fabric/memory.h"
#include "shims/fabric/nic.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/context_reply.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

#define REQ(field) VABI_F(mlx5_ib_alloc_ucontext_req_v2, field)
#define RESP(field) VABI_F(mlx5_ib_alloc_ucontext_resp, field)

constexpr uint32_t kCacheLine = 64;
constexpr size_t kOldReplySize = 34;  // 4.4: sizeof(resp) - sizeof(resp.reserved)

uint32_t Align(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

struct Request {
  uint32_t total, low_latency, flags;
  uint64_t comp_mask, lib_caps;
  uint8_t max_cqe_version;
  bool reserved;
};

// Which of the lengths that this kernel knows it is: the request's version, or a refusal.
int CheckLength(Call& call, int* version) {
  const World& world = call.world;
  const size_t length = call.in.length();
  const size_t short_size = world.Size(VABI_S(mlx5_ib_alloc_ucontext_req));
  const size_t whole = world.Size(VABI_S(mlx5_ib_alloc_ucontext_req_v2));
  const FieldLoc cqe_version = world.At(REQ(max_cqe_version));
  const size_t least = cqe_version.offset < 0 ? whole : static_cast<size_t>(cqe_version.offset);
  *version = length == short_size ? 0 : 2;
  const bool exact = world.Knob(KnobId::mlx5_ucontext_exact_lengths) != 0;
  const bool known = length == short_size || (exact ? length == whole : length >= least);
  if (call.Violates(RuleId::mlx5_ucontext_length, !known))
    return call.Refuse(RuleId::mlx5_ucontext_length);
  return 0;
}

int ReadRequest(Call& call, Request* request) {
  OwnedBody<64> body(call.world, VABI_S(mlx5_ib_alloc_ucontext_req_v2));
  if (call.in.Copy(body.base(), body.length()) != 0) return call.Refuse(RuleId::mlx5_request_fault);
  // The kernel's fields were called uuars before 4.11.
  request->total = body.U32(REQ(total_num_bfregs)) | body.U32(REQ(total_num_uuars));
  request->low_latency =
      body.U32(REQ(num_low_latency_bfregs)) | body.U32(REQ(num_low_latency_uuars));
  request->flags = body.U32(REQ(flags));
  request->comp_mask = body.Get(REQ(comp_mask));
  request->lib_caps = body.Get(REQ(lib_caps));
  request->max_cqe_version = static_cast<uint8_t>(body.Get(REQ(max_cqe_version)));
  request->reserved = (body.Get(REQ(reserved0)) | body.Get(REQ(reserved1)) |
                       body.Get(REQ(reserved2)) | body.Get(REQ(reserved))) != 0;
  return 0;
}

// calc_total_bfregs
int CountBfregs(Call& call, const Request& request, ContextState* state) {
  if (call.Violates(RuleId::mlx5_ucontext_bfregs_zero, request.total == 0)) {
    return call.Refuse(RuleId::mlx5_ucontext_bfregs_zero);
  }
  if (call.Violates(RuleId::mlx5_ucontext_bfregs_many, request.total > kCaps.max_bfregs)) {
    return call.Refuse(RuleId::mlx5_ucontext_bfregs_many);
  }
  const uint32_t per_page = kUarsInPage * kNonFastPathBfregsPerUar;
  const uint32_t total = Align(request.total, per_page);
  if (call.Violates(RuleId::mlx5_ucontext_low_latency_total, request.low_latency > total - 1)) {
    return call.Refuse(RuleId::mlx5_ucontext_low_latency_total);
  }
  state->static_pages = total / per_page;
  state->dyn_bfregs = call.world.Knob(KnobId::mlx5_dynamic_bfregs) != 0 ? kCaps.max_dyn_bfregs : 0;
  state->total_bfregs = total + state->dyn_bfregs;
  state->pages = state->total_bfregs / per_page;
  state->bfreg_users.assign(state->total_bfregs, 0);
  state->uars.assign(state->pages, kInvalidUar);
  return 0;
}

int CheckRequest(Call& call, const Device& device, const Request& request) {
  const World& world = call.world;
  const auto known = static_cast<uint32_t>(world.Knob(KnobId::mlx5_ucontext_known_flags));
  if (call.Violates(RuleId::mlx5_ucontext_flags, (request.flags & ~known) != 0)) {
    return call.Refuse(RuleId::mlx5_ucontext_flags);
  }
  // 4.4 to 4.10 looked at the numbers before the rest.
  if (call.Violates(RuleId::mlx5_ucontext_reserved_first,
                    request.reserved || request.comp_mask != 0)) {
    return call.Refuse(RuleId::mlx5_ucontext_reserved_first);
  }
  if (call.Violates(RuleId::mlx5_ucontext_bfregs_many_first, request.total > kCaps.max_bfregs)) {
    return call.Refuse(RuleId::mlx5_ucontext_bfregs_many_first);
  }
  if (call.Violates(RuleId::mlx5_ucontext_bfregs_zero_first, request.total == 0)) {
    return call.Refuse(RuleId::mlx5_ucontext_bfregs_zero_first);
  }
  if (call.Violates(RuleId::mlx5_ucontext_reserved, request.reserved || request.comp_mask != 0)) {
    return call.Refuse(RuleId::mlx5_ucontext_reserved);
  }
  const size_t whole = world.Size(VABI_S(mlx5_ib_alloc_ucontext_req_v2));
  if (call.in.length() > whole && call.On(RuleId::mlx5_ucontext_tail) &&
      call.in.TailIsZero(whole) != 1) {
    return call.Refuse(RuleId::mlx5_ucontext_tail);
  }
  const uint32_t total = Align(request.total, kNonFastPathBfregsPerUar);
  if (call.Violates(RuleId::mlx5_ucontext_low_latency, request.low_latency > total - 1)) {
    return call.Refuse(RuleId::mlx5_ucontext_low_latency);
  }
  const bool devx =
      (request.flags & static_cast<uint32_t>(world.Flag(VABI_C(MLX5_IB_ALLOC_UCTX_DEVX)))) != 0;
  if (call.Violates(RuleId::mlx5_ucontext_devx_link,
                    devx && device.image().link == LinkLayer::kInfiniband)) {
    return call.Refuse(RuleId::mlx5_ucontext_devx_link);
  }
  if (call.Violates(RuleId::mlx5_ucontext_devx_raw, devx && !HasCapabilities(world)))
    return call.Refuse(RuleId::mlx5_ucontext_devx_raw);
  return 0;
}

// How much of the reply the caller gets, and what response_length tells him.
size_t ReplyLength(Call& call) {
  const World& world = call.world;
  const size_t size = world.Size(VABI_S(mlx5_ib_alloc_ucontext_resp));
  const size_t room = call.out.length();
  switch (world.Knob(KnobId::mlx5_ucontext_reply)) {
    case 0:
      return kOldReplySize;
    case 1: {
      // Field by field, each only if it fits whole.
      size_t length = std::min(world.End(RESP(response_length)), room);
      const FieldId fields[] = {
          RESP(cqe_version),         RESP(cmds_supp_uhw),         RESP(eth_min_inline),
          RESP(clock_info_versions), RESP(hca_core_clock_offset), RESP(log_uar_size),
          RESP(num_uars_per_page),   RESP(num_dyn_bfregs),        RESP(dump_fill_mkey)};
      for (const FieldId field : fields) {
        if (world.Has(field) && world.End(field) <= room)
          length = std::max(length, world.End(field));
      }
      return length;
    }
    default:
      return std::min(room, size);
  }
}

}  // namespace

ContextState& ContextOf(UverbsFile& file) { return StateOf(*file.context()); }

uint32_t ContextState::Insert(uint32_t first_command, uint32_t last_command,
                              const MapEntry& entry) {
  const uint32_t first = first_command << 16, last = (last_command << 16) + 0xffff;
  uint32_t page = first;
  while (page <= last && entries.count(page) != 0) {
    page += static_cast<uint32_t>((entries[page].length + 4095) / 4096);
  }
  if (page > last) return 0;
  entries[page] = entry;
  return page;
}

void FillContextReply(const Device& device, const ContextState& state, const Body& reply) {
  const World& world = device.world();
  const auto set = [&](FieldId field, uint64_t value) { reply.Set(field, value); };
  uint64_t comp_mask = 0;
  const auto mask = [&](ConstId bit, bool has) {
    if (has) comp_mask |= static_cast<uint64_t>(world.Flag(bit));
  };
  set(RESP(qp_tab_size), 1u << kCaps.log_max_qp);
  if (kCaps.write_combining) set(RESP(bf_reg_size), 1u << kCaps.log_bf_reg_size);
  set(RESP(cache_line_size), kCacheLine);
  set(RESP(max_sq_desc_sz), kCaps.max_wqe_sz_sq);
  set(RESP(max_rq_desc_sz), kCaps.max_wqe_sz_rq);
  set(RESP(max_send_wqebb), 1u << kCaps.log_max_qp_sz);
  set(RESP(max_recv_wr), 1u << kCaps.log_max_qp_sz);
  set(RESP(max_srq_recv_wr), 1u << kCaps.log_max_srq_sz);
  set(RESP(cqe_version), state.cqe_version);
  set(RESP(log_uar_size), 12);
  set(RESP(num_uars_per_page), kCaps.num_of_uars_per_page);
  const uint32_t total = state.dyn_uar ? 0 : state.total_bfregs - state.dyn_bfregs;
  set(RESP(tot_bfregs), total);
  set(RESP(tot_uuars), total);
  set(RESP(num_ports), device.image().port_count);
  set(RESP(cmds_supp_uhw),
      static_cast<uint64_t>(world.Flag(VABI_C(MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE)) |
                            world.Flag(VABI_C(MLX5_USER_CMDS_SUPP_UHW_CREATE_AH))));
  if (device.image().link == LinkLayer::kEthernet)
    set(RESP(eth_min_inline), kCaps.eth_min_inline + 1u);
  if (world.Has(VABI_S(mlx5_ib_clock_info)) || world.Constant(VABI_C(MLX5_IB_CLOCK_INFO_V1))) {
    set(RESP(clock_info_versions), 1u << world.Flag(VABI_C(MLX5_IB_CLOCK_INFO_V1)));
  }
  // internal_timer_h stands at 0x1000 of the initialization segment: at the page's start.
  mask(VABI_C(MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET), true);
  set(RESP(hca_core_clock_offset), 0);
  mask(VABI_C(MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_DUMP_FILL_MKEY), kCaps.dump_fill_mkey);
  mask(VABI_C(MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_ECE), kCaps.ece_support);
  mask(VABI_C(MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_REAL_TIME_TS), kCaps.real_time_timestamps);
  mask(VABI_C(MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_SQD2RTS), kCaps.drain_sigerr);
  mask(VABI_C(MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_MKEY_UPDATE_TAG), true);
  set(RESP(num_dyn_bfregs), state.dyn_bfregs);
  set(RESP(comp_mask), comp_mask);
}

int Mlx5Driver::AllocContext(Call& call, Context& context) {
  const World& world = call.world;
  int version;
  if (const int error = CheckLength(call, &version)) return error;
  Request request = {};
  if (const int error = ReadRequest(call, &request)) return error;
  call.record.has_flags = true;
  call.record.flags = request.flags;
  if (const int error = CheckRequest(call, *context.device, request)) return error;

  auto state = std::make_unique<ContextState>();
  state->version = version;
  state->devx = request.flags != 0;
  state->low_latency = request.low_latency;
  const auto cap = [&](ConstId bit) {
    return (request.lib_caps & static_cast<uint64_t>(world.Flag(bit))) != 0;
  };
  state->uar_4k = cap(VABI_C(MLX5_LIB_CAP_4K_UAR));
  state->dyn_uar = cap(VABI_C(MLX5_LIB_CAP_DYN_UAR)) && world.Knob(KnobId::mlx5_dyn_uar) != 0;
  if (!state->dyn_uar) {
    if (const int error = CountBfregs(call, request, state.get())) return error;
    for (uint32_t i = 0; i < state->static_pages; ++i)
      state->uars[i] = context.device->NextNumber();
  }
  state->cqe_version =
      std::min<uint8_t>(static_cast<uint8_t>(kCaps.cqe_version), request.max_cqe_version);

  OwnedBody<128> reply(world, VABI_S(mlx5_ib_alloc_ucontext_resp));
  FillContextReply(*context.device, *state, reply);
  const size_t length = ReplyLength(call);
  reply.Set(RESP(response_length), length);
  const OldRespond how =
      world.Knob(KnobId::mlx5_ucontext_reply) == 0 ? OldRespond::kWhole : OldRespond::kClip;
  const bool zeroes = world.Knob(KnobId::mlx5_respond_zeroes) != 0;
  if (const int error = Respond(call, reply.base(), zeroes ? reply.length() : length, how))
    return error;

  context.driver = std::move(state);
  std::lock_guard lock(fabric::Lock());
  fabric::GuardInstall();
  fabric::AddDevice(context.device->number(), context.device->image());
  return 0;
}

void Mlx5Driver::DeallocContext(Context& context) { context.driver.reset(); }

namespace {
struct PdNumbers {
  std::mutex mutex;
  std::map<std::pair<uint32_t, uint32_t>, const UverbsFile*> owners;  // by device and number
};
PdNumbers& Pds() {
  static auto* const numbers = new PdNumbers();  // files may be closed while the process ends
  return *numbers;
}
}  // namespace

PdState::PdState(const UverbsFile& owner, uint32_t number)
    : device(owner.device().number()), pdn(number) {
  std::lock_guard lock(Pds().mutex);
  Pds().owners[{device, pdn}] = &owner;
}

PdState::~PdState() {
  std::lock_guard lock(Pds().mutex);
  Pds().owners.erase({device, pdn});
}

Ownership PdState::Find(const UverbsFile& file, uint32_t pdn) {
  std::lock_guard lock(Pds().mutex);
  const auto found = Pds().owners.find({file.device().number(), pdn});
  if (found == Pds().owners.end()) return Ownership::kNone;
  return found->second == &file ? Ownership::kOwn : Ownership::kForeign;
}

int Mlx5Driver::AllocPd(Call& call, Pd& pd) {
  auto state = std::make_unique<PdState>(call.file, pd.device->NextNumber());
  OwnedBody<32> reply(call.world, VABI_S(mlx5_ib_alloc_pd_resp));
  reply.Set(VABI_F(mlx5_ib_alloc_pd_resp, pdn), state->pdn);
  if (const int error = Respond(call, reply.base(), reply.length(), OldRespond::kWhole))
    return error;
  pd.driver = std::move(state);
  return 0;
}

}  // namespace vabi::mlx5
