// SPDX-License-Identifier: BSD-2-Clause
//
// The control path without data: find a device, open it, make each kind of object, take queue pairs
// through their states, take all down. For devices whose queues nobody works off here. Built
// against each userland's own headers and run inside a cell; the cell's outcome is read from its
// report and from the trace. Usage: control [DEVICE]. Exit 0: all went well, 1: a step failed, 3:
// no device.

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "../asks/asks.h"
#include "../journey/mapped.h"
#include "../journey/open.h"
#include "../journey/queue_pair.h"
#include "../journey/step.h"

namespace {

using journey::May;
using journey::Must;
using journey::Pair;
using journey::Value;

constexpr uint32_t kDepth = journey::kDepth;
// hns tells one entry less than the power of two that it makes.
constexpr int kEntries = 4 * kDepth - 1;

// An iWARP device's queue pairs are connected by its kernel alone: no state but an error is asked
// for from here, and their addresses are those of their network interfaces.
bool IsIwarp(const Pair& pair) {
  return pair.context->device->transport_type == IBV_TRANSPORT_IWARP;
}

// efa has datagrams only, in memory that nobody else reaches.
bool IsConnected(const Pair& pair) {
  return pair.context->device->transport_type != IBV_TRANSPORT_UNSPECIFIED;
}

bool Query(ibv_context* context, Pair* pair) {
  ibv_device_attr attr = {};
  int result = ibv_query_device(context, &attr);
  if (!Must("query_device", result == 0, result)) return false;
  Value("max_qp", static_cast<uint64_t>(attr.max_qp));
  Value("max_cqe", static_cast<uint64_t>(attr.max_cqe));
  ibv_device_attr_ex extended = {};
  result = ibv_query_device_ex(context, nullptr, &extended);
  May("query_device_ex", result == 0, result);
  result = ibv_query_port(context, 1, &pair->port);
  if (!Must("query_port", result == 0, result)) return false;
  // The last filled entry of the first few: on RoCE that is version 2 with an IPv4 address.
  bool found = false;
  for (int i = 0; i < pair->port.gid_tbl_len && i < 8; ++i) {
    ibv_gid gid = {};
    if (ibv_query_gid(context, 1, i, &gid) != 0) continue;
    if (gid.global.interface_id == 0 && !IsIwarp(*pair)) continue;
    pair->gid = gid;
    pair->gid_index = i;
    found = true;
  }
  return Must("query_gid", found);
}

bool MakeBasics(ibv_context* context, Pair* pair) {
  pair->pd = ibv_alloc_pd(context);
  if (!Must("alloc_pd", pair->pd != nullptr, errno)) return false;
  pair->left.bytes = static_cast<uint8_t*>(aligned_alloc(4096, journey::kRegion));
  if (!Must("memory", pair->left.bytes != nullptr, ENOMEM)) return false;
  memset(pair->left.bytes, 0, journey::kRegion);
  const int remote = IsConnected(*pair) ? IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ : 0;
  pair->left.mr =
      ibv_reg_mr(pair->pd, pair->left.bytes, journey::kRegion, IBV_ACCESS_LOCAL_WRITE | remote);
  if (!Must("reg_mr", pair->left.mr != nullptr, errno)) return false;
  pair->channel = ibv_create_comp_channel(context);
  if (!Must("create_comp_channel", pair->channel != nullptr, errno)) return false;
  // Of the datagram devices those of older kernels tell of no completions.
  ibv_comp_channel* channel = IsConnected(*pair) ? pair->channel : nullptr;
  pair->cq = ibv_create_cq(context, kEntries, nullptr, channel, 0);
  if (!Must("create_cq", pair->cq != nullptr, errno)) return false;
  return Must("create_cq:depth", pair->cq->cqe >= kEntries);
}

ibv_qp* MakeQp(Pair* pair, ibv_qp_type type, ibv_srq* srq, const char* step) {
  ibv_qp_init_attr init = {};
  init.send_cq = pair->cq;
  init.recv_cq = pair->cq;
  init.srq = srq;
  init.qp_type = type;
  init.cap.max_send_wr = kDepth;
  init.cap.max_send_sge = 2;
  if (srq == nullptr) {
    init.cap.max_recv_wr = kDepth;
    init.cap.max_recv_sge = IsIwarp(*pair) ? 1 : 2;  // erdma has one
  }
  ibv_qp* qp = ibv_create_qp(pair->pd, &init);
  if (!Must(step, qp != nullptr, errno)) return nullptr;
  Must("create_qp:granted", init.cap.max_send_wr >= kDepth && init.cap.max_send_sge >= 2 &&
                                (srq != nullptr || init.cap.max_recv_wr >= kDepth));
  return qp;
}

// `told`: every driver tells that state.
bool ExpectState(ibv_qp* qp, ibv_qp_state state, const char* step, bool told = true) {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  const int result = ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init);
  if (!Must("query_qp", result == 0, result)) return false;
  return told ? Must(step, attr.qp_state == state) : May(step, attr.qp_state == state);
}

void MoveTo(ibv_qp* qp, ibv_qp_state state, const char* step) {
  ibv_qp_attr attr = {};
  attr.qp_state = state;
  const int result = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
  Must(step, result == 0, result);
}

void DestroyQp(ibv_qp* qp) {
  if (qp == nullptr) return;
  const int result = ibv_destroy_qp(qp);
  Must("destroy_qp", result == 0, result);
}

// Reliable connections: through all states, then into error and back to the beginning.
void TryConnected(Pair* pair) {
  ibv_qp* qp = MakeQp(pair, IBV_QPT_RC, nullptr, "create_qp");
  if (qp == nullptr) return;
  if (IsIwarp(*pair)) {
    MoveTo(qp, IBV_QPS_ERR, "modify_qp:ERR");
    ibv_qp_attr attr = {};
    ibv_qp_init_attr init = {};
    const int result = ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init);
    Must("query_qp", result == 0 && init.cap.max_send_wr >= kDepth, result);
    May("state:ERR", attr.qp_state == IBV_QPS_ERR);  // older drivers tell no state
  } else if (journey::Connect(pair, qp, qp->qp_num)) {
    ExpectState(qp, IBV_QPS_RTS, "state:RTS");
    MoveTo(qp, IBV_QPS_ERR, "modify_qp:ERR");
    ExpectState(qp, IBV_QPS_ERR, "state:ERR");
    MoveTo(qp, IBV_QPS_RESET, "modify_qp:RESET");
    // irdma of some releases stays in error (hw/irdma/verbs.c: irdma_modify_qp_roce).
    ExpectState(qp, IBV_QPS_RESET, "state:RESET", false);
  }
  DestroyQp(qp);
}

bool TryDatagrams(Pair* pair) {
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = pair->cq;
  init.qp_type = IBV_QPT_UD;
  init.cap = {kDepth, kDepth, 1, 1, 0};
  errno = 0;  // not every library tells why it makes none
  ibv_qp* qp = ibv_create_qp(pair->pd, &init);
  if (!May("ud", qp != nullptr, errno)) return false;
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = 0x1234;
  int result =
      ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  Must("ud:INIT", result == 0, result);
  attr.qp_state = IBV_QPS_RTR;
  result = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
  Must("ud:RTR", result == 0, result);
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = 3;
  result = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
  Must("ud:RTS", result == 0, result);
  ExpectState(qp, IBV_QPS_RTS, "state:ud:RTS");
  MoveTo(qp, IBV_QPS_ERR, "ud:ERR");
  ExpectState(qp, IBV_QPS_ERR, "state:ud:ERR");
  DestroyQp(qp);
  return true;
}

void TryAddressHandle(Pair* pair) {
  ibv_ah_attr address = {};
  journey::FillAddress(*pair, &address);
  if (!IsConnected(*pair)) {
    address.is_global = 1;
    address.grh.dgid = pair->gid;
  }
  errno = 0;
  ibv_ah* ah = ibv_create_ah(pair->pd, &address);
  if (!May("ah", ah != nullptr, errno)) return;
  const int result = ibv_destroy_ah(ah);
  Must("destroy_ah", result == 0, result);
}

void TrySharedReceives(Pair* pair) {
  ibv_srq_init_attr init = {};
  init.attr.max_wr = kDepth;
  init.attr.max_sge = 1;
  errno = 0;
  ibv_srq* srq = ibv_create_srq(pair->pd, &init);
  if (!May("srq", srq != nullptr, errno)) return;
  ibv_srq_attr attr = {};
  attr.srq_limit = 2;
  int result = ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
  May("srq:limit", result == 0, result);
  result = ibv_query_srq(srq, &attr);
  // libsiw has no query.
  if (result == EOPNOTSUPP) {
    May("query_srq", false, result);
  } else {
    Must("query_srq", result == 0 && attr.max_wr >= kDepth, result);
  }
  DestroyQp(MakeQp(pair, IBV_QPT_RC, srq, "create_qp:srq"));
  result = ibv_destroy_srq(srq);
  Must("destroy_srq", result == 0, result);
}

void TryMemory(Pair* pair) {
  errno = 0;
  int result = ibv_rereg_mr(pair->left.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                            IBV_ACCESS_LOCAL_WRITE);
  May("rereg_mr", result == 0, errno);
  errno = 0;
  ibv_mw* mw = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_1);
  if (May("mw", mw != nullptr, errno)) {
    result = ibv_dealloc_mw(mw);
    Must("dealloc_mw", result == 0, result);
  }
}

void TryQueues(Pair* pair) {
  int result = ibv_resize_cq(pair->cq, 8 * kDepth);
  May("resize_cq", result == 0, result);
  ibv_cq_init_attr_ex wanted = {};
  wanted.cqe = kDepth;
  wanted.wc_flags = IBV_WC_STANDARD_FLAGS;
  errno = 0;
  ibv_cq_ex* extended = ibv_create_cq_ex(pair->context, &wanted);
  if (!May("cq_ex", extended != nullptr, errno)) return;
  result = ibv_destroy_cq(ibv_cq_ex_to_cq(extended));
  Must("destroy_cq", result == 0, result);
}

}  // namespace

int main(int argc, char** argv) {
  Pair pair;
  pair.context = journey::Open(argc > 1 ? argv[1] : nullptr);
  journey::TellMapped();
  if (pair.context == nullptr) return 3;
  if (Query(pair.context, &pair) && MakeBasics(pair.context, &pair)) {
    // First: where a step fails, it is the last refusal that tells why.
    asks::AskDevice(pair.context);
    asks::AskMemory(pair.pd);
    asks::AskQueues(pair.context, pair.pd);
    asks::AskQueuePairs(pair);
    if (IsConnected(pair)) TryConnected(&pair);
    TryDatagrams(&pair);
    TryAddressHandle(&pair);
    TrySharedReceives(&pair);
    TryMemory(&pair);
    TryQueues(&pair);
  }
  journey::TearDown(&pair);
  const int result = ibv_close_device(pair.context);
  Must("close_device", result == 0, result);
  return journey::Failures() == 0 ? 0 : 1;
}
