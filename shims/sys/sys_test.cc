// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sys/sys.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

namespace vabi::sys {
namespace {

constexpr size_t kPage = 4096;

// Two pages, of which the second may not be touched.
class HalfMapped {
 public:
  HalfMapped() {
    base_ = static_cast<uint8_t*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + kPage, kPage, PROT_NONE);
  }
  ~HalfMapped() { munmap(base_, 2 * kPage); }
  uint8_t* edge() { return base_ + kPage; }

 private:
  uint8_t* base_;
};

uint64_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

TEST(CopyFromUser, CopiesHeapAndStack) {
  std::vector<uint8_t> heap = {1, 2, 3, 4, 5};
  uint8_t stack[5] = {9, 8, 7, 6, 5};
  uint8_t out[5] = {};
  EXPECT_EQ(0, CopyFromUser(out, Address(heap.data()), 5));
  EXPECT_EQ(0, memcmp(out, heap.data(), 5));
  EXPECT_EQ(0, CopyFromUser(out, Address(stack), 5));
  EXPECT_EQ(0, memcmp(out, stack, 5));
}

TEST(CopyFromUser, AnswersEfaultInsteadOfACrash) {
  HalfMapped memory;
  uint8_t out[16];
  EXPECT_EQ(-EFAULT, CopyFromUser(out, 0, 1));
  EXPECT_EQ(-EFAULT, CopyFromUser(out, Address(memory.edge()), 1));
  EXPECT_EQ(-EFAULT, CopyFromUser(out, Address(memory.edge()) - 8, 16));
  EXPECT_EQ(-EFAULT, CopyFromUser(out, ~0ULL - 4, 16));
  EXPECT_EQ(-EFAULT, CopyFromUser(out, 0xffff800000000000ULL, 16));
  EXPECT_EQ(0, CopyFromUser(out, Address(memory.edge()) - 16, 16));
}

// A 64-bit kernel takes the whole of a pointer from a field of 64 bits (u64_to_user_ptr): one that
// a 32-bit library sent with its sign extended is not cut to what was meant.
TEST(CopyFromUser, TakesAddressesWhole) {
  std::vector<uint8_t> heap = {1, 2, 3, 4};
  uint8_t stack[4] = {}, out[4];
  for (const void* there :
       {static_cast<const void*>(heap.data()), static_cast<const void*>(stack)}) {
    EXPECT_EQ(-EFAULT, CopyFromUser(out, Address(there) | 0xffffffff00000000, 4));
    EXPECT_EQ(-EFAULT, CopyToUser(Address(there) | 0xffffffff00000000, out, 4));
    EXPECT_FALSE(UserRangeMapped(Address(there) | 0xffffffff00000000, 4, false));
    if (sizeof(void*) == 4) {
      EXPECT_EQ(-EFAULT, CopyFromUser(out, Address(there) + (1ULL << 32), 4));
      EXPECT_EQ(-EFAULT, CopyToUser(Address(there) + (1ULL << 32), out, 4));
      EXPECT_FALSE(UserRangeMapped(Address(there) + (1ULL << 32), 4, false));
    }
  }
}

TEST(CopyFromUser, NothingIsNeverAFault) {
  uint8_t out;
  EXPECT_EQ(0, CopyFromUser(&out, 0, 0));
}

TEST(CopyToUser, AnswersEfaultForReadOnlyMemory) {
  void* page = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(-EFAULT, CopyToUser(Address(page), "x", 1));
  munmap(page, kPage);
}

TEST(CopyToUser, WorksInAForkedChildAndInThreads) {
  int value = 0;
  auto* heap = new int(0);
  ASSERT_EQ(0, CopyToUser(Address(heap), "\1\0\0\0", 4));
  const pid_t child = fork();
  if (child == 0) {
    const int one = 1;
    const bool good = CopyToUser(Address(heap), &one, sizeof(one)) == 0 && *heap == 1 &&
                      CopyFromUser(&value, Address(heap), sizeof(value)) == 0 && value == 1;
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  std::thread([&] {
    int mine = 7, out = 0;
    EXPECT_EQ(0, CopyFromUser(&out, Address(&mine), sizeof(out)));
    EXPECT_EQ(7, out);
    EXPECT_EQ(0, CopyToUser(Address(heap), &mine, sizeof(mine)));
  }).join();
  EXPECT_EQ(7, *heap);
  delete heap;
}

TEST(UserRangeMapped, AsksForWholePagesAndForTheRight) {
  HalfMapped memory;
  EXPECT_TRUE(UserRangeMapped(Address(memory.edge()) - 10, 10, true));
  EXPECT_FALSE(UserRangeMapped(Address(memory.edge()) - 10, 11, false));
  EXPECT_FALSE(UserRangeMapped(0, kPage, false));
  void* page = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_TRUE(UserRangeMapped(Address(page), kPage, false));
  EXPECT_FALSE(UserRangeMapped(Address(page), kPage, true));
  munmap(page, kPage);
}

TEST(UserRangeMapped, AnswersTheSameForLargeRanges) {
  constexpr size_t kSize = 8u << 20;
  auto* base = static_cast<uint8_t*>(
      mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  EXPECT_TRUE(UserRangeMapped(Address(base), kSize, true));
  mprotect(base + kSize / 2, kPage, PROT_READ);
  EXPECT_TRUE(UserRangeMapped(Address(base), kSize, false));
  EXPECT_FALSE(UserRangeMapped(Address(base), kSize, true));
  munmap(base + kSize / 2, kPage);
  EXPECT_FALSE(UserRangeMapped(Address(base), kSize, false));
  munmap(base, kSize);
}

TEST(Syscall, ReturnsMinusErrnoAndLeavesErrnoAlone) {
  errno = 77;
  EXPECT_EQ(-EBADF, Close(-1));
  EXPECT_EQ(-ENOENT, Open("/does/not/exist", O_RDONLY));
  EXPECT_EQ(77, errno);
}

}  // namespace
}  // namespace vabi::sys
