// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_NODES_H_
#define VABI_HARNESS_WORLD_NODES_H_

#include <cstdint>

#include "harness/world/world.h"

// The nodes of /dev/infiniband beside uverbsN: their names and numbers follow from the devices.
// shims/umad/ stands behind umadN and issmN, shims/rdma_cm/ behind rdma_cm.

namespace vabi {

inline constexpr uint32_t kMadMajor = 231;      // core/user_mad.c:IB_UMAD_MAJOR
inline constexpr uint32_t kIssmBaseMinor = 64;  // IB_UMAD_NUM_FIXED_MINOR
inline constexpr uint32_t kMiscMajor = 10;
// rdma_cm asks for any minor of a misc device; the first that newer kernels give out.
inline constexpr uint32_t kRdmaCmMinor = 256;

struct MadNode {
  uint32_t device;  // index in the world
  uint32_t number;  // the N of umadN and issmN
  uint8_t port;
  bool subnet_manager;  // issmN, else umadN
  uint32_t minor;

  const char* Prefix() const { return subnet_manager ? "issm" : "umad"; }
};

// Calls `visit` with each node of ib_umad, in the order in which it makes them
// (core/user_mad.c:ib_umad_init_port). iWARP ports take no MADs (rdma_cap_ib_mad).
template <typename Visit>
void ForEachMadNode(const WorldImage& image, const Visit& visit) {
  constexpr uint8_t kRnic = 4;  // RDMA_NODE_RNIC
  if (KnobOf(image, KnobId::modules_mad) == 0) return;
  uint32_t number = 0;
  for (uint32_t i = 0; i < image.device_count; ++i) {
    const DeviceImage& device = image.device[i];
    if (device.node_type == kRnic) continue;
    for (uint8_t port = 1; port <= device.port_count; ++port, ++number) {
      visit(MadNode{i, number, port, false, number});
      if (device.link == LinkLayer::kInfiniband ||
          KnobOf(image, KnobId::sysfs_issm_every_port) != 0) {
        visit(MadNode{i, number, port, true, kIssmBaseMinor + number});
      }
    }
  }
}

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_NODES_H_
