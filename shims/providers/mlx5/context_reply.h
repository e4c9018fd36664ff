// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_CONTEXT_REPLY_H_
#define VABI_SHIMS_PROVIDERS_MLX5_CONTEXT_REPLY_H_

#include "shims/providers/mlx5/state.h"
#include "shims/uverbs/device.h"

namespace vabi::mlx5 {

// main.c:set_ucontext_resp, all but response_length. `reply`: struct mlx5_ib_alloc_ucontext_resp,
// zeroed.
void FillContextReply(const Device& device, const ContextState& state, const Body& reply);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_CONTEXT_REPLY_H_
