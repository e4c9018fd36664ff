// SPDX-License-Identifier: BSD-2-Clause
// Guarded access: faults end in results. Each test runs with the guard, and again through the
// kernel.
#include "shims/fabric/memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "shims/fabric/test_endpoint.h"

namespace vabi::fabric {
namespace {

constexpr size_t kPage = 4096;

// As good as unmapped, but nobody else can be given the page meanwhile.
void Vanish(void* page) { mprotect(page, kPage, PROT_NONE); }

class GuardedMemory : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    GuardInstall();
    if (!GetParam()) {
      // A program puts its own handler in place of ours.
      struct sigaction theirs = {};
      theirs.sa_handler = SIG_DFL;
      sigaction(SIGSEGV, &theirs, &ours_);
    }
    GuardCheck();
    pages_ = static_cast<uint8_t*>(
        mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t i = 0; i < 4 * kPage; ++i) pages_[i] = PatternAt(1, i);
    Vanish(pages_ + 2 * kPage);
  }
  void TearDown() override {
    munmap(pages_, 4 * kPage);
    if (!GetParam()) sigaction(SIGSEGV, &ours_, nullptr);
    GuardCheck();
  }
  uint64_t At(size_t offset) const { return reinterpret_cast<uintptr_t>(pages_ + offset); }

  struct sigaction ours_ = {};
  uint8_t* pages_ = nullptr;
};

TEST_P(GuardedMemory, LoadsAndStoresSingleWords) {
  uint32_t value = 0;
  EXPECT_TRUE(LoadMemory32(reinterpret_cast<uintptr_t>(pages_ + 8), &value));
  EXPECT_EQ(memcmp(&value, pages_ + 8, 4), 0);
  EXPECT_TRUE(StoreMemory8(reinterpret_cast<uintptr_t>(pages_ + 9), 0x5a));
  EXPECT_EQ(pages_[9], 0x5a);
  EXPECT_EQ(pages_[10], PatternAt(1, 10));
  EXPECT_FALSE(LoadMemory32(reinterpret_cast<uintptr_t>(pages_ + 2 * kPage), &value));
  EXPECT_FALSE(StoreMemory8(reinterpret_cast<uintptr_t>(pages_ + 2 * kPage), 1));
}

TEST_P(GuardedMemory, CopiesAndOverlaps) {
  std::vector<uint8_t> want(pages_, pages_ + 2 * kPage);
  for (const auto& [to, from, size] :
       {std::array<size_t, 3>{100, 0, 5000}, {0, 100, 5000}, {1, 0, 1}, {7, 6, 8000}}) {
    memmove(want.data() + to, want.data() + from, size);
    EXPECT_TRUE(CopyMemory(At(to), At(from), size));
    ASSERT_EQ(memcmp(pages_, want.data(), want.size()), 0) << to << " " << from << " " << size;
  }
}

TEST_P(GuardedMemory, WhatCannotBeReadIsZero) {
  std::vector<uint8_t> out(3 * kPage, 0xee);
  EXPECT_FALSE(ReadMemory(out.data(), At(kPage + 10), 2 * kPage + 90));
  for (size_t i = 0; i < 2 * kPage + 90; ++i) {
    const size_t offset = kPage + 10 + i;
    const bool gone = offset >= 2 * kPage && offset < 3 * kPage;
    ASSERT_EQ(out[i], gone ? 0 : PatternAt(1, offset)) << i;
  }
  EXPECT_FALSE(ReadMemory(out.data(), 0, 8));
}

TEST_P(GuardedMemory, WhatCannotBeWrittenIsLostAlone) {
  std::vector<uint8_t> in(2 * kPage);
  for (size_t i = 0; i < in.size(); ++i) in[i] = PatternAt(2, i);
  EXPECT_FALSE(WriteMemory(At(kPage + kPage / 2), in.data(), in.size()));
  for (size_t i = 0; i < kPage / 2; ++i)
    ASSERT_EQ(pages_[kPage + kPage / 2 + i], PatternAt(2, i)) << i;
  for (size_t i = 0; i < kPage / 2; ++i) {
    ASSERT_EQ(pages_[3 * kPage + i], PatternAt(2, i + kPage + kPage / 2)) << i;
  }
  mprotect(pages_, kPage, PROT_READ);
  EXPECT_FALSE(WriteMemory(At(0), in.data(), 8));
  EXPECT_EQ(pages_[0], PatternAt(1, 0));
}

TEST_P(GuardedMemory, Swaps) {
  uint64_t value = 5, seen = 0;
  WriteMemory(At(64), &value, sizeof(value));
  EXPECT_TRUE(SwapMemory(At(64), 4, 9, &seen));
  EXPECT_EQ(seen, 5u);
  EXPECT_TRUE(SwapMemory(At(64), 5, 9, &seen));
  ReadMemory(&value, At(64), sizeof(value));
  EXPECT_EQ(value, 9u);
  EXPECT_FALSE(SwapMemory(At(2 * kPage), 0, 1, &seen));
  mprotect(pages_, kPage, PROT_READ);
  EXPECT_FALSE(SwapMemory(At(64), 9, 1, &seen));
}

INSTANTIATE_TEST_SUITE_P(Ways, GuardedMemory, testing::Bool(),
                         [](const auto& info) { return info.param ? "Guard" : "Kernel"; });

// How a child that does `act` dies: the signal's number, or 0.
template <typename Act>
int DiesOf(Act act) {
  const pid_t child = fork();
  if (child == 0) {
    act();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Guard, LeavesOtherFaultsAlone) {
  EXPECT_EQ(DiesOf([] {
              GuardInstall();
              *static_cast<volatile int*>(nullptr) = 1;
            }),
            SIGSEGV);
  EXPECT_EQ(DiesOf([] {
              GuardInstall();
              kill(getpid(), SIGSEGV);
            }),
            SIGSEGV);
}
#endif

TEST(Guard, RegisteredMemoryThatIsGoneDoesNotCrash) {
  GuardInstall();
  GuardCheck();
  ForgetAll();
  auto image = std::make_unique<DeviceImage>();
  image->link = LinkLayer::kEthernet;
  image->port_count = 1;
  image->ports[0].gid_count = 1;
  AddDevice(0, *image);
  TestEndpoint qp;
  qp.qpn = qp.dest_qpn = 5;
  qp.state = EndpointState::kRts;
  qp.access = kAccessRemoteWrite | kAccessRemoteAtomic;
  AddEndpoint(&qp);
  void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::vector<uint8_t> here(kPage, 3);
  MemoryKey key = {};
  key.length = kPage;
  key.access = kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteAtomic;
  key.base = key.iova = reinterpret_cast<uintptr_t>(page);
  AddKey(0, 1, key);
  key.base = key.iova = reinterpret_cast<uintptr_t>(here.data());
  AddKey(0, 2, key);
  Vanish(page);

  SendRequest write;
  write.opcode = Opcode::kWrite;
  write.sge_count = 1;
  write.sges[0] = {key.base, 64, 2};
  write.rkey = 1;
  write.remote_address = reinterpret_cast<uintptr_t>(page);
  Completion completion;
  // The kernel would have the pages pinned: the NIC finds them, nobody else does.
  EXPECT_EQ(Execute(qp, write, 0, &completion), Outcome::kDone);
  EXPECT_EQ(completion.status, Status::kSuccess);
  write.opcode = Opcode::kFetchAdd;
  write.sges[0].length = 8;
  EXPECT_EQ(Execute(qp, write, 0, &completion), Outcome::kDone);
  EXPECT_EQ(completion.status, Status::kSuccess);
  // Paged on demand, there is nothing to find.
  FindKey(0, 1)->access |= kAccessOnDemand;
  write.opcode = Opcode::kWrite;
  EXPECT_EQ(Execute(qp, write, 0, &completion), Outcome::kDone);
  EXPECT_EQ(completion.status, Status::kRemoteAccess);
  ForgetAll();
}

}  // namespace
}  // namespace vabi::fabric
