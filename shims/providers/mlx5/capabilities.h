// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_CAPABILITIES_H_
#define VABI_SHIMS_PROVIDERS_MLX5_CAPABILITIES_H_

#include <cstdint>

// One made-up ConnectX-5: the HCA capabilities (PRM: cmd_hca_cap and friends) from which every
// answer of the driver derives. Names are those of the PRM. What is 0 here, the device has not, in
// every kernel.

namespace vabi::mlx5 {

struct Capabilities {
  // cmd_hca_cap
  int log_max_qp = 18, log_max_qp_sz = 15, log_max_cq = 24, log_max_cq_sz = 22;
  int log_max_srq = 23, log_max_srq_sz = 15, log_max_mkey = 24, log_max_pd = 23;
  int log_max_ra_req_qp = 4, log_max_ra_res_qp = 4, log_max_mcg = 21, max_qp_mcg = 240;
  int log_max_ra_req_dc = 4, log_max_ra_res_dc = 4;
  int log_max_msg = 30, log_max_uctx = 8, log_max_eq_sz = 22, log_max_xrcd = 24;
  int max_wqe_sz_sq = 1024, max_wqe_sz_rq = 512;
  int log_bf_reg_size = 9, num_of_uars_per_page = 1, local_ca_ack_delay = 16, log_pg_sz = 12;
  int cqe_version = 1;
  uint32_t device_frequency_khz = 78125;
  uint32_t stat_rate_support = 1;  // only the port's own rate
  bool uar_4k = true, xrc = true, imaicl = true, pg = true, cq_resize = true, cq_moderation = true;
  bool pkv = true, qkv = true, apm = true, block_lb_mc = true, sctr_data_cqe = false,
       ece_support = false;
  bool cqe_compression = false, cqe_compression_128 = false, cqe_128_always = true,
       dump_fill_mkey = false;
  bool sho = false, cd = false, end_pad = false, dct = true, qos = true;
  bool qp_packet_based = false, real_time_timestamps = false, drain_sigerr = false,
       striding_rq = false;
  bool dp_ordering_force = false, ipoib_basic_offloads = false, eth_net_offloads = false;
  bool umr_modify_entity_size_disabled = false, tunnel_offloads = false, delay_drop = false,
       vlan_cap = false;
  int log_max_rqt_size = 9, log_max_wq_sz = 20;
  // On InfiniBand only: libmlx5's list keeps its own queue pair without GRH.
  bool tag_matching = true;
  int log_tag_matching_list_sz = 6;
  int log_max_dci_stream_channels = 6, log_max_dci_errored_streams = 6;
  bool qpc_extension = true;
  bool dma_mmo_sq = true;
  int log_dma_mmo_max_size = 24;
  // qos_cap: trees for send queues, which none is put into yet (schedule.h)
  bool packet_pacing = false, nic_sq_scheduling = true, nic_bw_share = true, nic_rate_limit = true,
       nic_qp_scheduling = false;
  uint32_t nic_element_type = 1u << 0 | 1u << 4;  // TSAR, QUEUE_GROUP
  uint32_t nic_tsar_type = 1u << 0;               // DWRR
  // cmd_hca_cap_2
  int log_reserved_qpn_granularity = 5;
  // roce_cap
  uint32_t roce_min_src_udp_port = 0xc000;
  // The driver's own
  bool write_combining = true;  // wc_support: blue flame pages can be mapped write-combining
  bool roce_ip_gids = true;
  // Ethernet: minimum inline mode of the vport (0 L2, 1 IP, 2 TCP/UDP)
  int eth_min_inline = 0;
  // device memory (memic)
  uint32_t memic_size = 256 * 1024;  // max_memic_size and memic_bar_size
  int log_max_memic_addr_alignment = 6;
  uint32_t memic_operations = 0;
  // MLX5_MAX_UARS * MLX5_NON_FP_BFREGS_PER_UAR, MLX5_MAX_DYN_BFREGS (include/linux/mlx5/device.h)
  uint32_t max_bfregs = 512, max_dyn_bfregs = 1024;
};

inline constexpr Capabilities kCaps;

// include/linux/mlx5/device.h
inline constexpr uint32_t kNonFastPathBfregsPerUar = 2;
inline constexpr uint32_t kBfregsPerUar = 4;
inline constexpr uint32_t kUarsInPage = 1;  // pages of 4096 bytes
inline constexpr uint32_t kFirstEqn = 8;    // of completion vectors, behind the driver's own queues
// hw/mlx5/mlx5_ib.h
inline constexpr uint32_t kDefaultUserIndex = 0xffffff;
inline constexpr uint32_t kUserIndexMask = 0xffffff;
inline constexpr uint32_t kInvalidBfreg = 1u << 31, kInvalidUar = 1u << 31;

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_CAPABILITIES_H_
