// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_PORT_H_
#define VABI_SHIMS_UVERBS_PORT_H_

#include "harness/world/world.h"
#include "shims/uverbs/device.h"

namespace vabi {

// uverbs_std_types_device.c:copy_port_attr_to_resp. `to` has the layout of
// ib_uverbs_query_port_resp.
void FillPort(const Device& device, uint32_t port, const Body& to);

// The world's GID at that index of that port's table; null: the entry is empty or out of range.
struct GidEntry {
  const uint8_t* raw;
  uint8_t type;
  uint32_t ifindex;
};
bool FindGid(const Device& device, uint32_t port, uint32_t index, GidEntry* out);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_PORT_H_
