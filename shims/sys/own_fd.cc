// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sys/own_fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>

#include "shims/sys/sys.h"

namespace vabi::sys {
namespace {

// The kernel's table of descriptors grows with the highest number; to this it costs little.
constexpr rlim64_t kHighest = 4096;
constexpr rlim64_t kSpare = 8;

long Limit(const rlimit64* wanted, rlimit64* now) {
  return Syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, reinterpret_cast<long>(wanted),
                 reinterpret_cast<long>(now));
}

int Duplicate(int fd, rlim64_t from) {
  return static_cast<int>(Syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, static_cast<long>(from)));
}

// Beyond the limit: it says which numbers are given out, not which are in use.
int DuplicateBeyond(int fd, const rlimit64& limit) {
  rlimit64 raised = limit;
  raised.rlim_cur += kSpare;
  raised.rlim_max = std::max(raised.rlim_max, raised.rlim_cur);  // root's privilege
  if (Limit(&raised, nullptr) != 0) return -1;
  const int high = Duplicate(fd, limit.rlim_cur);
  Limit(&limit, nullptr);
  return high;
}

}  // namespace

int MoveAside(int fd) {
  if (fd < 0) return fd;
  rlimit64 limit = {};
  if (Limit(nullptr, &limit) != 0) return fd;
  int high = limit.rlim_cur > kHighest ? Duplicate(fd, kHighest) : DuplicateBeyond(fd, limit);
  for (rlim64_t from = limit.rlim_cur; high < 0 && from > static_cast<rlim64_t>(fd) + 1; --from) {
    if (limit.rlim_cur - from > kSpare) break;
    high = Duplicate(fd, from - 1);
  }
  if (high < 0) return fd;
  Close(fd);
  return high;
}

}  // namespace vabi::sys
