// SPDX-License-Identifier: BSD-2-Clause
//
// Which devices libibverbs finds, and which provider takes each: no device is opened. One JSON
// object a line:
//   {"device": "mlx5_0", "node": "uverbs0", "provider": "mlx5", "library": "libmlx5.so.1.24.44.0",
//   "node_type": 1,
//    "transport": 0, "guid": "0200c0fffe000100"}
//   {"count": 1}      {"count": -1, "errno": "ENOSYS"}
// Exit 0: the list could be had, 3: not.

#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "harness/cells/journey/mapped.h"

namespace {

// libibverbs/driver.h: struct verbs_device starts with the public device, then a pointer to the
// provider's verbs_device_ops, whose first member is its name; so in every release since v15.
struct ProviderOps {
  const char* name;
};
struct VerbsDevice {
  ibv_device device;
  const ProviderOps* ops;
};

const char* BaseName(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

void Tell(ibv_device* device) {
  const ProviderOps* ops = reinterpret_cast<const VerbsDevice*>(device)->ops;
  Dl_info from = {};
  const char* library =
      dladdr(ops, &from) != 0 && from.dli_fname != nullptr ? BaseName(from.dli_fname) : "";
  const uint64_t guid = be64toh(ibv_get_device_guid(device));
  std::printf(
      "{\"device\": \"%s\", \"node\": \"%s\", \"provider\": \"%s\", \"library\": \"%s\", "
      "\"node_type\": %d, "
      "\"transport\": %d, \"guid\": \"%016llx\"}\n",
      ibv_get_device_name(device), device->dev_name, ops->name, library, device->node_type,
      device->transport_type, static_cast<unsigned long long>(guid));
}

}  // namespace

int main() {
  int count = 0;
  errno = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) {
    std::printf("{\"count\": -1, \"errno\": \"%s\"}\n", errno != 0 ? strerrorname_np(errno) : "");
    return 3;
  }
  for (int i = 0; i < count; ++i) Tell(list[i]);
  std::printf("{\"count\": %d}\n", count);
  journey::TellMapped();
  ibv_free_device_list(list);
  return 0;
}
