// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_UVERBS_FILE_H_
#define VABI_SHIMS_UVERBS_UVERBS_FILE_H_

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "shims/access_mode.h"
#include "shims/file.h"
#include "shims/uverbs/call.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/events.h"
#include "shims/uverbs/objects.h"

// An open /dev/infiniband/uverbsN: struct ib_uverbs_file. All commands of one file run under its
// mutex.

namespace vabi {

class UverbsFile : public File, public std::enable_shared_from_this<UverbsFile> {
 public:
  // `node`: index of the node in the world through which it was opened; -1 in unit tests.
  explicit UverbsFile(Device& device, int node = -1);
  ~UverbsFile() override;

  ssize_t Read(void* user, size_t size, bool nonblock) override;
  ssize_t Write(const void* user, size_t size) override;
  // uverbs_fops has a write, and nothing that reads.
  int CheckRead() const override { return access_.RefuseRead(); }
  int CheckWrite() const override { return access_.CheckWrite(); }
  long Ioctl(unsigned long request, void* argument) override;
  long Mmap(void* address, size_t length, int protection, int flags, int64_t offset) override;
  bool StatAs(unsigned int* mode, uint64_t* rdev) const override;
  void Release() override;  // uverbs_destroy_ufile_hw: everything goes, in the kernel's order
  const char* Name() const override;

  // The device is gone, the file is not: all that it made loses its hardware, what is mapped
  // becomes zero pages, readers get IB_EVENT_DEVICE_FATAL (rdma_core.c:uverbs_destroy_ufile_hw,
  // RDMA_REMOVE_DRIVER_REMOVE).
  void Disassociate();

  Device& device() const { return device_; }
  const World& world() const { return device_.world(); }
  std::recursive_mutex& mutex() { return mutex_; }
  Context* context() const { return context_.get(); }
  void set_context(std::unique_ptr<Context> context);
  // Tells open files apart for good (addresses are used again).
  uint64_t serial() const { return serial_; }
  void set_access_mode(AccessMode mode) { access_ = mode; }

  // Handles: the lowest free number from 0, as xa_alloc and idr_alloc give them. Reserve, then
  // Commit or Abandon. Numbers are one space for all types, or one for each (knob uverbs.handles).
  uint32_t ReserveHandle(ObjectType type);
  void Abandon(ObjectType type, uint32_t handle);
  void Commit(std::unique_ptr<Object> object);  // object->handle was reserved
  // The object with that handle, whatever its type; null: none.
  Object* FindAny(ObjectType wanted, uint64_t handle) const;
  // The same, or null when it is of another type.
  Object* Find(ObjectType type, uint64_t handle) const;
  // Takes the object out and frees its handle.
  std::unique_ptr<Object> Remove(Object& object);
  Object* newest() const { return newest_; }  // further ones by Object::older

  void AddEventFile(std::weak_ptr<EventFile> file) { event_files_.push_back(std::move(file)); }
  const std::vector<std::weak_ptr<EventFile>>& event_files() const { return event_files_; }

  // write() compares the credentials of opener and writer by identity (ib_safe_file_access).
  bool SameCredentials() const;

  std::shared_ptr<AsyncEventFile> async_events;  // the default one
  // Pages with doorbell records, by address (mlx5_ib_ucontext.db_page_list and its like).
  std::map<uint64_t, std::weak_ptr<PinnedPages>> record_pages;

 private:
  struct Slot {
    bool used = false;
    std::unique_ptr<Object> object;  // null while reserved
  };
  struct Space {
    std::vector<Slot> slots;
    uint32_t lowest_free = 0;
  };
  size_t SpaceOf(ObjectType type) const;

  Device& device_;
  int node_;
  uint64_t serial_;
  AccessMode access_;
  bool released_ = false;
  mutable std::recursive_mutex mutex_;
  std::unique_ptr<Context> context_;
  std::array<Space, static_cast<size_t>(ObjectType::kCount) + 1> spaces_;
  Object* newest_ = nullptr;
  std::vector<std::weak_ptr<EventFile>> event_files_;
  struct Mapping {
    uint64_t address, length;
    int protection;
  };
  std::vector<Mapping> mappings_;
  static bool StillMapped(const Mapping& mapping);
  int opener_pid_;
  uint64_t opener_credentials_;
};

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_UVERBS_FILE_H_
