// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_EFA_CARD_H_
#define VABI_SHIMS_PROVIDERS_EFA_CARD_H_

#include <cstdint>

// What this card tells its driver about itself (efa_com_get_device_attr). Chosen like a card of the
// second generation: RDMA READ and WRITE, RNR retries, event queues, 128 byte polling.

namespace vabi::efa {

struct Card {
  uint32_t max_sq_depth = 4096, max_rq_depth = 32768, max_cq_depth = 32768;
  uint32_t max_llq_size = 4096 * 64;  // bytes
  uint16_t max_sq_sge = 2, max_rq_sge = 3;
  uint32_t inline_buf_size = 32;
  uint16_t sub_cqs_per_cq = 2;
  uint16_t max_tx_batch = 16, min_sq_depth = 32;
  uint32_t max_qp = 256, max_cq = 512, max_mr = 65536, max_pd = 256, max_ah = 8192;
  uint64_t max_mr_pages = uint64_t{1} << 32;
  uint64_t page_size_cap = 0xfffff000;
  uint32_t max_rdma_size = 1u << 30;
  uint32_t short_entry = 16, long_entry = 32;  // efa_io_rx_cdesc, efa_io_rx_cdesc_ex
  uint64_t link_gbps = 100;
};
inline constexpr Card kCard;

}  // namespace vabi::efa

#endif  // VABI_SHIMS_PROVIDERS_EFA_CARD_H_
