// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_SHARED_WORLD_H_
#define VABI_SHIMS_FABRIC_SHARED_WORLD_H_

#include <atomic>
#include <cstdint>

#include "harness/world/image.h"
#include "shims/fabric/ring.h"
#include "shims/fabric/wake.h"

// What the processes of one world share: a file in the world's run folder that each of them maps.
// It tells which processes there are, who made which queue pair numbers, and holds the rings
// between them. No descriptor stays open, and the last process to leave removes the file.

namespace vabi::fabric {

inline constexpr int kMaxPeers = 24;
inline constexpr int kMaxSharedGroups = 64;
// Queue pair numbers are handed out to processes in blocks, so that the number tells the process.
// Each device has numbers of its own: a mix-up shows. 0 and 1 are QP0 and QP1; a kernel's first one
// is 0x11.
inline constexpr uint32_t kQpnsOfDevice = 0x10000, kFirstQpn = 0x11, kQpnsOfBlock = 64,
                          kBlocksOfDevice = kQpnsOfDevice / kQpnsOfBlock;

// One process.
struct Peer {
  std::atomic<uint64_t> identity;  // 0: nobody; its process id in the upper half, unique
  uint64_t started;                // clock ticks since boot: a process id may be used again
  uint64_t pid_space;              // inode of its process id namespace
  std::atomic<uint32_t>
      serves;  // its NIC takes up what comes for it: some queue pair can be reached
  // Eight bytes of its memory, for others to find out whether they can read there.
  uint64_t probe_address, probe_value;
  alignas(64) WakeWord wake;
  alignas(64) std::atomic<uint32_t> inbox;  // bit p: peer p has written to its ring
};

struct SharedGroup {
  uint8_t gid[16];
  std::atomic<uint32_t> members;  // bit p: peer p has members
};

class SharedWorld {
 public:
  // Takes a place in the world of that folder. False: not possible, and *reason says why (static
  // text).
  bool Join(const char* folder, const WorldImage& image, const char** reason);
  // Gives the place back.
  void Leave();
  // In a forked child: the place is its parent's, and so is the memory.
  void ForgetInChild() { map_ = nullptr; }
  bool joined() const { return map_ != nullptr; }

  int self() const { return self_; }
  uint64_t identity() const { return identity_; }
  Peer& peer(int number) const;
  Ring& ring(int from, int to) const;
  // Does that process still run? True, too, where this cannot be known.
  bool Alive(int number, uint64_t identity) const;

  // A block of queue pair numbers of the device: its first number, or 0 when there is none left.
  uint32_t TakeBlock(uint32_t device);
  // The place of the process that made the number, or -1.
  int OwnerOf(uint32_t device, uint32_t qpn) const;

  // This process has members in the group, or none any more.
  void Announce(const uint8_t gid[16], bool member);
  // Bits of the peers with members.
  uint32_t MembersOf(const uint8_t gid[16]) const;

 private:
  struct Map;
  bool Enter(int fd, const WorldImage& image, const char** reason);
  void Reap();
  void Free(int number);

  Map* map_ = nullptr;
  int self_ = -1;
  uint64_t identity_ = 0;
  uint64_t inode_ = 0;
  char path_[288] = {};
};

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_SHARED_WORLD_H_
