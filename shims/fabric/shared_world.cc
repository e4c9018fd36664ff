// SPDX-License-Identifier: BSD-2-Clause
#include "shims/fabric/shared_world.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstdio>
#include <cstring>

#include "shims/sys/sys.h"

namespace vabi::fabric {
namespace {

constexpr uint64_t kMagic = 0x3130424146494241;  // "ABIFAB01"
constexpr int kLockTries = 2000;                 // of a millisecond
constexpr int kOpenTries = 100;

uint64_t Mix(uint64_t digest, const void* bytes, size_t size) {
  const auto* at = static_cast<const uint8_t*>(bytes);
  for (size_t i = 0; i < size; ++i) digest = (digest ^ at[i]) * 0x100000001b3ULL;
  return digest;
}

// Processes of one world agree on the layout of what they share and on who has which address.
uint64_t DigestOf(const WorldImage& image, size_t layout) {
  uint64_t digest = Mix(0xcbf29ce484222325ULL, &image.tables_digest, sizeof(image.tables_digest));
  digest = Mix(digest, &layout, sizeof(layout));
  return Mix(digest, image.device, sizeof(DeviceImage) * image.device_count);
}

// The file, for the time of a change. A map of it keeps the lock alive when the descriptor is
// closed first; when the process dies, the kernel gives both up.
class FileLock {
 public:
  explicit FileLock(int fd) : fd_(fd) {
    for (int i = 0; i < kLockTries && fd >= 0 && !held_; ++i) {
      held_ = sys::Syscall(SYS_flock, fd, LOCK_EX | LOCK_NB) == 0;
      if (!held_) {
        const timespec pause = {0, 1000000};
        sys::Syscall(SYS_nanosleep, reinterpret_cast<long>(&pause), 0);
      }
    }
  }
  ~FileLock() {
    if (held_) sys::Syscall(SYS_flock, fd_, LOCK_UN);
    if (fd_ >= 0) sys::Close(fd_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return held_; }

 private:
  int fd_;
  bool held_ = false;
};

struct ProcessState {
  char letter = 0;
  uint64_t started = 0;
};

// proc(5): the third and the 22nd field. False: no such process, or no /proc.
bool ReadState(int pid, ProcessState* out) {
  char path[32], text[1024];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  const int fd = sys::Open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t size = sys::Read(fd, text, sizeof(text) - 1);
  sys::Close(fd);
  if (size <= 0) return false;
  text[size] = '\0';
  const char* at = std::strrchr(text, ')');  // the name may hold anything
  if (at == nullptr || at[1] == '\0' || at[2] == '\0') return false;
  out->letter = at[2];
  at += 2;
  for (int field = 3; field < 22; ++field) {
    at = std::strchr(at, ' ');
    if (at == nullptr) return false;
    ++at;
  }
  unsigned long long started = 0;
  if (std::sscanf(at, "%llu", &started) != 1) return false;
  out->started = started;
  return true;
}

uint64_t PidSpace() {
  struct ::stat64 st = {};
  if (sys::StatAt(AT_FDCWD, "/proc/self/ns/pid", &st) != 0) return 0;
  return st.st_ino;
}

}  // namespace

struct SharedWorld::Map {
  uint64_t magic;
  uint64_t digest;
  std::atomic<uint32_t> next_peer, generation;
  std::atomic<uint32_t> next_block[kMaxDevices];
  alignas(64) Peer peers[kMaxPeers];
  std::atomic<uint32_t> block[kMaxDevices][kBlocksOfDevice];  // owner's place + 1
  SharedGroup groups[kMaxSharedGroups];
  alignas(4096) Ring rings[kMaxPeers][kMaxPeers];  // [from][to]
};

Peer& SharedWorld::peer(int number) const { return map_->peers[number]; }
Ring& SharedWorld::ring(int from, int to) const { return map_->rings[from][to]; }

bool SharedWorld::Join(const char* folder, const WorldImage& image, const char** reason) {
  *reason = nullptr;
  if (joined()) return true;
  if (std::snprintf(path_, sizeof(path_), "%s/fabric", folder) >= static_cast<int>(sizeof(path_))) {
    *reason = "the run folder's name is too long";
    return false;
  }
  rlimit64 limit = {};
  sys::Syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, reinterpret_cast<long>(&limit));
  if (limit.rlim_cur < sizeof(Map)) {
    *reason = "files may not grow enough here (RLIMIT_FSIZE)";
    return false;
  }
  for (int i = 0; i < kOpenTries; ++i) {
    const int fd = sys::Open(path_, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
      *reason = "its file in the run folder cannot be opened";
      return false;
    }
    FileLock lock(fd);
    struct ::stat64 st = {};
    const bool known = lock.held() && sys::Fstat(fd, &st) == 0;
    // The last one may have removed it just now.
    const bool gone = known && st.st_nlink == 0;
    bool good = false;
    if (!known) {
      *reason = "somebody holds its file in the run folder";
    } else if (!gone) {
      inode_ = st.st_ino;
      if (st.st_size == 0) {
        sys::Syscall(SYS_fchmod, fd, 0666);
        if (sys::Ftruncate(fd, sizeof(Map)) == 0) st.st_size = sizeof(Map);
      }
      if (st.st_size == static_cast<off64_t>(sizeof(Map))) {
        good = Enter(fd, image, reason);
      } else {
        *reason = "its file in the run folder is another build's";
      }
    }
    if (!gone) return good;
  }
  *reason = "its file in the run folder comes and goes";
  return false;
}

bool SharedWorld::Enter(int fd, const WorldImage& image, const char** reason) {
  void* mapped =
      sys::Mmap(nullptr, sizeof(Map), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (sys::IsError(mapped)) {
    *reason = "its file in the run folder cannot be mapped";
    return false;
  }
  auto* map = static_cast<Map*>(mapped);
  const uint64_t digest = DigestOf(image, sizeof(Map));
  if (map->magic == 0) {
    map->digest = digest;
    map->magic = kMagic;
  }
  const bool ours = map->magic == kMagic && map->digest == digest;
  *reason = ours ? nullptr : "the processes in this run folder are of another world or build";
  int place = -1;
  if (ours) {
    map_ = map;
    Reap();
    // In turns, so that what a process has left in its rings is read before its place is another's.
    for (int i = 0; i < kMaxPeers && place < 0; ++i) {
      const int number = static_cast<int>(map->next_peer.fetch_add(1) % kMaxPeers);
      if (map->peers[number].identity.load() == 0) place = number;
    }
    if (place < 0) *reason = "the world has as many processes as it can hold";
  }
  if (place < 0) {
    map_ = nullptr;
    sys::Munmap(mapped, sizeof(Map));
    return false;
  }
  sys::Syscall(SYS_madvise, reinterpret_cast<long>(mapped), sizeof(Map), MADV_DONTFORK);
  self_ = place;
  Peer& me = map->peers[place];
  const int pid = sys::GetPid();
  ProcessState state;
  ReadState(pid, &state);
  me.started = state.started;
  me.pid_space = PidSpace();
  static uint64_t probe;
  probe = 0x9e3779b97f4a7c15ULL * static_cast<uint64_t>(pid) + sys::MonotonicNs();
  me.probe_address = reinterpret_cast<uintptr_t>(&probe);
  me.probe_value = probe;
  me.inbox.store(0);
  me.serves.store(0);
  me.wake.sleeping.store(0);
  identity_ = static_cast<uint64_t>(pid) << 32 | (map->generation.fetch_add(1) + 1);
  me.identity.store(identity_, std::memory_order_release);
  return true;
}

// With the file locked.
void SharedWorld::Free(int number) {
  const uint32_t mark = static_cast<uint32_t>(number) + 1;
  for (auto& device : map_->block) {
    for (std::atomic<uint32_t>& block : device) {
      if (block.load(std::memory_order_relaxed) == mark) block.store(0);
    }
  }
  for (SharedGroup& group : map_->groups) group.members.fetch_and(~(1u << number));
  map_->peers[number].identity.store(0);
}

void SharedWorld::Reap() {
  for (int i = 0; i < kMaxPeers; ++i) {
    const uint64_t identity = map_->peers[i].identity.load();
    // A program that was replaced by exec has left its place under the same process id.
    const bool own = identity >> 32 == static_cast<uint64_t>(sys::GetPid()) && i != self_;
    if (identity != 0 && (own || !Alive(i, identity))) Free(i);
  }
}

void SharedWorld::Leave() {
  if (!joined()) return;
  const int fd = sys::Open(path_, O_RDWR | O_CLOEXEC);
  if (fd >= 0) {
    FileLock lock(fd);
    struct ::stat64 st = {};
    const bool ours = sys::Fstat(fd, &st) == 0 && st.st_ino == inode_;
    Reap();
    Free(self_);
    bool empty = true;
    for (const Peer& peer : map_->peers) empty &= peer.identity.load() == 0;
    if (ours && lock.held() && empty) {
      sys::Syscall(SYS_unlink, reinterpret_cast<long>(path_));
    }
  } else {
    Free(self_);  // the folder is gone
  }
  // The map stays: somebody may be just about to look at it.
  map_ = nullptr;
  self_ = -1;
}

bool SharedWorld::Alive(int number, uint64_t identity) const {
  const Peer& peer = map_->peers[number];
  if (peer.identity.load(std::memory_order_acquire) != identity) return false;
  if (number == self_) return true;
  if (peer.pid_space != map_->peers[self_ < 0 ? number : self_].pid_space) return true;
  const int pid = static_cast<int>(identity >> 32);
  if (sys::Syscall(SYS_kill, pid, 0) == -ESRCH) return false;
  ProcessState state;
  if (!ReadState(pid, &state)) return sys::Syscall(SYS_kill, pid, 0) != -ESRCH;
  return state.letter != 'Z' && state.letter != 'X' && state.started == peer.started;
}

uint32_t SharedWorld::TakeBlock(uint32_t device) {
  if (!joined() || device >= static_cast<uint32_t>(kMaxDevices)) return 0;
  const uint32_t mark = static_cast<uint32_t>(self_) + 1;
  for (uint32_t i = 0; i < 2 * kBlocksOfDevice; ++i) {
    if (i == kBlocksOfDevice) {  // once around: those of the dead are free
      const int fd = sys::Open(path_, O_RDWR | O_CLOEXEC);
      FileLock lock(fd);
      if (lock.held()) Reap();
    }
    const uint32_t block = map_->next_block[device].fetch_add(1) % kBlocksOfDevice;
    uint32_t nobody = 0;
    if (map_->block[device][block].compare_exchange_strong(nobody, mark)) {
      return device * kQpnsOfDevice + block * kQpnsOfBlock + (block == 0 ? kFirstQpn : 0);
    }
  }
  return 0;
}

int SharedWorld::OwnerOf(uint32_t device, uint32_t qpn) const {
  if (!joined() || device >= static_cast<uint32_t>(kMaxDevices)) return -1;
  if (qpn / kQpnsOfDevice != device) return -1;
  const uint32_t block = qpn % kQpnsOfDevice / kQpnsOfBlock;
  return static_cast<int>(map_->block[device][block].load(std::memory_order_acquire)) - 1;
}

void SharedWorld::Announce(const uint8_t gid[16], bool member) {
  if (!joined()) return;
  const FileLock lock(sys::Open(path_, O_RDWR | O_CLOEXEC));
  if (!lock.held()) return;
  SharedGroup* found = nullptr;
  for (SharedGroup& group : map_->groups) {
    if (std::memcmp(group.gid, gid, 16) == 0) {
      found = &group;
      break;
    }
    if (found == nullptr && group.members.load() == 0) found = &group;
  }
  if (found == nullptr) return;
  std::memcpy(found->gid, gid, 16);
  const uint32_t bit = 1u << self_;
  if (member) {
    found->members.fetch_or(bit);
  } else {
    found->members.fetch_and(~bit);
  }
}

uint32_t SharedWorld::MembersOf(const uint8_t gid[16]) const {
  if (!joined()) return 0;
  for (const SharedGroup& group : map_->groups) {
    if (std::memcmp(group.gid, gid, 16) == 0) return group.members.load();
  }
  return 0;
}

}  // namespace vabi::fabric
