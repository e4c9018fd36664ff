// SPDX-License-Identifier: BSD-2-Clause
// RC and UC. Expected statuses: IBTA 1.4 table 58 and 9.9.2, 9.9.3 (classes of errors), and
// rxe_resp.c where a test turns the wording to rxe's.
#include "shims/fabric/test_endpoint.h"

namespace vabi::fabric {
namespace {

class Connected : public FabricTest {
 protected:
  void ExpectBothInError(Status requester, const Completion& completion) {
    EXPECT_EQ(completion.status, requester);
    EXPECT_EQ(a.qp.state, EndpointState::kErr);
    EXPECT_EQ(b.qp.state, EndpointState::kErr);
    EXPECT_EQ(a.qp.errors, 0) << "the requester's driver flushes after its completion";
    EXPECT_EQ(b.qp.errors, 1);
  }
  void ExpectOnlyRequesterInError(Status requester, const Completion& completion) {
    EXPECT_EQ(completion.status, requester);
    EXPECT_EQ(a.qp.state, EndpointState::kErr);
    EXPECT_EQ(b.qp.state, EndpointState::kRts);
  }
};

TEST_F(Connected, SendScattersAndGathers) {
  b.qp.Receive(11, {b.At(0, 3), b.At(100, 0), b.At(200, 500)});
  const Completion sent = Run(Request(Opcode::kSend, {a.At(1000, 10), a.At(5000, 77)}));
  EXPECT_EQ(sent.status, Status::kSuccess);
  EXPECT_EQ(sent.byte_length, 87u);
  ASSERT_EQ(b.qp.completed.size(), 1u);
  EXPECT_EQ(b.qp.completed[0].wr_id, 11u);
  const Completion& got = b.qp.completed[0].completion;
  EXPECT_TRUE(got.is_receive);
  EXPECT_EQ(got.status, Status::kSuccess);
  EXPECT_EQ(got.byte_length, 87u);
  EXPECT_FALSE(got.has_immediate || got.has_invalidate || got.has_grh);
  for (uint32_t i = 0; i < 87; ++i) {
    const uint8_t want = i < 10 ? PatternAt(100, 1000 + i) : PatternAt(100, 5000 + i - 10);
    EXPECT_EQ(i < 3 ? b.memory[i] : b.memory[200 + i - 3], want) << i;
  }
  EXPECT_TRUE(Untouched(b, 3, 197));
  EXPECT_TRUE(Untouched(b, 284, 1000));
}

TEST_F(Connected, ImmediateAndSolicitedReachTheReceiver) {
  b.qp.Receive(1, {b.At(0, 64)});
  SendRequest request = Request(Opcode::kSendImm, {a.At(0, 4)});
  request.immediate = 0x11223344;
  request.solicited = true;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  const Completion& got = b.qp.completed.at(0).completion;
  EXPECT_TRUE(got.has_immediate);
  EXPECT_TRUE(got.solicited);
  EXPECT_EQ(got.immediate, 0x11223344u);
}

TEST_F(Connected, InlineNeedsNoKey) {
  const uint8_t data[] = {1, 2, 3, 4, 5};
  b.qp.Receive(1, {b.At(0, 64)});
  SendRequest request = Request(Opcode::kSend, {});
  request.inline_data = data;
  request.inline_length = sizeof(data);
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  EXPECT_EQ(memcmp(b.memory, data, sizeof(data)), 0);
}

// Bytes in the request come before those that it points to.
TEST_F(Connected, InlineBytesAndElementsAreOneMessage) {
  const uint8_t data[] = {1, 2, 3, 4, 5};
  b.qp.Receive(1, {b.At(0, 64)});
  SendRequest request = Request(Opcode::kSend, {a.At(100, 20), a.At(500, 30)});
  request.inline_data = data;
  request.inline_length = sizeof(data);
  EXPECT_EQ(Run(request).byte_length, 55u);
  EXPECT_EQ(b.qp.completed.at(0).completion.byte_length, 55u);
  EXPECT_EQ(memcmp(b.memory, data, sizeof(data)), 0);
  EXPECT_EQ(memcmp(b.memory + 5, a.memory + 100, 20), 0);
  EXPECT_EQ(memcmp(b.memory + 25, a.memory + 500, 30), 0);
  request.sges[1].lkey = 0xbad;
  b.qp.Receive(2, {b.At(0, 64)});
  EXPECT_EQ(Run(request).status, Status::kLocalProtection);
}

TEST_F(Connected, NothingAtAllIsAMessageToo) {
  b.qp.Receive(1, {});
  EXPECT_EQ(Run(Request(Opcode::kSend, {})).status, Status::kSuccess);
  EXPECT_EQ(b.qp.completed.at(0).completion.byte_length, 0u);
}

TEST_F(Connected, WriteAndRead) {
  EXPECT_EQ(Run(Remote(Opcode::kWrite, {a.At(0, 3000)}, 4096)).status, Status::kSuccess);
  for (uint32_t i = 0; i < 3000; ++i) ASSERT_EQ(b.memory[4096 + i], PatternAt(100, i)) << i;
  EXPECT_TRUE(b.qp.completed.empty());
  const Completion read = Run(Remote(Opcode::kRead, {a.At(8192, 10), a.At(9000, 2000)}, 20000));
  EXPECT_EQ(read.status, Status::kSuccess);
  EXPECT_EQ(read.byte_length, 2010u);
  for (uint32_t i = 0; i < 2010; ++i) {
    ASSERT_EQ(i < 10 ? a.memory[8192 + i] : a.memory[9000 + i - 10], PatternAt(200, 20000 + i))
        << i;
  }
}

TEST_F(Connected, WriteImmediateTakesAReceiveAndWritesElsewhere) {
  b.qp.Receive(5, {b.At(0, 8)});
  SendRequest request = Remote(Opcode::kWriteImm, {a.At(0, 100)}, 1000);
  request.immediate = 7;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  const Completion& got = b.qp.completed.at(0).completion;
  EXPECT_EQ(got.opcode, Opcode::kWriteImm);
  EXPECT_EQ(got.byte_length, 100u);
  EXPECT_EQ(got.immediate, 7u);
  EXPECT_TRUE(Untouched(b, 0, 8));
  EXPECT_EQ(b.memory[1000], PatternAt(100, 0));
}

TEST_F(Connected, NoBytesNeedNoRemoteKey) {
  for (Opcode opcode : {Opcode::kWrite, Opcode::kRead}) {
    SendRequest request = Remote(opcode, {}, 0);
    request.rkey = 0xdead;
    EXPECT_EQ(Run(request).status, Status::kSuccess);  // IBTA C9-88
  }
}

TEST_F(Connected, OverlappingBytesOfOneRegionMove) {
  Connect(a, a);
  SendRequest request = Request(Opcode::kWrite, {a.At(0, 5000)});
  request.remote_address = a.address() + 17;
  request.rkey = a.key;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  for (uint32_t i = 0; i < 5000; ++i) ASSERT_EQ(a.memory[17 + i], PatternAt(100, i)) << i;
}

TEST_F(Connected, AQueuePairMayTalkToItself) {
  Connect(a, a);
  a.qp.Receive(3, {a.At(100, 64)});
  EXPECT_EQ(Run(Request(Opcode::kSend, {a.At(0, 64)})).status, Status::kSuccess);
  EXPECT_EQ(a.qp.completed.at(0).wr_id, 3u);
  SendRequest bad = Request(Opcode::kWrite, {a.At(0, 8)});
  bad.rkey = 0xdead;
  EXPECT_EQ(Run(bad).status, Status::kRemoteAccess);
  EXPECT_EQ(a.qp.state, EndpointState::kErr);
  EXPECT_EQ(a.qp.errors, 0) << "its own completion comes first";
}

struct LocalKeyCase {
  const char* name;
  Sge sge;
};

TEST_F(Connected, LocalKeyErrorsStopTheRequesterAlone) {
  MemoryKey other_pd = *FindKey(0, a.key);
  other_pd.pd = 8;
  AddKey(0, 0x77, other_pd);
  const uint64_t at = a.address();
  const LocalKeyCase cases[] = {
      {"absent", {at, 8, 0xdead}},
      {"another PD's", {at, 8, 0x77}},
      {"one byte past the end", {at + kSize - 7, 8, a.key}},
      {"before the beginning", {at - 1, 8, a.key}},
      {"wrapping around", {~0ULL - 3, 8, a.key}},
  };
  for (const LocalKeyCase& one : cases) {
    SCOPED_TRACE(one.name);
    a.qp.state = EndpointState::kRts;
    b.qp.receives.clear();
    b.qp.Receive(1, {b.At(0, 64)});
    ExpectOnlyRequesterInError(Status::kLocalProtection, Run(Request(Opcode::kSend, {one.sge})));
    EXPECT_EQ(b.qp.receives.size(), 1u);
  }
}

TEST_F(Connected, TheDriverWordsLocalErrors) {
  a.qp.test_wording.local_key = Status::kLocalQpOperation;
  EXPECT_EQ(Run(Request(Opcode::kSend, {{a.address(), 8, 0xdead}})).status,
            Status::kLocalQpOperation);
  a.qp.state = EndpointState::kRts;
  EXPECT_EQ(Run(Request(Opcode::kSend, {{a.address() + kSize, 8, a.key}})).status,
            Status::kLocalProtection);
}

TEST_F(Connected, ElementsOfNoLengthAreNotLookedAt) {
  b.qp.Receive(1, {b.At(0, 64)});
  EXPECT_EQ(Run(Request(Opcode::kSend, {{0, 0, 0xdead}, a.At(0, 8)})).status, Status::kSuccess);
}

TEST_F(Connected, ReadNeedsAWritableTarget) {
  FindKey(0, a.key)->access = kAccessRemoteWrite;
  ExpectOnlyRequesterInError(Status::kLocalProtection, Run(Remote(Opcode::kRead, {a.At(0, 8)}, 0)));
  EXPECT_TRUE(Untouched(a, 0, 8));
}

TEST_F(Connected, ADriverMayForgetToSayWhatFailed) {
  // rxe_comp.c:do_read up to 5.12: the queue pair goes to error, the completion says success.
  a.qp.test_wording.local_target = Status::kSuccess;
  FindKey(0, a.key)->access = kAccessRemoteWrite;
  ExpectOnlyRequesterInError(Status::kSuccess, Run(Remote(Opcode::kRead, {a.At(0, 8)}, 0)));
  // rxe_resp.c:do_complete up to 5.12: no receive, no NAK.
  a.qp.state = EndpointState::kRts;
  a.qp.retry_count = 1;
  b.qp.test_wording.nak_without_receive = false;
  SendRequest request = Remote(Opcode::kWrite, {a.At(0, 8)}, 0);
  request.rkey = 0xdead;
  ExpectBothInError(Status::kRetryExceeded, Run(request));
}

TEST_F(Connected, RemoteKeyErrorsStopBothAndSayWhy) {
  MemoryKey other_pd = *FindKey(1, b.key);
  other_pd.pd = 8;
  AddKey(1, 0x77, other_pd);
  struct {
    const char* name;
    uint32_t rkey;
    uint64_t address;
  } const cases[] = {
      {"absent", 0xdead, b.address()},
      {"another PD's", 0x77, b.address()},
      {"one byte past the end", b.key, b.address() + kSize - 7},
      {"before the beginning", b.key, b.address() - 1},
      {"wrapping around", b.key, ~0ULL - 3},
  };
  for (Opcode opcode : {Opcode::kWrite, Opcode::kRead}) {
    for (const auto& one : cases) {
      SCOPED_TRACE(one.name);
      a.qp.state = b.qp.state = EndpointState::kRts;
      b.qp.errors = 0;
      b.qp.events.clear();
      SendRequest request = Request(opcode, {a.At(0, 8)});
      request.rkey = one.rkey;
      request.remote_address = one.address;
      ExpectBothInError(Status::kRemoteAccess, Run(request));
      EXPECT_EQ(b.qp.events, std::vector<Event>{Event::kAccessError});
    }
  }
}

TEST_F(Connected, RegionAccessBitsAreKept) {
  struct {
    Opcode opcode;
    uint32_t needed;
  } const cases[] = {{Opcode::kWrite, kAccessRemoteWrite},
                     {Opcode::kRead, kAccessRemoteRead},
                     {Opcode::kFetchAdd, kAccessRemoteAtomic},
                     {Opcode::kCompareSwap, kAccessRemoteAtomic}};
  for (const auto& one : cases) {
    a.qp.state = b.qp.state = EndpointState::kRts;
    b.qp.errors = 0;
    FindKey(1, b.key)->access = kAll & ~one.needed;
    ExpectBothInError(Status::kRemoteAccess, Run(Remote(one.opcode, {a.At(0, 8)}, 0)));
    a.qp.state = b.qp.state = EndpointState::kRts;
    FindKey(1, b.key)->access = one.needed;
    EXPECT_EQ(Run(Remote(one.opcode, {a.At(0, 8)}, 0)).status, Status::kSuccess);
  }
}

TEST_F(Connected, QueuePairAccessBitsAreKept) {
  struct {
    Opcode opcode;
    uint32_t needed;
  } const cases[] = {{Opcode::kWrite, kAccessRemoteWrite},
                     {Opcode::kRead, kAccessRemoteRead},
                     {Opcode::kFetchAdd, kAccessRemoteAtomic}};
  for (const auto& one : cases) {
    a.qp.state = b.qp.state = EndpointState::kRts;
    b.qp.errors = 0;
    b.qp.access = kAll & ~one.needed;
    // Class C, "unsupported or reserved opcode": NAK invalid request.
    ExpectBothInError(Status::kRemoteInvalidRequest, Run(Remote(one.opcode, {a.At(0, 8)}, 0)));
    a.qp.state = b.qp.state = EndpointState::kRts;
    b.qp.access = one.needed;
    EXPECT_EQ(Run(Remote(one.opcode, {a.At(0, 8)}, 0)).status, Status::kSuccess);
  }
}

TEST_F(Connected, AtomicsWork) {
  uint64_t* word = reinterpret_cast<uint64_t*>(b.memory + 64);
  uint64_t* old = reinterpret_cast<uint64_t*>(a.memory);
  *word = 40;
  SendRequest add = Remote(Opcode::kFetchAdd, {a.At(0, 8)}, 64);
  add.compare_add = 2;
  EXPECT_EQ(Run(add).status, Status::kSuccess);
  EXPECT_EQ(*old, 40u);
  EXPECT_EQ(*word, 42u);

  SendRequest swap = Remote(Opcode::kCompareSwap, {a.At(0, 8)}, 64);
  swap.compare_add = 41;
  swap.swap = 1;
  EXPECT_EQ(Run(swap).status, Status::kSuccess);
  EXPECT_EQ(*old, 42u);
  EXPECT_EQ(*word, 42u);
  swap.compare_add = 42;
  EXPECT_EQ(Run(swap).byte_length, 8u);
  EXPECT_EQ(*old, 42u);
  EXPECT_EQ(*word, 1u);

  *word = 0x00ff'00ff;
  SendRequest masked = Remote(Opcode::kMaskedCompareSwap, {a.At(0, 8)}, 64);
  masked.compare_add = 0xff;
  masked.compare_mask = 0xffff;
  masked.swap = 0xabcd'ef12;
  masked.swap_mask = 0xff00'ff00;
  EXPECT_EQ(Run(masked).status, Status::kSuccess);
  EXPECT_EQ(*word, 0xabff'efffu);

  *word = 0xffff'ffff;
  SendRequest field_add = Remote(Opcode::kMaskedFetchAdd, {a.At(0, 8)}, 64);
  field_add.compare_add = 0x0001'0001;
  field_add.compare_mask = 0x8000'8000;  // two fields of 16 bits: no carry from one to the other
  EXPECT_EQ(Run(field_add).status, Status::kSuccess);
  EXPECT_EQ(*word, 0u);
}

TEST_F(Connected, AtomicWrites) {
  const uint64_t value = 0x1122334455667788;
  SendRequest request = Remote(Opcode::kAtomicWrite, {}, 64);
  request.inline_data = reinterpret_cast<const uint8_t*>(&value);
  request.inline_length = 8;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  EXPECT_EQ(memcmp(b.memory + 64, &value, 8), 0);
  EXPECT_TRUE(Untouched(b, 72, 8));
  FindKey(1, b.key)->access &= ~kAccessRemoteWrite;
  ExpectBothInError(Status::kRemoteAccess, Run(request));
  FindKey(1, b.key)->access |= kAccessRemoteWrite;
  for (int spoil = 0; spoil < 2; ++spoil) {
    a.qp.state = b.qp.state = EndpointState::kRts;
    b.qp.errors = 0;
    SendRequest bad = request;
    if (spoil == 0) bad.remote_address += 4;
    if (spoil == 1) bad.inline_length = 4;
    ExpectBothInError(Status::kRemoteInvalidRequest, Run(bad));
  }
  a.qp.state = b.qp.state = EndpointState::kRts;
  a.qp.max_rd_atomic = 0;
  ExpectOnlyRequesterInError(Status::kLocalQpOperation, Run(request));
}

TEST_F(Connected, Flushes) {
  SendRequest request = Remote(Opcode::kFlush, {}, 100);
  request.flush_access = kAccessFlushGlobal;
  request.flush_length = 5000;
  ExpectBothInError(Status::kRemoteInvalidRequest, Run(request));
  a.qp.state = b.qp.state = EndpointState::kRts;
  b.qp.errors = 0;
  b.qp.access |= kAccessFlushGlobal;
  ExpectBothInError(Status::kRemoteAccess, Run(request));
  a.qp.state = b.qp.state = EndpointState::kRts;
  b.qp.errors = 0;
  FindKey(1, b.key)->access |= kAccessFlushGlobal;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  request.flush_length = kSize;
  ExpectBothInError(Status::kRemoteAccess, Run(request));
  a.qp.state = b.qp.state = EndpointState::kRts;
  request.flush_region = true;  // of the whole region: nothing is said of addresses
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  b.qp.errors = 0;
  request = Remote(Opcode::kFlush, {}, 100);
  request.rkey = 0xdead00;  // of no bytes, and yet the key counts
  ExpectBothInError(Status::kRemoteAccess, Run(request));
}

TEST_F(Connected, AtomicsWantEightAlignedBytes) {
  ExpectBothInError(Status::kRemoteInvalidRequest, Run(Remote(Opcode::kFetchAdd, {a.At(0, 8)}, 4)));
  EXPECT_TRUE(Untouched(b, 0, 16));
}

TEST_F(Connected, ReadAndAtomicsNeedDepthOnBothSides) {
  b.qp.max_dest_rd_atomic = 0;
  ExpectBothInError(Status::kRemoteInvalidRequest, Run(Remote(Opcode::kRead, {a.At(0, 8)}, 0)));
  a.qp.state = b.qp.state = EndpointState::kRts;
  a.qp.max_rd_atomic = 0;
  ExpectOnlyRequesterInError(Status::kLocalQpOperation,
                             Run(Remote(Opcode::kRead, {a.At(0, 8)}, 0)));
}

TEST_F(Connected, WithoutDepthRxeWaitsForEver) {
  a.qp.test_wording.no_read_depth = Status::kSuccess;  // rxe_req.c: check_init_depth never succeeds
  a.qp.max_rd_atomic = 0;
  Completion completion;
  EXPECT_EQ(Execute(a.qp, Remote(Opcode::kRead, {a.At(0, 8)}, 0), 0, &completion), Outcome::kRetry);
  EXPECT_EQ(a.qp.retry_at_ns, 0u);
}

TEST_F(Connected, TooLongForTheReceive) {
  b.qp.Receive(9, {b.At(0, 10), b.At(50, 10)});
  ExpectBothInError(Status::kRemoteInvalidRequest, Run(Request(Opcode::kSend, {a.At(0, 21)})));
  ASSERT_EQ(b.qp.completed.size(), 1u);
  EXPECT_EQ(b.qp.completed[0].wr_id, 9u);
  EXPECT_EQ(b.qp.completed[0].completion.status, Status::kLocalLength);
  EXPECT_TRUE(Untouched(b, 0, 100));
}

TEST_F(Connected, TheDriverWordsWhatIsTooLong) {
  // rxe_mr.c: copy_data answers -EINVAL, which rxe_resp.c takes for a malformed receive.
  b.qp.test_wording.receive_length = Status::kLocalQpOperation;
  b.qp.test_wording.length_nak = Status::kRemoteOperation;
  b.qp.Receive(9, {b.At(0, 10)});
  ExpectBothInError(Status::kRemoteOperation, Run(Request(Opcode::kSend, {a.At(0, 11)})));
  EXPECT_EQ(b.qp.completed.at(0).completion.status, Status::kLocalQpOperation);
}

TEST_F(Connected, ReceiveKeysAreCheckedWhereBytesGo) {
  const uint64_t at = b.address();
  MemoryKey read_only = *FindKey(1, b.key);
  read_only.access = kAccessRemoteWrite;
  AddKey(1, 0x55, read_only);
  MemoryKey other_pd = *FindKey(1, b.key);
  other_pd.pd = 8;
  AddKey(1, 0x77, other_pd);
  for (Sge bad :
       {Sge{at, 8, 0xdead}, Sge{at, 8, 0x55}, Sge{at, 8, 0x77}, Sge{at + kSize - 4, 8, b.key}}) {
    a.qp.state = b.qp.state = EndpointState::kRts;
    b.qp.errors = 0;
    b.qp.completed.clear();
    b.qp.Receive(2, {bad});
    ExpectBothInError(Status::kRemoteOperation, Run(Request(Opcode::kSend, {a.At(0, 8)})));
    EXPECT_EQ(b.qp.completed.at(0).completion.status, Status::kLocalProtection);
  }
  a.qp.state = b.qp.state = EndpointState::kRts;
  b.qp.Receive(2, {b.At(0, 8), {at, 8, 0xdead}});
  EXPECT_EQ(Run(Request(Opcode::kSend, {a.At(0, 8)})).status, Status::kSuccess)
      << "no byte went there";
}

TEST_F(Connected, AMalformedReceiveIsARemoteOperationError) {
  RecvRequest bad;
  bad.sge_count = Endpoint::kMalformed;
  b.qp.receives.push_back(bad);
  ExpectBothInError(Status::kRemoteOperation, Run(Request(Opcode::kSend, {a.At(0, 8)})));
  EXPECT_TRUE(b.qp.completed.empty());
  EXPECT_EQ(b.qp.receives.size(), 1u) << "left for the flush";
}

TEST_F(Connected, NoReceiveIsRetriedAsOftenAsAsked) {
  for (uint32_t retries : {0u, 1u, 6u}) {
    a.qp.state = EndpointState::kRts;
    a.qp.rnr_retry = static_cast<uint8_t>(retries);
    ExpectOnlyRequesterInError(Status::kRnrRetryExceeded,
                               Run(Request(Opcode::kSend, {a.At(0, 8)})));
    EXPECT_EQ(attempts, retries);
  }
}

TEST_F(Connected, RnrRetrySevenIsForEver) {
  a.qp.rnr_retry = 7;
  const SendRequest request = Request(Opcode::kSend, {a.At(0, 8)});
  Completion completion;
  for (uint32_t attempt = 0; attempt < 100; ++attempt) {
    ASSERT_EQ(Execute(a.qp, request, attempt, &completion), Outcome::kRetry);
    test_now = a.qp.retry_at_ns;
  }
  b.qp.Receive(1, {b.At(0, 8)});
  EXPECT_EQ(Execute(a.qp, request, 100, &completion), Outcome::kDone);
  EXPECT_EQ(completion.status, Status::kSuccess);
}

TEST_F(Connected, RnrWaitsAsLongAsTheResponderSays) {
  a.qp.rnr_retry = 1;
  const SendRequest request = Request(Opcode::kSend, {a.At(0, 8)});
  // IBTA table 45: 1 is 0.01 ms, 12 is 0.64 ms, 0 is 655.36 ms.
  struct {
    uint8_t code;
    uint64_t ns;
  } const cases[] = {{1, 10000}, {12, 640000}, {0, 655360000}, {31, 491520000}};
  for (const auto& one : cases) {
    b.qp.min_rnr_timer = one.code;
    Completion completion;
    const uint64_t start = test_now;
    ASSERT_EQ(Execute(a.qp, request, 0, &completion), Outcome::kRetry);
    EXPECT_EQ(a.qp.retry_at_ns, start + one.ns);
    // Looking early uses no retry up.
    for (uint32_t attempt = 1; attempt < 10; ++attempt) {
      ASSERT_EQ(Execute(a.qp, request, attempt, &completion), Outcome::kRetry);
    }
  }
}

TEST_F(Connected, WhoDoesNotAnswerIsTriedRetryCountTimesMore) {
  const auto fails = [this](const char* why) {
    SCOPED_TRACE(why);
    a.qp.state = EndpointState::kRts;
    a.qp.retry_count = 2;
    a.qp.timeout = 3;
    const uint64_t start = test_now;
    EXPECT_EQ(Run(Request(Opcode::kSend, {a.At(0, 8)})).status, Status::kRetryExceeded);
    EXPECT_EQ(a.qp.state, EndpointState::kErr);
    EXPECT_EQ(attempts, 3u);
    EXPECT_EQ(test_now - start, 3 * (4096u << 3)) << "each try has its time";
  };
  b.qp.Receive(1, {b.At(0, 8)});
  b.qp.state = EndpointState::kInit;
  fails("not yet ready to receive");
  b.qp.state = EndpointState::kErr;
  fails("in error");
  b.qp.state = EndpointState::kRts;
  b.qp.service = Service::kUc;
  fails("of another service");
  b.qp.service = Service::kRc;
  b.qp.dest_qpn = 999;
  fails("connected to somebody else");
  b.qp.dest_qpn = a.qp.qpn;
  a.qp.dest_qpn = 201;
  fails("no such queue pair");
  a.qp.dest_qpn = b.qp.qpn;
  a.qp.address.dgid[15] = 9;
  fails("no such address");
  a.qp.address.dgid[15] = 2;
  RemoveEndpoint(&b.qp);
  fails("destroyed");
  EXPECT_EQ(b.qp.receives.size(), 1u);
}

TEST_F(Connected, ReadyInTimeIsGoodEnough) {
  b.qp.state = EndpointState::kInit;
  b.qp.Receive(1, {b.At(0, 8)});
  const SendRequest request = Request(Opcode::kSend, {a.At(0, 8)});
  Completion completion;
  ASSERT_EQ(Execute(a.qp, request, 0, &completion), Outcome::kRetry);
  b.qp.state = EndpointState::kRtr;
  test_now = a.qp.retry_at_ns;
  EXPECT_EQ(Execute(a.qp, request, 1, &completion), Outcome::kDone);
  EXPECT_EQ(completion.status, Status::kSuccess);
}

TEST_F(Connected, TimeoutZeroWaitsForEver) {
  b.qp.state = EndpointState::kReset;
  a.qp.timeout = 0;
  const SendRequest request = Request(Opcode::kSend, {a.At(0, 8)});
  Completion completion;
  for (uint32_t attempt = 0; attempt < 50; ++attempt) {
    ASSERT_EQ(Execute(a.qp, request, attempt, &completion), Outcome::kRetry);
    ASSERT_EQ(a.qp.retry_at_ns, 0u);
  }
}

TEST_F(Connected, ReceivingStatesOfThePeer) {
  struct {
    EndpointState state;
    bool receives;
  } const cases[] = {{EndpointState::kReset, false}, {EndpointState::kInit, false},
                     {EndpointState::kRtr, true},    {EndpointState::kRts, true},
                     {EndpointState::kSqd, true},    {EndpointState::kSqe, true},
                     {EndpointState::kErr, false}};
  for (const auto& one : cases) {
    b.qp.state = one.state;
    b.qp.Receive(1, {b.At(0, 8)});
    Completion completion;
    const Outcome outcome = Execute(a.qp, Request(Opcode::kSend, {a.At(0, 8)}), 0, &completion);
    EXPECT_EQ(outcome == Outcome::kDone, one.receives) << static_cast<int>(one.state);
  }
}

TEST_F(Connected, AnOverrunOfTheReceiversCqIsNotAcknowledged) {
  b.qp.Receive(1, {b.At(0, 8)});
  b.qp.overrun = true;
  a.qp.retry_count = 0;
  EXPECT_EQ(Run(Request(Opcode::kSend, {a.At(0, 8)})).status, Status::kRetryExceeded);  // class G
}

TEST_F(Connected, WriteImmediateWithABadKey) {
  b.qp.Receive(1, {b.At(0, 8)});
  SendRequest request = Remote(Opcode::kWriteImm, {a.At(0, 8)}, 0);
  request.rkey = 0xdead;
  ExpectBothInError(Status::kRemoteAccess, Run(request));
  EXPECT_TRUE(b.qp.completed.empty());
  EXPECT_EQ(b.qp.receives.size(), 1u);
  EXPECT_EQ(b.qp.events, std::vector<Event>{Event::kAccessError});

  // rxe_resp.c: check_resource comes before check_rkey; get_rkey_violation_state pins the error on
  // the receive.
  a.qp.state = b.qp.state = EndpointState::kRts;
  b.qp.errors = 0;
  b.qp.events.clear();
  b.qp.test_wording.access_takes_receive = true;
  ExpectBothInError(Status::kRemoteAccess, Run(request));
  EXPECT_EQ(b.qp.completed.at(0).completion.status, Status::kRemoteAccess);
  EXPECT_TRUE(b.qp.events.empty());

  // Of several packets the first one fails, and only the last would take a receive.
  a.qp.state = b.qp.state = EndpointState::kRts;
  b.qp.errors = 0;
  b.qp.completed.clear();
  b.qp.Receive(2, {b.At(0, 8)});
  request.sges[0].length = 1025;
  ExpectBothInError(Status::kRemoteAccess, Run(request));
  EXPECT_TRUE(b.qp.completed.empty());
  EXPECT_EQ(b.qp.events, std::vector<Event>{Event::kAccessError});
}

TEST_F(Connected, PacketSizesMustAgreeOnceThereAreSeveralPackets) {
  a.qp.mtu = 512;
  b.qp.Receive(1, {b.At(0, 4096)});
  EXPECT_EQ(Run(Request(Opcode::kSend, {a.At(0, 512)})).status, Status::kSuccess);
  b.qp.Receive(2, {b.At(0, 4096)});
  ExpectBothInError(Status::kRemoteInvalidRequest, Run(Request(Opcode::kSend, {a.At(0, 513)})));
  EXPECT_EQ(b.qp.completed.at(1).completion.status, Status::kLocalLength);
}

// rxe_req.c sends before anybody refuses; of a message that does not fit rxe_resp.c has put away
// what came before the packet that finds out.
TEST_F(Connected, ATooLongMessageArrivesUpToThePacketThatDoesNotFit) {
  a.qp.checks_psn = b.qp.checks_psn = true;
  a.qp.sq_psn = b.qp.rq_psn = 100;
  memset(b.memory, 0, 4096);
  a.memory[2047] = 0x5a;
  a.memory[2048] = 0x5b;
  b.qp.Receive(1, {b.At(0, 2500)});
  const Completion completion = Run(Request(Opcode::kSend, {a.At(0, 3000)}));
  EXPECT_NE(completion.status, Status::kSuccess);
  EXPECT_EQ(b.memory[2047], 0x5a) << "two packets of 1024 bytes";
  EXPECT_EQ(b.memory[2048], 0);
  EXPECT_EQ(b.qp.rq_psn, 102u);
  EXPECT_EQ(a.qp.sent_psn, 103u) << "all three were sent";
}

TEST_F(Connected, SequenceNumbersMustAgree) {
  a.qp.checks_psn = b.qp.checks_psn = true;
  a.qp.sq_psn = 0xfffffe;
  b.qp.rq_psn = 0xfffffe;
  EXPECT_EQ(Run(Remote(Opcode::kWrite, {a.At(0, 3000)}, 0)).status, Status::kSuccess);
  EXPECT_EQ(a.qp.sq_psn, 1u) << "three packets of 1024 bytes, 24 bits";
  EXPECT_EQ(b.qp.rq_psn, 1u);
  EXPECT_EQ(Run(Remote(Opcode::kRead, {a.At(0, 2048)}, 0)).status, Status::kSuccess);
  EXPECT_EQ(a.qp.sq_psn, 3u);
  EXPECT_EQ(b.qp.rq_psn, 3u);

  // Behind: a repetition, acknowledged and not carried out (C9-105).
  a.qp.sq_psn = 2;
  memset(b.memory, 0, 8);
  EXPECT_EQ(Run(Remote(Opcode::kWrite, {a.At(64, 8)}, 0)).status, Status::kSuccess);
  EXPECT_EQ(b.memory[0], 0);
  // Ahead: a gap.
  a.qp.sq_psn = 10;
  a.qp.retry_count = 1;
  ExpectOnlyRequesterInError(Status::kRetryExceeded, Run(Remote(Opcode::kWrite, {a.At(64, 8)}, 0)));
  // Nobody compares where one side keeps no numbers.
  a.qp.state = EndpointState::kRts;
  b.qp.checks_psn = false;
  EXPECT_EQ(Run(Remote(Opcode::kWrite, {a.At(64, 8)}, 0)).status, Status::kSuccess);
}

TEST_F(Connected, OpcodesThatTheServiceLacks) {
  for (Opcode opcode :
       {Opcode::kRead, Opcode::kFetchAdd, Opcode::kCompareSwap, Opcode::kSendInvalidate}) {
    SetService(Service::kUc);
    a.qp.state = EndpointState::kRts;
    EXPECT_EQ(Run(Remote(opcode, {a.At(0, 8)}, 0)).status, Status::kLocalQpOperation);
    EXPECT_EQ(a.qp.state, EndpointState::kSqe);
  }
  SetService(Service::kRc);
  for (Opcode opcode : {Opcode::kLocalInvalidate, Opcode::kBindMw, Opcode::kRegister}) {
    a.qp.state = EndpointState::kRts;
    EXPECT_EQ(Run(Request(opcode, {})).status, Status::kLocalQpOperation);
    EXPECT_EQ(a.qp.state, EndpointState::kErr);
  }
}

class Unreliable : public FabricTest {
 protected:
  void SetUp() override {
    FabricTest::SetUp();
    SetService(Service::kUc);
  }
};

TEST_F(Unreliable, SendsAndWrites) {
  b.qp.Receive(1, {b.At(0, 64)});
  EXPECT_EQ(Run(Request(Opcode::kSend, {a.At(0, 64)})).status, Status::kSuccess);
  EXPECT_EQ(b.qp.completed.at(0).completion.byte_length, 64u);
  EXPECT_EQ(Run(Remote(Opcode::kWrite, {a.At(0, 5000)}, 100)).status, Status::kSuccess);
  EXPECT_EQ(b.memory[100 + 4999], PatternAt(100, 4999));
}

TEST_F(Unreliable, TheSenderNeverLearns) {
  SendRequest bad_key = Remote(Opcode::kWrite, {a.At(0, 8)}, 0);
  bad_key.rkey = 0xdead;
  EXPECT_EQ(Run(bad_key).status, Status::kSuccess);
  EXPECT_EQ(Run(Request(Opcode::kSend, {a.At(0, 8)})).status, Status::kSuccess) << "no receive";
  b.qp.access = 0;
  EXPECT_EQ(Run(Remote(Opcode::kWrite, {a.At(0, 8)}, 0)).status, Status::kSuccess);
  b.qp.state = EndpointState::kInit;
  EXPECT_EQ(Run(Request(Opcode::kSend, {a.At(0, 8)})).status, Status::kSuccess);
  EXPECT_EQ(a.qp.state, EndpointState::kRts);
  EXPECT_EQ(b.qp.state, EndpointState::kInit);
  EXPECT_TRUE(Untouched(b, 0, 64));
}

TEST_F(Unreliable, LocalErrorsLeadToSqeOrAsTheDriverSays) {
  EXPECT_EQ(Run(Request(Opcode::kSend, {{0, 8, 1}})).status, Status::kLocalProtection);
  EXPECT_EQ(a.qp.state, EndpointState::kSqe);
  a.qp.test_wording.unreliable_local_error_is_sqe =
      false;  // rxe_req.c: rxe_qp_error for every service
  a.qp.state = EndpointState::kRts;
  Run(Request(Opcode::kSend, {{0, 8, 1}}));
  EXPECT_EQ(a.qp.state, EndpointState::kErr);
}

TEST_F(Unreliable, TooLongForTheReceive) {
  b.qp.Receive(1, {b.At(0, 4)});
  EXPECT_EQ(Run(Request(Opcode::kSend, {a.At(0, 8)})).status, Status::kSuccess);
  EXPECT_EQ(b.qp.completed.at(0).completion.status, Status::kLocalLength);
  EXPECT_EQ(b.qp.state, EndpointState::kErr);

  // rxe_resp.c, RESPST_ERR_LENGTH: class D without an SRQ, class E with one.
  b.qp.test_wording.uc_short = Wording::Short::kDropped;
  b.qp.state = EndpointState::kRts;
  b.qp.completed.clear();
  b.qp.Receive(2, {b.At(0, 4)});
  EXPECT_EQ(Run(Request(Opcode::kSend, {a.At(0, 8)})).status, Status::kSuccess);
  EXPECT_TRUE(b.qp.completed.empty());
  EXPECT_EQ(b.qp.receives.size(), 1u);
  b.qp.has_srq = true;
  EXPECT_EQ(Run(Request(Opcode::kSend, {a.At(0, 8)})).status, Status::kSuccess);
  EXPECT_EQ(b.qp.completed.at(0).completion.status, Status::kRemoteInvalidRequest);
  EXPECT_EQ(b.qp.state, EndpointState::kRts);
}

}  // namespace
}  // namespace vabi::fabric
