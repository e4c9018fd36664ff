// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_FLOW_PARSE_H_
#define VABI_SHIMS_PROVIDERS_MLX5_FLOW_PARSE_H_

#include <span>

#include "shims/providers/mlx5/steering.h"
#include "shims/uverbs/call.h"
#include "shims/uverbs/objects.h"

// fs.c:parse_flow_attr: the specs of CREATE_FLOW, from struct ib_uverbs_flow_spec_* to what the NIC
// matches.

namespace vabi::mlx5 {

// What the specs say beside the match.
struct FlowActions {
  bool drop = false, count = false, has_tag = false;
  uint32_t tag = 0;
};

// `specs`: the chain as the caller sent it, which the core has checked.
int ParseSpecs(Call& call, std::span<const uint8_t> specs, FlowRule* rule, FlowActions* actions);
// flow_is_multicast_only
bool MulticastOnly(std::span<const uint8_t> specs);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_FLOW_PARSE_H_
