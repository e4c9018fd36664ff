// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_PULL_H_
#define VABI_SHIMS_FABRIC_PULL_H_

#include <cstdint>

#include "shims/fabric/spans.h"

// Bytes of another process, read where they stand (process_vm_readv). Where that is not allowed,
// they travel in the rings instead.

namespace vabi::fabric {

// As CopySpans: bytes that cannot be read count as zero, those that cannot be written are lost.
// False: there were any. from.lost: the other process is gone.
bool PullSpans(const Spans& to, const Spans& from, uint64_t length);
// May this process read that one's memory: does `value` stand at `address` there?
bool CanPull(int process, uint64_t address, uint64_t value);
// For tests: as if it were forbidden.
void ForbidPulling(bool on);

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_PULL_H_
