// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYS_SYS_H_
#define VABI_SHIMS_SYS_SYS_H_

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

// The real kernel, by system call: what the shim itself uses. It must never call the libc names
// that it interposes. All of these return the result, or -errno; none touches errno. Sizes and
// positions of files have 64 bits on every machine.

namespace vabi::sys {

long Syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0);

int Open(const char* path, int flags, mode_t mode = 0);
int Close(int fd);
ssize_t Read(int fd, void* buffer, size_t size);
ssize_t Write(int fd, const void* buffer, size_t size);
int Fstat(int fd, struct ::stat64* out);
// fstatat: `flags` as there.
int StatAt(int dirfd, const char* path, struct ::stat64* out, int flags = 0);
ssize_t ReadAt(int fd, void* buffer, size_t size, uint64_t offset);
ssize_t WriteAt(int fd, const void* buffer, size_t size, uint64_t offset);
int EventFd(unsigned int initial, int flags);
int MemfdCreate(const char* name, unsigned int flags);
int Ftruncate(int fd, uint64_t size);
// The address, or -errno (as a value in the last page of the address space: use IsError).
void* Mmap(void* address, size_t length, int protection, int flags, int fd, int64_t offset);
int Munmap(void* address, size_t length);
inline bool IsError(const void* address) {
  return reinterpret_cast<uintptr_t>(address) >= static_cast<uintptr_t>(-4095);
}
inline int ErrorOf(const void* address) {
  return static_cast<int>(reinterpret_cast<intptr_t>(address));
}
int Poll(int fd, short events, int timeout_ms);
// `shared`: the word may stand in memory that processes share.
int FutexWait(const uint32_t* word, uint32_t expected, int64_t timeout_ns, bool shared = false);
int FutexWake(const uint32_t* word, int count, bool shared = false);
uint64_t MonotonicNs();
int GetPid();
int GetTid();

// copy_from_user and copy_to_user: 0, or -EFAULT when any byte cannot be reached. Never a signal.
int CopyFromUser(void* to, uint64_t from, size_t size);
int CopyToUser(uint64_t to, const void* from, size_t size);
// True when [address, address + size) may be read (and written, when `write`): what ib_umem_get
// would pin.
bool UserRangeMapped(uint64_t address, uint64_t size, bool write);

}  // namespace vabi::sys

#endif  // VABI_SHIMS_SYS_SYS_H_
