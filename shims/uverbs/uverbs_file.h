// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_UVERBS_FILE_H_
#define VABI_SHIMS_UVERBS_UVERBS_FILE_H_

#include <memory>
#include <mutex>
#include <unordered_map>

#include "shims/file.h"
#include "shims/uverbs/call.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/events.h"
#include "shims/uverbs/objects.h"

// An open /dev/infiniband/uverbsN: struct ib_uverbs_file. All commands of one file run under its mutex.

namespace vabi {

class UverbsFile : public File, public std::enable_shared_from_this<UverbsFile> {
 public:
  explicit UverbsFile(Device& device);
  ~UverbsFile() override;

  ssize_t Write(const void* user, size_t size) override;
  long Ioctl(unsigned long request, void* argument) override;
  long Mmap(void* address, size_t length, int protection, int flags, int64_t offset) override;
  bool StatAs(unsigned int* mode, uint64_t* rdev) const override;
  void Release() override;  // uverbs_destroy_ufile_hw: everything goes, in the kernel's order
  const char* Name() const override;

  Device& device() const { return device_; }
  const World& world() const { return device_.world(); }
  std::recursive_mutex& mutex() { return mutex_; }
  Context* context() const { return context_.get(); }
  void set_context(std::unique_ptr<Context> context) { context_ = std::move(context); }

  // Handles (idr_alloc from 0). Reserve, then Commit or Abandon.
  uint32_t ReserveHandle();
  void Abandon(uint32_t handle);
  void Commit(uint32_t handle, std::unique_ptr<Object> object);
  // The object with that handle, or null when there is none or it is of another type.
  Object* Find(ObjectType type, uint32_t handle) const;
  Object* FindAny(uint32_t handle) const;
  // Takes the object out and frees its handle.
  std::unique_ptr<Object> Remove(uint32_t handle);

  // write() compares the credentials of opener and writer by identity (ib_safe_file_access).
  bool SameCredentials() const;

  std::shared_ptr<AsyncEventFile> async_events;  // the default one

 private:
  Device& device_;
  std::recursive_mutex mutex_;
  std::unique_ptr<Context> context_;
  std::unordered_map<uint32_t, std::unique_ptr<Object>> objects_;
  uint32_t next_handle_ = 0;
  int opener_pid_;
  uint64_t opener_credentials_;
};

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_UVERBS_FILE_H_
