// SPDX-License-Identifier: BSD-2-Clause
// core/ib_core_uverbs.c:rdma_user_mmap_entry_insert_range, _get_pgoff, _get, _remove (7.3).
#include "shims/providers/common/map_entries.h"

#include <gtest/gtest.h>

namespace vabi::provider {
namespace {

constexpr uint64_t kPage = 4096;

TEST(MapEntries, TakesTheFirstGapThatIsLongEnough) {
  MapEntries entries;
  EXPECT_EQ(0u, entries.Insert({.length = kPage}));
  EXPECT_EQ(kPage, entries.Insert({.length = 2 * kPage + 1}));  // three pages
  EXPECT_EQ(4 * kPage, entries.Insert({.length = 1}));
  entries.Remove(kPage);
  EXPECT_EQ(5 * kPage, entries.Insert({.length = 4 * kPage})) << "four do not fit into three";
  EXPECT_EQ(kPage, entries.Insert({.length = 3 * kPage}));
}

TEST(MapEntries, KeepsWithinTheRangeAskedFor) {
  MapEntries entries;
  EXPECT_EQ(9 * kPage, entries.Insert({.length = kPage}, 9, 10));
  EXPECT_EQ(10 * kPage, entries.Insert({.length = kPage}, 9, 10));
  EXPECT_EQ(MapEntries::kFull, entries.Insert({.length = kPage}, 9, 10));
  EXPECT_EQ(0u, entries.Insert({.length = kPage}));
}

TEST(MapEntries, IsFoundByItsFirstPageAndItsLengthInPages) {
  MapEntries entries;
  const uint64_t at = entries.Insert({.length = kPage + 1, .kind = "CQ"}, 3);
  ASSERT_NE(nullptr, entries.Find(at));
  EXPECT_STREQ("CQ", entries.Find(at)->kind);
  EXPECT_EQ(nullptr, entries.Find(at + kPage)) << "not where an entry begins";
  EXPECT_NE(nullptr, entries.FindExact(at, 2 * kPage));
  EXPECT_EQ(nullptr, entries.FindExact(at, kPage));
  EXPECT_EQ(nullptr, entries.FindExact(at, 3 * kPage));
  entries.Remove(at);
  EXPECT_EQ(nullptr, entries.Find(at));
}

}  // namespace
}  // namespace vabi::provider
