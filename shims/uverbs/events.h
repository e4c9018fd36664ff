// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_EVENTS_H_
#define VABI_SHIMS_UVERBS_EVENTS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "harness/world/world.h"
#include "shims/file.h"
#include "shims/sys/turns.h"
#include "shims/uverbs/objects.h"

// Files from which a program reads events: completion channels and async event files
// (uverbs_main.c: ib_uverbs_event_read). The backing descriptor is readable exactly while there are
// events and never writable, so select, poll and epoll work natively (readiness.h).

namespace vabi {

class UverbsFile;

class EventFile : public File, public std::enable_shared_from_this<EventFile> {
 public:
  void set_backing_fd(int fd) override;
  ssize_t Read(void* user, size_t size, bool nonblock) override;
  // anon_inode_getfile(…, O_RDONLY): fs/read_write.c:vfs_write
  ssize_t Write(const void* user, size_t size) override;
  int CheckWrite() const override;
  bool StatAs(unsigned int* mode, uint64_t* rdev) const override;
  bool ReadOnly() const override { return true; }
  short PollAs(bool readable) const override;
  void Release() override;
  // is_closed: readers get what is queued, then EIO.
  void CloseQueue(bool drop_events);
  // The open uverbs file that it belongs to: look-ups from another one answer EBADF.
  uint64_t owner() const { return owner_; }
  const World* world() const { return world_; }

 protected:
  struct Event {
    uint8_t bytes[16];
    uint32_t* reported;  // the object's counter, raised when the event is read
    const void* object;
  };
  explicit EventFile(const UverbsFile* owner);
  void Push(const Event& event);
  void Forget(const void* object);
  virtual size_t EventSize() const = 0;

 private:
  // Makes the backing descriptor readable exactly when it should be, and wakes readers. `fresh`:
  // whoever waits is told anew, even where it was readable already.
  void Signal(bool fresh = false);

  mutable std::mutex mutex_;
  std::deque<Event> events_;
  bool closed_ = false;
  bool signalled_ = false;
  sys::Turns turns_;
  uint64_t owner_;
  const World* world_;
};

class CompletionChannel : public EventFile {
 public:
  explicit CompletionChannel(const UverbsFile* owner) : EventFile(owner) {}
  // ib_uverbs_comp_handler: an armed CQ got a completion. Called by drivers with fabric::Lock()
  // held.
  void Notify(Cq& cq);
  void ForgetCq(Cq& cq) { Forget(&cq); }
  const char* Name() const override;
  // Null when the file is of another kind.
  static std::shared_ptr<CompletionChannel> From(const std::shared_ptr<File>& file);

 protected:
  size_t EventSize() const override { return 8; }  // struct ib_uverbs_comp_event_desc
};

class AsyncEventFile : public EventFile {
 public:
  explicit AsyncEventFile(const UverbsFile* owner) : EventFile(owner) {}
  // `element` is the object's user_handle, or the port number.
  void Report(uint64_t element, uint32_t event_type, uint32_t* reported, const void* object);
  void ForgetObject(const void* object) { Forget(object); }
  const char* Name() const override;
  static std::shared_ptr<AsyncEventFile> From(const std::shared_ptr<File>& file);

 protected:
  size_t EventSize() const override { return 16; }  // struct ib_uverbs_async_event_desc
};

// Makes the file with its backing descriptor and puts it into the process' descriptor table: the
// descriptor, or -errno.
int InstallEventFile(std::shared_ptr<EventFile> file);
// The two halves of it, for commands that answer before they are sure: a close-on-exec descriptor,
// or -errno; and the file behind it.
int ReserveEventFd();
void InstallEventFile(int fd, std::shared_ptr<EventFile> file);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_EVENTS_H_
