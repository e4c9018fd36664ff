// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CELLS_JOURNEY_MAPPED_H_
#define VABI_HARNESS_CELLS_JOURNEY_MAPPED_H_

namespace journey {

// Which libraries this process has mapped, for the check that no other userland's is among them:
// {"mapped": "/…/libibverbs.so.1.14.44.0"}, one line each.
void TellMapped();

}  // namespace journey

#endif  // VABI_HARNESS_CELLS_JOURNEY_MAPPED_H_
