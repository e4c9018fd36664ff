// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_EVENTS_H_
#define VABI_SHIMS_UVERBS_EVENTS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "shims/file.h"
#include "shims/uverbs/objects.h"

// Files from which a program reads events: completion channels and async event files
// (uverbs_main.c: ib_uverbs_event_read). The backing descriptor is an eventfd that is readable exactly while
// there are events, so poll and epoll work natively.

namespace vabi {

class EventFile : public File {
 public:
  ssize_t Read(void* user, size_t size, bool nonblock) override;
  void Release() override;

 protected:
  struct Event {
    uint8_t bytes[16];
    uint32_t* reported;  // the object's counter, raised when the event is read
    const void* object;
  };
  void Push(const Event& event);
  void Forget(const void* object);
  virtual size_t EventSize() const = 0;

 private:
  std::mutex mutex_;
  std::deque<Event> events_;
  bool closed_ = false;
};

class CompletionChannel : public EventFile {
 public:
  // ib_uverbs_comp_handler: an armed CQ got a completion. Called by drivers with fabric::Lock() held.
  void Notify(Cq& cq);
  void ForgetCq(Cq& cq) { Forget(&cq); }
  const char* Name() const override { return "anon_inode:[infinibandevent]"; }

 protected:
  size_t EventSize() const override { return 8; }  // struct ib_uverbs_comp_event_desc
};

class AsyncEventFile : public EventFile {
 public:
  // `element` is the object's user_handle, or the port number.
  void Report(uint64_t element, uint32_t event_type, uint32_t* reported, const void* object);
  void ForgetObject(const void* object) { Forget(object); }
  const char* Name() const override { return "anon_inode:[infinibandevent]"; }

 protected:
  size_t EventSize() const override { return 16; }  // struct ib_uverbs_async_event_desc
};

// Makes the file with its backing eventfd and puts it into the process' descriptor table: the descriptor,
// or -errno.
int InstallEventFile(std::shared_ptr<EventFile> file);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_EVENTS_H_
