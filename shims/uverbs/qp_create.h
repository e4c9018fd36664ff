// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_QP_CREATE_H_
#define VABI_SHIMS_UVERBS_QP_CREATE_H_

#include "shims/uverbs/call.h"
#include "shims/uverbs/objects.h"

namespace vabi {

// enum ib_srq_type
enum : uint32_t { kSrqtBasic = 0, kSrqtXrc = 1, kSrqtTm = 2 };

// verbs.c:ib_create_qp_user and ib_qp_usecnt_inc: the driver makes it, and what it uses counts one
// more user. Everything that the caller asked for stands in `qp`.
int MakeQueuePair(Call& call, Qp& qp);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_QP_CREATE_H_
