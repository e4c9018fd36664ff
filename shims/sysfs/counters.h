// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYSFS_COUNTERS_H_
#define VABI_SHIMS_SYSFS_COUNTERS_H_

#include <string>

#include "harness/world/image.h"
#include "shims/sysfs/sysfs_file.h"

namespace vabi::sysfs {

// ports/N/counters and ports/N/hw_counters of one port: all zero.
void DescribeCounters(const WorldImage& image, const DeviceImage& device, const std::string& port,
                      Tree* tree);

}  // namespace vabi::sysfs

#endif  // VABI_SHIMS_SYSFS_COUNTERS_H_
