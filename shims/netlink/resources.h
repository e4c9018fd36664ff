// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_NETLINK_RESOURCES_H_
#define VABI_SHIMS_NETLINK_RESOURCES_H_

#include <string>

#include "shims/netlink/message.h"
#include "shims/uverbs/restrack.h"

// What RES_GET and RES_*_GET tell of objects (core/nldev.c: fill_res_info, fill_entries and the
// functions of its rows): those of all programs of the world (restrack.h), and the kernel's own as
// far as they are known.

namespace vabi::netlink {

// A row of fill_entries.
struct ResourceKind {
  ConstId command;
  TrackType type;
  ConstId table, entry, id;
  bool per_device;  // NLDEV_PER_DEV: belongs to no port
  int64_t since;    // netlink.res_entries
};
// Null: not one of these commands.
const ResourceKind* FindKind(ConstId command);

// The attributes of one object; `privileged`: with keys. False: it belongs to another port than
// `port`, which is 0 when none was asked for.
bool PutObject(const World& world, const ResourceKind& kind, const Tracked& object, bool privileged,
               uint32_t port, Message* message);

// All objects of a type, by id; the kernel's own have no process. False of the first: what a kernel
// keeps of this type for itself is not known, and not among them.
bool KnowsKernels(const World& world, const DeviceImage& device, TrackType type);
std::vector<Tracked> FindObjects(const World& world, const DeviceImage& device, uint32_t number,
                                 TrackType type);

// The summary of a device.
void PutSummary(const World& world, uint32_t device, Message* message);

}  // namespace vabi::netlink

#endif  // VABI_SHIMS_NETLINK_RESOURCES_H_
