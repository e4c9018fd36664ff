// SPDX-License-Identifier: BSD-2-Clause
// What bnxt_re grants and tells: hw/bnxt_re of the kernels named.
#include "shims/providers/bnxt_re/test_bnxt_re.h"

namespace vabi::bnxt_re {
namespace {

class Objects : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(BnxtRe, Objects,
                         testing::Values("linux-4.16", "linux-5.9", "debian-5.10.223", "linux-5.14",
                                         "debian-6.1.192", "linux-6.6", "debian-6.12.117",
                                         "debian-7.2.13", "debian-7.3.4"),
                         [](const auto& info) { return CaseName(std::string(info.param)); });

#define ANSWERED(field) hca.Get(VABI_F(ib_uverbs_query_qp_resp, field))

// ib_verbs.c:bnxt_re_create_cq: one more than asked for, rounded up to a power of two.
TEST_P(Objects, EntriesAreGrantedInPowersOfTwo) {
  TestBnxtRe hca(GetParam());
  hca.Start();
  const TestHca::CqMade cq = hca.MakeCq(20);
  EXPECT_EQ(32u, cq.cqe);
  EXPECT_NE(0u, hca.Told(VABI_PF(bnxt_re_cq_resp, cqid)));
  EXPECT_EQ(0u, hca.Told(VABI_PF(bnxt_re_cq_resp, tail)));
  EXPECT_EQ(1u, hca.Told(VABI_PF(bnxt_re_cq_resp, phase)));  // BNXT_QPLIB_QUEUE_START_PERIOD
  EXPECT_EQ(32u, hca.MakeCq(31).cqe);
  EXPECT_EQ(64u, hca.MakeCq(32).cqe);
  EXPECT_GT(hca.DestroyCq(cq.handle), 0);
}

// bnxt_re_create_srq, bnxt_re_query_srq: all its entries are told, and what the limit is.
TEST_P(Objects, SharedReceiveQueueTakesALimit) {
  TestBnxtRe hca(GetParam());
  hca.Start();
  const TestHca::SrqMade srq = hca.MakeSrq(20);
  EXPECT_EQ(20u, srq.max_wr);
  EXPECT_NE(0u, hca.Told(VABI_PF(bnxt_re_srq_resp, srqid)));
  EXPECT_GT(hca.ModifySrq(srq.handle, 2, 0, 7), 0) << hca.LastRule();
  ASSERT_GT(hca.QuerySrq(srq.handle), 0) << hca.LastRule();
  EXPECT_EQ(7u, hca.U32(VABI_F(ib_uverbs_query_srq_resp, srq_limit)));
  EXPECT_EQ(32u, hca.U32(VABI_F(ib_uverbs_query_srq_resp, max_wr)));
  TestHca::QpWish wish = hca.Wish();
  wish.has_srq = true;
  wish.srq = srq.handle;
  TestHca::QpMade qp;
  ASSERT_GT(hca.CreateQp(wish, &qp, hca.Qp(), TestBnxtRe::kRoom), 0) << hca.LastRule();
  ASSERT_GT(hca.QueryQp(qp.handle), 0);
  EXPECT_EQ(0u, ANSWERED(max_recv_wr));
  EXPECT_EQ(0u, ANSWERED(max_recv_sge));
  EXPECT_GT(hca.DestroyQp(qp.handle), 0);
  EXPECT_GT(hca.DestroySrq(srq.handle), 0);
}

// bnxt_re_modify_qp, bnxt_re_query_qp: 16 sends and 129 reserved in 256 entries; no completion of
// itself (sq_sig_type REQ_WR), whatever was asked for.
TEST_P(Objects, QueuePairLivesThroughItsStates) {
  TestBnxtRe hca(GetParam());
  hca.Start();
  TestHca::QpWish wish = hca.Wish();
  wish.recv_wr = 20;
  TestHca::QpMade qp;
  ASSERT_GT(hca.CreateQp(wish, &qp, hca.Qp(), TestBnxtRe::kRoom), 0) << hca.LastRule();
  EXPECT_EQ(20u, qp.recv_wr);
  EXPECT_EQ(qp.number, hca.Told(VABI_PF(bnxt_re_qp_resp, qpid)));
  EXPECT_GT(hca.ToInit(qp.handle), 0) << hca.LastRule();
  EXPECT_GT(hca.ToRtr(qp.handle, qp.number), 0) << hca.LastRule();
  EXPECT_GT(hca.ToRts(qp.handle), 0) << hca.LastRule();
  ASSERT_GT(hca.QueryQp(qp.handle), 0);
  EXPECT_EQ(3u, ANSWERED(qp_state));
  EXPECT_EQ(7u, ANSWERED(rq_psn));
  EXPECT_EQ(256u, ANSWERED(max_send_wr));
  EXPECT_EQ(32u, ANSWERED(max_recv_wr));
  EXPECT_EQ(1u, ANSWERED(max_recv_sge));
  EXPECT_EQ(0u, ANSWERED(sq_sig_all));
  EXPECT_GT(hca.ToState(qp.handle, 6), 0) << hca.LastRule();
  EXPECT_EQ(6u, hca.StateOf(qp.handle));
  EXPECT_GT(hca.ToState(qp.handle, 0), 0) << hca.LastRule();
  EXPECT_EQ(0u, hca.StateOf(qp.handle));
  EXPECT_GT(hca.DestroyQp(qp.handle), 0);
}

TEST_P(Objects, DatagramsHaveNoSearchMemory) {
  TestBnxtRe hca(GetParam());
  hca.Start();
  const TestHca::QpMade qp = hca.MakeQp(TestHca::kUd);
  EXPECT_GT(hca.ToInit(qp.handle, TestHca::kUd), 0) << hca.LastRule();
  EXPECT_GT(hca.ToRtr(qp.handle, 0, TestHca::kUd), 0) << hca.LastRule();
  EXPECT_GT(hca.ToRts(qp.handle, TestHca::kUd), 0) << hca.LastRule();
  EXPECT_GT(hca.DestroyQp(qp.handle), 0);
  // 32768 bytes of entries, up to the end of what is mapped; a connection has 2048 more.
  Bytes at_the_end = hca.Qp();
  hca.In(at_the_end)
      .Set(VABI_PF(bnxt_re_qp_req, qpsva), hca.Buffer() + 2 * TestHca::kBuffer - 256 * 128);
  EXPECT_GT(hca.CreateQp(hca.Wish(TestHca::kUd), nullptr, at_the_end, TestBnxtRe::kRoom), 0)
      << hca.LastRule();
  EXPECT_EQ(-EFAULT, hca.CreateQp(hca.Wish(), nullptr, at_the_end, TestBnxtRe::kRoom));
}

// bnxt_re_reg_user_mr: both keys are the lkey.
TEST_P(Objects, RegionHasOneKey) {
  TestBnxtRe hca(GetParam());
  hca.Start();
  TestHca::MrMade mr;
  ASSERT_GT(hca.RegMr(hca.pd, {.access = 7}, &mr), 0) << hca.LastRule();
  EXPECT_NE(0u, mr.lkey);
  EXPECT_EQ(mr.lkey, mr.rkey);
  EXPECT_GT(hca.DeregMr(mr.handle), 0);
}

// bnxt_re_create_ah: its number stands in the shared page (BNXT_RE_AVID_OFFT), which the library
// reads (providers/bnxt_re/verbs.c:bnxt_re_create_ah).
TEST_P(Objects, AddressHandleIsToldInTheSharedPage) {
  TestBnxtRe hca(GetParam());
  hca.Start();
  const long page = hca.file().Mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
  ASSERT_FALSE(page < 0 && page > -4096) << hca.LastRule();
  const auto* number = reinterpret_cast<const uint32_t*>(page + 0x10);
  uint32_t first = 0, second = 0;
  ASSERT_GT(hca.CreateAh(hca.pd, &first), 0) << hca.LastRule();
  const uint32_t told = *number;
  EXPECT_NE(0u, told);
  ASSERT_GT(hca.CreateAh(hca.pd, &second), 0) << hca.LastRule();
  EXPECT_NE(told, *number);
  EXPECT_GT(hca.DestroyAh(first), 0);
  EXPECT_GT(hca.DestroyAh(second), 0);
  munmap(reinterpret_cast<void*>(page), 4096);
}

// bnxt_re_init_depth (6.12): a library that takes any depth gets what it asked for, and one more.
TEST(BnxtReDepths, AsAskedSince612) {
  for (const auto& [kernel, cqe] : {std::pair{"linux-6.6", 32u},
                                    {"debian-6.12.117", 21u},
                                    {"debian-7.2.13", 21u},
                                    {"debian-7.3.4", 21u}}) {
    TestBnxtRe hca(kernel);
    hca.Start(1);
    EXPECT_EQ(cqe, hca.MakeCq(20).cqe) << kernel;
    const TestHca::SrqMade srq = hca.MakeSrq(20);
    ASSERT_GT(hca.QuerySrq(srq.handle), 0);
    EXPECT_EQ(cqe, hca.U32(VABI_F(ib_uverbs_query_srq_resp, max_wr))) << kernel;
    const TestHca::QpMade qp = hca.MakeQp();
    ASSERT_GT(hca.QueryQp(qp.handle), 0);
    EXPECT_EQ(cqe == 32 ? 256u : 16u + 129u, ANSWERED(max_send_wr)) << kernel;
    EXPECT_EQ(cqe == 32 ? 32u : 17u, ANSWERED(max_recv_wr)) << kernel;
  }
}

// bnxt_re_create_user_cq (7.2): FIXED_NUM_CQE_ENABLE.
TEST(BnxtReDepths, FixedSince72) {
  TestBnxtRe hca("debian-7.2.13");
  hca.Start();
  Bytes request = hca.Cq();
  hca.In(request).Set(VABI_PF(bnxt_re_cq_req, comp_mask), 1);
  TestHca::CqMade cq;
  ASSERT_GT(hca.CreateCq(20, &cq, request, TestBnxtRe::kRoom), 0) << hca.LastRule();
  EXPECT_EQ(20u, cq.cqe);
}

// bnxt_re_create_srq of 5.9 sized entries by max_sge, all others by six.
TEST(BnxtReDepths, SharedEntriesOf59HaveTheElementsAskedFor) {
  for (const auto& [kernel, taken] :
       {std::pair{"linux-5.8", false}, {"linux-5.9", true}, {"debian-5.10.223", false}}) {
    TestBnxtRe hca(kernel);
    hca.Start();
    Bytes request = hca.Srq();  // 64 entries: 3072 or 8192 bytes
    hca.In(request).Set(VABI_PF(bnxt_re_srq_req, srqva),
                        hca.Buffer() + 2 * TestHca::kBuffer - 4096);
    const long result = hca.CreateSrq(hca.pd, 40, 1, 0, nullptr, request, TestBnxtRe::kRoom);
    EXPECT_EQ(taken, result > 0) << kernel << " " << hca.LastRule();
  }
}

// bnxt_re_setup_swqe_size: since 5.9 a whole entry, of which QUERY_QP tells six elements (6.12:
// without inline data, too).
TEST(BnxtReInline, GrantedAsAnEntryHasRoomFor) {
  struct Case {
    const char* kernel;
    uint32_t asked, granted, elements;
  };
  for (const Case& one :
       {Case{"linux-5.8", 10, 10, 1}, Case{"linux-5.9", 10, 96, 6}, Case{"linux-6.6", 0, 0, 1},
        Case{"debian-6.12.117", 0, 0, 6}, Case{"debian-7.3.4", 10, 96, 6}}) {
    TestBnxtRe hca(one.kernel);
    hca.Start();
    TestHca::QpWish wish = hca.Wish();
    wish.inline_data = one.asked;
    TestHca::QpMade qp;
    ASSERT_GT(hca.CreateQp(wish, &qp, hca.Qp(), TestBnxtRe::kRoom), 0) << hca.LastRule();
    EXPECT_EQ(one.granted, qp.inline_data) << one.kernel;
    EXPECT_EQ(1u, qp.send_sge) << one.kernel;
    ASSERT_GT(hca.QueryQp(qp.handle), 0);
    EXPECT_EQ(one.granted, ANSWERED(max_inline_data)) << one.kernel;
    EXPECT_EQ(one.elements, ANSWERED(max_send_sge)) << one.kernel;
  }
}

// bnxt_re_modify_qp set REMOTE_WRITE and REMOTE_READ from 5.3 to 6.12, and always LOCAL_WRITE.
TEST(BnxtReAccess, WidenedFrom53To612) {
  for (const auto& [kernel, access] : {std::pair{"linux-5.0", 1u},
                                       {"linux-5.3", 7u},
                                       {"debian-6.12.117", 7u},
                                       {"linux-6.16", 1u}}) {
    TestBnxtRe hca(kernel);
    hca.Start();
    const TestHca::QpMade qp = hca.MakeQp();
    EXPECT_GT(hca.ModifyQp(qp.handle, 0x1 | 0x8 | 0x10 | 0x20,
                           {{VABI_F(ib_uverbs_modify_qp, qp_state), 1},
                            {VABI_F(ib_uverbs_modify_qp, port_num), 1}}),
              0)
        << hca.LastRule();
    ASSERT_GT(hca.QueryQp(qp.handle), 0);
    EXPECT_EQ(access, ANSWERED(qp_access_flags)) << kernel;
  }
}

// bnxt_re_query_qp tells a cur_qp_state that bnxt_qplib_query_qp never sets.
TEST(BnxtReStates, CurrentStateIsResetSince510) {
  for (const char* kernel : {"debian-5.10.223", "debian-7.3.4"}) {
    TestBnxtRe hca(kernel);
    hca.Start();
    const TestHca::QpMade qp = hca.MakeQp();
    EXPECT_GT(hca.ToInit(qp.handle), 0) << hca.LastRule();
    ASSERT_GT(hca.QueryQp(qp.handle), 0);
    EXPECT_EQ(1u, ANSWERED(qp_state)) << kernel;
    EXPECT_EQ(0u, ANSWERED(cur_qp_state)) << kernel;
  }
}

// bnxt_re_modify_qp, bnxt_re_query_qp: what became of the address and the port in later kernels.
TEST(BnxtReStates, AddressIsToldAsTheCardHasIt) {
  struct Case {
    const char* kernel;
    uint32_t traffic_class, flow_label;
  };
  for (const Case& one : {Case{"debian-6.12.117", 0x68, 0x123}, Case{"linux-6.16", 0x1a, 0x123},
                          Case{"debian-7.2.13", 0x1a, 0}}) {
    TestBnxtRe hca(one.kernel);
    hca.Start();
    const TestHca::QpMade qp = hca.MakeQp();
    EXPECT_GT(hca.ToInit(qp.handle), 0) << hca.LastRule();
    Bytes request = hca.Zero(VABI_S(ib_uverbs_modify_qp));
    const Body body = hca.In(request);
    body.Set(VABI_F(ib_uverbs_modify_qp, qp_handle), qp.handle);
    body.Set(VABI_F(ib_uverbs_modify_qp, attr_mask),
             0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000);
    body.Set(VABI_F(ib_uverbs_modify_qp, qp_state), 2);
    body.Set(VABI_F(ib_uverbs_modify_qp, path_mtu), 3);
    const Body dest = body.Sub(VABI_F(ib_uverbs_modify_qp, dest));
    dest.SetBytes(VABI_F(ib_uverbs_qp_dest, dgid), hca.image().device[0].ports[0].gids[0].raw, 16);
    dest.Set(VABI_F(ib_uverbs_qp_dest, is_global), 1);
    dest.Set(VABI_F(ib_uverbs_qp_dest, port_num), 1);
    dest.Set(VABI_F(ib_uverbs_qp_dest, hop_limit), 1);
    dest.Set(VABI_F(ib_uverbs_qp_dest, traffic_class), 0x68);
    dest.Set(VABI_F(ib_uverbs_qp_dest, flow_label), 0x123);
    ASSERT_GT(hca.Command(TestHca::kModifyQp, request), 0) << hca.LastRule();
    for (int twice = 0; twice < 2; ++twice) {
      ASSERT_GT(hca.QueryQp(qp.handle), 0);
      EXPECT_EQ(1u, ANSWERED(port_num)) << one.kernel;
      const Body told = hca.CoreReply().Sub(VABI_F(ib_uverbs_query_qp_resp, dest));
      EXPECT_EQ(one.traffic_class, told.U32(VABI_F(ib_uverbs_qp_dest, traffic_class)) & 0xff)
          << one.kernel;
      EXPECT_EQ(one.flow_label, told.U32(VABI_F(ib_uverbs_qp_dest, flow_label))) << one.kernel;
    }
  }
}

// bnxt_re_query_qp tells port_num since 6.12; before, what ib_uverbs_query_qp had allocated, which
// says nothing of the port that MODIFY_QP knows.
TEST(BnxtReStates, PortIsToldSince612) {
  for (const auto& [kernel, port] : {std::pair{"linux-5.9", 0u},
                                     {"linux-6.6", 0u},
                                     {"debian-6.12.117", 1u},
                                     {"debian-7.3.4", 1u}}) {
    TestBnxtRe hca(kernel);
    hca.Start();
    const TestHca::QpMade qp = hca.MakeQp();
    EXPECT_GT(hca.ToInit(qp.handle), 0) << hca.LastRule();
    ASSERT_GT(hca.QueryQp(qp.handle), 0);
    EXPECT_EQ(port, ANSWERED(port_num)) << kernel;
    EXPECT_GT(hca.ToRtr(qp.handle, qp.number), 0) << kernel << hca.LastRule();
  }
}

// __from_ib_qp_type knows IB_QPT_RAW_PACKET since 6.18; whether the firmware does, the card says.
TEST(BnxtReTypes, RawPacketsSince618) {
  constexpr uint8_t kRawPacket = 8;
  for (const char* kernel : {"debian-6.12.117", "linux-6.16"}) {
    TestBnxtRe hca(kernel);
    hca.Start();
    EXPECT_EQ(-EOPNOTSUPP, hca.CreateQp(hca.Wish(kRawPacket), nullptr, hca.Qp(), 32)) << kernel;
    EXPECT_EQ("bnxt_re.create_qp.type", hca.LastRule()) << kernel;
  }
  TestBnxtRe hca("debian-7.2.13");
  hca.Start();
  hca.CreateQp(hca.Wish(kRawPacket), nullptr, hca.Qp(), 32);
  EXPECT_NE("", hca.LastUnmodelled());
}

// bnxt_re_resize_cq, bnxt_re_poll_cq (6.6): a second one waits for a POLL_CQ.
TEST(BnxtReResize, EndsWithAPoll) {
  for (const char* kernel : {"linux-6.6", "debian-7.3.4"}) {
    TestBnxtRe hca(kernel);
    hca.Start();
    const TestHca::CqMade cq = hca.MakeCq();
    const auto* elements = reinterpret_cast<const uint8_t*>(hca.Buffer());
    Bytes elsewhere = hca.Resize();
    hca.In(elsewhere).Set(VABI_PF(bnxt_re_resize_cq_req, cq_va), hca.Buffer() + 4096);
    EXPECT_EQ(0, elements[24]);
    ASSERT_GT(hca.ResizeCq(cq.handle, 40, elsewhere), 0) << hca.LastRule();
    EXPECT_EQ(0x1f, elements[24]) << "CQ_CUTOFF_CQE_TYPE_CUT_OFF, of the first phase";
    EXPECT_EQ(64u, hca.U32(VABI_F(ib_uverbs_resize_cq_resp, cqe)));
    EXPECT_EQ(-EBUSY, hca.ResizeCq(cq.handle, 80, hca.Resize()));
    Bytes poll = hca.Zero(VABI_S(ib_uverbs_poll_cq));
    hca.In(poll).Set(VABI_F(ib_uverbs_poll_cq, cq_handle), cq.handle);
    hca.In(poll).Set(VABI_F(ib_uverbs_poll_cq, ne), 1);
    ASSERT_GT(hca.Command(TestHca::kPollCq, poll, VABI_S(ib_uverbs_poll_cq_resp), {}, 64), 0)
        << hca.LastRule();
    EXPECT_EQ(0u, hca.U32(VABI_F(ib_uverbs_poll_cq_resp, count)));
    EXPECT_GT(hca.ResizeCq(cq.handle, 80, hca.Resize()), 0) << hca.LastRule();
    EXPECT_EQ(0x1f, elements[4096 + 24]);
  }
}

// core/ib_core_uverbs.c:_ib_respond_udata (7.2): what is behind the reply becomes zero. Up to 6.6
// bnxt_re_create_cq wrote its whole reply, whatever the room; 6.12 as much as there is room for.
TEST(BnxtReReplies, TailBecomesZeroSince72) {
  for (const auto& [kernel, tail] : {std::pair{"debian-6.12.117", 0xee}, {"debian-7.2.13", 0}}) {
    TestBnxtRe hca(kernel);
    hca.Start();
    hca.room_filled_with = 0xee;
    ASSERT_GT(hca.CreateCq(15, nullptr, hca.Cq(), 32), 0);
    EXPECT_EQ(tail, hca.told[24]) << kernel;
    ASSERT_GT(hca.CreateCq(15, nullptr, hca.Cq(), 12), 0);
    EXPECT_NE(0xee, hca.told[8]) << kernel;
    TestHca::QpWish wish = hca.Wish();
    hca.room_filled_with = 0xee;
    ASSERT_GT(hca.CreateQp(wish, nullptr, hca.Qp(), 16), 0);
    EXPECT_EQ(tail, hca.told[8]) << kernel;
  }
}

// bnxt_re_create_srq of 6.12 writes 16 bytes, of which older libraries know four.
TEST(BnxtReReplies, SharedReceiveQueueTellsAllOfItsReply) {
  for (const auto& [kernel, written] :
       {std::pair{"linux-6.6", size_t{4}}, {"debian-6.12.117", size_t{16}}}) {
    TestBnxtRe hca(kernel);
    hca.Start();
    hca.room_filled_with = 0xee;
    ASSERT_GT(hca.CreateSrq(hca.pd, 15, 1, 0, nullptr, hca.Srq(), 32), 0) << hca.LastRule();
    EXPECT_NE(0xee, hca.told[written - 1]) << kernel;
    EXPECT_EQ(0xee, hca.told[written]) << kernel;
  }
}

// bnxt_re_modify_srq: IB_SRQ_MAX_WR alone is refused where the fix is, and does nothing elsewhere.
TEST(BnxtReSrq, ResizeIsTakenWhereTheFixIsNot) {
  for (const auto& [kernel, taken] : {std::pair{"linux-5.14", true},
                                      {"debian-5.10.223", false},
                                      {"debian-6.1.192", false},
                                      {"linux-6.6", true}}) {
    TestBnxtRe hca(kernel);
    hca.Start();
    const TestHca::SrqMade srq = hca.MakeSrq();
    EXPECT_EQ(taken, hca.ModifySrq(srq.handle, 1, 64, 0) > 0) << kernel;
  }
}

}  // namespace
}  // namespace vabi::bnxt_re
