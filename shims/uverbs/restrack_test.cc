// SPDX-License-Identifier: BSD-2-Clause
// What core/restrack.c has of programs, and core/nldev.c tells of them.
#include "shims/uverbs/restrack.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "shims/uverbs/test_uverbs.h"

namespace vabi {
namespace {

class RestrackTest : public UverbsTest {
 protected:
  ~RestrackTest() override {
    if (folder_.empty()) return;
    unlink((folder_ + "/restrack").c_str());
    rmdir(folder_.c_str());
  }
  std::vector<Tracked> All(TrackType type) { return FindTracked(world().image(), 0, type); }
  // From now on the world has a run folder: its table is empty, and children see it.
  void UseFolder() {
    char folder[] = "/tmp/vabi-restrack-XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(folder));
    folder_ = folder;
    std::strcpy(image().run_dir, folder);
  }
  // A slot for a memory region, or 0.
  uint32_t TakeSlot() {
    Tracked entry = {};
    entry.type = TrackType::kMr;
    uint32_t slot = 0;
    TrackEntry(world().image(), entry, &slot);
    return slot;
  }

 private:
  std::string folder_;
};

TEST_F(RestrackTest, KnowsWhatAProgramHas) {
  EXPECT_TRUE(All(TrackType::kCtx).empty());
  OpenContext();
  ASSERT_EQ(1u, All(TrackType::kCtx).size());
  const uint32_t handle = AllocPd();
  const auto pds = All(TrackType::kPd);
  ASSERT_EQ(1u, pds.size());
  EXPECT_EQ(static_cast<uint32_t>(getpid()), pds[0].pid);
  EXPECT_EQ(All(TrackType::kCtx)[0].id, pds[0].context);
  EXPECT_NE(0u, pds[0].id) << "ib_mad_port_open has made the first";
  AllocPd();
  EXPECT_EQ(pds[0].id + 1, All(TrackType::kPd).at(1).id) << "xa_alloc_cyclic";
  EXPECT_GT(
      Write(4,
            S(VABI_S(ib_uverbs_dealloc_pd)).With(VABI_F(ib_uverbs_dealloc_pd, pd_handle), handle)),
      0);
  EXPECT_EQ(1u, All(TrackType::kPd).size());
  file_->Release();
  EXPECT_TRUE(All(TrackType::kPd).empty());
  EXPECT_TRUE(All(TrackType::kCtx).empty());
}

// A program may have more than the table keeps: that is told to who asks for objects, not to it.
TEST_F(RestrackTest, WhatHasNoRoomIsLostWithoutAWord) {
  constexpr uint32_t kMore = 10'000;
  UseFolder();
  EXPECT_FALSE(LostTrack(world().image()));
  std::vector<uint32_t> slots(kMore);
  for (uint32_t& slot : slots) slot = TakeSlot();
  EXPECT_TRUE(LostTrack(world().image()));
  const size_t kept = All(TrackType::kMr).size();
  EXPECT_EQ(kMore - kept, std::count(slots.begin(), slots.end(), 0u));
  for (const nlohmann::json& line : Trace())
    EXPECT_NE("unmodelled", line.value("event", std::string())) << line;
  for (uint32_t& slot : slots) UntrackEntry(world().image(), &slot);
  EXPECT_TRUE(All(TrackType::kMr).empty());
  EXPECT_NE(0u, TakeSlot()) << "there is room again";
}

// Room that only the dead have is found.
TEST_F(RestrackTest, TheRoomOfTheDeadIsTaken) {
  UseFolder();
  const pid_t child = fork();
  if (child == 0) {
    while (TakeSlot() != 0) continue;
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_NE(0u, TakeSlot());
  EXPECT_EQ(1u, All(TrackType::kMr).size());
}

// Entries of a process that ended without a word go when somebody looks.
TEST_F(RestrackTest, TheDeadHaveNothing) {
  UseFolder();
  const pid_t child = fork();
  if (child == 0) _exit(TakeSlot() != 0 ? 0 : 1);
  int status = 0;
  siginfo_t ended;
  ASSERT_EQ(0, waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT));
  EXPECT_EQ(0, ended.si_status);
  EXPECT_EQ(1u, All(TrackType::kMr).size()) << "it is not reaped yet";
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_TRUE(All(TrackType::kMr).empty());
}

}  // namespace
}  // namespace vabi
