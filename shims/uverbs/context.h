// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_CONTEXT_H_
#define VABI_SHIMS_UVERBS_CONTEXT_H_

#include <cstdint>
#include <span>

#include "shims/uverbs/call.h"

namespace vabi {

// uverbs_cmd.c:ib_init_ucontext: the file's context, once.
int InitContext(Call& call);
// ib_get_ucaps: the capabilities that the caller's descriptors stand for. No world has any.
int CheckCapabilities(Call& call, std::span<const int32_t> descriptors);

// capable() of the user whom the world names: of CAP_NET_RAW (rdma_uattrs_has_raw_cap),
// CAP_IPC_LOCK and whatever else a driver asks for. root has all of them, others none.
bool HasCapabilities(const World& world);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_CONTEXT_H_
