// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_HNS_CARD_H_
#define VABI_SHIMS_PROVIDERS_HNS_CARD_H_

#include <cstdint>

// What this card's firmware tells its driver (struct hns_roce_caps): a HIP08, revision 0x21, with
// doorbell records, RQ inline and SRQs, without XRC, extended SGE inline and direct WQE.

namespace vabi::hns {

struct Card {
  uint32_t num_qps = 0x100000, max_wqes = 0x8000, min_wqes = 64;
  uint32_t num_cqs = 0x10000, max_cqes = 0x400000, min_cqes = 64;
  uint32_t num_srqs = 0x10000, max_srq_wrs = 0x8000, max_srq_sges = 64;
  uint32_t max_sq_sg = 64, max_rq_sg = 64, max_sq_inline = 32;
  uint32_t num_mtpts = 0x100000, num_pds = 0x10000;
  uint32_t max_qp_init_rdma = 128, max_qp_dest_rdma = 128;
  uint32_t log_min_stride = 6, log_max_stride = 6;  // HNS_ROCE_IB_MIN_SQ_STRIDE, max_sq_desc_sz
  uint32_t rq_desc = 16, cqe_size = 32;             // HNS_ROCE_V2_CQE_SIZE
  uint32_t cong_cap = 1;                            // DCQCN
};
inline constexpr Card kCard;

}  // namespace vabi::hns

#endif  // VABI_SHIMS_PROVIDERS_HNS_CARD_H_
