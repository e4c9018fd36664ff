// SPDX-License-Identifier: BSD-2-Clause
#include "services.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "step.h"

namespace journey {
namespace {

constexpr uint32_t kLength = 600;
constexpr uint32_t kGrh = 40;  // in front of every datagram received
constexpr uint32_t kQkey = 0x11111111;
constexpr uint64_t kSent = 0x5e, kReceived = 0x7e;

ibv_sge Part(const Side& side, uint32_t offset, uint32_t length) {
  return {reinterpret_cast<uintptr_t>(side.bytes + offset), length, side.mr->lkey};
}

// One completion each of a send and a receive, in any order, both good; the receive's is left in
// *received.
bool BothCompleted(const char* step, ibv_cq* sends, ibv_cq* receives, ibv_wc* received) {
  ibv_wc completions[2] = {};
  const int got = sends == receives
                      ? Collect(sends, 2, completions)
                      : Collect(sends, 1, completions) + Collect(receives, 1, completions + 1);
  if (got != 2) return Must(step, false, ETIMEDOUT, "not both completions in time");
  bool sent = false;
  bool came = false;
  for (const ibv_wc& wc : completions) {
    if (wc.status != IBV_WC_SUCCESS) return Must(step, false, 0, ibv_wc_status_str(wc.status));
    if (wc.wr_id == kSent && wc.opcode == IBV_WC_SEND) sent = true;
    if (wc.wr_id == kReceived && wc.opcode == IBV_WC_RECV) {
      came = true;
      *received = wc;
    }
  }
  return (sent && came) || Must(step, false, 0, "completions of other requests");
}

bool BytesRight(const char* step, const uint8_t* bytes, uint32_t seed) {
  if (FirstWrong(bytes, kLength, seed) >= 0) return Must(step, false, 0, "wrong bytes");
  return bytes[kLength] == 0xee || Must(step, false, 0, "bytes behind the message changed");
}

void Prepare(Pair* pair, uint32_t seed) {
  memset(pair->right.bytes, 0xee, kRegion);
  Fill(pair->left.bytes + 128, kLength, seed);
}

bool PostSend(const char* step, Pair* pair, ibv_qp* qp, const ibv_send_wr& extra) {
  ibv_sge sge = Part(pair->left, 128, kLength);
  ibv_send_wr wr = extra;
  wr.wr_id = kSent;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  const int result = ibv_post_send(qp, &wr, &bad);
  return result == 0 || Must(step, false, result, "post_send");
}

ibv_recv_wr Receive(ibv_sge* sge) {
  ibv_recv_wr wr = {};
  wr.wr_id = kReceived;
  wr.sg_list = sge;
  wr.num_sge = 1;
  return wr;
}

bool PostToShared(const char* step, Pair* pair, ibv_srq* srq) {
  ibv_sge sge = Part(pair->right, 256, 2 * kLength);
  ibv_recv_wr wr = Receive(&sge);
  ibv_recv_wr* bad = nullptr;
  const int result = ibv_post_srq_recv(srq, &wr, &bad);
  return result == 0 || Must(step, false, result, "post_srq_recv");
}

void Destroy(const char* step, ibv_qp* qp) {
  if (qp == nullptr) return;
  const int result = ibv_destroy_qp(qp);
  Must(step, result == 0, result);
}

ibv_qp_init_attr Ask(Pair* pair, ibv_qp_type type, ibv_srq* srq = nullptr) {
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = pair->cq;
  init.srq = srq;
  init.qp_type = type;
  init.cap = {kDepth, srq == nullptr ? kDepth : 0, 1, srq == nullptr ? 1u : 0, 0};
  return init;
}

bool ReadyForDatagrams(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = kQkey;
  int result =
      ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  if (!Must("modify_qp:UD:INIT", result == 0, result)) return false;
  attr.qp_state = IBV_QPS_RTR;
  result = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
  if (!Must("modify_qp:UD:RTR", result == 0, result)) return false;
  attr.qp_state = IBV_QPS_RTS;
  result = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
  return Must("modify_qp:UD:RTS", result == 0, result);
}

// A datagram from one queue pair to the other: behind room for the GRH, with the sender's number.
void SendDatagram(Pair* pair, ibv_qp* from, ibv_qp* to, ibv_ah* ah) {
  const char* step = "data:ud";
  Prepare(pair, 40);
  ibv_sge sge = Part(pair->right, 256, kGrh + 2 * kLength);
  ibv_recv_wr wr = Receive(&sge);
  ibv_recv_wr* bad = nullptr;
  const int result = ibv_post_recv(to, &wr, &bad);
  if (result != 0) {
    Must(step, false, result, "post_recv");
    return;
  }
  ibv_send_wr send = {};
  send.wr.ud = {ah, to->qp_num, kQkey};
  ibv_wc received = {};
  if (!PostSend(step, pair, from, send) || !BothCompleted(step, pair->cq, pair->cq, &received))
    return;
  const bool grh = (received.wc_flags & IBV_WC_GRH) != 0;
  const bool roce = pair->port.link_layer == IBV_LINK_LAYER_ETHERNET;
  if (received.byte_len != kGrh + kLength) {
    Must(step, false, 0, "byte_len counts the GRH's 40 bytes and the message");
  } else if (received.src_qp != from->qp_num || received.qp_num != to->qp_num) {
    Must(step, false, 0, "src_qp or qp_num");
  } else if (grh != roce) {
    Must(step, false, 0,
         "a GRH comes with every datagram on RoCE, and here with none on InfiniBand");
  } else if (BytesRight(step, pair->right.bytes + 256 + kGrh, 40)) {
    Must(step, true);
  }
}

void TryDatagrams(Pair* pair) {
  ibv_qp_init_attr init = Ask(pair, IBV_QPT_UD);
  ibv_qp* from = ibv_create_qp(pair->pd, &init);
  if (!May("ud", from != nullptr, errno)) return;
  init = Ask(pair, IBV_QPT_UD);
  ibv_qp* to = ibv_create_qp(pair->pd, &init);
  if (Must("create_qp:UD", to != nullptr, errno) && ReadyForDatagrams(from) &&
      ReadyForDatagrams(to)) {
    ibv_ah_attr attr = {};
    FillAddress(*pair, &attr);
    ibv_ah* ah = pair->has_ah ? ibv_create_ah(pair->pd, &attr) : nullptr;
    if (ah != nullptr) {
      SendDatagram(pair, from, to, ah);
      const int result = ibv_destroy_ah(ah);
      Must("destroy_ah:UD", result == 0, result);
    }
  }
  Destroy("destroy_qp:UD", from);
  Destroy("destroy_qp:UD", to);
}

void TrySharedReceives(Pair* pair) {
  ibv_srq_init_attr wanted = {};
  wanted.attr = {kDepth, 1, 0};
  ibv_srq* srq = ibv_create_srq(pair->pd, &wanted);
  if (!May("srq", srq != nullptr, errno)) return;
  ibv_srq_attr attr = {};
  int result = ibv_query_srq(srq, &attr);
  Must("query_srq", result == 0 && attr.max_wr >= kDepth, result);
  const char* step = "data:srq";
  ibv_qp_init_attr init = Ask(pair, IBV_QPT_RC);
  ibv_qp* from = ibv_create_qp(pair->pd, &init);
  init = Ask(pair, IBV_QPT_RC, srq);
  ibv_qp* to = ibv_create_qp(pair->pd, &init);
  ibv_wc received = {};
  if (Must("create_qp:SRQ", from != nullptr && to != nullptr, errno) &&
      Connect(pair, from, to->qp_num) && Connect(pair, to, from->qp_num)) {
    Prepare(pair, 41);
    if (PostToShared(step, pair, srq) && PostSend(step, pair, from, {}) &&
        BothCompleted(step, pair->cq, pair->cq, &received) &&
        BytesRight(step, pair->right.bytes + 256, 41)) {
      const bool good = received.qp_num == to->qp_num && received.byte_len == kLength;
      Must(step, good, 0, good ? nullptr : "qp_num, byte_len");
    }
  }
  Destroy("destroy_qp:SRQ", from);
  Destroy("destroy_qp:SRQ", to);
  result = ibv_destroy_srq(srq);
  Must("destroy_srq", result == 0, result);
}

// The target of XRC has no receive queue: the message names the SRQ, and completes where that one
// does.
void MoveByXrc(Pair* pair, ibv_xrcd* xrcd, ibv_srq* srq, ibv_cq* receives) {
  const char* step = "data:xrc";
  ibv_qp_init_attr_ex init = {};
  init.qp_type = IBV_QPT_XRC_SEND;
  init.send_cq = pair->cq;
  init.pd = pair->pd;
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.cap = {kDepth, 0, 1, 0, 0};
  ibv_qp* from = ibv_create_qp_ex(pair->context, &init);
  init = {};
  init.qp_type = IBV_QPT_XRC_RECV;
  init.xrcd = xrcd;
  init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  ibv_qp* to = ibv_create_qp_ex(pair->context, &init);
  uint32_t number = 0;
  ibv_send_wr send = {};
  ibv_wc received = {};
  if (Must("create_qp:XRC", from != nullptr && to != nullptr, errno) &&
      Connect(pair, from, to->qp_num) && Connect(pair, to, from->qp_num) &&
      Must("get_srq_num", ibv_get_srq_num(srq, &number) == 0, errno)) {
    send.qp_type.xrc.remote_srqn = number;
    Prepare(pair, 42);
    if (PostToShared(step, pair, srq) && PostSend(step, pair, from, send) &&
        BothCompleted(step, pair->cq, receives, &received) &&
        BytesRight(step, pair->right.bytes + 256, 42)) {
      const bool good = received.byte_len == kLength;
      Must(step, good, 0, good ? nullptr : "byte_len");
    }
  }
  Destroy("destroy_qp:XRC", from);
  Destroy("destroy_qp:XRC", to);
}

void TryXrc(Pair* pair) {
  ibv_xrcd_init_attr domain = {};
  domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  domain.fd = -1;
  domain.oflags = O_CREAT;
  ibv_xrcd* xrcd = ibv_open_xrcd(pair->context, &domain);
  if (!May("xrcd", xrcd != nullptr, errno)) return;
  ibv_cq* receives = ibv_create_cq(pair->context, kDepth, nullptr, nullptr, 0);
  if (Must("create_cq:XRC", receives != nullptr, errno)) {
    ibv_srq_init_attr_ex init = {};
    init.attr = {kDepth, 1, 0};
    init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ;
    init.srq_type = IBV_SRQT_XRC;
    init.pd = pair->pd;
    init.xrcd = xrcd;
    init.cq = receives;
    ibv_srq* srq = ibv_create_srq_ex(pair->context, &init);
    if (Must("create_srq:XRC", srq != nullptr, errno)) {
      MoveByXrc(pair, xrcd, srq, receives);
      const int result = ibv_destroy_srq(srq);
      Must("destroy_srq:XRC", result == 0, result);
    }
    const int result = ibv_destroy_cq(receives);
    Must("destroy_cq:XRC", result == 0, result);
  }
  const int result = ibv_close_xrcd(xrcd);
  Must("close_xrcd", result == 0, result);
}

// Waits for the one completion of a request on the pair's left side.
bool Ended(const char* step, Pair* pair, ibv_wc_opcode opcode, ibv_wc_status status) {
  ibv_wc wc = {};
  if (Collect(pair->cq, 1, &wc) != 1) return Must(step, false, ETIMEDOUT, "no completion in time");
  if (wc.status != status) return Must(step, false, 0, ibv_wc_status_str(wc.status));
  return wc.status != IBV_WC_SUCCESS || wc.opcode == opcode ||
         Must(step, false, 0, "opcode of another request");
}

bool PostOne(const char* step, ibv_qp* qp, ibv_send_wr wr) {
  wr.wr_id = kSent;
  wr.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  const int result = ibv_post_send(qp, &wr, &bad);
  return result == 0 || Must(step, false, result, "post_send");
}

bool WriteThrough(const char* step, Pair* pair, uint32_t rkey, ibv_wc_status status) {
  ibv_sge sge = Part(pair->left, 128, kLength);
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(pair->right.bytes + 512);
  wr.wr.rdma.rkey = rkey;
  return PostOne(step, pair->left.qp, wr) && Ended(step, pair, IBV_WC_RDMA_WRITE, status);
}

// The right side binds a window of type 2 and the left side writes through it, and beyond its end
// in vain.
void MoveThroughWindow(Pair* pair, ibv_mw* mw, ibv_mr* mr) {
  const char* step = "data:mw";
  const uint32_t rkey = ibv_inc_rkey(mw->rkey);
  ibv_send_wr bind = {};
  bind.opcode = IBV_WR_BIND_MW;
  bind.bind_mw.mw = mw;
  bind.bind_mw.rkey = rkey;
  bind.bind_mw.bind_info = {mr, reinterpret_cast<uintptr_t>(pair->right.bytes + 512), kLength,
                            IBV_ACCESS_REMOTE_WRITE};
  if (!PostOne(step, pair->right.qp, bind) || !Ended(step, pair, IBV_WC_BIND_MW, IBV_WC_SUCCESS))
    return;
  Prepare(pair, 43);
  if (!WriteThrough(step, pair, rkey, IBV_WC_SUCCESS) ||
      !BytesRight(step, pair->right.bytes + 512, 43))
    return;
  ibv_send_wr invalidate = {};
  invalidate.opcode = IBV_WR_LOCAL_INV;
  invalidate.invalidate_rkey = rkey;
  if (!PostOne(step, pair->right.qp, invalidate) ||
      !Ended(step, pair, IBV_WC_LOCAL_INV, IBV_WC_SUCCESS))
    return;
  if (WriteThrough(step, pair, rkey, IBV_WC_REM_ACCESS_ERR)) Must(step, true);
}

void TryWindows(Pair* pair) {
  ibv_mw* mw = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_2);
  if (!May("mw", mw != nullptr, errno)) return;
  ibv_mr* mr = ibv_reg_mr(pair->pd, pair->right.bytes, kRegion,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
  if (Must("reg_mr:MW", mr != nullptr, errno)) MoveThroughWindow(pair, mw, mr);
  int result = ibv_dealloc_mw(mw);
  Must("dealloc_mw", result == 0, result);
  if (mr == nullptr) return;
  result = ibv_dereg_mr(mr);
  Must("dereg_mr:MW", result == 0, result);
}

}  // namespace

void TryServices(Pair* pair) {
  TryDatagrams(pair);
  TrySharedReceives(pair);
  TryXrc(pair);
  TryWindows(pair);
  ibv_wc stale;
  while (ibv_poll_cq(pair->cq, 1, &stale) > 0) {
  }
}

}  // namespace journey
