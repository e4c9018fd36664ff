// SPDX-License-Identifier: BSD-2-Clause
// opensm: osm_sminfo_rcv.c, osm_sa.c:osm_sa_respond, osm_sa_node_record.c,
// osm_sa_portinfo_record.c, osm_sa_path_record.c. Records: ib_types.h; IBTA volume 1, chapter 15.
#include "shims/umad/subnet.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "shims/rdma_cm/path.h"
#include "shims/umad/answer.h"
#include "shims/umad/mad.h"

namespace vabi::umad {
namespace {

constexpr uint16_t kSmInfo = 0x20;
constexpr uint32_t kActive = 4;                                               // IB_PORT_ACTIVE
constexpr size_t kKey = 36, kAttributeOffset = 44, kMask = 48, kRecord = 56;  // IB_SA_MAD_HDR
constexpr uint64_t kSubnetKey = 1;                                            // OSM_DEFAULT_SA_KEY
// IB_SA_MAD_STATUS_*
constexpr uint16_t kNoRecords = 0x0300, kTooMany = 0x0400;
constexpr size_t kRmppFlags = 26, kSegment = 28, kPayload = 32;
constexpr size_t kSegmentBytes = kMadSize - kRecord;  // of records

using Record = std::vector<uint8_t>;
struct Question {
  uint64_t mask;
  uint32_t modifier;
  const uint8_t* record;
};
struct PortOf {
  const Device* device;
  uint8_t number;
  const PortImage& image() const { return device->port(number); }
};

uint64_t Get64(const uint8_t* at) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | at[i];
  return value;
}
void Append(Record* record, std::span<const uint8_t> bytes) {
  record->insert(record->end(), bytes.begin(), bytes.end());
}

// All that has a LID is in the subnet.
std::vector<PortOf> AllPorts() {
  std::vector<PortOf> all;
  for (uint32_t d = 0; d < DeviceCount(); ++d) {
    const Device* device = FindDevice(d);
    if (device == nullptr || device->node_gone() || device->image().link != LinkLayer::kInfiniband)
      continue;
    for (uint8_t p = 1; p <= device->image().port_count; ++p) {
      if (device->port(p).lid != 0 && device->PortState(p) == kActive) all.push_back({device, p});
    }
  }
  return all;
}

// A component of the record that a question may ask for by its bit of the mask: bytes that must be
// the same.
struct Component {
  uint8_t bit, at, size;
};
// False: one that the question names differs. `*unmodelled`: it names another one.
bool Fits(const Question& asked, const Record& record, std::span<const Component> components,
          const char** unmodelled) {
  uint64_t rest = asked.mask;
  bool fits = true;
  for (const Component& one : components) {
    if ((asked.mask >> one.bit & 1) == 0) continue;
    rest &= ~(uint64_t{1} << one.bit);
    fits &= std::memcmp(record.data() + one.at, asked.record + one.at, one.size) == 0;
  }
  if (rest != 0) *unmodelled = "a component by which the subnet administrator is asked for records";
  return fits;
}

// NodeRecord and PortInfoRecord begin with the LID.
Record BeginRecord(const PortOf& port) {
  Record record(4);
  Mad(record.data()).Put16(0, port.image().lid);
  return record;
}

// IB_NR_COMPMASK_*
constexpr Component kNodeComponents[] = {
    {0, 0, 2},  {2, 4, 1},  {3, 5, 1},   {4, 6, 1},   {5, 7, 1},   {6, 8, 8},   {7, 16, 8},
    {8, 24, 8}, {9, 32, 2}, {10, 34, 2}, {11, 36, 4}, {12, 40, 1}, {13, 41, 3}, {14, 44, 64},
};
std::vector<Record> NodeRecords(const Question& asked, const char** unmodelled) {
  std::vector<Record> found;
  for (const PortOf& port : AllPorts()) {
    uint8_t text[64];
    Record record = BeginRecord(port);
    DescribeNode(*port.device, port.number, text);
    Append(&record, std::span(text).first(40));
    std::memcpy(text, port.device->image().node_desc, sizeof(text));
    Append(&record, text);
    if (Fits(asked, record, kNodeComponents, unmodelled)) found.push_back(std::move(record));
  }
  return found;
}

// IB_PIR_COMPMASK_LID, _PORTNUM
constexpr Component kPortComponents[] = {{0, 0, 2}, {1, 2, 1}};
std::vector<Record> PortRecords(const Question& asked, const char** unmodelled) {
  constexpr uint64_t kCapabilities = 1 << 7;  // IB_PIR_COMPMASK_CAPMASK
  constexpr uint32_t kAllOf = 1u << 31;       // matches what has these bits, and others
  constexpr size_t kSize = 72, kCapMask = 4 + 20;
  std::vector<Record> found;
  Question rest = asked;
  const bool by_capabilities = (asked.mask & kCapabilities) != 0 && asked.modifier == kAllOf;
  if (by_capabilities) rest.mask &= ~kCapabilities;
  for (const PortOf& port : AllPorts()) {
    uint8_t text[64];
    Record record = BeginRecord(port);
    record[2] = port.number;
    DescribePort(*port.device, port.number, text);
    Append(&record, text);
    record.resize(kSize);
    bool fits = Fits(rest, record, kPortComponents, unmodelled);
    for (size_t i = 0; by_capabilities && i < 4; ++i) {
      const uint8_t wanted = asked.record[kCapMask + i];
      fits &= (record[kCapMask + i] & wanted) == wanted;
    }
    if (fits) found.push_back(std::move(record));
  }
  return found;
}

// IB_PR_COMPMASK_DGID, _SGID, _DLID, _SLID, _PKEY; of REVERSIBLE and NUMBPATH all paths are well.
constexpr Component kPathComponents[] = {
    {2, 8, 16}, {3, 24, 16}, {4, 40, 2}, {5, 42, 2}, {13, 50, 2}};
std::vector<Record> PathRecords(const Question& asked, const char** unmodelled) {
  constexpr uint64_t kReversible = 1 << 11, kCount = 1 << 12;
  constexpr uint8_t kExactly = 2 << 6;
  std::vector<Record> found;
  Question rest = asked;
  rest.mask &= ~(kReversible | kCount);
  const std::vector<PortOf> all = AllPorts();
  for (const PortOf& to : all) {
    for (const PortOf& from : all) {
      rdma_cm::Identifier ends;
      ends.pkey = 0xffff;
      std::memcpy(ends.source_gid, from.image().gids[0].raw, 16);
      std::memcpy(ends.target_gid, to.image().gids[0].raw, 16);
      rdma_cm::Path path;
      if (!rdma_cm::SubnetPath(to.device->world(), ends, &path)) continue;
      Record record(64);
      Mad put(record.data());
      std::memcpy(record.data() + 8, path.target, 16);
      std::memcpy(record.data() + 24, path.source, 16);
      put.Put16(40, path.target_lid);
      put.Put16(42, path.source_lid);
      record[49] = 0x80;  // reversible
      put.Put16(50, path.pkey);
      record[54] = kExactly | path.mtu;
      record[55] = kExactly | path.rate;
      record[56] = kExactly | path.life;
      if (Fits(rest, record, kPathComponents, unmodelled)) found.push_back(std::move(record));
    }
  }
  return found;
}

struct AttributeRow {
  uint16_t attribute;
  std::vector<Record> (*find)(const Question& asked, const char** unmodelled);
};
constexpr AttributeRow kAttributes[] = {
    {0x11, NodeRecords}, {0x12, PortRecords}, {0x35, PathRecords}};

// osm_sa_respond, and ib_mad_rmpp's account of all segments: the first one's header, with the
// length of everything, and the records behind each other.
std::vector<uint8_t> Respond(const uint8_t in[256], uint8_t method, uint16_t status,
                             const std::vector<Record>& records) {
  std::vector<uint8_t> out(in, in + kRecord);
  const bool table = method == kGetTableResp;
  Mad mad(out.data());
  mad.set_method(method);
  mad.set_status(status);
  std::memset(out.data() + kMadHeader, 0, kKey - kMadHeader);
  mad.Put64(kKey, 0);
  const size_t padded = records.empty() ? 0 : (records[0].size() + 7) / 8 * 8;
  mad.Put16(kAttributeOffset, padded / 8);
  for (const Record& record : records) {
    Append(&out, record);
    if (table) out.resize(out.size() + padded - record.size());
  }
  if (!table) {
    out.resize(kMadSize);
    return out;
  }
  constexpr uint8_t kVersion = 1, kData = 1, kActive = 1, kFirst = 2, kLast = 4;
  constexpr size_t kClassHeader = kRecord - kRmppHeader;
  const size_t bytes = out.size() - kRecord;
  const size_t segments = std::max<size_t>(1, (bytes + kSegmentBytes - 1) / kSegmentBytes);
  out[kMadHeader] = kVersion;
  out[kMadHeader + 1] = kData;
  out[kRmppFlags] = kActive | kFirst | (segments == 1 ? kLast : 0);
  Mad whole(out.data());
  whole.Put32(kSegment, 1);
  whole.Put32(kPayload, bytes + segments * kClassHeader);
  return out;
}

// osm_sminfo_rcv.c: of a manager of the lowest priority, whose count of MADs stands still.
std::vector<uint8_t> TellManager(const PortOf& manager, const uint8_t in[256]) {
  constexpr uint8_t kMaster = 3;
  std::vector<uint8_t> out(in, in + kMadSize);
  std::memset(out.data() + Mad::kData, 0, 64);
  std::memcpy(out.data() + Mad::kData, manager.image().gids[0].raw + 8, 8);
  out[Mad::kData + 20] = kMaster;
  Mad reply(out.data());
  reply.set_method(kGetResp);
  reply.set_status(0);
  return out;
}

}  // namespace

std::vector<uint8_t> AskSubnet(const Device& at, uint8_t port, uint32_t qpn, const uint8_t in[256],
                               const char** unmodelled) {
  uint8_t copy[kMadSize];
  std::memcpy(copy, in, sizeof(copy));
  const Mad request(copy);
  const PortOf here = {&at, port};
  if (at.image().link != LinkLayer::kInfiniband || here.image().lid == 0 ||
      here.image().lid != here.image().sm_lid || request.base_version() != 1)
    return {};
  const bool to_manager =
      qpn == 0 && request.mgmt_class() == kSubnLid && request.attribute() == kSmInfo;
  const bool to_administrator = qpn == 1 && request.mgmt_class() == kSubnAdm;
  if ((to_manager || to_administrator) && at.PortState(port) != kActive) {
    *unmodelled = "a question to the subnet through a port that is down";
    return {};
  }
  if (to_manager) {
    if (request.method() == kGet) return TellManager(here, in);
    *unmodelled = "a command to the subnet manager";
    return {};
  }
  if (!to_administrator || request.IsResponse()) return {};
  // osm_sa_mad_ctrl.c:sa_mad_ctrl_rcv_callback: discarded, so that the program waits in vain.
  const uint64_t key = Get64(in + kKey);
  if (key != 0 && key != kSubnetKey) return {};
  const bool table = request.method() == kGetTable;
  const auto row =
      std::find_if(std::begin(kAttributes), std::end(kAttributes),
                   [&](const AttributeRow& one) { return one.attribute == request.attribute(); });
  constexpr uint8_t kClassVersion = 2;
  if (row == std::end(kAttributes) || (!table && request.method() != kGet) ||
      request.class_version() != kClassVersion) {
    *unmodelled = "a question to the subnet administrator other than for nodes, ports and paths";
    return {};
  }
  const Question asked = {Get64(in + kMask), request.modifier(), in + kRecord};
  std::vector<Record> records = row->find(asked, unmodelled);
  if (*unmodelled != nullptr) return {};
  if (table) return Respond(in, kGetTableResp, 0, records);
  if (records.size() == 1) return Respond(in, kGetResp, 0, records);
  return Respond(in, kGetResp, records.empty() ? kNoRecords : kTooMany, {});
}

}  // namespace vabi::umad
