// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/raw_mlx5.h"

#include <rdma/ib_user_ioctl_cmds.h>

namespace vabi::conformance {

mlx5_ib_alloc_ucontext_req_v2 UsualMlx5Context() {
  mlx5_ib_alloc_ucontext_req_v2 request = {};
  request.total_num_bfregs = 16;
  request.num_low_latency_bfregs = 4;
  request.max_cqe_version = 1;
  return request;
}

Error GetMlx5Context(int fd, const mlx5_ib_alloc_ucontext_req_v2& request, void* reply,
                     size_t reply_length) {
  uint32_t vectors = 0;
  uint64_t support = 0;
  RawIoctl call(fd, DriverId(), UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
  call.Out(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &vectors, sizeof vectors)
      .Out(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &support, sizeof support)
      .In(UVERBS_ATTR_UHW_IN, &request, sizeof request)
      .Out(UVERBS_ATTR_UHW_OUT, reply, static_cast<uint16_t>(reply_length));
  return call.Call();
}

}  // namespace vabi::conformance
