// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sys/blocking.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace vabi::sys {
namespace {

TEST(IsNonBlocking, TellsTheFlagAsItStandsNow) {
  int ends[2];
  ASSERT_EQ(0, pipe2(ends, O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(IsNonBlocking(ends[0]));
  ASSERT_EQ(0, fcntl(ends[0], F_SETFL, 0));
  EXPECT_FALSE(IsNonBlocking(ends[0]));
  EXPECT_TRUE(IsNonBlocking(ends[1])) << "the other end has flags of its own";
  close(ends[0]);
  EXPECT_FALSE(IsNonBlocking(ends[0])) << "nothing is open there";
  close(ends[1]);
}

}  // namespace
}  // namespace vabi::sys
