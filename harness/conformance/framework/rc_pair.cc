// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/rc_pair.h"

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <ostream>

namespace vabi::conformance {
namespace {

constexpr uint8_t kCleared = 0xee;
// Of the process's own time: how long others keep a busy machine from it says nothing about the
// NIC.
constexpr std::clock_t kWait = 2 * CLOCKS_PER_SEC;

int RemoteAccess(int access) { return access & ~IBV_ACCESS_LOCAL_WRITE; }

}  // namespace

ibv_sge RcPair::Side::At(uint32_t offset, uint32_t length) const {
  return {Address(offset), length, mr->lkey};
}

void RcPair::Side::Fill(uint32_t offset, uint32_t length, uint32_t seed) {
  for (uint32_t i = 0; i < length; ++i) bytes[offset + i] = PatternAt(seed, i);
}

std::optional<uint32_t> RcPair::Side::FirstWrong(uint32_t offset, uint32_t length,
                                                 uint32_t seed) const {
  for (uint32_t i = 0; i < length; ++i) {
    if (bytes[offset + i] != PatternAt(seed, i)) return i;
  }
  return std::nullopt;
}

void RcPair::Side::Clear() { std::memset(bytes.get(), kCleared, kBytes); }

bool RcPair::Side::OnlyTouched(uint32_t offset, uint32_t length) const {
  for (uint32_t i = 0; i < kBytes; ++i) {
    if (i >= offset && i < offset + length) continue;
    if (bytes[i] != kCleared) return false;
  }
  return true;
}

Error RcPair::Side::PostReceive(uint64_t wr_id, std::vector<ibv_sge> sges) {
  ibv_recv_wr wr = {};
  wr.wr_id = wr_id;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  ibv_recv_wr* bad = nullptr;
  errno = 0;
  if (srq) return FromVerb(ibv_post_srq_recv(srq.get(), &wr, &bad));
  return FromVerb(ibv_post_recv(qp.get(), &wr, &bad));
}

Error RcPair::Side::PostSend(ibv_send_wr send, std::vector<ibv_sge> sges) {
  send.sg_list = sges.data();
  send.num_sge = static_cast<int>(sges.size());
  ibv_send_wr* bad = nullptr;
  errno = 0;
  return FromVerb(ibv_post_send(qp.get(), &send, &bad));
}

std::vector<ibv_wc> RcPair::Side::Poll(size_t count) {
  std::vector<ibv_wc> found;
  const std::clock_t begin = std::clock();
  do {
    ibv_wc completion = {};
    const int got = ibv_poll_cq(cq.get(), 1, &completion);
    if (got < 0) throw Broken("ibv_poll_cq: " + std::to_string(got));
    if (got > 0) found.push_back(completion);
  } while (found.size() < count && std::clock() - begin < kWait);
  return found;
}

std::vector<ibv_wc> RcPair::Side::Drain() {
  std::vector<ibv_wc> found;
  for (;;) {
    ibv_wc completion = {};
    const int got = ibv_poll_cq(cq.get(), 1, &completion);
    if (got < 0) throw Broken("ibv_poll_cq: " + std::to_string(got));
    if (got == 0) return found;
    found.push_back(completion);
  }
}

ibv_qp_state RcPair::Side::State() const {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  Must("ibv_query_qp", FromVerb(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init)));
  return attr.qp_state;
}

RcPair::RcPair(const PairOptions& options)
    : options_(options), context_(OpenOnlyDevice()), pd_(context_.AllocPd()) {
  port_ = context_.QueryPort();
  // The last entry that is filled: on RoCE the one of version 2 over IPv4.
  for (int i = 0; i < port_.gid_tbl_len && i < 8; ++i) {
    ibv_gid gid = {};
    if (ibv_query_gid(context_.get(), 1, i, &gid) != 0 || gid.global.interface_id == 0) continue;
    gid_ = gid;
    gid_index_ = i;
  }
  MakeSide(&left, false);
  MakeSide(&right, options.with_srq);
  ToInit(&left);
  ToInit(&right);
  Connect(&left, right);
  Connect(&right, left);
}

void RcPair::MakeSide(Side* side, bool srq) {
  side->bytes = {static_cast<uint8_t*>(std::aligned_alloc(4096, kBytes)), std::free};
  side->Clear();
  side->mr = pd_.RegMr(side->bytes.get(), kBytes, options_.access);
  if (options_.with_channel) side->channel = context_.CreateChannel();
  side->cq = context_.CreateCq(static_cast<int>(4 * options_.depth), side->channel.get());
  if (srq) side->srq = pd_.CreateSrq(options_.depth, options_.sges);
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = side->cq.get();
  init.srq = side->srq.get();
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = options_.signal_all;
  init.cap.max_send_wr = init.cap.max_recv_wr = options_.depth;
  init.cap.max_send_sge = init.cap.max_recv_sge = options_.sges;
  init.cap.max_inline_data = options_.inline_data;
  side->qp = pd_.CreateQp(init, &side->cap);
}

void RcPair::ToInit(Side* side) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = static_cast<unsigned>(RemoteAccess(options_.access));
  Must("ibv_modify_qp to INIT", FromVerb(ibv_modify_qp(side->qp.get(), &attr,
                                                       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                                           IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)));
}

void RcPair::Connect(Side* side, const Side& peer) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = port_.active_mtu;
  attr.dest_qp_num = peer.qp->qp_num;
  attr.rq_psn = 0x100;
  attr.max_dest_rd_atomic = 4;
  attr.min_rnr_timer = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.dlid = port_.lid;
  if (port_.link_layer == IBV_LINK_LAYER_ETHERNET) {
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = gid_;
    attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_index_);
    attr.ah_attr.grh.hop_limit = 64;
  }
  Must("ibv_modify_qp to RTR",
       FromVerb(ibv_modify_qp(side->qp.get(), &attr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                  IBV_QP_MIN_RNR_TIMER)));
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = options_.timeout;
  attr.retry_cnt = options_.retry;
  attr.rnr_retry = options_.rnr_retry;
  attr.sq_psn = 0x100;
  attr.max_rd_atomic = 4;
  Must("ibv_modify_qp to RTS",
       FromVerb(ibv_modify_qp(side->qp.get(), &attr,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)));
}

ibv_send_wr Work(ibv_wr_opcode opcode, uint64_t wr_id, unsigned flags) {
  ibv_send_wr wr = {};
  wr.opcode = opcode;
  wr.wr_id = wr_id;
  wr.send_flags = flags;
  return wr;
}

ibv_send_wr WorkAt(ibv_wr_opcode opcode, uint64_t wr_id, uint64_t remote, uint32_t rkey,
                   unsigned flags) {
  ibv_send_wr wr = Work(opcode, wr_id, flags);
  wr.wr.rdma.remote_addr = remote;
  wr.wr.rdma.rkey = rkey;
  return wr;
}

}  // namespace vabi::conformance

std::ostream& operator<<(std::ostream& out, const ibv_wc& completion) {
  return out << "wr_id " << completion.wr_id << ' ' << ibv_wc_status_str(completion.status)
             << " opcode " << completion.opcode << " byte_len " << completion.byte_len
             << " qp_num 0x" << std::hex << completion.qp_num << std::dec << " wc_flags "
             << completion.wc_flags << " imm " << completion.imm_data << " vendor_err 0x"
             << std::hex << completion.vendor_err << std::dec;
}
