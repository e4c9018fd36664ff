// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYSFS_DESCRIBE_H_
#define VABI_SHIMS_SYSFS_DESCRIBE_H_

#include <string>
#include <vector>

#include "harness/world/image.h"
#include "shims/sysfs/sysfs_file.h"

// What the sysfs and the /dev of a world hold. Used by the harness when it writes a world; the
// process sees the tree through redirects of its libc calls.

namespace vabi::sysfs {

// Everything below /sys that the world's devices show, in the text forms of its kernel
// (drivers/infiniband/core/sysfs.c, uverbs_main.c, user_mad.c, drivers/pci/pci-sysfs.c).
void DescribeSysfs(const WorldImage& image, Tree* tree);

// The device was unplugged: nothing of it is described any more, nor its nodes. What has numbers of
// its own keeps them.
void TakeAway(uint32_t device, WorldImage* image);

// /dev/infiniband with the nodes that are present, and udev's links in /dev/char. The files are
// empty: the shim answers stat and open by the world's node list.
void DescribeDev(const WorldImage& image, Tree* tree);

// The path prefixes that must be redirected into the place where the tree was written, longest
// first.
std::vector<std::string> RedirectedPrefixes(const WorldImage& image);

// Where the device stands: "/sys/devices/pci0000:a0/0000:a0:01.0/0000:a1:00.0", or empty for a
// virtual one.
std::string PciDirectory(const DeviceImage& device);
// "/sys/devices/…/infiniband/mlx5_0"
std::string DeviceDirectory(const DeviceImage& device);

}  // namespace vabi::sysfs

#endif  // VABI_SHIMS_SYSFS_DESCRIBE_H_
