// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/uverbs_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "shims/sys/sys.h"
#include "shims/uverbs/destroy.h"
#include "shims/uverbs/faults.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/write.h"

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
  if ((access_mode_ & O_ACCMODE) == O_RDONLY) return -EBADF;  // fs/read_write.c:vfs_write
  return RunWrite(*this, user, size);
}

long UverbsFile::Ioctl(unsigned long request, void* argument) {
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

std::unique_ptr<Object> UverbsFile::Remove(Object& object) {
  if (object.newer != nullptr) object.newer->older = object.older;
  if (object.older != nullptr) object.older->newer = object.newer;
  if (newest_ == &object) newest_ = object.older;
  Space& space = spaces_[SpaceOf(object.type)];
  std::unique_ptr<Object> taken = std::move(space.slots[object.handle].object);
  Abandon(object.type, object.handle);
  return taken;
}

// uverbs_main.c:uverbs_destroy_ufile_hw: rounds from the newest object to the oldest, while any can go.
void UverbsFile::Release() {
  std::lock_guard lock(mutex_);
  if (released_) return;
  released_ = true;
  Call call(world(), *this);
  for (bool progress = true; progress && newest_ != nullptr;) {
    progress = false;
    for (Object* object = newest_; object != nullptr;) {
      Object* older = object->older;
      if (DestroyObject(call, *object, RemoveReason::kClose) == 0) {
        Remove(*object);
        progress = true;
      }
      object = older;
    }
  }
  while (newest_ != nullptr) Remove(*newest_);
  for (const auto& weak : event_files_) {
    // A completion channel reads EIO from now on; the async event file only loses its events' source.
    if (auto channel = CompletionChannel::From(weak.lock())) channel->CloseQueue(true);
  }
  if (context_) device_.driver().DeallocContext(*context_);
  context_.reset();
  async_events.reset();
}

long UverbsFile::Mmap(void* address, size_t length, int protection, int flags, int64_t offset) {
  std::lock_guard lock(mutex_);
  Call call(world(), *this);
  call.record.front_end = trace::FrontEnd::kMmap;
  call.record.device = device_.image().name;
  call.record.start_ns = trace::Enabled() ? sys::MonotonicNs() : 0;
  std::snprintf(call.record.name, sizeof(call.record.name), "mmap");
  const auto finish = [&](long result) {
    if (trace::Enabled()) {
      call.record.result = result < 0 && result > -4096 ? result : 0;
      call.record.has_flags = true;
      call.record.flags = static_cast<uint64_t>(offset);
      trace::Write(call.record);
    }
    return result;
  };
  if (!device_.Offers(Op::mmap)) return finish(call.Refuse(RuleId::mmap_absent));
  if (length == 0) return finish(-EINVAL);  // mm/mmap.c:do_mmap
  if (context_ == nullptr) return finish(call.Refuse(RuleId::mmap_no_context));
  MapReply reply;
  const int error = device_.driver().Map(call, *context_, static_cast<uint64_t>(offset), length,
                                         protection, &reply);
  if (reply.kind[0] != '\0') {
    std::snprintf(call.record.name, sizeof(call.record.name), "mmap:%s", reply.kind);
  }
  if (const int fault = FaultAt(world(), call.record.name)) {
    call.record.fault = "mmap";
    return finish(-fault);
  }
  if (error != 0) return finish(error);
  const int kept = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_SHARED | MAP_PRIVATE);
  void* mapped = reply.anonymous || reply.memfd < 0
                     ? sys::Mmap(address, length, protection, kept | MAP_ANONYMOUS, -1, 0)
                     : sys::Mmap(address, length, protection, kept, reply.memfd, reply.memfd_offset);
  return finish(reinterpret_cast<long>(mapped));
}

}  // namespace vabi
