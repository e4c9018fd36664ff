// SPDX-License-Identifier: BSD-2-Clause
#include <array>

#include "shims/uverbs/driver.h"
#include "shims/uverbs/unmodelled_driver.h"

namespace vabi {

// The providers' factories. Weak: a unit test need not link every provider.
[[gnu::weak]] std::unique_ptr<Driver> MakeBnxtReDriver();
[[gnu::weak]] std::unique_ptr<Driver> MakeEfaDriver();
[[gnu::weak]] std::unique_ptr<Driver> MakeErdmaDriver();
[[gnu::weak]] std::unique_ptr<Driver> MakeHnsDriver();
[[gnu::weak]] std::unique_ptr<Driver> MakeIrdmaDriver();
[[gnu::weak]] std::unique_ptr<Driver> MakeMlx4Driver();
[[gnu::weak]] std::unique_ptr<Driver> MakeMlx5Driver();
[[gnu::weak]] std::unique_ptr<Driver> MakeRxeDriver();
[[gnu::weak]] std::unique_ptr<Driver> MakeSiwDriver();
[[gnu::weak]] std::unique_ptr<Driver> MakeVmwPvrdmaDriver();

namespace {

struct Row {
  DriverId id;
  DriverFactory make;
};

const Row kRows[] = {
    {DriverId::bnxt_re, &MakeBnxtReDriver}, {DriverId::efa, &MakeEfaDriver},
    {DriverId::erdma, &MakeErdmaDriver},    {DriverId::hns, &MakeHnsDriver},
    {DriverId::irdma, &MakeIrdmaDriver},    {DriverId::mlx4, &MakeMlx4Driver},
    {DriverId::mlx5, &MakeMlx5Driver},      {DriverId::rxe, &MakeRxeDriver},
    {DriverId::siw, &MakeSiwDriver},        {DriverId::vmw_pvrdma, &MakeVmwPvrdmaDriver},
};

std::array<DriverFactory, kCountOf<DriverId>> test_factories = {};

}  // namespace

std::unique_ptr<Driver> MakeDriver(DriverId id) {
  if (const DriverFactory make = test_factories[Index(id)]) return make();
  for (const Row& row : kRows) {
    if (row.id == id && row.make != nullptr) return row.make();
  }
#define VABI_DRIVER(name, driver_id_const) \
  if (id == DriverId::name) return std::make_unique<UnmodelledDriver>(id);
#define VABI_CONST(name)
#define VABI_KNOB(id, name, value, doc)
#include "shims/uverbs/drivers.def"
#undef VABI_DRIVER
#undef VABI_CONST
#undef VABI_KNOB
  return nullptr;
}

void SetDriverForTest(DriverId id, DriverFactory factory) { test_factories[Index(id)] = factory; }

}  // namespace vabi
