// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CONFORMANCE_FRAMEWORK_RAW_MLX5_H_
#define VABI_HARNESS_CONFORMANCE_FRAMEWORK_RAW_MLX5_H_

#include <rdma/mlx5-abi.h>

#include "harness/conformance/framework/raw.h"

// mlx5's contexts past libmlx5.

namespace vabi::conformance {

// What every kernel takes.
mlx5_ib_alloc_ucontext_req_v2 UsualMlx5Context();

// DEVICE.GET_CONTEXT; `reply_length` is what the request says of the driver's reply.
Error GetMlx5Context(int fd, const mlx5_ib_alloc_ucontext_req_v2& request, void* reply,
                     size_t reply_length);

}  // namespace vabi::conformance

#endif  // VABI_HARNESS_CONFORMANCE_FRAMEWORK_RAW_MLX5_H_
