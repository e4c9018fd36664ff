// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_OVERLAYS_H_
#define VABI_HARNESS_WORLD_OVERLAYS_H_

#include <filesystem>

#include "harness/facts/result.h"
#include "harness/world/compile.h"

// matrix/overlays/NAME.json: one thing that is different about a kernel or about what a process may
// see.
//
//   "name", "about", "value" (absent: takes none; else what it means), "step" (true: takes @STEP),
//   "changes": list, "values": {"missing": list}: other changes for values of that name.
//
// Changes are those of kernel files (model_changes.h), and for each device (or the one named by
// @NAME):
//   {"sysfs": "class/infiniband_verbs/abi_version", "content": "7\n" | "absent": true | "errno":
//   "EIO"}
//   {"device": "abi_version" | "hidden_from_netlink", "value": 2}
//   {"node": "present" | "mode" | "kind" | "major" | "minor" | "uid" | "gid", "value": 0}
//   {"fault": "GET_CONTEXT", "errno": "EIO", "after": 0, "count": 1}
//   {"event": "PORT_ERR@2s" | "DEVICE_FATAL@100cmds"}, {"unplug": "after:2s" | "100cmds"}: when it
//   happens: a time after
//     the device's first open, or a number of commands to it; for the devices as above, but the
//     step is none's name
//   {"view": "uid" | "gid" | "check_permissions" | "virtual_time", "value": 1000}
//   {"userland": "plugin"}: the command changes the userland, not the kernel
//   (scripts/verbs_abi/cells/plugins.py)
//   {"port": "state" | "gid_count" | …, "value": 1}
// In texts, $VALUE, $STEP, $DEVICE and $UVERBS (the number of the node) are filled in.

namespace vabi {

facts::Result<bool> ApplyOverlay(const std::filesystem::path& root, const OverlaySpec& overlay,
                                 CompiledWorld* world, DriverPresence* drivers);

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_OVERLAYS_H_
