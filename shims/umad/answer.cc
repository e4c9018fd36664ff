// SPDX-License-Identifier: BSD-2-Clause
#include "shims/umad/answer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "shims/umad/agents.h"
#include "shims/umad/mad.h"
#include "shims/umad/subnet.h"

namespace vabi::umad {
namespace {

constexpr uint32_t kIsSm = 2;  // PortInfo:CapabilityMask, IB_PORT_SM
std::atomic<bool> subnet_manager[kMaxDevices][2];

struct Asked {
  const Device& device;
  uint8_t port;
  uint32_t modifier;
};

uint64_t PortGuid(const Asked& asked) {
  const uint8_t* gid = asked.device.port(asked.port).gids[0].raw;
  uint64_t guid = 0;
  for (int i = 8; i < 16; ++i) guid = guid << 8 | gid[i];
  return guid;
}

// Each of these fills the 64 bytes of an attribute (IBTA 14.2.5, 16.1.3) and answers a MAD status.

uint16_t NodeDescription(const Asked& asked, Mad* out) {
  std::memcpy(out->bytes() + Mad::kData, asked.device.image().node_desc, 64);
  return 0;
}

uint16_t NodeInfo(const Asked& asked, Mad* out) {
  constexpr size_t at = Mad::kData;
  const DeviceImage& image = asked.device.image();
  const DeviceAttributes& attributes = asked.device.attributes();
  uint8_t* data = out->bytes() + at;
  data[0] = data[1] = 1;  // BaseVersion, ClassVersion
  data[2] = image.node_type;
  data[3] = image.port_count;
  out->Put64(at + 4, image.sys_image_guid);
  out->Put64(at + 12, image.node_guid);
  out->Put64(at + 20, PortGuid(asked));
  out->Put16(at + 28, asked.device.port(asked.port).pkey_count);
  out->Put16(at + 30, attributes.vendor_part_id);
  out->Put32(at + 32, attributes.hw_ver);
  data[36] = asked.port;
  out->Put24(at + 37, attributes.vendor_id);
  return 0;
}

uint16_t GuidInfo(const Asked& asked, Mad* out) {
  const uint32_t block = asked.modifier;  // of eight GUIDs
  if (block * 8 >= asked.device.port(asked.port).gid_table_length) return kInvalidValue;
  if (block == 0) out->Put64(Mad::kData, PortGuid(asked));
  return 0;
}

uint16_t PkeyTable(const Asked& asked, Mad* out) {
  const PortImage& port = asked.device.port(asked.port);
  const uint32_t first = (asked.modifier & 0xffff) * 32;
  if (first >= port.pkey_count) return kInvalidValue;
  for (uint32_t i = 0; i < 32 && first + i < std::size(port.pkeys); ++i)
    out->Put16(Mad::kData + 2 * i, port.pkeys[first + i]);
  return 0;
}

// IB_SPEED_* to the two codes of PortInfo: LinkSpeedActive, LinkSpeedExtActive.
struct SpeedCode {
  uint16_t speed;
  uint8_t plain, extended;
};
constexpr SpeedCode kSpeeds[] = {{1, 1, 0},  {2, 2, 0},  {4, 4, 0},  {8, 4, 0},
                                 {16, 4, 1}, {32, 4, 2}, {64, 4, 4}, {128, 4, 8}};

uint16_t PortInfo(const Asked& asked, Mad* out) {
  // Of a channel adapter, port 0 is the one that was asked.
  const uint32_t number = (asked.modifier & 0xff) == 0 ? asked.port : asked.modifier & 0xff;
  if (!asked.device.ValidPort(number)) return kInvalidValue;
  const PortImage& port = asked.device.port(number);
  PortAttributes more;
  asked.device.driver().DescribePort(asked.device, number, &more);
  constexpr size_t at = Mad::kData;
  uint8_t* data = out->bytes() + at;
  SpeedCode speed = {0, 1, 0};
  for (const SpeedCode& code : kSpeeds) {
    if (code.speed == port.active_speed) speed = code;
  }
  const bool manager = subnet_manager[asked.device.number()][number - 1].load();
  std::memcpy(data + 8, port.gids[0].raw, 8);  // GidPrefix
  out->Put16(at + 16, port.lid);
  out->Put16(at + 18, port.sm_lid);
  out->Put32(at + 20, port.cap_flags | (manager ? kIsSm : 0));
  data[28] = asked.port;
  data[29] = data[30] = static_cast<uint8_t>(port.active_width * 2 - 1);  // enabled, supported
  data[31] = port.active_width;
  const auto plain_speeds = static_cast<uint8_t>(speed.plain * 2 - 1);
  data[32] = static_cast<uint8_t>(plain_speeds << 4 | asked.device.PortState(number));
  data[33] = static_cast<uint8_t>(asked.device.PortPhysState(number) << 4 | 2);  // default: polling
  data[34] = port.lmc & 7;
  data[35] = static_cast<uint8_t>(speed.plain << 4 | plain_speeds);
  data[36] = static_cast<uint8_t>(port.active_mtu << 4 | (port.sm_sl & 15));
  data[37] = static_cast<uint8_t>(more.max_vl_num << 4 | (more.init_type_reply & 15));
  data[41] = port.max_mtu;
  data[43] = static_cast<uint8_t>(more.max_vl_num << 4);
  out->Put16(at + 46, more.bad_pkey_cntr);
  out->Put16(at + 48, more.qkey_viol_cntr);
  data[50] = static_cast<uint8_t>(port.gid_table_length);
  data[51] = more.subnet_timeout & 31;
  out->Put16(at + 60, port.cap_flags2);
  const auto extended_speeds = static_cast<uint8_t>(speed.extended * 2 - (speed.extended != 0));
  data[62] = static_cast<uint8_t>(speed.extended << 4 | extended_speeds);
  data[63] = extended_speeds;
  return 0;
}

uint16_t ClassPortInfo(const Asked&, Mad* out) {
  out->bytes()[Mad::kData] = out->bytes()[Mad::kData + 1] = 1;  // BaseVersion, ClassVersion
  out->Put16(Mad::kData + 2, 0x200);                            // IB_PMA_CLASS_CAP_EXT_WIDTH
  return 0;
}

// Every counter of the fake devices is zero (shims/sysfs/counters.h): the port that was asked for
// and the mask of counters stand there already.
uint16_t Counters(const Asked& asked, Mad* out) {
  const uint8_t port = out->bytes()[Mad::kData + 1];
  if (port != asked.port && port != 0xff) return kInvalidValue;
  std::memset(out->bytes() + Mad::kData + 4, 0, 128 - 4);
  return 0;
}

using Fill = uint16_t (*)(const Asked&, Mad*);
struct AttributeRow {
  uint8_t mgmt_class;
  uint16_t attribute;
  Fill fill;  // null: a real device answers, this one does not model it
  bool set;   // Set is the same as Get here
};
constexpr AttributeRow kAttributes[] = {
    {kSubnLid, 0x10, NodeDescription, false},
    {kSubnLid, 0x11, NodeInfo, false},
    {kSubnLid, 0x14, GuidInfo, false},
    {kSubnLid, 0x15, PortInfo, false},
    {kSubnLid, 0x16, PkeyTable, false},
    {kSubnLid, 0x17, nullptr, false},    // SLtoVLMappingTable
    {kSubnLid, 0x18, nullptr, false},    // VLArbitrationTable
    {kSubnLid, 0xff90, nullptr, false},  // ExtendedPortInfo of ConnectX
    {kPerformance, 0x01, ClassPortInfo, false},
    {kPerformance, 0x10, nullptr, false},  // PortSamplesControl
    {kPerformance, 0x11, nullptr, false},  // PortSamplesResult
    {kPerformance, 0x12, Counters, true},  // PortCounters
    {kPerformance, 0x15, nullptr, false},  // PortRcvErrorDetails
    {kPerformance, 0x16, nullptr, false},  // PortXmitDiscardDetails
    {kPerformance, 0x1d, Counters, true},  // PortCountersExtended
};

constexpr uint16_t kSmInfo = 0x20;

}  // namespace

void DescribeNode(const Device& device, uint8_t port, uint8_t out[64]) {
  uint8_t mad[kMadSize] = {};
  Mad whole(mad);
  NodeInfo({device, port, 0}, &whole);
  std::memcpy(out, mad + Mad::kData, 64);
}

void DescribePort(const Device& device, uint8_t port, uint8_t out[64]) {
  uint8_t mad[kMadSize] = {};
  Mad whole(mad);
  PortInfo({device, port, port}, &whole);
  std::memcpy(out, mad + Mad::kData, 64);
}

bool ProcessMad(const Device& device, uint8_t port, const uint8_t in[256], uint8_t out[256],
                const char** unmodelled) {
  // Only mlx5's agents are known; rxe has none, but for the data of its sysfs counters, whose
  // answers have no header and are dropped on arrival (sw/rxe/rxe_mad.c:rxe_process_mad, 7.3).
  if (device.image().driver == DriverId::rxe) return false;
  if (device.image().driver != DriverId::mlx5) {
    *unmodelled = "the management agents of this device";
    return false;
  }
  uint8_t copy[256];
  std::memcpy(copy, in, sizeof(copy));
  const Mad request(copy);
  const uint8_t mgmt_class =
      request.mgmt_class() == kSubnDirected ? uint8_t{kSubnLid} : request.mgmt_class();
  if (request.method() != kGet && request.method() != kSet) return false;
  if (mgmt_class == kSubnLid) {
    if (request.attribute() == kSmInfo) return false;
  } else if (mgmt_class == kVendorMlx1 || mgmt_class == kVendorMlx2 || mgmt_class == kCongestion) {
    *unmodelled = "a vendor's or congestion management MAD";
    return false;
  } else if (mgmt_class != kPerformance) {
    return false;
  }
  std::memcpy(out, in, 256);
  Mad reply(out);
  reply.set_method(kGetResp);
  uint16_t status = kUnsupportedMethodAttribute;
  for (const AttributeRow& row : kAttributes) {
    if (row.mgmt_class != mgmt_class || row.attribute != request.attribute()) continue;
    if (row.fill == nullptr || (request.method() == kSet && !row.set)) {
      *unmodelled = row.fill == nullptr ? "an attribute that the device's agent has"
                                        : "setting an attribute by a MAD";
      break;
    }
    if (mgmt_class == kSubnLid) std::memset(out + Mad::kData, 0, 64);
    status = row.fill({device, port, request.modifier()}, &reply);
  }
  // The return bit of directed-route answers (mlx5_ib_process_mad).
  if (request.mgmt_class() == kSubnDirected) status |= kDirection;
  reply.set_status(status);
  return true;
}

Answered Receive(const Device& device, uint8_t port, uint32_t qpn, const uint8_t in[256],
                 uint8_t out[256], std::vector<uint8_t>* message, const char** unmodelled) {
  uint8_t copy[256];
  std::memcpy(copy, in, sizeof(copy));
  const Mad request(copy);
  // validate_mad
  constexpr uint16_t kClassPortInfo = 1;
  if (request.base_version() != 1 || request.IsSubnet() != (qpn == 0)) return Answered::kNothing;
  if (request.mgmt_class() == kCommunication && request.attribute() != kClassPortInfo &&
      request.method() != kSend) {
    return Answered::kNothing;
  }
  if (ProcessMad(device, port, in, out, unmodelled)) return Answered::kReply;
  if (*unmodelled != nullptr) return Answered::kNothing;
  if (request.IsResponse()) return Answered::kNothing;
  if (FindListener(device, port, in) != nullptr) {
    *unmodelled = "a MAD for another program's agent";
    return Answered::kNothing;
  }
  std::vector<uint8_t> told = AskSubnet(device, port, qpn, in, unmodelled);
  if (!told.empty()) {
    std::memset(out, 0, kMadSize);
    std::memcpy(out, told.data(), std::min(told.size(), kMadSize));
    if (out[3] == kGetTableResp) *message = std::move(told);
    return Answered::kReply;
  }
  if (*unmodelled != nullptr) return Answered::kNothing;
  if (request.mgmt_class() == kCommunication && request.method() == kSend) {
    *unmodelled = "a MAD for the kernel's communication manager";
    return Answered::kNothing;
  }
  // generate_unmatched_resp
  if (request.method() != kGet && request.method() != kSet) return Answered::kNothing;
  std::memcpy(out, in, 256);
  Mad reply(out);
  reply.set_method(kGetResp);
  reply.set_status(kUnsupportedMethodAttribute |
                   (request.mgmt_class() == kSubnDirected ? kDirection : 0));
  return Answered::kReply;
}

void SetSubnetManager(const Device& device, uint8_t port, bool set) {
  subnet_manager[device.number()][port - 1].store(set);
}

}  // namespace vabi::umad
