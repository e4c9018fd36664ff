// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_ADDRESS_H_
#define VABI_SHIMS_FABRIC_ADDRESS_H_

#include <cstdint>

#include "harness/world/image.h"
#include "shims/fabric/fabric.h"

// Who answers to which address: the one place that knows where a queue pair lives.

namespace vabi::fabric {

// The device's ports answer to their LIDs and GIDs from now on. Idempotent; drivers call it when a
// context is made (takes no lock itself: call with Lock() held).
void AddDevice(uint32_t device, const DeviceImage& image);

// The queue pair with that number behind that address, or null: nobody there, or another process'
// (remote.h). Devices that share an address (as loopback interfaces do) are searched beginning with
// the sender's own.
Endpoint* Resolve(const Endpoint& from, const AddressVector& address, uint32_t qpn);

// The ports of the whole world, those of devices that this process has not opened, too.
void SetWorldPorts(const WorldImage& image);
struct PortName {
  uint32_t device;
  uint8_t port;
};
// Those of them that answer to the address, the sender's own device first. Returns how many, at
// most `room`.
int FindWorldPorts(const Endpoint& from, const AddressVector& address, PortName* out, int room);

bool IsMulticast(const AddressVector& address);
// ibv_attach_mcast and ibv_detach_mcast: 0, or -EINVAL when there is nothing to detach. Attaching
// twice is one attachment.
int AttachMulticast(Endpoint* endpoint, const uint8_t gid[16]);
int DetachMulticast(Endpoint* endpoint, const uint8_t gid[16]);
// Calls visit(endpoint) for each member of the group in the order of attaching.
void VisitGroup(const uint8_t gid[16], void (*visit)(Endpoint*, void*), void* argument);

// The GID entry of a port as AddDevice was told it; null: none. `*type`: enum ib_uverbs_gid_type.
const uint8_t* SourceGid(uint32_t device, uint8_t port, uint32_t index, uint8_t* type = nullptr);
// The endpoint sends as that entry of its port's table from now on; where there is none, as before.
void SendAs(Endpoint* endpoint, uint32_t index);
// False: Ethernet, or a port that AddDevice was not told of.
bool IsInfiniband(uint32_t device, uint8_t port);

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_ADDRESS_H_
