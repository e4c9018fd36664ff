// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sys/sys.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#if !defined(__x86_64__) && !defined(__i386__)
#  error "shims/sys knows the system call conventions of x86_64 and i386 only"
#endif

namespace vabi::sys {
namespace {

template <typename T>
long Arg(T value) {
  return (long)value;  // NOLINT: pointers and integers alike
}

}  // namespace

// Not libc's syscall(): that one would set errno, and programs may interpose it.
#if defined(__x86_64__)
long Syscall(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#else
// The sixth argument travels in the frame pointer, which the compiler may need for itself.
long Syscall(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  const long last[2] = {number, f};
  asm volatile(
      "push %%ebp\n\t"
      "mov 4(%%eax), %%ebp\n\t"
      "mov (%%eax), %%eax\n\t"
      "int $0x80\n\t"
      "pop %%ebp"
      : "=a"(result)
      : "0"(last), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
      : "memory", "cc");
  return result;
}
#endif

int Open(const char* path, int flags, mode_t mode) {
  return static_cast<int>(Syscall(SYS_openat, AT_FDCWD, Arg(path), flags, mode));
}
int Close(int fd) { return static_cast<int>(Syscall(SYS_close, fd)); }
ssize_t Read(int fd, void* buffer, size_t size) {
  return Syscall(SYS_read, fd, Arg(buffer), Arg(size));
}
ssize_t Write(int fd, const void* buffer, size_t size) {
  return Syscall(SYS_write, fd, Arg(buffer), Arg(size));
}
#if defined(__x86_64__)
static_assert(sizeof(struct ::stat64) == sizeof(struct ::stat));
int Fstat(int fd, struct ::stat64* out) {
  return static_cast<int>(Syscall(SYS_fstat, fd, Arg(out)));
}
int StatAt(int dirfd, const char* path, struct ::stat64* out, int flags) {
  return static_cast<int>(Syscall(SYS_newfstatat, dirfd, Arg(path), Arg(out), flags));
}
ssize_t ReadAt(int fd, void* buffer, size_t size, uint64_t offset) {
  return Syscall(SYS_pread64, fd, Arg(buffer), Arg(size), Arg(offset));
}
ssize_t WriteAt(int fd, const void* buffer, size_t size, uint64_t offset) {
  return Syscall(SYS_pwrite64, fd, Arg(buffer), Arg(size), Arg(offset));
}
int Ftruncate(int fd, uint64_t size) {
  return static_cast<int>(Syscall(SYS_ftruncate, fd, Arg(size)));
}
void* Mmap(void* address, size_t length, int protection, int flags, int fd, int64_t offset) {
  return reinterpret_cast<void*>(
      Syscall(SYS_mmap, Arg(address), Arg(length), protection, flags, fd, offset));
}
#else
// 64-bit arguments come in two halves, mappings in pages (arch/x86/entry/syscalls/syscall_32.tbl).
int Fstat(int fd, struct ::stat64* out) {
  return static_cast<int>(Syscall(SYS_fstat64, fd, Arg(out)));
}
int StatAt(int dirfd, const char* path, struct ::stat64* out, int flags) {
  return static_cast<int>(Syscall(SYS_fstatat64, dirfd, Arg(path), Arg(out), flags));
}
ssize_t ReadAt(int fd, void* buffer, size_t size, uint64_t offset) {
  return Syscall(SYS_pread64, fd, Arg(buffer), Arg(size), Arg(offset), Arg(offset >> 32));
}
ssize_t WriteAt(int fd, const void* buffer, size_t size, uint64_t offset) {
  return Syscall(SYS_pwrite64, fd, Arg(buffer), Arg(size), Arg(offset), Arg(offset >> 32));
}
int Ftruncate(int fd, uint64_t size) {
  return static_cast<int>(Syscall(SYS_ftruncate64, fd, Arg(size), Arg(size >> 32)));
}
void* Mmap(void* address, size_t length, int protection, int flags, int fd, int64_t offset) {
  if ((offset & 4095) != 0) return reinterpret_cast<void*>(-EINVAL);
  return reinterpret_cast<void*>(
      Syscall(SYS_mmap2, Arg(address), Arg(length), protection, flags, fd, Arg(offset >> 12)));
}
#endif
int EventFd(unsigned int initial, int flags) {
  return static_cast<int>(Syscall(SYS_eventfd2, initial, flags));
}
int MemfdCreate(const char* name, unsigned int flags) {
  return static_cast<int>(Syscall(SYS_memfd_create, Arg(name), flags));
}
int Munmap(void* address, size_t length) {
  return static_cast<int>(Syscall(SYS_munmap, Arg(address), Arg(length)));
}

int Poll(int fd, short events, int timeout_ms) {
  pollfd one = {fd, events, 0};
  return static_cast<int>(Syscall(SYS_poll, Arg(&one), 1, timeout_ms));
}

int FutexWait(const uint32_t* word, uint32_t expected, int64_t timeout_ns, bool shared) {
  timespec timeout = {static_cast<time_t>(timeout_ns / 1000000000),
                      static_cast<long>(timeout_ns % 1000000000)};
  return static_cast<int>(Syscall(SYS_futex, Arg(word), shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE,
                                  expected, timeout_ns < 0 ? 0 : Arg(&timeout)));
}
int FutexWake(const uint32_t* word, int count, bool shared) {
  return static_cast<int>(
      Syscall(SYS_futex, Arg(word), shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, count));
}

uint64_t MonotonicNs() {
  // The vDSO's clock_gettime is not interposed and costs no system call.
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}
int GetPid() { return static_cast<int>(Syscall(SYS_getpid)); }
int GetTid() { return static_cast<int>(Syscall(SYS_gettid)); }

}  // namespace vabi::sys
