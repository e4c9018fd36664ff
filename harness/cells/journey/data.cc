// SPDX-License-Identifier: BSD-2-Clause
#include "data.h"

#include <arpa/inet.h>
#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "step.h"

namespace journey {
namespace {

constexpr uint64_t kRecvId = 0x5245435600000000ULL;
constexpr uint64_t kSendId = 0x53454e4400000000ULL;

uint64_t Address(const uint8_t* bytes) { return reinterpret_cast<uintptr_t>(bytes); }

int PostReceive(Side* side, uint32_t offset, uint32_t length, uint64_t id) {
  ibv_sge sge = {Address(side->bytes + offset), length, side->mr->lkey};
  ibv_recv_wr wr = {};
  wr.wr_id = id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(side->qp, &wr, &bad);
}

struct Send {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  uint32_t offset = 0, length = 64;
  uint32_t remote_offset = 0;
  unsigned int flags = IBV_SEND_SIGNALED;
  uint32_t immediate = 0;
  uint64_t compare_add = 0, swap = 0;
  uint32_t lkey = 0, rkey = 0;  // 0: the right ones
  uint64_t id = kSendId;
};

int Post(Side* from, Side* to, const Send& send) {
  ibv_sge sge = {Address(from->bytes + send.offset), send.length,
                 send.lkey ? send.lkey : from->mr->lkey};
  ibv_send_wr wr = {};
  wr.wr_id = send.id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = send.opcode;
  wr.send_flags = send.flags;
  wr.imm_data = htonl(send.immediate);
  const uint32_t rkey = send.rkey ? send.rkey : to->mr->rkey;
  if (send.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || send.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    wr.wr.atomic.remote_addr = Address(to->bytes + send.remote_offset);
    wr.wr.atomic.compare_add = send.compare_add;
    wr.wr.atomic.swap = send.swap;
    wr.wr.atomic.rkey = rkey;
  } else {
    wr.wr.rdma.remote_addr = Address(to->bytes + send.remote_offset);
    wr.wr.rdma.rkey = rkey;
  }
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(from->qp, &wr, &bad);
}

// What a successful completion must say. The library leaves other fields undefined.
struct Expected {
  uint64_t id;
  ibv_wc_opcode opcode;
  const Side* side;
  uint32_t length = 0;  // receives and READ
  bool has_length = false;
  bool has_immediate = false;
  uint32_t immediate = 0;
};

const char* Mismatch(const ibv_wc& wc, const Expected& expected) {
  static char text[160];
  text[0] = '\0';
  if (wc.status != IBV_WC_SUCCESS) {
    snprintf(text, sizeof text, "status %s (%d), vendor 0x%x", ibv_wc_status_str(wc.status),
             wc.status, wc.vendor_err);
  } else if (wc.opcode != expected.opcode) {
    snprintf(text, sizeof text, "opcode %d, expected %d", wc.opcode, expected.opcode);
  } else if (wc.qp_num != expected.side->qp->qp_num) {
    snprintf(text, sizeof text, "qp_num %u, expected %u", wc.qp_num, expected.side->qp->qp_num);
  } else if (expected.has_length && wc.byte_len != expected.length) {
    snprintf(text, sizeof text, "byte_len %u, expected %u", wc.byte_len, expected.length);
  } else if (expected.has_immediate != ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) &&
             (wc.opcode & IBV_WC_RECV) != 0) {
    snprintf(text, sizeof text, "wc_flags 0x%x", wc.wc_flags);
  } else if (expected.has_immediate && ntohl(wc.imm_data) != expected.immediate) {
    snprintf(text, sizeof text, "imm_data 0x%x, expected 0x%x", ntohl(wc.imm_data),
             expected.immediate);
  }
  return text;
}

// Collects as many completions as expected, in whatever order across the two queue pairs, and holds
// each against the one with its id.
bool Completed(const char* step, ibv_cq* cq, const Expected* expected, int count) {
  ibv_wc completions[4] = {};
  const int got = Collect(cq, count, completions);
  if (got != count) {
    char note[64];
    snprintf(note, sizeof note, "%d of %d completions in time", got, count);
    return Must(step, false, ETIMEDOUT, note);
  }
  for (int i = 0; i < count; ++i) {
    const Expected* match = nullptr;
    for (int j = 0; j < count; ++j) {
      if (completions[i].wr_id == expected[j].id) match = &expected[j];
    }
    if (match == nullptr) return Must(step, false, 0, "completion with an unknown wr_id");
    const char* mismatch = Mismatch(completions[i], *match);
    if (*mismatch != '\0') return Must(step, false, 0, mismatch);
  }
  return true;
}

bool BytesRight(const char* step, const uint8_t* bytes, uint32_t length, uint32_t seed) {
  const int64_t wrong = FirstWrong(bytes, length, seed);
  if (wrong < 0) return true;
  char note[96];
  snprintf(note, sizeof note, "byte %lld of %u is wrong", static_cast<long long>(wrong), length);
  return Must(step, false, 0, note);
}

// A message that needs a receive: SEND, with or without immediate, inline or not.
bool Message(const char* step, Pair* pair, Send send, uint32_t seed) {
  Side* from = &pair->left;
  Side* to = &pair->right;
  memset(to->bytes, 0xee, kRegion);
  Fill(from->bytes + send.offset, send.length, seed);
  const bool writes = send.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const bool immediate = writes || send.opcode == IBV_WR_SEND_WITH_IMM;
  int result = PostReceive(to, writes ? 0 : 4096, kRegion / 2, kRecvId | seed);
  if (result != 0) return Must(step, false, result, "post_recv");
  send.id = kSendId | seed;
  send.immediate = immediate ? 0xa0b0c000 + seed : 0;
  result = Post(from, to, send);
  if (result != 0) return Must(step, false, result, "post_send");
  const Expected expected[] = {{kSendId | seed, writes ? IBV_WC_RDMA_WRITE : IBV_WC_SEND, from},
                               {kRecvId | seed, writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                                to, send.length, true, immediate, send.immediate}};
  if (!Completed(step, pair->cq, expected, 2)) return false;
  const uint32_t at = writes ? send.remote_offset : 4096;
  if (!BytesRight(step, to->bytes + at, send.length, seed)) return false;
  // Nothing behind the message was touched.
  return to->bytes[at + send.length] == 0xee ||
         Must(step, false, 0, "bytes behind the message changed");
}

bool OneSided(const char* step, Pair* pair, ibv_wr_opcode opcode, uint32_t length, uint32_t seed) {
  Side* from = &pair->left;
  Side* to = &pair->right;
  const bool reads = opcode == IBV_WR_RDMA_READ;
  memset(reads ? from->bytes : to->bytes, 0xee, kRegion);
  Fill(reads ? to->bytes + 512 : from->bytes + 256, length, seed);
  Send send;
  send.opcode = opcode;
  send.offset = 256;
  send.remote_offset = 512;
  send.length = length;
  send.id = kSendId | seed;
  const int result = Post(from, to, send);
  if (result != 0) return Must(step, false, result, "post_send");
  const Expected expected = {send.id, reads ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE, from};
  if (!Completed(step, pair->cq, &expected, 1)) return false;
  const uint8_t* target = reads ? from->bytes + 256 : to->bytes + 512;
  if (!BytesRight(step, target, length, seed)) return false;
  return target[length] == 0xee || Must(step, false, 0, "bytes behind the message changed");
}

bool Atomic(const char* step, Pair* pair, ibv_wr_opcode opcode) {
  Side* from = &pair->left;
  Side* to = &pair->right;
  uint64_t value = 0x1122334455667788ULL;
  memcpy(to->bytes + 64, &value, 8);
  memset(from->bytes, 0, 64);
  Send send;
  send.opcode = opcode;
  send.length = 8;
  send.remote_offset = 64;
  send.compare_add = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 5 : value;
  send.swap = 0x99;
  const int result = Post(from, to, send);
  if (result != 0) return Must(step, false, result, "post_send");
  const Expected expected = {
      kSendId, opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP, from};
  if (!Completed(step, pair->cq, &expected, 1)) return false;
  uint64_t before = 0;
  uint64_t after = 0;
  memcpy(&before, from->bytes, 8);
  memcpy(&after, to->bytes + 64, 8);
  const uint64_t right = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? value + 5 : 0x99;
  return (before == value && after == right) || Must(step, false, 0, "wrong value before or after");
}

// More messages than the queues hold, only every fourth signaled.
bool Wrap(const char* step, Pair* pair) {
  Side* from = &pair->left;
  Side* to = &pair->right;
  for (uint32_t i = 0; i < 5 * kDepth; ++i) {
    const uint32_t seed = 1000 + i;
    Fill(from->bytes + (i % 4) * 1024, 96, seed);
    int result = PostReceive(to, 8192 + (i % 4) * 1024, 512, kRecvId | seed);
    if (result != 0) return Must(step, false, result, "post_recv");
    Send send;
    send.offset = (i % 4) * 1024;
    send.length = 96;
    send.flags = i % 4 == 3 ? IBV_SEND_SIGNALED : 0;
    send.id = kSendId | seed;
    result = Post(from, to, send);
    if (result != 0) return Must(step, false, result, "post_send");
    const Expected expected[] = {{kRecvId | seed, IBV_WC_RECV, to, 96, true},
                                 {kSendId | seed, IBV_WC_SEND, from}};
    if (!Completed(step, pair->cq, expected, i % 4 == 3 ? 2 : 1)) return false;
    if (!BytesRight(step, to->bytes + 8192 + (i % 4) * 1024, 96, seed)) return false;
  }
  return true;
}

// The completion channel tells of a completion that comes after arming, once.
bool Channel(const char* step, Pair* pair) {
  ibv_wc stale;
  while (ibv_poll_cq(pair->cq, 1, &stale) > 0) {
  }
  int result = ibv_req_notify_cq(pair->cq, 0);
  if (result != 0) return Must(step, false, result, "req_notify_cq");
  pollfd waiting = {pair->channel->fd, POLLIN, 0};
  if (poll(&waiting, 1, 0) != 0) return Must(step, false, 0, "an event before any completion");
  Send send;
  send.opcode = IBV_WR_RDMA_WRITE;
  result = Post(&pair->left, &pair->right, send);
  if (result != 0) return Must(step, false, result, "post_send");
  if (poll(&waiting, 1, 2000) != 1) return Must(step, false, ETIMEDOUT, "no event in time");
  ibv_cq* cq = nullptr;
  void* user = nullptr;
  if (ibv_get_cq_event(pair->channel, &cq, &user) != 0)
    return Must(step, false, errno, "get_cq_event");
  if (cq != pair->cq) return Must(step, false, 0, "event of another CQ");
  ibv_ack_cq_events(cq, 1);
  const Expected expected = {kSendId, IBV_WC_RDMA_WRITE, &pair->left};
  if (!Completed(step, pair->cq, &expected, 1)) return false;
  return poll(&waiting, 1, 0) == 0 || Must(step, false, 0, "a second event");
}

struct Failure {
  const char* step;
  Send send;
  bool with_receive;
  uint32_t receive_length;
  // What NICs say of the fault: IBTA's word first, then what rxe says instead in some releases. The
  // conformance suites hold each driver to its own.
  std::initializer_list<ibv_wc_status> statuses;
};

bool Accepts(const Failure& failure, ibv_wc_status status) {
  for (const ibv_wc_status accepted : failure.statuses) {
    if (status == accepted) return true;
  }
  return false;
}

bool Fails(Pair* pair, const Failure& failure) {
  if (failure.with_receive) {
    const int result = PostReceive(&pair->right, 0, failure.receive_length, kRecvId);
    if (result != 0) return Must(failure.step, false, result, "post_recv");
  }
  const int result = Post(&pair->left, &pair->right, failure.send);
  if (result != 0) return Must(failure.step, false, result, "post_send");
  // The receiver's own error completion may come first. Not told apart by wr_id: rxe leaves it 0 in
  // completions with an error in some releases (rxe_comp.c: make_send_cqe).
  ibv_wc completions[2] = {};
  const ibv_wc* sent = nullptr;
  int got = 0;
  while (got < 2 && sent == nullptr && Collect(pair->cq, 1, &completions[got]) == 1) {
    if (Accepts(failure, completions[got].status)) sent = &completions[got];
    ++got;
  }
  if (got == 0) return Must(failure.step, false, ETIMEDOUT, "no completion");
  if (sent == nullptr) {
    char note[120];
    snprintf(note, sizeof note, "status %s, expected %s", ibv_wc_status_str(completions[0].status),
             ibv_wc_status_str(*failure.statuses.begin()));
    return Must(failure.step, false, 0, note);
  }
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  const int queried = ibv_query_qp(pair->left.qp, &attr, IBV_QP_STATE, &init);
  if (queried != 0) return Must(failure.step, false, queried, "query_qp");
  if (attr.qp_state != IBV_QPS_ERR)
    return Must(failure.step, false, 0, "queue pair is not in error");
  return Must(failure.step, true);
}

}  // namespace

void MoveData(Pair* pair, bool has_atomics) {
  Send send;
  if (Message("data:send", pair, send, 1)) Must("data:send", true);
  send.length = 12000;  // several MTUs
  if (Message("data:send_long", pair, send, 2)) Must("data:send_long", true);
  send.length = pair->inline_size < 48 ? pair->inline_size : 48;
  send.flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  if (Message("data:send_inline", pair, send, 3)) Must("data:send_inline", true);
  send.flags = IBV_SEND_SIGNALED;
  send.length = 333;
  send.opcode = IBV_WR_SEND_WITH_IMM;
  if (Message("data:send_imm", pair, send, 4)) Must("data:send_imm", true);
  send.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  send.remote_offset = 2048;
  if (Message("data:write_imm", pair, send, 5)) Must("data:write_imm", true);
  if (OneSided("data:write", pair, IBV_WR_RDMA_WRITE, 5000, 6)) Must("data:write", true);
  if (OneSided("data:read", pair, IBV_WR_RDMA_READ, 5000, 7)) Must("data:read", true);
  if (has_atomics) {
    if (Atomic("data:fetch_add", pair, IBV_WR_ATOMIC_FETCH_AND_ADD)) Must("data:fetch_add", true);
    if (Atomic("data:compare_swap", pair, IBV_WR_ATOMIC_CMP_AND_SWP))
      Must("data:compare_swap", true);
  }
  if (Wrap("data:wrap", pair)) Must("data:wrap", true);
  if (Channel("data:channel", pair)) Must("data:channel", true);
}

void FailOnPurpose(Pair* pair) {
  Send wrong_rkey;
  wrong_rkey.opcode = IBV_WR_RDMA_WRITE;
  wrong_rkey.rkey = pair->right.mr->rkey ^ 0x00ff0000;
  Send wrong_lkey;
  wrong_lkey.opcode = IBV_WR_RDMA_WRITE;
  wrong_lkey.lkey = pair->left.mr->lkey ^ 0x00ff0000;
  Send beyond;
  beyond.opcode = IBV_WR_RDMA_READ;
  beyond.remote_offset = kRegion - 32;
  Send unready;
  Send too_long;
  too_long.length = 512;
  const Failure failures[] = {
      // rxe up to 5.12 sends no NAK for a request that takes no receive (rxe_resp.c: do_complete).
      {"error:wrong_rkey", wrong_rkey, false, 0, {IBV_WC_REM_ACCESS_ERR, IBV_WC_RETRY_EXC_ERR}},
      {"error:wrong_lkey",
       wrong_lkey,
       false,
       0,
       {IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_WR_FLUSH_ERR}},
      {"error:beyond_region", beyond, false, 0, {IBV_WC_REM_ACCESS_ERR, IBV_WC_RETRY_EXC_ERR}},
      {"error:no_receive", unready, false, 0, {IBV_WC_RNR_RETRY_EXC_ERR}},
      {"error:message_too_long", too_long, true, 128, {IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR}},
  };
  for (const Failure& failure : failures) {
    Fails(pair, failure);
    if (!Reconnect(pair)) return;
    ibv_wc stale;
    while (ibv_poll_cq(pair->cq, 1, &stale) > 0) {
    }
  }
}

}  // namespace journey
