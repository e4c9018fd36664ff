// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_FAULTS_H_
#define VABI_SHIMS_UVERBS_FAULTS_H_

#include "harness/world/world.h"

// What goes wrong on purpose (WorldImage::fault). Steps are named as the trace names them.

namespace vabi {

// The positive errno that a call of this step answers now, or 0. Counts the call.
int FaultAt(const World& world, const char* step);
// Starts counting anew: a new world.
void ResetFaults();

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_FAULTS_H_
