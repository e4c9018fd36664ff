// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_SPEC_H_
#define VABI_HARNESS_WORLD_SPEC_H_

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/facts/result.h"

// What a world is asked to be: a kernel, devices, overlays, and what the process may see. In JSON:
//
//   {"kernel": "debian-6.1.192",
//    "devices": [{"provider": "mlx5", "name": "mlx5_0", "link": "roce"}],
//    "overlays": ["no-ioctl", "provider-abi=2", "provider-abi@mlx5_1=2"],
//    "relax": ["ioctl.attr.duplicate"], "knobs": ["write.order=3"],
//    "run_dir": "/tmp/x", "trace": "/tmp/x/trace.jsonl"}
//
// An overlay may be aimed at one device by @NAME before its value; else it holds for all.

namespace vabi {

struct DeviceSpec {
  std::string provider;
  std::string name;  // empty: the provider's usual one
  std::string link;  // "ib" | "roce" | "iw"; empty: the provider's first
};

struct OverlaySpec {
  std::string text;  // as given
  std::string name;
  std::string step;  // errno@STEP=EIO: "STEP"; or a device's name
  std::string value;
  bool has_value = false;

  static OverlaySpec Parse(const std::string& text);
};

struct WorldSpec {
  std::string kernel;
  std::vector<DeviceSpec> devices;
  std::vector<OverlaySpec> overlays;
  std::vector<std::string> relax;
  std::vector<std::string> knobs;  // "NAME=VALUE", whatever the kernel says
  std::filesystem::path run_dir;
  std::filesystem::path cache_dir;  // empty: the tree is written into run_dir
  std::string trace;

  // The error names the key.
  static facts::Result<WorldSpec> FromJson(const nlohmann::json& value);
};

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_SPEC_H_
