// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_DOORBELL_H_
#define VABI_SHIMS_PROVIDERS_MLX5_DOORBELL_H_

#include "shims/providers/mlx5/completion_queue.h"
#include "shims/providers/mlx5/queue_pair.h"

// The part of the NIC that notices what programs post. It watches the doorbell records, not the UAR
// pages: queue pairs share registers and overwrite each other's, while each record is its queue's
// own.

namespace vabi::mlx5 {

// Each takes fabric::Lock() itself.
void Watch(QueuePair* queue);
void Unwatch(QueuePair* queue);
void Watch(CompletionQueue* queue);
void Unwatch(CompletionQueue* queue);
// What was posted before a command a NIC has worked off by the time it gets the command: commands
// that look at queues, or end them, call this first. Takes fabric::Lock().
void Settle();

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_DOORBELL_H_
