// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_MODEL_CHANGES_H_
#define VABI_HARNESS_WORLD_MODEL_CHANGES_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/facts/result.h"
#include "harness/facts/snapshot.h"
#include "harness/world/image.h"

// The items of a "changes" list that turn one thing of a kernel model: the same words in kernel
// files and in overlays. Each names exactly one subject:
//
//   {"rule": "write.count", "on": false} or {"rule": …, "errno": "EINVAL"}   [+ "known_by"]
//   {"knob": "netlink.level", "value": 2}
//   {"method": "CQ.CREATE", "served": false}      an ioctl method
//   {"attribute": "UVERBS_ATTR_CREATE_QP_EVENT_FD", "served": false}    also any other constant:
//   absent
//   {"write": "OPEN_QP", "served": false}  {"write_ex": "CREATE_WQ", "served": false}
//   {"driver": "rxe", "op": "alloc_mw", "served": false}
//   {"driver": "rxe", "present": false}           this kernel has no such driver
//   {"struct": "ib_uverbs_x", "size": 24}  {"field": "ib_uverbs_x.y", "present": false}
//   {"field": "ib_uverbs_x.y", "offset": 8, "size": 4}     where no header tells the layout

namespace vabi {

// Positive errno of "EINVAL" …, or nothing.
std::optional<int> ErrnoByName(std::string_view name);
// "calibrated" | "source" | "headers".
std::optional<KnownBy> KnownByName(std::string_view name);
const char* KnownByText(KnownBy known_by);

// What a kernel's driver table says beside the image.
struct DriverPresence {
  bool present[kCountOf<DriverId>];
};

// True: the item was one of the above and has been applied. False: it is of another kind. An error
// says what is wrong with it, without place.
facts::Result<bool> ApplyModelChange(const nlohmann::json& change, WorldImage* image,
                                     DriverPresence* drivers);

// " (did you mean X?)" or "".
std::string Nearest(std::string_view name, std::span<const std::string> candidates);

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_MODEL_CHANGES_H_
