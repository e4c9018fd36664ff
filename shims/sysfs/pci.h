// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYSFS_PCI_H_
#define VABI_SHIMS_SYSFS_PCI_H_

#include <string>

#include "harness/world/image.h"
#include "shims/sysfs/sysfs_file.h"

namespace vabi::sysfs {

// The PCI function of a device, its network interfaces, and the links that lead to them
// (drivers/pci/pci-sysfs.c, net/core/net-sysfs.c).
void DescribePci(const DeviceImage& device, Tree* tree);

// "/sys/devices/pci0000:a0", the host bridge that the device stands under.
std::string PciRoot(const DeviceImage& device);

}  // namespace vabi::sysfs

#endif  // VABI_SHIMS_SYSFS_PCI_H_
