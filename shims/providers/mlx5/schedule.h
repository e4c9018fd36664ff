// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_SCHEDULE_H_
#define VABI_SHIMS_PROVIDERS_MLX5_SCHEDULE_H_

#include "shims/providers/mlx5/firmware.h"

// Scheduling elements: a tree by which the NIC shares its bandwidth among send queues. User space
// makes it by the firmware's commands (rdma-core: mlx5dv_sched_node_create and its kin). Nothing
// can be put below its leaves yet: no queue asks for one, and the NIC tells of none for queue
// pairs.

namespace vabi::mlx5 {

FirmwareAnswer CreateScheduler(IoctlCall& call, std::span<const uint8_t> in,
                               std::span<uint8_t> out);
FirmwareAnswer ModifyScheduler(const DevxState& object, std::span<const uint8_t> in);
// Is it an element with others below it?
bool HasChildren(const DevxState& object);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_SCHEDULE_H_
