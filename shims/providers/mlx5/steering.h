// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_STEERING_H_
#define VABI_SHIMS_PROVIDERS_MLX5_STEERING_H_

#include <cstdint>

#include "shims/providers/mlx5/packet.h"

// The NIC's flow tables: where a frame goes that comes in at the port, or leaves. One table a
// priority; in each the first rule that matches decides, with all others of the same match. All
// calls with fabric::Lock() held.

namespace vabi::mlx5 {

// What takes frames: the receive queue of a raw packet queue pair, or a hash over several.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  virtual void Receive(const Frame& frame) = 0;
};

struct FlowCounter {
  uint64_t packets = 0, bytes = 0;
};

struct FlowRule {
  uint32_t device = 0;
  bool egress = false;
  uint32_t priority = 0;  // tables are looked through from 0 on
  uint8_t enable = 0;     // MatchEnable
  MatchParams mask = {}, value = {};
  bool drop = false;
  bool next = false;  // goes on with the next table
  bool has_tag = false;
  uint32_t tag = 0;
  PacketSink* sink = nullptr;
  FlowCounter* counter = nullptr;
};

// Priorities as the driver numbers them (mlx5_ib.h; fs.c:ib_prio_to_core_prio): two for each of
// user space, then all multicast, then what nobody wanted.
inline constexpr uint32_t kLastUserPriority = 15, kMulticastPriority = 32, kLeftoversPriority = 33;

// fs_core.c:check_conflicting_ftes: a rule of the same match has other actions, or another tag.
bool Conflicts(const FlowRule& rule);
void AddRule(FlowRule* rule);
void RemoveRule(FlowRule* rule);

// A frame that comes in at the device's port.
void Steer(uint32_t device, Frame frame);
// A frame on its way out. False: a rule drops it.
bool Leaves(uint32_t device, const Frame& frame);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_STEERING_H_
