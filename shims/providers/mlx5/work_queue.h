// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_WORK_QUEUE_H_
#define VABI_SHIMS_PROVIDERS_MLX5_WORK_QUEUE_H_

#include <cstdint>

#include "shims/fabric/fabric.h"
#include "shims/fabric/window.h"
#include "shims/providers/mlx5/wire_format.h"

// Work queue elements: from the program's send queue to what the fabric carries out.

namespace vabi::mlx5 {

// The ring of basic blocks.
struct SendRing {
  uint64_t buffer = 0;
  uint32_t blocks = 0;    // power of two; 0: no send queue
  uint64_t doorbell = 0;  // the 16-bit counter of posted blocks
};

// One element, copied out of the ring: it may wrap around its end anywhere between segments, and
// inline data between bytes; here it is in one piece.
struct Wqe {
  uint16_t index = 0;     // counter of its first block
  uint32_t segments = 0;  // of 16 bytes
  alignas(8) uint8_t bytes[kMaxSegments * kSegment + kBlock];

  uint32_t blocks() const { return (segments * kSegment + kBlock - 1) / kBlock; }
  uint8_t opcode() const { return bytes[kCtrlOpcode]; }
  uint8_t flags() const { return bytes[kCtrlFlags]; }
  uint16_t stream() const { return Load16(bytes + kCtrlStream); }
  bool signaled() const { return (flags() & kFlagCompletionMask) == kFlagCompletion; }
};

// Copies the element at block `index`. False: it has no segment, or more than the ring.
bool ReadWqe(const SendRing& ring, uint16_t index, Wqe* wqe);

enum class Translation : uint8_t {
  kRequest,  // for the fabric
  kBind,     // *bind is filled, and the key to bind stands in it
  kInvalidate,
  kMalformed,  // the NIC refuses it: local QP operation error
  kUnmodelled,
};

// A memory key update (UMR) of a key with parts; `room`: how many translations it has room for. The
// rest is as it was.
Translation ReadKeyUpdate(const Wqe& wqe, uint32_t room, fabric::MemoryKey* key);

// `request` is used again and again: all that matters is set. The inline data stays in `wqe`.
Translation Translate(const Wqe& wqe, fabric::Service service, uint32_t qkey,
                      fabric::SendRequest* request, fabric::Bind* bind, uint32_t* remote_srqn);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_WORK_QUEUE_H_
