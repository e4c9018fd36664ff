// SPDX-License-Identifier: BSD-2-Clause
// Memory keys and endpoints by device and number, and where endpoints answer.
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "shims/fabric/address.h"
#include "shims/fabric/fabric.h"
#include "shims/fabric/memory.h"
#include "shims/fabric/registry.h"
#include "shims/fabric/remote.h"

namespace vabi::fabric {
namespace {

struct PortAddress {
  uint32_t device;
  uint8_t port;
  uint8_t lmc;
  uint16_t lid;
  bool infiniband;
  uint8_t gid_count;
  uint8_t gids[4][16];
  uint8_t types[4];
};

struct Group {
  uint8_t gid[16];
  std::vector<Endpoint*> members;
};

struct State {
  Registry<MemoryKey> keys;
  Registry<Endpoint> endpoints;
  std::vector<PortAddress> ports;
  std::vector<PortAddress> world_ports;
  std::vector<Group> groups;
};

State& Get() {
  static State* const state = new State;  // never destroyed, see registry.h
  return *state;
}

bool SameGid(const uint8_t* a, const uint8_t* b) { return memcmp(a, b, 16) == 0; }

// Does the port answer to that address? InfiniBand goes by LID (the low `lmc` bits are path bits),
// and by the GID too when there is a GRH; Ethernet has GIDs only.
bool AnswersTo(const PortAddress& port, const AddressVector& address) {
  const bool gid_given = address.is_global || !port.infiniband;
  if (port.infiniband) {
    const unsigned int path_bits = (1u << port.lmc) - 1;
    if ((address.dlid & ~path_bits) != port.lid) return false;
  }
  if (!gid_given) return true;
  for (int i = 0; i < port.gid_count; ++i) {
    if (SameGid(port.gids[i], address.dgid)) return true;
  }
  return false;
}

Group* FindGroup(const uint8_t* gid) {
  for (Group& group : Get().groups) {
    if (SameGid(group.gid, gid)) return &group;
  }
  return nullptr;
}

}  // namespace

MemoryKey* AddKey(uint32_t device, uint32_t key, const MemoryKey& memory) {
  GuardInstall();
  auto* made = new MemoryKey(memory);
  delete Get().keys.Insert(device, key, made);
  return made;
}

void RemoveKey(uint32_t device, uint32_t key) { delete Get().keys.Erase(device, key); }

MemoryKey* FindKey(uint32_t device, uint32_t key) { return Get().keys.Find(device, key); }

void AddEndpoint(Endpoint* endpoint) {
  Get().endpoints.Insert(endpoint->device, endpoint->qpn, endpoint);
}

void RemoveEndpoint(Endpoint* endpoint) {
  State& state = Get();
  ForgetEndpoint(*endpoint);
  if (state.endpoints.Find(endpoint->device, endpoint->qpn) == endpoint) {
    state.endpoints.Erase(endpoint->device, endpoint->qpn);
  }
  for (Group& group : state.groups) {
    if (std::erase(group.members, endpoint) != 0 && group.members.empty()) {
      AnnounceGroup(group.gid, false);
    }
  }
  std::erase_if(state.groups, [](const Group& group) { return group.members.empty(); });
}

Endpoint* FindEndpoint(uint32_t device, uint32_t qpn) { return Get().endpoints.Find(device, qpn); }

static void AddPorts(uint32_t device, const DeviceImage& image, std::vector<PortAddress>* ports) {
  std::erase_if(*ports, [device](const PortAddress& port) { return port.device == device; });
  for (uint8_t i = 0; i < image.port_count && i < 2; ++i) {
    const PortImage& from = image.ports[i];
    PortAddress port = {};
    port.device = device;
    port.port = static_cast<uint8_t>(i + 1);
    port.lid = from.lid;
    port.lmc = from.lmc;
    port.infiniband = image.link == LinkLayer::kInfiniband;
    port.gid_count = std::min<uint8_t>(from.gid_count, 4);
    for (int g = 0; g < port.gid_count; ++g) {
      memcpy(port.gids[g], from.gids[g].raw, 16);
      port.types[g] = from.gids[g].type;
    }
    ports->push_back(port);
  }
}

void AddDevice(uint32_t device, const DeviceImage& image) { AddPorts(device, image, &Get().ports); }

void SetWorldPorts(const WorldImage& image) {
  Get().world_ports.clear();
  for (uint32_t i = 0; i < image.device_count; ++i) {
    AddPorts(i, image.device[i], &Get().world_ports);
  }
}

int FindWorldPorts(const Endpoint& from, const AddressVector& address, PortName* out, int room) {
  int found = 0;
  for (const bool own : {true, false}) {
    for (const PortAddress& port : Get().world_ports) {
      if ((port.device == from.device) != own || found == room) continue;
      if (AnswersTo(port, address)) out[found++] = {port.device, port.port};
    }
  }
  return found;
}

Endpoint* Resolve(const Endpoint& from, const AddressVector& address, uint32_t qpn) {
  State& state = Get();
  Endpoint* elsewhere = nullptr;
  for (const PortAddress& port : state.ports) {
    if (!AnswersTo(port, address)) continue;
    Endpoint* found = state.endpoints.Find(port.device, qpn);
    if (found == nullptr || found->port != port.port) continue;
    if (port.device == from.device) return found;
    if (elsewhere == nullptr) elsewhere = found;
  }
  return elsewhere;
}

bool IsMulticast(const AddressVector& address) {
  return (address.is_global && address.dgid[0] == 0xff) ||
         (!address.is_global && address.dlid >= 0xc000 && address.dlid != 0xffff);
}

int AttachMulticast(Endpoint* endpoint, const uint8_t gid[16]) {
  Group* group = FindGroup(gid);
  if (group == nullptr) {
    Get().groups.emplace_back();
    group = &Get().groups.back();
    memcpy(group->gid, gid, 16);
    AnnounceGroup(gid, true);
  }
  if (std::find(group->members.begin(), group->members.end(), endpoint) == group->members.end()) {
    group->members.push_back(endpoint);
  }
  return 0;
}

int DetachMulticast(Endpoint* endpoint, const uint8_t gid[16]) {
  Group* group = FindGroup(gid);
  if (group == nullptr || std::erase(group->members, endpoint) == 0) return -EINVAL;
  if (group->members.empty()) {
    AnnounceGroup(gid, false);
    std::erase_if(Get().groups, [](const Group& one) { return one.members.empty(); });
  }
  return 0;
}

void VisitGroup(const uint8_t gid[16], void (*visit)(Endpoint*, void*), void* argument) {
  const Group* group = FindGroup(gid);
  if (group == nullptr) return;
  // A copy: a member may leave the group while it is served (its queue pair goes to error and is
  // destroyed).
  const std::vector<Endpoint*> members = group->members;
  for (Endpoint* member : members) visit(member, argument);
}

const uint8_t* SourceGid(uint32_t device, uint8_t port, uint32_t index, uint8_t* type) {
  for (const PortAddress& one : Get().ports) {
    if (one.device != device || one.port != port || index >= one.gid_count) continue;
    if (type != nullptr) *type = one.types[index];
    return one.gids[index];
  }
  return nullptr;
}

void SendAs(Endpoint* endpoint, uint32_t index) {
  const uint8_t* gid = SourceGid(endpoint->device, endpoint->port, index);
  if (gid != nullptr) memcpy(endpoint->gid, gid, sizeof(endpoint->gid));
}

bool IsInfiniband(uint32_t device, uint8_t port) {
  for (const PortAddress& one : Get().ports) {
    if (one.device == device && one.port == port) return one.infiniband;
  }
  return false;
}

void ForgetAll() {
  State& state = Get();
  ForgetFar();
  state.keys.ForEach([](MemoryKey* key) { delete key; });
  state.keys.Clear();
  state.endpoints.Clear();
  state.ports.clear();
  state.groups.clear();
}

}  // namespace vabi::fabric
