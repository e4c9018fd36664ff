// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sys/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

#include "shims/sys/sys.h"

namespace vabi::sys {
namespace {

constexpr size_t kPage = 4096;

int LowestFree() {
  const int fd = MemfdCreate("probe", 0);
  Close(fd);
  return fd;
}

class SharedMemoryTest : public testing::Test {
 protected:
  SharedMemoryTest() : memory_(static_cast<uint8_t*>(MakeShared(3 * kPage))) {}
  ~SharedMemoryTest() override { Munmap(memory_, 3 * kPage); }
  uint8_t* const memory_;
};

TEST_F(SharedMemoryTest, IsSeenInEachMapping) {
  auto* other = static_cast<uint8_t*>(
      MapAgain(memory_ + kPage, 2 * kPage, nullptr, PROT_READ | PROT_WRITE, MAP_SHARED));
  ASSERT_FALSE(IsError(other));
  EXPECT_EQ(0, other[0]);
  memory_[kPage] = 5;
  EXPECT_EQ(5, other[0]);
  other[2 * kPage - 1] = 6;
  EXPECT_EQ(6, memory_[3 * kPage - 1]);
  Munmap(other, 2 * kPage);
  EXPECT_EQ(5, memory_[kPage]);
}

TEST_F(SharedMemoryTest, OutlivesTheFirstMapping) {
  auto* first = static_cast<uint8_t*>(MakeShared(kPage));
  first[1] = 7;
  auto* second = static_cast<uint8_t*>(MapAgain(first, kPage, nullptr, PROT_READ, MAP_SHARED));
  Munmap(first, kPage);
  EXPECT_EQ(7, second[1]);
  Munmap(second, kPage);
}

TEST_F(SharedMemoryTest, HasTheProtectionAskedFor) {
  auto* other = static_cast<uint8_t*>(MapAgain(memory_, kPage, nullptr, PROT_READ, MAP_SHARED));
  const uint64_t address = reinterpret_cast<uintptr_t>(other);
  EXPECT_TRUE(UserRangeMapped(address, kPage, false));
  EXPECT_FALSE(UserRangeMapped(address, kPage, true));
  Munmap(other, kPage);
}

TEST_F(SharedMemoryTest, GoesWhereItMust) {
  void* place = Mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  EXPECT_EQ(-EEXIST,
            ErrorOf(MapAgain(memory_, kPage, place, kBoth, MAP_SHARED | MAP_FIXED_NOREPLACE)));
  EXPECT_EQ(place, MapAgain(memory_, kPage, place, kBoth, MAP_SHARED | MAP_FIXED));
  memory_[9] = 9;
  EXPECT_EQ(9, static_cast<uint8_t*>(place)[9]);
  Munmap(place, kPage);
}

TEST_F(SharedMemoryTest, TakesNoDescriptor) {
  const int before = LowestFree();
  void* more = MakeShared(kPage);
  void* again = MapAgain(more, kPage, nullptr, PROT_READ, MAP_SHARED);
  EXPECT_EQ(before, LowestFree());
  Munmap(more, kPage);
  Munmap(again, kPage);
}

}  // namespace
}  // namespace vabi::sys
