// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_FIRMWARE_H_
#define VABI_SHIMS_PROVIDERS_MLX5_FIRMWARE_H_

#include <memory>
#include <span>

#include "shims/providers/mlx5/prm.h"
#include "shims/providers/mlx5/state.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/objects.h"

// What the NIC's firmware answers to commands that user space wrote (DEVX). Which of them reach it
// is the kernel's decision (devx.cc).

namespace vabi::mlx5 {

// An object that a command created; the firmware lets go of it when it goes.
struct DevxState : DriverState {
  uint64_t id = 0;  // devx.c:get_enc_obj_id: what modify and query commands must name
};

struct FirmwareAnswer {
  PrmStatus status = PrmStatus::kOk;
  const char* unmodelled = nullptr;  // set: nobody told what it answers
  std::unique_ptr<DevxState> object;
};

inline FirmwareAnswer Fails(PrmStatus status) { return {.status = status, .object = nullptr}; }
inline FirmwareAnswer Unknown(const char* what) { return {.unmodelled = what, .object = nullptr}; }
// Of a command that names what is not there or not the context's own.
inline FirmwareAnswer NotOwn(Ownership found) {
  return found == Ownership::kNone
             ? Fails(PrmStatus::kBadResource)
             : Unknown("mlx5: a DEVX command that names an object of another context");
}

// `out` comes zeroed; status and syndrome are filled in by the caller.
FirmwareAnswer FirmwareCreate(IoctlCall& call, std::span<const uint8_t> in, std::span<uint8_t> out);
// `object`: what the command names; it has been compared.
FirmwareAnswer FirmwareModify(IoctlCall& call, Object& object, std::span<const uint8_t> in,
                              std::span<uint8_t> out);
FirmwareAnswer FirmwareQuery(IoctlCall& call, Object& object, std::span<const uint8_t> in,
                             std::span<uint8_t> out);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_FIRMWARE_H_
