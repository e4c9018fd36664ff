// SPDX-License-Identifier: BSD-2-Clause
#include "shims/fabric/memory.h"
#include "shims/fabric/spans.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/queue_pair.h"
#include "shims/trace/trace.h"

// The NIC copies between regions of one protection domain. Elements: rdma-core's wqe.h (struct
// mlx5_mmo_wqe): control, where the engine keeps what it needs, from where, to where.

namespace vabi::mlx5 {

using fabric::SgeFault;

void QueuePair::CopyMemory(const Wqe& wqe, fabric::Completion* completion) {
  *completion = fabric::Completion();
  // verbs.c: "Indicates that RC and DCI support DMA MMO".
  const bool takes = service == fabric::Service::kRc || service == fabric::Service::kDcInitiator;
  const auto pointer = [&](uint32_t segment) {
    const uint8_t* at = wqe.bytes + size_t{segment} * kSegment;
    return fabric::Sge{Load64(at + 8), Load32(at), Load32(at + 4)};
  };
  const fabric::Sge from = pointer(2), to = pointer(3);
  constexpr uint32_t kMost = 1u << kCaps.log_dma_mmo_max_size;
  if (!takes || wqe.bytes[kCtrlOpmod] != kOpmodDma || wqe.segments != 4 ||
      from.length != to.length || from.length == 0 || from.length > kMost) {
    trace::Event("unmodelled", "mlx5: a copy by the NIC that no library asks for");
    return FailSend(fabric::Status::kLocalQpOperation, completion);
  }
  fabric::Spans source, target;
  const bool mapped =
      fabric::MapSges(*this, &from, 1, 0, from.length, 0, &source) == SgeFault::kNone &&
      fabric::MapSges(*this, &to, 1, fabric::kAccessLocalWrite, to.length, 0, &target) ==
          SgeFault::kNone;
  if (!mapped || !fabric::CopySpans(target, source, from.length))
    FailSend(fabric::Status::kLocalProtection, completion);
}

}  // namespace vabi::mlx5
