// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_DEVICE_H_
#define VABI_SHIMS_UVERBS_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "harness/world/world.h"
#include "shims/uverbs/driver.h"

// One RDMA device of the world, with its driver. Devices live as long as the process.

namespace vabi {

class Device {
 public:
  Device(const World& world, uint32_t number);

  const World& world() const { return world_; }
  uint32_t number() const { return number_; }  // index in the world
  const DeviceImage& image() const { return world_.image().device[number_]; }
  Driver& driver() const { return *driver_; }
  const DeviceAttributes& attributes() const { return attributes_; }
  // The driver has the operation, in this kernel.
  bool Offers(Op op) const { return driver_->Offers(op) && world_.Served(image().driver, op); }

  // Numbers that are unique on the device: queue pairs, CQs, protection domains, keys …
  uint32_t NextQpn() { return next_qpn_.fetch_add(1); }
  uint32_t NextNumber() { return next_number_.fetch_add(1); }

 private:
  const World& world_;
  uint32_t number_;
  std::unique_ptr<Driver> driver_;
  DeviceAttributes attributes_;
  std::atomic<uint32_t> next_qpn_;
  std::atomic<uint32_t> next_number_{1};
};

// The devices of this process' world.
Device* FindDevice(uint32_t number);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_DEVICE_H_
