// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UMAD_ANSWER_H_
#define VABI_SHIMS_UMAD_ANSWER_H_

#include <cstdint>
#include <vector>

#include "shims/uverbs/device.h"

// Who answers a MAD that reached a port: the device's own agents (subnet and performance
// management, which a ConnectX has in its firmware), and the kernel's answer to what nobody takes.

namespace vabi::umad {

enum class Answered : uint8_t {
  kReply,      // `out` is the answer
  kNothing,    // nobody answers: the sender waits until its time is over
  kLocalDone,  // directed route, consumed by the port itself without an answer
};

// What the device's agents say to a request (hw/mlx5/mad.c:mlx5_ib_process_mad and the firmware
// behind it). False: they leave it to the kernel. `*unmodelled`: what a real one would do.
bool ProcessMad(const Device& device, uint8_t port, const uint8_t in[256], uint8_t out[256],
                const char** unmodelled);

// A request that arrived at the port over the wire (core/mad.c:ib_mad_recv_done).
// `*message`: where the answer goes in segments (RMPP), what the receiving kernel makes of all;
// `out` is the first.
Answered Receive(const Device& device, uint8_t port, uint32_t qpn, const uint8_t in[256],
                 uint8_t out[256], std::vector<uint8_t>* message, const char** unmodelled);

// NodeInfo and PortInfo of a port, as its subnet agent answers them: 64 bytes of an attribute.
void DescribeNode(const Device& device, uint8_t port, uint8_t out[64]);
void DescribePort(const Device& device, uint8_t port, uint8_t out[64]);

// A program holds issmN of the port: IsSM is set in its capabilities.
void SetSubnetManager(const Device& device, uint8_t port, bool set);

}  // namespace vabi::umad

#endif  // VABI_SHIMS_UMAD_ANSWER_H_
