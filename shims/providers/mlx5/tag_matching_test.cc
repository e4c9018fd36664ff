// SPDX-License-Identifier: BSD-2-Clause
// Shared queues that match tags. Elements and completions: rdma-core's mlx5dv.h (struct
// mlx5_wqe_tm_seg, mlx5_tm_cqe), tm_types.h, cq.c; what each means: ibv_post_srq_ops(3).
#include "shims/providers/mlx5/test_mlx5.h"
#include "shims/uverbs/objects.h"

namespace vabi::mlx5 {
namespace {

constexpr uint8_t kSignaled = 8, kSend = 0x0a, kTags = 0x28;
enum Answer : uint8_t {
  kConsumed = 1,
  kExpected = 2,
  kUnexpected = 3,
  kNoTag = 4,
  kAppended = 5,
  kRemoved = 6,
  kNothing = 7,
  kConsumedMessage = 10
};

class TagsTest : public Mlx5Test {
 protected:
  void SetUp() override {
    OpenContext();
    MakeCq(&cq_);
    FillMemory();
  }
  long MakeTagSrq(uint32_t tags) {
    const size_t core = world().Size(VABI_S(ib_uverbs_create_srq_resp));
    Bytes reply(core + 8);
    const long result =
        Write(39,
              S(VABI_S(ib_uverbs_create_xsrq))
                  .With(VABI_F(ib_uverbs_create_xsrq, srq_type), 2)
                  .With(VABI_F(ib_uverbs_create_xsrq, pd_handle), pd_)
                  .With(VABI_F(ib_uverbs_create_xsrq, cq_handle), cq_.handle)
                  .With(VABI_F(ib_uverbs_create_xsrq, max_wr), srq_.count - 1)
                  .With(VABI_F(ib_uverbs_create_xsrq, max_sge), 1)
                  .With(VABI_F(ib_uverbs_create_xsrq, max_num_tags), tags),
              &reply, SrqPrivate(srq_).With(VABI_F(mlx5_ib_create_srq, uidx), 0x99).bytes());
    srq_.handle = In(reply).U32(VABI_F(ib_uverbs_create_srq_resp, srq_handle));
    return result;
  }
  void Ready() {
    ASSERT_GT(MakeTagSrq(63), 0) << LastRule();
    MakeQp(cq_, cq_, &command_, &srq_);
    Connect(command_, command_.number);
    MakeQp(cq_, cq_, &left_);
    MakeQp(cq_, cq_, &right_, &srq_);
    Connect(left_, right_.number);
    Connect(right_, left_.number);
  }
  // What the list is to do; an answer is asked for, and the count is told if it is not -1.
  void Command(uint8_t operation, uint16_t index, uint64_t tag = 0, uint64_t mask = 0,
               uint8_t* at = nullptr, uint32_t length = 0, int count = -1) {
    Bytes wqe(operation == 1 ? 64 : 48);
    uint8_t* segment = wqe.data() + 16;
    segment[0] = static_cast<uint8_t>(operation << 4);
    segment[1] = static_cast<uint8_t>(0x80 | (count >= 0 ? 0x40 : 0));
    Put16(segment + 2, index);
    if (count >= 0) Put16(segment + 6, static_cast<uint32_t>(count));
    Put64(segment + 16, tag);
    Put64(segment + 24, mask);
    if (operation == 1) {
      PutPointer(segment + 32, at, length, length != 0 ? lkey_ : 0x100);
    }
    command_.Post(wqe, kTags, 0);
    Settle();
  }
  const uint8_t* Next(uint8_t opcode) { return Mlx5Test::Next(cq_, opcode); }
  // A completion of the shared queue's.
  const uint8_t* Told(uint8_t opcode, uint8_t answer) {
    const uint8_t* cqe = Next(opcode);
    EXPECT_EQ(1, cqe[40]) << "MLX5_CQE_APP_TAG_MATCHING";
    EXPECT_EQ(answer, cqe[41]);
    EXPECT_EQ(0x99u, Get32(cqe + 32)) << "its user index";
    return cqe;
  }
  // A header in front of bytes that stand in memory.
  void Send(uint8_t operation, uint64_t tag, const uint8_t* at, uint32_t length,
            uint32_t context = 0) {
    uint8_t* header = memory_.At(60000);
    std::memset(header, 0, 16);
    header[0] = operation;
    Put32(header + 4, context);
    Put64(header + 8, tag);
    Bytes wqe(48);
    PutPointer(wqe.data() + 16, header, 16, lkey_);
    PutPointer(wqe.data() + 32, at, length, lkey_);
    left_.Post(wqe, kSend, kSignaled);
    Settle();
  }

  Cq cq_{64, 64};
  Srq srq_{16};
  Qp command_{16, 0}, left_{16, 16}, right_{16, 0};
};

TEST_F(TagsTest, AMessageGoesWhereItsTagIs) {
  Ready();
  srq_.Post(0, To(), 100, lkey_);
  Command(1, 1, 0x1111, 0xffff, To(1000), 50);
  EXPECT_EQ(0u, Get16(Told(6, kAppended) + 4)) << "no message was unexpected";
  Command(1, 2, 0x2222, 0xffff, To(2000), 50);
  Told(6, kAppended);
  Send(3, 0xaaaa2222, From(), 40, 0x77);
  const uint8_t* cqe = Told(2, kConsumedMessage);
  EXPECT_EQ(1u, Get16(cqe + 42)) << "the second place";
  EXPECT_EQ(40u, Get32(cqe + 44)) << "without its header";
  EXPECT_EQ(0xaaaa2222u, Get64(cqe + 8)) << "the header stands in the completion";
  EXPECT_EQ(0x77u, Get32(cqe + 4));
  EXPECT_EQ(right_.number, Get32(cqe + 56) & 0xffffff);
  Next(0);
  EXPECT_EQ(0, std::memcmp(To(2000), From(), 40));
  EXPECT_EQ(0, To(2040)[0]);
  EXPECT_EQ(0, To()[0]);
  EXPECT_EQ(0, To(1000)[0]);
}

TEST_F(TagsTest, TheOldestOfTwoIsTaken) {
  Ready();
  Command(1, 1, 5, 0, To(1000), 50);
  Command(1, 2, 6, 0, To(2000), 50);
  Told(6, kAppended), Told(6, kAppended);
  Send(3, 6, From(), 10);
  EXPECT_EQ(0u, Get16(Told(2, kConsumedMessage) + 42));
  Next(0);
  Send(3, 6, From(), 10);
  EXPECT_EQ(1u, Get16(Told(2, kConsumedMessage) + 42));
  Next(0);
}

TEST_F(TagsTest, WhatMatchesNothingIsCounted) {
  Ready();
  srq_.Post(0, To(), 100, lkey_);
  srq_.Post(1, To(200), 100, lkey_);
  Command(1, 1, 5, 0xffff, To(1000), 50);
  Told(6, kAppended);
  Send(3, 6, From(), 40);
  const uint8_t* cqe = Told(2, kUnexpected);
  EXPECT_EQ(0u, Get16(cqe + 60)) << "the receive's place";
  EXPECT_EQ(56u, Get32(cqe + 44)) << "with its header";
  EXPECT_EQ(0u, Get64(cqe + 8));
  Next(0);
  EXPECT_EQ(3, To()[0]);
  EXPECT_EQ(6u, Get64(To(8)));
  EXPECT_EQ(0, std::memcmp(To(16), From(), 40));
  Command(0, 0, 0, 0, nullptr, 0, 1);
  EXPECT_EQ(1u, Get16(Told(6, kNothing) + 4));
  Send(0, 5, From(), 40);
  EXPECT_EQ(1u, Get16(Told(2, kNoTag) + 60)) << "says itself that it has none";
  Next(0);
  Command(0, 0);
  EXPECT_EQ(1u, Get16(Told(6, kNothing) + 4)) << "and is not counted";
}

TEST_F(TagsTest, WithoutAReceiveItIsNotCountedEither) {
  Ready();
  Send(3, 6, From(), 40);
  EXPECT_EQ(0x16, Next(13)[55]) << "MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR";
  Command(0, 0);
  EXPECT_EQ(0u, Get16(Told(6, kNothing) + 4));
}

TEST_F(TagsTest, RemovedItMatchesNoMore) {
  Ready();
  srq_.Post(0, To(), 100, lkey_);
  Command(1, 1, 5, 0xffff, To(1000), 50);
  Told(6, kAppended);
  Command(2, 0);
  EXPECT_EQ(0x80000000u, Get32(Told(6, kRemoved))) << "MLX5_TMC_SUCCESS";
  Command(2, 0);
  EXPECT_EQ(0u, Get32(Told(6, kRemoved)));
  Send(3, 5, From(), 40);
  Told(2, kUnexpected);
}

// The header says where the data are: the NIC reads them, and tells the sender.
TEST_F(TagsTest, ARendezvousIsMadeByTheNic) {
  Ready();
  left_.Receive(To(5000), 100, lkey_);
  Command(1, 1, 5, 0xffff, To(1000), 500);
  Told(6, kAppended);
  uint8_t* more = memory_.At(61000);
  Put64(more, Address(From(700)));
  Put32(more + 8, lkey_);
  Put32(more + 12, 400);
  Send(1, 5, more, 48, 0x1234);
  const uint8_t* cqe = Told(6, kConsumed);
  EXPECT_EQ(0u, Get16(cqe + 42));
  EXPECT_EQ(5u, Get64(cqe + 8));
  Next(0);
  cqe = Told(2, kExpected);
  EXPECT_EQ(400u, Get32(cqe + 44));
  EXPECT_EQ(0, std::memcmp(To(1000), From(700), 400));
  cqe = Next(2);
  EXPECT_EQ(left_.number, Get32(cqe + 56) & 0xffffff);
  EXPECT_EQ(16u, Get32(cqe + 44));
  EXPECT_EQ(2, To(5000)[0]) << "IBV_TMH_FIN";
  EXPECT_EQ(0x1234u, Get32(To(5004)));
  EXPECT_EQ(5u, Get64(To(5008)));
  EXPECT_EQ(nullptr, cq_.Poll());
}

TEST_F(TagsTest, ARendezvousWithABadKeyFails) {
  Ready();
  Command(1, 1, 5, 0xffff, To(1000), 500);
  Told(6, kAppended);
  uint8_t* more = memory_.At(61000);
  Put64(more, Address(From(700)));
  Put32(more + 8, lkey_ + 0x100);
  Put32(more + 12, 400);
  Send(1, 5, more, 48);
  Told(6, kConsumed);
  bool told = false;
  while (const uint8_t* cqe = cq_.Poll()) told |= cqe[63] >> 4 == 14 && cqe[55] == 0x13;
  EXPECT_TRUE(told) << "MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR";
  EXPECT_EQ(0, To(1000)[0]);
}

TEST_F(TagsTest, AMessageLongerThanItsReceive) {
  Ready();
  Command(1, 1, 5, 0xffff, To(1000), 39);
  Told(6, kAppended);
  Send(3, 5, From(), 40);
  EXPECT_EQ(0x01, Next(14)[55]) << "MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR";
  EXPECT_EQ(0x12, Next(13)[55]);
  EXPECT_EQ(0, To(1000)[0]);
}

// srq.c: ilog2(max_num_tags) + 1 against log_tag_matching_list_sz
TEST_F(TagsTest, NoMoreTagsThanTheNicHas) {
  EXPECT_EQ(EINVAL, Errno(MakeTagSrq(64)));
  EXPECT_EQ("mlx5.create_srq.tags", LastRule());
  EXPECT_GT(MakeTagSrq(63), 0) << LastRule();
}

TEST_F(TagsTest, OtherQueuePairsHaveNoList) {
  MakeQp(cq_, cq_, &left_);
  Connect(left_, left_.number);
  Bytes wqe(48);
  left_.Post(wqe, kTags, 0);
  Settle();
  EXPECT_EQ(0x02, Next(13)[55]) << "MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR";
}

class EthernetTagsTest : public TagsTest {
 protected:
  void SetUp() override {
    image().device[0].link = LinkLayer::kEthernet;
    Reinstall();
    TagsTest::SetUp();
  }
};

TEST_F(EthernetTagsTest, ThisNicHasNone) {
  EXPECT_EQ(EINVAL, Errno(MakeTagSrq(1)));
  EXPECT_EQ("mlx5.create_srq.tags", LastRule());
}

}  // namespace
}  // namespace vabi::mlx5
