// SPDX-License-Identifier: BSD-2-Clause
#include "shims/netlink/nldev.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "harness/world/nodes.h"
#include "shims/netlink/message.h"
#include "shims/netlink/resources.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/faults.h"

namespace vabi::netlink {
namespace {

constexpr uint16_t kDumpFlags = NLM_F_ROOT | NLM_F_MATCH;  // NLM_F_DUMP

// What a handler works with.
struct Ask {
  const World& world;
  const Request& request;
  ConstId command;
  Attributes attributes;
};

int Refuse(const World& world, const Request& request, RuleId id) {
  const RuleEntry& rule = world.Rule(id);
  if (request.record != nullptr) request.record->rule = static_cast<int>(Index(id));
  return rule.relaxed ? -EXFULL : -rule.error;
}

bool Violates(const World& world, RuleId id, bool condition) {
  const RuleEntry& rule = world.Rule(id);
  return condition && rule.on && !rule.relaxed;
}

int Unmodelled(const Request& request, const char* what) {
  if (request.record != nullptr) request.record->unmodelled = what;
  return -EOPNOTSUPP;
}

int64_t Knob(const World& world, KnobId id) { return world.Knob(id); }

// What this network namespace sees and nobody unplugged.
bool IsThere(const WorldImage& image, uint32_t number) {
  const Device* device = FindDevice(number);
  return !image.device[number].hidden_from_netlink && (device == nullptr || !device->node_gone());
}

// core/device.c:ib_device_get_by_index: only what this network namespace sees.
const DeviceImage* DeviceByIndex(const World& world, uint32_t index, uint32_t* number) {
  const WorldImage& image = world.image();
  for (uint32_t i = 0; i < image.device_count; ++i) {
    if (image.device[i].index != index || !IsThere(image, i)) continue;
    *number = i;
    return &image.device[i];
  }
  return nullptr;
}

bool IsPort(const DeviceImage& device, uint32_t port) {
  return port >= 1 && port <= device.port_count;
}

bool IsInfiniband(const DeviceImage& device) { return device.link == LinkLayer::kInfiniband; }

// enum rdma_node_type: RDMA_NODE_RNIC
bool IsIwarp(const DeviceImage& device) { return device.node_type == 4; }

uint16_t TypeOf(const World& world, ConstId command) {
  return static_cast<uint16_t>((world.Flag(VABI_C(RDMA_NL_NLDEV)) << 10) | world.Flag(command));
}

void PutHandle(const World& world, const DeviceImage& device, Message* message) {
  message->PutU32(world, VABI_C(RDMA_NLDEV_ATTR_DEV_INDEX), device.index);
  message->PutString(world, VABI_C(RDMA_NLDEV_ATTR_DEV_NAME), device.name);
}

// fill_dev_info
void PutDevice(const World& world, uint32_t number, Message* message) {
  const DeviceImage& device = world.image().device[number];
  const Device* fake = FindDevice(number);
  PutHandle(world, device, message);
  message->PutU32(world, VABI_C(RDMA_NLDEV_ATTR_PORT_INDEX), device.port_count);
  message->PutU64(world, VABI_C(RDMA_NLDEV_ATTR_CAP_FLAGS),
                  fake != nullptr ? fake->attributes().device_cap_flags : 0);
  if (device.fw_ver[0] != '\0') {
    message->PutString(world, VABI_C(RDMA_NLDEV_ATTR_FW_VERSION), device.fw_ver);
  }
  message->PutU64(world, VABI_C(RDMA_NLDEV_ATTR_NODE_GUID), device.node_guid);
  message->PutU64(world, VABI_C(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID), device.sys_image_guid);
  message->PutU8(world, VABI_C(RDMA_NLDEV_ATTR_DEV_NODE_TYPE), device.node_type);
  if (Knob(world, KnobId::netlink_dev_dim))
    message->PutU8(world, VABI_C(RDMA_NLDEV_ATTR_DEV_DIM), 0);
  if (Knob(world, KnobId::netlink_name_assign)) {
    // RDMA_NAME_ASSIGN_TYPE_USER for devices that `rdma link add` named, else UNKNOWN.
    message->PutU8(world, VABI_C(RDMA_NLDEV_ATTR_NAME_ASSIGN_TYPE),
                   device.pci_address[0] == '\0' ? 1 : 0);
  }
  if (Knob(world, KnobId::netlink_dev_protocol)) {
    message->PutString(world, VABI_C(RDMA_NLDEV_ATTR_DEV_PROTOCOL),
                       IsInfiniband(device) ? "ib"
                       : IsIwarp(device)    ? "iw"
                                            : "roce");
  }
}

uint64_t SubnetPrefix(const PortImage& port) {
  uint64_t prefix = 0;
  for (int i = 0; i < 8; ++i) prefix = prefix << 8 | port.gids[0].raw[i];
  return prefix;
}

// fill_port_info
void PutPort(const World& world, uint32_t device_number, uint32_t number, Message* message) {
  const DeviceImage& device = world.image().device[device_number];
  const PortImage& port = device.ports[number - 1];
  const Device* fake = FindDevice(device_number);
  const bool infiniband = IsInfiniband(device);
  PutHandle(world, device, message);
  message->PutU32(world, VABI_C(RDMA_NLDEV_ATTR_PORT_INDEX), number);
  if (infiniband || Knob(world, KnobId::netlink_port_caps_all)) {
    uint64_t caps = port.cap_flags;
    if (Knob(world, KnobId::netlink_port_caps2))
      caps |= static_cast<uint64_t>(port.cap_flags2) << 32;
    message->PutU64(world, VABI_C(RDMA_NLDEV_ATTR_CAP_FLAGS), caps);
  }
  if (infiniband) {
    message->PutU64(world, VABI_C(RDMA_NLDEV_ATTR_SUBNET_PREFIX), SubnetPrefix(port));
    message->PutU32(world, VABI_C(RDMA_NLDEV_ATTR_LID), port.lid);
    message->PutU32(world, VABI_C(RDMA_NLDEV_ATTR_SM_LID), port.sm_lid);
    message->PutU8(world, VABI_C(RDMA_NLDEV_ATTR_LMC), port.lmc);
  }
  message->PutU8(world, VABI_C(RDMA_NLDEV_ATTR_PORT_STATE),
                 fake != nullptr ? fake->PortState(number) : port.state);
  message->PutU8(world, VABI_C(RDMA_NLDEV_ATTR_PORT_PHYS_STATE),
                 fake != nullptr ? fake->PortPhysState(number) : port.phys_state);
  // ib_device_get_netdev: IPoIB's interface is none of the device's own.
  if (Knob(world, KnobId::netlink_port_ndev) && port.ndev[0] != '\0' && !infiniband) {
    message->PutU32(world, VABI_C(RDMA_NLDEV_ATTR_NDEV_INDEX), port.ndev_ifindex);
    message->PutString(world, VABI_C(RDMA_NLDEV_ATTR_NDEV_NAME), port.ndev);
  }
}

// The device that DEV_INDEX asks for: 0 or -errno.
int FindAsked(const Ask& ask, const DeviceImage** device, uint32_t* number) {
  const World& world = ask.world;
  if (!ask.attributes.Has(world, VABI_C(RDMA_NLDEV_ATTR_DEV_INDEX))) {
    return Refuse(world, ask.request, RuleId::netlink_no_index);
  }
  *device =
      DeviceByIndex(world, ask.attributes.U32(world, VABI_C(RDMA_NLDEV_ATTR_DEV_INDEX)), number);
  if (*device == nullptr) return Refuse(world, ask.request, RuleId::netlink_no_device);
  if (ask.request.record != nullptr) ask.request.record->device = (*device)->name;
  return 0;
}

Message Answering(const Ask& ask, ConstId command) {
  return Message(TypeOf(ask.world, command), 0, ask.request.header.nlmsg_seq, ask.request.port_id);
}

// nldev_get_doit
int DoGet(const Ask& ask, std::string* out) {
  const DeviceImage* device = nullptr;
  uint32_t number = 0;
  if (const int error = FindAsked(ask, &device, &number); error != 0) return error;
  Message message = Answering(ask, VABI_C(RDMA_NLDEV_CMD_GET));
  PutDevice(ask.world, number, &message);
  *out = message.Finish();
  return 0;
}

// nldev_port_get_doit: its answer has the number of the GET command.
int DoPortGet(const Ask& ask, std::string* out) {
  const World& world = ask.world;
  if (ask.attributes.Has(world, VABI_C(RDMA_NLDEV_ATTR_DEV_INDEX)) &&
      !ask.attributes.Has(world, VABI_C(RDMA_NLDEV_ATTR_PORT_INDEX))) {
    return Refuse(world, ask.request, RuleId::netlink_no_port);
  }
  const DeviceImage* device = nullptr;
  uint32_t number = 0;
  if (const int error = FindAsked(ask, &device, &number); error != 0) return error;
  const uint32_t port = ask.attributes.U32(world, VABI_C(RDMA_NLDEV_ATTR_PORT_INDEX));
  if (!IsPort(*device, port)) return Refuse(world, ask.request, RuleId::netlink_bad_port);
  Message message = Answering(ask, VABI_C(RDMA_NLDEV_CMD_GET));
  PutPort(world, number, port, &message);
  *out = message.Finish();
  return 0;
}

// include/linux/kdev_t.h:huge_encode_dev (new_encode_dev)
uint64_t EncodeDevice(uint32_t major, uint32_t minor) {
  return (minor & 0xff) | (static_cast<uint64_t>(major) << 8) |
         (static_cast<uint64_t>(minor & ~0xffU) << 12);
}

// ib_umad_get_nl_info, ucma_get_global_nl_info: a node, its ABI and its name.
std::string ChardevAnswer(const Ask& ask, uint32_t major, uint32_t minor, uint64_t abi,
                          const char* name, const DeviceImage* driver_of = nullptr) {
  const World& world = ask.world;
  Message message = Answering(ask, VABI_C(RDMA_NLDEV_CMD_GET_CHARDEV));
  if (driver_of != nullptr) {
    message.PutU32(world, VABI_C(RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID), driver_of->driver_id);
  }
  message.PutU64(world, VABI_C(RDMA_NLDEV_ATTR_CHARDEV), EncodeDevice(major, minor));
  message.PutU64(world, VABI_C(RDMA_NLDEV_ATTR_CHARDEV_ABI), abi);
  message.PutString(world, VABI_C(RDMA_NLDEV_ATTR_CHARDEV_NAME), name);
  return message.Finish();
}

// ib_umad's client. The one of issmN has no data of its own for get_port to find a port in, so that
// it refuses whatever is asked (core/user_mad.c:ib_issm_get_nl_info).
int MadChardev(const Ask& ask, uint32_t number, bool has_port, std::string* out) {
  constexpr uint64_t kMadAbi = 5;  // IB_USER_MAD_ABI_VERSION
  if (!has_port) return Refuse(ask.world, ask.request, RuleId::netlink_chardev_umad_port);
  const uint32_t port = ask.attributes.U32(ask.world, VABI_C(RDMA_NLDEV_ATTR_PORT_INDEX));
  ForEachMadNode(ask.world.image(), [&](const MadNode& mad) {
    if (mad.device != number || mad.port != port || mad.subnet_manager) return;
    char name[32];
    std::snprintf(name, sizeof name, "umad%u", mad.number);
    *out = ChardevAnswer(ask, kMadMajor, mad.minor, kMadAbi, name);
  });
  return out->empty() ? Refuse(ask.world, ask.request, RuleId::netlink_chardev_unknown) : 0;
}

// nldev_get_chardev, ib_uverbs_get_nl_info
int DoGetChardev(const Ask& ask, std::string* out) {
  const World& world = ask.world;
  const Attributes& attributes = ask.attributes;
  if (!attributes.Has(world, VABI_C(RDMA_NLDEV_ATTR_CHARDEV_TYPE))) {
    return Refuse(world, ask.request, RuleId::netlink_chardev_no_type);
  }
  const DeviceImage* device = nullptr;
  uint32_t number = 0;
  const bool has_port = attributes.Has(world, VABI_C(RDMA_NLDEV_ATTR_PORT_INDEX));
  if (attributes.Has(world, VABI_C(RDMA_NLDEV_ATTR_DEV_INDEX))) {
    if (const int error = FindAsked(ask, &device, &number); error != 0) return error;
    if (has_port && !IsPort(*device, attributes.U32(world, VABI_C(RDMA_NLDEV_ATTR_PORT_INDEX)))) {
      return Refuse(world, ask.request, RuleId::netlink_bad_port);
    }
  } else if (Violates(world, RuleId::netlink_chardev_port_alone, has_port)) {
    return Refuse(world, ask.request, RuleId::netlink_chardev_port_alone);
  }
  const std::string_view client = attributes.Text(world, VABI_C(RDMA_NLDEV_ATTR_CHARDEV_TYPE));
  if (device == nullptr && client == "rdma_cm" && Knob(world, KnobId::modules_cm) != 0) {
    constexpr uint64_t kCmAbi = 4;  // RDMA_USER_CM_ABI_VERSION
    *out = ChardevAnswer(ask, kMiscMajor, kRdmaCmMinor, kCmAbi, "rdma_cm");
    return 0;
  }
  if (device != nullptr && client == "umad" && Knob(world, KnobId::modules_mad) != 0) {
    return MadChardev(ask, number, has_port, out);
  }
  if (device == nullptr || client != "uverbs") {
    return Refuse(world, ask.request, RuleId::netlink_chardev_unknown);
  }
  if (Violates(world, RuleId::netlink_chardev_port, has_port)) {
    return Refuse(world, ask.request, RuleId::netlink_chardev_port);
  }
  char name[32];
  std::snprintf(name, sizeof name, "uverbs%u", device->uverbs);
  *out = ChardevAnswer(ask, device->major, device->minor, device->abi_version, name, device);
  return 0;
}

// Where it is not known what a driver makes for itself, the answer leaves it out and the trace says
// so. Without a driver there is no answer.
int CheckOwnObjects(const Request& request, uint32_t number) {
  const char* const what = "netlink: what this driver's kernel makes for itself is not told";
  const Device* device = FindDevice(number);
  if (device == nullptr) return Unmodelled(request, what);
  if (!KnowsKernels(device->world(), device->image(), TrackType::kQp)) Unmodelled(request, what);
  return 0;
}

// nldev_res_get_doit
int DoResGet(const Ask& ask, std::string* out) {
  const DeviceImage* device = nullptr;
  uint32_t number = 0;
  if (const int error = FindAsked(ask, &device, &number); error != 0) return error;
  Message message = Answering(ask, VABI_C(RDMA_NLDEV_CMD_RES_GET));
  if (const int error = CheckOwnObjects(ask.request, number); error != 0) return error;
  PutHandle(ask.world, *device, &message);
  PutSummary(ask.world, number, &message);
  *out = message.Finish();
  return 0;
}

// The device and port that a RES_*_GET is about; false: the kernel refuses it.
struct ResourceAsked {
  const DeviceImage* device = nullptr;
  uint32_t number = 0, port = 0;
};
bool FindResource(const World& world, const Attributes& attributes, ResourceAsked* asked) {
  if (!attributes.Has(world, VABI_C(RDMA_NLDEV_ATTR_DEV_INDEX))) return false;
  asked->device = DeviceByIndex(world, attributes.U32(world, VABI_C(RDMA_NLDEV_ATTR_DEV_INDEX)),
                                &asked->number);
  if (asked->device == nullptr) return false;
  if (attributes.Has(world, VABI_C(RDMA_NLDEV_ATTR_PORT_INDEX))) {
    asked->port = attributes.U32(world, VABI_C(RDMA_NLDEV_ATTR_PORT_INDEX));
    if (!IsPort(*asked->device, asked->port)) return false;
  }
  return true;
}

// res_get_common_doit: one object by its id.
int DoResObject(const Ask& ask, std::string* out) {
  constexpr int64_t kByIds = 4;
  const World& world = ask.world;
  const ResourceKind& kind = *FindKind(ask.command);
  if (Knob(world, KnobId::netlink_res_entries) < kByIds)
    return Unmodelled(ask.request, "netlink: one object, of kernels that only list them");
  ResourceAsked asked;
  if (!FindResource(world, ask.attributes, &asked) || !ask.attributes.Has(world, kind.id) ||
      (asked.port != 0) == kind.per_device) {
    return Refuse(world, ask.request, RuleId::netlink_res_asked);
  }
  const uint32_t id = ask.attributes.U32(world, kind.id);
  for (const Tracked& object : FindObjects(world, *asked.device, asked.number, kind.type)) {
    if (object.id != id) continue;
    Message message = Answering(ask, ask.command);
    PutHandle(world, *asked.device, &message);
    if (!PutObject(world, kind, object, ask.request.privileged, asked.port, &message))
      return -EAGAIN;
    *out = message.Finish();
    return 0;
  }
  return Refuse(world, ask.request, RuleId::netlink_res_none);
}

// res_get_common_dumpit, all in one datagram; libraries have room for that.
std::optional<std::string> DumpObjects(const World& world, Dump* dump, int* result) {
  if (dump->next++ != 0) return std::nullopt;
  const ResourceKind& kind = *FindKind(dump->command);
  Attributes attributes;
  const std::span<const uint8_t> payload(reinterpret_cast<const uint8_t*>(dump->payload.data()),
                                         dump->payload.size());
  ResourceAsked asked;
  if (Attributes::Parse(world, payload, false, &attributes) != Attributes::Fault::kNone ||
      !FindResource(world, attributes, &asked)) {
    *result = -world.Rule(RuleId::netlink_res_asked).error;
    return std::nullopt;
  }
  const std::vector<Tracked> objects = FindObjects(world, *asked.device, asked.number, kind.type);
  if (objects.empty()) return std::nullopt;
  Message message(TypeOf(world, dump->command), NLM_F_MULTI, dump->header.nlmsg_seq, dump->port_id);
  PutHandle(world, *asked.device, &message);
  const size_t table = message.Begin(world, kind.table);
  for (const Tracked& object : objects) {
    if (asked.port != 0 && !kind.per_device && object.port != asked.port) continue;
    const size_t entry = message.Begin(world, kind.entry);
    PutObject(world, kind, object, dump->privileged, asked.port, &message);
    message.End(entry);
  }
  message.End(table);
  return message.Finish();
}

// nldev_sys_get_doit
int DoSysGet(const Ask& ask, std::string* out) {
  const World& world = ask.world;
  Message message = Answering(ask, VABI_C(RDMA_NLDEV_CMD_SYS_GET));
  message.PutU8(world, VABI_C(RDMA_NLDEV_SYS_ATTR_NETNS_MODE), 1);  // shared, as by default
  if (Knob(world, KnobId::netlink_sys_privileged_qkey)) {
    message.PutU8(world, VABI_C(RDMA_NLDEV_SYS_ATTR_PRIVILEGED_QKEY_MODE), 0);
  }
  if (Knob(world, KnobId::netlink_sys_monitor)) {
    message.PutU8(world, VABI_C(RDMA_NLDEV_SYS_ATTR_MONITOR_MODE), 1);
  }
  if (Knob(world, KnobId::netlink_sys_copy_on_fork)) {
    message.PutU8(world, VABI_C(RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK), 1);
  }
  *out = message.Finish();
  return 0;
}

// _nldev_get_dumpit, _nldev_res_get_dumpit: one device a datagram, since ib_enum_all_devs stops at
// the first that answers.
std::optional<std::string> DumpDevices(const World& world, Dump* dump) {
  const WorldImage& image = world.image();
  uint32_t place = 0;
  for (uint32_t i = 0; i < image.device_count; ++i) {
    if (!IsThere(image, i)) continue;
    if (place++ < dump->next) continue;
    dump->next = place;
    Message message(TypeOf(world, dump->command), NLM_F_MULTI, dump->header.nlmsg_seq,
                    dump->port_id);
    if (dump->command == ConstId::RDMA_NLDEV_CMD_RES_GET) {
      PutHandle(world, image.device[i], &message);
      PutSummary(world, i, &message);
    } else {
      PutDevice(world, i, &message);
    }
    return message.Finish();
  }
  return std::nullopt;
}

// nldev_port_get_dumpit: all ports in one datagram.
std::optional<std::string> DumpPorts(const World& world, Dump* dump, int* result) {
  Attributes attributes;
  const std::span<const uint8_t> payload(reinterpret_cast<const uint8_t*>(dump->payload.data()),
                                         dump->payload.size());
  const Attributes::Fault fault = Attributes::Parse(world, payload, false, &attributes);
  uint32_t number = 0;
  const DeviceImage* device = nullptr;
  RuleId rule = RuleId::netlink_attribute;
  if (fault == Attributes::Fault::kNone) {
    rule = RuleId::netlink_no_index;
    if (attributes.Has(world, VABI_C(RDMA_NLDEV_ATTR_DEV_INDEX))) {
      rule = RuleId::netlink_no_device;
      device =
          DeviceByIndex(world, attributes.U32(world, VABI_C(RDMA_NLDEV_ATTR_DEV_INDEX)), &number);
    }
  }
  if (device == nullptr) {
    *result = -world.Rule(rule).error;
    return std::nullopt;
  }
  std::string datagram;
  for (; dump->next < device->port_count; ++dump->next) {
    Message message(TypeOf(world, dump->command), NLM_F_MULTI, dump->header.nlmsg_seq,
                    dump->port_id);
    PutPort(world, number, dump->next + 1, &message);
    datagram += message.Finish();
  }
  if (datagram.empty()) return std::nullopt;
  return datagram;
}

bool Always(const World&) { return true; }
bool HasChardev(const World& world) { return Knob(world, KnobId::netlink_level) >= 2; }
bool HasSysGet(const World& world) { return Knob(world, KnobId::netlink_sys_get) != 0; }

// core/nldev.c:nldev_cb_table
struct Command {
  ConstId id;
  const char* name;
  int (*doit)(const Ask&, std::string*);  // null: not modelled
  bool dumps;
  bool admin = false;
  bool modelled = true;
  bool (*served)(const World&) = Always;
};

constexpr Command kCommands[] = {
    {ConstId::RDMA_NLDEV_CMD_GET, "GET", DoGet, true},
    {ConstId::RDMA_NLDEV_CMD_PORT_GET, "PORT_GET", DoPortGet, true},
    {ConstId::RDMA_NLDEV_CMD_GET_CHARDEV, "GET_CHARDEV", DoGetChardev, false, false, true,
     HasChardev},
    {ConstId::RDMA_NLDEV_CMD_SYS_GET, "SYS_GET", DoSysGet, false, false, true, HasSysGet},
    {ConstId::RDMA_NLDEV_CMD_SET, "SET", nullptr, false, true, false},
    {ConstId::RDMA_NLDEV_CMD_NEWLINK, "NEWLINK", nullptr, false, true, false},
    {ConstId::RDMA_NLDEV_CMD_DELLINK, "DELLINK", nullptr, false, true, false},
    {ConstId::RDMA_NLDEV_CMD_SYS_SET, "SYS_SET", nullptr, false, true, false},
    {ConstId::RDMA_NLDEV_CMD_RES_GET, "RES_GET", DoResGet, true},
    {ConstId::RDMA_NLDEV_CMD_RES_QP_GET, "RES_QP_GET", DoResObject, true},
    {ConstId::RDMA_NLDEV_CMD_RES_CM_ID_GET, "RES_CM_ID_GET", DoResObject, true},
    {ConstId::RDMA_NLDEV_CMD_RES_CQ_GET, "RES_CQ_GET", DoResObject, true},
    {ConstId::RDMA_NLDEV_CMD_RES_MR_GET, "RES_MR_GET", DoResObject, true},
    {ConstId::RDMA_NLDEV_CMD_RES_PD_GET, "RES_PD_GET", DoResObject, true},
    {ConstId::RDMA_NLDEV_CMD_RES_CTX_GET, "RES_CTX_GET", DoResObject, true},
    {ConstId::RDMA_NLDEV_CMD_RES_SRQ_GET, "RES_SRQ_GET", DoResObject, true},
    {ConstId::RDMA_NLDEV_CMD_STAT_SET, "STAT_SET", nullptr, false, true, false},
    {ConstId::RDMA_NLDEV_CMD_STAT_GET, "STAT_GET", nullptr, true, false, false},
    {ConstId::RDMA_NLDEV_CMD_STAT_DEL, "STAT_DEL", nullptr, false, true, false},
    {ConstId::RDMA_NLDEV_CMD_RES_QP_GET_RAW, "RES_QP_GET_RAW", nullptr, true, true, false},
    {ConstId::RDMA_NLDEV_CMD_RES_CQ_GET_RAW, "RES_CQ_GET_RAW", nullptr, true, true, false},
    {ConstId::RDMA_NLDEV_CMD_RES_MR_GET_RAW, "RES_MR_GET_RAW", nullptr, true, true, false},
    {ConstId::RDMA_NLDEV_CMD_RES_SRQ_GET_RAW, "RES_SRQ_GET_RAW", nullptr, true, true, false},
    {ConstId::RDMA_NLDEV_CMD_STAT_GET_STATUS, "STAT_GET_STATUS", nullptr, false, false, false},
    {ConstId::RDMA_NLDEV_CMD_NEWDEV, "NEWDEV", nullptr, false, true, false},
    {ConstId::RDMA_NLDEV_CMD_DELDEV, "DELDEV", nullptr, false, true, false},
    {ConstId::RDMA_NLDEV_CMD_FRMR_POOLS_GET, "FRMR_POOLS_GET", nullptr, true, false, false},
    {ConstId::RDMA_NLDEV_CMD_FRMR_POOLS_SET, "FRMR_POOLS_SET", nullptr, false, true, false},
};

const Command* FindCommand(const World& world, uint32_t number) {
  for (const Command& command : kCommands) {
    if (world.Constant(command.id) != static_cast<int64_t>(number) || !command.served(world))
      continue;
    const ResourceKind* kind = FindKind(command.id);
    const bool known = kind == nullptr || Knob(world, KnobId::netlink_res_entries) >= kind->since;
    return known ? &command : nullptr;
  }
  return nullptr;
}

// What libraries ask kernels that do not know it, for the trace alone: the numbers never changed
// (include/uapi/rdma/rdma_netlink.h, enum rdma_nldev_command).
struct NumberedName {
  uint32_t number;
  const char* name;
};
constexpr uint32_t kNldev = 5;  // RDMA_NL_NLDEV
constexpr NumberedName kAsked[] = {
    {1, "GET"}, {5, "PORT_GET"}, {6, "SYS_GET"}, {15, "GET_CHARDEV"}};

void NameWhatIsAsked(uint16_t type, trace::Record* record) {
  std::snprintf(record->name, sizeof record->name, "netlink type %u", type);
  for (const NumberedName& row : kAsked) {
    if (type == (kNldev << 10 | row.number))
      std::snprintf(record->name, sizeof record->name, "%s", row.name);
  }
}

// The errno of a request whose attributes do not parse. All handlers answer EINVAL whatever the
// parser said, but SYS_GET, which passes its errno on.
int BadAttributes(const World& world, const Request& request, const Command& command,
                  Attributes::Fault fault) {
  const bool passes_on =
      command.id == ConstId::RDMA_NLDEV_CMD_SYS_GET && fault == Attributes::Fault::kRange;
  const RuleId rule = passes_on ? RuleId::netlink_sys_attribute : RuleId::netlink_attribute;
  return Violates(world, rule, true) ? Refuse(world, request, rule) : 0;
}

Reply Failed(int error) { return {error, std::nullopt, std::nullopt}; }

Reply StartDump(const World& world, const Request& request, const Command& command) {
  if (!command.dumps) return Failed(Refuse(world, request, RuleId::netlink_no_dump));
  const WorldImage& image = world.image();
  const ResourceKind* const kind = FindKind(command.id);
  if (kind != nullptr) {
    Attributes attributes;
    ResourceAsked asked;
    if (Attributes::Parse(world, request.payload, false, &attributes) == Attributes::Fault::kNone &&
        FindResource(world, attributes, &asked) && !KnowsKernels(world, *asked.device, kind->type))
      Unmodelled(request, "netlink: what this driver's kernel makes for itself is not listed");
  }
  for (uint32_t i = 0; command.id == ConstId::RDMA_NLDEV_CMD_RES_GET && i < image.device_count;
       ++i) {
    if (!IsThere(image, i)) continue;
    if (const int error = CheckOwnObjects(request, i); error != 0) return Failed(error);
  }
  Dump dump{command.id, request.header, "", request.port_id, 0, request.privileged};
  dump.payload.assign(reinterpret_cast<const char*>(request.payload.data()),
                      request.payload.size());
  return {0, std::nullopt, std::move(dump)};
}

}  // namespace

Reply Handle(const World& world, const Request& request) {
  const uint16_t type = request.header.nlmsg_type;
  const uint32_t client = type >> 10, number = type & 0x3ff;
  trace::Record* record = request.record;
  if (record != nullptr) {
    NameWhatIsAsked(type, record);
    record->command = static_cast<int32_t>(number);
  }
  if (client == static_cast<uint32_t>(world.Flag(VABI_C(RDMA_NL_LS))) ||
      client == static_cast<uint32_t>(world.Flag(VABI_C(RDMA_NL_IWCM)))) {
    return Failed(Unmodelled(request, "netlink: a client other than NLDEV"));
  }
  const bool nldev = client == static_cast<uint32_t>(world.Flag(VABI_C(RDMA_NL_NLDEV))) &&
                     Knob(world, KnobId::netlink_nldev) != 0;
  const Command* command = nldev ? FindCommand(world, number) : nullptr;
  if (command == nullptr) return Failed(Refuse(world, request, RuleId::netlink_unknown_op));
  if (record != nullptr) std::snprintf(record->name, sizeof record->name, "%s", command->name);
  if (Violates(world, RuleId::netlink_admin, command->admin && !request.privileged)) {
    return Failed(Refuse(world, request, RuleId::netlink_admin));
  }
  char step[64];
  std::snprintf(step, sizeof step, "netlink:%s", command->name);
  if (const int fault = FaultAt(world, step); fault != 0) {
    if (record != nullptr) record->fault = command->name;
    return Failed(-fault);
  }
  if (!command->modelled) return Failed(Unmodelled(request, command->name));
  const bool of_objects =
      command->id == ConstId::RDMA_NLDEV_CMD_RES_GET || FindKind(command->id) != nullptr;
  if (of_objects && LostTrack(world.image()))
    Unmodelled(request, "netlink: more objects than the list has room for");
  if (request.header.nlmsg_flags & kDumpFlags) return StartDump(world, request, *command);
  Ask ask{world, request, command->id, {}};
  const bool strict = command->id == ConstId::RDMA_NLDEV_CMD_SYS_GET &&
                      Knob(world, KnobId::netlink_sys_get_strict) != 0;
  const Attributes::Fault fault =
      Attributes::Parse(world, request.payload, strict, &ask.attributes);
  if (fault != Attributes::Fault::kNone) {
    if (const int error = BadAttributes(world, request, *command, fault); error != 0)
      return Failed(error);
  }
  std::string answer;
  if (const int error = command->doit(ask, &answer); error != 0) return Failed(error);
  return {0, std::move(answer), std::nullopt};
}

std::optional<std::string> Continue(const World& world, Dump* dump, int* result) {
  *result = 0;
  if (dump->command == ConstId::RDMA_NLDEV_CMD_PORT_GET) return DumpPorts(world, dump, result);
  if (FindKind(dump->command) != nullptr) return DumpObjects(world, dump, result);
  return DumpDevices(world, dump);
}

}  // namespace vabi::netlink
