// SPDX-License-Identifier: BSD-2-Clause
// Messages, from work queue elements to completions. Formats: rdma-core's mlx5dv.h and cq.c.
#include <ctime>

#include "shims/providers/mlx5/test_mlx5.h"
#include "shims/uverbs/objects.h"

namespace vabi::mlx5 {
namespace {

constexpr uint8_t kSignaled = 8, kSolicited = 2;
enum Opcode : uint8_t {
  kSend = 0x0a,
  kSendImm = 0x0b,
  kWrite = 0x08,
  kWriteImm = 0x09,
  kRead = 0x10,
  kCas = 0x11,
  kFaa = 0x12
};

class DataPath : public Mlx5Test {
 protected:
  explicit DataPath(uint8_t cqe_size = 64) : cq_(64, cqe_size) {}
  void SetUp() override {
    OpenContext();
    channel_ = Channel();
    MakeCq(&cq_, channel_);
    FillMemory();
  }
  void Pair(uint8_t type = 2) {
    left_.type = right_.type = type;
    MakeQp(cq_, cq_, &left_);
    MakeQp(cq_, cq_, &right_);
    Connect(left_, right_.number);
    Connect(right_, left_.number);
  }
  Bytes Data(const uint8_t* at, uint32_t length, size_t before = 16) {
    Bytes wqe(before + 16);
    PutPointer(wqe.data() + before, at, length, lkey_);
    return wqe;
  }
  Bytes Remote(const uint8_t* to, const uint8_t* from, uint32_t length) {
    Bytes wqe = Data(from, length, 32);
    Put64(wqe.data() + 16, Address(to));
    Put32(wqe.data() + 24, lkey_);
    return wqe;
  }
  const uint8_t* Next(uint8_t opcode) { return Mlx5Test::Next(cq_, opcode); }

  Cq cq_;
  Qp left_, right_;
  int channel_ = -1;
};

TEST_F(DataPath, SendArrives) {
  Pair();
  right_.Receive(To(), 100, lkey_);
  left_.Post(Data(From(), 60), kSend, kSignaled);
  EXPECT_EQ(nullptr, cq_.Poll());
  Settle();
  EXPECT_EQ(0, std::memcmp(To(), From(), 60));
  EXPECT_EQ(0, To()[60]);
  const uint8_t* receive = Next(2);
  EXPECT_EQ(0x77u, Get32(receive + 32)) << "user index";
  EXPECT_EQ(60u, Get32(receive + 44));
  EXPECT_EQ(right_.number, Get32(receive + 56) & 0xffffff);
  EXPECT_EQ(0u, Get16(receive + 60));
  const uint8_t* send = Next(0);
  EXPECT_EQ(0x77u, Get32(send + 32));
  EXPECT_EQ(uint32_t{kSend} << 24 | left_.number, Get32(send + 56));
  EXPECT_EQ(0u, Get16(send + 60));
  EXPECT_EQ(nullptr, cq_.Poll());
}

TEST_F(DataPath, UnsignaledSendsCompleteOnlyWhereTheyArrive) {
  Pair();
  right_.Receive(To(), 100, lkey_);
  right_.Receive(To(), 100, lkey_);
  left_.Post(Data(From(), 1), kSend, 0);
  left_.Post(Data(From(), 1), kSend, kSignaled);
  Settle();
  Next(2), Next(2);
  EXPECT_EQ(1u, Get16(Next(0) + 60)) << "the second block";
  EXPECT_EQ(nullptr, cq_.Poll());
}

TEST_F(DataPath, ImmediatesAndWrites) {
  Pair();
  right_.Receive(To(), 100, lkey_);
  right_.Receive(To(), 100, lkey_);
  left_.Post(Data(From(), 3), kSendImm, kSignaled, 0x01020304);
  left_.Post(Remote(To(200), From(), 50), kWrite, kSignaled);
  left_.Post(Remote(To(300), From(), 50), kWriteImm, kSignaled, 0x0a0b0c0d);
  Settle();
  const uint8_t* cqe = Next(3);
  uint32_t immediate;
  std::memcpy(&immediate, cqe + 36, 4);
  EXPECT_EQ(0x01020304u, immediate);
  Next(0), Next(0);
  cqe = Next(1);
  std::memcpy(&immediate, cqe + 36, 4);
  EXPECT_EQ(0x0a0b0c0du, immediate);
  EXPECT_EQ(50u, Get32(cqe + 44));
  Next(0);
  EXPECT_EQ(0, std::memcmp(To(200), From(), 50));
  EXPECT_EQ(0, std::memcmp(To(300), From(), 50));
}

TEST_F(DataPath, ReadsAndAtomics) {
  Pair();
  left_.Post(Remote(From(), To(), 40), kRead, kSignaled);
  Settle();
  EXPECT_EQ(40u, Get32(Next(0) + 44));
  EXPECT_EQ(0, std::memcmp(To(), From(), 40));
  uint64_t value = 41;
  std::memcpy(To(1024), &value, 8);
  Bytes wqe = Data(To(), 8, 48);
  Put64(wqe.data() + 16, Address(To(1024)));
  Put32(wqe.data() + 24, lkey_);
  Put64(wqe.data() + 32, 1);
  left_.Post(wqe, kFaa, kSignaled);
  Settle();
  Next(0);
  std::memcpy(&value, To(1024), 8);
  EXPECT_EQ(42u, value);
  std::memcpy(&value, To(), 8);
  EXPECT_EQ(41u, value) << "hosts read the old value in their own order";
  Put64(wqe.data() + 32, 7), Put64(wqe.data() + 40, 42);
  left_.Post(wqe, kCas, kSignaled);
  Settle();
  Next(0);
  std::memcpy(&value, To(1024), 8);
  EXPECT_EQ(7u, value);
}

TEST_F(DataPath, QueuesWrapManyTimes) {
  Pair();
  for (uint32_t i = 0; i < 70000; ++i) {
    right_.Receive(To(), 64, lkey_);
    // Two blocks of inline data, so that every other element wraps somewhere in the ring.
    Bytes wqe(16 + 4 + 61);
    Put32(wqe.data() + 16, 0x80000000 | 61);
    for (size_t byte = 0; byte < 61; ++byte) wqe[20 + byte] = static_cast<uint8_t>(i + byte);
    const uint16_t block = left_.posted_blocks;
    left_.Post(wqe, kSend, kSignaled);
    Settle();
    const uint8_t* receive = Next(2);
    ASSERT_EQ(i & 0xffff, Get16(receive + 60));
    ASSERT_EQ(61u, Get32(receive + 44));
    ASSERT_EQ(static_cast<uint8_t>(i + 60), To()[60]);
    ASSERT_EQ(block, Get16(Next(0) + 60));
  }
}

TEST_F(DataPath, ReceiverNotReadyIsAnErrorInTheEnd) {
  Pair();
  left_.Post(Data(From(), 4), kSend, kSignaled);
  left_.Post(Data(From(), 4), kSend, kSignaled);
  Settle();
  const uint8_t* cqe = Next(13);
  EXPECT_EQ(0x16, cqe[55]) << "MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR";
  EXPECT_EQ(0u, Get16(cqe + 60));
  cqe = Next(13);
  EXPECT_EQ(0x05, cqe[55]) << "MLX5_CQE_SYNDROME_WR_FLUSH_ERR";
  EXPECT_EQ(1u, Get16(cqe + 60));
}

TEST_F(DataPath, BadKeysAreTold) {
  Pair();
  Bytes wqe = Remote(To(), From(), 4);
  Put32(wqe.data() + 24, lkey_ + 0x100);
  right_.Receive(To(), 4, lkey_);
  left_.Post(wqe, kWrite, 0);
  Settle();
  const uint8_t* cqe = Next(13);
  EXPECT_EQ(0x13, cqe[55]) << "MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, though not signaled";
  cqe = Next(14);
  EXPECT_EQ(0x05, cqe[55]) << "the other side is in the error state too";
}

TEST_F(DataPath, LongMessagesFailOnBothSides) {
  Pair();
  right_.Receive(To(), 3, lkey_);
  left_.Post(Data(From(), 4), kSend, kSignaled);
  Settle();
  EXPECT_EQ(0x01, Next(14)[55]) << "MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR";
  EXPECT_EQ(0x12, Next(13)[55]) << "MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR";
}

TEST_F(DataPath, MalformedElementsAreQueuePairErrors) {
  Pair();
  left_.Post(Bytes(16), kWrite, kSignaled);
  Settle();
  EXPECT_EQ(0x02, Next(13)[55]) << "MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR";
}

TEST_F(DataPath, ErrorStateFlushes) {
  Pair();
  right_.Receive(To(), 4, lkey_);
  right_.Receive(To(), 4, lkey_);
  ASSERT_GT(Modify(right_, 1, {{MODIFY(qp_state), 6}}), 0);
  Settle();
  EXPECT_EQ(0x05, Next(14)[55]);
  EXPECT_EQ(1u, Get16(Next(14) + 60));
  right_.Post(Data(From(), 4), kSend, 0);
  Settle();
  EXPECT_EQ(0x05, Next(13)[55]) << "posted afterwards: flushed too";
  ASSERT_GT(Modify(right_, 1, {{MODIFY(qp_state), 0}}), 0);
  Settle();
  EXPECT_EQ(nullptr, cq_.Poll());
}

TEST_F(DataPath, ResetForgets) {
  Pair();
  right_.Receive(To(), 4, lkey_);
  ASSERT_GT(Modify(right_, 1, {{MODIFY(qp_state), 0}}), 0);
  // The library zeroes its records.
  right_.posted_receives = right_.posted_blocks = 0;
  std::memset(right_.record.base(), 0, 8);
  Connect(right_, left_.number);
  left_.Post(Data(From(), 4), kSend, kSignaled);
  right_.Receive(To(8), 4, lkey_);
  Settle();
  EXPECT_EQ(0, std::memcmp(To(8), From(), 4)) << "the first element again";
}

TEST_F(DataPath, DatagramsBringAGrh) {
  Pair(4);
  right_.Receive(To(), 100, lkey_);
  Bytes wqe = Data(From(), 20, 64);
  Put32(wqe.data() + 16, 0x11);
  Put32(wqe.data() + 24, 0x80000000 | right_.number);
  Put16(wqe.data() + 30, image().device[0].ports[0].lid);
  wqe[43] = 64;
  Put32(wqe.data() + 44, 1u << 30);
  std::memcpy(wqe.data() + 48, image().device[0].ports[0].gids[0].raw, 16);
  left_.Post(wqe, kSend, kSignaled);
  Settle();
  const uint8_t* cqe = Next(2);
  EXPECT_EQ(60u, Get32(cqe + 44)) << "40 bytes of GRH";
  EXPECT_EQ(left_.number, Get32(cqe + 24) & 0xffffff) << "source";
  EXPECT_EQ(1u, Get32(cqe + 24) >> 28 & 3) << "with a GRH";
  EXPECT_EQ(0, std::memcmp(To(40), From(), 20));
  Next(0);
}

// cq.c:handle_responder: on Ethernet bits 24 and 25 tell what the 40 bytes are
// (MLX5_CQE_ROCE_L3_HEADER_TYPE_IPV4 is 2); bit 27: UDP follows.
TEST_F(DataPath, OnEthernetTheCompletionTellsTheDatagramsHeader) {
  image().device[0].link = LinkLayer::kEthernet;
  image().device[0].ports[0].lid = 0;
  const uint8_t gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
  std::memcpy(image().device[0].ports[0].gids[0].raw, gid, sizeof(gid));
  image().device[0].ports[0].gids[0].type = 2;
  Reinstall();
  SetUp();
  Pair(4);
  right_.Receive(To(), 100, lkey_);
  Bytes wqe = Data(From(), 20, 64);
  Put32(wqe.data() + 16, 0x11);
  Put32(wqe.data() + 24, 0x80000000 | right_.number);
  wqe[28] = 5;  // a service level is not told
  wqe[43] = 64;
  Put32(wqe.data() + 44, 1u << 30);
  std::memcpy(wqe.data() + 48, gid, sizeof(gid));
  left_.Post(wqe, kSend, kSignaled);
  Settle();
  EXPECT_EQ(2u | 8, Get32(Next(2) + 24) >> 24 & 0xf);
  EXPECT_EQ(0x45, To()[20]) << "IPv4, 20 bytes";
}

TEST_F(DataPath, UnreliableMessagesVanish) {
  Pair(3);
  left_.Post(Data(From(), 4), kSend, kSignaled);
  Settle();
  Next(0);
  EXPECT_EQ(nullptr, cq_.Poll());
}

TEST_F(DataPath, SharedQueuesServe) {
  Srq srq(8);
  ASSERT_GT(MakeSrq(&srq, SrqPrivate(srq).bytes()), 0) << LastRule();
  Qp receiver(16, 0);
  MakeQp(cq_, cq_, &left_);
  MakeQp(cq_, cq_, &receiver, &srq);
  Connect(left_, receiver.number);
  Connect(receiver, left_.number);
  srq.Post(0, To(), 10, lkey_);
  srq.Post(1, To(100), 10, lkey_);
  left_.Post(Data(From(), 4), kSend, 0);
  left_.Post(Data(From(), 5), kSend, 0);
  Settle();
  EXPECT_EQ(0u, Get16(Next(2) + 60));
  const uint8_t* cqe = Next(2);
  EXPECT_EQ(1u, Get16(cqe + 60));
  EXPECT_EQ(0x77u, Get32(cqe + 32)) << "the queue pair's user index, not the shared queue's number";
  EXPECT_EQ(0, std::memcmp(To(100), From(), 5));
}

TEST_F(DataPath, ArmedQueuesReport) {
  Pair();
  EXPECT_EQ(0xffffffffu, Get32(cq_.record.At(4))) << "so that a first arm command of 0 can be seen";
  right_.Receive(To(), 4, lkey_);
  right_.Receive(To(), 4, lkey_);
  right_.Receive(To(), 4, lkey_);
  left_.Post(Data(From(), 4), kSend, 0);
  Settle();
  EXPECT_FALSE(ReadEvent(channel_)) << "not armed";
  cq_.Arm(false);
  Settle();
  EXPECT_TRUE(ReadEvent(channel_)) << "armed with a completion there already";
  left_.Post(Data(From(), 4), kSend, 0);
  Settle();
  EXPECT_FALSE(ReadEvent(channel_)) << "one event for one arm command";
  ++cq_.sequence;
  Next(2), Next(2);
  cq_.Arm(false);
  Settle();
  EXPECT_FALSE(ReadEvent(channel_)) << "all polled";
  left_.Post(Data(From(), 4), kSend, 0);
  Settle();
  EXPECT_TRUE(ReadEvent(channel_));
}

TEST_F(DataPath, SolicitedOnly) {
  Pair();
  for (int i = 0; i < 3; ++i) right_.Receive(To(), 4, lkey_);
  cq_.Arm(true);
  left_.Post(Data(From(), 4), kSend, 0);
  Settle();
  EXPECT_FALSE(ReadEvent(channel_));
  left_.Post(Data(From(), 4), kSend, kSolicited);
  Settle();
  EXPECT_TRUE(ReadEvent(channel_));
  EXPECT_EQ(0, Next(2)[63] & 2);
  EXPECT_EQ(2, Next(2)[63] & 2) << "the SE bit";
  ++cq_.sequence;
  cq_.Arm(true);
  left_.Post(Bytes(16), kWrite, 0);
  Settle();
  EXPECT_TRUE(ReadEvent(channel_)) << "errors are solicited";
}

TEST_F(DataPath, OverrunIsTheEndOfTheQueue) {
  Cq small(4);
  MakeCq(&small);
  MakeQp(small, small, &left_);
  MakeQp(cq_, cq_, &right_);
  Connect(left_, right_.number);
  Connect(right_, left_.number);
  for (int i = 0; i < 6; ++i) {
    right_.Receive(To(), 4, lkey_);
    left_.Post(Data(From(), 4), kSend, kSignaled);
  }
  Settle();
  for (int i = 0; i < 4; ++i) EXPECT_NE(nullptr, small.Poll());
  EXPECT_EQ(nullptr, small.Poll());
  EXPECT_EQ(0, small.Slot(4)[63] & 1) << "nothing was overwritten";
}

TEST_F(DataPath, ResizeGoesOnInTheNewBuffer) {
  Pair();
  right_.Receive(To(), 4, lkey_);
  left_.Post(Data(From(), 4), kSend, 0);
  Settle();
  Cq large(128);
  Struct request = S(VABI_S(ib_uverbs_resize_cq));
  request.Set(VABI_F(ib_uverbs_resize_cq, cq_handle), cq_.handle);
  request.Set(VABI_F(ib_uverbs_resize_cq, cqe), 127);
  Struct own = S(VABI_S(mlx5_ib_resize_cq));
  own.Set(VABI_F(mlx5_ib_resize_cq, buf_addr), Address(large.ring.base()));
  own.Set(VABI_F(mlx5_ib_resize_cq, cqe_size), 64);
  Bytes reply(world().Size(VABI_S(ib_uverbs_resize_cq_resp)));
  ASSERT_GT(Write(kResizeCq, request, &reply, own.bytes()), 0) << LastRule();
  Next(2);
  EXPECT_EQ(5, cq_.Slot(1)[63] >> 4) << "MLX5_CQE_RESIZE_CQ: the library goes on from here";
  right_.Receive(To(), 4, lkey_);
  left_.Post(Data(From(), 4), kSend, 0);
  Settle();
  EXPECT_EQ(2, large.Slot(2)[63] >> 4);
}

TEST_F(DataPath, ResizeBelowWhatIsThereIsRefused) {
  Pair();
  for (int i = 0; i < 5; ++i) {
    right_.Receive(To(), 4, lkey_);
    left_.Post(Data(From(), 4), kSend, 0);
  }
  Cq less(4);
  Struct request = S(VABI_S(ib_uverbs_resize_cq));
  request.Set(VABI_F(ib_uverbs_resize_cq, cq_handle), cq_.handle);
  request.Set(VABI_F(ib_uverbs_resize_cq, cqe), 3);
  Struct own = S(VABI_S(mlx5_ib_resize_cq));
  own.Set(VABI_F(mlx5_ib_resize_cq, buf_addr), Address(less.ring.base()));
  own.Set(VABI_F(mlx5_ib_resize_cq, cqe_size), 64);
  Bytes reply(world().Size(VABI_S(ib_uverbs_resize_cq_resp)));
  EXPECT_EQ(EINVAL, Errno(Write(kResizeCq, request, &reply, own.bytes())))
      << "also what was only posted before";
}

// Frames leave the port; nobody is there, so none comes in.
TEST_F(DataPath, FramesLeave) {
  image().device[0].link = LinkLayer::kEthernet;
  Reinstall();
  SetUp();
  Qp raw(16, 16);
  raw.type = 8;
  Pages frames(4096);
  Struct own = QpPrivate(raw);
  own.Set(VABI_F(mlx5_ib_create_qp, sq_buf_addr), Address(frames.base()));
  ASSERT_GT(MakeQp(cq_, cq_, &raw, own.bytes()), 0) << LastRule();
  ASSERT_GT(Modify(raw, 0x1 | 0x20, {{MODIFY(qp_state), 1}, {MODIFY(port_num), 1}}), 0)
      << LastRule();
  ASSERT_GT(Modify(raw, 0x1, {{MODIFY(qp_state), 2}}), 0) << LastRule();
  ASSERT_GT(Modify(raw, 0x1, {{MODIFY(qp_state), 3}}), 0) << LastRule();
  // Control, Ethernet segment with 18 bytes of headers, one pointer.
  uint8_t* wqe = frames.base();
  Put32(wqe, kSend);
  Put32(wqe + 4, raw.number << 8 | 4);
  wqe[11] = kSignaled;
  Put16(wqe + 28, 18);
  Put32(wqe + 48, 100), Put32(wqe + 52, lkey_), Put64(wqe + 56, Address(From()));
  raw.posted_blocks = 1;
  raw.Ring();
  Settle();
  EXPECT_EQ(raw.number, Get32(Next(0) + 56) & 0xffffff);
  Put32(wqe + 64, kSend | 1 << 8);
  Put32(wqe + 68, raw.number << 8 | 4);
  Put16(wqe + 92, 18);
  Put32(wqe + 112, 100), Put32(wqe + 116, lkey_ + 0x100), Put64(wqe + 120, Address(From()));
  raw.posted_blocks = 2;
  raw.Ring();
  Settle();
  EXPECT_EQ(0x04, Next(13)[55]) << "MLX5_CQE_SYNDROME_LOCAL_PROT_ERR";
}

class LargeCqes : public DataPath {
 protected:
  LargeCqes() : DataPath(128) {}
};

TEST_F(LargeCqes, CompletionsStandInTheSecondHalf) {
  Pair();
  right_.Receive(To(), 100, lkey_);
  left_.Post(Data(From(), 60), kSend, kSignaled);
  Settle();
  EXPECT_EQ(60u, Get32(Next(2) + 44));
  Next(0);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(0, cq_.ring.base()[i]);
}

// MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD
TEST_F(LargeCqes, PaddedOnesAreWrittenWhole) {
  for (const bool padded : {false, true}) {
    Cq cq{16, 128};
    for (int i = 0; i < 64; ++i) cq.ring.base()[i] = 0xcc;
    Struct own = CqPrivate(cq).With(VABI_F(mlx5_ib_create_cq, flags), padded ? 1 : 0);
    ASSERT_GT(MakeCq(&cq, own.bytes()), 0) << LastRule();
    Qp left, right;
    MakeQp(cq, cq, &left);
    MakeQp(cq, cq, &right);
    Connect(left, right.number);
    Connect(right, left.number);
    right.Receive(To(), 100, lkey_);
    left.Post(Data(From(), 60), kSend, kSignaled);
    Settle();
    const uint8_t* cqe = cq.Poll();
    ASSERT_NE(nullptr, cqe);
    EXPECT_EQ(60u, Get32(cqe + 44));
    for (int i = 0; i < 64; ++i) EXPECT_EQ(padded ? 0 : 0xcc, cq.ring.base()[i]) << i;
  }
}

TEST_F(LargeCqes, OnlyOnesOf128BytesArePadded) {
  Cq cq{16, 64};
  EXPECT_EQ(EOPNOTSUPP,
            Errno(MakeCq(&cq, CqPrivate(cq).With(VABI_F(mlx5_ib_create_cq, flags), 1).bytes())));
  EXPECT_EQ("mlx5.create_cq.padding", LastRule());
}

// A NIC that the goal of 500,000 messages a second needs has two microseconds for one.
TEST_F(DataPath, IsFast) {
  Pair();
  constexpr int kRounds = 2000, kBatch = 15;
  timespec before, after;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  const Bytes wqe = Data(From(), 64);
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kBatch; ++i) {
      right_.Receive(To(), 64, lkey_);
      left_.Post(wqe, kSend, kSignaled);
    }
    Settle();
    for (int i = 0; i < 2 * kBatch; ++i) ASSERT_NE(nullptr, cq_.Poll());
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  const double spent = static_cast<double>(after.tv_sec - before.tv_sec) * 1e9 +
                       static_cast<double>(after.tv_nsec - before.tv_nsec);
  RecordProperty("ns_per_message", static_cast<int>(spent / (kRounds * kBatch)));
  std::printf("%.0f ns for a message, posting and polling included\n", spent / (kRounds * kBatch));
}

}  // namespace
}  // namespace vabi::mlx5
