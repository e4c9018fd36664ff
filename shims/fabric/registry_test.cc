// SPDX-License-Identifier: BSD-2-Clause
#include "shims/fabric/registry.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace vabi::fabric {
namespace {

TEST(Registry, AgreesWithAMap) {
  std::mt19937 random(1);
  std::map<std::pair<uint32_t, uint32_t>, int*> model;
  Registry<int> registry;
  static int values[64];
  for (int step = 0; step < 200000; ++step) {
    const uint32_t device = random() % 3, number = random() % 500;
    int* const known = model.contains({device, number}) ? model[{device, number}] : nullptr;
    switch (random() % 3) {
      case 0:
        ASSERT_EQ(registry.Find(device, number), known);
        break;
      case 1: {
        int* value = &values[random() % 64];
        ASSERT_EQ(registry.Insert(device, number, value), known);
        model[{device, number}] = value;
        break;
      }
      default:
        ASSERT_EQ(registry.Erase(device, number), known);
        model.erase({device, number});
    }
  }
  size_t seen = 0;
  registry.ForEach([&seen](int*) { ++seen; });
  EXPECT_EQ(seen, model.size());
}

}  // namespace
}  // namespace vabi::fabric
