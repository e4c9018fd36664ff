// SPDX-License-Identifier: BSD-2-Clause
// CREATE_FLOW and DESTROY_FLOW: extended write() only (uverbs_cmd.c:ib_uverbs_ex_create_flow).
#include <cstring>

#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"
#include "shims/uverbs/context.h"
#include "shims/uverbs/flow_spec.h"
#include "shims/uverbs/qp_state.h"

namespace vabi {
namespace {

// enum ib_flow_attr_type, ib_flow_flags; IB_FLOW_SPEC_SUPPORT_LAYERS; union of all specs
enum : uint32_t { kAllDefault = 1, kMcDefault = 2, kDontTrap = 1 << 1, kFlagsReserved = 1 << 3 };
constexpr uint32_t kMaxSpecs = 10;

#define ATTR(name) VABI_F(ib_uverbs_flow_attr, name)

int CheckAttr(Command& c, const Body& attr, size_t largest_spec) {
  const uint32_t flags = attr.U32(ATTR(flags)), type = attr.U32(ATTR(type));
  const uint32_t specs = attr.U32(ATTR(num_of_specs)), size = attr.U32(ATTR(size));
  if (c.Violates(RuleId::flow_flags, flags >= kFlagsReserved)) return c.Refuse(RuleId::flow_flags);
  if (c.Violates(RuleId::flow_dont_trap,
                 (flags & kDontTrap) != 0 && (type == kAllDefault || type == kMcDefault))) {
    return c.Refuse(RuleId::flow_dont_trap);
  }
  if (specs > kMaxSpecs) return c.Refuse(RuleId::flow_specs_many);
  if (size > specs * largest_spec) return c.Refuse(RuleId::flow_specs_size);
  uint8_t reserved[2] = {};
  attr.GetBytes(ATTR(reserved), reserved, sizeof(reserved));
  if (c.Violates(RuleId::flow_reserved, reserved[0] != 0 || reserved[1] != 0)) {
    return c.Refuse(RuleId::flow_reserved);
  }
  return 0;
}

// The chain of specs: each tells its own size.
int CheckSpecs(Command& c, const uint8_t* specs, size_t size, uint32_t count, Flow* flow) {
  constexpr size_t kHeader = sizeof(FlowSpecHeader);
  uint32_t done = 0;
  while (done < count && size >= kHeader) {
    FlowSpecHeader header;
    std::memcpy(&header, specs, sizeof(header));
    if (size < header.size) break;
    if (const int error = CheckFlowSpec(c, header, specs, flow)) return error;
    if (header.size == 0) return c.Refuse(RuleId::flow_spec);  // only with its rule relaxed
    specs += header.size;
    size -= header.size;
    ++done;
  }
  if (size != 0 || done != count) return c.Refuse(RuleId::flow_specs_left);
  return 0;
}

}  // namespace

int CreateFlowEx(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_create_flow));
  if (const int error = c.RequestStart(request)) return error;
  if (c.Violates(RuleId::flow_comp_mask,
                 request.Get(VABI_F(ib_uverbs_create_flow, comp_mask)) != 0)) {
    return c.Refuse(RuleId::flow_comp_mask);
  }
  if (c.Violates(RuleId::flow_permission, !HasCapabilities(c.world))) {
    return c.Refuse(RuleId::flow_permission);
  }
  const Body attr = request.Sub(VABI_F(ib_uverbs_create_flow, flow_attr));
  if (const int error = CheckAttr(c, attr, LargestFlowSpec(c.world))) return error;
  const size_t size = attr.Get(ATTR(num_of_specs)) != 0 ? attr.U32(ATTR(size)) : 0;
  std::vector<uint8_t> specs(size);
  if (size != 0) {
    if (const int error = c.RequestNext(specs.data(), size)) return error;
  }
  if (const int error = c.RequestFinish()) return error;
  Flow* flow;
  if (const int error = c.New(&flow)) return error;
  const uint32_t port = attr.U32(ATTR(port));
  if (c.Violates(RuleId::flow_port, !c.device.ValidPort(port))) return c.Refuse(RuleId::flow_port);
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_create_flow, qp_handle)), &flow->qp)) {
    return error;
  }
  if (c.Violates(RuleId::flow_qp_type,
                 flow->qp->qp_type != kQptUd && flow->qp->qp_type != kQptRawPacket)) {
    return c.Refuse(RuleId::flow_qp_type);
  }
  if (const int error = CheckSpecs(c, specs.data(), size, attr.U32(ATTR(num_of_specs)), flow)) {
    return error;
  }
  flow->attributes.assign(attr.base(), attr.base() + attr.length());
  flow->attributes.insert(flow->attributes.end(), specs.begin(), specs.end());
  if (const int error = c.driver().CreateFlow(c.call, *flow)) return error;
  ++flow->qp->users;
  for (Object* resource : flow->resources) ++resource->users;
  c.Created();
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_create_flow_resp));
  reply.Set(VABI_F(ib_uverbs_create_flow_resp, flow_handle), flow->handle);
  return c.Respond(reply);
}
#undef ATTR

int DestroyFlowEx(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_destroy_flow));
  if (const int error = c.Request(request)) return error;
  if (c.Violates(RuleId::flow_comp_mask,
                 request.Get(VABI_F(ib_uverbs_destroy_flow, comp_mask)) != 0)) {
    return c.Refuse(RuleId::flow_comp_mask);
  }
  return c.Destroy<Flow>(request.Get(VABI_F(ib_uverbs_destroy_flow, flow_handle)));
}

}  // namespace vabi
