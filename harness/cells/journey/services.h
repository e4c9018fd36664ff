// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CELLS_JOURNEY_SERVICES_H_
#define VABI_HARNESS_CELLS_JOURNEY_SERVICES_H_

#include "queue_pair.h"

namespace journey {

// What there is beside RC: datagrams, shared receive queues, XRC, memory windows. Each is a feature
// that a device or a kernel may lack; where its objects can be had, its data must be right.
void TryServices(Pair* pair);

}  // namespace journey

#endif  // VABI_HARNESS_CELLS_JOURNEY_SERVICES_H_
