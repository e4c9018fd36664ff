// SPDX-License-Identifier: BSD-2-Clause
// Work queue elements by rdma-core's mlx5dv.h (mlx5_wqe_ctrl_seg and friends), not by the driver's
// constants.
#include "shims/providers/mlx5/work_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "shims/fabric/memory.h"

namespace vabi::mlx5 {
namespace {

using fabric::Opcode;
using fabric::Service;

class WorkQueueTest : public testing::Test {
 protected:
  WorkQueueTest() {
    fabric::GuardInstall();
    ring_.buffer = reinterpret_cast<uintptr_t>(bytes_);
    ring_.blocks = 4;
  }
  void Word(size_t at, uint32_t value) {
    for (int i = 0; i < 4; ++i)
      bytes_[(at + static_cast<size_t>(i)) % sizeof(bytes_)] =
          static_cast<uint8_t>(value >> (24 - 8 * i));
  }
  void Quad(size_t at, uint64_t value) {
    Word(at, static_cast<uint32_t>(value >> 32));
    Word(at + 4, static_cast<uint32_t>(value));
  }
  void Control(size_t at, uint8_t opcode, uint32_t segments, uint8_t flags = 8,
               uint32_t immediate = 0) {
    Word(at, opcode);
    Word(at + 4, 0x123400 | segments);
    Word(at + 8, flags);
    Word(at + 12, immediate);
  }
  Translation Run(uint16_t index = 0, Service service = Service::kRc) {
    EXPECT_TRUE(ReadWqe(ring_, index, &wqe_));
    return Translate(wqe_, service, 0x99, &request_, &bind_, &srqn_);
  }

  alignas(64) uint8_t bytes_[256] = {};
  SendRing ring_;
  Wqe wqe_;
  fabric::SendRequest request_;
  fabric::Bind bind_;
  uint32_t srqn_ = 0;
};

TEST_F(WorkQueueTest, SendWithTwoPointers) {
  Control(0, 0x0a, 3, 8 | 2);
  Word(16, 100), Word(20, 0xaa), Quad(24, 0x1000);
  Word(32, 0), Word(36, 0xbb), Quad(40, 0x2000);
  ASSERT_EQ(Translation::kRequest, Run());
  EXPECT_EQ(Opcode::kSend, request_.opcode);
  EXPECT_TRUE(request_.signaled);
  EXPECT_TRUE(request_.solicited);
  ASSERT_EQ(2u, request_.sge_count);
  EXPECT_EQ(100u, request_.sges[0].length);
  EXPECT_EQ(0xaau, request_.sges[0].lkey);
  EXPECT_EQ(0x1000u, request_.sges[0].address);
  EXPECT_EQ(0x80000000u, request_.sges[1].length) << "0 stands for two gigabytes";
  EXPECT_EQ(1u, wqe_.blocks());
}

TEST_F(WorkQueueTest, WriteWithImmediateNamesTheRemoteSide) {
  Control(0, 0x09, 3, 0, 0xcafe0001);
  Quad(16, 0x7000), Word(24, 0x55);
  Word(32, 8), Word(36, 1), Quad(40, 0x10);
  ASSERT_EQ(Translation::kRequest, Run());
  EXPECT_EQ(Opcode::kWriteImm, request_.opcode);
  EXPECT_FALSE(request_.signaled);
  EXPECT_EQ(0x7000u, request_.remote_address);
  EXPECT_EQ(0x55u, request_.rkey);
  EXPECT_EQ(__builtin_bswap32(0xcafe0001), request_.immediate) << "stays in network order";
}

TEST_F(WorkQueueTest, ElementsAndInlineDataWrapAroundTheRing) {
  // Block 3 of 4, 40 bytes inline: header at 48 … 51, 12 bytes until the end, the rest at the
  // beginning.
  const size_t start = 3 * 64;
  Control(start, 0x0a, 4 + 1);
  Word(start + 16, 0x80000000 | 60);
  for (size_t i = 0; i < 60; ++i) bytes_[(start + 20 + i) % 256] = static_cast<uint8_t>(i + 1);
  ASSERT_EQ(Translation::kRequest, Run(0xfffb))
      << "counters are 16 bits; the ring takes their low end";
  EXPECT_EQ(2u, wqe_.blocks());
  ASSERT_EQ(60u, request_.inline_length);
  for (uint32_t i = 0; i < 60; ++i) EXPECT_EQ(i + 1, request_.inline_data[i]);
}

TEST_F(WorkQueueTest, InlineDataMayStandInFrontOfPointers) {
  Control(0, 0x0a, 1 + 2 + 1);
  Word(16, 0x80000000 | 20);  // 4 + 20 bytes: two segments
  for (size_t i = 0; i < 20; ++i) bytes_[20 + i] = static_cast<uint8_t>(i + 1);
  Word(48, 7), Word(52, 0x42), Quad(56, 0x3000);
  ASSERT_EQ(Translation::kRequest, Run(0));
  ASSERT_EQ(20u, request_.inline_length);
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(i + 1, request_.inline_data[i]);
  ASSERT_EQ(1u, request_.sge_count);
  EXPECT_EQ(0x3000u, request_.sges[0].address);
  EXPECT_EQ(7u, request_.sges[0].length);
  EXPECT_EQ(0x42u, request_.sges[0].lkey);
}

TEST_F(WorkQueueTest, DatagramsCarryTheirAddress) {
  Control(0, 0x0a, 1 + 3 + 1);
  Word(16, 0x111);               // qkey
  Word(24, 0x80000000 | 0x654);  // extended, qpn
  bytes_[28] = 0x25;             // static rate 2, sl 5
  bytes_[29] = 0x83;             // fl, path bits
  bytes_[30] = 0x12, bytes_[31] = 0x34;
  for (int i = 0; i < 6; ++i) bytes_[36 + i] = static_cast<uint8_t>(i);
  bytes_[42] = 7, bytes_[43] = 64;
  Word(44, 1u << 30 | 3u << 20 | 0xabcde);
  for (int i = 0; i < 16; ++i) bytes_[48 + i] = static_cast<uint8_t>(0xf0 + i);
  Word(64, 4), Word(68, 2), Quad(72, 0x30);
  ASSERT_EQ(Translation::kRequest, Run(0, Service::kUd));
  EXPECT_EQ(0x654u, request_.remote_qpn);
  EXPECT_EQ(0x111u, request_.remote_qkey);
  EXPECT_EQ(5, request_.address.sl);
  EXPECT_EQ(2, request_.address.static_rate);
  EXPECT_EQ(3, request_.address.src_path_bits);
  EXPECT_EQ(0x1234, request_.address.dlid);
  EXPECT_EQ(5, request_.address.dmac[5]);
  EXPECT_EQ(7, request_.address.traffic_class);
  EXPECT_EQ(64, request_.address.hop_limit);
  EXPECT_EQ(1, request_.address.is_global);
  EXPECT_EQ(3, request_.address.sgid_index);
  EXPECT_EQ(0xabcdeu, request_.address.flow_label);
  EXPECT_EQ(0xff, request_.address.dgid[15]);
  ASSERT_EQ(1u, request_.sge_count);
}

TEST_F(WorkQueueTest, ShortDatagramAddressesHaveSixteenBytes) {
  Control(0, 0x0a, 1 + 1 + 1);
  Word(16, 0x80000001);  // a privileged key: the queue pair's own is meant
  Word(24, 0x654);
  bytes_[31] = 9;
  Word(32, 4), Word(36, 2), Quad(40, 0x30);
  ASSERT_EQ(Translation::kRequest, Run(0, Service::kUd));
  EXPECT_EQ(0x99u, request_.remote_qkey);
  EXPECT_EQ(9, request_.address.dlid);
  EXPECT_EQ(0, request_.address.is_global);
  EXPECT_EQ(1u, request_.sge_count);
}

TEST_F(WorkQueueTest, AtomicsBringTheirOperands) {
  Control(0, 0x11, 4);
  Quad(16, 0x7000), Word(24, 0x55);
  Quad(32, 0x1111), Quad(40, 0x2222);  // swap, compare
  Word(48, 8), Word(52, 1), Quad(56, 0x10);
  ASSERT_EQ(Translation::kRequest, Run());
  EXPECT_EQ(Opcode::kCompareSwap, request_.opcode);
  EXPECT_EQ(0x1111u, request_.swap);
  EXPECT_EQ(0x2222u, request_.compare_add);
  Control(0, 0x12, 4);
  ASSERT_EQ(Translation::kRequest, Run());
  EXPECT_EQ(Opcode::kFetchAdd, request_.opcode);
  EXPECT_EQ(0x1111u, request_.compare_add);
}

TEST_F(WorkQueueTest, XrcNamesTheSharedQueue) {
  Control(0, 0x08, 4);
  Word(16, 0x00abcdef);
  Quad(32, 0x7000), Word(40, 0x55);
  Word(48, 8), Word(52, 1), Quad(56, 0x10);
  ASSERT_EQ(Translation::kRequest, Run(0, Service::kXrcInitiator));
  EXPECT_EQ(0xabcdefu, srqn_);
  EXPECT_EQ(0x7000u, request_.remote_address);
}

TEST_F(WorkQueueTest, InvalidationsNameTheKey) {
  Control(0, 0x01, 1, 0, 0x4711);
  ASSERT_EQ(Translation::kRequest, Run());
  EXPECT_EQ(Opcode::kSendInvalidate, request_.opcode);
  EXPECT_EQ(0x4711u, request_.invalidate_rkey);
}

// rdma-core qp.c: set_umr_control_seg, set_umr_mkey_seg, set_umr_data_seg
TEST_F(WorkQueueTest, BindsWindows) {
  ring_.blocks = 4;
  Control(0, 0x25, 1 + 3 + 4 + 4, 8, 0x1200);
  bytes_[16] = 1 << 7;  // inline
  bytes_[64 + 2] = 1 << 5 | 1 << 4;
  Word(64 + 4, 0xffffff00 | 0x13);
  Quad(64 + 16, 0x5000), Quad(64 + 24, 0x80);
  Word(128, 0x80), Word(132, 0x77), Quad(136, 0x5000);
  ASSERT_EQ(Translation::kBind, Run());
  EXPECT_EQ(0x1200u, bind_.window);
  EXPECT_EQ(0x13u, bind_.key);
  EXPECT_EQ(0x77u, bind_.region);
  EXPECT_EQ(0x5000u, bind_.address);
  EXPECT_EQ(0x80u, bind_.length);
  EXPECT_EQ(fabric::kAccessRemoteWrite | fabric::kAccessRemoteRead, bind_.access);
}

TEST_F(WorkQueueTest, LocalInvalidationFreesTheKey) {
  Control(0, 0x25, 1 + 3 + 4, 8, 0x1213);
  bytes_[64] = 1 << 6;  // free
  ASSERT_EQ(Translation::kInvalidate, Run());
  EXPECT_EQ(0x1213u, bind_.window);
}

TEST_F(WorkQueueTest, RefusesWhatIsCutShort) {
  Control(0, 0x08, 1);  // no remote address
  EXPECT_EQ(Translation::kMalformed, Run());
  Control(0, 0x11, 2);  // no operands
  EXPECT_EQ(Translation::kMalformed, Run());
  Control(0, 0x0a, 2);
  Word(16, 0x80000000 | 13);  // one byte more than there is
  EXPECT_EQ(Translation::kMalformed, Run());
  Word(16, 0x80000000 | 12);
  EXPECT_EQ(Translation::kRequest, Run());
  Control(0, 0x0a, 2);
  Word(24, 0x80000000);
  EXPECT_EQ(Translation::kMalformed, Run(0, Service::kUd)) << "an extended address is longer";
}

TEST_F(WorkQueueTest, RefusesSizesThatCannotBe) {
  Control(0, 0x0a, 0);
  EXPECT_FALSE(ReadWqe(ring_, 0, &wqe_));
  Control(0, 0x0a, 17);
  EXPECT_FALSE(ReadWqe(ring_, 0, &wqe_)) << "five blocks in a ring of four";
  Control(0, 0x0a, 16);
  EXPECT_TRUE(ReadWqe(ring_, 0, &wqe_));
}

TEST_F(WorkQueueTest, TellsWhatIsNotModelled) {
  Control(0, 0x0e, 1);  // TSO
  EXPECT_EQ(Translation::kUnmodelled, Run());
}

}  // namespace
}  // namespace vabi::mlx5
