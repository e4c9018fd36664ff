// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/qp_state.h"

namespace vabi {
namespace {

// One transition for one service: attributes that it needs, and those that it may have.
struct Row {
  QpState from, to;
  uint8_t type;
  uint32_t required, optional;
};

using S = QpState;

constexpr uint32_t kInitConnected = kQpPkeyIndex | kQpPort | kQpAccessFlags;
constexpr uint32_t kInitUd = kQpPkeyIndex | kQpPort | kQpQkey;
constexpr uint32_t kRtrUc = kQpAv | kQpPathMtu | kQpDestQpn | kQpRqPsn;
constexpr uint32_t kRtrRc = kRtrUc | kQpMaxDestRdAtomic | kQpMinRnrTimer;
constexpr uint32_t kRtrOptional = kQpAltPath | kQpAccessFlags | kQpPkeyIndex;
constexpr uint32_t kRtsRc = kQpTimeout | kQpRetryCnt | kQpRnrRetry | kQpSqPsn | kQpMaxRdAtomic;
// What RTR→RTS, RTS→RTS and SQD→RTS may change.
constexpr uint32_t kRunningUd = kQpCurState | kQpQkey;
constexpr uint32_t kRunningUc = kQpCurState | kQpAltPath | kQpAccessFlags | kQpPathMigState;
constexpr uint32_t kRunningRc = kRunningUc | kQpMinRnrTimer;
constexpr uint32_t kSqdUc = kQpAv | kQpAltPath | kQpAccessFlags | kQpPkeyIndex | kQpPathMigState;
constexpr uint32_t kSqdXrcIni =
    kSqdUc | kQpPort | kQpTimeout | kQpRetryCnt | kQpRnrRetry | kQpMaxRdAtomic;
constexpr uint32_t kSqdRc = kSqdXrcIni | kQpMaxDestRdAtomic | kQpMinRnrTimer;
constexpr uint32_t kSqdXrcTgt = kSqdUc | kQpPort | kQpTimeout | kQpMaxDestRdAtomic | kQpMinRnrTimer;

constexpr Row kRows[] = {
    {S::kReset, S::kInit, kQptUd, kInitUd, 0},
    {S::kReset, S::kInit, kQptRawPacket, kQpPort, 0},
    {S::kReset, S::kInit, kQptUc, kInitConnected, 0},
    {S::kReset, S::kInit, kQptRc, kInitConnected, 0},
    {S::kReset, S::kInit, kQptXrcIni, kInitConnected, 0},
    {S::kReset, S::kInit, kQptXrcTgt, kInitConnected, 0},

    {S::kInit, S::kInit, kQptUd, 0, kInitUd},
    {S::kInit, S::kInit, kQptUc, 0, kInitConnected},
    {S::kInit, S::kInit, kQptRc, 0, kInitConnected},
    {S::kInit, S::kInit, kQptXrcIni, 0, kInitConnected},
    {S::kInit, S::kInit, kQptXrcTgt, 0, kInitConnected},

    {S::kInit, S::kRtr, kQptUd, 0, kQpPkeyIndex | kQpQkey},
    {S::kInit, S::kRtr, kQptUc, kRtrUc, kRtrOptional},
    {S::kInit, S::kRtr, kQptRc, kRtrRc, kRtrOptional},
    {S::kInit, S::kRtr, kQptXrcIni, kRtrUc, kRtrOptional},
    {S::kInit, S::kRtr, kQptXrcTgt, kRtrRc, kRtrOptional},

    {S::kRtr, S::kRts, kQptUd, kQpSqPsn, kRunningUd},
    {S::kRtr, S::kRts, kQptUc, kQpSqPsn, kRunningUc},
    {S::kRtr, S::kRts, kQptRc, kRtsRc, kRunningRc},
    {S::kRtr, S::kRts, kQptXrcIni, kRtsRc, kRunningUc},
    {S::kRtr, S::kRts, kQptXrcTgt, kQpTimeout | kQpSqPsn, kRunningRc},

    {S::kRts, S::kRts, kQptUd, 0, kRunningUd},
    {S::kRts, S::kRts, kQptUc, 0, kRunningUc},
    {S::kRts, S::kRts, kQptRc, 0, kRunningRc},
    {S::kRts, S::kRts, kQptXrcIni, 0, kRunningUc},
    {S::kRts, S::kRts, kQptXrcTgt, 0, kRunningRc},

    {S::kRts, S::kSqd, kQptUd, 0, kQpEnSqdAsyncNotify},
    {S::kRts, S::kSqd, kQptUc, 0, kQpEnSqdAsyncNotify},
    {S::kRts, S::kSqd, kQptRc, 0, kQpEnSqdAsyncNotify},
    {S::kRts, S::kSqd, kQptXrcIni, 0, kQpEnSqdAsyncNotify},
    {S::kRts, S::kSqd, kQptXrcTgt, 0, kQpEnSqdAsyncNotify},

    {S::kSqd, S::kRts, kQptUd, 0, kRunningUd},
    {S::kSqd, S::kRts, kQptUc, 0, kRunningUc},
    {S::kSqd, S::kRts, kQptRc, 0, kRunningRc},
    {S::kSqd, S::kRts, kQptXrcIni, 0, kRunningUc},
    {S::kSqd, S::kRts, kQptXrcTgt, 0, kRunningRc},

    {S::kSqd, S::kSqd, kQptUd, 0, kQpPkeyIndex | kQpQkey},
    {S::kSqd, S::kSqd, kQptUc, 0, kSqdUc},
    {S::kSqd, S::kSqd, kQptRc, 0, kSqdRc},
    {S::kSqd, S::kSqd, kQptXrcIni, 0, kSqdXrcIni},
    {S::kSqd, S::kSqd, kQptXrcTgt, 0, kSqdXrcTgt},

    {S::kSqe, S::kRts, kQptUd, 0, kRunningUd},
    {S::kSqe, S::kRts, kQptUc, 0, kQpCurState | kQpAccessFlags},
};

bool Possible(QpState from, QpState to) {
  switch (to) {
    case S::kReset:
      return true;
    case S::kErr:
      return from != S::kReset && from != S::kSqe;
    case S::kInit:
      return from == S::kReset || from == S::kInit;
    case S::kRtr:
      return from == S::kInit;
    case S::kRts:
      return from == S::kRtr || from == S::kRts || from == S::kSqd || from == S::kSqe;
    case S::kSqd:
      return from == S::kRts || from == S::kSqd;
    default:
      return false;
  }
}

}  // namespace

bool ModifyQpIsOk(QpState current, QpState next, uint8_t type, uint32_t mask,
                  RateLimit rate_limit) {
  if ((mask & kQpCurState) != 0 && current != S::kRtr && current != S::kRts && current != S::kSqd &&
      current != S::kSqe) {
    return false;
  }
  if (!Possible(current, next)) return false;
  uint32_t required = 0, optional = 0;
  for (const Row& row : kRows) {
    if (row.from == current && row.to == next && row.type == type) {
      required = row.required;
      optional = row.optional;
    }
  }
  const bool to_rts = next == S::kRts && (current == S::kRtr || current == S::kRts);
  if (rate_limit == RateLimit::kAnywhere ||
      (rate_limit == RateLimit::kRawPacket && type == kQptRawPacket && to_rts)) {
    optional |= kQpRateLimit;
  }
  return (mask & required) == required && (mask & ~(required | optional | kQpState)) == 0;
}

}  // namespace vabi
