// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_FLOW_SPEC_H_
#define VABI_SHIMS_UVERBS_FLOW_SPEC_H_

#include <cstddef>
#include <cstdint>

#include "shims/uverbs/command.h"

namespace vabi {

// struct ib_uverbs_flow_spec_hdr
struct FlowSpecHeader {
  uint32_t type;
  uint16_t size;
  uint16_t reserved;
};

// union ib_uverbs_flow_spec: as large as the largest spec that the kernel puts into it.
size_t LargestFlowSpec(const World& world);
// uverbs_cmd.c:kern_spec_to_ib_spec. `spec` starts with `header` and has header.size bytes. Adds
// what the spec uses (flow actions, counters) to flow->resources.
int CheckFlowSpec(Command& c, const FlowSpecHeader& header, const uint8_t* spec, Flow* flow);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_FLOW_SPEC_H_
