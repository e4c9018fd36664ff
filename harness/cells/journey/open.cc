// SPDX-License-Identifier: BSD-2-Clause
#include "open.h"

#include <cerrno>
#include <cstring>

#include "found.h"
#include "step.h"

namespace journey {

ibv_context* Open(const char* wanted) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (!Must("device_list", list != nullptr, errno)) return nullptr;
  Value("devices", static_cast<uint64_t>(count));
  TellFound(list, count);
  ibv_context* context = nullptr;
  bool found = false;
  for (int i = 0; i < count && !found; ++i) {
    if (wanted != nullptr && strcmp(ibv_get_device_name(list[i]), wanted) != 0) continue;
    found = true;
    errno = 0;
    context = ibv_open_device(list[i]);
    Must("open_device", context != nullptr, errno, ibv_get_device_name(list[i]));
  }
  if (!found) Must("find_device", false, ENODEV, wanted);
  ibv_free_device_list(list);
  return context;
}

}  // namespace journey
