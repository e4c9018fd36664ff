// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_FLOW_STATE_H_
#define VABI_SHIMS_PROVIDERS_MLX5_FLOW_STATE_H_

#include <memory>
#include <vector>

#include "shims/providers/mlx5/counters.h"
#include "shims/providers/mlx5/steering.h"
#include "shims/uverbs/objects.h"

// What the driver keeps of a flow: struct mlx5_ib_flow_handler.

namespace vabi::mlx5 {

struct FlowState final : DriverState {
  std::vector<std::unique_ptr<FlowRule>> rules;
  CountersState* counters = nullptr;
  Object* matcher = nullptr;  // of flows made by the driver's own method
  ~FlowState() override;

  // Hands the rules to the NIC (mlx5_add_flow_rules). Takes fabric::Lock().
  int Install(Call& call);
};

// ib_prio_to_core_prio
uint32_t PriorityOf(uint32_t priority, bool dont_trap);
// Where frames for a raw packet queue pair go: its receive queue, or the hash of an RSS one; null:
// nowhere.
PacketSink* SinkOf(Qp& qp);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_FLOW_STATE_H_
