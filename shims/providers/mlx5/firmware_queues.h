// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_FIRMWARE_QUEUES_H_
#define VABI_SHIMS_PROVIDERS_MLX5_FIRMWARE_QUEUES_H_

#include "shims/providers/mlx5/firmware.h"

// Queues that user space makes by the firmware's commands, in memory that it has registered
// (DEVX_UMEM).

namespace vabi::mlx5 {

// Memory that commands name by number.
struct UmemState final : DriverState {
  UmemState(const UverbsFile& file, uint32_t number, uint64_t at, uint64_t size);
  ~UmemState() override;
  const UverbsFile* owner;
  uint32_t device, id;
  uint64_t address, length;
  int users = 0;  // queues that stand in it; guarded as the names are
};
bool InUse(const UmemState& memory);

FirmwareAnswer CreateCqObject(IoctlCall& call, std::span<const uint8_t> in, std::span<uint8_t> out);
FirmwareAnswer CreateQpObject(IoctlCall& call, std::span<const uint8_t> in, std::span<uint8_t> out);
// RST2INIT_QP, INIT2RTR_QP, RTR2RTS_QP, 2ERR_QP and 2RST_QP of such a queue pair.
FirmwareAnswer ModifyQpObject(DevxState& object, std::span<const uint8_t> in);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_FIRMWARE_QUEUES_H_
