// SPDX-License-Identifier: BSD-2-Clause
// Expected answers: mm/mremap.c:check_prep_vma (before 6.17 vma_to_resize), mm/madvise.c,
// mm/mprotect.c:do_mprotect_pkey, for the flags that remap_pfn_range, vm_insert_page and
// remap_vmalloc_range give (4.4 to 7.3).
#include "shims/libc/mappings.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>

namespace vabi::libc {
namespace {

constexpr size_t kPage = 4096;
using Pages = DeviceVma::Pages;

// Shared memory of so many pages that is taken for a device's.
class Area {
 public:
  explicit Area(Pages pages, size_t count = 1, bool may_write = true) : size_(count * kPage) {
    begin_ = reinterpret_cast<uintptr_t>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    VmaTable::Add({.begin = begin_, .end = begin_ + size_, .pages = pages, .may_write = may_write});
  }
  ~Area() { MunmapDevice(begin_, size_); }
  Area(const Area&) = delete;
  Area& operator=(const Area&) = delete;
  uintptr_t begin() const { return begin_; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  uintptr_t begin_;
};

TEST(Mappings, OthersAreNotLookedAt) {
  void* const low = reinterpret_cast<void*>(kPage);
  EXPECT_FALSE(MayMapDevice(low, ~size_t{0} / 2)) << "there is none";
  {
    const Area area(Pages::kIo, 2);
    const auto at = [&](size_t bytes) { return reinterpret_cast<void*>(area.begin() + bytes); };
    EXPECT_TRUE(MayMapDevice(at(0), 1));
    EXPECT_TRUE(MayMapDevice(at(2 * kPage - 1), 1));
    EXPECT_FALSE(MayMapDevice(at(2 * kPage), kPage));
    EXPECT_FALSE(MayMapDevice(reinterpret_cast<void*>(area.begin() - kPage), kPage));
    EXPECT_EQ(0, MunmapDevice(area.begin(), kPage));
    EXPECT_FALSE(MayMapDevice(at(0), kPage));
    EXPECT_TRUE(MayMapDevice(at(kPage), kPage));
  }
  EXPECT_FALSE(MayMapDevice(low, ~size_t{0} / 2));
}

TEST(Mappings, TakeTheAdviceThatKernelsTake) {
  struct Case {
    int advice;
    int io, inserted, vmalloc;
  };
  const Case cases[] = {
      {MADV_NORMAL, 0, 0, 0},
      {MADV_DONTFORK, 0, 0, 0},
      {MADV_DOFORK, -EINVAL, 0, 0},
      {MADV_DONTDUMP, 0, 0, 0},
      {MADV_DODUMP, -EINVAL, -EINVAL, -EINVAL},
      {MADV_DONTNEED, -EINVAL, 0, 0},
      {MADV_FREE, -EINVAL, -EINVAL, -EINVAL},
      {MADV_REMOVE, -ENODEV, -ENODEV, -ENODEV},
      {18 /* MADV_WIPEONFORK */, -EINVAL, -EINVAL, -EINVAL},
      {20 /* MADV_COLD */, -EINVAL, 0, 0},
      {22 /* MADV_POPULATE_READ */, -EINVAL, 0, 0},
      {102 /* MADV_GUARD_INSTALL */, -EINVAL, -EINVAL, -EINVAL},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(one.io, MadviseDevice(Area(Pages::kIo).begin(), kPage, one.advice)) << one.advice;
    EXPECT_EQ(one.inserted, MadviseDevice(Area(Pages::kInserted).begin(), kPage, one.advice))
        << one.advice;
    EXPECT_EQ(one.vmalloc, MadviseDevice(Area(Pages::kVmalloc).begin(), kPage, one.advice))
        << one.advice;
  }
  const Area area(Pages::kIo);
  EXPECT_EQ(-EINVAL, MadviseDevice(area.begin() + 1, kPage, MADV_NORMAL)) << "the machine's answer";
  EXPECT_EQ(0, MadviseDevice(area.begin(), 0, MADV_DODUMP)) << "nothing";
}

TEST(Mappings, DoNotGrow) {
  const Area io(Pages::kIo), inserted(Pages::kInserted), vmalloc(Pages::kVmalloc);
  for (const Area* area : {&io, &vmalloc}) {
    EXPECT_EQ(-EFAULT, MremapDevice(area->begin(), kPage, 2 * kPage, MREMAP_MAYMOVE, 0));
    EXPECT_EQ(-EFAULT, MremapDevice(area->begin(), 0, kPage, MREMAP_MAYMOVE, 0)) << "a second one";
    EXPECT_EQ(-EINVAL, MremapDevice(area->begin(), kPage, kPage, MREMAP_MAYMOVE | 4, 0))
        << "MREMAP_DONTUNMAP";
    EXPECT_EQ(-EINVAL, MremapDevice(area->begin(), kPage, 2 * kPage, 64, 0)) << "an unknown flag";
    EXPECT_EQ(-EINVAL, MremapDevice(area->begin() + 1, kPage, 2 * kPage, 0, 0));
    EXPECT_EQ(static_cast<long>(area->begin()), MremapDevice(area->begin(), kPage, kPage, 0, 0));
  }
  const long grown = MremapDevice(inserted.begin(), kPage, 2 * kPage, MREMAP_MAYMOVE, 0);
  ASSERT_FALSE(grown < 0 && grown > -4096);
  MunmapDevice(static_cast<uintptr_t>(grown), 2 * kPage);
}

TEST(Mappings, AreKnownWhereTheyWereMoved) {
  const Area area(Pages::kIo);
  void* const room = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto target = reinterpret_cast<uintptr_t>(room);
  ASSERT_EQ(static_cast<long>(target),
            MremapDevice(area.begin(), kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, target));
  EXPECT_TRUE(MayMapDevice(room, kPage));
  EXPECT_EQ(-EINVAL, MadviseDevice(target, kPage, MADV_DODUMP));
  EXPECT_FALSE(MayMapDevice(reinterpret_cast<void*>(area.begin()), kPage));
  EXPECT_EQ(0, MunmapDevice(target, kPage));
  EXPECT_FALSE(MayMapDevice(room, kPage));
}

TEST(Mappings, OfClocksAreNotMadeWritable) {
  const Area area(Pages::kIo, 1, false);
  EXPECT_EQ(-EACCES, MprotectDevice(area.begin(), kPage, PROT_READ | PROT_WRITE));
  EXPECT_EQ(0, MprotectDevice(area.begin(), kPage, PROT_READ));
  EXPECT_EQ(-EACCES, MadviseDevice(area.begin(), kPage, MADV_REMOVE));
  const Area writable(Pages::kIo);
  EXPECT_EQ(0, MprotectDevice(writable.begin(), kPage, PROT_READ | PROT_WRITE));
}

// What lies before the area that refuses is done.
TEST(Mappings, AreAdvisedInOrder) {
  auto* const memory = static_cast<uint8_t*>(
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  memory[0] = 1;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  VmaTable::Add({.begin = begin + kPage, .end = begin + 2 * kPage});
  EXPECT_EQ(-EINVAL, MadviseDevice(begin, 2 * kPage, MADV_DONTNEED));
  EXPECT_EQ(0, memory[0]);
  MunmapDevice(begin, 2 * kPage);
}

}  // namespace
}  // namespace vabi::libc
