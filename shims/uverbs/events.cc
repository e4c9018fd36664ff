// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/events.h"

#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "shims/sys/sys.h"
#include "shims/sys/user_space.h"
#include "shims/trace/trace.h"
#include "shims/uverbs/readiness.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

// Two arrays, not one: their addresses tell the kinds of files apart (there is no RTTI here).
constexpr char kCompletionName[] = "anon_inode:[infinibandevent]";
char const kAsyncName[] = "anon_inode:[infinibandevent]";

}  // namespace

EventFile::EventFile(const UverbsFile* owner) : owner_(owner->serial()), world_(&owner->world()) {}

void EventFile::set_backing_fd(int fd) {
  std::lock_guard lock(mutex_);
  File::set_backing_fd(fd);
}

// uverbs_main.c:ib_uverbs_event_read
ssize_t EventFile::Read(void* user, size_t size, bool nonblock) {
  if (!sys::InUserSpace(reinterpret_cast<uintptr_t>(user), size)) return -EFAULT;
  trace::Record record;
  record.front_end = trace::FrontEnd::kRead;
  std::strncpy(record.name, EventSize() == 8 ? "read:comp_event" : "read:async_event",
               sizeof(record.name) - 1);
  record.start_ns = trace::Enabled() ? sys::MonotonicNs() : 0;
  const auto refuse = [&](RuleId rule) -> ssize_t {
    record.rule = static_cast<int>(rule);
    const RuleEntry& entry = world_->Rule(rule);
    return entry.relaxed ? -EXFULL : -entry.error;
  };
  ssize_t result;
  for (;;) {
    Event event;
    uint32_t turn;
    {
      std::lock_guard lock(mutex_);
      turn = turns_.now();
      if (!events_.empty()) {
        if (EventSize() > size) {
          result = refuse(RuleId::event_read_short);
          break;
        }
        event = events_.front();
        events_.pop_front();
        if (event.reported != nullptr) ++*event.reported;
        Signal();
      } else if (closed_) {
        result = refuse(RuleId::event_read_closed);
        break;
      } else {
        event.object = nullptr;
        result = 0;
        if (nonblock) {
          result = refuse(RuleId::event_read_again);
          break;
        }
        goto wait;
      }
    }
    // Taken from the queue even when it cannot be delivered.
    result = trace::Reply(reinterpret_cast<uintptr_t>(user), event.bytes, EventSize()) == 0
                 ? static_cast<ssize_t>(EventSize())
                 : -EFAULT;
    break;
  wait:
    result = turns_.WaitFor(turn);
    if (result != 0) break;
  }
  if (trace::Enabled()) {
    record.result = result;
    trace::Write(record);
  }
  return result;
}

ssize_t EventFile::Write(const void*, size_t) { return CheckWrite(); }
int EventFile::CheckWrite() const { return -EBADF; }

// uverbs_main.c:ib_uverbs_event_poll
short EventFile::PollAs(bool readable) const {
  std::lock_guard lock(mutex_);
  if (closed_ && events_.empty()) {
    return readable && world_->Knob(KnobId::event_closed_error) != 0 ? POLLERR : 0;
  }
  return readable ? POLLIN | POLLRDNORM : 0;
}

bool EventFile::StatAs(unsigned int*, uint64_t*) const { return false; }

// uverbs_uobject_fd_release: the object behind the descriptor is destroyed.
void EventFile::Release() { CloseQueue(true); }

void EventFile::CloseQueue(bool drop_events) {
  std::lock_guard lock(mutex_);
  closed_ = true;
  if (drop_events) events_.clear();
  Signal();
}

void EventFile::Push(const Event& event) {
  std::lock_guard lock(mutex_);
  if (closed_) return;
  events_.push_back(event);
  // wake_up_interruptible for each event: a waiter with EPOLLET sees an edge for each.
  Signal(true);
}

void EventFile::Forget(const void* object) {
  std::lock_guard lock(mutex_);
  events_.erase(std::remove_if(events_.begin(), events_.end(),
                               [&](const Event& event) { return event.object == object; }),
                events_.end());
  Signal();
}

void EventFile::Signal(bool fresh) {
  const bool at_end = closed_ && world_->Knob(KnobId::event_closed_error) != 0;
  const bool wanted = at_end || !events_.empty();
  if (wanted || closed_) turns_.Next();
  if ((wanted == signalled_ && !fresh) || backing_fd() < 0) return;
  SetReadable(backing_fd(), wanted);
  signalled_ = wanted;
}

void CompletionChannel::Notify(Cq& cq) {
  Event event = {};
  std::memcpy(event.bytes, &cq.user_handle, sizeof(cq.user_handle));
  event.reported = &cq.comp_events_reported;
  event.object = &cq;
  Push(event);
}

const char* CompletionChannel::Name() const { return kCompletionName; }

std::shared_ptr<CompletionChannel> CompletionChannel::From(const std::shared_ptr<File>& file) {
  if (!file || file->Name() != kCompletionName) return nullptr;
  return std::static_pointer_cast<CompletionChannel>(
      static_cast<EventFile*>(file.get())->shared_from_this());
}

void AsyncEventFile::Report(uint64_t element, uint32_t event_type, uint32_t* reported,
                            const void* object) {
  Event event = {};
  std::memcpy(event.bytes, &element, sizeof(element));
  std::memcpy(event.bytes + 8, &event_type, sizeof(event_type));
  event.reported = reported;
  event.object = object;
  Push(event);
}

const char* AsyncEventFile::Name() const { return kAsyncName; }

std::shared_ptr<AsyncEventFile> AsyncEventFile::From(const std::shared_ptr<File>& file) {
  if (!file || file->Name() != kAsyncName) return nullptr;
  return std::static_pointer_cast<AsyncEventFile>(
      static_cast<EventFile*>(file.get())->shared_from_this());
}

int ReserveEventFd() { return MakeReadiness(); }

void InstallEventFile(int fd, std::shared_ptr<EventFile> file) {
  file->set_backing_fd(fd);
  FdTable::Install(fd, std::move(file));
}

int InstallEventFile(std::shared_ptr<EventFile> file) {
  const int fd = ReserveEventFd();
  if (fd >= 0) InstallEventFile(fd, std::move(file));
  return fd;
}

}  // namespace vabi
