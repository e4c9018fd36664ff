// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CELLS_ASKS_ASKS_H_
#define VABI_HARNESS_CELLS_ASKS_ASKS_H_

#include <infiniband/verbs.h>

#include "../journey/queue_pair.h"

// What applications ask of a device beyond the usual: every kind of registration, queue and queue
// pair that the release's verbs.h names, and what may be queried. Each is a step of its own
// (journey::Ask), whatever the answer; what could be made is destroyed at once. Which steps there
// are depends on the headers alone.

namespace asks {

// Of a device: its limits, ports, GIDs, partition keys.
void AskDevice(ibv_context* context);
// Memory: each access flag, odd places and lengths, changes, windows.
void AskMemory(ibv_pd* pd);
// Completion queues and shared receive queues of each kind.
void AskQueues(ibv_context* context, ibv_pd* pd);
// Queue pairs of each type and with each flag, changes that no state allows, everything that they
// tell of themselves, multicast groups.
void AskQueuePairs(const journey::Pair& pair);

}  // namespace asks

#endif  // VABI_HARNESS_CELLS_ASKS_ASKS_H_
