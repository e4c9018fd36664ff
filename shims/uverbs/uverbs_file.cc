// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/uverbs_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "shims/sys/shared_memory.h"
#include "shims/sys/sys.h"
#include "shims/sys/user_space.h"
#include "shims/trace/gaps.h"
#include "shims/uverbs/destroy.h"
#include "shims/uverbs/faults.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/restrack.h"
#include "shims/uverbs/script.h"
#include "shims/uverbs/write.h"
#include "shims/vma.h"

namespace vabi {
namespace {

std::atomic<uint64_t> next_serial{1};

}  // namespace

UverbsFile::UverbsFile(Device& device, int node)
    : device_(device),
      node_(node),
      serial_(next_serial.fetch_add(1)),
      opener_pid_(sys::GetPid()),
      opener_credentials_(FdTable::CredentialGeneration()) {
  device_.CountOpenFile(1);
}

UverbsFile::~UverbsFile() { Release(); }

ssize_t UverbsFile::Write(const void* user, size_t size) {
  ScriptCommand(device_);
  if (const int error = CheckWrite()) return error;
  if (!sys::InUserSpace(reinterpret_cast<uintptr_t>(user), size)) return -EFAULT;
  return RunWrite(*this, user, size);
}

ssize_t UverbsFile::Read(void*, size_t, bool) { return CheckRead(); }

long UverbsFile::Ioctl(unsigned long request, void* argument) {
  ScriptCommand(device_);
  return RunIoctl(*this, request, argument);
}

const char* UverbsFile::Name() const {
  if (node_ >= 0) return world().image().node[node_].path;
  return "/dev/infiniband/uverbs";
}

bool UverbsFile::StatAs(unsigned int* mode, uint64_t* rdev) const {
  const WorldImage& image = world().image();
  if (node_ >= 0) {
    const NodeView& node = image.node[node_];
    *mode = (node.kind == 0 ? S_IFCHR : S_IFREG) | node.mode;
    *rdev = node.kind == 0 ? makedev(node.major, node.minor) : 0;
  } else {
    *mode = S_IFCHR | 0666;
    *rdev = makedev(device_.image().major, device_.image().minor);
  }
  return true;
}

bool UverbsFile::SameCredentials() const {
  return opener_pid_ == sys::GetPid() && opener_credentials_ == FdTable::CredentialGeneration();
}

size_t UverbsFile::SpaceOf(ObjectType type) const {
  return world().Knob(KnobId::uverbs_handles) == 0 ? 0 : static_cast<size_t>(type) + 1;
}

uint32_t UverbsFile::ReserveHandle(ObjectType type) {
  Space& space = spaces_[SpaceOf(type)];
  uint32_t handle = space.lowest_free;
  while (handle < space.slots.size() && space.slots[handle].used) ++handle;
  if (handle == space.slots.size()) space.slots.emplace_back();
  space.slots[handle].used = true;
  space.lowest_free = handle + 1;
  return handle;
}

void UverbsFile::Abandon(ObjectType type, uint32_t handle) {
  Space& space = spaces_[SpaceOf(type)];
  space.slots[handle].used = false;
  if (handle < space.lowest_free) space.lowest_free = handle;
}

void UverbsFile::Commit(std::unique_ptr<Object> object) {
  object->older = newest_;
  object->newer = nullptr;
  if (newest_ != nullptr) newest_->newer = object.get();
  newest_ = object.get();
  Track(*object);
  TrackParents(*object);
  Space& space = spaces_[SpaceOf(object->type)];
  space.slots[object->handle].object = std::move(object);
}

Object* UverbsFile::FindAny(ObjectType wanted, uint64_t handle) const {
  const Space& space = spaces_[SpaceOf(wanted)];
  return handle < space.slots.size() ? space.slots[handle].object.get() : nullptr;
}

Object* UverbsFile::Find(ObjectType type, uint64_t handle) const {
  Object* object = FindAny(type, handle);
  return object != nullptr && object->type == type ? object : nullptr;
}

void UverbsFile::set_context(std::unique_ptr<Context> context) {
  context_ = std::move(context);
  Track(*context_);
}

std::unique_ptr<Object> UverbsFile::Remove(Object& object) {
  if (object.newer != nullptr) object.newer->older = object.older;
  if (object.older != nullptr) object.older->newer = object.newer;
  if (newest_ == &object) newest_ = object.older;
  Space& space = spaces_[SpaceOf(object.type)];
  std::unique_ptr<Object> taken = std::move(space.slots[object.handle].object);
  Abandon(object.type, object.handle);
  Untrack(object);
  if (!object.gone) TrackParents(object);
  return taken;
}

// uverbs_main.c:uverbs_destroy_ufile_hw: rounds from the newest object to the oldest, while any can
// go.
void UverbsFile::Release() {
  std::lock_guard lock(mutex_);
  if (released_) return;
  released_ = true;
  Call call(world(), *this);
  for (bool progress = true; progress && newest_ != nullptr;) {
    progress = false;
    for (Object* object = newest_; object != nullptr;) {
      Object* older = object->older;
      if (object->gone || DestroyObject(call, *object, RemoveReason::kClose) == 0) {
        Remove(*object);
        progress = true;
      }
      object = older;
    }
  }
  while (newest_ != nullptr) Remove(*newest_);
  for (const auto& weak : event_files_) {
    // A completion channel reads EIO from now on; the async event file only loses its events'
    // source.
    if (auto channel = CompletionChannel::From(weak.lock())) channel->CloseQueue(true);
  }
  if (context_) {
    Untrack(*context_);
    device_.driver().DeallocContext(*context_);
  }
  context_.reset();
  async_events.reset();
}

// Programs may have unmapped a range and mapped something else there: only a shared mapping of just
// these bounds is taken for the device's.
bool UverbsFile::StillMapped(const Mapping& mapping) {
  char wanted[64];
  std::snprintf(wanted, sizeof(wanted), "%08lx-%08lx ", static_cast<unsigned long>(mapping.address),
                static_cast<unsigned long>(mapping.address + mapping.length));
  const size_t length = std::strlen(wanted);
  const int fd = sys::Open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  std::string maps;
  char part[4096];
  for (ssize_t got; (got = sys::Read(fd, part, sizeof(part))) > 0;) {
    maps.append(part, static_cast<size_t>(got));
  }
  sys::Close(fd);
  for (size_t at = 0; at < maps.size();) {
    // "START-END rwxs …"
    if (maps.compare(at, length, wanted) == 0) return maps.compare(at + length + 3, 1, "s") == 0;
    const size_t end = maps.find('\n', at);
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return false;
}

void UverbsFile::Disassociate() {
  constexpr uint32_t kDeviceFatal = 8;  // IB_EVENT_DEVICE_FATAL
  std::lock_guard lock(mutex_);
  if (released_ || context_ == nullptr) return;
  Call call(world(), *this);
  for (bool progress = true; progress;) {
    progress = false;
    for (Object* object = newest_; object != nullptr; object = object->older) {
      if (object->gone || DestroyObject(call, *object, RemoveReason::kClose) != 0) continue;
      object->gone = true;
      progress = true;
    }
  }
  for (const Mapping& mapping : mappings_) {
    if (!StillMapped(mapping)) continue;
    sys::Mmap(reinterpret_cast<void*>(mapping.address), mapping.length, mapping.protection,
              MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  }
  for (const auto& weak : event_files_) {
    const std::shared_ptr<EventFile> events = weak.lock();
    if (const auto channel = CompletionChannel::From(events)) channel->CloseQueue(true);
    if (const auto async = AsyncEventFile::From(events))
      async->Report(0, kDeviceFatal, nullptr, nullptr);
  }
  Untrack(*context_);
  device_.driver().DeallocContext(*context_);
  context_.reset();
}

int MapRequest::CheckShared(Call& call) const {
  return call.Violates(RuleId::mmap_private, !shared) ? call.Refuse(RuleId::mmap_private) : 0;
}

long UverbsFile::Mmap(void* address, size_t length, int protection, int flags, int64_t offset) {
  std::lock_guard lock(mutex_);
  Call call(world(), *this);
  call.record.front_end = trace::FrontEnd::kMmap;
  call.record.device = device_.image().name;
  call.record.start_ns = trace::Enabled() ? sys::MonotonicNs() : 0;
  std::snprintf(call.record.name, sizeof(call.record.name), "mmap");
  const auto finish = [&](long result) {
    if (trace::Wants(call.record)) {
      call.record.result = result < 0 && result > -4096 ? result : 0;
      call.record.has_flags = true;
      call.record.flags = static_cast<uint64_t>(offset);
      trace::Write(call.record);
    }
    return result;
  };
  if (!device_.Offers(Op::mmap)) return finish(call.Refuse(RuleId::mmap_absent));
  if (length == 0) return finish(-EINVAL);  // mm/mmap.c:do_mmap
  if (device_.gone()) return finish(call.Refuse(RuleId::device_gone));
  if (context_ == nullptr) return finish(call.Refuse(RuleId::mmap_no_context));
  // mm/mmap.c:do_mmap: where the file cannot be written, the mapping is not VM_SHARED.
  const bool asks_shared = (flags & MAP_TYPE) != MAP_PRIVATE;
  const MapRequest request = {.offset = static_cast<uint64_t>(offset),
                              .length = length,
                              .protection = protection,
                              .shared = asks_shared && CheckWrite() == 0};
  MapReply reply;
  const int error = device_.driver().Map(call, *context_, request, &reply);
  if (reply.kind[0] != '\0') {
    std::snprintf(call.record.name, sizeof(call.record.name), "mmap:%s", reply.kind);
  }
  if (const int fault = FaultAt(world(), call.record.name)) {
    call.record.fault = "mmap";
    return finish(-fault);
  }
  if (error != 0) return finish(error);
  // mm/memory.c:do_wp_page copies a page of a private mapping when it is first written to.
  const bool copied = !asks_shared && (protection & PROT_WRITE) != 0;
  if (copied) call.record.unmodelled = "mmap: a private mapping is a copy from the start";
  const bool of_memory = !reply.anonymous && reply.memory != nullptr;
  const int kept = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
  void* mapped = of_memory && !copied
                     ? sys::MapAgain(reply.memory, length, address, protection, flags)
                     : sys::Mmap(address, length, protection,
                                 kept | (copied ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS, -1, 0);
  if (sys::IsError(mapped)) return finish(sys::ErrorOf(mapped));
  const size_t whole = (length + 4095) & ~size_t{4095};
  if (copied && of_memory) std::memcpy(mapped, reply.memory, length);
  if (reply.dont_copy) {
    sys::Syscall(SYS_madvise, reinterpret_cast<long>(mapped), static_cast<long>(whole),
                 MADV_DONTFORK);
  }
  const auto begin = reinterpret_cast<uintptr_t>(mapped);
  mappings_.push_back({begin, whole, protection});
  VmaTable::Add({.begin = begin,
                 .end = begin + whole,
                 .pages = reply.pages,
                 .may_write = reply.may_write && (!asks_shared || request.shared),
                 .shared = request.shared});
  return finish(reinterpret_cast<long>(mapped));
}

}  // namespace vabi
