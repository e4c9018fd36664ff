// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/flow_spec.h"

#include <algorithm>
#include <cstring>

namespace vabi {
namespace {

// Filters: bytes that the kernel knows (struct ib_flow_*_filter), and where a number must stay
// below a limit (network order), if anywhere.
struct FilterRow {
  uint32_t type;
  size_t size;
  size_t limited_at;  // == size: nothing
  uint32_t limit;
};
constexpr FilterRow kFilters[] = {
    {kSpecEth, 16, 16, 0}, {kSpecIpv4, 12, 12, 0}, {kSpecIpv6, 39, 32, 1 << 20},
    {kSpecTcp, 4, 4, 0},   {kSpecUdp, 4, 4, 0},    {kSpecVxlan, 4, 0, 1 << 24},
    {kSpecEsp, 8, 8, 0},   {kSpecGre, 8, 8, 0},    {kSpecMpls, 4, 4, 0},
};

uint32_t Big32(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

bool IsZero(const uint8_t* from, const uint8_t* to) {
  return std::all_of(from, to, [](uint8_t byte) { return byte == 0; });
}

int CheckFilter(Command& c, const FlowSpecHeader& header, const uint8_t* spec) {
  if (header.size < sizeof(FlowSpecHeader)) return c.Refuse(RuleId::flow_spec);
  const size_t size = (header.size - sizeof(FlowSpecHeader)) / 2;
  const uint8_t* value = spec + sizeof(FlowSpecHeader);
  const uint8_t* mask = value + size;
  const auto row = std::find_if(
      std::begin(kFilters), std::end(kFilters),
      [&](const FilterRow& filter) { return filter.type == (header.type & ~kSpecInner); });
  if (size % 4 != 0 || header.type == (kSpecInner | kSpecVxlan) || row == std::end(kFilters)) {
    return c.Refuse(RuleId::flow_spec);
  }
  if (size == 0) return c.Refuse(RuleId::flow_spec);
  if (c.Violates(RuleId::flow_spec_tail,
                 size > row->size && !IsZero(mask + row->size, mask + size))) {
    return c.Refuse(RuleId::flow_spec_tail);
  }
  const size_t known = std::min(size, row->size);
  if (row->limited_at + 4 <= known &&
      c.Violates(RuleId::flow_spec_range, Big32(value + row->limited_at) >= row->limit ||
                                              Big32(mask + row->limited_at) >= row->limit)) {
    return c.Refuse(RuleId::flow_spec_range);
  }
  return 0;
}

int CheckAction(Command& c, const FlowSpecHeader& header, const uint8_t* spec, Flow* flow) {
  const auto handle = [&] {
    uint32_t value = 0;
    if (header.size >= 12) std::memcpy(&value, spec + sizeof(FlowSpecHeader), sizeof(value));
    return value;
  };
  switch (header.type) {
    case kSpecActionTag:
      if (header.size == c.world.Size(VABI_S(ib_uverbs_flow_spec_action_tag))) return 0;
      break;
    case kSpecActionDrop:
      if (header.size == c.world.Size(VABI_S(ib_uverbs_flow_spec_action_drop))) return 0;
      break;
    case kSpecActionHandle: {
      if (header.size != c.world.Size(VABI_S(ib_uverbs_flow_spec_action_handle))) {
        return c.Refuse(RuleId::flow_spec_action_size);
      }
      FlowAction* action;
      if (const int error = c.Read(handle(), &action)) return error;
      flow->resources.push_back(action);
      return 0;
    }
    case kSpecActionCount: {
      if (header.size != c.world.Size(VABI_S(ib_uverbs_flow_spec_action_count))) break;
      Counters* counters;
      if (const int error = c.Read(handle(), &counters)) return error;
      flow->resources.push_back(counters);
      return 0;
    }
    default:
      break;
  }
  return c.Refuse(RuleId::flow_spec);
}

}  // namespace

size_t LargestFlowSpec(const World& world) {
  size_t largest = 0;
  for (const StructId spec :
       {VABI_S(ib_uverbs_flow_spec_eth), VABI_S(ib_uverbs_flow_spec_ipv4),
        VABI_S(ib_uverbs_flow_spec_esp), VABI_S(ib_uverbs_flow_spec_tcp_udp),
        VABI_S(ib_uverbs_flow_spec_ipv6), VABI_S(ib_uverbs_flow_spec_action_tag),
        VABI_S(ib_uverbs_flow_spec_action_drop), VABI_S(ib_uverbs_flow_spec_action_handle),
        VABI_S(ib_uverbs_flow_spec_action_count)}) {
    largest = std::max(largest, world.Size(spec));
  }
  return largest;
}

int CheckFlowSpec(Command& c, const FlowSpecHeader& header, const uint8_t* spec, Flow* flow) {
  if (c.Violates(RuleId::flow_spec_reserved, header.reserved != 0)) {
    return c.Refuse(RuleId::flow_spec_reserved);
  }
  return header.type >= kSpecActionTag ? CheckAction(c, header, spec, flow)
                                       : CheckFilter(c, header, spec);
}

}  // namespace vabi
