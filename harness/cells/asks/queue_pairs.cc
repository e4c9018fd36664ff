// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>
#include <cstdint>
#include <initializer_list>

#include "../journey/step.h"
#include "asks.h"

namespace asks {
namespace {

using journey::Ask;
using journey::Must;
using journey::Pair;

constexpr uint32_t kDepth = journey::kDepth;

// Every bit up to IBV_QP_DEST_QPN; libibverbs refuses others by itself.
constexpr int kEverything = (1 << 21) - 1;

ibv_qp_init_attr_ex Usual(const Pair& pair, ibv_qp_type type) {
  ibv_qp_init_attr_ex init = {};
  init.send_cq = init.recv_cq = pair.cq;
  init.cap = {kDepth, kDepth, 1, 1, 0};
  init.qp_type = type;
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.pd = pair.pd;
  return init;
}

void Finish(const char* step, ibv_qp* qp) {
  if (!Ask(step, qp != nullptr, errno)) return;
  const int result = ibv_destroy_qp(qp);
  Must("destroy_qp:asked", result == 0, result);
}

void AskExtended(const Pair& pair, const char* step, ibv_qp_init_attr_ex init) {
  errno = 0;
  Finish(step, ibv_create_qp_ex(pair.context, &init));
}

void AskTypes(const Pair& pair) {
  AskExtended(pair, "create_qp:rc", Usual(pair, IBV_QPT_RC));
  AskExtended(pair, "create_qp:uc", Usual(pair, IBV_QPT_UC));
  AskExtended(pair, "create_qp:ud", Usual(pair, IBV_QPT_UD));
  AskExtended(pair, "create_qp:driver", Usual(pair, IBV_QPT_DRIVER));
  ibv_qp_init_attr_ex send = Usual(pair, IBV_QPT_XRC_SEND);
  send.recv_cq = nullptr;
  send.cap = {kDepth, 0, 1, 0, 0};
  AskExtended(pair, "create_qp:xrc_send", send);
}

void AskFlags(const Pair& pair, ibv_qp_type type) {
  struct Flag {
    const char* step;
    uint32_t flag;
  };
  constexpr Flag kFlags[] = {
      {"create_qp:block_self_multicast", IBV_QP_CREATE_BLOCK_SELF_MCAST_LB},
      {"create_qp:scatter_fcs", IBV_QP_CREATE_SCATTER_FCS},
      {"create_qp:cvlan_stripping", IBV_QP_CREATE_CVLAN_STRIPPING},
      {"create_qp:source_qpn", IBV_QP_CREATE_SOURCE_QPN},
      {"create_qp:write_end_padding", IBV_QP_CREATE_PCI_WRITE_END_PADDING},
  };
  for (const Flag& flag : kFlags) {
    ibv_qp_init_attr_ex init = Usual(pair, type);
    init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    init.create_flags = flag.flag;
    if (flag.flag == IBV_QP_CREATE_SOURCE_QPN) init.source_qpn = 1;
    AskExtended(pair, flag.step, init);
  }
  ibv_qp_init_attr_ex init = Usual(pair, type);
  init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.send_ops_flags = type == IBV_QPT_RC ? IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE
                                           : uint64_t{IBV_QP_EX_WITH_SEND};
  AskExtended(pair, "create_qp:send_ops", init);
}

// A size that no device has, and none at all. libefa divides by the size of datagrams' queues.
void AskSizes(const Pair& pair) {
  ibv_qp_init_attr_ex init = Usual(pair, IBV_QPT_RC);
  init.cap = {kDepth, kDepth, 1, 1, 1 << 20};
  AskExtended(pair, "create_qp:inline_1M", init);
  init.cap = {};
  AskExtended(pair, "create_qp:no_queues", init);
  init.cap = {0, kDepth, 0, 1, 0};
  AskExtended(pair, "create_qp:receives_only", init);
}

bool AskChange(ibv_qp* qp, const char* step, ibv_qp_attr attr, int mask) {
  const int result = ibv_modify_qp(qp, &attr, mask);
  return Ask(step, result == 0, result);
}

void AskTold(ibv_qp* qp, const char* step) {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  const int result = ibv_query_qp(qp, &attr, kEverything, &init);
  Ask(step, result == 0, result);
}

// What a queue pair that was just made refuses, and what it tells.
void AskRefusedChanges(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.port_num = 1;
  attr.qp_state = IBV_QPS_RTS;
  AskChange(qp, "modify_qp:RESET_to_RTS", attr, IBV_QP_STATE);
  attr.qp_state = IBV_QPS_SQD;
  AskChange(qp, "modify_qp:RESET_to_SQD", attr, IBV_QP_STATE);
  attr.qp_state = IBV_QPS_INIT;
  AskChange(qp, "modify_qp:INIT_of_nothing", attr, IBV_QP_STATE);
  attr.port_num = 200;
  AskChange(qp, "modify_qp:INIT_port_200", attr,
            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  attr.port_num = 1;
  attr.pkey_index = 60000;
  AskChange(qp, "modify_qp:INIT_pkey_60000", attr,
            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  AskTold(qp, "query_qp:RESET");
}

void AskStates(ibv_qp* qp, ibv_qp_type type) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = 0x1234;
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                   (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
  if (!AskChange(qp, "modify_qp:INIT", attr, mask)) return;
  attr.cur_qp_state = IBV_QPS_INIT;
  attr.rate_limit = 1000;
  AskChange(qp, "modify_qp:rate_limit", attr, IBV_QP_RATE_LIMIT);
  AskChange(qp, "modify_qp:INIT_again", attr, mask | IBV_QP_CUR_STATE);
  AskChange(qp, "modify_qp:alternate_path", attr, IBV_QP_ALT_PATH);
  AskTold(qp, "query_qp:INIT");
}

void AskGroups(ibv_qp* qp) {
  // ff0e::ffff:e001:0203, an IPv4 group on RoCE, and nobody's on InfiniBand
  ibv_gid group = {};
  group.raw[0] = 0xff;
  group.raw[1] = 0x0e;
  group.raw[10] = group.raw[11] = 0xff;
  group.raw[12] = 0xe0;
  group.raw[13] = 1;
  group.raw[14] = 2;
  group.raw[15] = 3;
  int result = ibv_attach_mcast(qp, &group, 0xc001);
  const bool attached = Ask("attach_mcast", result == 0, result);
  result = ibv_detach_mcast(qp, &group, 0xc001);
  Ask("detach_mcast", result == 0, result);
  if (attached) Must("detach_mcast:asked", result == 0, result);
}

void AskLife(const Pair& pair, ibv_qp_type type) {
  ibv_qp_init_attr_ex init = Usual(pair, type);
  errno = 0;
  ibv_qp* qp = ibv_create_qp_ex(pair.context, &init);
  if (!Ask("create_qp:to_change", qp != nullptr, errno)) return;
  AskRefusedChanges(qp);
  AskStates(qp, type);
  if (type == IBV_QPT_UD) AskGroups(qp);
  const int result = ibv_destroy_qp(qp);
  Must("destroy_qp:asked", result == 0, result);
}

}  // namespace

void AskQueuePairs(const Pair& pair) {
  AskTypes(pair);
  AskSizes(pair);
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UD}) {
    AskFlags(pair, type);
    AskLife(pair, type);
  }
}

}  // namespace asks
