// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_WORLD_STAGE_H_
#define VABI_SHIMS_UVERBS_WORLD_STAGE_H_

#include "harness/world/stages.h"

// What the world has come to (harness/world/stages.h), in the run folder: for all its processes.

namespace vabi {

// Where the world is now. A world without a script or a run folder stays where it began.
Stage StageNow(const WorldImage& image);

// A step has happened: the world moves on.
void MoveStage(const WorldImage& image, const ScriptStep& step);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_WORLD_STAGE_H_
