// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_PRM_H_
#define VABI_SHIMS_PROVIDERS_MLX5_PRM_H_

#include <cstddef>
#include <cstdint>
#include <span>

// Mailboxes of the firmware's commands (ConnectX Programmer's Reference Manual): fields are counted
// in bits, from the most significant one of the first byte.

namespace vabi::mlx5 {

struct PrmField {
  uint16_t bit, width;
  constexpr PrmField In(uint16_t structure) const {  // of a structure that begins there
    return {static_cast<uint16_t>(structure + bit), width};
  }
};

// What lies behind the box's end is 0, and is not written.
inline uint64_t PrmGet(std::span<const uint8_t> box, PrmField field) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < field.width; ++i) {
    const uint32_t bit = field.bit + i;
    const bool set = bit / 8 < box.size() && (box[bit / 8] >> (7 - bit % 8) & 1) != 0;
    value = value << 1 | (set ? 1 : 0);
  }
  return value;
}

inline void PrmSet(std::span<uint8_t> box, PrmField field, uint64_t value) {
  for (uint32_t i = 0; i < field.width; ++i) {
    const uint32_t bit = field.bit + i;
    if (bit / 8 >= box.size()) return;
    const auto mask = static_cast<uint8_t>(0x80 >> bit % 8);
    if ((value >> (field.width - 1 - i) & 1) != 0) {
      box[bit / 8] |= mask;
    } else {
      box[bit / 8] &= static_cast<uint8_t>(~mask);
    }
  }
}

namespace prm {

// general_obj_in_cmd_hdr, general_obj_out_cmd_hdr, and what all commands have alike
inline constexpr size_t kHeader = 16;
inline constexpr PrmField kOpcode = {0, 16}, kTunnel = {32, 16}, kOpMod = {48, 16},
                          kObjectType = {48, 16}, kObjectId = {64, 32}, kObjectRange = {99, 5};
inline constexpr PrmField kStatus = {0, 8}, kSyndrome = {32, 32}, kOutObjectId = {64, 32};
// Most commands name their object here.
inline constexpr PrmField kNumber = {72, 24};

// mkc
inline constexpr uint16_t kMkey = 128;  // create_mkey_in.memory_key_mkey_entry
inline constexpr PrmField kMkeyFreeBit = {1, 1}, kMkeyAccessHigh = {3, 3}, kMkeyUmr = {16, 1},
                          kMkeyAccessLow = {22, 2}, kMkeyTag = {56, 8}, kMkeyBsf = {97, 1},
                          kMkeyRemoteInvalidate = {103, 1}, kMkeyPd = {104, 24},
                          kMkeyStartAddress = {128, 64}, kMkeyLen = {192, 64},
                          kMkeyTranslations = {416, 32};
inline constexpr size_t kCreateMkeyLeast = 80;
inline constexpr uint64_t kAccessKlms = 2;

// rts2rts_qp_in and its kin
inline constexpr PrmField kQpcExtended = {64, 1}, kOptional = {128, 32}, kOptionalHigh = {2112, 64};
inline constexpr uint16_t kQpc = 192, kQpcExtension = 2176, kPrimaryPath = kQpc + 192;
inline constexpr PrmField kPathUdpSport = {272, 16}, kExtensionStream = {16, 16};
inline constexpr uint64_t kOptStream = 1 << 0, kOptUdpSport = 1 << 2;

}  // namespace prm

enum class PrmOpcode : uint16_t {
  kCreateMkey = 0x200,
  kCreateCq = 0x400,
  kCreateQp = 0x500,
  kRts2RtsQp = 0x505,
  kCreateDct = 0x710,
  kCreateGeneralObject = 0xa00,
  kModifyGeneralObject = 0xa01,
};
enum class GeneralObject : uint16_t {
  kSchedulingElement = 0x26,
  kReservedQpn = 0x2c,
  kAvQpMapping = 0x3a,
};

// devx.c:get_enc_obj_id: an object by the command that made it, with its type where one command
// makes several, and its number.
constexpr uint64_t EncodedId(PrmOpcode made_by, uint64_t number, uint64_t type = 0) {
  return type << 48 | uint64_t{static_cast<uint16_t>(made_by)} << 32 | number;
}

constexpr uint64_t GeneralId(GeneralObject type, uint64_t number) {
  return EncodedId(PrmOpcode::kCreateGeneralObject, number, static_cast<uint16_t>(type));
}

// MLX5_CMD_STAT_* (linux/mlx5/device.h)
enum class PrmStatus : uint8_t {
  kOk = 0,
  kBadOperation = 2,
  kBadParameter = 3,
  kBadResource = 5,
  kLimit = 8,
  kBadResourceState = 9,
  kBadIndex = 0xa,
  kNoResources = 0xf,
  kBadInputLength = 0x50,
};

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_PRM_H_
