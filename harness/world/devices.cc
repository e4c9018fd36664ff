// SPDX-License-Identifier: BSD-2-Clause
#include "harness/world/devices.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "harness/world/json_file.h"
#include "harness/world/model_changes.h"
#include "harness/world/nodes.h"
#include "harness/world/world.h"

namespace vabi {
namespace {

using facts::Error;
using facts::Result;
using nlohmann::json;
namespace fs = std::filesystem;

// drivers/infiniband/core/uverbs_main.c: the fixed device number range of the uverbs nodes.
constexpr uint32_t kUverbsMajor = 231;
constexpr uint32_t kUverbsBaseMinor = 192;
// enum rdma_node_type
constexpr uint8_t kNodeRnic = 4;
constexpr uint8_t kNodeUnspecified = 7;
// Of network interfaces 00:00:c0:00:NN:00, as recorded real devices have (image.h:
// InterfaceAddress).
constexpr uint64_t kGuidBase = 0x0200c0fffe000000ULL;

// A number, or a text like "0x15b3".
uint64_t Number(const json& object, const char* key, uint64_t otherwise) {
  if (!object.contains(key)) return otherwise;
  const json& value = object[key];
  if (value.is_string()) return std::strtoull(value.get<std::string>().c_str(), nullptr, 0);
  return value.get<uint64_t>();
}

template <size_t kSize>
void SetText(char (&to)[kSize], const std::string& text) {
  const size_t length = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

void StoreBigEndian64(uint8_t* to, uint64_t value) {
  for (int i = 0; i < 8; ++i) to[i] = static_cast<uint8_t>(value >> (56 - 8 * i));
}

void AddGid(PortImage* port, uint8_t type, const uint8_t (&raw)[16], uint32_t ifindex) {
  auto& entry = port->gids[port->gid_count++];
  std::memcpy(entry.raw, raw, sizeof raw);
  entry.type = type;
  entry.ndev_ifindex = ifindex;
}

// The GID table as the kernel fills it: InfiniBand, one entry of subnet prefix and port GUID; RoCE
// (roce_gid_mgmt.c), the link-local address and an IPv4 address, each once per RoCE version that
// the device speaks.
void FillGids(const WorldImage& image, const DeviceImage& device, bool speaks_v1, PortImage* port) {
  uint8_t link_local[16] = {0xfe, 0x80};
  StoreBigEndian64(link_local + 8, device.node_guid);
  if (device.link == LinkLayer::kInfiniband) {
    AddGid(port, 0, link_local, 0);
    return;
  }
  if (device.node_type == kNodeRnic) {
    // An iWARP device's one GID is its network interface's address (siw_query_gid, erdma_query_gid,
    // irdma_iw_query_gid).
    uint8_t mac[16] = {};
    InterfaceAddress(device, mac);
    const bool named = KnobOf(image, KnobId::gid_iwarp_ndev) != 0;
    AddGid(port, 0, mac, named ? port->ndev_ifindex : 0);
    return;
  }
  if (device.node_type == kNodeUnspecified) {
    AddGid(port, 0, link_local, 0);  // hw/efa/efa_verbs.c: efa_query_gid
    return;
  }
  for (const auto& address : port->ndev_addresses) {
    if (speaks_v1) AddGid(port, 1, address, port->ndev_ifindex);
    AddGid(port, 2, address, port->ndev_ifindex);
  }
}

// The link-local address of an IPoIB interface is made of the port's GUID
// (include/net/addrconf.h:addrconf_ifid_infiniband), as that of an Ethernet one is.
void FillInterface(const DeviceImage& device, const std::string& name, uint32_t number,
                   PortImage* port) {
  SetText(port->ndev, name);
  port->ndev_ifindex = number + 2;  // behind "lo"
  const uint8_t link_local[8] = {0xfe, 0x80};
  std::memcpy(port->ndev_addresses[0], link_local, 8);
  StoreBigEndian64(port->ndev_addresses[0] + 8, device.node_guid);
  const uint8_t ipv4[6] = {0xff, 0xff, 10, 0, 0, static_cast<uint8_t>(number + 1)};
  std::memcpy(port->ndev_addresses[1] + 10, ipv4, 6);
}

void FillPort(const WorldImage& image, const json& provider, const std::string& link,
              uint32_t number, DeviceImage* device) {
  json values = provider.value("port", json::object());
  values.update(provider.value("link_port", json::object()).value(link, json::object()));
  PortImage& port = device->ports[0];
  const bool infiniband = device->link == LinkLayer::kInfiniband;
  port.lid = static_cast<uint16_t>(Number(values, "lid", infiniband ? number + 1 : 0));
  port.sm_lid = static_cast<uint16_t>(Number(values, "sm_lid", infiniband ? 1 : 0));
  port.lmc = static_cast<uint8_t>(Number(values, "lmc", 0));
  port.state = 4;       // IB_PORT_ACTIVE
  port.phys_state = 5;  // IB_PORT_PHYS_STATE_LINK_UP
  port.max_mtu = static_cast<uint8_t>(Number(values, "max_mtu", 5));
  port.active_mtu = static_cast<uint8_t>(Number(values, "active_mtu", 5));
  port.active_width = static_cast<uint8_t>(Number(values, "active_width", 2));
  port.active_speed = static_cast<uint16_t>(Number(values, "active_speed", 32));
  port.cap_flags = static_cast<uint32_t>(Number(values, "cap_flags", 0));
  port.cap_flags2 = static_cast<uint16_t>(Number(values, "cap_flags2", 0));
  port.max_msg_size = static_cast<uint32_t>(Number(values, "max_msg_size", 1U << 30));
  port.gid_table_length = static_cast<uint32_t>(Number(values, "gid_table_length", 1));
  port.pkey_count = static_cast<uint16_t>(Number(values, "pkey_count", 1));
  port.pkeys[0] = 0xffff;
  if (device->link == LinkLayer::kEthernet)
    FillInterface(*device, provider.value("ndev", "eth" + std::to_string(number)), number, &port);
  // ulp/ipoib/ipoib_main.c:ipoib_intf_alloc: "ib%d"
  if (infiniband && KnobOf(image, KnobId::modules_ipoib) != 0) {
    uint32_t same = 0;
    for (uint32_t i = 0; i < number; ++i)
      same += image.device[i].link == LinkLayer::kInfiniband ? 1 : 0;
    FillInterface(*device, "ib" + std::to_string(same), number, &port);
  }
  FillGids(image, *device, provider.value("roce_v1", false), &port);
}

// Where the device sits: its own "pci", or for a software device the card of the network interface
// under it, in kernels whose knob says that this is its parent ("parent_pci": {"knob":
// "rxe.parent", …}).
json PciOf(const json& provider, const WorldImage& image) {
  if (provider.contains("pci")) return provider["pci"];
  if (!provider.contains("parent_pci")) return nullptr;
  const json& parent = provider["parent_pci"];
  for (size_t i = 0; i < KnobRows().size(); ++i) {
    if (parent.value("knob", "") == KnobRows()[i].name &&
        KnobOf(image, static_cast<KnobId>(i)) != 0) {
      return parent;
    }
  }
  return nullptr;
}

// Numbers that differ between kernels stand as {"knob": NAME}: their values in this one.
Result<json> WithKnobs(const json& value, const WorldImage& image) {
  if (!value.is_object()) return value;
  if (value.size() == 1 && value.contains("knob")) {
    for (size_t i = 0; i < KnobRows().size(); ++i) {
      if (value["knob"] == KnobRows()[i].name) return json(KnobOf(image, static_cast<KnobId>(i)));
    }
    return Error{"unknown knob " + value["knob"].dump()};
  }
  json resolved = json::object();
  for (const auto& [key, part] : value.items()) {
    auto inner = WithKnobs(part, image);
    if (!inner) return Error{"/" + key + ": " + inner.error()};
    resolved[key] = *inner;
  }
  return resolved;
}

Result<DriverId> FindDriver(const std::string& name) {
  for (size_t i = 0; i < DriverRows().size(); ++i) {
    if (DriverRows()[i].name == name) return static_cast<DriverId>(i);
  }
  return Error{"the fake kernel has no driver \"" + name + "\""};
}

}  // namespace

Result<bool> AddDevice(const fs::path& root, const DeviceSpec& spec, WorldImage* image) {
  const fs::path dir = root / "matrix" / "providers";
  const fs::path path = dir / (spec.provider + ".json");
  if (!fs::exists(path)) {
    return Error{"unknown provider \"" + spec.provider + "\"" +
                 Nearest(spec.provider, JsonNames(dir))};
  }
  auto file = ReadJsonFile(path);
  if (!file) return Error{file.error()};
  auto resolved = WithKnobs(*file, *image);
  if (!resolved) return Error{path.string() + ": " + resolved.error()};
  const json& provider = *resolved;
  if (image->device_count == kMaxDevices) {
    return Error{"a world holds at most " + std::to_string(kMaxDevices) + " devices"};
  }

  const uint32_t number = image->device_count;
  DeviceImage& device = image->device[number];
  try {
    auto driver = FindDriver(provider.value("driver", spec.provider));
    if (!driver) return At(path, "/driver", driver.error());
    device.driver = *driver;

    const std::vector<std::string> links = provider.at("links").get<std::vector<std::string>>();
    const std::string link = spec.link.empty() ? links.at(0) : spec.link;
    if (std::find(links.begin(), links.end(), link) == links.end()) {
      return Error{"provider " + spec.provider + " has no link \"" + link + "\"" +
                   Nearest(link, links)};
    }
    device.link = link == "ib"            ? LinkLayer::kInfiniband
                  : link == "unspecified" ? LinkLayer::kUnspecified
                                          : LinkLayer::kEthernet;

    std::string name = spec.name;
    if (name.empty()) {
      uint32_t same = 0;
      for (uint32_t i = 0; i < number; ++i) same += image->device[i].driver == device.driver;
      name = provider.at("device_prefix").get<std::string>() + std::to_string(same);
    }
    if (name.size() >= sizeof device.name) return Error{"device name \"" + name + "\" is too long"};
    if (name.find('/') != std::string::npos || name == "." || name == "..") {
      return Error{"device name \"" + name + "\": no folder of sysfs can be called so"};
    }
    for (uint32_t i = 0; i < number; ++i) {
      if (name == image->device[i].name) return Error{"two devices are called \"" + name + "\""};
    }
    SetText(device.name, name);

    const ConstEntry& id = image->constant[Index(DriverRows()[Index(device.driver)].driver_id)];
    device.driver_id = static_cast<uint32_t>(id.value);
    device.index = number;
    device.uverbs = number;
    device.major = kUverbsMajor;
    device.minor = kUverbsBaseMinor + number;
    device.node_type = static_cast<uint8_t>(Number(provider, "node_type", 1));
    device.port_count = 1;
    device.abi_version = static_cast<uint32_t>(Number(provider, "uverbs_abi", 1));
    device.node_guid = kGuidBase + 0x100 * (number + 1);
    device.sys_image_guid = device.node_guid;
    SetText(device.fw_ver, provider.value("fw_ver", ""));
    SetText(device.board_id, provider.value("board_id", ""));
    SetText(device.node_desc, provider.value("node_desc", ""));
    device.hw_ver = static_cast<uint32_t>(Number(provider, "hw_ver", 0));
    const json pci = PciOf(provider, *image);
    if (!pci.is_null()) {
      device.vendor_id = static_cast<uint32_t>(Number(pci, "vendor", 0));
      device.vendor_part_id = static_cast<uint32_t>(Number(pci, "device", 0));
      std::snprintf(device.pci_address, sizeof device.pci_address, "0000:%02x:00.0",
                    static_cast<unsigned>((Number(pci, "bus", 0xa0) + number) & 0xff));
    } else {
      device.vendor_id = static_cast<uint32_t>(Number(provider, "vendor_id", 0));
      device.vendor_part_id = static_cast<uint32_t>(Number(provider, "vendor_part_id", 0));
    }
    FillPort(*image, provider, link, number, &device);
  } catch (const json::exception& error) {
    return Error{path.string() + ": " + error.what()};
  }

  NodeView& node = image->node[image->node_count++];
  std::snprintf(node.path, sizeof node.path, "/dev/infiniband/uverbs%u", device.uverbs);
  node.present = 1;
  node.mode = 0666;  // uverbs_main.c:uverbs_devnode
  node.major = device.major;
  node.minor = device.minor;
  node.device = static_cast<int32_t>(number);
  ++image->device_count;
  return true;
}

void AddModuleNodes(WorldImage* image) {
  const auto add = [image](const std::string& name, uint32_t mode, uint32_t major, uint32_t minor) {
    NodeView& node = image->node[image->node_count++];
    SetText(node.path, "/dev/infiniband/" + name);
    node.present = 1;
    node.mode = mode;
    node.major = major;
    node.minor = minor;
    node.device = -1;
  };
  // user_mad.c:umad_devnode sets no mode, so that devtmpfs takes its own.
  ForEachMadNode(*image, [&](const MadNode& mad) {
    add(mad.Prefix() + std::to_string(mad.number), 0600, kMadMajor, mad.minor);
  });
  if (KnobOf(*image, KnobId::modules_cm) != 0) {
    add("rdma_cm", 0666, kMiscMajor, kRdmaCmMinor);  // core/ucma.c:ucma_misc
  }
}

}  // namespace vabi
