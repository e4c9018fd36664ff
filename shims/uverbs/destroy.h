// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_DESTROY_H_
#define VABI_SHIMS_UVERBS_DESTROY_H_

#include "shims/uverbs/call.h"
#include "shims/uverbs/objects.h"

namespace vabi {

// enum rdma_remove_reason
enum class RemoveReason : uint8_t {
  kDestroy,  // a command asked for it
  kClose,    // its file closes
  kAbort,    // its creation failed after the driver had made it
};

// What the kernel's destroy_object functions do: refuses while it is in use, lets the driver take
// it down, and gives back what it held. The caller then removes the object itself.
int DestroyObject(Call& call, Object& object, RemoveReason why);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_DESTROY_H_
