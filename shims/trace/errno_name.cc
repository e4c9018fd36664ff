// SPDX-License-Identifier: BSD-2-Clause
#include "shims/trace/errno_name.h"

#include <errno.h>

namespace vabi::trace {
namespace {

struct Row {
  int error;
  const char* name;
};

constexpr Row kRows[] = {
#define ROW(name) \
  { name, #name }
    ROW(EPERM),    ROW(ENOENT),          ROW(ESRCH),        ROW(EINTR),       ROW(EIO),
    ROW(ENXIO),    ROW(E2BIG),           ROW(EBADF),        ROW(ECHILD),      ROW(EAGAIN),
    ROW(ENOMEM),   ROW(EACCES),          ROW(EFAULT),       ROW(EBUSY),       ROW(EEXIST),
    ROW(ENODEV),   ROW(ENOTDIR),         ROW(EINVAL),       ROW(EMFILE),      ROW(ENOTTY),
    ROW(EFBIG),    ROW(ENOSPC),          ROW(ESPIPE),       ROW(EROFS),       ROW(EPIPE),
    ROW(ERANGE),   ROW(ENOSYS),          ROW(ENODATA),      ROW(EPROTO),      ROW(EOVERFLOW),
    ROW(EMSGSIZE), ROW(EPROTONOSUPPORT), ROW(EOPNOTSUPP),   ROW(ENETUNREACH), ROW(ECONNRESET),
    ROW(ENOBUFS),  ROW(ETIMEDOUT),       ROW(EHOSTUNREACH), ROW(EALREADY),    ROW(EXFULL),
#undef ROW
};

}  // namespace

const char* ErrnoName(int error) {
  for (const Row& row : kRows) {
    if (row.error == error) return row.name;
  }
  return nullptr;
}

}  // namespace vabi::trace
