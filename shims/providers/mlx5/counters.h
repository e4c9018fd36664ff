// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_COUNTERS_H_
#define VABI_SHIMS_PROVIDERS_MLX5_COUNTERS_H_

#include <vector>

#include "shims/providers/mlx5/steering.h"
#include "shims/uverbs/call.h"
#include "shims/uverbs/objects.h"

// counters.c: a set of counters, what of it a program reads where, and the request that says so.

namespace vabi::mlx5 {

// The private request of CREATE_FLOW: struct mlx5_ib_create_flow.
struct CreateFlowRequest {
  bool present = false, describes = false;
  uint64_t descriptions = 0;  // the caller's array of struct mlx5_ib_flow_counters_desc
  uint32_t count = 0;

  int Read(Call& call);
};

struct CountersState final : DriverState {
  FlowCounter counter;
  struct Entry {
    uint32_t description;  // enum ib_counters_description: 0 packets, 1 bytes
    uint32_t index;        // in the buffer of READ
  };
  std::vector<Entry> entries;
  uint32_t buffer_entries = 0;  // highest index + 1; 0: not described
  int flows = 0;

  // mlx5_ib_flow_counters_set_data
  int Describe(Call& call, const CreateFlowRequest& request);
  // mlx5_ib_counters_clear_description
  void Forget();
};

// The set that a flow's specs name; null: none.
CountersState* CountersOf(const Flow& flow);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_COUNTERS_H_
