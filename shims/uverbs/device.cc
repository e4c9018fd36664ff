// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/device.h"

#include <cstdio>
#include <vector>

#include "shims/fabric/remote.h"
#include "shims/fabric/shared_world.h"
#include "shims/trace/trace.h"
#include "shims/uverbs/command_table.h"
#include "shims/uverbs/faults.h"
#include "shims/uverbs/method_table.h"
#include "shims/uverbs/script.h"
#include "shims/uverbs/world_stage.h"

namespace vabi {
namespace {

struct Installed {
  World world;
  std::vector<std::unique_ptr<Device>> devices;
};
// Never freed in a living process: files and threads may use it until the very end.
Installed* installed = nullptr;

uint32_t FirstQpn(uint32_t number) { return fabric::kFirstQpn + number * fabric::kQpnsOfDevice; }

}  // namespace

Device::Device(const World& world, uint32_t number, std::unique_ptr<Driver> driver)
    : world_(world), number_(number), driver_(std::move(driver)), next_qpn_(FirstQpn(number)) {
  driver_->Describe(*this, &attributes_);
  comp_vectors_ = driver_->CompVectors(*this);
  commands_ = std::make_unique<CommandTable>(*this);
  methods_ = std::make_unique<MethodTable>(*this);
}

Device::~Device() = default;

uint32_t Device::NextQpn() {
  if (const uint32_t qpn = fabric::ReserveQpn(number_)) return qpn;
  if (const char* why = fabric::WhyAlone(); why != nullptr && !alone_told_.exchange(true)) {
    char text[160];
    std::snprintf(text, sizeof(text), "fabric: no other process is reached: %s", why);
    trace::Event("unmodelled", text);
  }
  return next_qpn_.fetch_add(1);
}

char Device::Letter() const {
  const char told = StageNow(world_.image()).letters[number_];
  return told != kAsBegun ? told : letter_.load();
}

bool InstallWorld(const World& world) {
  auto fresh = std::make_unique<Installed>(Installed{world, {}});
  bool complete = true;
  for (uint32_t i = 0; i < world.image().device_count; ++i) {
    std::unique_ptr<Driver> driver = MakeDriver(world.image().device[i].driver);
    if (driver == nullptr) {
      complete = false;
      fresh->devices.push_back(nullptr);
      continue;
    }
    fresh->devices.push_back(std::make_unique<Device>(fresh->world, i, std::move(driver)));
  }
  delete installed;
  installed = fresh.release();
  fabric::UseWorld(&installed->world.image());
  ResetFaults();
  ResetScript();
  trace::Open(world.image().trace_path);
  return complete;
}

const World* InstalledWorld() { return installed == nullptr ? nullptr : &installed->world; }

Device* FindDevice(uint32_t number) {
  if (installed == nullptr || number >= installed->devices.size()) return nullptr;
  return installed->devices[number].get();
}

uint32_t DeviceCount() {
  return installed == nullptr ? 0 : static_cast<uint32_t>(installed->devices.size());
}

}  // namespace vabi
