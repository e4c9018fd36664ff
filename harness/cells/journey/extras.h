// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CELLS_JOURNEY_EXTRAS_H_
#define VABI_HARNESS_CELLS_JOURNEY_EXTRAS_H_

#include "queue_pair.h"

namespace journey {

// Features that a device or a kernel may lack: each is tried once and told of.
void TryExtras(Pair* pair);

}  // namespace journey

#endif  // VABI_HARNESS_CELLS_JOURNEY_EXTRAS_H_
