// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sysfs/describe.h"

#include <algorithm>
#include <cerrno>

#include "harness/world/nodes.h"
#include "harness/world/world.h"
#include "shims/sysfs/counters.h"
#include "shims/sysfs/pci.h"
#include "shims/sysfs/port_text.h"

namespace vabi::sysfs {
namespace {

// Where the driver core puts a device of a class: below its parent, or among the virtual ones.
std::string ClassDirectory(const DeviceImage& device, const char* class_name) {
  const std::string parent = PciDirectory(device);
  return (parent.empty() ? std::string("/sys/devices/virtual") : parent) + "/" + class_name;
}

// drivers/base/power/sysfs.c, of a device without power management of its own: pm_attr_group and
// pm_runtime_attr_group.
void AddPower(const WorldImage& image, const std::string& at, Tree* tree) {
  tree->Add(at + "/control", "auto\n", 0644);
  tree->Add(at + "/runtime_status", "unsupported\n");
  tree->Add(at + "/runtime_active_time", "0\n");
  tree->Add(at + "/runtime_suspended_time", "0\n");
  tree->AddUnreadable(at + "/autosuspend_delay_ms", EIO, 0644);
  if (KnobOf(image, KnobId::sysfs_pm_debug) == 0) return;
  tree->Add(at + "/async", "disabled\n", 0644);
  tree->Add(at + "/runtime_enabled", "disabled\n");
  tree->Add(at + "/runtime_usage", "0\n");
  tree->Add(at + "/runtime_active_kids", "0\n");
}

// What the driver core adds to every device of a class.
void AddClassDevice(const WorldImage& image, const DeviceImage& device, const char* class_name,
                    const std::string& name, const std::string& uevent, Tree* tree) {
  const std::string at = ClassDirectory(device, class_name) + "/" + name;
  tree->Add(at + "/uevent", uevent, 0644);
  tree->AddLink(at + "/subsystem", std::string("/sys/class/") + class_name);
  AddPower(image, at + "/power", tree);
  const std::string parent = PciDirectory(device);
  if (!parent.empty()) tree->AddLink(at + "/device", parent);
  tree->AddLink(std::string("/sys/class/") + class_name + "/" + name, at);
}

void DescribeGids(const WorldImage& image, const PortImage& port, const std::string& at,
                  Tree* tree) {
  static const uint8_t kZero[16] = {};
  const bool attributes = KnobOf(image, KnobId::sysfs_gid_attrs) != 0;
  for (uint32_t i = 0; i < port.gid_table_length; ++i) {
    const std::string number = std::to_string(i);
    const bool filled = i < port.gid_count;
    // show_port_gid: an empty slot reads as the zero GID.
    tree->Add(at + "/gids/" + number, GidText(filled ? port.gids[i].raw : kZero) + "\n");
    if (!attributes) continue;
    const std::string type = at + "/gid_attrs/types/" + number;
    const std::string ndev = at + "/gid_attrs/ndevs/" + number;
    // _show_port_gid_attr: EINVAL for an empty slot, and from print_ndev for an entry with no
    // netdev.
    if (filled || KnobOf(image, KnobId::sysfs_empty_gid_type) != 0) {
      tree->Add(type, GidTypeText(filled ? port.gids[i].type : 0) + "\n");
    } else {
      tree->AddUnreadable(type, EINVAL);
    }
    if (filled && port.gids[i].ndev_ifindex != 0 && port.ndev[0] != '\0') {
      tree->Add(ndev, std::string(port.ndev) + "\n");
    } else {
      tree->AddUnreadable(ndev, EINVAL);
    }
  }
}

void DescribePort(const WorldImage& image, const DeviceImage& device, int number, Tree* tree) {
  const PortImage& port = device.ports[number - 1];
  const std::string at = DeviceDirectory(device) + "/ports/" + std::to_string(number);
  tree->Add(at + "/state", StateText(port.state) + "\n");
  tree->Add(at + "/phys_state", PhysStateText(port.phys_state) + "\n");
  tree->Add(at + "/lid", Format("0x%x\n", port.lid));
  tree->Add(at + "/lid_mask_count", Format("%u\n", port.lmc));
  tree->Add(at + "/sm_lid", Format("0x%x\n", port.sm_lid));
  tree->Add(at + "/sm_sl", Format("%u\n", port.sm_sl));
  tree->Add(at + "/cap_mask", Format("0x%08x\n", port.cap_flags));
  tree->Add(at + "/link_layer", device.link == LinkLayer::kInfiniband ? "InfiniBand\n"
                                : device.link == LinkLayer::kEthernet ? "Ethernet\n"
                                                                      : "Unknown\n");
  const std::string rate =
      RateText(port.active_width, port.active_speed, KnobOf(image, KnobId::sysfs_max_speed),
               KnobOf(image, KnobId::sysfs_sdr_suffix) != 0);
  if (rate.empty()) {
    tree->AddUnreadable(at + "/rate", EINVAL);
  } else {
    tree->Add(at + "/rate", rate + "\n");
  }
  for (uint32_t i = 0; i < port.pkey_count; ++i) {
    const uint16_t pkey = i < std::size(port.pkeys) ? port.pkeys[i] : 0;
    tree->Add(at + "/pkeys/" + std::to_string(i), Format("0x%04x\n", pkey));
  }
  DescribeGids(image, port, at, tree);
  DescribeCounters(image, device, at, tree);
}

// Attributes that the device's own driver adds.
void DescribeDriverAttributes(const DeviceImage& device, const std::string& at, Tree* tree) {
  if (device.driver == DriverId::rxe) {
    // rxe_verbs.c:parent_show
    tree->Add(at + "/parent", std::string(device.ports[0].ndev) + "\n");
  }
  if (device.driver == DriverId::mlx5) {
    // hw/mlx5/main.c: hca_type_show, hw_rev_show, board_id_show, fw_pages_show, reg_pages_show
    tree->Add(at + "/hca_type", Format("MT%u\n", device.vendor_part_id));
    tree->Add(at + "/hw_rev", Format("%x\n", device.hw_ver));
    tree->Add(at + "/board_id", Format("%.16s\n", device.board_id));
    tree->Add(at + "/fw_pages", "0\n");
    tree->Add(at + "/reg_pages", "0\n");
  }
}

// core/user_mad.c: ib_umad_init_port and its two nodes
void DescribeMad(const WorldImage& image, Tree* tree) {
  tree->Add("/sys/class/infiniband_mad/abi_version", "5\n");  // IB_USER_MAD_ABI_VERSION
  ForEachMadNode(image, [&](const MadNode& mad) {
    const DeviceImage& device = image.device[mad.device];
    if (device.name[0] == '\0') return;
    const std::string name = mad.Prefix() + std::to_string(mad.number);
    AddClassDevice(
        image, device, "infiniband_mad", name,
        Format("MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/%s\n", kMadMajor, mad.minor, name.c_str()),
        tree);
    const std::string node = ClassDirectory(device, "infiniband_mad") + "/" + name;
    tree->Add(node + "/dev", Format("%u:%u\n", kMadMajor, mad.minor));
    tree->Add(node + "/ibdev", std::string(device.name) + "\n");
    tree->Add(node + "/port", Format("%u\n", mad.port));
  });
}

// core/ucma.c: ucma_misc and dev_attr_abi_version
void DescribeConnectionManager(const WorldImage& image, Tree* tree) {
  const std::string at = "/sys/devices/virtual/misc/rdma_cm";
  tree->Add(at + "/uevent",
            Format("MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/rdma_cm\nDEVMODE=0666\n", kMiscMajor,
                   kRdmaCmMinor),
            0644);
  tree->Add(at + "/dev", Format("%u:%u\n", kMiscMajor, kRdmaCmMinor));
  tree->Add(at + "/abi_version", "4\n");  // RDMA_USER_CM_ABI_VERSION
  tree->AddLink(at + "/subsystem", "/sys/class/misc");
  AddPower(image, at + "/power", tree);
  tree->AddLink("/sys/class/misc/rdma_cm", at);
}

void DescribeDevice(const WorldImage& image, const DeviceImage& device, Tree* tree) {
  if (device.pci_address[0] != '\0') DescribePci(device, tree);

  AddClassDevice(image, device, "infiniband", device.name, Format("NAME=%s\n", device.name), tree);
  const std::string at = DeviceDirectory(device);
  tree->Add(at + "/node_type", NodeTypeText(device.node_type) + "\n");
  tree->Add(at + "/node_guid", GuidText(device.node_guid) + "\n");
  tree->Add(at + "/sys_image_guid", GuidText(device.sys_image_guid) + "\n");
  tree->Add(at + "/fw_ver", std::string(device.fw_ver) + "\n");
  tree->Add(at + "/node_desc", Format("%.64s\n", device.node_desc), 0644);
  DescribeDriverAttributes(device, at, tree);
  for (int port = 1; port <= device.port_count; ++port) DescribePort(image, device, port, tree);

  // uverbs_main.c: ib_uverbs_add_one
  const std::string uverbs = "uverbs" + std::to_string(device.uverbs);
  AddClassDevice(image, device, "infiniband_verbs", uverbs,
                 Format("MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/%s\nDEVMODE=0666\n", device.major,
                        device.minor, uverbs.c_str()),
                 tree);
  const std::string node = ClassDirectory(device, "infiniband_verbs") + "/" + uverbs;
  tree->Add(node + "/dev", Format("%u:%u\n", device.major, device.minor));
  tree->Add(node + "/ibdev", std::string(device.name) + "\n");
  tree->Add(node + "/abi_version", Format("%u\n", device.abi_version));
}

}  // namespace

std::string DeviceDirectory(const DeviceImage& device) {
  return ClassDirectory(device, "infiniband") + "/" + device.name;
}

void DescribeSysfs(const WorldImage& image, Tree* tree) {
  // The classes exist as soon as ib_core and ib_uverbs are loaded, with or without devices.
  tree->AddDirectory("/sys/class/infiniband");
  tree->Add("/sys/class/infiniband_verbs/abi_version",
            Format("%lld\n", static_cast<long long>(KnobOf(image, KnobId::class_abi))));
  for (uint32_t i = 0; i < image.device_count; ++i) {
    if (image.device[i].name[0] != '\0') DescribeDevice(image, image.device[i], tree);
  }
  if (KnobOf(image, KnobId::modules_mad) != 0) DescribeMad(image, tree);
  if (KnobOf(image, KnobId::modules_cm) != 0) DescribeConnectionManager(image, tree);
}

void TakeAway(uint32_t device, WorldImage* image) {
  DeviceImage& taken = image->device[device];
  const auto absent = [&](uint32_t major, uint32_t minor) {
    for (uint32_t i = 0; i < image->node_count; ++i) {
      NodeView& node = image->node[i];
      if (node.major == major && node.minor == minor) node.present = 0;
    }
  };
  absent(taken.major, taken.minor);
  ForEachMadNode(*image, [&](const MadNode& mad) {
    if (mad.device == device) absent(kMadMajor, mad.minor);
  });
  taken.name[0] = '\0';
}

void DescribeDev(const WorldImage& image, Tree* tree) {
  tree->AddDirectory("/dev/infiniband");
  tree->AddDirectory("/dev/char");
  for (uint32_t i = 0; i < image.node_count; ++i) {
    const NodeView& node = image.node[i];
    if (!node.present) continue;
    tree->Add(node.path, "", node.mode);
    if (node.kind != 0) continue;
    tree->AddLink(Format("/dev/char/%u:%u", node.major, node.minor), node.path);
  }
}

std::vector<std::string> RedirectedPrefixes(const WorldImage& image) {
  std::vector<std::string> prefixes = {
      "/sys/class/infiniband",     "/sys/class/infiniband_verbs",
      "/sys/class/infiniband_mad", "/sys/class/infiniband_cm",
      "/sys/class/misc/rdma_cm",   "/sys/devices/virtual/misc/rdma_cm",
      "/dev/infiniband",           "/dev/char"};
  for (uint32_t i = 0; i < image.device_count; ++i) {
    const DeviceImage& device = image.device[i];
    if (device.pci_address[0] == '\0') {
      prefixes.push_back("/sys/devices/virtual/infiniband");
      prefixes.push_back("/sys/devices/virtual/infiniband_verbs");
      prefixes.push_back("/sys/devices/virtual/infiniband_mad");
      continue;
    }
    prefixes.push_back(PciRoot(device));
    prefixes.push_back("/sys/bus/pci/devices");
    for (int port = 0; port < device.port_count; ++port) {
      if (device.ports[port].ndev[0] == '\0') continue;
      prefixes.push_back(std::string("/sys/class/net/") + device.ports[port].ndev);
    }
  }
  std::sort(prefixes.begin(), prefixes.end());
  prefixes.erase(std::unique(prefixes.begin(), prefixes.end()), prefixes.end());
  std::stable_sort(prefixes.begin(), prefixes.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return prefixes;
}

}  // namespace vabi::sysfs
