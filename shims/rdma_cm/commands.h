// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_RDMA_CM_COMMANDS_H_
#define VABI_SHIMS_RDMA_CM_COMMANDS_H_

#include <cstdint>

#include "shims/rdma_cm/cm_file.h"

namespace vabi::rdma_cm {

// One command of ucma_cmd_table: 0, or -errno. `in_length` and `out_length` are what the caller's
// header says; most commands read their whole structure whatever it says.
long RunCommand(Decision& call, CmFile& file, uint32_t command, uint64_t in, uint32_t in_length,
                uint32_t out_length);

}  // namespace vabi::rdma_cm

#endif  // VABI_SHIMS_RDMA_CM_COMMANDS_H_
