// SPDX-License-Identifier: BSD-2-Clause
// Keys that stand for pieces of other regions, and receives that the message chooses.
#include "shims/fabric/message.h"
#include "shims/fabric/test_endpoint.h"
#include "shims/fabric/window.h"

namespace vabi::fabric {
namespace {

constexpr uint32_t kIndirect = 0x7700;

class Indirect : public FabricTest {
 protected:
  static MemoryKey* Make(Side& side, std::vector<KeyPart> parts, uint32_t repeat = 1) {
    MemoryKey key = {};
    key.kind = MemoryKey::Kind::kIndirect;
    for (const KeyPart& part : parts) key.length += part.length * repeat;
    key.access = kAll;
    key.pd = side.qp.pd;
    key.parts = std::move(parts);
    key.repeat = repeat;
    return AddKey(side.qp.device, kIndirect, key);
  }
  static KeyPart Part(const Side& side, uint32_t offset, uint64_t length, uint64_t stride = 0) {
    return {side.address() + offset, length, stride, side.key};
  }
};

TEST_F(Indirect, AListIsOneAfterTheOther) {
  Make(a, {Part(a, 100, 8), Part(a, 700, 20), Part(a, 300, 5)});
  Make(b, {Part(b, 1000, 30), Part(b, 10, 3)});
  b.qp.Receive(1, {{0, 33, kIndirect}});
  EXPECT_EQ(Run(Request(Opcode::kSend, {{0, 33, kIndirect}})).status, Status::kSuccess);
  std::vector<uint8_t> want;
  for (uint32_t i = 0; i < 8; ++i) want.push_back(PatternAt(100, 100 + i));
  for (uint32_t i = 0; i < 20; ++i) want.push_back(PatternAt(100, 700 + i));
  for (uint32_t i = 0; i < 5; ++i) want.push_back(PatternAt(100, 300 + i));
  EXPECT_EQ(memcmp(b.memory + 1000, want.data(), 30), 0);
  EXPECT_EQ(memcmp(b.memory + 10, want.data() + 30, 3), 0);
  EXPECT_TRUE(Untouched(b, 13, 900));
  EXPECT_TRUE(Untouched(b, 1030, 900));
}

TEST_F(Indirect, AnInterleavedOneTakesOfEachPartInTurn) {
  Make(a, {Part(a, 100, 4, 10), Part(a, 500, 2, 7)}, 3);
  EXPECT_EQ(Run(Remote(Opcode::kWrite, {{1, 16, kIndirect}}, 0)).status, Status::kSuccess);
  const uint32_t from[] = {101, 102, 103, 500, 501, 110, 111, 112,
                           113, 507, 508, 120, 121, 122, 123, 514};
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(b.memory[i], PatternAt(100, from[i])) << i;
  EXPECT_TRUE(Untouched(b, 16, 100));
}

TEST_F(Indirect, RemoteAccessGoesThroughItToo) {
  Make(b, {Part(b, 100, 8), Part(b, 700, 20)});
  SendRequest request = Remote(Opcode::kWrite, {a.At(0, 28)}, 0);
  request.remote_address = 0;
  request.rkey = kIndirect;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  EXPECT_EQ(memcmp(b.memory + 100, a.memory, 8), 0);
  EXPECT_EQ(memcmp(b.memory + 700, a.memory + 8, 20), 0);
  request.remote_address = 1;
  EXPECT_EQ(Run(request).status, Status::kRemoteAccess) << "one byte behind its end";
}

TEST_F(Indirect, WhatItMayNotDo) {
  const auto refused = [&](Status status = Status::kLocalProtection) {
    a.qp.state = b.qp.state = EndpointState::kRts;
    return Run(Remote(Opcode::kWrite, {{0, 8, kIndirect}}, 0)).status == status;
  };
  Make(a, {Part(a, 100, 8)})->invalidated = true;
  EXPECT_TRUE(refused());
  Make(a, {Part(a, 100, 8)})->pd = a.qp.pd + 1;
  EXPECT_TRUE(refused());
  Make(a, {Part(a, 100, 7)});
  EXPECT_TRUE(refused()) << "too short";
  Make(a, {Part(a, kSize - 7, 8)});
  EXPECT_TRUE(refused()) << "behind the region's end";
  Make(a, {{a.address(), 8, 0, 0x9999}});
  EXPECT_TRUE(refused()) << "no such region";
  FindKey(a.qp.device, a.key)->pd = 3;
  Make(a, {Part(a, 100, 8)});
  EXPECT_TRUE(refused()) << "a region of another domain";
  FindKey(a.qp.device, a.key)->pd = a.qp.pd;
  EXPECT_TRUE(refused(Status::kSuccess));
  // Read only.
  Make(b, {Part(b, 0, 8)})->access = kAccessRemoteWrite;
  FindKey(b.qp.device, b.key)->access = kAccessRemoteWrite;
  SendRequest request = Remote(Opcode::kWrite, {a.At(0, 8)}, 0);
  request.remote_address = 0;
  request.rkey = kIndirect;
  EXPECT_EQ(Run(request).status, Status::kRemoteAccess);
}

TEST_F(Indirect, OnlyWhatIsMadeForItIsInvalidatedFromAfar) {
  MemoryKey* key = Make(b, {Part(b, 0, 8)});
  EXPECT_FALSE(Invalidate(b.qp, kIndirect));
  EXPECT_FALSE(key->invalidated);
  key->remote_invalidate = true;
  key->pd = b.qp.pd + 1;
  EXPECT_FALSE(Invalidate(b.qp, kIndirect));
  key->pd = b.qp.pd;
  EXPECT_TRUE(Invalidate(b.qp, kIndirect));
  EXPECT_TRUE(key->invalidated);
}

TEST_F(Indirect, NoWindowIsBoundWithIt) {
  Make(b, {Part(b, 0, 8)});
  EXPECT_FALSE(BindWindow(b.qp, {kIndirect, 1, b.key, b.address(), 8, 0}));
}

// Receives that the message's first bytes choose.
struct Choosing : TestEndpoint {
  bool Match(const Message& message, RecvRequest* out, uint32_t* skip) override {
    uint8_t first = 0;
    Spans into;
    into.Add(reinterpret_cast<uintptr_t>(&first), 1);
    CopySpans(into, *message.payload, 1);
    if (first != wanted || message.length < 16) return false;
    *out = chosen;
    *skip = 16;
    return true;
  }
  uint8_t wanted = 0;
  RecvRequest chosen;
};

TEST_F(Indirect, TheMessageChoosesItsReceive) {
  Choosing target;
  RemoveEndpoint(&b.qp);
  static_cast<Endpoint&>(target) = static_cast<const Endpoint&>(b.qp);
  target.wording = &target.test_wording;
  AddEndpoint(&target);
  target.wanted = a.memory[100];
  target.chosen.wr_id = 77;
  target.chosen.sge_count = 1;
  target.chosen.sges[0] = b.At(2000, 50);
  target.Receive(1, {b.At(0, 100)});
  EXPECT_EQ(Run(Request(Opcode::kSend, {a.At(100, 3), a.At(103, 40)})).status, Status::kSuccess);
  ASSERT_EQ(target.completed.size(), 1u);
  EXPECT_EQ(target.completed[0].wr_id, 77u);
  EXPECT_EQ(target.completed[0].completion.byte_length, 27u);
  EXPECT_EQ(memcmp(b.memory + 2000, a.memory + 116, 27), 0);
  EXPECT_TRUE(Untouched(b, 2027, 100));
  EXPECT_EQ(target.receives.size(), 1u);
  target.wanted ^= 1;
  EXPECT_EQ(Run(Request(Opcode::kSend, {a.At(100, 43)})).status, Status::kSuccess);
  ASSERT_EQ(target.completed.size(), 2u);
  EXPECT_EQ(target.completed[1].wr_id, 1u);
  EXPECT_EQ(target.completed[1].completion.byte_length, 43u);
  EXPECT_EQ(memcmp(b.memory, a.memory + 100, 43), 0);
  RemoveEndpoint(&target);
}

}  // namespace
}  // namespace vabi::fabric
