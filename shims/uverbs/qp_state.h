// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_QP_STATE_H_
#define VABI_SHIMS_UVERBS_QP_STATE_H_

#include <cstdint>

#include "shims/uverbs/objects.h"

// The queue pair state machine of the verbs layer (verbs.c:qp_state_table; from 4.4 to 7.3 only the
// rate limit has moved).

namespace vabi {

// enum ib_qp_attr_mask
enum QpMask : uint32_t {
  kQpState = 1 << 0,
  kQpCurState = 1 << 1,
  kQpEnSqdAsyncNotify = 1 << 2,
  kQpAccessFlags = 1 << 3,
  kQpPkeyIndex = 1 << 4,
  kQpPort = 1 << 5,
  kQpQkey = 1 << 6,
  kQpAv = 1 << 7,
  kQpPathMtu = 1 << 8,
  kQpTimeout = 1 << 9,
  kQpRetryCnt = 1 << 10,
  kQpRnrRetry = 1 << 11,
  kQpRqPsn = 1 << 12,
  kQpMaxRdAtomic = 1 << 13,
  kQpAltPath = 1 << 14,
  kQpMinRnrTimer = 1 << 15,
  kQpSqPsn = 1 << 16,
  kQpMaxDestRdAtomic = 1 << 17,
  kQpPathMigState = 1 << 18,
  kQpCap = 1 << 19,
  kQpDestQpn = 1 << 20,
  kQpStandardBits = (1 << 21) - 1,
  kQpRateLimit = 1 << 25,
};

// enum ib_qp_type, as uverbs passes it
enum QpType : uint8_t {
  kQptRc = 2,
  kQptUc = 3,
  kQptUd = 4,
  kQptRawPacket = 8,
  kQptXrcIni = 9,
  kQptXrcTgt = 10,
  kQptDriver = 0xff,
};

// Where the table lets IB_QP_RATE_LIMIT pass (knob qp.rate_limit).
enum class RateLimit : uint8_t {
  kNowhere,    // before 4.10
  kRawPacket,  // raw packet queue pairs on their way to RTS and in it (4.10 to 6.12)
  kAnywhere,   // 7.2 and later
};

// verbs.c:ib_modify_qp_is_ok
bool ModifyQpIsOk(QpState current, QpState next, uint8_t type, uint32_t mask,
                  RateLimit rate_limit = RateLimit::kAnywhere);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_QP_STATE_H_
