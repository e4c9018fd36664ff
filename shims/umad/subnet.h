// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UMAD_SUBNET_H_
#define VABI_SHIMS_UMAD_SUBNET_H_

#include <cstdint>
#include <vector>

#include "shims/uverbs/device.h"

// What the subnet's manager and administrator answer to programs, as opensm does with its defaults:
// of the subnet that rdma_cm asks about, too (docs/fabric.md). They stand behind the LID that the
// ports name as the manager's.

namespace vabi::umad {

// A whole answer: header, and behind it what the receiving kernel makes of all segments
// (core/mad_rmpp.c). Empty: the question is not for them, or `*unmodelled` says what it is.
std::vector<uint8_t> AskSubnet(const Device& at, uint8_t port, uint32_t qpn, const uint8_t in[256],
                               const char** unmodelled);

}  // namespace vabi::umad

#endif  // VABI_SHIMS_UMAD_SUBNET_H_
