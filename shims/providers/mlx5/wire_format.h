// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_WIRE_FORMAT_H_
#define VABI_SHIMS_PROVIDERS_MLX5_WIRE_FORMAT_H_

#include <cstdint>
#include <cstring>

// Formats of the NIC itself (ConnectX Programmer's Reference Manual; the same in every kernel):
// work queue elements, completion queue elements, doorbell records. All numbers in them are
// big-endian.

namespace vabi::mlx5 {

inline uint16_t Load16(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }
inline uint32_t Load32(const uint8_t* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof(value));
  return __builtin_bswap32(value);
}
inline uint64_t Load64(const uint8_t* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
  return __builtin_bswap64(value);
}
inline void Store16(uint8_t* at, uint16_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}
inline void Store32(uint8_t* at, uint32_t value) {
  value = __builtin_bswap32(value);
  std::memcpy(at, &value, sizeof(value));
}
inline void Store64(uint8_t* at, uint64_t value) {
  value = __builtin_bswap64(value);
  std::memcpy(at, &value, sizeof(value));
}

// Doorbell records: two words each.
inline constexpr uint32_t kReceiveRecord = 0, kSendRecord = 4;  // queue pairs: 16-bit counters
inline constexpr uint32_t kConsumerRecord = 0,
                          kArmRecord = 4;  // completion queues: 24-bit index; arm
inline constexpr uint32_t kArmSolicited = 1u << 24;
inline constexpr int kArmSequenceShift = 28;
inline constexpr uint32_t kIndexMask = 0xffffff;
// Bits that no arm command has: tells a record that was not written yet.
inline constexpr uint32_t kArmPoison = 0xffffffff;

// Send queues: basic blocks of 64 bytes; elements of 16-byte segments, the count of which is 6
// bits.
inline constexpr uint32_t kBlock = 64, kSegment = 16, kMaxSegments = 63;
inline constexpr int kBlockShift = 6;
// Control segment.
inline constexpr uint32_t kCtrlOpcode = 3, kCtrlOpmod = 0, kCtrlQpnDs = 4, kCtrlStream = 9,
                          kCtrlFlags = 11, kCtrlImmediate = 12;
inline constexpr uint8_t kFlagSolicited = 1 << 1, kFlagCompletionMask = 3 << 2,
                         kFlagCompletion = 2 << 2;

enum WqeOpcode : uint8_t {
  kOpNop = 0x00,
  kOpSendInvalidate = 0x01,
  kOpWrite = 0x08,
  kOpWriteImm = 0x09,
  kOpSend = 0x0a,
  kOpSendImm = 0x0b,
  kOpTso = 0x0e,
  kOpRead = 0x10,
  kOpAtomicCs = 0x11,
  kOpAtomicFa = 0x12,
  kOpMaskedCs = 0x14,
  kOpMaskedFa = 0x15,
  kOpUmr = 0x25,
  kOpTagMatching = 0x28,
  kOpMmo = 0x2f,
};

// Of kOpMmo: a copy.
inline constexpr uint8_t kOpmodDma = 1;

// Data segments: byte count, key, address. A count with the top bit is inline data.
inline constexpr uint32_t kInline = 0x80000000;
inline constexpr uint32_t kInlineHeader = 4;
// The key that ends the list of a receive.
inline constexpr uint32_t kTerminator = 0x100;
// Shared receive queues: each element begins with a segment that names the next one.
inline constexpr uint32_t kNextIndex = 2;

// Address vector of a datagram, or of a request of a DCI.
inline constexpr uint32_t kAvQkey = 0, kAvDcKey = 0, kAvQpn = 8, kAvRateSl = 12, kAvPathBits = 13,
                          kAvRlid = 14, kAvMac = 20, kAvTclass = 26, kAvHopLimit = 27, kAvGrh = 28,
                          kAvGid = 32;
inline constexpr uint32_t kAvExtended =
    0x80000000;  // in the QPN word: all 48 bytes are there, not 16
inline constexpr uint32_t kAvBaseSize = 16, kAvSize = 48;
inline constexpr uint32_t kAvGrhPresent = 1u << 30;
inline constexpr uint32_t kPrivilegedQkey = 0x80000000;  // IBTA: use the queue pair's instead

// Ethernet segment: the number of header bytes that are inline, and where they begin.
inline constexpr uint32_t kEthHeaderSize = 12, kEthHeaders = 14;

// Memory key updates (UMR): control, key context, translations.
inline constexpr uint32_t kUmrControlSize = 48, kUmrMkeySize = 64;
inline constexpr uint8_t kUmrInline = 1 << 7;
inline constexpr uint32_t kUmrFlags = 0, kUmrOctowords = 4, kUmrBsfOctowords = 6, kUmrMask = 8;
inline constexpr uint64_t kUmrMaskLength = 1 << 0, kUmrMaskStart = 1 << 6, kUmrMaskBsf = 1 << 12,
                          kUmrMaskKey = 1 << 13, kUmrMaskQpn = 1 << 14,
                          kUmrMaskAccess = 15ull << 18, kUmrMaskFree = 1ull << 29;
// Instead of the first translation: so many of the next, interleaved, so many times.
inline constexpr uint32_t kRepeatBlock = 0x400;
inline constexpr uint32_t kMkeyFree = 0, kMkeyAccess = 2, kMkeyQpnKey = 4, kMkeyStart = 16,
                          kMkeyLength = 24;
inline constexpr uint8_t kMkeyFreeBit = 1 << 6;
inline constexpr uint8_t kMkeyAtomic = 1 << 6, kMkeyRemoteWrite = 1 << 5, kMkeyRemoteRead = 1 << 4,
                         kMkeyLocalWrite = 1 << 3;

// Completion queue elements; offsets in the 64 bytes (in 128-byte elements the second half).
inline constexpr uint32_t kCqeSize = 64;
inline constexpr uint32_t kCqePathBits = 17, kCqeSlid = 22, kCqeFlagsRqpn = 24, kCqeSrqnUidx = 32,
                          kCqeImmediate = 36, kCqeApp = 40, kCqeAppOp = 41, kCqeAppInfo = 42,
                          kCqeByteCount = 44, kCqeTimestamp = 48, kCqeVendor = 54,
                          kCqeSyndrome = 55, kCqeOpcodeQpn = 56, kCqeWqeCounter = 60,
                          kCqeOpOwn = 63;
inline constexpr int kCqeGrhShift = 28, kCqeSlShift = 24;
// By fabric::NetworkHeader: MLX5_CQE_ROCE_L3_HEADER_TYPE_GRH, _IPV6, _IPV4 (linux/mlx5/device.h);
// bit 3: there is a UDP header.
inline constexpr uint8_t kCqeRoceHeader[] = {0, 1 | 8, 2 | 8};
inline constexpr uint8_t kCqeSolicited = 1 << 1;

enum CqeOpcode : uint8_t {
  kCqeRequester = 0,
  kCqeReceiveWriteImm = 1,
  kCqeReceiveSend = 2,
  kCqeReceiveSendImm = 3,
  kCqeReceiveSendInvalidate = 4,
  kCqeResize = 5,
  kCqeNoPacket = 6,
  kCqeRequesterError = 13,
  kCqeResponderError = 14,
  kCqeInvalid = 15,
};

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_WIRE_FORMAT_H_
