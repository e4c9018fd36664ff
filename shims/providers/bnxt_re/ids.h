// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_BNXT_RE_IDS_H_
#define VABI_SHIMS_PROVIDERS_BNXT_RE_IDS_H_

#define VABI_PROVIDER bnxt_re
#define VABI_PROVIDER_DEF "shims/providers/bnxt_re/abi.def"
#include "harness/world/provider_ids.inc"
#undef VABI_PROVIDER
#undef VABI_PROVIDER_DEF

#endif  // VABI_SHIMS_PROVIDERS_BNXT_RE_IDS_H_
