// SPDX-License-Identifier: BSD-2-Clause
//
// An application of the release whose headers it is built with, and of no older one: it refers to a
// function of each of that release's version nodes (matrix/symbols says which node has which).
// Beside an older libibverbs it must not start, and the dynamic linker must say which versions are
// missing. Where it starts, it opens a device and registers memory by the newest call.

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>

#include "harness/cells/journey/mapped.h"
#include "harness/cells/journey/step.h"

namespace {

using journey::Must;

// One of each node: IBVERBS_1.8, then 1.11 to 1.18.
void* const kNewest[] = {
    reinterpret_cast<void*>(&ibv_reg_mr_iova2),
    reinterpret_cast<void*>(&_ibv_query_gid_table),
    reinterpret_cast<void*>(&ibv_reg_dmabuf_mr),
    reinterpret_cast<void*>(&ibv_is_fork_initialized),
    reinterpret_cast<void*>(&ibv_query_qp_data_in_order),
    reinterpret_cast<void*>(&ibv_alloc_dmah),
    reinterpret_cast<void*>(&ibv_query_port_speed),
    reinterpret_cast<void*>(&ibv_alloc_buf),
    reinterpret_cast<void*>(&ibv_create_comp_cntr),
};

void Register(ibv_context* context) {
  alignas(4096) static char bytes[4096];
  ibv_pd* pd = ibv_alloc_pd(context);
  if (!Must("alloc_pd", pd != nullptr, errno)) return;
  ibv_mr_init_attr attr = {};
  attr.length = sizeof bytes;
  attr.access = IBV_ACCESS_LOCAL_WRITE;
  attr.comp_mask = IBV_REG_MR_MASK_ADDR;
  attr.addr = bytes;
  errno = 0;
  ibv_mr* mr = ibv_reg_mr_ex(pd, &attr);
  if (Must("reg_mr_ex", mr != nullptr && mr->addr == bytes && mr->length == sizeof bytes, errno)) {
    Must("dereg_mr", ibv_dereg_mr(mr) == 0);
  }
  Must("dealloc_pd", ibv_dealloc_pd(pd) == 0);
}

ibv_context* Open() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (!Must("device_list", list != nullptr, errno)) return nullptr;
  ibv_context* context = nullptr;
  if (Must("find_device", count > 0, ENODEV)) {
    context = ibv_open_device(list[0]);
    Must("open_device", context != nullptr, errno, ibv_get_device_name(list[0]));
  }
  ibv_free_device_list(list);
  return context;
}

}  // namespace

int main() {
  bool bound = true;
  for (void* const volatile& function : kNewest) bound = bound && function != nullptr;
  Must("symbols", bound);
  ibv_context* context = Open();
  journey::TellMapped();
  if (context == nullptr) return 3;
  Register(context);
  Must("close_device", ibv_close_device(context) == 0);
  return journey::Failures() == 0 ? 0 : 1;
}
