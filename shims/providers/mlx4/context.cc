// SPDX-License-Identifier: BSD-2-Clause
// main.c: mlx4_ib_alloc_ucontext, mlx4_ib_mmap, mlx4_ib_alloc_pd
#include "shims/providers/mlx4/capabilities.h"
#include "shims/providers/mlx4/driver.h"
#include "shims/uverbs/device.h"

namespace vabi::mlx4 {
namespace {

#define RESP(field) VABI_PF(mlx4_ib_alloc_ucontext_resp, field)
#define RESP3(field) VABI_PF(mlx4_ib_alloc_ucontext_resp_v3, field)

constexpr uint64_t kPage = 4096;

}  // namespace

// The request is empty: nothing of it is looked at.
int Mlx4Driver::AllocContext(Call& call, Context& context) {
  if (context.device->image().abi_version == kAbiWithoutCaps) {
    OwnedBody<32> reply(call.world, structure::mlx4_ib_alloc_ucontext_resp_v3);
    reply.Set(RESP3(qp_tab_size), kCaps.num_qps);
    reply.Set(RESP3(bf_reg_size), kCaps.bf_reg_size);
    reply.Set(RESP3(bf_regs_per_page), kCaps.bf_regs_per_page);
    if (const int error = Reply(call, reply, reply.length())) return error;
  } else {
    OwnedBody<32> reply(call.world, structure::mlx4_ib_alloc_ucontext_resp);
    reply.Set(RESP(dev_caps), kCaps.userspace_caps);
    reply.Set(RESP(qp_tab_size), kCaps.num_qps);
    reply.Set(RESP(bf_reg_size), kCaps.bf_reg_size);
    reply.Set(RESP(bf_regs_per_page), kCaps.bf_regs_per_page);
    reply.Set(RESP(cqe_size), kCaps.cqe_size);
    if (const int error = Reply(call, reply, reply.length())) return error;
  }
  context.driver = std::make_unique<ContextState>();
  return 0;
}

int Mlx4Driver::Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) {
  const uint64_t page = request.offset / kPage;
  if (page == 0) {
    reply->kind = "UAR";
  } else if (page == 1) {
    reply->kind = "BLUEFLAME";
  } else if (page == 3) {
    reply->kind = "CORE_CLOCK";
  } else {
    return call.Refuse(rule::map_offset);
  }
  if (const int error = request.CheckShared(call)) return error;
  if (call.Violates(rule::map_length, request.length == 0 || request.length > kPage))
    return call.Refuse(rule::map_length);
  const uint32_t bit = 1u << page;
  ContextState& state = StateOf(context);
  if ((state.mapped & bit) != 0 && call.world.Knob(knob::maps_once) != 0) {
    // Refused while the first mapping stands, which nobody tells a driver here.
    return call.Unmodelled("mlx4: a page of the BAR that is mapped again");
  }
  state.mapped |= bit;
  reply->anonymous = true;
  return 0;
}

int Mlx4Driver::AllocPd(Call& call, Pd& pd) {
  OwnedBody<16> reply(call.world, structure::mlx4_ib_alloc_pd_resp);
  reply.Set(VABI_PF(mlx4_ib_alloc_pd_resp, pdn), kCaps.reserved_pds + pd.device->NextNumber());
  return Reply(call, reply, sizeof(uint32_t));
}

}  // namespace vabi::mlx4
