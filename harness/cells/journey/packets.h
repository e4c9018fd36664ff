// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CELLS_JOURNEY_PACKETS_H_
#define VABI_HARNESS_CELLS_JOURNEY_PACKETS_H_

#include "queue_pair.h"

namespace journey {

// What user space network stacks need on Ethernet: raw packets, work queues with an indirection
// table and a hash in front of them, counters. Each may be lacking.
void TryPackets(Pair* pair);

}  // namespace journey

#endif  // VABI_HARNESS_CELLS_JOURNEY_PACKETS_H_
