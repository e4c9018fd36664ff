// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sysfs/pci.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shims/sysfs/describe.h"
#include "shims/sysfs/port_text.h"

namespace vabi::sysfs {
namespace {

struct PciPlace {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  // Buses are grouped by sixteen behind one host bridge, so that the fake tree shares no host
  // bridge with the machine's own devices as long as the worlds use high bus numbers.
  unsigned RootBus() const { return bus & 0xf0; }
};

PciPlace Parse(const char* address) {
  PciPlace place;
  if (std::sscanf(address, "%x:%x:%x.%x", &place.domain, &place.bus, &place.device,
                  &place.function) != 4) {
    return {};
  }
  return place;
}

// The driver that binds the PCI function (the parent of the RDMA device), by RDMA driver.
struct PciDriverRow {
  DriverId driver;
  const char* name;
};
constexpr PciDriverRow kPciDrivers[] = {
    {DriverId::bnxt_re, "bnxt_en"},
    {DriverId::cxgb4, "cxgb4"},
    {DriverId::efa, "efa"},
    {DriverId::erdma, "erdma"},
    {DriverId::hfi1, "hfi1"},
    {DriverId::hns, "hns3"},
    {DriverId::i40iw, "i40e"},
    {DriverId::ionic, "ionic"},
    {DriverId::irdma, "ice"},
    {DriverId::mana, "mana"},
    {DriverId::mlx4, "mlx4_core"},
    {DriverId::mlx5, "mlx5_core"},
    {DriverId::mthca, "ib_mthca"},
    {DriverId::ocrdma, "be2net"},
    {DriverId::qedr, "qede"},
    {DriverId::qib, "ib_qib"},
    {DriverId::vmw_pvrdma, "vmw_pvrdma"},
};

const char* PciDriver(DriverId driver) {
  for (const PciDriverRow& row : kPciDrivers) {
    if (row.driver == driver) return row.name;
  }
  return nullptr;
}

std::string HardwareAddress(const uint8_t* address, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += Format("%s%02x", i == 0 ? "" : ":", address[i]);
  return text + "\n";
}

// net/core/net-sysfs.c; what ulp/ipoib adds: ipoib_main.c:ipoib_add_port
void DescribeNetdev(const DeviceImage& device, const PortImage& port, Tree* tree) {
  constexpr unsigned kEthernet = 1, kInfiniband = 32;  // ARPHRD_*
  const std::string pci = PciDirectory(device);
  const std::string at = pci + "/net/" + port.ndev;
  const bool infiniband = device.link == LinkLayer::kInfiniband;
  uint8_t address[kIpoibAddress], broadcast[kIpoibAddress];
  std::memset(broadcast, 0xff, sizeof(broadcast));
  InterfaceAddress(device, address);
  if (infiniband) {
    IpoibAddress(port, address);
    IpoibBroadcast(port, broadcast);
    tree->Add(at + "/mode", "datagram\n", 0644);
    tree->Add(at + "/pkey", Format("0x%04x\n", port.pkeys[0]));
    tree->Add(at + "/umcast", "0\n", 0644);
  }
  const size_t size = infiniband ? kIpoibAddress : 6;
  tree->Add(at + "/address", HardwareAddress(address, size));
  tree->Add(at + "/broadcast", HardwareAddress(broadcast, size));
  tree->Add(at + "/addr_len", Format("%zu\n", size));
  tree->Add(at + "/ifindex", Format("%u\n", port.ndev_ifindex));
  tree->Add(at + "/mtu", infiniband ? Format("%u\n", kIpoibMtu) : "1500\n", 0644);
  tree->Add(at + "/type", Format("%u\n", infiniband ? kInfiniband : kEthernet));
  tree->Add(at + "/dev_id", "0x0\n");
  tree->Add(at + "/dev_port", "0\n");
  tree->Add(at + "/operstate", port.state == 4 ? "up\n" : "down\n");
  tree->Add(at + "/carrier", port.state == 4 ? "1\n" : "0\n", 0644);
  tree->Add(at + "/uevent", Format("INTERFACE=%s\nIFINDEX=%u\n", port.ndev, port.ndev_ifindex),
            0644);
  tree->AddLink(at + "/device", pci);
  tree->AddLink(at + "/subsystem", "/sys/class/net");
  tree->AddLink(std::string("/sys/class/net/") + port.ndev, at);
}

// drivers/pci/pci-sysfs.c:resource_show: first and last address and flags of six BARs, the ROM and,
// with CONFIG_PCI_IOV, six BARs of the virtual functions. One BAR, 64 bits wide and prefetchable.
std::string Resources(const PciPlace& place) {
  constexpr int kLines = 13;
  constexpr unsigned long long kBarSize = 32ULL << 20, kFlags = 0x14220c;
  const unsigned long long start = 0x380000000000ULL + place.bus * kBarSize;
  std::string text = Format("0x%016llx 0x%016llx 0x%016llx\n", start, start + kBarSize - 1, kFlags);
  for (int i = 1; i < kLines; ++i)
    text += Format("0x%016llx 0x%016llx 0x%016llx\n", 0ULL, 0ULL, 0ULL);
  return text;
}

}  // namespace

std::string PciRoot(const DeviceImage& device) {
  const PciPlace place = Parse(device.pci_address);
  return Format("/sys/devices/pci%04x:%02x", place.domain, place.RootBus());
}

std::string PciDirectory(const DeviceImage& device) {
  if (device.pci_address[0] == '\0') return "";
  const PciPlace place = Parse(device.pci_address);
  const std::string root = PciRoot(device);
  if (place.bus == place.RootBus()) return root + "/" + device.pci_address;
  const unsigned port = place.bus - place.RootBus();
  return root + Format("/%04x:%02x:%02x.0/", place.domain, place.RootBus(), port) +
         device.pci_address;
}

void DescribePci(const DeviceImage& device, Tree* tree) {
  const std::string at = PciDirectory(device);
  const bool infiniband = device.link == LinkLayer::kInfiniband;
  // PCI_CLASS_NETWORK_INFINIBAND, PCI_CLASS_NETWORK_ETHERNET
  const unsigned pci_class = infiniband ? 0x020700 : 0x020000;
  const unsigned vendor = device.vendor_id, part = device.vendor_part_id;
  const std::string modalias =
      Format("pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X", vendor, part, vendor, 0U,
             pci_class >> 16, (pci_class >> 8) & 0xff, pci_class & 0xff);
  tree->Add(at + "/vendor", Format("0x%04x\n", vendor));
  tree->Add(at + "/device", Format("0x%04x\n", part));
  tree->Add(at + "/subsystem_vendor", Format("0x%04x\n", vendor));
  tree->Add(at + "/subsystem_device", "0x0000\n");
  tree->Add(at + "/revision", Format("0x%02x\n", device.hw_ver & 0xff));
  tree->Add(at + "/class", Format("0x%06x\n", pci_class));
  tree->Add(at + "/modalias", modalias + "\n");
  tree->Add(at + "/numa_node", "-1\n", 0644);
  tree->Add(at + "/local_cpus", Format("%x\n", 1U));
  tree->Add(at + "/local_cpulist", "0\n");
  tree->Add(at + "/irq", "0\n");
  tree->Add(at + "/resource", Resources(Parse(device.pci_address)));
  tree->Add(at + "/enable", "1\n", 0644);
  tree->Add(at + "/max_link_speed", "16.0 GT/s PCIe\n");
  tree->Add(at + "/max_link_width", "16\n");
  tree->Add(at + "/current_link_speed", "16.0 GT/s PCIe\n");
  tree->Add(at + "/current_link_width", "16\n");
  const char* driver = PciDriver(device.driver);
  std::string uevent = driver ? Format("DRIVER=%s\n", driver) : "";
  uevent += Format("PCI_CLASS=%X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:0000\n", pci_class, vendor,
                   part, vendor);
  uevent += Format("PCI_SLOT_NAME=%s\nMODALIAS=%s\n", device.pci_address, modalias.c_str());
  tree->Add(at + "/uevent", uevent, 0644);
  tree->AddLink(at + "/subsystem", "/sys/bus/pci");
  if (driver) tree->AddLink(at + "/driver", std::string("/sys/bus/pci/drivers/") + driver);
  tree->AddLink(std::string("/sys/bus/pci/devices/") + device.pci_address, at);
  for (int port = 0; port < device.port_count; ++port) {
    if (device.ports[port].ndev[0] != '\0') DescribeNetdev(device, device.ports[port], tree);
  }
}

}  // namespace vabi::sysfs
