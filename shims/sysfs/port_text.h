// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYSFS_PORT_TEXT_H_
#define VABI_SHIMS_SYSFS_PORT_TEXT_H_

#include <cstdint>
#include <string>

#include "harness/world/image.h"

// Text forms of drivers/infiniband/core/sysfs.c, without the final newline.

namespace vabi::sysfs {

std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

std::string GuidText(uint64_t guid_host_order);  // node_guid_show
std::string GidText(const uint8_t raw[16]);      // show_port_gid: %pI6
std::string GidTypeText(uint8_t type);           // core/cache.c:ib_cache_gid_type_str
std::string StateText(uint8_t state);            // state_show
std::string PhysStateText(uint8_t state);        // phys_state_show
std::string NodeTypeText(uint8_t type);          // node_type_show
// rate_show; `max_speed` and `sdr_suffix` are the kernel's knobs. Empty: the kernel answers EINVAL.
std::string RateText(uint8_t width, uint16_t speed, int64_t max_speed, bool sdr_suffix);

}  // namespace vabi::sysfs

#endif  // VABI_SHIMS_SYSFS_PORT_TEXT_H_
