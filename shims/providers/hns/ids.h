// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_HNS_IDS_H_
#define VABI_SHIMS_PROVIDERS_HNS_IDS_H_

#define VABI_PROVIDER hns
#define VABI_PROVIDER_DEF "shims/providers/hns/abi.def"
#include "harness/world/provider_ids.inc"
#undef VABI_PROVIDER
#undef VABI_PROVIDER_DEF

#endif  // VABI_SHIMS_PROVIDERS_HNS_IDS_H_
