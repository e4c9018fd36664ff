// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_FLOW_SPEC_H_
#define VABI_SHIMS_UVERBS_FLOW_SPEC_H_

#include <cstddef>
#include <cstdint>

#include "shims/uverbs/command.h"

namespace vabi {

// enum ib_flow_spec_type
enum : uint32_t {
  kSpecEth = 0x20,
  kSpecIpv4 = 0x30,
  kSpecIpv6 = 0x31,
  kSpecEsp = 0x34,
  kSpecTcp = 0x40,
  kSpecUdp = 0x41,
  kSpecVxlan = 0x50,
  kSpecGre = 0x51,
  kSpecMpls = 0x60,
  kSpecInner = 0x100,
  kSpecActionTag = 0x1000,
  kSpecActionDrop = 0x1001,
  kSpecActionHandle = 0x1002,
  kSpecActionCount = 0x1003,
};

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
