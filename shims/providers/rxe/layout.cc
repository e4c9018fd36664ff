// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/rxe/layout.h"

namespace vabi::rxe {
namespace {

// struct rxe_queue_buf was the kernel's own (rxe_queue.h) until 5.11 put it into the UAPI header;
// its layout is the same in 4.9 and in 7.3.
constexpr uint32_t kOldIndexMask = 4, kOldProducer = 128, kOldConsumer = 256, kOldHeader = 384;

}  // namespace

#define AT(structure, field) static_cast<uint32_t>(world.At(VABI_F(structure, field)).offset)
#define MAYBE(structure, field) world.At(VABI_F(structure, field)).offset

Layout::Layout(const World& world) {
  const bool told = world.Has(VABI_S(rxe_queue_buf));
  log2_elem_size = told ? AT(rxe_queue_buf, log2_elem_size) : 0;
  index_mask = told ? AT(rxe_queue_buf, index_mask) : kOldIndexMask;
  producer_index = told ? AT(rxe_queue_buf, producer_index) : kOldProducer;
  consumer_index = told ? AT(rxe_queue_buf, consumer_index) : kOldConsumer;
  data = told ? static_cast<uint32_t>(world.Size(VABI_S(rxe_queue_buf))) : kOldHeader;

  send_size = static_cast<uint32_t>(world.Size(VABI_S(rxe_send_wqe)));
  const uint32_t wr = AT(rxe_send_wqe, wr);
  wr_id = wr + AT(rxe_send_wr, wr_id);
  opcode = wr + AT(rxe_send_wr, opcode);
  send_flags = wr + AT(rxe_send_wr, send_flags);
  immediate = wr + AT(rxe_send_wr, imm_data);
  invalidate_rkey = wr + AT(rxe_send_wr, invalidate_rkey);
  remote_address = wr + AT(rxe_send_wr, rdma_remote_addr);
  rkey = wr + AT(rxe_send_wr, rdma_rkey);
  atomic_address = wr + AT(rxe_send_wr, atomic_remote_addr);
  atomic_compare_add = wr + AT(rxe_send_wr, atomic_compare_add);
  atomic_swap = wr + AT(rxe_send_wr, atomic_swap);
  atomic_rkey = wr + AT(rxe_send_wr, atomic_rkey);
  remote_qpn = wr + AT(rxe_send_wr, ud_remote_qpn);
  remote_qkey = wr + AT(rxe_send_wr, ud_remote_qkey);
  const auto inside = [wr](int16_t offset) {
    return offset < 0 ? -1 : static_cast<int32_t>(wr) + offset;
  };
  ah_num = inside(MAYBE(rxe_send_wr, ud_ah_num));
  flush_rkey = inside(MAYBE(rxe_send_wr, flush_rkey));
  flush_type = inside(MAYBE(rxe_send_wr, flush_type));
  flush_level = inside(MAYBE(rxe_send_wr, flush_level));
  window_address = inside(MAYBE(rxe_send_wr, mw_addr));
  window_length = inside(MAYBE(rxe_send_wr, mw_length));
  window_region = inside(MAYBE(rxe_send_wr, mw_mr_lkey));
  window_window = inside(MAYBE(rxe_send_wr, mw_mw_rkey));
  window_key = inside(MAYBE(rxe_send_wr, mw_rkey));
  window_access = inside(MAYBE(rxe_send_wr, mw_access));
  av = world.Has(VABI_F(rxe_send_wqe, av)) ? AT(rxe_send_wqe, av) : wr + AT(rxe_send_wr, ud_av);
  status = AT(rxe_send_wqe, status);
  state = AT(rxe_send_wqe, state);
  const uint32_t dma = AT(rxe_send_wqe, dma);
  const auto dma_size = static_cast<uint32_t>(world.Size(VABI_S(rxe_dma_info)));
  send_length = dma + AT(rxe_dma_info, length);
  send_count = dma + AT(rxe_dma_info, num_sge);
  send_sges = inline_data = dma + dma_size;  // flexible arrays

  recv_size = static_cast<uint32_t>(world.Size(VABI_S(rxe_recv_wqe)));
  recv_wr_id = AT(rxe_recv_wqe, wr_id);
  recv_dma = AT(rxe_recv_wqe, dma);
  recv_count = recv_dma + AT(rxe_dma_info, num_sge);
  recv_sges = recv_dma + dma_size;
  recv_num_sge = MAYBE(rxe_recv_wqe, num_sge);
  dma_length = AT(rxe_dma_info, length);
  dma_resid = AT(rxe_dma_info, resid);
  dma_cur_sge = AT(rxe_dma_info, cur_sge);
  dma_num_sge = AT(rxe_dma_info, num_sge);
  dma_sge_offset = AT(rxe_dma_info, sge_offset);

  sge_size = static_cast<uint32_t>(world.Size(VABI_S(rxe_sge)));
  sge_address = AT(rxe_sge, addr);
  sge_length = AT(rxe_sge, length);
  sge_lkey = AT(rxe_sge, lkey);

  av_port = AT(rxe_av, port_num);
  has_dmac = world.Has(VABI_F(rxe_av, dmac));
  av_dmac = has_dmac ? AT(rxe_av, dmac) : 0;
  const uint32_t grh = AT(rxe_av, grh);
  av_dgid = grh + AT(rxe_global_route, dgid);
  av_flow_label = grh + AT(rxe_global_route, flow_label);
  av_sgid_index = grh + AT(rxe_global_route, sgid_index);
  av_hop_limit = grh + AT(rxe_global_route, hop_limit);
  av_traffic_class = grh + AT(rxe_global_route, traffic_class);

  wc_wr_id = AT(ib_uverbs_wc, wr_id);
  wc_status = AT(ib_uverbs_wc, status);
  wc_opcode = AT(ib_uverbs_wc, opcode);
  wc_byte_length = AT(ib_uverbs_wc, byte_len);
  wc_immediate = AT(ib_uverbs_wc, ex);
  wc_qpn = AT(ib_uverbs_wc, qp_num);
  wc_source_qpn = AT(ib_uverbs_wc, src_qp);
  wc_flags = AT(ib_uverbs_wc, wc_flags);
  wc_port = AT(ib_uverbs_wc, port_num);
}

#undef AT
#undef MAYBE

}  // namespace vabi::rxe
