// SPDX-License-Identifier: BSD-2-Clause
//
// Data between two RC queue pairs of a device, after whatever way the objects were made: every byte
// by its place, every field of each completion that ibv_poll_cq(3) promises, and every byte around
// the target. Where drivers give other statuses than InfiniBand's tables, the kernel's function is
// named.

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "harness/conformance/framework/abi_test.h"
#include "harness/conformance/framework/rc_pair.h"
#include "harness/conformance/framework/verbs.h"

namespace vabi::conformance {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A good completion of the sender. ibv_poll_cq(3): byte_len and wc_flags mean something to the
// receiver, and byte_len also after a READ or an atomic (rxe tells both to the sender too,
// rxe_comp.c:make_send_cqe).
MATCHER_P3(Sent, wr_id, opcode, qp, "") {
  return arg.wr_id == static_cast<uint64_t>(wr_id) && arg.status == IBV_WC_SUCCESS &&
         arg.opcode == opcode && arg.qp_num == qp;
}

MATCHER_P4(Received, wr_id, opcode, length, qp, "") {
  return arg.wr_id == static_cast<uint64_t>(wr_id) && arg.status == IBV_WC_SUCCESS &&
         arg.opcode == opcode && arg.byte_len == static_cast<uint32_t>(length) &&
         arg.qp_num == qp && (arg.wc_flags & IBV_WC_WITH_IMM) == 0;
}

MATCHER_P5(ReceivedWithImm, wr_id, opcode, length, imm, qp, "") {
  return arg.wr_id == static_cast<uint64_t>(wr_id) && arg.status == IBV_WC_SUCCESS &&
         arg.opcode == opcode && arg.byte_len == static_cast<uint32_t>(length) &&
         (arg.wc_flags & IBV_WC_WITH_IMM) != 0 && arg.imm_data == htonl(imm) && arg.qp_num == qp;
}

// A failed completion says only its number, status and queue pair (ibv_poll_cq(3)).
MATCHER_P3(FailedWith, wr_id, status, qp, std::string("has status ") + ibv_wc_status_str(status)) {
  return arg.wr_id == static_cast<uint64_t>(wr_id) && arg.status == status && arg.qp_num == qp;
}

const std::vector<std::string> kRxeAnswers = {"linux-5.14", "linux-6.*", "debian-[67].*"};
const std::vector<std::string> kRxeIsSilent = {"linux-4.*", "linux-5.[0-9]", "linux-5.10",
                                               "debian-5.10*"};

void UseAWrongKey(ibv_wc_status status) {
  RcPair pair;
  ASSERT_THAT(pair.left.PostSend(
                  WorkAt(IBV_WR_RDMA_WRITE, 6, pair.right.Address(0), pair.right.mr->rkey ^ 0x5500),
                  {pair.left.At(0, 16)}),
              Succeeds());
  EXPECT_THAT(pair.left.Poll(1), ElementsAre(FailedWith(6, status, pair.left.number())));
  EXPECT_EQ(pair.left.State(), IBV_QPS_ERR);
  EXPECT_TRUE(pair.right.OnlyTouched(0, 0));
}

void WriteBehindTheRegion(ibv_wc_status status) {
  RcPair pair;
  ASSERT_THAT(
      pair.left.PostSend(
          WorkAt(IBV_WR_RDMA_WRITE, 7, pair.right.Address(RcPair::kBytes - 8), pair.right.mr->rkey),
          {pair.left.At(0, 16)}),
      Succeeds());
  EXPECT_THAT(pair.left.Poll(1), ElementsAre(FailedWith(7, status, pair.left.number())));
  EXPECT_EQ(pair.left.State(), IBV_QPS_ERR);
}

void ReadWithoutPermission(ibv_wc_status status) {
  RcPair pair({.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE});
  // The queue pair may be read from, the region may not.
  ibv_qp_attr attr = {};
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  ASSERT_THAT(FromVerb(ibv_modify_qp(pair.right.qp.get(), &attr, IBV_QP_ACCESS_FLAGS)), Succeeds());
  ASSERT_THAT(
      pair.left.PostSend(WorkAt(IBV_WR_RDMA_READ, 8, pair.right.Address(0), pair.right.mr->rkey),
                         {pair.left.At(0, 16)}),
      Succeeds());
  EXPECT_THAT(pair.left.Poll(1), ElementsAre(FailedWith(8, status, pair.left.number())));
  EXPECT_TRUE(pair.left.OnlyTouched(0, 0));
  EXPECT_EQ(pair.left.State(), IBV_QPS_ERR);
}

void UseAWrongLocalKey(ibv_wc_status status) {
  RcPair pair;
  ibv_sge sge = pair.left.At(0, 16);
  sge.lkey ^= 0x5500;
  ASSERT_THAT(pair.left.PostSend(
                  WorkAt(IBV_WR_RDMA_WRITE, 10, pair.right.Address(0), pair.right.mr->rkey), {sge}),
              Succeeds());
  EXPECT_THAT(pair.left.Poll(1), ElementsAre(FailedWith(10, status, pair.left.number())));
  EXPECT_EQ(pair.left.State(), IBV_QPS_ERR);
  EXPECT_TRUE(pair.right.OnlyTouched(0, 0));
}

// A refused request, a receive that waits, and a request that is posted too late.
void FailAndPostOn() {
  RcPair pair;
  ASSERT_THAT(pair.left.PostReceive(90, {pair.left.At(0, 16)}), Succeeds());
  ASSERT_THAT(pair.left.PostSend(
                  WorkAt(IBV_WR_RDMA_WRITE, 1, pair.right.Address(0), pair.right.mr->rkey ^ 0x5500),
                  {pair.left.At(0, 16)}),
              Succeeds());
  EXPECT_THAT(pair.left.Poll(2), ::testing::UnorderedElementsAre(
                                     FailedWith(1, IBV_WC_REM_ACCESS_ERR, pair.left.number()),
                                     FailedWith(90, IBV_WC_WR_FLUSH_ERR, pair.left.number())));
  ASSERT_EQ(pair.left.State(), IBV_QPS_ERR);
  ASSERT_THAT(pair.left.PostSend(Work(IBV_WR_SEND, 2), {pair.left.At(0, 16)}), Succeeds());
  EXPECT_THAT(pair.left.Poll(1),
              ElementsAre(FailedWith(2, IBV_WC_WR_FLUSH_ERR, pair.left.number())));
}

constexpr uint32_t kLengths[] = {1, 7, 63, 64, 65, 255, 256, 1024, 1500, 4096, 4097, 8192};

}  // namespace

ABI_TEST(DataPath, SendArrivesByteForByte, Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair;
  uint32_t seed = 1;
  for (const uint32_t length : kLengths) {
    pair.left.Fill(128, length, seed);
    pair.right.Clear();
    ASSERT_THAT(pair.right.PostReceive(1000 + length, {pair.right.At(64, 8192)}), Succeeds());
    ASSERT_THAT(pair.left.PostSend(Work(IBV_WR_SEND, length), {pair.left.At(128, length)}),
                Succeeds());
    EXPECT_THAT(pair.left.Poll(1), ElementsAre(Sent(length, IBV_WC_SEND, pair.left.number())));
    EXPECT_THAT(pair.right.Poll(1),
                ElementsAre(Received(1000 + length, IBV_WC_RECV, length, pair.right.number())));
    EXPECT_EQ(pair.right.FirstWrong(64, length, seed), std::nullopt) << length;
    EXPECT_TRUE(pair.right.OnlyTouched(64, length)) << length;
    ++seed;
  }
}

ABI_TEST(DataPath, ListsAreGatheredAndScattered, Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair;
  pair.left.Fill(0, 300, 3);
  ASSERT_THAT(pair.right.PostReceive(1, {pair.right.At(500, 100), pair.right.At(1000, 400)}),
              Succeeds());
  ASSERT_THAT(
      pair.left.PostSend(Work(IBV_WR_SEND, 2), {pair.left.At(0, 251), pair.left.At(251, 49)}),
      Succeeds());
  EXPECT_THAT(pair.left.Poll(1), ElementsAre(Sent(2, IBV_WC_SEND, pair.left.number())));
  EXPECT_THAT(pair.right.Poll(1), ElementsAre(Received(1, IBV_WC_RECV, 300, pair.right.number())));
  for (uint32_t i = 0; i < 300; ++i) {
    const uint32_t place = i < 100 ? 500 + i : 1000 + i - 100;
    ASSERT_EQ(pair.right.bytes[place], PatternAt(3, i)) << i;
  }
  EXPECT_EQ(pair.right.bytes[600], 0xee);
  EXPECT_EQ(pair.right.bytes[1200], 0xee);
}

ABI_TEST(DataPath, InlineDataIsTakenAtThePost, Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair;
  ASSERT_GE(pair.left.cap.max_inline_data, 64u);
  for (const uint32_t length : {1u, 15u, 16u, 17u, 64u}) {
    pair.left.Fill(0, length, length);
    pair.right.Clear();
    ASSERT_THAT(pair.right.PostReceive(1, {pair.right.At(0, 64)}), Succeeds());
    ibv_sge sge = pair.left.At(0, length);
    sge.lkey = 0xdead;  // not looked at
    ASSERT_THAT(
        pair.left.PostSend(Work(IBV_WR_SEND, 2, IBV_SEND_SIGNALED | IBV_SEND_INLINE), {sge}),
        Succeeds());
    // The buffer is the caller's again as soon as the post returns.
    pair.left.Clear();
    EXPECT_THAT(pair.left.Poll(1), ElementsAre(Sent(2, IBV_WC_SEND, pair.left.number())));
    EXPECT_THAT(pair.right.Poll(1),
                ElementsAre(Received(1, IBV_WC_RECV, length, pair.right.number())));
    EXPECT_EQ(pair.right.FirstWrong(0, length, length), std::nullopt) << length;
    EXPECT_TRUE(pair.right.OnlyTouched(0, length));
  }
}

ABI_TEST(DataPath, SendWithImmediateCarriesIt, Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair;
  pair.left.Fill(0, 77, 9);
  ASSERT_THAT(pair.right.PostReceive(5, {pair.right.At(10, 100)}), Succeeds());
  ibv_send_wr wr = Work(IBV_WR_SEND_WITH_IMM, 6);
  wr.imm_data = htonl(0x12345678);
  ASSERT_THAT(pair.left.PostSend(wr, {pair.left.At(0, 77)}), Succeeds());
  EXPECT_THAT(pair.left.Poll(1), ElementsAre(Sent(6, IBV_WC_SEND, pair.left.number())));
  EXPECT_THAT(pair.right.Poll(1),
              ElementsAre(ReceivedWithImm(5, IBV_WC_RECV, 77, 0x12345678u, pair.right.number())));
  EXPECT_EQ(pair.right.FirstWrong(10, 77, 9), std::nullopt);
}

ABI_TEST(DataPath, WriteTakesNoReceiveAndTellsNobody,
         Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair;
  uint32_t seed = 21;
  for (const uint32_t length : kLengths) {
    pair.left.Fill(32, length, seed);
    pair.right.Clear();
    ASSERT_THAT(pair.left.PostSend(
                    WorkAt(IBV_WR_RDMA_WRITE, seed, pair.right.Address(200), pair.right.mr->rkey),
                    {pair.left.At(32, length)}),
                Succeeds());
    EXPECT_THAT(pair.left.Poll(1), ElementsAre(Sent(seed, IBV_WC_RDMA_WRITE, pair.left.number())));
    EXPECT_EQ(pair.right.FirstWrong(200, length, seed), std::nullopt) << length;
    EXPECT_TRUE(pair.right.OnlyTouched(200, length)) << length;
    ++seed;
  }
  EXPECT_THAT(pair.right.Drain(), IsEmpty());
}

ABI_TEST(DataPath, WriteWithImmediateTakesOneReceive,
         Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair;
  pair.left.Fill(0, 123, 31);
  ASSERT_THAT(pair.right.PostReceive(8, {}), Succeeds());
  ibv_send_wr wr =
      WorkAt(IBV_WR_RDMA_WRITE_WITH_IMM, 9, pair.right.Address(77), pair.right.mr->rkey);
  wr.imm_data = htonl(0xa1b2c3d4);
  ASSERT_THAT(pair.left.PostSend(wr, {pair.left.At(0, 123)}), Succeeds());
  EXPECT_THAT(pair.left.Poll(1), ElementsAre(Sent(9, IBV_WC_RDMA_WRITE, pair.left.number())));
  EXPECT_THAT(pair.right.Poll(1), ElementsAre(ReceivedWithImm(8, IBV_WC_RECV_RDMA_WITH_IMM, 123,
                                                              0xa1b2c3d4u, pair.right.number())));
  EXPECT_EQ(pair.right.FirstWrong(77, 123, 31), std::nullopt);
  EXPECT_TRUE(pair.right.OnlyTouched(77, 123));
}

ABI_TEST(DataPath, ReadFetchesAndTellsItsLength, Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair;
  uint32_t seed = 41;
  for (const uint32_t length : kLengths) {
    pair.right.Fill(96, length, seed);
    pair.left.Clear();
    ASSERT_THAT(pair.left.PostSend(
                    WorkAt(IBV_WR_RDMA_READ, seed, pair.right.Address(96), pair.right.mr->rkey),
                    {pair.left.At(48, length)}),
                Succeeds());
    const std::vector<ibv_wc> done = pair.left.Poll(1);
    ASSERT_THAT(done, ElementsAre(Sent(seed, IBV_WC_RDMA_READ, pair.left.number())));
    EXPECT_EQ(done[0].byte_len, length);
    EXPECT_EQ(pair.left.FirstWrong(48, length, seed), std::nullopt) << length;
    EXPECT_TRUE(pair.left.OnlyTouched(48, length)) << length;
    ++seed;
  }
  EXPECT_THAT(pair.right.Drain(), IsEmpty());
}

ABI_TEST(DataPath, FetchAndAddAnswersWithTheOldValue,
         Needs{.queue_pairs = true, .data_path = true, .atomics = true}) {
  RcPair pair;
  const uint64_t before = 0x0123456789abcdef, add = 0x1111111111111111;
  std::memcpy(pair.right.bytes.get() + 256, &before, sizeof before);
  ibv_send_wr wr = Work(IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
  wr.wr.atomic.remote_addr = pair.right.Address(256);
  wr.wr.atomic.rkey = pair.right.mr->rkey;
  wr.wr.atomic.compare_add = add;
  ASSERT_THAT(pair.left.PostSend(wr, {pair.left.At(64, 8)}), Succeeds());
  const std::vector<ibv_wc> done = pair.left.Poll(1);
  ASSERT_THAT(done, ElementsAre(Sent(1, IBV_WC_FETCH_ADD, pair.left.number())));
  EXPECT_EQ(done[0].byte_len, 8u);
  uint64_t fetched, after;
  std::memcpy(&fetched, pair.left.bytes.get() + 64, sizeof fetched);
  std::memcpy(&after, pair.right.bytes.get() + 256, sizeof after);
  EXPECT_EQ(fetched, before);
  EXPECT_EQ(after, before + add);
  EXPECT_TRUE(pair.right.OnlyTouched(256, 8));
  EXPECT_TRUE(pair.left.OnlyTouched(64, 8));
}

ABI_TEST(DataPath, CompareAndSwapSwapsOnlyEqualValues,
         Needs{.queue_pairs = true, .data_path = true, .atomics = true}) {
  RcPair pair;
  const uint64_t before = 0xfedcba9876543210, swap = 0x5a5a5a5a5a5a5a5a;
  for (const bool equal : {false, true}) {
    std::memcpy(pair.right.bytes.get() + 8, &before, sizeof before);
    ibv_send_wr wr = Work(IBV_WR_ATOMIC_CMP_AND_SWP, 2);
    wr.wr.atomic.remote_addr = pair.right.Address(8);
    wr.wr.atomic.rkey = pair.right.mr->rkey;
    wr.wr.atomic.compare_add = equal ? before : before + 1;
    wr.wr.atomic.swap = swap;
    ASSERT_THAT(pair.left.PostSend(wr, {pair.left.At(0, 8)}), Succeeds());
    ASSERT_THAT(pair.left.Poll(1), ElementsAre(Sent(2, IBV_WC_COMP_SWAP, pair.left.number())));
    uint64_t fetched, after;
    std::memcpy(&fetched, pair.left.bytes.get(), sizeof fetched);
    std::memcpy(&after, pair.right.bytes.get() + 8, sizeof after);
    EXPECT_EQ(fetched, before);
    EXPECT_EQ(after, equal ? swap : before);
  }
}

// providers/mlx5/qp.c:_mlx5_post_send, verbs.c:create_qp: QUERY_DEVICE's atomic_cap decides.
ABI_TEST(DataPath, WithoutAtomicCapMlx5PostsNoAtomic,
         Needs{.provider = "mlx5", .knobs = {{"mlx5.atomic_cap", 0, 0}}, .queue_pairs = true}) {
  RcPair pair;
  ibv_send_wr wr = Work(IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
  wr.wr.atomic.remote_addr = pair.right.Address(0);
  wr.wr.atomic.rkey = pair.right.mr->rkey;
  EXPECT_THAT(pair.left.PostSend(wr, {pair.left.At(0, 8)}), FailsWith(EOPNOTSUPP));
  EXPECT_EQ(pair.left.State(), IBV_QPS_RTS);
}

// ibv_post_send(3): without IBV_SEND_SIGNALED there is no completion, and the next signalled one
// also says that all before it are done.
ABI_TEST(DataPath, UnsignalledRequestsComplete, Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair;
  for (uint32_t i = 0; i < 6; ++i) {
    pair.left.Fill(i * 64, 64, i);
    ASSERT_THAT(
        pair.left.PostSend(WorkAt(IBV_WR_RDMA_WRITE, i, pair.right.Address(i * 64),
                                  pair.right.mr->rkey, i == 5 ? unsigned{IBV_SEND_SIGNALED} : 0u),
                           {pair.left.At(i * 64, 64)}),
        Succeeds());
  }
  EXPECT_THAT(pair.left.Poll(1), ElementsAre(Sent(5, IBV_WC_RDMA_WRITE, pair.left.number())));
  EXPECT_THAT(pair.left.Drain(), IsEmpty());
  for (uint32_t i = 0; i < 6; ++i)
    EXPECT_EQ(pair.right.FirstWrong(i * 64, 64, i), std::nullopt) << i;
}

ABI_TEST(DataPath, WithSqSigAllEveryRequestIsTold, Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair({.signal_all = true});
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_THAT(pair.left.PostSend(
                    WorkAt(IBV_WR_RDMA_WRITE, i, pair.right.Address(0), pair.right.mr->rkey, 0),
                    {pair.left.At(0, 8)}),
                Succeeds());
  }
  EXPECT_THAT(pair.left.Poll(4), ElementsAre(Sent(0, IBV_WC_RDMA_WRITE, pair.left.number()),
                                             Sent(1, IBV_WC_RDMA_WRITE, pair.left.number()),
                                             Sent(2, IBV_WC_RDMA_WRITE, pair.left.number()),
                                             Sent(3, IBV_WC_RDMA_WRITE, pair.left.number())));
}

// Several times around all four rings, with messages in flight.
ABI_TEST(DataPath, RingsWrapInOrder, Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair({.depth = 8});
  uint32_t next = 0;
  for (int round = 0; round < 20; ++round) {
    const uint32_t first = next;
    for (uint32_t i = 0; i < 5; ++i) {
      ASSERT_THAT(pair.right.PostReceive(first + i, {pair.right.At(i * 128, 128)}), Succeeds());
    }
    for (uint32_t i = 0; i < 5; ++i, ++next) {
      const uint32_t length = 1 + (next * 37) % 128;
      pair.left.Fill(i * 128, length, next);
      ASSERT_THAT(pair.left.PostSend(Work(IBV_WR_SEND, next), {pair.left.At(i * 128, length)}),
                  Succeeds());
    }
    const std::vector<ibv_wc> sent = pair.left.Poll(5), received = pair.right.Poll(5);
    ASSERT_THAT(sent, SizeIs(5));
    ASSERT_THAT(received, SizeIs(5));
    for (uint32_t i = 0; i < 5; ++i) {
      const uint32_t number = first + i, length = 1 + (number * 37) % 128;
      ASSERT_THAT(sent[i], Sent(number, IBV_WC_SEND, pair.left.number()));
      ASSERT_THAT(received[i], Received(number, IBV_WC_RECV, length, pair.right.number()));
      ASSERT_EQ(pair.right.FirstWrong(i * 128, length, number), std::nullopt);
    }
  }
}

ABI_TEST(DataPath, BothDirectionsAtOnce, Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair;
  pair.left.Fill(0, 512, 1);
  pair.right.Fill(0, 512, 2);
  ASSERT_THAT(pair.left.PostReceive(10, {pair.left.At(4096, 512)}), Succeeds());
  ASSERT_THAT(pair.right.PostReceive(20, {pair.right.At(4096, 512)}), Succeeds());
  ASSERT_THAT(pair.left.PostSend(Work(IBV_WR_SEND, 11), {pair.left.At(0, 512)}), Succeeds());
  ASSERT_THAT(pair.right.PostSend(Work(IBV_WR_SEND, 21), {pair.right.At(0, 512)}), Succeeds());
  EXPECT_THAT(pair.left.Poll(2),
              ::testing::UnorderedElementsAre(Sent(11, IBV_WC_SEND, pair.left.number()),
                                              Received(10, IBV_WC_RECV, 512, pair.left.number())));
  EXPECT_THAT(pair.right.Poll(2),
              ::testing::UnorderedElementsAre(Sent(21, IBV_WC_SEND, pair.right.number()),
                                              Received(20, IBV_WC_RECV, 512, pair.right.number())));
  EXPECT_EQ(pair.left.FirstWrong(4096, 512, 2), std::nullopt);
  EXPECT_EQ(pair.right.FirstWrong(4096, 512, 1), std::nullopt);
}

ABI_TEST(DataPath, ASharedReceiveQueueFeedsItsQueuePair,
         Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair({.with_srq = true});
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_THAT(pair.right.PostReceive(70 + i, {pair.right.At(i * 256, 256)}), Succeeds());
  }
  for (uint32_t i = 0; i < 3; ++i) {
    pair.left.Fill(i * 256, 100 + i, i);
    ASSERT_THAT(pair.left.PostSend(Work(IBV_WR_SEND, i), {pair.left.At(i * 256, 100 + i)}),
                Succeeds());
  }
  ASSERT_THAT(pair.left.Poll(3), SizeIs(3));
  const std::vector<ibv_wc> received = pair.right.Poll(3);
  ASSERT_THAT(received, SizeIs(3));
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_THAT(received[i], Received(70 + i, IBV_WC_RECV, 100 + i, pair.right.number()));
    EXPECT_EQ(pair.right.FirstWrong(i * 256, 100 + i, i), std::nullopt);
  }
}

// ibv_post_recv(3), ibv_post_send(3): a list of requests in one call is the same as a call for
// each.
ABI_TEST(DataPath, ListsOfRequestsArePostedInOrder, Needs{.queue_pairs = true, .data_path = true}) {
  constexpr uint32_t kCount = 4;
  RcPair pair;
  pair.right.Clear();
  ibv_sge room[kCount], data[kCount];
  ibv_recv_wr receives[kCount] = {};
  ibv_send_wr sends[kCount] = {};
  for (uint32_t i = 0; i < kCount; ++i) {
    room[i] = pair.right.At(i * 1024, 512);
    receives[i] = {40 + i, i + 1 < kCount ? &receives[i + 1] : nullptr, &room[i], 1};
    pair.left.Fill(i * 1024, 100 + i, i + 1);
    data[i] = pair.left.At(i * 1024, 100 + i);
    sends[i].wr_id = 50 + i;
    sends[i].next = i + 1 < kCount ? &sends[i + 1] : nullptr;
    sends[i].sg_list = &data[i];
    sends[i].num_sge = 1;
    sends[i].opcode = IBV_WR_SEND;
    sends[i].send_flags = IBV_SEND_SIGNALED;
  }
  ibv_recv_wr* bad_receive = nullptr;
  ibv_send_wr* bad_send = nullptr;
  ASSERT_THAT(FromVerb(ibv_post_recv(pair.right.qp.get(), receives, &bad_receive)), Succeeds());
  ASSERT_THAT(FromVerb(ibv_post_send(pair.left.qp.get(), sends, &bad_send)), Succeeds());
  const std::vector<ibv_wc> sent = pair.left.Poll(kCount), received = pair.right.Poll(kCount);
  ASSERT_THAT(sent, SizeIs(kCount));
  ASSERT_THAT(received, SizeIs(kCount));
  for (uint32_t i = 0; i < kCount; ++i) {
    EXPECT_THAT(sent[i], Sent(50 + i, IBV_WC_SEND, pair.left.number()));
    EXPECT_THAT(received[i], Received(40 + i, IBV_WC_RECV, 100 + i, pair.right.number()));
    EXPECT_EQ(pair.right.FirstWrong(i * 1024, 100 + i, i + 1), std::nullopt) << i;
  }
}

// ibv_post_recv(3): ENOMEM for one more than the queue was granted. providers/mlx5/qp.c: both of
// its queues hold exactly that many, and only polling makes room.
ABI_TEST(DataPath, AFullQueueOfMlx5RefusesOneMore, Needs{.provider = "mlx5", .queue_pairs = true}) {
  RcPair pair;
  for (uint32_t i = 0; i < pair.right.cap.max_recv_wr; ++i) {
    ASSERT_THAT(pair.right.PostReceive(i, {pair.right.At(0, 64)}), Succeeds()) << i;
  }
  EXPECT_THAT(pair.right.PostReceive(99, {pair.right.At(0, 64)}), FailsWith(ENOMEM));
  for (uint32_t i = 0; i < pair.left.cap.max_send_wr; ++i) {
    ASSERT_THAT(
        pair.left.PostSend(WorkAt(IBV_WR_RDMA_WRITE, i, pair.right.Address(0), pair.right.mr->rkey),
                           {pair.left.At(0, 8)}),
        Succeeds())
        << i;
  }
  EXPECT_THAT(
      pair.left.PostSend(WorkAt(IBV_WR_RDMA_WRITE, 99, pair.right.Address(0), pair.right.mr->rkey),
                         {pair.left.At(0, 8)}),
      FailsWith(ENOMEM));
  EXPECT_THAT(pair.left.Poll(static_cast<int>(pair.left.cap.max_send_wr)),
              SizeIs(pair.left.cap.max_send_wr));
}

// providers/rxe/rxe.c:rxe_post_one_recv: a ring of a power of two, one slot of which stays free.
ABI_TEST(DataPath, AFullQueueOfRxeRefusesOneMore, Needs{.provider = "rxe"}) {
  RcPair pair;
  uint32_t posted = 0;
  while (posted <= 4 * pair.right.cap.max_recv_wr &&
         pair.right.PostReceive(posted, {pair.right.At(0, 64)}).ok()) {
    ++posted;
  }
  EXPECT_GE(posted, pair.right.cap.max_recv_wr);
  EXPECT_EQ(posted & (posted + 1), 0u) << posted << " is not one less than a power of two";
  EXPECT_LT(posted, 4 * pair.right.cap.max_recv_wr);
  EXPECT_THAT(pair.right.PostReceive(99, {pair.right.At(0, 64)}), FailsWith(ENOMEM));
}

// ibv_ack_cq_events(3): destroying the queue waits for as many as were told, however they were
// acknowledged.
ABI_TEST(DataPath, EventsThatAreAcknowledgedOneByOneAllCount,
         Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair({.with_channel = true});
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_THAT(FromVerb(ibv_req_notify_cq(pair.right.cq.get(), 0)), Succeeds());
    ASSERT_THAT(pair.right.PostReceive(i, {pair.right.At(0, 64)}), Succeeds());
    ASSERT_THAT(pair.left.PostSend(Work(IBV_WR_SEND, i), {pair.left.At(0, 16)}), Succeeds());
    ibv_cq* cq = nullptr;
    void* cookie = nullptr;
    ASSERT_THAT(FromVerb(ibv_get_cq_event(pair.right.channel.get(), &cq, &cookie)), Succeeds());
    ibv_ack_cq_events(cq, 1);
    EXPECT_THAT(pair.right.Poll(1), SizeIs(1));
    EXPECT_THAT(pair.left.Poll(1), SizeIs(1));
  }
  // RcPair's end destroys the queue, which hangs when one was lost.
}

// ibv_req_notify_cq(3), ibv_get_cq_event(3): armed once, told once.
ABI_TEST(DataPath, AnArmedQueueTellsItsChannelOnce, Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair({.with_channel = true});
  ASSERT_THAT(FromVerb(ibv_req_notify_cq(pair.right.cq.get(), 0)), Succeeds());
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_THAT(pair.right.PostReceive(i, {pair.right.At(0, 64)}), Succeeds());
    ASSERT_THAT(pair.left.PostSend(Work(IBV_WR_SEND, i), {pair.left.At(0, 16)}), Succeeds());
  }
  pollfd waits = {pair.right.channel->fd, POLLIN, 0};
  ASSERT_EQ(poll(&waits, 1, 2000), 1);
  ibv_cq* cq = nullptr;
  void* cookie = nullptr;
  ASSERT_THAT(FromVerb(ibv_get_cq_event(pair.right.channel.get(), &cq, &cookie)), Succeeds());
  EXPECT_EQ(cq, pair.right.cq.get());
  EXPECT_THAT(pair.right.Poll(2), SizeIs(2));
  EXPECT_EQ(poll(&waits, 1, 0), 0) << "told twice";
  ibv_ack_cq_events(cq, 1);
  EXPECT_THAT(pair.left.Poll(2), SizeIs(2));
}

ABI_TEST(DataPath, ArmingWhatIsAlreadyThereTellsOfTheNextOne,
         Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair({.with_channel = true});
  ASSERT_THAT(pair.right.PostReceive(1, {pair.right.At(0, 64)}), Succeeds());
  ASSERT_THAT(pair.left.PostSend(Work(IBV_WR_SEND, 1), {pair.left.At(0, 16)}), Succeeds());
  ASSERT_THAT(pair.left.Poll(1), SizeIs(1));
  ASSERT_THAT(pair.right.Poll(1), SizeIs(1));
  ASSERT_THAT(FromVerb(ibv_req_notify_cq(pair.right.cq.get(), 0)), Succeeds());
  pollfd waits = {pair.right.channel->fd, POLLIN, 0};
  EXPECT_EQ(poll(&waits, 1, 0), 0);
  ASSERT_THAT(pair.right.PostReceive(2, {pair.right.At(0, 64)}), Succeeds());
  ASSERT_THAT(pair.left.PostSend(Work(IBV_WR_SEND, 2), {pair.left.At(0, 16)}), Succeeds());
  EXPECT_EQ(poll(&waits, 1, 2000), 1);
  ibv_cq* cq = nullptr;
  void* cookie = nullptr;
  ASSERT_THAT(FromVerb(ibv_get_cq_event(pair.right.channel.get(), &cq, &cookie)), Succeeds());
  ibv_ack_cq_events(cq, 1);
  EXPECT_THAT(pair.left.Poll(1), SizeIs(1));
}

// InfiniBand: no receive is posted, the requester tries again and then gives up (rnr_retry 0: at
// once).
ABI_TEST(DataPath, WithoutAReceiveTheSenderGivesUp, Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair({.rnr_retry = 0});
  ASSERT_THAT(pair.left.PostSend(Work(IBV_WR_SEND, 3), {pair.left.At(0, 16)}), Succeeds());
  EXPECT_THAT(pair.left.Poll(1),
              ElementsAre(FailedWith(3, IBV_WC_RNR_RETRY_EXC_ERR, pair.left.number())));
  EXPECT_EQ(pair.left.State(), IBV_QPS_ERR);
  EXPECT_EQ(pair.right.State(), IBV_QPS_RTS);
  EXPECT_THAT(pair.right.Drain(), IsEmpty());
}

// With retries left (7: for ever) the message waits for the receive.
ABI_TEST(DataPath, ALateReceiveStillGetsTheMessage, Needs{.queue_pairs = true, .data_path = true}) {
  RcPair pair;
  pair.left.Fill(0, 200, 50);
  ASSERT_THAT(pair.left.PostSend(Work(IBV_WR_SEND, 4), {pair.left.At(0, 200)}), Succeeds());
  EXPECT_THAT(pair.left.Drain(), IsEmpty());
  ASSERT_THAT(pair.right.PostReceive(5, {pair.right.At(0, 256)}), Succeeds());
  EXPECT_THAT(pair.left.Poll(1), ElementsAre(Sent(4, IBV_WC_SEND, pair.left.number())));
  EXPECT_THAT(pair.right.Poll(1), ElementsAre(Received(5, IBV_WC_RECV, 200, pair.right.number())));
  EXPECT_EQ(pair.right.FirstWrong(0, 200, 50), std::nullopt);
}

// A remote key that is none, bytes behind the region, a region that may not be read: the responder
// refuses. rxe answers a refused request since 5.14 (rxe_resp.c:do_complete; 5.10 answered only
// what had taken a receive): before, the requester tries in vain and gives up.
ABI_TEST(DataPath, AWrongRemoteKeyIsARemoteAccessErrorOfMlx5,
         Needs{.provider = "mlx5", .queue_pairs = true}) {
  UseAWrongKey(IBV_WC_REM_ACCESS_ERR);
}
ABI_TEST(DataPath, AWrongRemoteKeyIsARemoteAccessErrorOfRxe,
         Needs{.provider = "rxe", .kernels = kRxeAnswers}) {
  UseAWrongKey(IBV_WC_REM_ACCESS_ERR);
}
ABI_TEST(DataPath, AWrongRemoteKeyIsNotAnsweredByOldRxe,
         Needs{.provider = "rxe", .kernels = kRxeIsSilent}) {
  UseAWrongKey(IBV_WC_RETRY_EXC_ERR);
}

ABI_TEST(DataPath, WritingBehindTheRegionIsARemoteAccessErrorOfMlx5,
         Needs{.provider = "mlx5", .queue_pairs = true}) {
  WriteBehindTheRegion(IBV_WC_REM_ACCESS_ERR);
}
ABI_TEST(DataPath, WritingBehindTheRegionIsARemoteAccessErrorOfRxe,
         Needs{.provider = "rxe", .kernels = kRxeAnswers}) {
  WriteBehindTheRegion(IBV_WC_REM_ACCESS_ERR);
}
ABI_TEST(DataPath, WritingBehindTheRegionIsNotAnsweredByOldRxe,
         Needs{.provider = "rxe", .kernels = kRxeIsSilent}) {
  WriteBehindTheRegion(IBV_WC_RETRY_EXC_ERR);
}

ABI_TEST(DataPath, ReadingWithoutPermissionIsARemoteAccessErrorOfMlx5,
         Needs{.provider = "mlx5", .queue_pairs = true}) {
  ReadWithoutPermission(IBV_WC_REM_ACCESS_ERR);
}
ABI_TEST(DataPath, ReadingWithoutPermissionIsARemoteAccessErrorOfRxe,
         Needs{.provider = "rxe", .kernels = kRxeAnswers}) {
  ReadWithoutPermission(IBV_WC_REM_ACCESS_ERR);
}
ABI_TEST(DataPath, ReadingWithoutPermissionIsNotAnsweredByOldRxe,
         Needs{.provider = "rxe", .kernels = kRxeIsSilent}) {
  ReadWithoutPermission(IBV_WC_RETRY_EXC_ERR);
}

// providers/rxe/rxe.c:validate_send_wr.
ABI_TEST(DataPath, AnUnalignedAtomicIsRefusedByRxeItself, Needs{.provider = "rxe"}) {
  RcPair pair;
  ibv_send_wr wr = Work(IBV_WR_ATOMIC_FETCH_AND_ADD, 9);
  wr.wr.atomic.remote_addr = pair.right.Address(4);
  wr.wr.atomic.rkey = pair.right.mr->rkey;
  EXPECT_THAT(pair.left.PostSend(wr, {pair.left.At(0, 8)}), FailsWith(EINVAL));
  EXPECT_THAT(pair.left.Drain(), IsEmpty());
  EXPECT_EQ(pair.left.State(), IBV_QPS_RTS);
}

// IBTA: the responder refuses an atomic on an address that is no multiple of 8 as an invalid
// request.
ABI_TEST(DataPath, AnUnalignedAtomicIsAnInvalidRequestOfMlx5,
         Needs{.provider = "mlx5", .queue_pairs = true, .atomics = true}) {
  RcPair pair;
  ibv_send_wr wr = Work(IBV_WR_ATOMIC_FETCH_AND_ADD, 9);
  wr.wr.atomic.remote_addr = pair.right.Address(4);
  wr.wr.atomic.rkey = pair.right.mr->rkey;
  wr.wr.atomic.compare_add = 1;
  ASSERT_THAT(pair.left.PostSend(wr, {pair.left.At(0, 8)}), Succeeds());
  EXPECT_THAT(pair.left.Poll(1),
              ElementsAre(FailedWith(9, IBV_WC_REM_INV_REQ_ERR, pair.left.number())));
  EXPECT_TRUE(pair.right.OnlyTouched(0, 0));
}

// What is posted after an error, and what was behind it, is flushed. rxe flushes what comes later
// since 6.1 (rxe_req.c:rxe_requester; 5.17 left it in the queue).
ABI_TEST(DataPath, AfterAnErrorTheRestIsFlushedByMlx5,
         Needs{.provider = "mlx5", .queue_pairs = true}) {
  FailAndPostOn();
}
ABI_TEST(DataPath, AfterAnErrorTheRestIsFlushedByRxe,
         Needs{.provider = "rxe", .kernels = {"linux-6.*", "debian-[67].*"}}) {
  FailAndPostOn();
}

// mlx5: the NIC's own table (a protection error of its own side, CQE syndrome LOCAL_PROT_ERR).
ABI_TEST(DataPath, AWrongLocalKeyIsALocalProtectionErrorOfMlx5,
         Needs{.provider = "mlx5", .queue_pairs = true}) {
  UseAWrongLocalKey(IBV_WC_LOC_PROT_ERR);
}
// rxe: rxe_req.c:finish_packet and rxe_requester: LOC_PROT_ERR up to 5.14, LOC_QP_OP_ERR in 6.1;
// from 6.6 on the queue pair is in error before rxe_comp.c:rxe_completer sees the request, which is
// flushed like any other.
ABI_TEST(DataPath, AWrongLocalKeyIsALocalProtectionErrorOfOldRxe,
         Needs{.provider = "rxe", .kernels = {"linux-4.*", "linux-5.*", "debian-5.10*"}}) {
  UseAWrongLocalKey(IBV_WC_LOC_PROT_ERR);
}
ABI_TEST(DataPath, AWrongLocalKeyIsALocalOperationErrorOfRxe61,
         Needs{.provider = "rxe", .kernels = {"linux-6.1", "debian-6.1.*"}}) {
  UseAWrongLocalKey(IBV_WC_LOC_QP_OP_ERR);
}
ABI_TEST(DataPath, AWrongLocalKeyIsFlushedByNewRxe,
         Needs{.provider = "rxe",
               .kernels = {"linux-6.[6-9]", "linux-6.1[0-9]", "debian-6.12*", "debian-7.*"}}) {
  UseAWrongLocalKey(IBV_WC_WR_FLUSH_ERR);
}

// A message that is longer than its receive: the receiver's length error, the sender's invalid
// request.
ABI_TEST(DataPath, AMessageLongerThanItsReceiveFailsBothOfMlx5,
         Needs{.provider = "mlx5", .queue_pairs = true}) {
  RcPair pair;
  ASSERT_THAT(pair.right.PostReceive(11, {pair.right.At(0, 16)}), Succeeds());
  ASSERT_THAT(pair.left.PostSend(Work(IBV_WR_SEND, 12), {pair.left.At(0, 64)}), Succeeds());
  EXPECT_THAT(pair.left.Poll(1),
              ElementsAre(FailedWith(12, IBV_WC_REM_INV_REQ_ERR, pair.left.number())));
  EXPECT_THAT(pair.right.Poll(1),
              ElementsAre(FailedWith(11, IBV_WC_LOC_LEN_ERR, pair.right.number())));
  EXPECT_TRUE(pair.right.OnlyTouched(0, 16));
}

}  // namespace vabi::conformance
