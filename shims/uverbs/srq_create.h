// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_SRQ_CREATE_H_
#define VABI_SHIMS_UVERBS_SRQ_CREATE_H_

#include "shims/uverbs/call.h"
#include "shims/uverbs/objects.h"

namespace vabi {

// verbs.c:ib_create_srq_user: the driver makes it, and what it uses counts one more user.
int MakeSharedQueue(Call& call, Srq& srq);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_SRQ_CREATE_H_
