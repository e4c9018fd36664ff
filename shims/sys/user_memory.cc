// SPDX-License-Identifier: BSD-2-Clause
// copy_from_user and copy_to_user inside one process. The caller's memory may be bad: a kernel
// answers EFAULT then, so it is reached by process_vm_readv/writev, which do the same. Two short
// cuts:
//  - memory between the current frame and the end of this thread's stack is there for certain.
//  Nearly all
//    requests that libibverbs makes stand on the stack, and a system call less is 200 ns less;
//  - where process_vm_* is forbidden (seccomp), a memfd takes the bytes: write() and read() answer
//  EFAULT too.
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>

#include "shims/sys/sys.h"
#include "shims/sys/user_space.h"

extern "C" void* __libc_stack_end;  // highest address of the main thread's stack (ld.so)

namespace vabi::sys {
namespace {

constexpr uintptr_t kPage = 4096;
// How far from the current frame an address may lie to be taken for this thread's stack. Small,
// because a coroutine's stack ends before the thread's does.
constexpr uintptr_t kStackWindow = 16384;
// Addresses from here on are the kernel's (access_ok): also for 32-bit processes, which a 64-bit
// kernel serves (arch/x86/include/asm/uaccess.h), though they can have nothing beyond 4 GiB.
constexpr uint64_t kUserEnd = 0x7ffffffff000;

void* UserPointer(uint64_t address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

// Does all of it have an address in this process? A 32-bit one that sends a pointer with its sign
// extended names memory that it has not got.
bool HasAddresses(uint64_t address, uint64_t size) {
  return InUserSpace(address, size) && (address + size - 1) >> 1 <= UINTPTR_MAX >> 1;
}

bool OnThisStack(uint64_t address, size_t size) {
  const uintptr_t here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (address < here || size > kStackWindow || address - here > kStackWindow - size) return false;
  const uintptr_t main_end = reinterpret_cast<uintptr_t>(__libc_stack_end);
  const uintptr_t thread =
      static_cast<uintptr_t>(pthread_self());  // glibc: above the thread's stack
  const uintptr_t end = thread > here ? thread : main_end;
  return address + size <= end;
}

// Own process id, without a system call each time; a page that fork() wipes tells the child to ask
// anew.
int CachedPid() {
  static std::atomic<std::atomic<int>*> page{nullptr};
  std::atomic<int>* cell = page.load(std::memory_order_acquire);
  if (cell == nullptr) {
    void* fresh = Mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (IsError(fresh)) return GetPid();
#ifndef MADV_WIPEONFORK
#  define MADV_WIPEONFORK 18
#endif
    if (Syscall(SYS_madvise, reinterpret_cast<long>(fresh), kPage, MADV_WIPEONFORK) != 0) {
      Munmap(fresh, kPage);
      return GetPid();
    }
    std::atomic<int>* expected = nullptr;
    auto* made = static_cast<std::atomic<int>*>(fresh);
    if (page.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) {
      cell = made;
    } else {
      Munmap(fresh, kPage);
      cell = expected;
    }
  }
  int pid = cell->load(std::memory_order_relaxed);
  if (pid == 0) {
    pid = GetPid();
    cell->store(pid, std::memory_order_relaxed);
  }
  return pid;
}

int ThroughMemfd(bool to_user, uint64_t user, void* own, size_t size) {
  const int fd = MemfdCreate("copy", MFD_CLOEXEC);
  if (fd < 0) return -EFAULT;
  void* const theirs = UserPointer(user);
  const auto length = static_cast<ssize_t>(size);
  const bool good = WriteAt(fd, to_user ? own : theirs, size, 0) == length &&
                    ReadAt(fd, to_user ? theirs : own, size, 0) == length;
  Close(fd);
  return good ? 0 : -EFAULT;
}

std::atomic<bool> process_vm_forbidden{false};

int Transfer(bool to_user, uint64_t user, void* own, size_t size) {
  if (size == 0) return 0;
  if (!HasAddresses(user, size)) return -EFAULT;
  if (process_vm_forbidden.load(std::memory_order_relaxed)) {
    return ThroughMemfd(to_user, user, own, size);
  }
  iovec local = {own, size};
  iovec remote = {UserPointer(user), size};
  const long number = to_user ? SYS_process_vm_writev : SYS_process_vm_readv;
  const long done = Syscall(number, CachedPid(), reinterpret_cast<long>(&local), 1,
                            reinterpret_cast<long>(&remote), 1, 0);
  if (done == static_cast<long>(size)) return 0;
  if (done == -EPERM || done == -ENOSYS || done == -ESRCH) {
    process_vm_forbidden.store(true, std::memory_order_relaxed);
    return ThroughMemfd(to_user, user, own, size);
  }
  return -EFAULT;
}

// One line of /proc/self/maps at a time: "start-end perms …".
class MapsReader {
 public:
  MapsReader() : fd_(Open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  ~MapsReader() {
    if (fd_ >= 0) Close(fd_);
  }
  bool Next(uint64_t* start, uint64_t* end, bool* readable, bool* writable) {
    *start = *end = 0;
    int c;
    while ((c = Byte()) >= 0 && c != '-') *start = *start * 16 + Hex(c);
    if (c < 0) return false;
    while ((c = Byte()) >= 0 && c != ' ') *end = *end * 16 + Hex(c);
    *readable = Byte() == 'r';
    *writable = Byte() == 'w';
    while (c >= 0 && c != '\n') c = Byte();
    return c >= 0;
  }

 private:
  static uint64_t Hex(int c) { return static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10); }
  int Byte() {
    if (at_ == filled_) {
      if (fd_ < 0) return -1;
      const ssize_t got = Read(fd_, buffer_, sizeof(buffer_));
      if (got <= 0) return -1;
      at_ = 0;
      filled_ = static_cast<size_t>(got);
    }
    return static_cast<unsigned char>(buffer_[at_++]);
  }

  int fd_;
  size_t at_ = 0, filled_ = 0;
  char buffer_[4096];
};

bool MappedByMaps(uint64_t address, uint64_t end, bool write) {
  MapsReader maps;
  uint64_t from, to;
  bool readable, writable;
  while (maps.Next(&from, &to, &readable, &writable)) {
    if (to <= address) continue;
    if (from > address) return false;
    if (!(write ? writable : readable)) return false;
    address = to;
    if (address >= end) return true;
  }
  return false;
}

}  // namespace

int CopyFromUser(void* to, uint64_t from, size_t size) {
  if (OnThisStack(from, size)) {
    memcpy(to, UserPointer(from), size);
    return 0;
  }
  return Transfer(false, from, to, size);
}

int CopyToUser(uint64_t to, const void* from, size_t size) {
  if (OnThisStack(to, size)) {
    memcpy(UserPointer(to), from, size);
    return 0;
  }
  return Transfer(true, to, const_cast<void*>(from), size);
}

bool InUserSpace(uint64_t address, uint64_t size) {
  return address <= kUserEnd && size <= kUserEnd - address;
}

bool UserRangeMapped(uint64_t address, uint64_t size, bool write) {
  if (size == 0) return true;
  if (!HasAddresses(address, size)) return false;
  const uint64_t first = address & ~(kPage - 1);
  const uint64_t end = (address + size + kPage - 1) & ~(kPage - 1);
  // Small ranges: fault them in, as pinning does (Linux 5.14 and later).
  constexpr uint64_t kSmall = 2u << 20;
  if (end - first <= kSmall) {
#ifndef MADV_POPULATE_READ
#  define MADV_POPULATE_READ 22
#  define MADV_POPULATE_WRITE 23
#endif
    const long answer =
        Syscall(SYS_madvise, static_cast<long>(first), static_cast<long>(end - first),
                write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    if (answer == 0) return true;
    if (answer == -EFAULT || answer == -ENOMEM) return false;
  }
  return MappedByMaps(first, end, write);
}

}  // namespace vabi::sys
