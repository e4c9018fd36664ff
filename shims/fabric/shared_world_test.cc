// SPDX-License-Identifier: BSD-2-Clause
#include "shims/fabric/shared_world.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <set>

#include "shims/fabric/test_remote.h"

namespace vabi::fabric {
namespace {

class SharedWorldTest : public testing::Test {
 protected:
  // Runs `what` in a process of its own; true: it answered true.
  static bool InProcess(const std::function<bool()>& what) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(what() ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  bool Join(SharedWorld* world) { return world->Join(folder.path().c_str(), *image, &why); }

  Folder folder;
  std::unique_ptr<WorldImage> image = TestWorld(folder.path());
  const char* why = nullptr;
};

TEST_F(SharedWorldTest, NumbersAreTheKernelsFirstAndNobodyElses) {
  SharedWorld world;
  ASSERT_TRUE(Join(&world)) << why;
  EXPECT_EQ(world.TakeBlock(0), 0x11u);
  EXPECT_EQ(world.TakeBlock(1), 0x10011u);
  EXPECT_EQ(world.TakeBlock(0), 0x40u);
  EXPECT_TRUE(InProcess([&] {
    world.ForgetInChild();
    SharedWorld own;
    if (!Join(&own) || own.TakeBlock(0) != 0x80 || own.TakeBlock(1) != 0x10040) return false;
    const bool told = own.OwnerOf(0, 0x81) == own.self() && own.OwnerOf(0, 0x11) >= 0 &&
                      own.OwnerOf(0, 0x11) != own.self() && own.OwnerOf(0, 0xfff) == -1 &&
                      own.OwnerOf(1, 0x81) == -1;
    own.Leave();
    return told;
  }));
  EXPECT_EQ(world.OwnerOf(0, 0x81), -1) << "it is gone";
  world.Leave();
  EXPECT_TRUE(folder.empty());
}

TEST_F(SharedWorldTest, NumbersOfTheDeadAreUsedAgain) {
  SharedWorld world;
  ASSERT_TRUE(Join(&world)) << why;
  EXPECT_TRUE(InProcess([&] {
    world.ForgetInChild();
    SharedWorld own;
    if (!Join(&own)) return false;
    for (uint32_t i = 0; i < kBlocksOfDevice; ++i) {
      if (own.TakeBlock(0) == 0) return false;
    }
    return own.TakeBlock(0) == 0;  // and it dies without leaving
  }));
  EXPECT_NE(world.TakeBlock(0), 0u);
  world.Leave();
  EXPECT_TRUE(folder.empty());
}

TEST_F(SharedWorldTest, WhoDiedIsSeen) {
  SharedWorld world;
  ASSERT_TRUE(Join(&world)) << why;
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    world.ForgetInChild();
    SharedWorld own;
    const char good = Join(&own) ? static_cast<char>(own.self()) : -1;
    if (write(gate[1], &good, 1) != 1) _exit(1);
    pause();
  }
  char place = -1;
  ASSERT_EQ(read(gate[0], &place, 1), 1);
  ASSERT_GE(place, 0);
  const uint64_t identity = world.peer(place).identity.load();
  EXPECT_EQ(identity >> 32, static_cast<uint64_t>(child));
  EXPECT_TRUE(world.Alive(place, identity));
  kill(child, SIGKILL);
  // Nobody has waited for it: a process id that is still there.
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(world.Alive(place, identity));
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(world.Alive(place, identity));
  close(gate[0]);
  close(gate[1]);
  world.Leave();
  EXPECT_TRUE(folder.empty());
}

TEST_F(SharedWorldTest, OtherWorldsAndBuildsAreRefused) {
  SharedWorld world;
  ASSERT_TRUE(Join(&world)) << why;
  EXPECT_TRUE(InProcess([&] {
    world.ForgetInChild();
    image->device[0].ports[0].gids[0].raw[3] = 1;  // another address
    SharedWorld own;
    return !Join(&own) &&
           std::string(why) == "the processes in this run folder are of another world or build";
  }));
  world.Leave();
}

TEST_F(SharedWorldTest, AFileOfSomebodyElseIsLeftAlone) {
  const std::string path = folder.path() + "/fabric";
  FILE* file = fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  fputs("something else", file);
  fclose(file);
  SharedWorld world;
  EXPECT_FALSE(Join(&world));
  EXPECT_STREQ(why, "its file in the run folder is another build's");
  EXPECT_EQ(std::filesystem::file_size(path), 14u);
}

TEST_F(SharedWorldTest, WithoutAFolderThereIsNoWorld) {
  std::filesystem::remove_all(folder.path());
  SharedWorld world;
  EXPECT_FALSE(Join(&world));
  EXPECT_STREQ(why, "its file in the run folder cannot be opened");
  EXPECT_FALSE(world.joined());
}

TEST_F(SharedWorldTest, AFolderThatVanishesHarmsNobody) {
  SharedWorld world;
  ASSERT_TRUE(Join(&world)) << why;
  std::filesystem::remove_all(folder.path());
  EXPECT_EQ(world.TakeBlock(0), 0x11u);
  world.Leave();
  EXPECT_FALSE(world.joined());
}

TEST_F(SharedWorldTest, ALimitOnFilesIsNoSignal) {
  EXPECT_TRUE(InProcess([&] {
    const rlimit limit = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    SharedWorld own;
    return !Join(&own) && std::string(why).find("RLIMIT_FSIZE") != std::string::npos;
  }));
}

TEST_F(SharedWorldTest, ThereIsRoomForSoManyAndNoMore) {
  SharedWorld world;
  ASSERT_TRUE(Join(&world)) << why;
  int gate[2], ready[2];
  ASSERT_EQ(pipe(gate), 0);
  ASSERT_EQ(pipe(ready), 0);
  std::vector<pid_t> children;
  for (int i = 1; i < kMaxPeers; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      close(gate[1]);
      world.ForgetInChild();
      SharedWorld own;
      const char good = Join(&own);
      if (write(ready[1], &good, 1) != 1) _exit(1);
      char end;
      if (read(gate[0], &end, 1) != 0) _exit(1);
      _exit(0);
    }
    children.push_back(child);
  }
  for (int i = 1; i < kMaxPeers; ++i) {
    char good = 0;
    ASSERT_EQ(read(ready[0], &good, 1), 1);
    EXPECT_EQ(good, 1);
  }
  EXPECT_TRUE(InProcess([&] {
    world.ForgetInChild();
    SharedWorld own;
    return !Join(&own) && std::string(why) == "the world has as many processes as it can hold";
  }));
  close(gate[1]);
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  EXPECT_TRUE(InProcess([&] {
    world.ForgetInChild();
    SharedWorld own;
    if (!Join(&own)) return false;
    own.Leave();
    return true;
  })) << "the places of the dead are free";
  close(gate[0]);
  close(ready[0]);
  close(ready[1]);
  world.Leave();
  EXPECT_TRUE(folder.empty());
}

class RingTest : public testing::Test {
 protected:
  std::unique_ptr<Ring> ring = std::make_unique<Ring>();
  RingWriter writer;
  bool broken = false;

  void SetUp() override {
    writer.Begin(ring.get(), 7, 8);
    reader = RingReader(ring.get());
  }
  bool Put(uint32_t size, uint8_t byte) {
    FrameHead* frame = writer.Reserve(size);
    if (frame == nullptr) return false;
    memset(frame + 1, byte, size - sizeof(FrameHead));
    writer.Commit(frame);
    return true;
  }
  RingReader reader;
};

TEST_F(RingTest, FramesOfAllSizesComeOutInOrderAndWhole) {
  uint32_t state = 1;
  std::deque<std::pair<uint32_t, uint8_t>> expected;
  for (int i = 0; i < 5000; ++i) {
    state = state * 1664525 + 1013904223;
    const uint32_t size = FrameSize(sizeof(FrameHead) + (state >> 16) % 5000);
    if (Put(size, static_cast<uint8_t>(i))) {
      expected.emplace_back(size, static_cast<uint8_t>(i));
      continue;
    }
    ASSERT_FALSE(expected.empty()) << "no room in an empty ring for " << size;
    while (!expected.empty()) {
      FrameHead* frame = reader.Next(&broken);
      ASSERT_NE(frame, nullptr);
      ASSERT_EQ(reader.size(), expected.front().first);
      const auto* bytes = reinterpret_cast<const uint8_t*>(frame + 1);
      const std::vector<uint8_t> wanted(reader.size() - sizeof(FrameHead), expected.front().second);
      ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), bytes));
      reader.Consume();
      expected.pop_front();
    }
    ASSERT_EQ(reader.Next(&broken), nullptr);
    ASSERT_FALSE(broken);
  }
}

TEST_F(RingTest, WhatIsTakenBackIsNotRead) {
  FrameHead* first = writer.Reserve(64);
  writer.Commit(first);
  Put(32, 2);
  uint32_t ready = FrameHead::kReady;
  ASSERT_TRUE(first->shared_state().compare_exchange_strong(ready, FrameHead::kCancelled));
  ASSERT_NE(reader.Next(&broken), nullptr);
  EXPECT_EQ(reader.size(), 32u);
}

TEST_F(RingTest, NonsenseIsSeen) {
  Put(64, 1);
  for (const uint32_t size : {0u, 4u, 9u, kRingBytes + 8, 128u}) {
    reinterpret_cast<FrameHead*>(ring->bytes)->size = size;
    EXPECT_EQ(reader.Next(&broken), nullptr);
    EXPECT_TRUE(broken) << size;
  }
  ring->head.store(3 * kRingBytes);
  EXPECT_EQ(reader.Next(&broken), nullptr);
  EXPECT_TRUE(broken);
}

}  // namespace
}  // namespace vabi::fabric
