// SPDX-License-Identifier: BSD-2-Clause
// Dynamically connected queue pairs. Rules: qp.c of the kernel that a test names; elements of the
// queues: rdma-core's mlx5dv.h (struct mlx5_wqe_av and mlx5_wqe_datagram_seg).
#include "shims/providers/mlx5/test_mlx5.h"
#include "shims/uverbs/objects.h"

namespace vabi::mlx5 {
namespace {

constexpr uint8_t kDriver = 0xff, kSignaled = 8;
constexpr uint32_t kDct = 1 << 4, kDci = 1 << 5;  // MLX5_QP_FLAG_TYPE_*
constexpr uint64_t kAccessKey = 0x8877665544332211;
enum Opcode : uint8_t {
  kSend = 0x0a,
  kSendImm = 0x0b,
  kRdmaWrite = 0x08,
  kRead = 0x10,
  kAdd = 0x12
};

#define MODIFY(field) VABI_F(ib_uverbs_modify_qp, field)

class DynamicTest : public Mlx5Test {
 protected:
  explicit DynamicTest(const char* kernel = "debian-7.3.4") : Mlx5Test(kernel) {}
  void SetUp() override {
    OpenContext();
    MakeCq(&cq_);
    ASSERT_GT(MakeSrq(&srq_, SrqPrivate(srq_).bytes()), 0) << LastRule();
    FillMemory();
    initiator_.type = target_.type = kDriver;
  }
  // CREATE_QP, extended or not; the initiator has no receive queue.
  long Make(Qp* qp, uint32_t flags, const Srq* srq = nullptr) {
    return MakeQp(cq_, cq_, qp, Private(*qp, flags).bytes(), srq);
  }
  Struct Private(const Qp& qp, uint32_t flags) const {
    return QpPrivate(qp)
        .With(VABI_F(mlx5_ib_create_qp, flags), flags)
        .With(VABI_F(mlx5_ib_create_qp, access_key), kAccessKey);
  }
  long MakeWithout(Qp* qp, uint32_t flags, FieldId field, uint64_t value, const Srq* srq) {
    const size_t core = world().Size(VABI_S(ib_uverbs_create_qp_resp));
    Bytes reply(core + 40);
    Struct request = QpRequest(cq_, cq_, *qp, srq);
    request.Set(field, value);
    const long result = Write(kCreateQp, request, &reply, Private(*qp, flags).bytes());
    qp->handle = In(reply).U32(VABI_F(ib_uverbs_create_qp_resp, qp_handle));
    qp->number = In(reply).U32(VABI_F(ib_uverbs_create_qp_resp, qpn));
    return result;
  }
  static constexpr FieldId kNoSges = VABI_F(ib_uverbs_create_qp, max_recv_sge);
  long MakeInitiator() { return MakeWithout(&initiator_, kDci, kNoSges, 0, nullptr); }
  long MakeTarget() { return Make(&target_, kDct, &srq_); }
  long InitiatorTo(uint64_t state, uint32_t mask) {
    return Modify(initiator_, mask,
                  {{MODIFY(qp_state), state},
                   {MODIFY(port_num), 1},
                   {MODIFY(path_mtu), 3},
                   {MODIFY(timeout), 1},
                   {MODIFY(retry_cnt), 1},
                   {MODIFY(rnr_retry), 1},
                   {MODIFY(max_rd_atomic), 3}});
  }
  static constexpr uint32_t kInitMask = 0x1 | 0x10 | 0x20, kRtrMask = 0x1 | 0x100,
                            kRtsMask = 0x1 | 0x200 | 0x400 | 0x800 | 0x2000 | 0x10000;
  // Extended MODIFY_QP of the target, with room for `out` bytes of the driver's.
  long TargetTo(uint64_t state, uint32_t mask, Bytes* own, uint64_t access = 0xf) {
    Bytes request = ModifyRequest(target_, mask,
                                  {{MODIFY(qp_state), state},
                                   {MODIFY(port_num), 1},
                                   {MODIFY(path_mtu), 3},
                                   {MODIFY(min_rnr_timer), 1},
                                   {MODIFY(qp_access_flags), access}})
                        .bytes();
    request.resize(world().Size(VABI_S(ib_uverbs_ex_modify_qp)));
    const size_t core = (world().Size(VABI_S(ib_uverbs_ex_modify_qp_resp)) + 7) / 8 * 8;
    Bytes reply(core + own->size(), 0xee);
    const long result = WriteEx(26, request, &reply, Bytes(), static_cast<uint16_t>(own->size()));
    own->assign(reply.begin() + static_cast<long>(core), reply.end());
    return result;
  }
  static constexpr uint32_t kTargetInit = 0x1 | 0x8 | 0x10 | 0x20,
                            kTargetRtr = 0x1 | 0x80 | 0x100 | 0x8000;
  void Ready(uint64_t access = 0xf) {
    ASSERT_GT(MakeInitiator(), 0) << LastRule();
    ASSERT_GT(MakeTarget(), 0) << LastRule();
    ASSERT_GT(InitiatorTo(1, kInitMask), 0) << LastRule();
    ASSERT_GT(InitiatorTo(2, kRtrMask), 0) << LastRule();
    ASSERT_GT(InitiatorTo(3, kRtsMask), 0) << LastRule();
    Bytes own(16);
    ASSERT_EQ(0, Errno(TargetTo(1, kTargetInit, &own, access))) << LastRule();
    ASSERT_EQ(0, Errno(TargetTo(2, kTargetRtr, &own))) << LastRule();
    std::memcpy(&target_.number, own.data() + 4, 4);
  }
  // Control segment, then the address vector: key, number, LID, GID.
  Bytes Addressed(uint64_t key = kAccessKey) {
    Bytes wqe(64);
    const PortImage& port = image().device[0].ports[0];
    Put64(wqe.data() + 16, key);
    Put32(wqe.data() + 24, 0x80000000 | target_.number);
    Put16(wqe.data() + 30, port.lid);
    Put32(wqe.data() + 44, 0x40000000);
    std::memcpy(wqe.data() + 48, port.gids[0].raw, 16);
    return wqe;
  }
  static void Remote(Bytes* wqe, const uint8_t* at, uint32_t key) {
    wqe->resize(wqe->size() + 16);
    uint8_t* segment = wqe->data() + wqe->size() - 16;
    Put64(segment, Address(at));
    Put32(segment + 8, key);
  }
  void Data(Bytes* wqe, const uint8_t* at, uint32_t length) {
    wqe->resize(wqe->size() + 16);
    PutPointer(wqe->data() + wqe->size() - 16, at, length, lkey_);
  }
  const uint8_t* Next(uint8_t opcode) { return Mlx5Test::Next(cq_, opcode); }

  Cq cq_{64, 64};
  Srq srq_{16};
  Qp initiator_{16, 0}, target_{0, 0};
};

TEST_F(DynamicTest, ATargetGetsItsNumberOnItsWayToRtr) {
  ASSERT_GT(MakeTarget(), 0) << LastRule();
  EXPECT_EQ(0u, target_.number);
  Bytes own(16);
  ASSERT_EQ(0, Errno(TargetTo(1, kTargetInit, &own))) << LastRule();
  EXPECT_EQ(Bytes(16, 0xee), own) << "nothing is answered before";
  ASSERT_EQ(0, Errno(TargetTo(2, kTargetRtr, &own))) << LastRule();
  uint32_t length, number;
  std::memcpy(&length, own.data(), 4);
  std::memcpy(&number, own.data() + 4, 4);
  EXPECT_EQ(16u, length);
  EXPECT_NE(0u, number);
}

TEST_F(DynamicTest, SendArrivesAndTellsTheTarget) {
  Ready();
  srq_.Post(0, To(), 100, lkey_);
  target_.index = 0x77;
  Bytes wqe = Addressed();
  Data(&wqe, From(), 60);
  initiator_.Post(wqe, kSendImm, kSignaled, 0x01020304);
  Settle();
  EXPECT_EQ(0, std::memcmp(To(), From(), 60));
  EXPECT_EQ(0, To()[60]);
  const uint8_t* receive = Next(3);
  EXPECT_EQ(0x77u, Get32(receive + 32)) << "user index";
  EXPECT_EQ(60u, Get32(receive + 44));
  EXPECT_EQ(target_.number, Get32(receive + 56) & 0xffffff);
  uint32_t immediate;
  std::memcpy(&immediate, receive + 36, 4);
  EXPECT_EQ(0x01020304u, immediate);
  const uint8_t* send = Next(0);
  EXPECT_EQ(uint32_t{kSendImm} << 24 | initiator_.number, Get32(send + 56));
}

TEST_F(DynamicTest, WriteReadAndAtomic) {
  Ready();
  Bytes wqe = Addressed();
  Remote(&wqe, To(200), lkey_);
  Data(&wqe, From(), 50);
  initiator_.Post(wqe, kRdmaWrite, kSignaled);
  Settle();
  Next(0);
  EXPECT_EQ(0, std::memcmp(To(200), From(), 50));
  wqe = Addressed();
  Remote(&wqe, From(1000), lkey_);
  Data(&wqe, To(4096), 300);
  initiator_.Post(wqe, kRead, kSignaled);
  Settle();
  EXPECT_EQ(300u, Get32(Next(0) + 44));
  EXPECT_EQ(0, std::memcmp(To(4096), From(1000), 300));
  uint64_t value = 41;
  std::memcpy(To(1024), &value, 8);
  wqe = Addressed();
  Remote(&wqe, To(1024), lkey_);
  wqe.resize(wqe.size() + 16);
  Put64(wqe.data() + wqe.size() - 16, 1);
  Data(&wqe, To(), 8);
  initiator_.Post(wqe, kAdd, kSignaled);
  Settle();
  Next(0);
  std::memcpy(&value, To(1024), 8);
  EXPECT_EQ(42u, value);
  std::memcpy(&value, To(), 8);
  EXPECT_EQ(41u, value);
}

// A short address vector: 16 bytes, LID only.
TEST_F(DynamicTest, TheShortAddressVector) {
  Ready();
  Bytes wqe = Addressed();
  Put32(wqe.data() + 24, target_.number);
  wqe.resize(32);
  Remote(&wqe, To(), lkey_);
  Data(&wqe, From(), 50);
  initiator_.Post(wqe, kRdmaWrite, kSignaled);
  Settle();
  Next(0);
  EXPECT_EQ(0, std::memcmp(To(), From(), 50));
}

TEST_F(DynamicTest, AnotherAccessKeyIsNotHeard) {
  Ready();
  srq_.Post(0, To(), 100, lkey_);
  Bytes wqe = Addressed(kAccessKey ^ 0x100);
  Data(&wqe, From(), 60);
  initiator_.Post(wqe, kSend, kSignaled);
  Settle();
  EXPECT_EQ(0x15, Next(13)[55]) << "MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR";
  EXPECT_EQ(nullptr, cq_.Poll());
  EXPECT_EQ(0, To()[0]);
}

TEST_F(DynamicTest, WhatTheTargetForbidsIsAnErrorOfTheInitiatorAlone) {
  Ready(0x4);  // REMOTE_READ
  Bytes wqe = Addressed();
  Remote(&wqe, To(), lkey_);
  Data(&wqe, From(), 50);
  initiator_.Post(wqe, kRdmaWrite, kSignaled);
  Settle();
  EXPECT_EQ(0x12, Next(13)[55]) << "MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR";
  EXPECT_EQ(0, To()[0]);
  ASSERT_GT(Modify(initiator_, 0x1, {{MODIFY(qp_state), 0}}), 0) << LastRule();
  initiator_.posted_blocks = 0;
  initiator_.Ring();
  ASSERT_GT(InitiatorTo(1, kInitMask), 0) << LastRule();
  ASSERT_GT(InitiatorTo(2, kRtrMask), 0) << LastRule();
  ASSERT_GT(InitiatorTo(3, kRtsMask), 0) << LastRule();
  wqe = Addressed();
  Remote(&wqe, From(), lkey_);
  Data(&wqe, To(), 50);
  initiator_.Post(wqe, kRead, kSignaled);
  Settle();
  Next(0);
  EXPECT_EQ(0, std::memcmp(To(), From(), 50)) << "the target still serves";
  wqe = Addressed();
  Remote(&wqe, From(), lkey_ + 0x100);
  Data(&wqe, To(), 50);
  initiator_.Post(wqe, kRead, kSignaled);
  Settle();
  EXPECT_EQ(0x13, Next(13)[55]) << "MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR";
}

TEST_F(DynamicTest, WithoutAReceiveTheInitiatorIsNotServed) {
  Ready();
  Bytes wqe = Addressed();
  Data(&wqe, From(), 60);
  initiator_.Post(wqe, kSend, kSignaled);
  Settle();
  EXPECT_EQ(0x16, Next(13)[55]) << "MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR";
}

TEST_F(DynamicTest, ADestroyedTargetIsGone) {
  Ready();
  Bytes reply(4);
  ASSERT_GT(Write(kDestroyQp,
                  S(VABI_S(ib_uverbs_destroy_qp))
                      .With(VABI_F(ib_uverbs_destroy_qp, qp_handle), target_.handle),
                  &reply),
            0);
  Bytes wqe = Addressed();
  Remote(&wqe, To(), lkey_);
  Data(&wqe, From(), 50);
  initiator_.Post(wqe, kRdmaWrite, kSignaled);
  Settle();
  EXPECT_EQ(0x15, Next(13)[55]);
  EXPECT_EQ(0, To()[0]);
}

// qp.c:process_vendor_flags, check_qp_attr, process_create_flags
TEST_F(DynamicTest, WhatCreationRefuses) {
  EXPECT_EQ(EINVAL, Errno(Make(&target_, 0, &srq_)));
  EXPECT_EQ("mlx5.create_qp.dc_type", LastRule());
  EXPECT_EQ(EINVAL, Errno(Make(&target_, kDct | kDci, &srq_)));
  EXPECT_EQ("mlx5.create_qp.dc_type", LastRule());
  EXPECT_EQ(EINVAL, Errno(Make(&target_, kDct)));
  EXPECT_EQ("mlx5.create_qp.dct_queues", LastRule());
  EXPECT_EQ(EINVAL, Errno(Make(&initiator_, kDci))) << "max_recv_sge is 2";
  EXPECT_EQ("mlx5.create_qp.dci_receives", LastRule());
  Qp receives{16, 16};
  receives.type = kDriver;
  EXPECT_EQ(EINVAL, Errno(MakeWithout(&receives, kDci, kNoSges, 0, nullptr)));
  EXPECT_EQ("mlx5.create_qp.dci_receives", LastRule());
  Struct request = S(VABI_S(ib_uverbs_ex_create_qp));
  request.Set(VABI_F(ib_uverbs_ex_create_qp, pd_handle), pd_);
  request.Set(VABI_F(ib_uverbs_ex_create_qp, qp_type), kDriver);
  request.Set(VABI_F(ib_uverbs_ex_create_qp, send_cq_handle), cq_.handle);
  request.Set(VABI_F(ib_uverbs_ex_create_qp, recv_cq_handle), cq_.handle);
  request.Set(VABI_F(ib_uverbs_ex_create_qp, srq_handle), srq_.handle);
  request.Set(VABI_F(ib_uverbs_ex_create_qp, is_srq), 1);
  request.Set(VABI_F(ib_uverbs_ex_create_qp, create_flags), 2);
  Bytes reply((world().Size(VABI_S(ib_uverbs_ex_create_qp_resp)) + 7) / 8 * 8 + 40);
  EXPECT_EQ(EINVAL,
            Errno(WriteEx(24, request.bytes(), &reply, Private(target_, kDct).bytes(), 40)));
  EXPECT_EQ("mlx5.create_qp.dct_flags", LastRule());
}

// Since 5.8 the flag alone makes the type.
TEST_F(DynamicTest, TheFlagTurnsAnyTypeIntoADynamicOne) {
  initiator_.type = 2;
  ASSERT_GT(MakeInitiator(), 0) << LastRule();
  EXPECT_EQ(EINVAL, Errno(ToInit(initiator_))) << "access flags are none of a DCI's";
  EXPECT_EQ("mlx5.modify_dci", LastRule());
  EXPECT_GT(InitiatorTo(1, kInitMask), 0) << LastRule();
}

TEST_F(DynamicTest, AnInitiatorHasItsOwnTransitions) {
  ASSERT_GT(MakeInitiator(), 0) << LastRule();
  const auto refused = [&](uint64_t state, uint32_t mask) {
    const bool errno_is = Errno(InitiatorTo(state, mask)) == EINVAL;
    return errno_is && LastRule() == "mlx5.modify_dci";
  };
  EXPECT_TRUE(refused(1, kInitMask & ~0x10u));
  EXPECT_TRUE(refused(1, kInitMask | 0x8));
  EXPECT_TRUE(refused(6, 0x1)) << "RESET to ERR";
  ASSERT_GT(InitiatorTo(1, kInitMask), 0) << LastRule();
  EXPECT_TRUE(refused(2, 0x1));
  EXPECT_TRUE(refused(2, kRtrMask | 0x8000));
  EXPECT_TRUE(refused(3, kRtsMask));
  ASSERT_GT(InitiatorTo(1, 0x1 | 0x20), 0) << LastRule();
  ASSERT_GT(InitiatorTo(2, kRtrMask | 0x80), 0) << LastRule() << ": with an address (5.0)";
  EXPECT_TRUE(refused(3, kRtsMask & ~0x400u));
  ASSERT_GT(InitiatorTo(3, kRtsMask | 0x8000), 0) << LastRule();
  EXPECT_TRUE(refused(3, 0x1 | 0x8));
  ASSERT_GT(InitiatorTo(3, 0x1 | 0x8000), 0) << LastRule();
  EXPECT_TRUE(refused(4, 0x1)) << "SQD";
  EXPECT_TRUE(refused(6, 0x1 | 0x20));
  ASSERT_GT(InitiatorTo(6, 0x1), 0) << LastRule();
  EXPECT_TRUE(refused(0, 0x1 | 0x20));
  ASSERT_GT(InitiatorTo(0, 0x1), 0) << LastRule();
}

TEST_F(DynamicTest, ATargetHasTwo) {
  ASSERT_GT(MakeTarget(), 0) << LastRule();
  Bytes own(16);
  const auto refused = [&](uint64_t state, uint32_t mask, const char* rule) {
    own.assign(own.size(), 0);
    const bool errno_is = Errno(TargetTo(state, mask, &own)) == EINVAL;
    EXPECT_EQ(rule, LastRule());
    return errno_is;
  };
  EXPECT_TRUE(refused(1, 0x8 | 0x10 | 0x20, "mlx5.modify_dct.state"));
  EXPECT_TRUE(refused(2, kTargetRtr & ~0x80u, "mlx5.modify_dct.transition"));
  EXPECT_TRUE(refused(1, kTargetInit & ~0x8u, "mlx5.modify_dct.mask"));
  EXPECT_TRUE(refused(1, kTargetInit | 0x8000, "mlx5.modify_dct.mask"));
  ASSERT_EQ(0, Errno(TargetTo(1, kTargetInit, &own))) << LastRule();
  EXPECT_TRUE(refused(1, kTargetInit, "mlx5.modify_dct.transition"));
  EXPECT_TRUE(refused(0, 0x1, "mlx5.modify_dct.transition"));
  EXPECT_TRUE(refused(2, kTargetRtr & ~0x8000u, "mlx5.modify_dct.mask"));
  own.resize(4);
  EXPECT_TRUE(refused(2, kTargetRtr, "mlx5.modify_dct.reply"));
  EXPECT_EQ(EINVAL, Errno(Modify(target_, kTargetRtr, {{MODIFY(qp_state), 2}})));
  EXPECT_EQ("mlx5.modify_dct.reply", LastRule()) << "MODIFY_QP has no room at all";
  own.resize(8);
  ASSERT_EQ(0, Errno(TargetTo(2, kTargetRtr, &own))) << LastRule();
  uint32_t length;
  std::memcpy(&length, own.data(), 4);
  EXPECT_EQ(8u, length) << "room for the number alone";
  own.resize(16);
  EXPECT_TRUE(refused(3, 0x1, "mlx5.modify_dct.transition"));
  EXPECT_TRUE(refused(6, 0x1, "mlx5.modify_dct.transition"));
}

// mlx5_ib_dct_query_qp
TEST_F(DynamicTest, ATargetTellsWhatItIsAskedFor) {
  ASSERT_GT(MakeTarget(), 0) << LastRule();
  Bytes reply(world().Size(VABI_S(ib_uverbs_query_qp_resp)));
  const auto query = [&](uint32_t mask) {
    reply.assign(reply.size(), 0xee);
    return Errno(Write(kQueryQp,
                       S(VABI_S(ib_uverbs_query_qp))
                           .With(VABI_F(ib_uverbs_query_qp, qp_handle), target_.handle)
                           .With(VABI_F(ib_uverbs_query_qp, attr_mask), mask),
                       &reply));
  };
  const auto told = [&](FieldId field) { return In(reply).Get(field); };
  EXPECT_EQ(EINVAL, query(1));
  EXPECT_EQ("mlx5.query_dct.state", LastRule());
  Bytes own(16);
  ASSERT_EQ(0, Errno(TargetTo(1, kTargetInit, &own)));
  EXPECT_EQ(EINVAL, query(1));
  ASSERT_EQ(0, Errno(TargetTo(2, kTargetRtr, &own)));
  EXPECT_EQ(EINVAL, query(1 | 0x40));
  EXPECT_EQ("mlx5.query_dct.mask", LastRule());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(0, query(0x8));
    EXPECT_EQ(0u, told(VABI_F(ib_uverbs_query_qp_resp, qp_state)));
    EXPECT_EQ(0xeu, told(VABI_F(ib_uverbs_query_qp_resp, qp_access_flags)));
    EXPECT_EQ(0u, told(VABI_F(ib_uverbs_query_qp_resp, path_mtu)));
    EXPECT_EQ(1u, told(VABI_F(ib_uverbs_query_qp_resp, sq_sig_all)));
  }
  EXPECT_EQ(0, query(0x1 | 0x20 | 0x100 | 0x8000));
  EXPECT_EQ(2u, told(VABI_F(ib_uverbs_query_qp_resp, qp_state)));
  EXPECT_EQ(0u, told(VABI_F(ib_uverbs_query_qp_resp, cur_qp_state)));
  EXPECT_EQ(1u, told(VABI_F(ib_uverbs_query_qp_resp, port_num)));
  EXPECT_EQ(3u, told(VABI_F(ib_uverbs_query_qp_resp, path_mtu)));
  EXPECT_EQ(1u, told(VABI_F(ib_uverbs_query_qp_resp, min_rnr_timer)));
  EXPECT_EQ(0u, told(VABI_F(ib_uverbs_query_qp_resp, qp_access_flags)));
  EXPECT_EQ(EINVAL, Errno(TargetTo(2, kTargetRtr, &own))) << "it is in RTR, whatever was told";
}

// Before 5.8 the type was looked at first, and a DCT's flags never.
class OldDynamicTest : public DynamicTest {
 protected:
  OldDynamicTest() : DynamicTest("linux-5.7") {}
};

TEST_F(OldDynamicTest, WhatCreationRefuses) {
  EXPECT_EQ(EINVAL, Errno(Make(&target_, 0, &srq_)));
  EXPECT_EQ("mlx5.create_qp.dc_type", LastRule());
  EXPECT_EQ(EINVAL, Errno(Make(&target_, kDct)));
  EXPECT_EQ("mlx5.create_qp.dct_queues", LastRule());
  EXPECT_EQ(EINVAL, Errno(Make(&initiator_, kDci)));
  EXPECT_EQ("mlx5.create_qp.dci_receives", LastRule());
  const uint32_t number = target_.number;
  Bytes own(16, 0xee);
  ASSERT_GT(MakeQp(cq_, cq_, &target_, Private(target_, kDct | 1 << 30).bytes(), &srq_, &own), 0)
      << LastRule();
  EXPECT_EQ(number, target_.number);
  EXPECT_EQ(0u, target_.number);
}

TEST_F(OldDynamicTest, MessagesArrive) {
  Ready();
  srq_.Post(0, To(), 100, lkey_);
  Bytes wqe = Addressed();
  Data(&wqe, From(), 60);
  initiator_.Post(wqe, kSend, kSignaled);
  Settle();
  Next(2), Next(0);
  EXPECT_EQ(0, std::memcmp(To(), From(), 60));
}

class FirstDynamicTest : public DynamicTest {
 protected:
  FirstDynamicTest() : DynamicTest("linux-4.16") {}
};

// modify_dci_qp_is_ok of 4.16
TEST_F(FirstDynamicTest, AnInitiatorGoesOnlyForward) {
  ASSERT_GT(MakeInitiator(), 0) << LastRule();
  ASSERT_GT(InitiatorTo(1, kInitMask), 0) << LastRule();
  EXPECT_EQ(EINVAL, Errno(InitiatorTo(2, kRtrMask | 0x80)));
  EXPECT_EQ("mlx5.modify_dci", LastRule());
  ASSERT_GT(InitiatorTo(2, kRtrMask), 0) << LastRule();
  EXPECT_EQ(EINVAL, Errno(InitiatorTo(0, 0x1)));
  EXPECT_EQ("mlx5.modify_dci", LastRule());
}

class NoDynamicTest : public DynamicTest {
 protected:
  NoDynamicTest() : DynamicTest("linux-4.10") {}
};

TEST_F(NoDynamicTest, NoSuchType) {
  EXPECT_EQ(EINVAL, Errno(Make(&target_, kDct, &srq_)));
  EXPECT_EQ("mlx5.create_qp.type", LastRule());
}

}  // namespace
}  // namespace vabi::mlx5
