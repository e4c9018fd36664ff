// SPDX-License-Identifier: BSD-2-Clause
//
// Which devices libibverbs finds, and which provider takes each: no device is opened. The lines of
// journey/found.h, or
//   {"count": -1, "errno": "ENOSYS"}
// Exit 0: the list could be had, 3: not.

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "harness/cells/journey/found.h"
#include "harness/cells/journey/mapped.h"

int main() {
  int count = 0;
  errno = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) {
    std::printf("{\"count\": -1, \"errno\": \"%s\"}\n", errno != 0 ? strerrorname_np(errno) : "");
    return 3;
  }
  journey::TellFound(list, count);
  journey::TellMapped();
  ibv_free_device_list(list);
  return 0;
}
