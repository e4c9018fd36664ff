// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_RXE_LAYOUT_H_
#define VABI_SHIMS_PROVIDERS_RXE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "harness/world/world.h"

// Where this kernel's rxe looks for what in the memory that it shares with a program: byte offsets
// from the facts (rdma_user_rxe.h, ib_user_verbs.h), taken once for a device.

namespace vabi::rxe {

struct Layout {
  explicit Layout(const World& world);

  // struct rxe_queue_buf
  uint32_t log2_elem_size, index_mask, producer_index, consumer_index, data;

  // struct rxe_send_wqe
  uint32_t send_size;
  uint32_t wr_id, opcode, send_flags, immediate, invalidate_rkey;
  uint32_t remote_address, rkey;
  uint32_t atomic_address, atomic_compare_add, atomic_swap, atomic_rkey;
  uint32_t remote_qpn, remote_qkey, av;
  int32_t ah_num;  // -1: this kernel knows address handles in the queue only
  int32_t flush_rkey, flush_type, flush_level;  // -1: no FLUSH, no ATOMIC_WRITE
  int32_t window_address, window_length, window_region, window_window, window_key,
      window_access;  // -1: none
  uint32_t status, state;
  uint32_t send_length, send_count, send_sges;
  uint32_t inline_data;

  // struct rxe_recv_wqe
  uint32_t recv_size, recv_wr_id, recv_count, recv_sges;
  uint32_t recv_dma, dma_length, dma_resid, dma_cur_sge, dma_num_sge, dma_sge_offset;
  int32_t recv_num_sge;  // beside the one in struct rxe_dma_info; -1: reserved

  // struct rxe_sge
  uint32_t sge_size, sge_address, sge_length, sge_lkey;

  // struct rxe_av
  uint32_t av_port, av_dmac, av_dgid, av_flow_label, av_sgid_index, av_hop_limit, av_traffic_class;
  bool has_dmac;

  // struct ib_uverbs_wc
  uint32_t wc_wr_id, wc_status, wc_opcode, wc_byte_length, wc_immediate, wc_qpn, wc_source_qpn,
      wc_flags, wc_port;
};

template <typename T>
T Load(const uint8_t* base, uint32_t offset) {
  T value;
  std::memcpy(&value, base + offset, sizeof(value));
  return value;
}

template <typename T>
void Store(uint8_t* base, uint32_t offset, T value) {
  std::memcpy(base + offset, &value, sizeof(value));
}

}  // namespace vabi::rxe

#endif  // VABI_SHIMS_PROVIDERS_RXE_LAYOUT_H_
