// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sysfs/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace vabi::sysfs {
namespace {

using ::testing::Contains;
using ::testing::Not;

// An rxe device as `rdma link add rxe0 type rxe netdev lo` makes it, and an mlx5 one on InfiniBand.
class DescribeSysfsTest : public ::testing::Test {
 protected:
  DescribeSysfsTest() : image_(std::make_unique<WorldImage>()) {
    for (size_t i = 0; i < kCountOf<KnobId>; ++i) image_->knob[i] = KnobRows()[i].value;
    image_->device_count = 2;
    DeviceImage& rxe = image_->device[0];
    std::strcpy(rxe.name, "rxe0");
    rxe.driver = DriverId::rxe;
    rxe.uverbs = 0;
    rxe.major = 231;
    rxe.minor = 192;
    rxe.link = LinkLayer::kEthernet;
    rxe.node_type = 1;
    rxe.port_count = 1;
    rxe.abi_version = 2;
    rxe.node_guid = rxe.sys_image_guid = 0x020000fffe000000;
    std::strcpy(rxe.node_desc, "rxe");
    PortImage& port = rxe.ports[0];
    port.state = 4;
    port.phys_state = 5;
    port.cap_flags = 0x10000;
    port.active_width = 1;
    port.active_speed = 1;
    port.pkey_count = 1;
    port.pkeys[0] = 0xffff;
    port.gid_table_length = 1024;
    port.gid_count = 1;
    const uint8_t gid[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xff, 0xfe, 0, 0, 0};
    std::memcpy(port.gids[0].raw, gid, sizeof gid);
    port.gids[0].type = 2;
    port.gids[0].ndev_ifindex = 1;
    std::strcpy(port.ndev, "lo");

    DeviceImage& mlx5 = image_->device[1];
    std::strcpy(mlx5.name, "mlx5_0");
    mlx5.driver = DriverId::mlx5;
    mlx5.uverbs = 1;
    mlx5.major = 231;
    mlx5.minor = 193;
    mlx5.link = LinkLayer::kInfiniband;
    mlx5.node_type = 1;
    mlx5.port_count = 1;
    mlx5.abi_version = 1;
    mlx5.vendor_id = 0x15b3;
    mlx5.vendor_part_id = 4123;
    std::strcpy(mlx5.pci_address, "0000:a1:00.0");
    std::strcpy(mlx5.board_id, "MT_0000000224");
    mlx5.ports[0].gid_table_length = 8;
    mlx5.ports[0].active_width = 2;
  }

  const Tree& Described() {
    DescribeSysfs(*image_, &tree_);
    return tree_;
  }
  std::string Read(const std::string& path) {
    const auto found = tree_.files().find(tree_.Canonical(path));
    return found == tree_.files().end() ? "(absent)" : found->second.content;
  }
  int ReadErrno(const std::string& path) {
    const auto found = tree_.files().find(tree_.Canonical(path));
    return found == tree_.files().end() ? -1 : found->second.read_errno;
  }
  void SetKnob(KnobId id, int64_t value) { image_->knob[Index(id)] = value; }

  std::unique_ptr<WorldImage> image_;
  Tree tree_;
};

// Every expected text was read on Debian's 5.10.223 and 7.3.4 kernels with rxe0 on lo.
TEST_F(DescribeSysfsTest, RxeReadsAsOnRealKernels) {
  Described();
  EXPECT_EQ(Read("/sys/class/infiniband_verbs/abi_version"), "6\n");
  const std::string uverbs = "/sys/class/infiniband_verbs/uverbs0/";
  EXPECT_EQ(Read(uverbs + "abi_version"), "2\n");
  EXPECT_EQ(Read(uverbs + "dev"), "231:192\n");
  EXPECT_EQ(Read(uverbs + "ibdev"), "rxe0\n");
  EXPECT_EQ(Read(uverbs + "uevent"),
            "MAJOR=231\nMINOR=192\nDEVNAME=infiniband/uverbs0\nDEVMODE=0666\n");
  const std::string device = "/sys/class/infiniband/rxe0/";
  EXPECT_EQ(Read(device + "fw_ver"), "\n");
  EXPECT_EQ(Read(device + "node_desc"), "rxe\n");
  EXPECT_EQ(Read(device + "node_guid"), "0200:00ff:fe00:0000\n");
  EXPECT_EQ(Read(device + "node_type"), "1: CA\n");
  EXPECT_EQ(Read(device + "parent"), "lo\n");
  EXPECT_EQ(Read(device + "uevent"), "NAME=rxe0\n");
  const std::string port = device + "ports/1/";
  EXPECT_EQ(Read(port + "cap_mask"), "0x00010000\n");
  EXPECT_EQ(Read(port + "lid"), "0x0\n");
  EXPECT_EQ(Read(port + "lid_mask_count"), "0\n");
  EXPECT_EQ(Read(port + "link_layer"), "Ethernet\n");
  EXPECT_EQ(Read(port + "phys_state"), "5: LinkUp\n");
  EXPECT_EQ(Read(port + "rate"), "2.5 Gb/sec (1X SDR)\n");
  EXPECT_EQ(Read(port + "sm_lid"), "0x0\n");
  EXPECT_EQ(Read(port + "sm_sl"), "0\n");
  EXPECT_EQ(Read(port + "state"), "4: ACTIVE\n");
  EXPECT_EQ(Read(port + "pkeys/0"), "0xffff\n");
  EXPECT_EQ(Read(port + "gids/0"), "fe80:0000:0000:0000:0200:00ff:fe00:0000\n");
  EXPECT_EQ(Read(port + "gids/9"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
  EXPECT_EQ(Read(port + "gids/1023"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
  EXPECT_EQ(Read(port + "gids/1024"), "(absent)");
  EXPECT_EQ(Read(port + "gid_attrs/types/0"), "RoCE v2\n");
  EXPECT_EQ(Read(port + "gid_attrs/ndevs/0"), "lo\n");
  EXPECT_EQ(ReadErrno(port + "gid_attrs/types/0"), 0);
  EXPECT_EQ(ReadErrno(port + "gid_attrs/types/9"), EINVAL);
  EXPECT_EQ(ReadErrno(port + "gid_attrs/ndevs/9"), EINVAL);
}

TEST_F(DescribeSysfsTest, LinksAreRelativeAsInSysfs) {
  Described();
  const auto& files = tree_.files();
  EXPECT_EQ(files.at("/sys/class/infiniband/rxe0").link_target,
            "../../devices/virtual/infiniband/rxe0");
  EXPECT_EQ(files.at("/sys/devices/virtual/infiniband/rxe0/subsystem").link_target,
            "../../../../class/infiniband");
  EXPECT_EQ(files.count("/sys/devices/virtual/infiniband/rxe0/device"), 0U);
}

TEST_F(DescribeSysfsTest, APciDeviceStandsBelowItsFunction) {
  Described();
  const std::string pci = "/sys/devices/pci0000:a0/0000:a0:01.0/0000:a1:00.0";
  EXPECT_EQ(tree_.Canonical("/sys/class/infiniband/mlx5_0/device/x"), pci + "/x");
  EXPECT_EQ(Read("/sys/class/infiniband_verbs/uverbs1/device/vendor"), "0x15b3\n");
  EXPECT_EQ(Read("/sys/bus/pci/devices/0000:a1:00.0/infiniband/mlx5_0/board_id"),
            "MT_0000000224\n");
  EXPECT_EQ(Read("/sys/class/infiniband/mlx5_0/hca_type"), "MT4123\n");
  // libpci wants it; a line is three numbers (pci-sysfs.c:resource_show).
  EXPECT_EQ(Read(pci + "/resource").size(), 13u * 57);
  EXPECT_EQ(Read(pci + "/resource").substr(0, 18), "0x0000380142000000");
  // MODALIAS as drivers/pci/pci-sysfs.c:modalias_show prints it.
  EXPECT_EQ(Read(pci + "/modalias"), "pci:v000015B3d0000101Bsv000015B3sd00000000bc02sc07i00\n");
}

// core/sysfs.c before 4.5, and 4.5…4.17.
// net/core/net-sysfs.c, ulp/ipoib/ipoib_main.c:ipoib_add_port
TEST_F(DescribeSysfsTest, AnInfinibandPortHasAnInterface) {
  PortImage& port = image_->device[1].ports[0];
  std::strcpy(port.ndev, "ib0");
  port.ndev_ifindex = 3;
  port.pkeys[0] = 0xffff;
  port.gid_count = 1;
  const uint8_t gid[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0xc0, 0xff, 0xfe, 0, 1, 0};
  std::memcpy(port.gids[0].raw, gid, sizeof gid);
  Described();
  const std::string at = "/sys/class/infiniband/mlx5_0/device/net/ib0";
  EXPECT_EQ(Read(at + "/type"), "32\n");
  EXPECT_EQ(Read(at + "/addr_len"), "20\n");
  EXPECT_EQ(Read("/sys/class/net/ib0/address").substr(12),
            "fe:80:00:00:00:00:00:00:02:00:c0:ff:fe:00:01:00\n");
  EXPECT_EQ(Read(at + "/broadcast"),
            "00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff\n");
  EXPECT_EQ(Read(at + "/dev_port"), "0\n");
  EXPECT_EQ(Read(at + "/dev_id"), "0x0\n");
  EXPECT_EQ(Read(at + "/mode"), "datagram\n");
  EXPECT_EQ(Read(at + "/pkey"), "0xffff\n");
  EXPECT_EQ(Read("/sys/class/net/ib0/device/vendor"), "0x15b3\n");
  EXPECT_EQ(ReadErrno("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0"), EINVAL)
      << "the GID belongs to no interface";
}

TEST_F(DescribeSysfsTest, AnUnpluggedDeviceLeavesNothing) {
  NodeView& node = image_->node[image_->node_count++];
  std::strcpy(node.path, "/dev/infiniband/uverbs1");
  node.present = 1;
  node.major = 231;
  node.minor = 193;
  Described();
  DescribeDev(*image_, &tree_);
  const std::string umad = Read("/sys/class/infiniband_mad/umad1/ibdev");
  EXPECT_EQ(umad, "mlx5_0\n");
  TakeAway(1, image_.get());
  tree_ = {};
  Described();
  DescribeDev(*image_, &tree_);
  for (const auto& [path, file] : tree_.files()) {
    EXPECT_EQ(path.find("mlx5"), std::string::npos) << path;
    EXPECT_EQ(path.find("a1:00.0"), std::string::npos) << path;
    EXPECT_EQ(path.find("uverbs1"), std::string::npos) << path;
    EXPECT_EQ(path.find("umad1"), std::string::npos) << path;
  }
  EXPECT_EQ(Read("/sys/class/infiniband_mad/umad0/ibdev"), "rxe0\n");
}

TEST_F(DescribeSysfsTest, OlderKernelsHaveOtherGidAttributes) {
  SetKnob(KnobId::sysfs_empty_gid_type, 1);
  Described();
  EXPECT_EQ(Read("/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/9"), "IB/RoCE v1\n");
  EXPECT_EQ(ReadErrno("/sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/9"), EINVAL);
}

TEST_F(DescribeSysfsTest, TheOldestKernelHasNoGidAttributes) {
  SetKnob(KnobId::sysfs_gid_attrs, 0);
  Described();
  EXPECT_EQ(Read("/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/0"), "(absent)");
}

// 5.10.223 has no counters folder for rxe and no byte counters, 7.3.4 has both.
TEST_F(DescribeSysfsTest, CountersDependOnTheKernel) {
  SetKnob(KnobId::sysfs_rxe_pma, 0);
  SetKnob(KnobId::sysfs_rxe_hw_counters, 2);
  Described();
  const std::string port = "/sys/class/infiniband/rxe0/ports/1/";
  EXPECT_EQ(Read(port + "counters/port_xmit_data"), "(absent)");
  EXPECT_EQ(Read(port + "hw_counters/sent_bytes"), "(absent)");
  EXPECT_EQ(Read(port + "hw_counters/link_downed"), "0\n");
  tree_ = {};
  SetKnob(KnobId::sysfs_rxe_pma, 1);
  SetKnob(KnobId::sysfs_rxe_hw_counters, 3);
  Described();
  EXPECT_EQ(Read(port + "counters/port_xmit_data"), "0\n");
  EXPECT_EQ(Read(port + "hw_counters/sent_bytes"), "0\n");
}

// core/user_mad.c: ib_umad_init_port and its attributes; core/ucma.c.
TEST_F(DescribeSysfsTest, NodesOfOtherModulesAreTold) {
  Described();
  EXPECT_EQ(Read("/sys/class/infiniband_mad/abi_version"), "5\n");
  const std::string umad = "/sys/class/infiniband_mad/umad0/";
  EXPECT_EQ(Read(umad + "dev"), "231:0\n");
  EXPECT_EQ(Read(umad + "ibdev"), "rxe0\n");
  EXPECT_EQ(Read(umad + "port"), "1\n");
  EXPECT_EQ(Read(umad + "uevent"), "MAJOR=231\nMINOR=0\nDEVNAME=infiniband/umad0\n");
  EXPECT_EQ(Read("/sys/class/infiniband_mad/umad1/ibdev"), "mlx5_0\n");
  EXPECT_EQ(Read("/sys/class/infiniband_mad/issm0/dev"), "(absent)") << "Ethernet has no SMPs";
  EXPECT_EQ(Read("/sys/class/infiniband_mad/issm1/dev"), "231:65\n");
  EXPECT_EQ(tree_.Canonical("/sys/class/infiniband_mad/umad1/device/x"),
            "/sys/devices/pci0000:a0/0000:a0:01.0/0000:a1:00.0/x");
  EXPECT_EQ(Read("/sys/class/misc/rdma_cm/abi_version"), "4\n");
  EXPECT_EQ(Read("/sys/class/misc/rdma_cm/uevent"),
            "MAJOR=10\nMINOR=256\nDEVNAME=infiniband/rdma_cm\nDEVMODE=0666\n");
}

TEST_F(DescribeSysfsTest, OlderKernelsHaveIssmForEveryPort) {  // up to 6.6
  SetKnob(KnobId::sysfs_issm_every_port, 1);
  Described();
  EXPECT_EQ(Read("/sys/class/infiniband_mad/issm0/dev"), "231:64\n");
}

TEST_F(DescribeSysfsTest, WhatIsNotLoadedIsNotThere) {
  SetKnob(KnobId::modules_mad, 0);
  SetKnob(KnobId::modules_cm, 0);
  Described();
  for (const auto& [path, file] : tree_.files()) {
    EXPECT_EQ(path.find("infiniband_mad"), std::string::npos) << path;
    EXPECT_EQ(path.find("rdma_cm"), std::string::npos) << path;
    EXPECT_EQ(path.find("/cm_"), std::string::npos) << path;
  }
}

// core/cm.c: cm_counter_groups, each with CM_COUNTER_ATTR of eleven messages.
TEST_F(DescribeSysfsTest, TheConnectionManagerCountsOnEveryPort) {
  Described();
  int files = 0;
  const std::string port = "/sys/devices/virtual/infiniband/rxe0/ports/1/";
  for (const auto& [path, file] : tree_.files()) files += path.find(port + "cm_") == 0;
  EXPECT_EQ(files, 4 * 11);
  EXPECT_EQ(Read(port + "cm_tx_retries/sidr_req"), "0\n");
  EXPECT_EQ(Read(port + "cm_rx_duplicates/apr"), "0\n");
  tree_ = {};
  SetKnob(KnobId::sysfs_cm_counters, 0);
  Described();
  EXPECT_EQ(Read(port + "cm_tx_retries/sidr_req"), "(absent)");
}

// drivers/base/power/sysfs.c: a device that uses no power management.
TEST_F(DescribeSysfsTest, PowerFilesDependOnTheConfiguration) {
  Described();
  const std::string power = "/sys/class/infiniband/rxe0/power/";
  EXPECT_EQ(Read(power + "async"), "disabled\n");
  EXPECT_EQ(Read(power + "runtime_enabled"), "disabled\n");
  EXPECT_EQ(Read(power + "runtime_usage"), "0\n");
  EXPECT_EQ(ReadErrno(power + "autosuspend_delay_ms"), EIO);
  tree_ = {};
  SetKnob(KnobId::sysfs_pm_debug, 0);
  Described();
  EXPECT_EQ(Read(power + "control"), "auto\n");
  EXPECT_EQ(Read(power + "async"), "(absent)");
}

TEST_F(DescribeSysfsTest, DevHoldsOnlyNodesThatArePresent) {
  image_->node_count = 2;
  image_->node[0] = {"/dev/infiniband/uverbs0", 1, 0, 0666, 0, 0, 231, 192, 0};
  image_->node[1] = {"/dev/infiniband/uverbs1", 0, 0, 0666, 0, 0, 231, 193, 1};
  DescribeDev(*image_, &tree_);
  EXPECT_EQ(tree_.files().count("/dev/infiniband/uverbs0"), 1U);
  EXPECT_EQ(tree_.files().count("/dev/infiniband/uverbs1"), 0U);
  EXPECT_EQ(tree_.files().at("/dev/char/231:192").link_target, "../infiniband/uverbs0");
}

TEST_F(DescribeSysfsTest, RedirectsCoverEveryPathOfTheTreeLongestFirst) {
  Described();
  DescribeDev(*image_, &tree_);
  const auto prefixes = RedirectedPrefixes(*image_);
  for (const auto& [path, file] : tree_.files()) {
    bool covered = false;
    for (const std::string& prefix : prefixes) {
      covered |= path == prefix || path.compare(0, prefix.size() + 1, prefix + "/") == 0;
    }
    EXPECT_TRUE(covered) << path;
  }
  for (size_t i = 1; i < prefixes.size(); ++i)
    EXPECT_GE(prefixes[i - 1].size(), prefixes[i].size());
  // The machine's own classes stay visible.
  EXPECT_THAT(prefixes, Not(Contains("/sys/class/net/lo")));
}

}  // namespace
}  // namespace vabi::sysfs
