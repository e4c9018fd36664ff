// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CELLS_JOURNEY_FOUND_H_
#define VABI_HARNESS_CELLS_JOURNEY_FOUND_H_

#include <infiniband/verbs.h>

namespace journey {

// Which devices libibverbs found, and which provider takes each, one JSON object a line:
//   {"device": "mlx5_0", "node": "uverbs0", "provider": "mlx5", "library": "libmlx5.so.1.24.44.0",
//   "node_type": 1, "transport": 0, "guid": "0200c0fffe000100"}
//   {"count": 1}
void TellFound(ibv_device** list, int count);

}  // namespace journey

#endif  // VABI_HARNESS_CELLS_JOURNEY_FOUND_H_
