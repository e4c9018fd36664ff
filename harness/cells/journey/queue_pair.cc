// SPDX-License-Identifier: BSD-2-Clause
#include "queue_pair.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

#include "step.h"

namespace journey {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC;

// A machine that is busy with other cells may take its time.
constexpr double kSeconds = 6.0;

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

bool CreateSide(Pair* pair, Side* side) {
  if (side->mr == nullptr) {
    side->bytes = static_cast<uint8_t*>(aligned_alloc(4096, kRegion));
    if (side->bytes == nullptr) return Must("memory", false, ENOMEM);
    memset(side->bytes, 0, kRegion);
    side->mr = ibv_reg_mr(pair->pd, side->bytes, kRegion, kAccess);
    if (!Must("reg_mr", side->mr != nullptr, errno)) return false;
  }
  ibv_qp_init_attr init = {};
  init.send_cq = pair->cq;
  init.recv_cq = pair->cq;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = kDepth;
  init.cap.max_recv_wr = kDepth;
  init.cap.max_send_sge = 2;
  init.cap.max_recv_sge = 2;
  init.cap.max_inline_data = 64;
  side->qp = ibv_create_qp(pair->pd, &init);
  if (!Must("create_qp", side->qp != nullptr, errno)) return false;
  pair->inline_size = init.cap.max_inline_data;
  return true;
}

bool CreateQueuePairs(Pair* pair) {
  return CreateSide(pair, &pair->left) && CreateSide(pair, &pair->right) &&
         Connect(pair, pair->left.qp, pair->right.qp->qp_num) &&
         Connect(pair, pair->right.qp, pair->left.qp->qp_num);
}

void DestroyQueuePairs(Pair* pair) {
  for (Side* side : {&pair->left, &pair->right}) {
    if (side->qp == nullptr) continue;
    const int result = ibv_destroy_qp(side->qp);
    Must("destroy_qp", result == 0, result);
    side->qp = nullptr;
  }
}

}  // namespace

void FillAddress(const Pair& pair, ibv_ah_attr* address) {
  address->port_num = 1;
  address->dlid = pair.port.lid;
  if (pair.port.link_layer == IBV_LINK_LAYER_ETHERNET) {
    address->is_global = 1;
    address->grh.dgid = pair.gid;
    address->grh.sgid_index = static_cast<uint8_t>(pair.gid_index);
    address->grh.hop_limit = 64;
  }
}

bool Connect(Pair* pair, ibv_qp* qp, uint32_t peer) {
  ibv_qp_attr init = {};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = 1;
  init.qp_access_flags =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  int result = ibv_modify_qp(qp, &init,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (!Must("modify_qp:INIT", result == 0, result)) return false;

  ibv_qp_attr ready = {};
  ready.qp_state = IBV_QPS_RTR;
  ready.path_mtu = pair->port.active_mtu;
  ready.dest_qp_num = peer;
  ready.rq_psn = 7;
  ready.max_dest_rd_atomic = 1;
  ready.min_rnr_timer = 12;
  FillAddress(*pair, &ready.ah_attr);
  result = ibv_modify_qp(qp, &ready,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (!Must("modify_qp:RTR", result == 0, result)) return false;

  ibv_qp_attr send = {};
  send.qp_state = IBV_QPS_RTS;
  send.timeout = 14;
  send.retry_cnt = 3;  // not 7: rxe tries for ever then (rxe_comp.c: rxe_completer)
  send.rnr_retry = 1;
  send.sq_psn = 7;
  send.max_rd_atomic = 1;
  result = ibv_modify_qp(qp, &send,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  return Must("modify_qp:RTS", result == 0, result);
}

void Fill(uint8_t* bytes, uint32_t length, uint32_t seed) {
  for (uint32_t i = 0; i < length; ++i) bytes[i] = Pattern(seed, i);
}

int64_t FirstWrong(const uint8_t* bytes, uint32_t length, uint32_t seed) {
  for (uint32_t i = 0; i < length; ++i) {
    if (bytes[i] != Pattern(seed, i)) return i;
  }
  return -1;
}

int Collect(ibv_cq* cq, int count, ibv_wc* completions) {
  const double end = Now() + kSeconds;
  int got = 0;
  while (got < count && Now() < end) {
    const int polled = ibv_poll_cq(cq, count - got, completions + got);
    if (polled < 0) break;
    got += polled;
  }
  return got;
}

bool SetUp(ibv_context* context, Pair* pair) {
  pair->context = context;
  int result = ibv_query_port(context, 1, &pair->port);
  if (!Must("query_port", result == 0, result)) return false;
  if (!Must("port_active", pair->port.state == IBV_PORT_ACTIVE)) return false;
  Value("link_layer", pair->port.link_layer);
  Value("active_mtu", pair->port.active_mtu);
  // The last filled entry of the first few: on RoCE that is version 2 with an IPv4 address.
  const int entries = pair->port.gid_tbl_len < 8 ? pair->port.gid_tbl_len : 8;
  bool found = false;
  for (int i = 0; i < entries; ++i) {
    ibv_gid gid = {};
    if (ibv_query_gid(context, 1, i, &gid) != 0) continue;
    if (gid.global.interface_id == 0) continue;
    pair->gid = gid;
    pair->gid_index = i;
    found = true;
  }
  if (!Must("query_gid", found)) return false;
  uint16_t pkey = 0;
  result = ibv_query_pkey(context, 1, 0, &pkey);
  Must("query_pkey", result == 0 && pkey == 0xffff, errno);

  pair->pd = ibv_alloc_pd(context);
  if (!Must("alloc_pd", pair->pd != nullptr, errno)) return false;
  pair->channel = ibv_create_comp_channel(context);
  if (!Must("create_comp_channel", pair->channel != nullptr, errno)) return false;
  pair->cq = ibv_create_cq(context, 4 * kDepth, nullptr, pair->channel, 0);
  if (!Must("create_cq", pair->cq != nullptr, errno)) return false;
  return CreateQueuePairs(pair);
}

bool Reconnect(Pair* pair) {
  DestroyQueuePairs(pair);
  return CreateQueuePairs(pair);
}

void TearDown(Pair* pair) {
  DestroyQueuePairs(pair);
  if (pair->cq != nullptr) {
    const int result = ibv_destroy_cq(pair->cq);
    Must("destroy_cq", result == 0, result);
  }
  if (pair->channel != nullptr) {
    const int result = ibv_destroy_comp_channel(pair->channel);
    Must("destroy_comp_channel", result == 0, result);
  }
  for (Side* side : {&pair->left, &pair->right}) {
    if (side->mr != nullptr) {
      const int result = ibv_dereg_mr(side->mr);
      Must("dereg_mr", result == 0, result);
    }
    free(side->bytes);
  }
  if (pair->pd != nullptr) {
    const int result = ibv_dealloc_pd(pair->pd);
    Must("dealloc_pd", result == 0, result);
  }
}

}  // namespace journey
