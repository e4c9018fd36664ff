// SPDX-License-Identifier: BSD-2-Clause
#include "found.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace journey {
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

void TellFound(ibv_device** list, int count) {
  for (int i = 0; i < count; ++i) Tell(list[i]);
  std::printf("{\"count\": %d}\n", count);
  std::fflush(stdout);
}

}  // namespace journey
