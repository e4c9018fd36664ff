// SPDX-License-Identifier: BSD-2-Clause
// The data path, every field of each completion. Expected values: the driver's source (rxe_req.c,
// rxe_comp.c, rxe_resp.c, rxe_mw.c), each also seen with one program on the
// kernels 5.10.223, 6.1.192, 6.12.117, 7.2.13 and 7.3.4.
#include "shims/providers/rxe/test_rxe.h"

namespace vabi::rxe {
namespace {

constexpr uint32_t kNothing = 999;

class DataPath : public RxeTest {
 protected:
  explicit DataPath(const char* kernel = "debian-7.3.4") : RxeTest(kernel) { Pair(2); }
  void Pair(uint8_t type) {
    scq = MakeCq();
    rcq = MakeCq();
    QpWish wish;
    wish.type = type;
    a = MakeQp(scq, scq, wish);
    b = MakeQp(rcq, rcq, wish);
    Connect(a, b.number, type);
    Connect(b, a.number, type);
  }
  void Settle() {
    for (int i = 0; i < 100000 && fabric::Step(); ++i) {
    }
  }
  void ExpectEqualBytes(uint32_t to, uint32_t from, uint32_t length) {
    for (uint32_t i = 0; i < length; ++i) ASSERT_EQ(bytes[to + i], Pattern(from + i)) << i;
  }
  // The one completion of a request that fails, and the responder's.
  struct Failure {
    uint32_t requester, responder;
    uint64_t state_a, state_b;
  };
  Failure Fail(const Wish& wish) {
    Send(a, wish);
    Settle();
    const Wc mine = Poll(scq);
    const Wc theirs = Poll(rcq);
    return {mine.status, theirs.status, State(a), State(b)};
  }

  uint32_t NewWindow(uint32_t pd, uint8_t type) {
    Bytes request = Zero(VABI_S(ib_uverbs_alloc_mw));
    In(request).Set(VABI_F(ib_uverbs_alloc_mw, pd_handle), pd);
    In(request).Set(VABI_F(ib_uverbs_alloc_mw, mw_type), type);
    Bytes reply(world().Size(VABI_S(ib_uverbs_alloc_mw_resp)));
    EXPECT_GT(Command(kAllocMw, request, &reply), 0);
    return In(reply).U32(VABI_F(ib_uverbs_alloc_mw_resp, rkey));
  }
  // b binds it to 500 bytes, to be written to.
  Wc BindWindow(uint32_t rkey, uint32_t bound) {
    uint8_t* slot = b.send.Slot(b.send.producer());
    std::memset(slot, 0, 1u << b.send.log2());
    const Body wr =
        Body(world(), slot, world().Size(VABI_S(rxe_send_wqe))).Sub(VABI_F(rxe_send_wqe, wr));
    wr.Set(VABI_F(rxe_send_wr, wr_id), 1);
    wr.Set(VABI_F(rxe_send_wr, opcode), kBindMw);
    wr.Set(VABI_F(rxe_send_wr, send_flags), kSignaled);
    wr.Set(VABI_F(rxe_send_wr, mw_addr), Address(1000));
    wr.Set(VABI_F(rxe_send_wr, mw_length), 500);
    wr.Set(VABI_F(rxe_send_wr, mw_mr_lkey), lkey_);
    wr.Set(VABI_F(rxe_send_wr, mw_mw_rkey), rkey);
    wr.Set(VABI_F(rxe_send_wr, mw_rkey), bound);
    wr.Set(VABI_F(rxe_send_wr, mw_access), 2);
    b.send.Produce();
    EXPECT_GT(Ring(b), 0);
    return Poll(rcq);
  }

  Cq scq, rcq;
  Qp a, b;
};

TEST_F(DataPath, SendAndReceive) {
  Receive(b.receive, 5, {At(30000, 100), At(40000, 4000)});
  Send(a, {.wr_id = 6, .sges = {At(0, 1500), At(3000, 500)}});
  const Wc sent = Poll(scq);
  EXPECT_EQ(sent.wr_id, 6u);
  EXPECT_EQ(sent.status, 0u);
  EXPECT_EQ(sent.opcode, 0u);
  EXPECT_EQ(sent.byte_len, 2000u);
  EXPECT_EQ(sent.qp_num, a.number);
  EXPECT_EQ(sent.flags, 0u);
  const Wc got = Poll(rcq);
  EXPECT_EQ(got.wr_id, 5u);
  EXPECT_EQ(got.status, 0u);
  EXPECT_EQ(got.opcode, 128u);
  EXPECT_EQ(got.byte_len, 2000u);
  EXPECT_EQ(got.qp_num, b.number);
  EXPECT_EQ(got.flags, 1u);  // IB_WC_GRH, always
  EXPECT_EQ(got.port, 1u);
  EXPECT_EQ(got.src_qp, 0u);
  ExpectEqualBytes(30000, 0, 100);
  ExpectEqualBytes(40000, 100, 1400);
  ExpectEqualBytes(41400, 3000, 500);
}

TEST_F(DataPath, ImmediateInline) {
  Receive(b.receive, 5, {At(30000, 100)});
  Send(a, {.opcode = kSendImm,
           .wr_id = 6,
           .flags = kSignaled | kInline,
           .inline_data = Bytes(64, 0xab),
           .imm = 0x11223344});
  EXPECT_EQ(Poll(scq).flags, 2u);
  const Wc got = Poll(rcq);
  EXPECT_EQ(got.flags, 3u);
  EXPECT_EQ(got.imm, 0x11223344u);
  EXPECT_EQ(bytes[30063], 0xab);
  EXPECT_EQ(bytes[30064], Pattern(30064));
}

TEST_F(DataPath, WriteReadAndWriteImmediate) {
  Send(a, {.opcode = kWrite,
           .wr_id = 1,
           .sges = {At(0, 5000)},
           .remote = Address(20000),
           .rkey = rkey_});
  const Wc write = Poll(scq);
  EXPECT_EQ(write.opcode, 1u);
  EXPECT_EQ(write.byte_len, 5000u);
  ExpectEqualBytes(20000, 0, 5000);
  Send(a, {.opcode = kRead,
           .wr_id = 2,
           .sges = {At(40000, 300)},
           .remote = Address(50000),
           .rkey = rkey_});
  EXPECT_EQ(Poll(scq).opcode, 2u);
  ExpectEqualBytes(40000, 50000, 300);
  Receive(b.receive, 3, {});
  Send(a, {.opcode = kWriteImm,
           .wr_id = 4,
           .sges = {At(0, 70)},
           .remote = Address(45000),
           .rkey = rkey_,
           .imm = 9});
  EXPECT_EQ(Poll(scq).opcode, 1u);
  const Wc got = Poll(rcq);
  EXPECT_EQ(got.wr_id, 3u);
  EXPECT_EQ(got.opcode, 129u);
  EXPECT_EQ(got.byte_len, 70u);
  EXPECT_EQ(got.flags, 3u);
  EXPECT_EQ(got.imm, 9u);
}

TEST_F(DataPath, Atomics) {
  auto* word = reinterpret_cast<uint64_t*>(bytes + 1024);
  auto* old = reinterpret_cast<uint64_t*>(bytes);
  *word = 40;
  Send(a, {.opcode = kFaa, .sges = {At(0, 8)}, .remote = Address(1024), .rkey = rkey_, .add = 2});
  EXPECT_EQ(Poll(scq).opcode, 4u);
  EXPECT_EQ(*old, 40u);
  EXPECT_EQ(*word, 42u);
  Send(a, {.opcode = kCas,
           .sges = {At(0, 8)},
           .remote = Address(1024),
           .rkey = rkey_,
           .add = 42,
           .swap = 7});
  const Wc swap = Poll(scq);
  EXPECT_EQ(swap.opcode, 3u);
  EXPECT_EQ(swap.byte_len, 8u);
  EXPECT_EQ(*word, 7u);
}

TEST_F(DataPath, AtomicWriteAndFlush) {
  constexpr uint32_t kFlush = 14, kAtomicWrite = 15;  // enum ib_uverbs_wr_opcode
  const uint64_t value = 0x1122334455667788;
  Bytes data(8);
  std::memcpy(data.data(), &value, 8);
  Send(a, {.opcode = kAtomicWrite, .inline_data = data, .remote = Address(1024), .rkey = rkey_});
  const Wc write = Poll(scq);
  EXPECT_EQ(write.status, 0u);
  EXPECT_EQ(write.opcode, 9u);
  EXPECT_EQ(write.byte_len, 8u);
  EXPECT_EQ(std::memcmp(bytes + 1024, &value, 8), 0);
  // FLUSH, rkey 0: one of the key's rules, not of the opcode's.
  Send(a, {.opcode = kFlush});
  EXPECT_EQ(Poll(scq).status, 10u);
}

TEST_F(DataPath, UnsignaledRequestsLeaveNoTrace) {
  Send(a, {.opcode = kWrite, .flags = 0, .sges = {At(0, 8)}, .remote = Address(64), .rkey = rkey_});
  EXPECT_EQ(Poll(scq).status, kNothing);
  EXPECT_EQ(a.send.Count(), 0u) << "and yet it was taken";
  ExpectEqualBytes(64, 0, 8);
}

TEST_F(DataPath, QueuesWrapAroundAndTakeWhatIsPostedInOneGo) {
  for (uint64_t round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < 7; ++i) {
      Receive(b.receive, 100 * round + i, {At(30000, 64)});
      Post(a, {.wr_id = 1000 * round + i, .sges = {At(0, 8)}});
    }
    ASSERT_GT(Ring(a), 0);
    for (uint64_t i = 0; i < 7; ++i) {
      ASSERT_EQ(Poll(scq).wr_id, 1000 * round + i);
      ASSERT_EQ(Poll(rcq).wr_id, 100 * round + i);
    }
  }
}

TEST_F(DataPath, TheDoorbellBeforeRtsIsRefused) {
  Cq cq = MakeCq();
  Qp qp = MakeQp(cq, cq, {});
  EXPECT_EQ(Errno(Ring(qp)), EINVAL);
  ASSERT_GT(ToInit(qp), 0);
  EXPECT_EQ(Errno(Ring(qp)), EINVAL);
  ASSERT_GT(ToRtr(qp, 1), 0);
  EXPECT_EQ(Errno(Ring(qp)), EINVAL);
  ASSERT_GT(ToRts(qp), 0);
  EXPECT_GT(Ring(qp), 0);
}

TEST_F(DataPath, LocalFaultsEndAsFlushed) {
  // rxe_requester puts the queue pair into error, then rxe_completer flushes all that is queued.
  Receive(b.receive, 1, {At(0, 64)});
  Post(a, {.wr_id = 1, .sges = {{Address(0), 8, 0xdead00}}});
  Send(a, {.wr_id = 2, .sges = {At(0, 8)}});
  for (uint64_t id : {1, 2}) {
    const Wc wc = Poll(scq);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, 5u);
  }
  EXPECT_EQ(State(a), 6u);
  EXPECT_EQ(State(b), 3u);
  EXPECT_EQ(Poll(rcq).status, kNothing);
}

TEST_F(DataPath, RemoteFaults) {
  Receive(b.receive, 9, {At(30000, 10)});
  const Failure failure =
      Fail({.opcode = kWrite, .sges = {At(0, 8)}, .remote = Address(64), .rkey = 0xdead00});
  EXPECT_EQ(failure.requester, 10u);  // REM_ACCESS_ERR
  EXPECT_EQ(failure.responder, 5u);   // its receive is flushed
  EXPECT_EQ(failure.state_a, 6u);
  EXPECT_EQ(failure.state_b, 6u);
  EXPECT_EQ(AsyncEvent(), (std::pair<uint64_t, int>{0x90, 3}));  // IB_EVENT_QP_ACCESS_ERR
}

TEST_F(DataPath, RemoteFaultOfAWriteWithImmediateIsPinnedOnItsReceive) {
  Receive(b.receive, 9, {At(30000, 10)});
  const Failure failure =
      Fail({.opcode = kWriteImm, .sges = {At(0, 8)}, .remote = Address(64), .rkey = 0xdead00});
  EXPECT_EQ(failure.requester, 10u);
  EXPECT_EQ(failure.responder, 10u);
  EXPECT_EQ(AsyncEvent().second, -1);
}

TEST_F(DataPath, TooLongForTheReceive) {
  Receive(b.receive, 9, {At(30000, 10)});
  const Failure failure = Fail({.sges = {At(0, 11)}});
  EXPECT_EQ(failure.requester, 11u);  // REM_OP_ERR
  EXPECT_EQ(failure.responder, 2u);   // LOC_QP_OP_ERR
}

TEST_F(DataPath, AnswersThatCannotBePutAway) {
  uint32_t lkey = 0;
  ASSERT_GT(Mr(pd_, 0x4, &lkey, nullptr), 0);
  const Failure failure = Fail(
      {.opcode = kRead, .sges = {{Address(0), 8, lkey}}, .remote = Address(64), .rkey = rkey_});
  EXPECT_EQ(failure.requester, 4u);  // LOC_PROT_ERR
  EXPECT_EQ(failure.state_a, 6u);
  EXPECT_EQ(failure.state_b, 3u);
}

TEST_F(DataPath, NoReceiveIsWaitedFor) {
  rnr_retry_ = 7;
  Pair(2);
  Send(a, {.wr_id = 1, .sges = {At(0, 8)}});
  EXPECT_EQ(Poll(scq).status, kNothing);
  for (int i = 0; i < 50; ++i) fabric::Step();
  EXPECT_EQ(Poll(scq).status, kNothing);
  Receive(b.receive, 2, {At(30000, 8)});
  Settle();
  EXPECT_EQ(Poll(scq).status, 0u);
  EXPECT_EQ(Poll(rcq).wr_id, 2u);
}

TEST_F(DataPath, NoReceiveInTheEnd) {
  const Failure failure = Fail({.sges = {At(0, 8)}});
  EXPECT_EQ(failure.requester, 13u);  // RNR_RETRY_EXC_ERR
  EXPECT_EQ(failure.state_a, 6u);
  EXPECT_EQ(failure.state_b, 3u);
}

TEST_F(DataPath, APeerInErrorDoesNotAnswer) {
  ASSERT_GT(ToState(b, 6), 0);
  const Failure failure = Fail({.sges = {At(0, 8)}});
  EXPECT_EQ(failure.requester, 12u);  // RETRY_EXC_ERR
}

TEST_F(DataPath, TheErrorStateFlushes) {
  Receive(a.receive, 1, {At(0, 8)});
  Receive(a.receive, 2, {At(0, 8)});
  ASSERT_GT(ToState(a, 6), 0);
  for (uint64_t id : {1, 2}) {
    const Wc wc = Poll(scq);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, 5u);
    EXPECT_EQ(wc.qp_num, a.number);
  }
  Send(a, {.wr_id = 3, .sges = {At(0, 8)}});
  EXPECT_EQ(Poll(scq).status, 5u);
}

TEST_F(DataPath, ResetForgetsWithoutAWord) {
  Receive(a.receive, 1, {At(0, 8)});
  ASSERT_GT(ToState(a, 0), 0);
  EXPECT_EQ(Poll(scq).status, kNothing);
  EXPECT_EQ(a.receive.Count(), 0u);
  EXPECT_EQ(State(a), 0u);
}

TEST_F(DataPath, DrainingTakesAMomentAndAnEvent) {
  ASSERT_GT(ToState(a, 4), 0);
  EXPECT_EQ(Query(a, VABI_F(ib_uverbs_query_qp_resp, sq_draining)), 1u);
  EXPECT_EQ(Errno(ToState(a, 3)), EINVAL) << "still draining";
  EXPECT_EQ(AsyncEvent().second, -1);
  Settle();
  EXPECT_EQ(AsyncEvent().second, 5);  // IB_EVENT_SQ_DRAINED
  EXPECT_EQ(Query(a, VABI_F(ib_uverbs_query_qp_resp, sq_draining)), 0u);
  Receive(b.receive, 1, {At(30000, 8)});
  Send(a, {.wr_id = 2, .sges = {At(0, 8)}});
  EXPECT_EQ(Poll(scq).status, kNothing) << "nothing new is started";
  ASSERT_GT(ToState(a, 3), 0);
  ASSERT_GT(Ring(a), 0);
  EXPECT_EQ(Poll(scq).wr_id, 2u);
}

TEST_F(DataPath, ArmedQueuesNotifyOnce) {
  const int channel = Channel();
  Cq cq = MakeCq(15, channel);
  const auto arm = [&](bool solicited) {
    Bytes request = Zero(VABI_S(ib_uverbs_req_notify_cq));
    In(request).Set(VABI_F(ib_uverbs_req_notify_cq, cq_handle), cq.handle);
    In(request).Set(VABI_F(ib_uverbs_req_notify_cq, solicited_only), solicited);
    ASSERT_GT(Command(kReqNotifyCq, request, nullptr), 0);
  };
  Cq other = MakeCq();
  Qp e = MakeQp(other, other, {}), f = MakeQp(cq, cq, {});
  Connect(e, f.number);
  Connect(f, e.number);
  const auto send = [&](uint32_t flags) {
    Receive(f.receive, 1, {At(30000, 64)});
    Send(e, {.flags = kSignaled | flags, .sges = {At(0, 8)}});
  };
  send(0);
  EXPECT_EQ(ReadEvent(channel, 8).second, -1) << "not armed";
  arm(false);
  send(0);
  EXPECT_EQ(ReadEvent(channel, 8), (std::pair<uint64_t, int>{0xc0, 0}));
  send(0);
  EXPECT_EQ(ReadEvent(channel, 8).second, -1) << "once";
  arm(true);
  send(0);
  EXPECT_EQ(ReadEvent(channel, 8).second, -1) << "not solicited";
  send(kSolicited);
  EXPECT_EQ(ReadEvent(channel, 8).second, 0);
}

TEST_F(DataPath, AFullCompletionQueueIsAnEvent) {
  Cq small = MakeCq(1);
  Qp c = MakeQp(small, small, {}), d = MakeQp(rcq, rcq, {});
  Connect(c, d.number);
  Connect(d, c.number);
  for (uint64_t i = 0; i < 3; ++i) {
    Send(c,
         {.opcode = kWrite, .wr_id = i, .sges = {At(0, 8)}, .remote = Address(64), .rkey = rkey_});
  }
  EXPECT_EQ(small.queue.Count(), 1u);
  EXPECT_EQ(AsyncEvent(), (std::pair<uint64_t, int>{0xc0, 0}));  // IB_EVENT_CQ_ERR
  EXPECT_EQ(AsyncEvent(), (std::pair<uint64_t, int>{0xc0, 0}));
  EXPECT_EQ(AsyncEvent().second, -1);
  EXPECT_EQ(State(c), 3u) << "do_complete takes no notice";
}

TEST_F(DataPath, AReceiverWithAFullCompletionQueueGoesToError) {
  Cq small = MakeCq(1);
  Qp c = MakeQp(scq, small, {}), d = MakeQp(rcq, rcq, {});
  Connect(c, d.number);
  Connect(d, c.number);
  Receive(c.receive, 1, {At(30000, 8)});
  Receive(c.receive, 2, {At(30000, 8)});
  Send(d, {.wr_id = 1, .sges = {At(0, 8)}});
  EXPECT_EQ(Poll(rcq).status, 0u);
  Send(d, {.wr_id = 2, .sges = {At(0, 8)}});
  Settle();
  EXPECT_EQ(State(c), 6u);
  EXPECT_EQ(Poll(rcq).status, 12u) << "class G: no acknowledgement";
}

TEST_F(DataPath, QueriesTellWhatIsKept) {
  EXPECT_EQ(Query(a, VABI_F(ib_uverbs_query_qp_resp, max_rd_atomic)),
            4u);  // rounded up to a power of two
  EXPECT_EQ(Query(a, VABI_F(ib_uverbs_query_qp_resp, max_dest_rd_atomic)), 4u);
  EXPECT_EQ(Query(a, VABI_F(ib_uverbs_query_qp_resp, sq_psn)), 7u);
  Send(a, {.opcode = kWrite, .sges = {At(0, 3000)}, .remote = Address(20000), .rkey = rkey_});
  EXPECT_EQ(Query(a, VABI_F(ib_uverbs_query_qp_resp, sq_psn)), 10u)
      << "three packets of 1024 bytes";
  EXPECT_EQ(Query(b, VABI_F(ib_uverbs_query_qp_resp, rq_psn)), 10u);
  EXPECT_EQ(Query(a, VABI_F(ib_uverbs_query_qp_resp, path_mtu)), 3u);
  EXPECT_EQ(Query(a, VABI_F(ib_uverbs_query_qp_resp, dest_qp_num)), b.number);
}

// rxe_qp.c:rxe_qp_from_attr asks __qp_chk_state only for a new state (6.6 and later).
TEST_F(DataPath, WithoutAStateAnyAttributeIsTaken) {
  Cq cq = MakeCq();
  Qp qp = MakeQp(cq, cq, {});
  EXPECT_GT(Modify(qp, 0x8000 | 0x2, {{MODIFY(min_rnr_timer), 9}, {MODIFY(cur_qp_state), 3}}), 0);
  EXPECT_EQ(Query(qp, VABI_F(ib_uverbs_query_qp_resp, min_rnr_timer)), 9u);
  EXPECT_EQ(State(qp), 0u) << "it is not what the caller believes";
  EXPECT_EQ(Errno(Modify(qp, 0x8000 | 0x1, {{MODIFY(qp_state), 1}})), EINVAL)
      << "RESET to INIT needs port and key index";
  ASSERT_GT(ToInit(qp), 0);
  EXPECT_EQ(Query(qp, VABI_F(ib_uverbs_query_qp_resp, cur_qp_state)), 1u);
}

// rxe_req.c: req.psn is behind what was sent, whatever became of it.
TEST_F(DataPath, WhatFailedWasSent) {
  Fail({.opcode = kWrite, .sges = {At(0, 2000)}, .remote = Address(64), .rkey = rkey_ + 1});
  EXPECT_EQ(Query(a, VABI_F(ib_uverbs_query_qp_resp, sq_psn)), 9u) << "two packets of 1024 bytes";
  EXPECT_EQ(Query(b, VABI_F(ib_uverbs_query_qp_resp, rq_psn)), 7u);
}

TEST_F(DataPath, AttributesAreRefused) {
  Cq cq = MakeCq();
  Qp qp = MakeQp(cq, cq, {});
  ASSERT_GT(ToInit(qp), 0);
  EXPECT_EQ(Errno(Modify(qp, 0x8, {{MODIFY(qp_access_flags), 0x20}})), EINVAL)
      << "not in RXE_ACCESS_SUPPORTED_QP";
  const auto rtr = [&](uint64_t mtu) {
    return Modify(qp, 0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000,
                  {{MODIFY(qp_state), 2}, {MODIFY(path_mtu), mtu}, {MODIFY(dest_qp_num), 1}});
  };
  EXPECT_EQ(Errno(rtr(6)), EINVAL) << "above max_mtu";
  ASSERT_GT(rtr(3), 0);
  const auto rts = [&](uint64_t depth, uint64_t timeout) {
    return Modify(
        qp, 0x1 | 0x10000 | 0x2000 | 0x200 | 0x400 | 0x800,
        {{MODIFY(qp_state), 3}, {MODIFY(max_rd_atomic), depth}, {MODIFY(timeout), timeout}});
  };
  EXPECT_EQ(Errno(rts(129, 1)), EINVAL);
  EXPECT_EQ(Errno(rts(1, 32)), EINVAL);
  EXPECT_GT(rts(128, 31), 0);
}

class Windows : public DataPath {};

TEST_F(Windows, BoundByARequestAndTakenAwayByAnother) {
  const uint32_t rkey = NewWindow(pd_, 2);
  EXPECT_EQ(rkey >> 8, 0x80001u);  // RXE_MIN_MW_INDEX
  const uint32_t bound = (rkey & ~0xffu) | ((rkey + 1) & 0xff);

  const Wc bind = BindWindow(rkey, bound);
  EXPECT_EQ(bind.status, 0u);
  EXPECT_EQ(bind.opcode, 5u);
  Send(a, {.opcode = kWrite, .sges = {At(0, 8)}, .remote = Address(1000), .rkey = bound});
  EXPECT_EQ(Poll(scq).status, 0u);
  Send(b, {.opcode = kLocalInv, .rkey = bound});
  EXPECT_EQ(Poll(rcq).opcode, 6u);
  Send(a, {.opcode = kWrite, .sges = {At(0, 8)}, .remote = Address(1000), .rkey = bound});
  EXPECT_EQ(Poll(scq).status, 10u);
}

class Unreliable : public DataPath {
 protected:
  Unreliable() { Pair(3); }
};

TEST_F(Unreliable, ShortReceivesFailAlone) {
  Receive(b.receive, 1, {At(30000, 10)});
  Send(a, {.sges = {At(0, 50)}});
  EXPECT_EQ(Poll(scq).status, 0u);
  EXPECT_EQ(Poll(rcq).status, 2u);
  EXPECT_EQ(State(a), 3u);
  EXPECT_EQ(State(b), 6u);
}

class Datagrams : public DataPath {
 protected:
  Datagrams() { Pair(4); }
  uint32_t AddressHandle(size_t room) {
    Bytes request = Zero(VABI_S(ib_uverbs_create_ah));
    const Body body = In(request);
    body.Set(VABI_F(ib_uverbs_create_ah, pd_handle), pd_);
    const Body attr = body.Sub(VABI_F(ib_uverbs_create_ah, attr));
    attr.Set(VABI_F(ib_uverbs_ah_attr, is_global), 1);
    attr.Set(VABI_F(ib_uverbs_ah_attr, port_num), 1);
    attr.Sub(VABI_F(ib_uverbs_ah_attr, grh))
        .SetBytes(VABI_F(ib_uverbs_global_route, dgid),
                  world().image().device[0].ports[0].gids[0].raw, 16);
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_ah_resp)) + room);
    EXPECT_GT(Command(kCreateAh, request, &reply), 0);
    uint32_t number = 0;
    if (room >= 8)
      std::memcpy(&number, reply.data() + world().Size(VABI_S(ib_uverbs_create_ah_resp)), 4);
    return number;
  }
  Wish To(uint32_t ah_num) {
    Wish wish;
    wish.sges = {At(0, 100)};
    wish.qpn = b.number;
    wish.qkey = 0x11;
    wish.ah_num = ah_num;
    return wish;
  }
};

TEST_F(Datagrams, ByNumberOrByAddress) {
  const uint32_t number = AddressHandle(8);
  EXPECT_NE(number, 0u);
  for (uint32_t ah_num : {number, 0u}) {
    Receive(b.receive, 1, {At(30000, 200)});
    Send(a, To(ah_num));
    EXPECT_EQ(Poll(scq).status, 0u);
    const Wc got = Poll(rcq);
    EXPECT_EQ(got.status, 0u);
    EXPECT_EQ(got.byte_len, 140u);
    EXPECT_EQ(got.src_qp, a.number);
    EXPECT_EQ(got.flags, 1u);
    ExpectEqualBytes(30040, 0, 100);
  }
}

TEST_F(Datagrams, UnknownNumbersAreALocalFault) {
  Send(a, To(4711));
  EXPECT_EQ(Poll(scq).status, 5u);
  EXPECT_EQ(State(a), 6u);
}

TEST_F(Datagrams, WhatDoesNotFitIsDropped) {
  Receive(b.receive, 1, {At(30000, 139)});
  Send(a, To(0));
  EXPECT_EQ(Poll(scq).status, 0u);
  EXPECT_EQ(Poll(rcq).status, kNothing);
  EXPECT_EQ(State(b), 3u);
  Wish wish = To(0);
  wish.sges = {At(0, 5000)};
  Send(a, wish);
  EXPECT_EQ(Poll(scq).status, 0u) << "C10-93.1.1";
}

// Requester's status of a bad lkey and of a bad range, by kernel: rxe_req.c, seen on each.
struct LocalStatus {
  const char* kernel;
  uint32_t key, range, filled_length;
};

class LocalFaults : public testing::TestWithParam<LocalStatus> {};

class DataPathOf : public DataPath {
 public:
  explicit DataPathOf(const char* kernel) : DataPath(kernel) {}
  void TestBody() override {}
  using DataPath::AsyncEvent;
  Wc Try(fabric::Sge sge) {
    Send(a, {.sges = {sge}});
    return Poll(scq);
  }
  // A send of eight bytes that says `count` of its elements.
  Wc Miscounted(uint32_t count, bool is_inline) {
    Receive(b.receive, 9, {At(30000, 64)});
    uint8_t* slot = a.send.Slot(a.send.producer());
    Post(a, is_inline ? Wish{.flags = kSignaled | kInline, .inline_data = Bytes(8)}
                      : Wish{.sges = {At(0, 8)}});
    Body(world(), slot, world().Size(VABI_S(rxe_send_wqe)))
        .Sub(VABI_F(rxe_send_wqe, dma))
        .Set(VABI_F(rxe_dma_info, num_sge), count);
    Ring(a);
    Settle();
    return Poll(scq);
  }
  fabric::Sge BadKey() { return {Address(0), 10, 0xdead00}; }
  fabric::Sge BadRange() { return {Address(kSize - 5), 10, lkey_}; }
  Wc BadRemoteKey() {
    Send(a, {.opcode = kWrite, .sges = {At(0, 8)}, .remote = Address(64), .rkey = 0xdead00});
    Settle();
    return Poll(scq);
  }
  Wc ReadIntoUnwritable() {
    uint32_t lkey = 0;
    Mr(pd_, 0x4, &lkey, nullptr);
    Send(a,
         {.opcode = kRead, .sges = {{Address(0), 10, lkey}}, .remote = Address(64), .rkey = rkey_});
    return Poll(scq);
  }
  uint64_t StateOfA() { return State(a); }
  // A region of its own, invalidated by its owner's request or by the peer's: the statuses of that
  // request, of the receive that took it, and of a send out of the region afterwards.
  struct Invalidated {
    uint32_t request, receive, use;
  };
  Invalidated InvalidateRegion(bool by_peer, uint32_t flip = 0) {
    uint32_t lkey = 0, rkey = 0;
    Mr(pd_, 0x1f, &lkey, &rkey);
    Invalidated seen = {kNothing, kNothing, kNothing};
    if (by_peer) {
      Receive(b.receive, 1, {At(30000, 64)});
      Send(a, {.opcode = kSendInv, .sges = {At(0, 8)}, .rkey = rkey ^ flip});
      Settle();
      seen.request = Poll(scq).status;
      seen.receive = Poll(rcq).status;
    } else {
      Send(b, {.opcode = kLocalInv, .rkey = rkey ^ flip});
      seen.request = Poll(rcq).status;
    }
    if (State(b) != 3) return seen;
    Receive(a.receive, 2, {At(40000, 64)});
    Send(b, {.sges = {{Address(0), 8, lkey}}});
    Settle();
    seen.use = Poll(rcq).status;
    return seen;
  }
  // The status of a request that binds a window of type 1 of another protection domain.
  uint32_t BindForeignWindow() {
    const uint32_t rkey = NewWindow(Pd(), 1);
    return BindWindow(rkey, (rkey & ~0xffu) | ((rkey + 1) & 0xff)).status;
  }
  // The event after SQD, when every slot of the empty send queue has been used.
  int EventOfDraining() {
    for (uint32_t i = 0; i <= a.send.mask(); ++i) {
      Send(a, {.opcode = kWrite, .sges = {At(0, 8)}, .remote = Address(64), .rkey = rkey_});
      Settle();
      EXPECT_EQ(Poll(scq).status, 0u);
    }
    EXPECT_GT(ToState(a, 4), 0);
    Settle();
    return AsyncEvent().second;
  }
  // What a queue pair with a shared receive queue tells when it goes to error.
  int EventOfError() {
    Bytes request = Zero(VABI_S(ib_uverbs_create_srq));
    In(request).Set(VABI_F(ib_uverbs_create_srq, pd_handle), pd_);
    In(request).Set(VABI_F(ib_uverbs_create_srq, max_wr), 16);
    In(request).Set(VABI_F(ib_uverbs_create_srq, max_sge), 1);
    Bytes reply(world().Size(VABI_S(ib_uverbs_create_srq_resp)) + 24);
    EXPECT_GT(Command(kCreateSrq, request, &reply), 0);
    QpWish wish;
    wish.srq = In(reply).U32(VABI_F(ib_uverbs_create_srq_resp, srq_handle));
    wish.has_srq = true;
    const Qp qp = MakeQp(scq, scq, wish);
    Connect(qp, b.number);
    EXPECT_EQ(AsyncEvent().second, -1);
    EXPECT_GT(ToState(qp, 6), 0);
    Settle();
    return AsyncEvent().second;
  }
  uint32_t PostInError() {
    ToState(a, 6);
    Send(a, {.sges = {At(0, 8)}});
    return Poll(scq).status;
  }
};

TEST_P(LocalFaults, AreWordedAsTheKernelDid) {
  const LocalStatus& want = GetParam();
  {
    DataPathOf test(want.kernel);
    const Wc wc = test.Try(test.BadKey());
    EXPECT_EQ(wc.status, want.key);
    EXPECT_EQ(wc.byte_len, want.filled_length);
  }
  DataPathOf test(want.kernel);
  EXPECT_EQ(test.Try(test.BadRange()).status, want.range);
}

INSTANTIATE_TEST_SUITE_P(Kernels, LocalFaults,
                         testing::Values(LocalStatus{"debian-5.10.223", 4, 4, 10},
                                         LocalStatus{"debian-6.1.192", 2, 4, 0},
                                         LocalStatus{"debian-6.12.117", 5, 5, 0},
                                         LocalStatus{"debian-7.2.13", 5, 5, 0}),
                         [](const auto& info) { return "Kernel" + std::to_string(info.index); });

// rxe_req.c:rxe_requester of 6.1.192, 6.12.117 and 7.2 looks at num_sge of every request first;
// others (6.6, 6.14) go from one element to the next until the request's length is copied
// (rxe_mr.c:copy_data), and read no element of inline data. What fails there ends as flushed.
TEST(RxeElements, AreCountedInKernelsWithTheBound) {
  for (const auto& [kernel, bound] : {std::pair{"debian-5.10.223", false},
                                      {"debian-6.1.192", true},
                                      {"linux-6.6", false},
                                      {"debian-6.12.117", true},
                                      {"linux-6.16", false},
                                      {"debian-7.2.13", true}}) {
    for (const bool is_inline : {false, true}) {
      DataPathOf test(kernel);
      EXPECT_EQ(bound, test.Miscounted(100, is_inline).status != 0) << kernel << is_inline;
      EXPECT_EQ(bound ? 6u : 3u, test.StateOfA()) << kernel << is_inline;
    }
  }
}

// rxe_req.c:rxe_requester up to 5.12: LOCAL_INV takes whatever region has the index, and for a
// program's queue pair rxe_resp.c:do_complete does nothing about SEND_WITH_INV; rxe_invalidate_mr
// of 5.14: both, if it is the rkey; since 5.17 (seen in 6.1) no region that a program registered.
// What is sent out of a region that is no longer valid: IB_WC_LOC_PROT_ERR (4).
TEST(RxeRegions, CouldBeInvalidatedUpTo514) {
  const auto seen = [](const char* kernel, bool by_peer, uint32_t flip = 0) {
    DataPathOf test(kernel);
    const DataPathOf::Invalidated got = test.InvalidateRegion(by_peer, flip);
    return std::tuple(got.request, got.receive, got.use);
  };
  const auto was = [](uint32_t request, uint32_t receive, uint32_t use) {
    return std::tuple(request, receive, use);
  };
  EXPECT_EQ(seen("debian-5.10.223", false), was(0, kNothing, 4));
  EXPECT_EQ(seen("debian-5.10.223", false, 0x55), was(0, kNothing, 4));
  EXPECT_EQ(seen("debian-5.10.223", true), was(0, 0, 0));
  EXPECT_EQ(seen("linux-5.14", false), was(0, kNothing, 4));
  EXPECT_EQ(seen("linux-5.14", false, 0x55), was(2, kNothing, kNothing)) << "LOC_QP_OP_ERR";
  EXPECT_EQ(seen("linux-5.14", true), was(0, 0, 4));
  EXPECT_EQ(seen("debian-6.1.192", false), was(2, kNothing, kNothing));
  EXPECT_EQ(seen("debian-6.1.192", true), was(0, 9, kNothing)) << "class J: REM_INV_REQ_ERR";
}

// rxe_mw.c:rxe_check_bind_mw: the PD of a window of type 1 counts in 7.3 and 6.12.117, not in 7.2;
// what fails locally ends as flushed (5), since the queue pair is in error when rxe_completer
// looks.
TEST(RxeWindows, OfAnotherDomain) {
  EXPECT_EQ(DataPathOf("debian-6.12.117").BindForeignWindow(), 5u);
  EXPECT_EQ(DataPathOf("debian-7.2.13").BindForeignWindow(), 0u);
  EXPECT_EQ(DataPathOf("debian-7.3.4").BindForeignWindow(), 5u);
}

// rxe_req.c: req_next_wqe of 6.1 looks at a request only if there is one; req_check_sq_drain_done
// of 6.6 at what the slot's last use has left, which is not wqe_state_posted: it never is drained.
// IB_EVENT_SQ_DRAINED (5)
TEST(RxeEvents, DrainingAfterEverySlotWasUsed) {
  EXPECT_EQ(DataPathOf("debian-6.1.192").EventOfDraining(), 5);
  EXPECT_EQ(DataPathOf("linux-6.6").EventOfDraining(), -1);
}

// rxe_resp.c:flush_recv_queue (in 6.6, not in 6.1): IB_EVENT_QP_LAST_WQE_REACHED (16)
TEST(RxeEvents, TheLastElementOfASharedQueueSince66) {
  EXPECT_EQ(DataPathOf("debian-6.1.192").EventOfError(), -1);
  EXPECT_EQ(DataPathOf("linux-6.6").EventOfError(), 16);
  EXPECT_EQ(DataPathOf("debian-7.3.4").EventOfError(), 16);
}

TEST(Rxe510, ForgetsToSayWhatFailed) {
  {
    DataPathOf test("debian-5.10.223");
    const Wc wc = test.ReadIntoUnwritable();
    EXPECT_EQ(wc.status, 0u) << "do_read sets no status";
    EXPECT_EQ(wc.byte_len, 10u);
    EXPECT_EQ(test.StateOfA(), 6u);
  }
  {
    DataPathOf test("debian-5.10.223");
    EXPECT_EQ(test.BadRemoteKey().status, 12u) << "without a receive no NAK is sent";
  }
  DataPathOf test("debian-5.10.223");
  EXPECT_EQ(test.PostInError(), kNothing);
}

TEST(Rxe61, SaysIt) {
  {
    DataPathOf test("debian-6.1.192");
    EXPECT_EQ(test.ReadIntoUnwritable().status, 4u);
  }
  {
    DataPathOf test("debian-6.1.192");
    EXPECT_EQ(test.BadRemoteKey().status, 10u);
    EXPECT_EQ(test.AsyncEvent().second, -1) << "IB_EVENT_QP_ACCESS_ERR came with 7.2";
  }
  DataPathOf test("debian-6.1.192");
  EXPECT_EQ(test.PostInError(), 5u);
}

}  // namespace
}  // namespace vabi::rxe
