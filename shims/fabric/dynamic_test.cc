// SPDX-License-Identifier: BSD-2-Clause
// Dynamically connected queue pairs: an initiator names its target in each request. What a target
// is and does: rdma-core's mlx5dv_create_qp(3), mlx5dv_wr_post(3); the services are RC's.
#include "shims/fabric/test_endpoint.h"
#include "shims/fabric/test_remote.h"

namespace vabi::fabric {
namespace {

constexpr uint64_t kAccessKey = 0x1122334455667788;

class Dynamic : public FabricTest {
 protected:
  void SetUp() override {
    FabricTest::SetUp();
    Prepare(c, 1, 300);
    Initiator(a);
    Target(b);
    Target(c);
  }
  static void Initiator(Side& side) {
    side.qp.service = Service::kDcInitiator;
    side.qp.dest_qpn = 0;
    side.qp.address = AddressVector();
  }
  static void Target(Side& side) {
    Initiator(side);
    side.qp.service = Service::kDcTarget;
    side.qp.dc_key = kAccessKey;
    side.qp.state = EndpointState::kRtr;
  }
  SendRequest To(const Side& side, Opcode opcode, std::vector<Sge> sges, uint32_t offset = 0) {
    SendRequest request = Request(opcode, std::move(sges));
    request.remote_address = side.address() + offset;
    request.rkey = side.key;
    request.dc_key = kAccessKey;
    request.remote_qpn = side.qp.qpn;
    request.address.is_global = 1;
    memcpy(request.address.dgid, side.qp.gid, 16);
    return request;
  }
  bool Came(const Side& side, uint32_t at, uint32_t from, uint32_t length) {
    for (uint32_t i = 0; i < length; ++i) {
      if (side.memory[at + i] != PatternAt(100, from + i)) return false;
    }
    return true;
  }

  Side c;
};

TEST_F(Dynamic, EachRequestGoesToItsOwnTarget) {
  b.qp.Receive(11, {b.At(0, 500)});
  c.qp.Receive(12, {c.At(0, 500)});
  SendRequest request = To(c, Opcode::kSendImm, {a.At(1000, 77)});
  request.immediate = 0x11223344;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  EXPECT_TRUE(b.qp.completed.empty());
  ASSERT_EQ(c.qp.completed.size(), 1u);
  EXPECT_EQ(c.qp.completed[0].completion.byte_length, 77u);
  EXPECT_EQ(c.qp.completed[0].completion.immediate, 0x11223344u);
  EXPECT_TRUE(Came(c, 0, 1000, 77));
  EXPECT_EQ(Run(To(b, Opcode::kSend, {a.At(2000, 50)})).status, Status::kSuccess);
  ASSERT_EQ(b.qp.completed.size(), 1u);
  EXPECT_TRUE(Came(b, 0, 2000, 50));
  EXPECT_EQ(b.qp.state, EndpointState::kRtr);
}

TEST_F(Dynamic, WritesReadsAndAtomicsGoWhereTheyShould) {
  EXPECT_EQ(Run(To(b, Opcode::kWrite, {a.At(100, 3000)}, 4096)).status, Status::kSuccess);
  EXPECT_TRUE(Came(b, 4096, 100, 3000));
  EXPECT_EQ(Run(To(c, Opcode::kRead, {a.At(8192, 2000)}, 20000)).status, Status::kSuccess);
  for (uint32_t i = 0; i < 2000; ++i) ASSERT_EQ(a.memory[8192 + i], PatternAt(300, 20000 + i));
  uint64_t before = 0, after = 0;
  memcpy(&before, b.memory, 8);
  SendRequest add = To(b, Opcode::kFetchAdd, {a.At(0, 8)});
  add.compare_add = 5;
  EXPECT_EQ(Run(add).status, Status::kSuccess);
  memcpy(&after, b.memory, 8);
  EXPECT_EQ(after, before + 5);
  EXPECT_EQ(memcmp(a.memory, &before, 8), 0);
}

TEST_F(Dynamic, AnotherKeyIsNotHeard) {
  b.qp.Receive(11, {b.At(0, 500)});
  for (const uint64_t wrong : {kAccessKey + 1, kAccessKey ^ uint64_t{1} << 63}) {
    a.qp.state = EndpointState::kRts;
    SendRequest request = To(b, Opcode::kSend, {a.At(0, 100)});
    request.dc_key = wrong;
    EXPECT_EQ(Run(request).status, Status::kRetryExceeded);
    request.opcode = Opcode::kWrite;
    a.qp.state = EndpointState::kRts;
    EXPECT_EQ(Run(request).status, Status::kRetryExceeded);
  }
  EXPECT_TRUE(b.qp.completed.empty());
  EXPECT_TRUE(Untouched(b, 0, 500));
  ASSERT_FALSE(b.qp.events.empty());
  EXPECT_EQ(b.qp.events.back(), Event::kDcKeyViolation);
  EXPECT_EQ(b.qp.receives.size(), 1u) << "the receive waits for another";
}

TEST_F(Dynamic, ATargetOutlivesTheErrorsOfItsInitiators) {
  SendRequest wrong = To(b, Opcode::kWrite, {a.At(0, 8)});
  wrong.rkey = b.key + 1;
  EXPECT_EQ(Run(wrong).status, Status::kRemoteAccess);
  EXPECT_EQ(a.qp.state, EndpointState::kErr);
  EXPECT_EQ(b.qp.state, EndpointState::kRtr);
  EXPECT_EQ(b.qp.errors, 0);
  a.qp.state = EndpointState::kRts;
  b.qp.access = kAccessRemoteRead;
  EXPECT_EQ(Run(To(b, Opcode::kWrite, {a.At(0, 8)})).status, Status::kRemoteInvalidRequest);
  a.qp.state = EndpointState::kRts;
  b.qp.Receive(11, {b.At(0, 3)});
  EXPECT_EQ(Run(To(b, Opcode::kSend, {a.At(0, 4)})).status, Status::kRemoteInvalidRequest);
  ASSERT_EQ(b.qp.completed.size(), 1u);
  EXPECT_EQ(b.qp.completed[0].completion.status, Status::kLocalLength);
  a.qp.state = EndpointState::kRts;
  b.qp.Receive(12, {b.At(0, 30)});
  EXPECT_EQ(Run(To(b, Opcode::kSend, {a.At(0, 4)})).status, Status::kSuccess);
  EXPECT_EQ(b.qp.state, EndpointState::kRtr);
}

TEST_F(Dynamic, ReceiverNotReadyIsToldToTheInitiator) {
  a.qp.rnr_retry = 1;
  EXPECT_EQ(Run(To(b, Opcode::kSend, {a.At(0, 4)})).status, Status::kRnrRetryExceeded);
  EXPECT_EQ(attempts, 1u);
}

TEST_F(Dynamic, OnlyInitiatorsAndTargetsSpeakToEachOther) {
  b.qp.service = Service::kRc;
  b.qp.dest_qpn = a.qp.qpn;
  EXPECT_EQ(Run(To(b, Opcode::kWrite, {a.At(0, 8)})).status, Status::kRetryExceeded);
  Target(b);
  a.qp.state = EndpointState::kRts;
  a.qp.service = Service::kRc;
  Connect(a, b);
  EXPECT_EQ(Run(Remote(Opcode::kWrite, {a.At(0, 8)}, 0)).status, Status::kRetryExceeded);
  EXPECT_TRUE(Untouched(b, 0, 8));
}

class FarDynamic : public RemoteTest {
 protected:
  SendRequest To(Opcode opcode, uint32_t offset, uint32_t length, uint64_t key = kAccessKey) {
    SendRequest request = Request(opcode, offset, length);
    request.address = own.address;
    request.remote_qpn = seen->qpn;
    request.dc_key = key;
    return request;
  }
  void StartTarget() {
    Start(Service::kDcTarget, [](Endpoint2& qp) {
      qp.checks_psn = false;
      qp.dc_key = kAccessKey;
    });
    own.checks_psn = false;
  }
};

TEST_F(FarDynamic, AnotherProcessIsReached) {
  StartTarget();
  for (uint32_t i = 0; i < 3; ++i) {
    Ask(kPost);
    EXPECT_EQ(Run(To(Opcode::kSend, 17 + i, 5000)).status, Status::kSuccess);
    EXPECT_TRUE(Until([&] { return seen->receives == i + 1; }));
    EXPECT_EQ(memcmp(seen->bytes, bytes.data() + 17 + i, 5000), 0);
  }
  EXPECT_EQ(Run(To(Opcode::kRead, 0, 3000)).status, Status::kSuccess);
  EXPECT_EQ(memcmp(seen->bytes, bytes.data(), 3000), 0);
}

TEST_F(FarDynamic, OneConnectionAtATime) {
  StartTarget();
  Completion completion;
  ASSERT_EQ(Post(To(Opcode::kWrite, 0, 100), &completion), Outcome::kSent);
  EXPECT_EQ(Post(To(Opcode::kWrite, 100, 100), &completion), Outcome::kRetry);
  EXPECT_TRUE(Until([&] { return own.answers.size() == 1; }));
  EXPECT_EQ(own.answers[0].status, Status::kSuccess);
}

TEST_F(FarDynamic, AnotherKeyIsNotHeardThere) {
  StartTarget();
  own.retry_count = 1;
  EXPECT_EQ(Run(To(Opcode::kWrite, 0, 100, kAccessKey + 1)).status, Status::kRetryExceeded);
  EXPECT_EQ(seen->bytes[0], PatternAt(2, 0));
  EXPECT_GE(seen->events, 2u) << "once a try";
}

}  // namespace
}  // namespace vabi::fabric
