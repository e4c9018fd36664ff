// SPDX-License-Identifier: BSD-2-Clause
// verbs.c:qp_state_table (7.3), by hand from the source.
#include "shims/uverbs/qp_state.h"

#include <gtest/gtest.h>

namespace vabi {
namespace {

using S = QpState;

TEST(ModifyQpIsOk, WalksAnRcQueuePairUp) {
  EXPECT_TRUE(ModifyQpIsOk(S::kReset, S::kInit, kQptRc,
                           kQpState | kQpPkeyIndex | kQpPort | kQpAccessFlags));
  EXPECT_FALSE(ModifyQpIsOk(S::kReset, S::kInit, kQptRc, kQpState | kQpPkeyIndex | kQpPort))
      << "access flags are required";
  EXPECT_FALSE(ModifyQpIsOk(S::kReset, S::kInit, kQptRc,
                            kQpState | kQpPkeyIndex | kQpPort | kQpAccessFlags | kQpQkey))
      << "a Q_Key is a datagram's";
  const uint32_t rtr =
      kQpState | kQpAv | kQpPathMtu | kQpDestQpn | kQpRqPsn | kQpMaxDestRdAtomic | kQpMinRnrTimer;
  EXPECT_TRUE(ModifyQpIsOk(S::kInit, S::kRtr, kQptRc, rtr));
  EXPECT_TRUE(ModifyQpIsOk(S::kInit, S::kRtr, kQptRc, rtr | kQpAltPath | kQpPkeyIndex));
  EXPECT_FALSE(ModifyQpIsOk(S::kInit, S::kRtr, kQptRc, rtr & ~kQpMinRnrTimer));
  EXPECT_FALSE(ModifyQpIsOk(S::kInit, S::kRtr, kQptUc, rtr)) << "UC has no RDMA READ to limit";
  const uint32_t rts =
      kQpState | kQpTimeout | kQpRetryCnt | kQpRnrRetry | kQpSqPsn | kQpMaxRdAtomic;
  EXPECT_TRUE(ModifyQpIsOk(S::kRtr, S::kRts, kQptRc, rts));
  EXPECT_FALSE(ModifyQpIsOk(S::kRtr, S::kRts, kQptRc, rts & ~kQpSqPsn));
  EXPECT_TRUE(ModifyQpIsOk(S::kRtr, S::kRts, kQptRc, rts | kQpRateLimit))
      << "rate limit goes anywhere";
}

TEST(ModifyQpIsOk, EveryStateResetsAndMostFail) {
  for (int state = 0; state <= static_cast<int>(S::kErr); ++state) {
    EXPECT_TRUE(ModifyQpIsOk(static_cast<S>(state), S::kReset, kQptUd, kQpState)) << state;
  }
  EXPECT_TRUE(ModifyQpIsOk(S::kRts, S::kErr, kQptRc, kQpState));
  EXPECT_FALSE(ModifyQpIsOk(S::kReset, S::kErr, kQptRc, kQpState));
  EXPECT_FALSE(ModifyQpIsOk(S::kSqe, S::kErr, kQptRc, kQpState)) << "the table has no such row";
}

TEST(ModifyQpIsOk, RefusesJumps) {
  EXPECT_FALSE(ModifyQpIsOk(S::kReset, S::kRtr, kQptUd, kQpState));
  EXPECT_FALSE(ModifyQpIsOk(S::kRts, S::kRtr, kQptUd, kQpState));
  EXPECT_FALSE(ModifyQpIsOk(S::kRts, S::kSqe, kQptUd, kQpState))
      << "only the queue pair itself goes there";
}

TEST(ModifyQpIsOk, CurrentStateOnlyWhereItCanBeInDoubt) {
  EXPECT_TRUE(ModifyQpIsOk(S::kRts, S::kRts, kQptUd, kQpState | kQpCurState));
  EXPECT_FALSE(ModifyQpIsOk(S::kInit, S::kInit, kQptUd, kQpState | kQpCurState));
  EXPECT_FALSE(ModifyQpIsOk(S::kErr, S::kReset, kQptUd, kQpState | kQpCurState));
}

TEST(ModifyQpIsOk, SqdChangesPaths) {
  EXPECT_TRUE(ModifyQpIsOk(S::kSqd, S::kSqd, kQptRc, kQpAv | kQpPort | kQpTimeout));
  EXPECT_FALSE(ModifyQpIsOk(S::kSqd, S::kSqd, kQptUc, kQpAv | kQpPort));
  EXPECT_TRUE(ModifyQpIsOk(S::kRts, S::kSqd, kQptRc, kQpState | kQpEnSqdAsyncNotify));
}

// verbs.c of 6.12 and 5.10: two rows of raw packet queue pairs; of 4.4: none.
TEST(ModifyQpIsOk, RateLimitByRelease) {
  const uint32_t mask = kQpState | kQpRateLimit;
  EXPECT_TRUE(ModifyQpIsOk(S::kRtr, S::kRts, kQptRawPacket, mask, RateLimit::kRawPacket));
  EXPECT_TRUE(ModifyQpIsOk(S::kRts, S::kRts, kQptRawPacket, mask, RateLimit::kRawPacket));
  EXPECT_FALSE(ModifyQpIsOk(S::kSqd, S::kRts, kQptRawPacket, mask, RateLimit::kRawPacket));
  EXPECT_FALSE(ModifyQpIsOk(S::kRts, S::kRts, kQptRc, mask, RateLimit::kRawPacket));
  EXPECT_TRUE(ModifyQpIsOk(S::kRts, S::kRts, kQptRc, mask, RateLimit::kAnywhere));
  EXPECT_FALSE(ModifyQpIsOk(S::kRts, S::kRts, kQptRawPacket, mask, RateLimit::kNowhere));
}

TEST(ModifyQpIsOk, RawPacketNeedsOnlyItsPort) {
  EXPECT_TRUE(ModifyQpIsOk(S::kReset, S::kInit, kQptRawPacket, kQpState | kQpPort));
  EXPECT_TRUE(ModifyQpIsOk(S::kInit, S::kRtr, kQptRawPacket, kQpState));
  EXPECT_FALSE(ModifyQpIsOk(S::kReset, S::kInit, kQptRawPacket, kQpState));
}

}  // namespace
}  // namespace vabi
