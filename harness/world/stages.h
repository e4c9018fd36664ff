// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_STAGES_H_
#define VABI_HARNESS_WORLD_STAGES_H_

#include <cstddef>
#include <cstdint>

#include "harness/world/image.h"

// What a world with a script comes to look like: a letter for each device. The run folder holds one
// tree of /sys and /dev for each such stage that the script can lead to, "tree.STAGE", and the link
// "tree" to the one that is now. Whoever makes something happen turns the link, so that every
// process of the world sees it in sysfs, netlink and the answers of the devices.

namespace vabi {

inline constexpr char kAsBegun = '-';  // as the world's image says
inline constexpr char kPortDown = 'd';
inline constexpr char kPortActive = 'a';
inline constexpr char kUnplugged = 'x';

struct Stage {
  char letters[kMaxDevices + 1] = {};
  static Stage First(const WorldImage& image) {
    Stage stage;
    for (uint32_t i = 0; i < image.device_count; ++i) stage.letters[i] = kAsBegun;
    return stage;
  }
};

// enum ib_port_state and ib_port_phys_state of a port in that stage.
inline uint8_t PortStateIn(char letter, const PortImage& port) {
  constexpr uint8_t kDown = 1, kActive = 4;
  return letter == kPortDown ? kDown : letter == kPortActive ? kActive : port.state;
}
inline uint8_t PortPhysStateIn(char letter, const PortImage& port) {
  constexpr uint8_t kDisabled = 3, kLinkUp = 5;
  return letter == kPortDown ? kDisabled : letter == kPortActive ? kLinkUp : port.phys_state;
}

// The letter of a device after one step; `before` where the step does not show.
inline char LetterAfter(char before, const ScriptStep& step) {
  constexpr uint32_t kEventActive = 9, kEventError = 10;  // enum ib_event_type
  if (before == kUnplugged || step.kind == ScriptStep::kUnplug) return kUnplugged;
  if (step.kind != ScriptStep::kPortEvent) return before;
  return step.event == kEventError ? kPortDown : step.event == kEventActive ? kPortActive : before;
}

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_STAGES_H_
