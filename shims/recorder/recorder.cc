// SPDX-License-Identifier: BSD-2-Clause
#include "shims/recorder/recorder.h"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shims/recorder/originals.h"
#include "shims/sys/sys.h"
#include "shims/trace/trace.h"

namespace vabi::recorder {
namespace {

constexpr int kMaxFds = 1 << 16;
constexpr size_t kMaxDevices = 256;  // of one process; more have no name in the trace

std::atomic<Kind> g_kinds[kMaxFds];
std::atomic<uint8_t> g_device_of[kMaxFds];  // index of g_devices, + 1
char g_devices[kMaxDevices][64];            // "rxe0"; filled in order, never changed
std::atomic<size_t> g_device_count{0};

enum class State : uint8_t { kUnknown, kStarting, kOff, kOn };
std::atomic<State> g_state{State::kUnknown};

void SayWhere() {
  struct utsname name;
  char text[512], program[128] = "";
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length > 0) program[length] = '\0';
  if (uname(&name) != 0) return;
  std::snprintf(text, sizeof text, "%s on %s %s %s", program, name.sysname, name.release,
                name.machine);
  trace::Event("recording", text);
}

// The first line of a file; "" when there is none.
void FirstLine(const char* path, char* to, size_t room) {
  to[0] = '\0';
  const int fd = original::open()(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t size = original::read()(fd, to, room - 1);
  original::close()(fd);
  to[size > 0 ? size : 0] = '\0';
  to[std::strcspn(to, "\n")] = '\0';
}

// The RDMA device behind /dev/infiniband/uverbsN: index + 1, 0 when that cannot be told.
uint8_t DeviceBehind(const char* node) {
  char path[128], name[64];
  std::snprintf(path, sizeof path, "/sys/class/infiniband_verbs/%.32s/ibdev", node);
  FirstLine(path, name, sizeof name);
  if (name[0] == '\0') return 0;
  const size_t count = std::min(g_device_count.load(std::memory_order_acquire), kMaxDevices - 1);
  for (size_t i = 0; i < count; ++i) {
    if (std::strcmp(g_devices[i], name) == 0) return static_cast<uint8_t>(i + 1);
  }
  const size_t index = g_device_count.fetch_add(1);
  if (index >= kMaxDevices - 1) return 0;
  std::strcpy(g_devices[index], name);
  return static_cast<uint8_t>(index + 1);
}

const char* DeviceName(uint8_t number) { return number == 0 ? "" : g_devices[number - 1]; }

void Set(int fd, Kind kind, uint8_t device) {
  if (fd < 0 || fd >= kMaxFds) return;
  g_device_of[fd].store(device, std::memory_order_relaxed);
  g_kinds[fd].store(kind, std::memory_order_release);
}

constexpr char kFolder[] = "/dev/infiniband/";

}  // namespace

Kind KindOf(int fd) {
  if (static_cast<unsigned>(fd) >= static_cast<unsigned>(kMaxFds)) return Kind::kNone;
  return g_kinds[fd].load(std::memory_order_acquire);
}

bool Recording() {
  State state = g_state.load(std::memory_order_acquire);
  if (__builtin_expect(state == State::kOn || state == State::kOff, 1)) return state == State::kOn;
  State unknown = State::kUnknown;
  // Another thread, or this one through a function that it calls: nothing is recorded meanwhile.
  if (!g_state.compare_exchange_strong(unknown, State::kStarting)) return false;
  const KeepErrno keep;
  trace::Open(std::getenv("VERBS_ABI_RECORD"));
  g_state.store(trace::Enabled() ? State::kOn : State::kOff, std::memory_order_release);
  return trace::Enabled();
}

void Opened(const char* path, int fd) {
  const KeepErrno keep;
  char seen[256];
  std::snprintf(seen, sizeof seen, "%s", path);
  if (fd >= 0) {
    // By whatever name it was opened: /dev/char/MAJOR:MINOR is a link.
    char link[64];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, seen, sizeof seen - 1);
    if (length <= 0) return;
    seen[length] = '\0';
  }
  if (std::strncmp(seen, kFolder, sizeof kFolder - 1) != 0) return;
  const char* node = seen + sizeof kFolder - 1;
  if (node[0] == '\0') return;
  const bool verbs = std::strncmp(node, "uverbs", 6) == 0;
  static std::atomic<bool> told{false};
  if (!told.exchange(true)) SayWhere();
  const uint8_t device = verbs ? DeviceBehind(node) : 0;
  if (fd >= 0 && verbs) Set(fd, Kind::kDevice, device);
  trace::Record record;
  record.front_end = trace::FrontEnd::kOpen;
  record.device = DeviceName(device);
  std::snprintf(record.name, sizeof record.name, "open");
  record.result = fd >= 0 ? 0 : -keep.saved();
  trace::Write(record);
}

void NewSocket(int fd) { Set(fd, Kind::kNetlink, 0); }

void Duplicated(int from, int to) {
  if (from == to) return;
  const Kind kind = KindOf(from);
  if (kind != Kind::kNone) {
    Set(to, kind, g_device_of[from].load(std::memory_order_relaxed));
  } else if (KindOf(to) != Kind::kNone) {
    Set(to, Kind::kNone, 0);
  }
}

void Closed(int fd) { Set(fd, Kind::kNone, 0); }

Crossing::Crossing(int fd) : fd_(fd) {
  record_.start_ns = sys::MonotonicNs();
  record_.device = DeviceName(g_device_of[fd].load(std::memory_order_relaxed));
}

void Crossing::Read() {
  record_.front_end = trace::FrontEnd::kRead;
  std::snprintf(record_.name, sizeof record_.name, "%s",
                KindOf(fd_) == Kind::kCompletionEvents ? "read:comp_event" : "read:async_event");
}

void Crossing::Write(const void* user, size_t size) { DescribeWrite(user, size, &record_, &made_); }

void Crossing::Ioctl(unsigned long request, const void* argument) {
  DescribeIoctl(request, argument, &record_, &made_);
}

void Crossing::Mmap(uint64_t offset) {
  record_.front_end = trace::FrontEnd::kMmap;
  std::snprintf(record_.name, sizeof record_.name, "mmap");
  record_.has_flags = true;
  record_.flags = offset;
}

void Crossing::Answered(long result) {
  const KeepErrno keep;
  record_.result = result == -1 ? -keep.saved() : result;
  if (result != -1 && made_.kind != NewFile::Kind::kNone) {
    int fd = -1;
    if (sys::CopyFromUser(&fd, made_.address, sizeof fd) == 0) {
      Set(fd,
          made_.kind == NewFile::Kind::kCompletionEvents ? Kind::kCompletionEvents
                                                         : Kind::kAsyncEvents,
          g_device_of[fd_].load(std::memory_order_relaxed));
    }
  }
  trace::Write(record_);
}

}  // namespace vabi::recorder
