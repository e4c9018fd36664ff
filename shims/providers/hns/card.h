// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_HNS_CARD_H_
#define VABI_SHIMS_PROVIDERS_HNS_CARD_H_

#include <cstdint>

#include "harness/world/world.h"
#include "shims/providers/hns/ids.h"

// What the card can (struct hns_roce_caps): a HIP08, revision 0x21, with doorbell records, RQ
// inline and SRQs, without XRC, extended SGE inline and direct WQE. What kernels tell differently
// stands in knobs.

namespace vabi::hns {

struct Card {
  uint32_t max_wqes = 0x8000, max_srq_wrs = 0x8000, max_sq_inline = 32;
  uint32_t max_qp_init_rdma = 128, max_qp_dest_rdma = 128;
  uint32_t log_min_stride = 6, log_max_stride = 6;  // HNS_ROCE_IB_MIN_SQ_STRIDE, max_sq_desc_sz
  uint32_t rq_desc = 16, cqe_size = 32;             // HNS_ROCE_V2_CQE_SIZE
  uint32_t cong_cap = 1;                            // DCQCN
  uint32_t max_service_level = 7;                   // MAX_SERVICE_LEVEL
};
inline constexpr Card kCard;

// One of its numbers, as this kernel has it.
inline uint32_t Number(const World& world, KnobId id) {
  return static_cast<uint32_t>(world.Knob(id));
}

}  // namespace vabi::hns

#endif  // VABI_SHIMS_PROVIDERS_HNS_CARD_H_
