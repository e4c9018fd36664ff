// SPDX-License-Identifier: BSD-2-Clause
// Receive elements as rdma-core's qp.c (mlx5_post_recv) and srq.c (mlx5_post_srq_recv) write them.
#include "shims/providers/mlx5/receive_queue.h"

#include <gtest/gtest.h>

#include "shims/fabric/memory.h"
#include "shims/providers/mlx5/test_mlx5.h"

namespace vabi::mlx5 {
namespace {

class ReceiveQueueTest : public testing::Test {
 protected:
  ReceiveQueueTest() { fabric::GuardInstall(); }
  ReceiveRing::Geometry Ring(bool signature = false) {
    return {Address(memory_.base()), 4, 6, signature, Address(record_.base())};
  }
  void Pointer(size_t at, uint32_t length, uint32_t key, uint64_t address) {
    Put32(memory_.At(at), length);
    Put32(memory_.At(at + 4), key);
    Put64(memory_.At(at + 8), address);
  }
  void Posted(uint32_t count) { Put32(record_.base(), count); }

  Pages memory_{4096}, record_{4096};
  fabric::RecvRequest request_;
};

TEST_F(ReceiveQueueTest, TakesWhatIsCounted) {
  ReceiveRing ring(Ring());
  EXPECT_FALSE(ring.Pop(&request_));
  Pointer(0, 10, 0x700, 0x1000);
  Pointer(16, 20, 0x701, 0x2000);
  Pointer(32, 0, 0x100, 0);  // ends the list
  Pointer(48, 30, 0x702, 0x3000);
  Posted(1);
  ASSERT_TRUE(ring.Pop(&request_));
  ASSERT_EQ(2u, request_.sge_count);
  EXPECT_EQ(20u, request_.sges[1].length);
  EXPECT_EQ(0x701u, request_.sges[1].lkey);
  EXPECT_EQ(0x2000u, request_.sges[1].address);
  EXPECT_EQ(0u, request_.index);
  EXPECT_FALSE(ring.Pop(&request_));
}

TEST_F(ReceiveQueueTest, ListsEndWithTheElement) {
  ReceiveRing ring(Ring());
  for (size_t i = 0; i < 4; ++i) Pointer(16 * i, 1, 0x700, 0x1000);
  Posted(1);
  ASSERT_TRUE(ring.Pop(&request_));
  EXPECT_EQ(4u, request_.sge_count);
}

TEST_F(ReceiveQueueTest, CountersGoOnBehindTheRing) {
  ReceiveRing ring(Ring());
  for (uint32_t i = 1; i <= 70000; ++i) {
    Pointer(64 * ((i - 1) & 3), i, 0x700, 0x1000);
    Pointer(64 * ((i - 1) & 3) + 16, 0, 0x100, 0);
    Posted(i & 0xffff);
    ASSERT_TRUE(ring.Pop(&request_)) << i;
    ASSERT_EQ(i, request_.sges[0].length);
    ASSERT_EQ((i - 1) & 0xffff, request_.index);
    ASSERT_FALSE(ring.Pop(&request_)) << i;
  }
}

TEST_F(ReceiveQueueTest, SignaturesComeFirst) {
  ReceiveRing ring(Ring(true));
  Pointer(0, 0x5a, 0, 0);
  Pointer(16, 9, 0x701, 0x2000);
  Pointer(32, 0, 0x100, 0);
  Posted(1);
  ASSERT_TRUE(ring.Pop(&request_));
  ASSERT_EQ(1u, request_.sge_count);
  EXPECT_EQ(9u, request_.sges[0].length);
}

TEST_F(ReceiveQueueTest, InlineReceivesAreMalformed) {
  ReceiveRing ring(Ring());
  Pointer(0, 0x80000004, 0, 0);
  Posted(1);
  ASSERT_TRUE(ring.Pop(&request_));
  EXPECT_EQ(fabric::Endpoint::kMalformed, request_.sge_count);
}

class SharedQueueTest : public ReceiveQueueTest {
 protected:
  SharedQueue::Geometry Shared() {
    return {Address(memory_.base()), 4, 5, false, Address(record_.base())};
  }
  void Element(uint32_t slot, uint32_t next, uint32_t length) {
    Put16(memory_.At(slot * 32 + 2), next);
    Pointer(slot * 32 + 16, length, 0x700, 0x1000);
  }
  vabi::Srq srq_;
};

TEST_F(SharedQueueTest, FollowsTheChain) {
  SharedQueue queue(5, 5, Shared(), &srq_);
  Element(0, 3, 10);
  Element(3, 1, 13);
  Element(1, 2, 11);
  Posted(3);
  const uint32_t slots[] = {0, 3, 1}, lengths[] = {10, 13, 11};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(queue.Pop(&request_));
    EXPECT_EQ(slots[i], request_.index) << "completions name the slot";
    EXPECT_EQ(lengths[i], request_.sges[0].length);
  }
  EXPECT_FALSE(queue.Pop(&request_)) << "not what the chain goes on with, but what is counted";
}

TEST_F(SharedQueueTest, LimitsFireOnce) {
  SharedQueue queue(5, 5, Shared(), &srq_);
  for (uint32_t i = 0; i < 4; ++i) Element(i, (i + 1) & 3, 1);
  Posted(3);
  queue.Arm(2);
  ASSERT_TRUE(queue.Pop(&request_));
  EXPECT_EQ(2u, queue.limit()) << "two are left: not fewer than two";
  ASSERT_TRUE(queue.Pop(&request_));
  EXPECT_EQ(0u, queue.limit());
}

}  // namespace
}  // namespace vabi::mlx5
