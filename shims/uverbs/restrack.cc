// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/restrack.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>

#include "shims/sys/sys.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

constexpr uint64_t kMagic = 0x3130545341424156;  // "VABAST01"
constexpr uint32_t kSlots = 8192;

// Entries are written by their owner alone; `version` is odd meanwhile.
struct Slot {
  std::atomic<uint32_t> owner;  // process; 0: free
  std::atomic<uint32_t> version;
  Tracked entry;
};
struct TrackTable {
  std::atomic<uint64_t> magic;
  std::atomic<uint32_t> next_id[kMaxDevices][static_cast<size_t>(TrackType::kCount)];
  std::atomic<uint32_t> hint;
  std::atomic<uint32_t> used;    // slots with an owner
  std::atomic<uint32_t> looker;  // process that has looked for the dead since somebody left last
  std::atomic<bool> lost;        // something had no room
  Slot slots[kSlots];
};

struct Kept {
  std::mutex mutex;
  char folder[sizeof(WorldImage::run_dir)] = {};
  TrackTable* table = nullptr;
};
// Never destroyed: files are released at the very end.
Kept& State() {
  static auto* const state = new Kept();
  return *state;
}

// The folder's table, or one of the process' own. Null: there is no memory.
TrackTable* Attach(const WorldImage& image) {
  Kept& state = State();
  const std::lock_guard lock(state.mutex);
  if (state.table != nullptr && std::strcmp(state.folder, image.run_dir) == 0) return state.table;
  if (state.table != nullptr) sys::Munmap(state.table, sizeof(TrackTable));
  state.table = nullptr;
  std::snprintf(state.folder, sizeof(state.folder), "%s", image.run_dir);
  int fd = -1;
  if (image.run_dir[0] != '\0') {
    char path[sizeof(state.folder) + 16];
    std::snprintf(path, sizeof(path), "%s/restrack", image.run_dir);
    fd = sys::Open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0 && sys::Ftruncate(fd, sizeof(TrackTable)) != 0) {
      sys::Close(fd);
      fd = -1;
    }
  }
  void* memory =
      sys::Mmap(nullptr, sizeof(TrackTable), PROT_READ | PROT_WRITE,
                fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, fd, 0);
  if (fd >= 0) sys::Close(fd);
  if (sys::IsError(memory)) return nullptr;
  auto* table = static_cast<TrackTable*>(memory);
  uint64_t none = 0;
  if (!table->magic.compare_exchange_strong(none, kMagic) && none != kMagic) {
    sys::Munmap(memory, sizeof(TrackTable));  // another build's
    return nullptr;
  }
  return state.table = table;
}

bool IsAlive(uint32_t pid) { return sys::Syscall(SYS_kill, static_cast<long>(pid), 0) != -ESRCH; }

// Only what nobody else has taken meanwhile.
void Free(TrackTable* table, Slot& slot, uint32_t owner) {
  if (!slot.owner.compare_exchange_strong(owner, 0)) return;
  table->used.fetch_sub(1);
  table->looker.store(0);
}

// Frees the slots of processes that are gone.
void FreeDead(TrackTable* table) {
  std::set<uint32_t> alive;
  for (Slot& slot : table->slots) {
    const uint32_t owner = slot.owner.load();
    if (owner == 0 || alive.count(owner) != 0) continue;
    if (IsAlive(owner)) {
      alive.insert(owner);
    } else {
      Free(table, slot, owner);
    }
  }
}

// A free slot's number + 1; 0: there is none. A program may make many more objects than there are
// slots: each of those looks for none.
uint32_t TakeSlot(TrackTable* table, uint32_t pid) {
  if (table->used.load() >= kSlots) {
    if (table->looker.exchange(pid) == pid) return 0;
    FreeDead(table);
  }
  const uint32_t start = table->hint.load();
  for (uint32_t i = 0; i < kSlots; ++i) {
    const uint32_t number = (start + i) % kSlots;
    uint32_t nobody = 0;
    if (!table->slots[number].owner.compare_exchange_strong(nobody, pid)) continue;
    table->used.fetch_add(1);
    table->hint.store((number + 1) % kSlots);
    return number + 1;
  }
  return 0;
}

void WriteEntry(TrackTable* table, uint32_t slot, const Tracked& entry) {
  Slot& at = table->slots[slot - 1];
  at.version.fetch_add(1);
  at.entry = entry;
  at.version.fetch_add(1);
}

uint32_t IdOf(const TrackTable* table, uint32_t slot) {
  return slot == 0 ? 0 : table->slots[slot - 1].entry.id;
}
uint32_t IdOf(const TrackTable* table, const Object* object) {
  return object == nullptr ? 0 : IdOf(table, object->track);
}

bool TypeOf(const Object& object, TrackType* type) {
  switch (object.type) {
    case ObjectType::kPd:
      *type = TrackType::kPd;
      return true;
    case ObjectType::kCq:
      *type = TrackType::kCq;
      return true;
    case ObjectType::kQp:
      *type = TrackType::kQp;
      return true;
    case ObjectType::kMr:
      *type = TrackType::kMr;
      return true;
    case ObjectType::kSrq:
      *type = TrackType::kSrq;
      return true;
    default:
      return false;
  }
}

void Put(TrackTable* table, Tracked entry, uint32_t* slot) {
  entry.pid = static_cast<uint32_t>(sys::GetPid());
  if (*slot == 0) {
    *slot = TakeSlot(table, entry.pid);
    if (*slot == 0) return table->lost.store(true);
    // xa_alloc_cyclic, behind what ib_mad has made first: a PD and a CQ. Of a queue pair it is the
    // number (rdma_restrack_add).
    const uint32_t first = entry.type == TrackType::kPd || entry.type == TrackType::kCq ? 1 : 0;
    if (entry.type != TrackType::kQp)
      entry.id = first + table->next_id[entry.device][static_cast<size_t>(entry.type)].fetch_add(1);
  } else if (entry.type != TrackType::kQp) {
    entry.id = IdOf(table, *slot);
  }
  WriteEntry(table, *slot, entry);
}

void Drop(TrackTable* table, uint32_t* slot) {
  if (*slot == 0) return;
  Slot& at = table->slots[*slot - 1];
  Free(table, at, at.owner.load());
  *slot = 0;
}

// enum ib_qp_type
constexpr uint8_t kRc = 2, kUc = 3;

}  // namespace

void Track(Object& object) {
  Tracked entry = {};
  if (object.device == nullptr || !TypeOf(object, &entry.type)) return;
  const WorldImage& image = object.device->world().image();
  TrackTable* const table = Attach(image);
  if (table == nullptr) return;
  entry.device = static_cast<uint8_t>(object.device->number());
  entry.users = static_cast<uint32_t>(object.users);
  if (object.file != nullptr && object.file->context() != nullptr)
    entry.context = IdOf(table, object.file->context()->track);
  switch (object.type) {
    case ObjectType::kCq:
      entry.cqe = static_cast<Cq&>(object).cqe;
      break;
    case ObjectType::kMr: {
      const auto& mr = static_cast<Mr&>(object);
      entry.pd = IdOf(table, mr.pd);
      entry.lkey = mr.lkey;
      entry.rkey = mr.rkey;
      entry.length = mr.length;
      entry.iova = mr.iova;
      break;
    }
    case ObjectType::kSrq: {
      const auto& srq = static_cast<Srq&>(object);
      entry.pd = IdOf(table, srq.pd);
      entry.cq = IdOf(table, srq.cq);
      entry.kind = static_cast<uint8_t>(srq.srq_type);
      break;
    }
    case ObjectType::kQp: {
      const Qp& qp = static_cast<Qp&>(object).Real();
      entry.id = qp.qp_num;
      entry.pd = IdOf(table, qp.pd);
      entry.srq = IdOf(table, qp.srq);
      entry.has_srq = qp.srq != nullptr;
      entry.kind = qp.qp_type;
      entry.state = static_cast<uint8_t>(qp.state);
      entry.port = qp.port;
      entry.migration = qp.attr.path_mig_state;
      entry.connected = qp.qp_type == kRc || qp.qp_type == kUc;
      entry.remote_qpn = qp.attr.dest_qp_num;
      entry.rq_psn = qp.attr.rq_psn;
      entry.sq_psn = qp.attr.sq_psn;
      break;
    }
    default:
      break;
  }
  Put(table, entry, &object.track);
}

void TrackParents(Object& object) {
  const auto again = [](Object* parent) {
    if (parent != nullptr && parent->track != 0) Track(*parent);
  };
  switch (object.type) {
    case ObjectType::kMr:
      return again(static_cast<Mr&>(object).pd);
    case ObjectType::kMw:
      return again(static_cast<Mw&>(object).pd);
    case ObjectType::kAh:
      return again(static_cast<Ah&>(object).pd);
    case ObjectType::kWq:
      again(static_cast<Wq&>(object).cq);
      return again(static_cast<Wq&>(object).pd);
    case ObjectType::kSrq:
      again(static_cast<Srq&>(object).cq);
      return again(static_cast<Srq&>(object).pd);
    case ObjectType::kQp: {
      const Qp& qp = static_cast<Qp&>(object).Real();
      again(qp.send_cq);
      if (qp.recv_cq != qp.send_cq) again(qp.recv_cq);
      return again(qp.pd);
    }
    default:
      return;
  }
}

void Track(Context& context) {
  const WorldImage& image = context.device->world().image();
  TrackTable* const table = Attach(image);
  if (table == nullptr) return;
  Tracked entry = {};
  entry.type = TrackType::kCtx;
  entry.device = static_cast<uint8_t>(context.device->number());
  Put(table, entry, &context.track);
}

void Untrack(Object& object) {
  if (object.track == 0) return;
  if (TrackTable* table = Attach(object.device->world().image())) Drop(table, &object.track);
}

void Untrack(Context& context) {
  if (context.track == 0) return;
  if (TrackTable* table = Attach(context.device->world().image())) Drop(table, &context.track);
}

void TrackEntry(const WorldImage& image, Tracked entry, uint32_t* slot) {
  if (TrackTable* table = Attach(image)) Put(table, entry, slot);
}

void UntrackEntry(const WorldImage& image, uint32_t* slot) {
  if (*slot == 0) return;
  if (TrackTable* table = Attach(image)) Drop(table, slot);
}

bool LostTrack(const WorldImage& image) {
  const TrackTable* const table = Attach(image);
  return table == nullptr || table->lost.load();
}

std::vector<Tracked> FindTracked(const WorldImage& image, uint32_t device, TrackType type) {
  std::vector<Tracked> found;
  TrackTable* const table = Attach(image);
  if (table == nullptr) return found;
  constexpr int kTries = 100;
  FreeDead(table);
  for (Slot& slot : table->slots) {
    const uint32_t owner = slot.owner.load();
    if (owner == 0) continue;
    for (int i = 0; i < kTries; ++i) {
      const uint32_t before = slot.version.load();
      if (before == 0) break;  // not written yet
      const Tracked entry = slot.entry;
      // A write, since a load would not keep the entry's from coming after it (and ThreadSanitizer
      // knows no fences).
      if ((before & 1) != 0 || slot.version.fetch_add(0) != before) continue;
      if (entry.device == device && entry.type == type && slot.owner.load() == owner)
        found.push_back(entry);
      break;
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Tracked& a, const Tracked& b) { return a.id < b.id; });
  return found;
}

}  // namespace vabi
