// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_SCRIPT_H_
#define VABI_SHIMS_UVERBS_SCRIPT_H_

#include <memory>

#include "harness/world/world.h"

// What happens to devices while programs use them (WorldImage::script): port events, a fatal error,
// the device's removal. Steps are due after a number of commands to the device, or a time after its
// first open. Those by number happen before the command that is one too many; those by time on a
// thread of their own.

namespace vabi {

class Device;
class UverbsFile;

// A file of the device was opened: it hears of what happens, and the clock starts with the first
// one.
void ScriptOpened(const std::shared_ptr<UverbsFile>& file);
// A command to the device begins. Call without any lock.
void ScriptCommand(Device& device);
// What a step does; for tests.
void Happen(Device& device, const ScriptStep& step);
// A new world. A step that is under way by time ends first; those that are not due yet never
// happen.
void ResetScript();

// To be called when a device was removed; for parts of the fake kernel beside uverbs (struct
// ib_client.remove). No lock is held.
void WhenUnplugged(void (*tell)(Device&));

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_SCRIPT_H_
