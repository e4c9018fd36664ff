// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CELLS_JOURNEY_DATA_H_
#define VABI_HARNESS_CELLS_JOURNEY_DATA_H_

#include "queue_pair.h"

namespace journey {

// Moves data in every way that RC offers, checks every byte and every field of each completion.
void MoveData(Pair* pair, bool has_atomics);
// Work requests that must fail, with the right status, and leave the queue pair in error.
void FailOnPurpose(Pair* pair);

}  // namespace journey

#endif  // VABI_HARNESS_CELLS_JOURNEY_DATA_H_
