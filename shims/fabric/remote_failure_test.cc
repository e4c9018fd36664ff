// SPDX-License-Identifier: BSD-2-Clause
// Peers that come late, stall, die: the right completion, and nothing left behind (RemoteTest looks
// at the run folder when each test ends).
#include <dirent.h>

#include "shims/fabric/pull.h"
#include "shims/fabric/test_remote.h"

namespace vabi::fabric {
namespace {

class RemoteFailure : public RemoteTest {
 protected:
  void TearDown() override {
    SetStallLimit(5000000000);
    RemoteTest::TearDown();
  }
  // The other process stands still, with a large request on its way to it.
  void PostToTheStopped(Opcode opcode) {
    Start(Service::kRc);
    own.retry_count = 2;
    kill(other, SIGSTOP);
    ASSERT_EQ(Post(Request(opcode, 0, 500000), &completion), Outcome::kSent);
  }
  Completion completion;
};

size_t Count(const char* folder) {
  size_t count = 0;
  DIR* dir = opendir(folder);
  if (dir == nullptr) return 0;
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

TEST_F(RemoteFailure, APeerThatDiesInTheMiddleOfAReadIsSilent) {
  ASSERT_NO_FATAL_FAILURE(PostToTheStopped(Opcode::kRead));
  ASSERT_EQ(Post(Request(Opcode::kWrite, 0, 8), &completion), Outcome::kSent);
  for (int i = 0; i < 20; ++i) Step();
  EXPECT_TRUE(own.answers.empty());
  Kill();
  ASSERT_TRUE(Until([&] { return !own.answers.empty(); }));
  EXPECT_EQ(own.answers[0].status, Status::kRetryExceeded);
  EXPECT_EQ(own.state, EndpointState::kErr);
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(bytes[i], PatternAt(1, i)) << "nothing was read";
  EXPECT_FALSE(IsUnderWay(own));
}

TEST_F(RemoteFailure, APeerThatExitedIsSilent) {
  Start(Service::kRc);
  own.retry_count = 1;
  EXPECT_EQ(Run(Request(Opcode::kWrite, 0, 8)).status, Status::kSuccess);
  End();
  EXPECT_EQ(Run(Request(Opcode::kWrite, 0, 8)).status, Status::kRetryExceeded);
}

// What it did not take up fills its ring, and nobody makes room there any more.
TEST_F(RemoteFailure, APeerThatDiesBehindAFullRingIsSilent) {
  ASSERT_NO_FATAL_FAILURE(PostToTheStopped(Opcode::kWrite));
  for (int i = 0; i < 20; ++i) Step();
  Kill();
  ASSERT_TRUE(Until([&] { return !own.answers.empty(); }));
  EXPECT_EQ(own.answers[0].status, Status::kRetryExceeded);
  EXPECT_FALSE(IsUnderWay(own));
  own.state = EndpointState::kRts;
  EXPECT_EQ(Run(Request(Opcode::kWrite, 0, 8)).status, Status::kRetryExceeded);
}

// The one that filled the ring is destroyed before anybody looked: the next one is not kept
// waiting.
TEST_F(RemoteFailure, ARingThatTheDeadLeftFullHoldsNobodyUp) {
  ASSERT_NO_FATAL_FAILURE(PostToTheStopped(Opcode::kWrite));
  {
    std::lock_guard lock(Lock());
    DropSent(own);
  }
  Kill();
  Completion second;
  ASSERT_EQ(Post(Request(Opcode::kWrite, 0, 8), &second), Outcome::kRetry);
  uint32_t attempt = 0;
  Outcome outcome = Outcome::kRetry;
  ASSERT_TRUE(Until([&] {
    outcome = Post(Request(Opcode::kWrite, 0, 8), &second, attempt++);
    return outcome == Outcome::kDone;
  }));
  EXPECT_EQ(second.status, Status::kRetryExceeded);
}

// Nor does one that stands still behind it: the time is that of any answer.
TEST_F(RemoteFailure, ARingThatTheStoppedLeftFullHoldsNobodyUpForLong) {
  ASSERT_NO_FATAL_FAILURE(PostToTheStopped(Opcode::kWrite));
  SetStallLimit(200000000);
  {
    std::lock_guard lock(Lock());
    DropSent(own);
  }
  own.state = EndpointState::kRts;
  Completion second;
  ASSERT_EQ(Post(Request(Opcode::kWrite, 0, 8), &second), Outcome::kRetry);
  uint32_t attempt = 1;
  const auto again = [&] { return Post(Request(Opcode::kWrite, 0, 8), &second, attempt++); };
  ASSERT_EQ(again(), Outcome::kRetry) << "it may go on yet";
  // As drivers do: not before they are told that it may go on.
  auto seen_resumed = own.resumed;
  ASSERT_TRUE(Until([&] {
    if (own.resumed == seen_resumed) return false;
    seen_resumed = own.resumed;
    return again() == Outcome::kDone;
  }));
  EXPECT_EQ(second.status, Status::kRetryExceeded);
  own.state = EndpointState::kRts;
  own.service = Service::kUc;
  ASSERT_TRUE(Until([&] { return again() == Outcome::kDone; }));
  EXPECT_EQ(second.status, Status::kSuccess) << "nobody answers on UC";
  kill(other, SIGCONT);
}

TEST_F(RemoteFailure, ADestroyedQueuePairIsSilent) {
  Start(Service::kRc);
  own.retry_count = 3;
  Ask(kDestroy);
  EXPECT_EQ(Run(Request(Opcode::kWrite, 0, 8)).status, Status::kRetryExceeded);
}

TEST_F(RemoteFailure, ForEverIsForEver) {
  Start(Service::kRc);
  own.retry_count = Endpoint::kForever;
  Ask(kDestroy);
  Completion completion;
  ASSERT_EQ(Post(Request(Opcode::kWrite, 0, 8), &completion), Outcome::kSent);
  for (int i = 0; i < 2000; ++i) {
    Step();
    usleep(10);
  }
  EXPECT_TRUE(own.answers.empty());
}

// It is there, and in a state in which it takes nothing; then it gets ready, while the tries go on.
TEST_F(RemoteFailure, APeerThatIsReadyLateIsReached) {
  Start(Service::kRc);
  own.retry_count = Endpoint::kForever;
  Ask(kNotReady);
  Completion completion;
  ASSERT_EQ(Post(Request(Opcode::kWrite, 0, 8), &completion), Outcome::kSent);
  ASSERT_EQ(Post(Request(Opcode::kWrite, 8, 8), &completion), Outcome::kSent);
  ASSERT_TRUE(Until([&] { return own.flow_tries() > 2; }));
  EXPECT_TRUE(own.answers.empty());
  Ask(kReady);
  ASSERT_TRUE(Until([&] { return own.answers.size() == 2; }));
  EXPECT_EQ(own.answers[0].status, Status::kSuccess);
  EXPECT_EQ(own.answers[1].status, Status::kSuccess);
}

// Nothing of the other process can be reached yet.
TEST_F(RemoteFailure, APeerThatComesLateIsReached) {
  Start(Service::kRc, [](Endpoint2& qp) { qp.state = EndpointState::kInit; });
  own.retry_count = Endpoint::kForever;
  Completion completion;
  uint32_t attempt = 0;
  for (; attempt < 3; ++attempt) {
    ASSERT_EQ(Post(Request(Opcode::kWrite, 0, 8), &completion, attempt), Outcome::kRetry);
    usleep(50);
  }
  EXPECT_GT(own.silent_tries, 0u);
  Ask(kReady);
  ASSERT_TRUE(Until([&] {
    return Post(Request(Opcode::kWrite, 0, 8), &completion, attempt++) == Outcome::kSent;
  }));
  ASSERT_TRUE(Until([&] { return own.answers.size() == 1; }));
  EXPECT_EQ(own.answers[0].status, Status::kSuccess);
}

// Its NIC would have gone on: the time for an answer does not run while the process stands still.
TEST_F(RemoteFailure, APeerThatStallsForAWhileHasNotFailed) {
  Start(Service::kRc);
  own.retry_count = 1;
  kill(other, SIGSTOP);
  Completion completion;
  ASSERT_EQ(Post(Request(Opcode::kWrite, 0, 8), &completion), Outcome::kSent);
  for (int i = 0; i < 300; ++i) {
    Step();
    usleep(1000);
  }
  EXPECT_TRUE(own.answers.empty());
  kill(other, SIGCONT);
  ASSERT_TRUE(Until([&] { return !own.answers.empty(); }));
  EXPECT_EQ(own.answers[0].status, Status::kSuccess);
}

TEST_F(RemoteFailure, APeerThatStallsForLongHasFailed) {
  Start(Service::kRc);
  SetStallLimit(200000000);
  own.retry_count = 1;
  kill(other, SIGSTOP);
  Completion completion;
  ASSERT_EQ(Post(Request(Opcode::kWrite, 0, 5000), &completion), Outcome::kSent);
  ASSERT_TRUE(Until([&] { return !own.answers.empty(); }));
  EXPECT_EQ(own.answers[0].status, Status::kRetryExceeded);
  // What it was asked for has been taken back: it finds nothing when it goes on.
  std::fill(bytes.begin(), bytes.end(), 0);
  kill(other, SIGCONT);
  Ask(kNone1);
  for (uint32_t i = 0; i < 5000; ++i) ASSERT_EQ(seen->bytes[i], PatternAt(2, i)) << i;
}

// The program frees its memory behind a queue pair that it has destroyed.
TEST_F(RemoteFailure, ADestroyedRequesterLetsNobodyReadItsMemory) {
  Start(Service::kRc);
  EXPECT_EQ(Run(Request(Opcode::kWrite, 0, 1)).status, Status::kSuccess);  // pulling is agreed on
  kill(other, SIGSTOP);
  Completion completion;
  ASSERT_EQ(Post(Request(Opcode::kWrite, 1, 5000), &completion), Outcome::kSent);
  {
    std::lock_guard lock(Lock());
    RemoveEndpoint(&own);
  }
  std::fill(bytes.begin(), bytes.end(), 0);
  kill(other, SIGCONT);
  Ask(kNone1);
  for (uint32_t i = 1; i < 5000; ++i) ASSERT_EQ(seen->bytes[i], PatternAt(2, i)) << i;
}

TEST_F(RemoteFailure, ARequesterThatDiesLeavesTheResponderWhole) {
  Start(Service::kRc);
  // The other side asks now. A small one first: whether its memory can be read is found out.
  seen->length = 1;
  Ask(kSendBack);
  ASSERT_TRUE(Until([&] { return bytes[0] == PatternAt(2, 0); }));
  seen->length = 5000;
  Ask(kSendBack);
  Kill();
  for (int i = 0; i < 50; ++i) Step();
  EXPECT_EQ(own.state, EndpointState::kRts);
  for (uint32_t i = 1; i < kSize; ++i) ASSERT_EQ(bytes[i], PatternAt(1, i)) << i;
  EXPECT_TRUE(own.completed.empty());
}

TEST_F(RemoteFailure, AForkedChildLeavesItsParentsPlaceAlone) {
  Start(Service::kRc);
  EXPECT_EQ(Run(Request(Opcode::kWrite, 0, 8)).status, Status::kSuccess);
  Completion completion;
  ASSERT_EQ(Post(Request(Opcode::kWrite, 0, 8), &completion), Outcome::kSent);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    // Its copy of the queue pair reaches nobody, and exit() touches nothing of its parent's.
    Completion ignored;
    uint32_t attempt = 0;
    own.retry_count = 0;
    Outcome outcome = Outcome::kRetry;
    for (int i = 0; i < 1000 && outcome == Outcome::kRetry; ++i, usleep(100)) {
      outcome = Post(Request(Opcode::kWrite, 0, 8), &ignored, attempt++);
      Step();
    }
    const bool good =
        outcome == Outcome::kDone && ignored.status == Status::kRetryExceeded && !IsUnderWay(own);
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ASSERT_TRUE(Until([&] { return own.answers.size() == 2; }));
  EXPECT_EQ(own.answers[1].status, Status::kSuccess);
  EXPECT_EQ(Run(Request(Opcode::kWrite, 0, 8)).status, Status::kSuccess);
}

TEST_F(RemoteFailure, TheThreadComesWithTheFirstThatCanBeReachedAndGoesWithTheLast) {
  const size_t descriptors = Count("/proc/self/fd");
  const size_t before = Count("/proc/self/task");
  UseThread(true);
  Start(Service::kRc);
  EXPECT_EQ(Run(Request(Opcode::kWrite, 0, 8)).status, Status::kSuccess);
  EXPECT_EQ(Count("/proc/self/task"), before + 1);
  EXPECT_EQ(Count("/proc/self/fd"), descriptors + 1) << "the test's own pipe";
  {
    std::lock_guard lock(Lock());
    RemoveEndpoint(&own);
    own.qpn = 0;
  }
  Unattend();
  for (int i = 0; i < 20000 && Count("/proc/self/task") != before; ++i) usleep(1000);
  EXPECT_EQ(Count("/proc/self/task"), before);
  UseThread(false);
}

}  // namespace
}  // namespace vabi::fabric
