// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sysfs/port_text.h"

#include <gtest/gtest.h>

namespace vabi::sysfs {
namespace {

// The texts marked "real" were read from rxe0 on Debian's 5.10.223 and 7.3.4 kernels.

TEST(PortText, GuidsAreFourGroupsInNetworkOrder) {
  EXPECT_EQ(GuidText(0x020000fffe000000), "0200:00ff:fe00:0000");  // real
  EXPECT_EQ(GuidText(0x0123456789abcdef), "0123:4567:89ab:cdef");
}

TEST(PortText, GidsAreEightGroupsWithoutAbbreviation) {
  const uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  EXPECT_EQ(GidText(mapped), "0000:0000:0000:0000:0000:ffff:7f00:0001");  // real
}

TEST(PortText, StatesHaveNumberAndName) {
  EXPECT_EQ(StateText(4), "4: ACTIVE");  // real
  EXPECT_EQ(StateText(1), "1: DOWN");
  EXPECT_EQ(PhysStateText(5), "5: LinkUp");  // real
  EXPECT_EQ(PhysStateText(9), "9: <unknown>");
  EXPECT_EQ(NodeTypeText(1), "1: CA");  // real
  EXPECT_EQ(NodeTypeText(4), "4: RNIC");
}

TEST(PortText, GidTypesKeepTheOldNameOfVersionOne) {
  EXPECT_EQ(GidTypeText(2), "RoCE v2");  // real
  EXPECT_EQ(GidTypeText(1), "IB/RoCE v1");
  EXPECT_EQ(GidTypeText(0), "IB/RoCE v1");
}

// core/sysfs.c:rate_show of each version
TEST(PortText, RateMultipliesLanesAndNamesTheSpeed) {
  EXPECT_EQ(RateText(1, 1, 256, true), "2.5 Gb/sec (1X SDR)");  // real
  EXPECT_EQ(RateText(2, 32, 256, true), "100 Gb/sec (4X EDR)");
  EXPECT_EQ(RateText(2, 16, 256, true), "56 Gb/sec (4X FDR)");
  EXPECT_EQ(RateText(16, 64, 256, true), "100 Gb/sec (2X HDR)");
}

TEST(PortText, ASpeedThatTheKernelDoesNotKnowReadsAsSdr) {
  EXPECT_EQ(RateText(2, 128, 64, true), "10 Gb/sec (4X SDR)");
  EXPECT_EQ(RateText(2, 64, 32, false), "10 Gb/sec (4X)");
}

TEST(PortText, AnUnknownWidthIsRefused) { EXPECT_EQ(RateText(3, 32, 256, true), ""); }

}  // namespace
}  // namespace vabi::sysfs
