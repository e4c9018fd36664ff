// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX4_CAPABILITIES_H_
#define VABI_SHIMS_PROVIDERS_MLX4_CAPABILITIES_H_

#include <cstdint>

// One made-up ConnectX-3: struct mlx4_caps as mlx4_core fills it with its default profile (names
// are the kernel's). Every answer of the driver derives from these, in every kernel.

namespace vabi::mlx4 {

struct Capabilities {
  uint32_t num_qps = 1 << 18, reserved_qps = 64;
  uint32_t max_wqes = 16384, max_sq_sg = 62, max_rq_sg = 32, max_sq_desc_sz = 1008;
  uint32_t num_cqs = 1 << 16, reserved_cqs = 128, max_cqes = (1 << 22) - 1;
  uint32_t num_mpts = 1 << 19, reserved_mrws = 256, num_pds = 1 << 15, reserved_pds = 4;
  uint32_t num_srqs = 1 << 16, reserved_srqs = 64, max_srq_wqes = 16384, max_srq_sge = 31;
  uint32_t max_qp_init_rdma = 128, max_qp_dest_rdma = 16;
  uint32_t num_mgms = 8192, num_qp_per_mgm = 248;
  uint32_t hca_core_clock_mhz = 427, page_size_cap = 0xfffffe00;
  uint16_t bf_reg_size = 512, bf_regs_per_page = 8, pkey_table_len = 128;
  uint32_t cqe_size = 64, userspace_caps = 1;  // MLX4_USER_DEV_CAP_LARGE_CQE
  uint8_t local_ca_ack_delay = 15;
  uint32_t max_rss_tbl_sz = 128, max_gso_sz = 1 << 17;
  uint32_t clock_offset = 0x80;  // in its page
};

inline constexpr Capabilities kCaps;

// mlx4_ib.h: MLX4_IB_SQ_MAX_SPARE, MLX4_IB_MIN_SQ_STRIDE, MLX4_MAX_SGE_RD
inline constexpr uint32_t kSpareWqes = 33, kLeastStride = 6, kMaxSgeRd = 30;
inline constexpr uint32_t kSegment = 16;  // struct mlx4_wqe_data_seg, mlx4_wqe_srq_next_seg
// MLX4_IB_UVERBS_NO_DEV_CAPS_ABI_VERSION
inline constexpr uint32_t kAbiWithoutCaps = 3;

}  // namespace vabi::mlx4

#endif  // VABI_SHIMS_PROVIDERS_MLX4_CAPABILITIES_H_
