// SPDX-License-Identifier: BSD-2-Clause
#include "packets.h"

#include <cerrno>
#include <cstring>

#include "step.h"

namespace journey {
namespace {

constexpr uint32_t kWorkQueues = 2;
constexpr uint32_t kFrame = 300;
constexpr uint8_t kTo[6] = {0x01, 0x50, 0x56, 0x19, 0x20, 0xa7};
constexpr uint8_t kHashKey = 40;  // bytes of a Toeplitz key

bool Ready(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  int result = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT);
  if (!Must("modify_qp:RAW:INIT", result == 0, result)) return false;
  attr.qp_state = IBV_QPS_RTR;
  result = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
  if (!Must("modify_qp:RAW:RTR", result == 0, result)) return false;
  attr.qp_state = IBV_QPS_RTS;
  result = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
  return Must("modify_qp:RAW:RTS", result == 0, result);
}

// A frame to a multicast address, which a flow rule brings back to the queue pair that sent it.
void MoveFrame(Pair* pair, ibv_qp* qp) {
  struct {
    ibv_flow_attr attr;
    ibv_flow_spec_eth eth;
  } wanted = {};
  wanted.attr.size = sizeof wanted;
  wanted.attr.num_of_specs = 1;
  wanted.attr.port = 1;
  wanted.eth.type = IBV_FLOW_SPEC_ETH;
  wanted.eth.size = sizeof wanted.eth;
  memcpy(wanted.eth.val.dst_mac, kTo, sizeof kTo);
  memset(wanted.eth.mask.dst_mac, 0xff, sizeof kTo);
  ibv_flow* flow = ibv_create_flow(qp, &wanted.attr);
  if (!May("flow", flow != nullptr, errno)) return;
  const char* step = "data:raw";
  memset(pair->right.bytes, 0xee, kRegion);
  Fill(pair->left.bytes, kFrame, 44);
  memcpy(pair->left.bytes, kTo, sizeof kTo);
  ibv_sge to = {reinterpret_cast<uintptr_t>(pair->right.bytes), 2048, pair->right.mr->lkey};
  ibv_recv_wr receive = {};
  receive.sg_list = &to;
  receive.num_sge = 1;
  ibv_recv_wr* bad_receive = nullptr;
  ibv_sge from = {reinterpret_cast<uintptr_t>(pair->left.bytes), kFrame, pair->left.mr->lkey};
  ibv_send_wr send = {};
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad_send = nullptr;
  ibv_wc completions[2] = {};
  if (ibv_post_recv(qp, &receive, &bad_receive) != 0 || ibv_post_send(qp, &send, &bad_send) != 0) {
    Must(step, false, errno, "post");
  } else if (Collect(pair->cq, 2, completions) != 2) {
    Must(step, false, ETIMEDOUT, "not both completions in time");
  } else {
    bool good = true;
    uint32_t length = 0;
    for (const ibv_wc& wc : completions) {
      good = good && wc.status == IBV_WC_SUCCESS;
      if (wc.opcode == IBV_WC_RECV) length = wc.byte_len;
    }
    good = good && length == kFrame && memcmp(pair->left.bytes, pair->right.bytes, kFrame) == 0 &&
           pair->right.bytes[kFrame] == 0xee;
    Must(step, good, 0, good ? nullptr : "status, byte_len or bytes");
  }
  const int result = ibv_destroy_flow(flow);
  Must("destroy_flow", result == 0, result);
}

void TryRawPackets(Pair* pair) {
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = pair->cq;
  init.qp_type = IBV_QPT_RAW_PACKET;
  init.cap = {kDepth, kDepth, 1, 1, 0};
  ibv_qp* qp = ibv_create_qp(pair->pd, &init);
  if (!May("raw_packet", qp != nullptr, errno)) return;
  if (Ready(qp)) MoveFrame(pair, qp);
  const int result = ibv_destroy_qp(qp);
  Must("destroy_qp:RAW", result == 0, result);
}

bool MakeQueue(Pair* pair, ibv_wq** wq) {
  ibv_wq_init_attr init = {};
  init.wq_type = IBV_WQT_RQ;
  init.max_wr = kDepth;
  init.max_sge = 1;
  init.pd = pair->pd;
  init.cq = pair->cq;
  *wq = ibv_create_wq(pair->context, &init);
  if (!May("wq", *wq != nullptr, errno)) return false;
  ibv_wq_attr attr = {};
  attr.attr_mask = IBV_WQ_ATTR_STATE;
  attr.wq_state = IBV_WQS_RDY;
  const int result = ibv_modify_wq(*wq, &attr);
  return Must("modify_wq:RDY", result == 0, result);
}

void Spread(Pair* pair, ibv_rwq_ind_table* table) {
  uint8_t key[kHashKey];
  for (uint8_t i = 0; i < kHashKey; ++i) key[i] = static_cast<uint8_t>(i * 37 + 1);
  ibv_qp_init_attr_ex init = {};
  init.qp_type = IBV_QPT_RAW_PACKET;
  init.pd = pair->pd;
  init.rwq_ind_tbl = table;
  init.rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, kHashKey, key,
                       IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4};
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  ibv_qp* qp = ibv_create_qp_ex(pair->context, &init);
  if (!May("rss", qp != nullptr, errno)) return;
  const int result = ibv_destroy_qp(qp);
  Must("destroy_qp:RSS", result == 0, result);
}

void TrySpreading(Pair* pair) {
  ibv_wq* queues[kWorkQueues] = {};
  bool made = true;
  for (ibv_wq*& wq : queues) made = made && MakeQueue(pair, &wq);
  if (made) {
    ibv_rwq_ind_table_init_attr init = {};
    init.log_ind_tbl_size = 1;
    init.ind_tbl = queues;
    ibv_rwq_ind_table* table = ibv_create_rwq_ind_table(pair->context, &init);
    if (May("rwq_ind_table", table != nullptr, errno)) {
      Spread(pair, table);
      const int result = ibv_destroy_rwq_ind_table(table);
      Must("destroy_rwq_ind_table", result == 0, result);
    }
  }
  for (ibv_wq* wq : queues) {
    if (wq == nullptr) continue;
    const int result = ibv_destroy_wq(wq);
    Must("destroy_wq", result == 0, result);
  }
}

void TryCounters(Pair* pair) {
  ibv_counters_init_attr init = {};
  ibv_counters* counters = ibv_create_counters(pair->context, &init);
  if (!May("counters", counters != nullptr, errno)) return;
  const int result = ibv_destroy_counters(counters);
  Must("destroy_counters", result == 0, result);
}

// Drivers that know nothing of raw packets do not always refuse them: rxe up to 5.13 makes such a
// queue pair (sw/rxe/rxe_qp.c: rxe_qp_chk_init).
bool HasReceiveQueues(ibv_context* context) {
  ibv_device_attr_ex attr = {};
  return ibv_query_device_ex(context, nullptr, &attr) == 0 && attr.max_wq_type_rq != 0;
}

}  // namespace

void TryPackets(Pair* pair) {
  TryCounters(pair);
  if (pair->port.link_layer != IBV_LINK_LAYER_ETHERNET) return;
  if (!HasReceiveQueues(pair->context)) {
    May("raw_packet", false, EOPNOTSUPP);
    May("wq", false, EOPNOTSUPP);
    return;
  }
  TryRawPackets(pair);
  TrySpreading(pair);
}

}  // namespace journey
