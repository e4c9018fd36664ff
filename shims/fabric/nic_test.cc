// SPDX-License-Identifier: BSD-2-Clause
#include "shims/fabric/nic.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace vabi::fabric {
namespace {

struct Counter : Pollable {
  bool Progress() override {
    ++rounds;
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGALRM) == 1 &&
              sigismember(&mask, SIGSEGV) == 0;
    if (work.load() == 0) return false;
    --work;
    ++done;
    return true;
  }
  bool NeedsPolling() const override { return polled; }

  bool polled = true;
  std::atomic<int> rounds{0}, work{0}, done{0};
  std::atomic<bool> blocked{false};
};

// Waits until `what` holds; a minute at most.
template <typename What>
bool Eventually(What what) {
  for (int i = 0; i < 60000 && !what(); ++i) usleep(1000);
  return what();
}

TEST(Nic, StepsWithoutAThread) {
  UseThread(false);
  Counter counter;
  AddPollable(&counter);
  EXPECT_FALSE(Step());
  counter.work = 2;
  EXPECT_TRUE(Step());
  EXPECT_TRUE(Step());
  EXPECT_FALSE(Step());
  EXPECT_EQ(counter.rounds, 4);
  RemovePollable(&counter);
  Step();
  EXPECT_EQ(counter.rounds, 4);
}

TEST(Nic, TheThreadFindsWorkThatNobodyAnnounced) {
  UseThread(true);
  Counter counter;
  AddPollable(&counter);
  counter.work = 100;
  EXPECT_TRUE(Eventually([&] { return counter.done == 100; }));
  EXPECT_TRUE(counter.blocked);
  RemovePollable(&counter);
}

TEST(Nic, KickWakesWhoIsNotPolled) {
  UseThread(true);
  Counter counter;
  counter.polled = false;
  AddPollable(&counter);
  for (int i = 1; i <= 50; ++i) {
    ++counter.work;
    Kick();
    ASSERT_TRUE(Eventually([&] { return counter.done == i; }));
  }
  RemovePollable(&counter);
}

TEST(Nic, RemovedIsPolledNoMore) {
  UseThread(true);
  for (int i = 0; i < 200; ++i) {
    auto counter = std::make_unique<Counter>();
    counter->work = 1 << 30;
    AddPollable(counter.get());
    RemovePollable(counter.get());
    counter.reset();  // a late poll would be a use after free
  }
}

TEST(Nic, CallersGetTheLockFromABusyNic) {
  UseThread(true);
  Counter counter;
  counter.work = 1 << 30;
  AddPollable(&counter);
  std::vector<std::thread> threads;
  std::atomic<int> turns{0};
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 300; ++turn) {
        std::lock_guard guard(Lock());
        ++turns;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turns, 900);
  RemovePollable(&counter);
}

#if !defined(__SANITIZE_THREAD__)
TEST(Nic, AForkedChildHasNoneAndIsNotStuck) {
  UseThread(true);
  Counter counter;
  counter.work = 1 << 30;
  AddPollable(&counter);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      const int before = counter.rounds;
      { std::lock_guard guard(Lock()); }
      Counter own;
      AddPollable(&own);
      RemovePollable(&own);
      usleep(2000);
      _exit(counter.rounds == before && own.rounds == 0 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  RemovePollable(&counter);
}

TEST(Nic, ExitWithABusyNicIsClean) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    // A process of its own: the NIC may start here.
    execl("/proc/self/exe", "fabric_test", "--gtest_filter=NicProcess.DISABLED_ExitsBusy",
          "--gtest_also_run_disabled_tests", static_cast<char*>(nullptr));
    _exit(9);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

// Run by ExitWithABusyNicIsClean.
TEST(NicProcess, DISABLED_ExitsBusy) {
  UseThread(true);
  static Counter* const counter = new Counter;
  counter->work = 1 << 30;
  AddPollable(counter);
  ASSERT_TRUE(Eventually([] { return counter->done > 0; }));
  exit(0);
}

}  // namespace
}  // namespace vabi::fabric
