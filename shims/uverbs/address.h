// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_ADDRESS_H_
#define VABI_SHIMS_UVERBS_ADDRESS_H_

#include <optional>

#include "shims/fabric/fabric.h"
#include "shims/uverbs/call.h"

namespace vabi {

// struct ib_uverbs_qp_dest to and from the address vector.
fabric::AddressVector ReadDestination(const Body& from);
void WriteDestination(const fabric::AddressVector& from, const Body& to);
// struct ib_uverbs_ah_attr
fabric::AddressVector ReadAhAttr(const Body& from);

// verbs.c:rdma_fill_sgid_attr: port, GRH where it must be, source GID. The first rule that it
// breaks.
std::optional<RuleId> BrokenAddressRule(const Device& device, const fabric::AddressVector& address);
int CheckAddress(Call& call, const fabric::AddressVector& address);
// verbs.c:ib_resolve_eth_dmac, on RoCE: the peer's MAC address and the hop limit.
int ResolveMac(Call& call, fabric::AddressVector* address);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_ADDRESS_H_
