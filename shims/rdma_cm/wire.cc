// SPDX-License-Identifier: BSD-2-Clause
#include "shims/rdma_cm/wire.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "shims/sys/own_fd.h"
#include "shims/sys/sys.h"

namespace vabi::rdma_cm {
namespace {

constexpr uint32_t kMagic = 0x6d635657;  // and this form of Message
constexpr int kLookMs = 100;             // how often processes are looked after
constexpr size_t kMaxHolders = 256;      // of one process

struct Packet {
  uint32_t magic = kMagic;
  uint32_t size = sizeof(Message);
  Message message;
};

std::mutex watch_mutex;

long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  return sys::Syscall(number, a, b, c, d, e, f);
}
long Pointer(const void* pointer) { return reinterpret_cast<long>(pointer); }

// An abstract name: the world's run folder and the process.
socklen_t NameOf(const char* folder, int process, struct sockaddr_un* name) {
  uint64_t digest = 0xcbf29ce484222325ULL;
  for (const char* c = folder; *c != '\0'; ++c)
    digest = (digest ^ static_cast<uint8_t>(*c)) * 0x100000001b3ULL;
  *name = {};
  name->sun_family = AF_UNIX;
  const int length =
      std::snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "verbs-abi-cm-%016llx-%d",
                    static_cast<unsigned long long>(digest), process);
  return static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + 1 +
                                static_cast<size_t>(length));
}

void HolderPath(const char* folder, int process, const char* suffix, char (&path)[340]) {
  std::snprintf(path, sizeof(path), "%s/cm.%d%s", folder, process, suffix);
}

}  // namespace

void Wire::Start(const char* run_dir, void (*receive)(const Message&)) {
  if (started() || run_dir[0] == '\0') return;
  const long made = Call(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (made < 0) return;
  const int fd = sys::MoveAside(static_cast<int>(made));
  struct sockaddr_un name;
  const socklen_t length = NameOf(run_dir, sys::GetPid(), &name);
  if (Call(SYS_bind, fd, Pointer(&name), length) < 0) {
    sys::Close(fd);
    return;
  }
  std::snprintf(folder_, sizeof(folder_), "%s", run_dir);
  receive_ = receive;
  socket_ = fd;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, RunThread, this) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void* Wire::RunThread(void* self) {
  static_cast<Wire*>(self)->Run();
  return nullptr;
}

void Wire::Run() {
  Packet packet;
  uint64_t looked = sys::MonotonicNs();
  for (;;) {
    const int ready = sys::Poll(socket_, POLLIN, kLookMs);
    if (ready == -EBADF || ready == -EINVAL) return;
    if (ready == 1) {
      const long got =
          Call(SYS_recvfrom, socket_, Pointer(&packet), sizeof(packet), MSG_DONTWAIT, 0, 0);
      if (got == -EBADF || got == -ENOTSOCK) return;  // the program closed it
      if (got == sizeof(packet) && packet.magic == kMagic && packet.size == sizeof(Message) &&
          packet.message.kind != MessageKind::kPing) {
        receive_(packet.message);
      }
    }
    const uint64_t now = sys::MonotonicNs();
    if (now - looked < kLookMs * 1000000ULL) continue;
    looked = now;
    std::vector<int> processes;
    {
      std::lock_guard lock(watch_mutex);
      processes = watched_;
    }
    Message ping;
    for (const int process : processes) {
      if (!Send(process, ping)) gone_(process);
    }
  }
}

bool Wire::Send(int process, const Message& message) {
  if (!started()) return false;
  struct sockaddr_un name;
  const socklen_t length = NameOf(folder_, process, &name);
  Packet packet;
  packet.message = message;
  // A full queue empties soon: its reader does nothing but read.
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    const long sent = Call(SYS_sendto, socket_, Pointer(&packet), sizeof(packet),
                           MSG_DONTWAIT | MSG_NOSIGNAL, Pointer(&name), length);
    if (sent == sizeof(packet)) return true;
    if (sent != -EAGAIN && sent != -EINTR) return false;
    if (message.kind == MessageKind::kPing) return true;
    const uint32_t nobody = 0;
    sys::FutexWait(&nobody, 0, 1000000);
  }
  return true;
}

void Wire::Publish(const std::vector<PortHolder>& held) {
  if (!started()) return;
  char path[340], draft[340];
  HolderPath(folder_, sys::GetPid(), "", path);
  if (held.empty()) {
    Call(SYS_unlink, Pointer(path));
    return;
  }
  HolderPath(folder_, sys::GetPid(), ".new", draft);
  const int fd = sys::Open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const size_t count = std::min(held.size(), kMaxHolders);
  sys::Write(fd, held.data(), count * sizeof(PortHolder));
  sys::Close(fd);
  Call(SYS_rename, Pointer(draft), Pointer(path));
}

std::vector<PortHolder> Wire::Others() const {
  std::vector<PortHolder> others;
  if (!started()) return others;
  const int folder = sys::Open(folder_, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return others;
  alignas(8) char entries[4096];
  for (long got; (got = Call(SYS_getdents64, folder, Pointer(entries), sizeof(entries))) > 0;) {
    for (long at = 0; at < got;) {
      // struct linux_dirent64: inode, offset, length, type, name
      uint16_t length;
      std::memcpy(&length, entries + at + 16, sizeof(length));
      const char* name = entries + at + 19;
      at += length;
      int process = 0, end = 0;
      if (std::sscanf(name, "cm.%d%n", &process, &end) != 1 || name[end] != '\0') continue;
      if (process == sys::GetPid()) continue;
      char path[340];
      HolderPath(folder_, process, "", path);
      Message ping;
      if (!const_cast<Wire*>(this)->Send(process, ping)) {
        Call(SYS_unlink, Pointer(path));  // its process is gone
        continue;
      }
      const int fd = sys::Open(path, O_RDONLY | O_CLOEXEC);
      if (fd < 0) continue;
      PortHolder holder;
      for (size_t i = 0; i < kMaxHolders; ++i) {
        if (sys::Read(fd, &holder, sizeof(holder)) != sizeof(holder)) break;
        others.push_back(holder);
      }
      sys::Close(fd);
    }
  }
  sys::Close(folder);
  return others;
}

void Wire::Watch(std::vector<int> processes, void (*gone)(int process)) {
  std::lock_guard lock(watch_mutex);
  watched_ = std::move(processes);
  gone_ = gone;
}

void Wire::Forget() {
  if (socket_ >= 0) sys::Close(socket_);
  socket_ = -1;
  watched_.clear();
}

}  // namespace vabi::rdma_cm
