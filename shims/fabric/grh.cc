// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "shims/fabric/address.h"
#include "shims/fabric/message.h"

namespace vabi::fabric {
namespace {

constexpr uint8_t kNextHeaderIba = 0x1b, kUdp = 17;
constexpr uint8_t kIpv4NoOptions = 0x45;  // version, header length in words
// Behind the network header of a RoCE v2 datagram: UDP 8, BTH 12, DETH 8, ICRC 4 bytes.
constexpr uint64_t kRoceOverhead = 32;
// Behind a GRH: BTH 12, DETH 8, ICRC 4.
constexpr uint64_t kIbaOverhead = 24;
constexpr uint8_t kMappedIpv4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void Put16(uint8_t* at, uint64_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}

uint16_t InternetChecksum(const uint8_t* header, int size) {
  uint32_t sum = 0;
  for (int i = 0; i < size; i += 2) sum += static_cast<uint32_t>(header[i] << 8 | header[i + 1]);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

}  // namespace

void MakeGrh(const Endpoint& sender, const AddressVector& address, uint64_t length,
             uint8_t out[kGrhBytes]) {
  memset(out, 0, kGrhBytes);
  const uint64_t padded = (length + 3) & ~3ULL;
  uint8_t type = 0;
  const uint8_t* sgid = SourceGid(sender.device, sender.port, address.sgid_index, &type);
  if (sgid == nullptr) sgid = sender.gid;
  const bool infiniband = IsInfiniband(sender.device, sender.port);
  if (!infiniband && memcmp(sgid, kMappedIpv4, sizeof(kMappedIpv4)) == 0) {
    // RoCE v2 over IPv4: the header stands in the second half (IBTA annex A17).
    uint8_t* ip = out + 20;
    ip[0] = kIpv4NoOptions;
    ip[1] = address.traffic_class;
    Put16(ip + 2, 20 + padded + kRoceOverhead);
    ip[6] = 0x40;  // do not fragment
    ip[8] = address.hop_limit;
    ip[9] = kUdp;
    memcpy(ip + 12, sgid + 12, 4);
    memcpy(ip + 16, address.dgid + 12, 4);
    Put16(ip + 10, InternetChecksum(ip, 20));
    return;
  }
  const bool udp = !infiniband && type == 2;  // IB_UVERBS_GID_TYPE_ROCE_V2
  out[0] = static_cast<uint8_t>(0x60 | address.traffic_class >> 4);
  out[1] = static_cast<uint8_t>(address.traffic_class << 4 | (address.flow_label >> 16 & 0xf));
  Put16(out + 2, address.flow_label);
  Put16(out + 4, padded + (udp ? kRoceOverhead : kIbaOverhead));
  out[6] = udp ? kUdp : kNextHeaderIba;
  out[7] = address.hop_limit;
  memcpy(out + 8, sgid, 16);
  memcpy(out + 24, address.dgid, 16);
}

NetworkHeader NetworkHeaderOf(const uint8_t header[kGrhBytes]) {
  if (header[0] == 0 && header[20] == kIpv4NoOptions) return NetworkHeader::kIpv4;
  return header[6] == kUdp ? NetworkHeader::kIpv6 : NetworkHeader::kGrh;
}

}  // namespace vabi::fabric
