// SPDX-License-Identifier: BSD-2-Clause
// Data between two processes: what each service and operation does, and what the other side sees.
#include "shims/fabric/pull.h"
#include "shims/fabric/test_remote.h"

namespace vabi::fabric {
namespace {

class Remote : public RemoteTest {
 protected:
  // Bytes [0, length) over there are those of [offset, offset + length) here.
  bool Arrived(uint32_t offset, uint32_t length) const {
    for (uint32_t i = 0; i < length; ++i) {
      if (seen->bytes[i] != PatternAt(1, offset + i)) return false;
    }
    return seen->bytes[length] == PatternAt(2, length);
  }
  void Restore() {
    for (uint32_t i = 0; i < kSize; ++i) seen->bytes[i] = PatternAt(2, i);
  }
  bool Receives(uint32_t count) {
    return Until([&] { return seen->receives >= count; });
  }
};

TEST_F(Remote, SendsOfAllSizesArriveWhole) {
  Start(Service::kRc);
  uint32_t count = 0;
  for (const uint32_t length : {0u, 1u, 64u, 1023u, 2048u, 2049u, 8192u, 65535u, 65536u}) {
    Restore();
    Ask(kPost);
    const Completion completion = Run(Request(Opcode::kSend, 17, length));
    EXPECT_EQ(completion.status, Status::kSuccess) << length;
    EXPECT_EQ(completion.byte_length, length);
    ASSERT_TRUE(Receives(++count));
    EXPECT_EQ(seen->received[count - 1].wr_id, 99 + count);
    EXPECT_EQ(seen->received[count - 1].byte_length, length);
    EXPECT_TRUE(Arrived(17, length)) << length;
  }
}

TEST_F(Remote, WithoutReadingEachOthersMemoryTooItArrivesWhole) {
  Start(Service::kRc);
  ForbidPulling(true);
  Ask(kForbidPulling);
  for (const uint32_t length : {2048u, 2049u, 100000u, 1000000u}) {
    Restore();
    EXPECT_EQ(Run(Request(Opcode::kWrite, 5, length)).status, Status::kSuccess);
    EXPECT_TRUE(Arrived(5, length)) << length;
    std::fill(bytes.begin(), bytes.end(), 0);
    EXPECT_EQ(Run(Request(Opcode::kRead, 3, length)).status, Status::kSuccess);
    EXPECT_TRUE(std::equal(bytes.begin() + 3, bytes.begin() + 3 + length, seen->bytes)) << length;
    EXPECT_EQ(bytes[2], 0);
    EXPECT_EQ(bytes[length + 3], 0);
    for (uint32_t i = 0; i < kSize; ++i) bytes[i] = PatternAt(1, i);
  }
}

TEST_F(Remote, WritesAndReadsGoWhereTheyShould) {
  Start(Service::kRc);
  for (const uint32_t length : {1u, 2048u, 2049u, 70000u, 1000000u}) {
    Restore();
    EXPECT_EQ(Run(Request(Opcode::kWrite, 5, length)).status, Status::kSuccess);
    EXPECT_TRUE(Arrived(5, length)) << length;
    std::fill(bytes.begin(), bytes.end(), 0);
    EXPECT_EQ(Run(Request(Opcode::kRead, 3, length)).status, Status::kSuccess);
    EXPECT_TRUE(std::equal(bytes.begin() + 3, bytes.begin() + 3 + length, seen->bytes)) << length;
    EXPECT_EQ(bytes[2], 0);
    EXPECT_EQ(bytes[length + 3], 0);
    for (uint32_t i = 0; i < kSize; ++i) bytes[i] = PatternAt(1, i);
  }
  EXPECT_EQ(seen->receives, 0u);
}

TEST_F(Remote, ImmediateDataComeWithTheReceive) {
  Start(Service::kRc);
  Ask(kPost);
  SendRequest request = Request(Opcode::kWriteImm, 0, 100);
  request.immediate = 0x11223344;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  ASSERT_TRUE(Receives(1));
  EXPECT_EQ(seen->received[0].immediate, 0x11223344u);
  EXPECT_TRUE(Arrived(0, 100));
}

TEST_F(Remote, AtomicsTellWhatWasThere) {
  Start(Service::kRc);
  uint64_t before;
  memcpy(&before, seen->bytes, sizeof(before));
  SendRequest add = Request(Opcode::kFetchAdd, 64, 8);
  add.compare_add = 5;
  EXPECT_EQ(Run(add).status, Status::kSuccess);
  uint64_t now, told;
  memcpy(&now, seen->bytes, sizeof(now));
  memcpy(&told, bytes.data() + 64, sizeof(told));
  EXPECT_EQ(now, before + 5);
  EXPECT_EQ(told, before);
  SendRequest swap = Request(Opcode::kCompareSwap, 64, 8);
  swap.compare_add = before + 5;
  swap.swap = 42;
  EXPECT_EQ(Run(swap).status, Status::kSuccess);
  memcpy(&now, seen->bytes, sizeof(now));
  memcpy(&told, bytes.data() + 64, sizeof(told));
  EXPECT_EQ(now, 42u);
  EXPECT_EQ(told, before + 5);
}

TEST_F(Remote, ManyAreOnTheirWayAtOnceAndEndInOrder) {
  Start(Service::kRc);
  for (int i = 0; i < 100; ++i) Ask(kPost);
  std::vector<uint32_t> lengths;
  for (uint32_t i = 0; i < 100; ++i) {
    // Small ones, and ones that are read where they stand.
    const uint32_t length = i % 7 == 3 ? 3000 + i : i;
    Completion completion;
    uint32_t attempt = 0;
    ASSERT_TRUE(Until([&] {
      return Post(Request(Opcode::kSend, 0, length), &completion, attempt++) == Outcome::kSent;
    })) << i;
    lengths.push_back(length);
  }
  ASSERT_TRUE(Until([&] { return own.answers.size() == 100; }));
  ASSERT_TRUE(Receives(100));
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(own.answers[i].status, Status::kSuccess);
    EXPECT_EQ(own.answers[i].byte_length, lengths[i]);
    EXPECT_EQ(seen->received[i].byte_length, lengths[i]);
    EXPECT_EQ(seen->received[i].wr_id, 100 + i);
  }
}

TEST_F(Remote, WhatFindsNoReceiveIsSentAgainWithAllBehindIt) {
  Start(Service::kRc);
  own.rnr_retry = 7;
  Ask(kPost);
  for (uint32_t i = 0; i < 10; ++i) {
    Completion completion;
    ASSERT_EQ(Post(Request(Opcode::kSend, 0, i), &completion), Outcome::kSent);
  }
  ASSERT_TRUE(Until([&] { return own.answers.size() == 1; }));
  for (int i = 0; i < 200; ++i) Step();
  EXPECT_EQ(own.answers.size(), 1u);
  for (int i = 0; i < 9; ++i) {
    Ask(kPost);
    ASSERT_TRUE(Receives(static_cast<uint32_t>(i) + 2) ||
                Until([&] { return own.answers.size() == static_cast<size_t>(i) + 2; }));
  }
  ASSERT_TRUE(Until([&] { return own.answers.size() == 10; }));
  ASSERT_TRUE(Receives(10));
  for (uint32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(seen->received[i].byte_length, i);
    EXPECT_EQ(own.answers[i].byte_length, i);
  }
}

TEST_F(Remote, WithoutAReceiveTheTriesRunOut) {
  Start(Service::kRc);
  own.rnr_retry = 3;
  EXPECT_EQ(Run(Request(Opcode::kSend, 0, 8)).status, Status::kRnrRetryExceeded);
  EXPECT_EQ(own.state, EndpointState::kErr);
  EXPECT_EQ(seen->state, static_cast<uint32_t>(EndpointState::kRts));
}

TEST_F(Remote, AnAccessThatIsRefusedEndsBothSides) {
  Start(Service::kRc);
  SendRequest request = Request(Opcode::kWrite, 0, 100);
  request.rkey = kKey + 1;
  EXPECT_EQ(Run(request).status, Status::kRemoteAccess);
  EXPECT_EQ(own.state, EndpointState::kErr);
  EXPECT_TRUE(Until([&] { return seen->state == static_cast<uint32_t>(EndpointState::kErr); }));
  EXPECT_TRUE(Until([&] { return seen->events == 1; }));
}

TEST_F(Remote, BytesBeyondTheRegionAreRefused) {
  Start(Service::kRc);
  SendRequest request = Request(Opcode::kRead, 0, 100);
  request.remote_address += kSize - 99;
  EXPECT_EQ(Run(request).status, Status::kRemoteAccess);
}

TEST_F(Remote, WhatComesBackMustHaveAPlace) {
  Start(Service::kRc);
  SendRequest request = Request(Opcode::kRead, 0, 100);
  request.sges[0].lkey = kKey + 1;
  EXPECT_EQ(Run(request).status, own.wording->local_target);
}

// Requests behind one that failed are nobody's: the driver flushes them.
TEST_F(Remote, BehindAFailureNothingIsAnswered) {
  Start(Service::kRc);
  Completion completion;
  SendRequest bad = Request(Opcode::kWrite, 0, 8);
  bad.rkey = 1;
  ASSERT_EQ(Post(Request(Opcode::kWrite, 0, 8), &completion), Outcome::kSent);
  ASSERT_EQ(Post(bad, &completion), Outcome::kSent);
  ASSERT_EQ(Post(Request(Opcode::kWrite, 100, 8), &completion), Outcome::kSent);
  ASSERT_TRUE(Until([&] { return own.answers.size() == 2; }));
  for (int i = 0; i < 100; ++i) Step();
  ASSERT_EQ(own.answers.size(), 2u);
  EXPECT_EQ(own.answers[0].status, Status::kSuccess);
  EXPECT_EQ(own.answers[1].status, Status::kRemoteAccess);
  EXPECT_FALSE(IsUnderWay(own));
}

// Whatever needs no peer waits for those that do, so that completions keep their order.
TEST_F(Remote, LocalFailuresWaitForTheirTurn) {
  Start(Service::kRc);
  Completion completion;
  ASSERT_EQ(Post(Request(Opcode::kWrite, 0, 8), &completion), Outcome::kSent);
  SendRequest bad = Request(Opcode::kWrite, 0, 8);
  bad.sges[0].lkey = 1;
  EXPECT_EQ(Post(bad, &completion), Outcome::kRetry);
  EXPECT_EQ(own.state, EndpointState::kRts);
  ASSERT_TRUE(Until([&] { return own.answers.size() == 1; }));
  EXPECT_EQ(Post(bad, &completion, 1), Outcome::kDone);
  EXPECT_EQ(completion.status, Status::kLocalProtection);
  EXPECT_EQ(own.state, EndpointState::kErr);
}

TEST_F(Remote, AFencedRequestWaitsForReads) {
  Start(Service::kRc);
  Completion completion;
  ASSERT_EQ(Post(Request(Opcode::kRead, 0, 8), &completion), Outcome::kSent);
  SendRequest fenced = Request(Opcode::kWrite, 0, 8);
  fenced.fence = true;
  EXPECT_EQ(Post(fenced, &completion), Outcome::kRetry);
  ASSERT_TRUE(Until([&] { return own.answers.size() == 1; }));
  EXPECT_EQ(Post(fenced, &completion, 1), Outcome::kSent);
  ASSERT_TRUE(Until([&] { return own.answers.size() == 2; }));
}

TEST_F(Remote, NoMoreReadsThanAgreed) {
  Start(Service::kRc);
  own.max_rd_atomic = 2;
  Completion completion;
  ASSERT_EQ(Post(Request(Opcode::kRead, 0, 8), &completion), Outcome::kSent);
  ASSERT_EQ(Post(Request(Opcode::kRead, 8, 8), &completion), Outcome::kSent);
  EXPECT_EQ(Post(Request(Opcode::kRead, 16, 8), &completion), Outcome::kRetry);
  ASSERT_TRUE(Until([&] { return own.answers.size() == 2; }));
  EXPECT_GT(own.resumed, 0) << "nobody told the driver to go on";
}

TEST_F(Remote, UnreliableWritesEndWellWhateverBecomesOfThem) {
  Start(Service::kUc);
  EXPECT_EQ(Run(Request(Opcode::kWrite, 7, 5000)).status, Status::kSuccess);
  EXPECT_TRUE(Arrived(7, 5000));
  Restore();
  SendRequest bad = Request(Opcode::kWrite, 0, 100);
  bad.rkey = 1;
  EXPECT_EQ(Run(bad).status, Status::kSuccess);
  EXPECT_EQ(Run(Request(Opcode::kSend, 0, 100)).status, Status::kSuccess);
  EXPECT_EQ(own.state, EndpointState::kRts);
  EXPECT_EQ(seen->bytes[0], PatternAt(2, 0));
  EXPECT_EQ(seen->receives, 0u);
}

TEST_F(Remote, DatagramsFindTheirQueuePair) {
  Start(Service::kUd);
  own.mtu = 4096;
  Ask(kPost);
  SendRequest request = Request(Opcode::kSend, 3, 4096);
  request.remote_qpn = seen->qpn;
  request.remote_qkey = 0x77;
  request.address = own.address;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  ASSERT_TRUE(Receives(1));
  EXPECT_EQ(seen->received[0].byte_length, 4096 + kGrhBytes);
  EXPECT_EQ(seen->received[0].source_qpn, own.qpn);
  EXPECT_TRUE(seen->received[0].has_grh);
  EXPECT_EQ(seen->bytes[8 + 15], 1) << "the sender's GID";
  for (uint32_t i = 0; i < 4096; ++i) {
    ASSERT_EQ(seen->bytes[kGrhBytes + i], PatternAt(1, 3 + i)) << i;
  }
  // A wrong key, a number that nobody has: lost without a word.
  Ask(kPost);
  request.remote_qkey = 0x78;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  request.remote_qkey = 0x77;
  request.remote_qpn = seen->qpn + 1;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  request.remote_qpn = seen->qpn;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  ASSERT_TRUE(Receives(2));
  EXPECT_EQ(seen->received[1].wr_id, 101u);
  for (int i = 0; i < 50; ++i) Step();
  EXPECT_EQ(seen->receives, 2u);
}

TEST_F(Remote, GroupsHaveMembersInOtherProcesses) {
  static const uint8_t group[16] = {0xff, 0x0e, 1, 2, 3};
  Start(Service::kUd, [](Endpoint2& qp) {
    std::lock_guard lock(Lock());
    AttachMulticast(&qp, group);
  });
  own.mtu = 4096;
  Ask(kPost);
  SendRequest request = Request(Opcode::kSend, 3, 100);
  request.remote_qpn = 0xffffff;
  request.remote_qkey = 0x77;
  request.address.is_global = 1;
  memcpy(request.address.dgid, group, sizeof(group));
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  ASSERT_TRUE(Receives(1));
  EXPECT_EQ(seen->bytes[kGrhBytes], PatternAt(1, 3));
}

TEST_F(Remote, XrcRequestsNameTheirQueue) {
  Start(Service::kXrcTarget);
  Ask(kPost);
  SendRequest request = Request(Opcode::kSend, 0, 100);
  request.xrc_srq = 0x4711;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  ASSERT_TRUE(Receives(1));
  EXPECT_TRUE(Until([&] { return seen->aimed == 0x4711; }));
}

TEST_F(Remote, InlineDataNeedNotStayWhereTheyWere) {
  Start(Service::kRc);
  uint8_t data[64];
  for (uint32_t i = 0; i < sizeof(data); ++i) data[i] = PatternAt(1, i);
  SendRequest request = Request(Opcode::kWrite, 0, 0);
  request.sge_count = 0;
  request.inline_data = data;
  request.inline_length = sizeof(data);
  Completion completion;
  kill(other, SIGSTOP);  // it takes nothing up yet
  ASSERT_EQ(Post(request, &completion), Outcome::kSent);
  memset(data, 0, sizeof(data));
  kill(other, SIGCONT);
  ASSERT_TRUE(Until([&] { return own.answers.size() == 1; }));
  EXPECT_TRUE(Arrived(0, sizeof(data)));
}

}  // namespace

void RemoteTest::ForbidPullingIn(bool on) { ForbidPulling(on); }

}  // namespace vabi::fabric
