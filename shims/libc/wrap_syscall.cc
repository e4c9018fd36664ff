// SPDX-License-Identifier: BSD-2-Clause
// System calls by number go past the other wrappers. What reads, writes, asks or maps a fake
// descriptor is served (programs that watch mappings, such as UCX, patch mmap and call the system
// by number); what else is done to one is named in the trace, so that the outcome is not taken for
// a pass.
#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstdarg>

#include "shims/libc/descriptors.h"
#include "shims/libc/mappings.h"
#include "shims/libc/originals.h"
#include "shims/libc/paths.h"

namespace {

// i386 maps in pages, reads and writes at positions that come in halves, and asks for attributes by
// other numbers.
#if defined(__i386__)
constexpr long kMmap = SYS_mmap2, kFstat = SYS_fstat64, kFstatat = SYS_fstatat64;
constexpr long kStat = SYS_stat64, kLstat = SYS_lstat64;
int64_t MapOffset(long offset) { return int64_t{static_cast<uint32_t>(offset)} * 4096; }
off64_t Position(const long* a) {
  return static_cast<off64_t>(uint64_t{static_cast<uint32_t>(a[1])} << 32 |
                              static_cast<uint32_t>(a[0]));
}
#else
constexpr long kMmap = SYS_mmap, kFstat = SYS_fstat, kFstatat = SYS_newfstatat;
constexpr long kStat = SYS_stat, kLstat = SYS_lstat;
int64_t MapOffset(long offset) { return offset; }
off64_t Position(const long* a) { return a[0]; }
#endif

// A call on a fake descriptor that is answered as its wrapper would; false: another one.
bool Served(long number, const long (&a)[6], long* result) {
  const int fd = static_cast<int>(a[number == kMmap ? 4 : 0]);
  auto* const memory = reinterpret_cast<void*>(a[1]);
  const auto size = static_cast<size_t>(a[2]);
  switch (number) {
    case SYS_read:
      return *result = wrap_read(fd, memory, size), true;
    case SYS_write:
      return *result = wrap_write(fd, memory, size), true;
    case SYS_readv:
      return *result = wrap_readv(fd, static_cast<struct ::iovec*>(memory), static_cast<int>(size)),
             true;
    case SYS_writev:
      return *result =
                 wrap_writev(fd, static_cast<struct ::iovec*>(memory), static_cast<int>(size)),
             true;
    case SYS_pread64:
      return *result = wrap_pread64(fd, memory, size, Position(a + 3)), true;
    case SYS_pwrite64:
      return *result = wrap_pwrite64(fd, memory, size, Position(a + 3)), true;
    case SYS_ioctl:
      return *result = wrap_ioctl(fd, static_cast<unsigned long>(a[1]), a[2]), true;
    case kMmap:
      return *result = reinterpret_cast<long>(vabi::libc::MmapFake(
                 reinterpret_cast<void*>(a[0]), static_cast<size_t>(a[1]), static_cast<int>(a[2]),
                 static_cast<int>(a[3]), fd, MapOffset(a[5]))),
             true;
    default:
      return false;
  }
}

// A call that changes pages of a device as its wrapper would; false: another one.
bool ChangesDevicePages(long number, const long (&a)[6], long* result) {
  using namespace vabi::libc;  // NOLINT: this file defines libc's names
  const auto address = static_cast<uintptr_t>(a[0]);
  const auto size = static_cast<size_t>(a[1]);
  const auto option = static_cast<int>(a[2]);
  if (number == SYS_mremap) {
    const auto target = static_cast<uintptr_t>(a[4]);
    const bool fixed = (a[3] & MREMAP_FIXED) != 0;
    const auto new_size = static_cast<size_t>(a[2]);
    if (!MayMapDevice(address, size + 1) && !(fixed && MayMapDevice(target, new_size)))
      return false;
    *result = MremapDevice(address, size, new_size, static_cast<int>(a[3]), target);
    return true;
  }
  if (number != SYS_munmap && number != SYS_mprotect && number != SYS_madvise) return false;
  if (!MayMapDevice(address, size)) return false;
  *result = number == SYS_munmap     ? MunmapDevice(address, size)
            : number == SYS_mprotect ? MprotectDevice(address, size, option)
                                     : MadviseDevice(address, size, option);
  return true;
}

// Which argument is a descriptor that may be ours; -1: none.
int DescriptorArgument(long number) {
  switch (number) {
    case SYS_read:
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_ioctl:
    case kFstat:
    case SYS_sendmsg:
    case SYS_recvmsg:
    case SYS_sendmmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_recvfrom:
    case SYS_dup:
    case SYS_dup2:
    case SYS_dup3:
      return 0;
    case kMmap:
      return 4;
    default:
      return -1;
  }
}

// Which argument is a path that may be ours, with its folder's descriptor right before it; -1:
// none.
int PathArgument(long number) {
  switch (number) {
    case SYS_open:
    case kStat:
    case kLstat:
    case SYS_access:
    case SYS_readlink:
    case SYS_execve:
    case SYS_chmod:
    case SYS_chown:
    case SYS_lchown:
    case SYS_truncate:
    case SYS_utime:
    case SYS_utimes:
    case SYS_setxattr:
    case SYS_lsetxattr:
    case SYS_mkdir:
    case SYS_mknod:
    case SYS_rmdir:
    case SYS_unlink:
    case SYS_rename:
    case SYS_link:
      return 0;
    case SYS_openat:
    case SYS_openat2:
    case kFstatat:
    case SYS_statx:
    case SYS_faccessat:
    case SYS_faccessat2:
    case SYS_readlinkat:
    case SYS_execveat:
    case SYS_fchmodat:
    case SYS_fchownat:
    case SYS_utimensat:
    case SYS_mkdirat:
    case SYS_mknodat:
    case SYS_unlinkat:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_linkat:
      return 1;
    default:
      return -1;
  }
}

bool IsOurPath(int dirfd, const char* path) {
  using namespace vabi::libc;  // NOLINT: this file defines libc's names
  if (!MayConcern(dirfd, path)) return false;
  Located where;
  Locate(dirfd, path, &where);
  return where.kind != Located::Kind::kNative;
}

}  // namespace

long wrap_syscall(long number, ...) {
  using namespace vabi::libc;  // NOLINT: this file defines libc's names
  long a[6];
  va_list list;
  va_start(list, number);
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  if (VABI_LIKELY(!Active())) {
    return original::syscall()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  }
  const int at = DescriptorArgument(number), path = PathArgument(number);
  long changed;
  if (at >= 0 && (BitsOf(static_cast<int>(a[at])) & kFake) != 0) {
    long result;
    if (Served(number, a, &result)) return result;
    TraceEvent("not_intercepted", "a raw system call on a fake descriptor");
  } else if (path >= 0 && IsOurPath(path == 0 ? AT_FDCWD : static_cast<int>(a[0]),
                                    reinterpret_cast<const char*>(a[path]))) {
    TraceEvent("not_intercepted", "a raw system call on a path of the fake kernel");
  } else if (number == SYS_socket && a[0] == AF_NETLINK && a[2] == NETLINK_RDMA) {
    TraceEvent("not_intercepted", "a raw system call for a socket of RDMA netlink");
  } else if (number == SYS_io_uring_setup) {
    TraceEvent("not_intercepted", "io_uring: what its requests do to fake files is not seen");
  } else if (ChangesDevicePages(number, a, &changed)) {
    if (changed >= 0 || changed < -4095) return changed;
    errno = static_cast<int>(-changed);
    return -1;
  } else if (number == SYS_close) {
    return wrap_close(static_cast<int>(a[0]));
  } else if (number == SYS_close_range) {
    return wrap_close_range(static_cast<unsigned>(a[0]), static_cast<unsigned>(a[1]),
                            static_cast<int>(a[2]));
  }
  return original::syscall()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
