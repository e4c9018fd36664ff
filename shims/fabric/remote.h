// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_REMOTE_H_
#define VABI_SHIMS_FABRIC_REMOTE_H_

#include <cstdint>

#include "harness/world/image.h"
#include "shims/fabric/fabric.h"
#include "shims/fabric/message.h"

// The wire between the processes of one world (docs/fabric.md). Drivers see none of it but
// Outcome::kSent.

namespace vabi::fabric {

// The world of this process, from now on. With a run folder, the process meets the others of its
// world there from its first queue pair on; null: it is alone. Not with Lock() held.
void UseWorld(const WorldImage* image);
// A number that no other process of the world has; 0: the process is alone, and counts by itself.
uint32_t ReserveQpn(uint32_t device);
// Why a process that has a run folder is alone all the same; null: it is not.
const char* WhyAlone();

// The queue pair can be reached: from its first state in which it can receive on, the NIC's thread
// serves other processes. Not with Lock() held.
void Attend(const Endpoint& endpoint);
// Some may have gone (RemoveEndpoint): with the last one, the NIC is left alone. Not with Lock()
// held.
void Unattend();

// For requester.cc, with Lock() held.
struct FarPlace {
  int peer = -1;          // place of the process in the world
  uint64_t identity = 0;  // of that process
  uint32_t device = 0, qpn = 0;
  uint8_t port = 1;
};
// The process that has that queue pair number at that address. False: no other one.
bool FindFar(const Endpoint& from, const AddressVector& address, uint32_t qpn, FarPlace* place);
// Something of the requester's is on its way to another process.
bool IsUnderWay(const Endpoint& requester);
class Requester;
Outcome SendFar(Requester& requester, const FarPlace& place);
// False: no room now.
bool DatagramFar(const Endpoint& sender, const Message& message, const FarPlace& place);
void MulticastFar(const Endpoint& sender, const Message& message, const uint8_t gid[16]);
// Members of this process came to the group, or all went.
void AnnounceGroup(const uint8_t gid[16], bool member);

// The queue pair is gone.
void ForgetEndpoint(Endpoint& endpoint);
// For tests: drops all that is on its way; how long a peer that lives may say nothing.
void ForgetFar();
void SetStallLimit(uint64_t ns);

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_REMOTE_H_
