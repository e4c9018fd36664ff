// SPDX-License-Identifier: BSD-2-Clause
#include "shims/libc/descriptors.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <mutex>
#include <type_traits>

#include "shims/libc/mappings.h"
#include "shims/libc/paths.h"
#include "shims/sys/sys.h"

// glibc's pthread_atfork lives in a part of libc that is linked into each object; this is what it
// calls.
extern "C" int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* dso);
extern "C" void* __dso_handle;

namespace vabi::libc {
namespace {

// What keeps a file open (struct file's count): its descriptors, and the calls on it that have not
// ended. A child that inherited the description has a copy of the fake kernel's state: what it
// closes last is only its copy, and must not be announced to the peers of the parent's.
struct Hold {
  Hold(std::shared_ptr<File> held, int process) : file(std::move(held)), owner(process) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    if (owner == sys::GetPid()) file->Release();
  }
  const std::shared_ptr<File> file;
  const int owner;  // the process that opened it
};

// One open file description, shared by the descriptors that dup made.
struct Description {
  std::shared_ptr<Hold> hold;
  int descriptors;
};

constexpr int kChunk = 256;

struct Table {
  std::mutex mutex;
  Description** chunks[kMaxFds / kChunk] = {};
  int end = 0;  // one past the highest descriptor that was ever ours
};

// Never destroyed: other threads and exit handlers still close descriptors at the very end.
static_assert(std::is_trivially_destructible_v<Table>);
constinit Table g_table;
std::atomic<bool> g_set_up{false};
std::atomic<uint64_t> g_credentials{0};

Table& TheTable() { return g_table; }

Description** SlotOf(Table& table, int fd) {
  Description**& chunk = table.chunks[fd / kChunk];
  if (chunk == nullptr) chunk = new Description*[kChunk]();
  return &chunk[fd % kChunk];
}

// With the mutex held. The description when `fd` was its last descriptor: to be destroyed without
// the mutex.
std::unique_ptr<Description> TakeOut(Table& table, int fd) {
  Description** slot = SlotOf(table, fd);
  Description* description = *slot;
  *slot = nullptr;
  SetBits(fd, 0);
  if (description == nullptr) return nullptr;
  File& file = *description->hold->file;
  // Of a file that this process inherited, another thread may have held the lock at the fork.
  const bool owned = description->hold->owner == sys::GetPid();
  if (--description->descriptors == 0) {
    if (owned) file.set_backing_fd(-1);
    return std::unique_ptr<Description>(description);
  }
  if (owned && file.backing_fd() == fd) {
    for (int other = 0; other < table.end; ++other) {
      if ((BitsOf(other) & kFake) && *SlotOf(table, other) == description) {
        file.set_backing_fd(other);
        break;
      }
    }
  }
  return nullptr;
}

// The process whose memory this is. A child of vfork has the memory of its parent and descriptors
// of its own: what it does to those must not be noted here.
int g_process;
// There may be descriptions of another process, and that they are used was not told yet.
std::atomic<bool> g_inherited{false};

void BeforeFork() {
  TheTable().mutex.lock();
  LockMappings();
}
void AfterForkInParent() {
  UnlockMappings();
  TheTable().mutex.unlock();
}
void AfterForkInChild() {
  UnlockMappings();
  TheTable().mutex.unlock();
  g_process = sys::GetPid();
  g_inherited.store(TheTable().end != 0, std::memory_order_relaxed);
}

}  // namespace

bool InOthersMemory() { return g_process != 0 && sys::GetPid() != g_process; }

void SetUpDescriptors() {
  if (g_set_up.exchange(true)) return;
  g_process = sys::GetPid();
  __register_atfork(BeforeFork, AfterForkInParent, AfterForkInChild, &__dso_handle);
}

void Duplicated(int from, int to) {
  if (from == to || InOthersMemory()) return;
  if (BitsOf(to) != 0) Closed(to);
  const uint8_t bits = BitsOf(from);
  if (bits == 0 || (bits & kOwn)) return;
  if (bits & kFake) {
    Table& table = TheTable();
    const std::lock_guard<std::mutex> lock(table.mutex);
    Description* description = *SlotOf(table, from);
    if (description == nullptr) return;
    ++description->descriptors;
    *SlotOf(table, to) = description;
    if (to >= table.end) table.end = to + 1;
  }
  SetBits(to, bits);
}

void Closed(int fd) {
  const uint8_t bits = BitsOf(fd);
  if (bits == 0 || InOthersMemory()) return;
  if (bits & kOwn) {
    // Not there for the program.
  } else if (bits & kFake) {
    FdTable::Remove(fd);
  } else {
    SetBits(fd, 0);
  }
}

void ClosedRange(unsigned first, unsigned last) {
  for (unsigned fd = first; fd <= last && fd < static_cast<unsigned>(kMaxFds); ++fd) {
    if (g_fd_bits[fd] != 0) Closed(static_cast<int>(fd));
  }
}

void NoteExec() {
  const int end = TheTable().end;
  for (int fd = 0; fd < end; ++fd) {
    if (!(BitsOf(fd) & kFake)) continue;
    const long flags = sys::Syscall(SYS_fcntl, fd, F_GETFD);
    if (flags >= 0 && !(flags & FD_CLOEXEC)) {
      TraceEvent("unmodelled", "a descriptor of a fake device stays open over exec");
      return;
    }
  }
}

void NoteUse(int fd) {
  if (!g_inherited.load(std::memory_order_relaxed)) return;
  {
    Table& table = TheTable();
    const std::lock_guard<std::mutex> lock(table.mutex);
    if (!(BitsOf(fd) & kFake)) return;
    const Description* description = *SlotOf(table, fd);
    if (description == nullptr || description->hold->owner == g_process) return;
    g_inherited.store(false, std::memory_order_relaxed);
  }
  TraceEvent("unmodelled",
             "a process uses a device's file that it inherited by fork: its parent does not see "
             "what it did");
}

void NoteCredentials() { g_credentials.fetch_add(1, std::memory_order_relaxed); }

}  // namespace vabi::libc

namespace vabi {

using libc::BitsOf;
using libc::kFake;

void FdTable::Install(int fd, std::shared_ptr<File> file) {
  libc::SetUpDescriptors();
  libc::NoteFakeDescriptor();
  if (fd < 0 || fd >= libc::kMaxFds) return;
  file->set_backing_fd(fd);
  libc::Table& table = libc::TheTable();
  std::unique_ptr<libc::Description> stale;
  {
    const std::lock_guard<std::mutex> lock(table.mutex);
    // Something closed the old descriptor behind our back.
    stale = libc::TakeOut(table, fd);
    const uint8_t bits = file->ReadOnly() ? kFake | libc::kReadOnly : kFake;
    *libc::SlotOf(table, fd) =
        new libc::Description{std::make_shared<libc::Hold>(std::move(file), sys::GetPid()), 1};
    if (fd >= table.end) table.end = fd + 1;
    libc::SetBits(fd, bits);
  }
}

std::shared_ptr<File> FdTable::Get(int fd) {
  if (!(BitsOf(fd) & kFake)) return nullptr;
  libc::Table& table = libc::TheTable();
  const std::lock_guard<std::mutex> lock(table.mutex);
  libc::Description* description = *libc::SlotOf(table, fd);
  if (description == nullptr) return nullptr;
  return {description->hold, description->hold->file.get()};
}

void FdTable::Remove(int fd) {
  if (!(BitsOf(fd) & kFake)) return;
  libc::Table& table = libc::TheTable();
  std::unique_ptr<libc::Description> last;
  {
    const std::lock_guard<std::mutex> lock(table.mutex);
    last = libc::TakeOut(table, fd);
  }
}

uint64_t FdTable::CredentialGeneration() {
  return libc::g_credentials.load(std::memory_order_relaxed);
}

}  // namespace vabi
