// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UMAD_MAD_H_
#define VABI_SHIMS_UMAD_MAD_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

// Management datagrams as they stand on the wire (IBTA volume 1, chapters 13, 14 and 16). Numbers
// are big-endian there.

namespace vabi::umad {

inline constexpr size_t kMadSize = 256;
inline constexpr size_t kMadHeader = 24;   // IB_MGMT_MAD_HDR
inline constexpr size_t kRmppHeader = 36;  // IB_MGMT_RMPP_HDR

enum MgmtClass : uint8_t {
  kSubnLid = 0x01,
  kSubnAdm = 0x03,
  kPerformance = 0x04,
  kBaseboard = 0x05,
  kDeviceMgmt = 0x06,
  kCommunication = 0x07,
  kVendorMlx1 = 0x09,  // MLX5_IB_VENDOR_CLASS1
  kVendorMlx2 = 0x0a,
  kDeviceAdm = 0x10,
  kBootInfo = 0x12,
  kCongestion = 0x21,
  kVendorOuiFirst = 0x30,
  kVendorOuiLast = 0x4f,
  kSubnDirected = 0x81,
};

enum Method : uint8_t {
  kGet = 0x01,
  kSet = 0x02,
  kSend = 0x03,
  kTrapRepress = 0x07,
  kGetTable = 0x12,
  kGetResp = 0x81,
  kGetTableResp = 0x92,
};

inline constexpr uint16_t kUnsupportedMethodAttribute = 0x000c;
inline constexpr uint16_t kInvalidValue = 0x001c;
inline constexpr uint16_t kDirection = 0x8000;  // of a directed-route SMP's status: on the way back
inline constexpr uint16_t kPermissiveLid = 0xffff;

// Access to one MAD in place.
class Mad {
 public:
  explicit Mad(uint8_t* bytes) : bytes_(bytes) {}
  uint8_t* bytes() const { return bytes_; }

  uint8_t base_version() const { return bytes_[0]; }
  uint8_t mgmt_class() const { return bytes_[1]; }
  uint8_t class_version() const { return bytes_[2]; }
  uint8_t method() const { return bytes_[3]; }
  void set_method(uint8_t method) { bytes_[3] = method; }
  uint16_t status() const { return Get16(4); }
  void set_status(uint16_t status) { Put16(4, status); }
  uint8_t hop_pointer() const { return bytes_[6]; }
  void set_hop_pointer(uint8_t value) { bytes_[6] = value; }
  uint8_t hop_count() const { return bytes_[7]; }
  uint64_t tid() const { return static_cast<uint64_t>(Get32(8)) << 32 | Get32(12); }
  void set_tid_high(uint32_t high) { Put32(8, high); }
  uint16_t attribute() const { return Get16(16); }
  uint32_t modifier() const { return Get32(20); }
  uint8_t rmpp_flags() const { return bytes_[26] & 7; }
  // Directed route
  uint16_t dr_slid() const { return Get16(32); }
  uint16_t dr_dlid() const { return Get16(34); }
  uint8_t initial_path(int hop) const { return bytes_[128 + hop]; }
  uint8_t return_path(int hop) const { return bytes_[192 + hop]; }
  bool returning() const { return (status() & kDirection) != 0; }
  // SMPs and performance MADs alike.
  static constexpr size_t kData = 64;

  bool IsSubnet() const { return mgmt_class() == kSubnLid || mgmt_class() == kSubnDirected; }
  // core/mad.c:ib_response_mad
  bool IsResponse() const {
    return (method() & 0x80) != 0 || method() == kTrapRepress ||
           (mgmt_class() == kBaseboard && (modifier() & 1) != 0);
  }

  uint16_t Get16(size_t at) const {
    return static_cast<uint16_t>(bytes_[at] << 8 | bytes_[at + 1]);
  }
  uint32_t Get32(size_t at) const { return static_cast<uint32_t>(Get16(at)) << 16 | Get16(at + 2); }
  void Put16(size_t at, uint64_t value) { PutBig(at, value, 2); }
  void Put24(size_t at, uint64_t value) { PutBig(at, value, 3); }
  void Put32(size_t at, uint64_t value) { PutBig(at, value, 4); }
  void Put64(size_t at, uint64_t value) { PutBig(at, value, 8); }

 private:
  void PutBig(size_t at, uint64_t value, int size) {
    for (int i = 0; i < size; ++i)
      bytes_[at + i] = static_cast<uint8_t>(value >> (8 * (size - 1 - i)));
  }
  uint8_t* bytes_;
};

inline bool IsVendorOui(uint8_t mgmt_class) {
  return mgmt_class >= kVendorOuiFirst && mgmt_class <= kVendorOuiLast;
}
// core/mad.c:ib_is_mad_class_rmpp
inline bool HasRmpp(uint8_t mgmt_class) {
  return mgmt_class == kSubnAdm || mgmt_class == kDeviceMgmt || mgmt_class == kDeviceAdm ||
         mgmt_class == kBootInfo || IsVendorOui(mgmt_class);
}
// core/mad.c:ib_get_mad_data_offset
inline size_t DataOffset(uint8_t mgmt_class) {
  if (mgmt_class == kSubnAdm) return 56;
  if (mgmt_class == kDeviceMgmt || mgmt_class == kDeviceAdm || mgmt_class == kBootInfo) return 64;
  if (IsVendorOui(mgmt_class)) return 40;
  return kMadHeader;
}

}  // namespace vabi::umad

#endif  // VABI_SHIMS_UMAD_MAD_H_
