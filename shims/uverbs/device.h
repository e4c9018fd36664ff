// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_DEVICE_H_
#define VABI_SHIMS_UVERBS_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "harness/world/stages.h"
#include "harness/world/world.h"
#include "shims/uverbs/driver.h"

// One RDMA device of the world, with its driver. Devices live as long as the process.

namespace vabi {

class MethodTable;
class CommandTable;

class Device {
 public:
  Device(const World& world, uint32_t number, std::unique_ptr<Driver> driver);
  ~Device();

  const World& world() const { return world_; }
  uint32_t number() const { return number_; }  // index in the world
  const DeviceImage& image() const { return world_.image().device[number_]; }
  Driver& driver() const { return *driver_; }
  const DeviceAttributes& attributes() const { return attributes_; }
  uint32_t comp_vectors() const { return comp_vectors_; }
  // The driver has the operation, in this kernel.
  bool Offers(Op op) const {
    return op == Op::always || (driver_->Offers(op) && world_.Served(image().driver, op));
  }

  // What user space can call on this device: the kernel's struct uverbs_api.
  const MethodTable& methods() const { return *methods_; }
  const CommandTable& commands() const { return *commands_; }

  bool ValidPort(uint64_t port) const { return port >= 1 && port <= image().port_count; }
  const PortImage& port(uint32_t port) const { return image().ports[port - 1]; }
  // Where the port is now: as the world says, until something happened to it, in this process or in
  // another one of the world.
  uint8_t PortState(uint32_t port) const { return PortStateIn(Letter(), this->port(port)); }
  uint8_t PortPhysState(uint32_t port) const { return PortPhysStateIn(Letter(), this->port(port)); }
  // Something happened to it here: a letter of harness/world/stages.h. Worlds with a run folder
  // tell their other processes, too (MoveStage).
  void Become(char letter) { letter_ = letter; }
  void Move(const ScriptStep& step) { Become(LetterAfter(letter_, step)); }
  // The device was removed (struct ib_uverbs_device.ib_dev is null). `letting_go`: its open files
  // lost it, too.
  void SetGone(bool letting_go) {
    if (letting_go) gone_ = true;
    Become(kUnplugged);
  }
  bool gone() const { return gone_; }
  bool node_gone() const { return Letter() == kUnplugged; }
  bool IsRoce() const { return image().link == LinkLayer::kEthernet && !IsIwarp(); }
  bool IsIwarp() const { return image().node_type == 4; }  // RDMA_NODE_RNIC

  // Open files of the device's node (ib_uverbs_device.uverbs_file_list).
  uint32_t open_files() const { return open_files_.load(); }
  void CountOpenFile(int change) { open_files_.fetch_add(static_cast<uint32_t>(change)); }

  // Numbers that are unique on the device: queue pairs, CQs, protection domains, keys …
  uint32_t NextQpn();
  uint32_t NextNumber() { return next_number_.fetch_add(1); }

  // XRC domains with an inode (ib_uverbs_device.xrcd_tree) and XRC target queue pairs by number,
  // each with the domain it belongs to. Guarded by shared_mutex().
  std::mutex& shared_mutex() { return shared_mutex_; }
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<XrcDomain>> xrc_domains;
  std::map<std::pair<XrcDomain*, uint32_t>, std::shared_ptr<Qp>> xrc_targets;

 private:
  // What has become of it (harness/world/stages.h).
  char Letter() const;

  const World world_;
  uint32_t number_;
  std::unique_ptr<Driver> driver_;
  DeviceAttributes attributes_;
  uint32_t comp_vectors_ = 1;
  std::unique_ptr<MethodTable> methods_;
  std::unique_ptr<CommandTable> commands_;
  std::atomic<uint32_t> open_files_{0};
  std::atomic<uint32_t> next_qpn_;  // of a process that is alone
  std::atomic<bool> alone_told_{false};
  std::atomic<uint32_t> next_number_{1};
  std::mutex shared_mutex_;
  std::atomic<char> letter_{kAsBegun};  // what happened in this process
  std::atomic<bool> gone_{false};
};

// Makes this world the process' own: its devices, its trace. The image must stay. A second call
// replaces the first (unit tests); files of the old devices must be gone. False: a device's driver
// is not linked in.
bool InstallWorld(const World& world);
// Null before InstallWorld.
const World* InstalledWorld();
// The devices of this process' world.
Device* FindDevice(uint32_t number);
uint32_t DeviceCount();

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_DEVICE_H_
