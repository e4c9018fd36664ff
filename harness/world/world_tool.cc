// SPDX-License-Identifier: BSD-2-Clause
//
// vabi-world: compiles worlds for the command. One JSON object a line on standard input (see
// spec.h), one a line on standard output, until the input ends:
//   {"world": "/run/dir/world", "digest": "…", "devices": […],
//    "faults": ["CREATE_CQ"]}
//   {"absent": "linux-4.4 has no driver rxe"}     {"error": "…"}
// With "model": true in the question the answer also has "model": what the world comes to.
// Other questions, as arguments:
//   vabi-world ROOT rules           every rule: name, errno, kind, source
//   vabi-world ROOT model KERNEL    what that kernel's model comes to: rules, knobs, what is served

#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/world/compile.h"
#include "harness/world/model_changes.h"
#include "harness/world/write.h"

namespace {

using nlohmann::json;

// The kernel's ENOTSUPP (524) is no errno of the C library.
const char* NameOf(int error) {
  const char* name = strerrorname_np(error);
  return name != nullptr ? name : "ENOTSUPP";
}

// What the kernel's part of an image comes to.
json ModelOf(const vabi::WorldImage& image) {
  json out = {{"known_by", vabi::KnownByText(image.known_by)}};
  for (size_t i = 0; i < vabi::RuleRows().size(); ++i) {
    const vabi::RuleEntry& rule = image.rule[i];
    if (*vabi::RuleRows()[i].name == '\0') continue;
    out["rules"][vabi::RuleRows()[i].name] = {{"on", rule.on != 0 && rule.relaxed == 0},
                                              {"errno", NameOf(rule.error)},
                                              {"known_by", vabi::KnownByText(rule.known_by)}};
  }
  for (size_t i = 0; i < vabi::KnobRows().size(); ++i) {
    if (*vabi::KnobRows()[i].name != '\0') out["knobs"][vabi::KnobRows()[i].name] = image.knob[i];
  }
  for (size_t i = 0; i < vabi::MethodRows().size(); ++i) {
    if (*vabi::MethodRows()[i].name != '\0')
      out["methods"][vabi::MethodRows()[i].name] = image.method_served[i] != 0;
  }
  for (size_t i = 0; i < vabi::WriteNames().size(); ++i) {
    out["write"][vabi::WriteNames()[i]] = image.write_served[i] != 0;
  }
  for (size_t i = 0; i < vabi::WriteExNames().size(); ++i) {
    out["write_ex"][vabi::WriteExNames()[i]] = image.write_ex_served[i] != 0;
  }
  // Bytes of the structures that this kernel has.
  for (size_t i = 0; i < vabi::StructNames().size(); ++i) {
    if (image.struct_size[i] != 0) out["structs"][vabi::StructNames()[i]] = image.struct_size[i];
  }
  for (size_t driver = 0; driver < vabi::DriverRows().size(); ++driver) {
    for (size_t op = 0; op < vabi::OpNames().size(); ++op) {
      out["ops"][vabi::DriverRows()[driver].name][vabi::OpNames()[op]] =
          image.op_served[driver][op] != 0;
    }
  }
  return out;
}

json DevicesOf(const vabi::WorldImage& image) {
  json out = json::array();
  for (uint32_t i = 0; i < image.device_count; ++i) {
    const vabi::DeviceImage& device = image.device[i];
    out.push_back({{"name", device.name},
                   {"driver", vabi::DriverRows()[vabi::Index(device.driver)].name},
                   {"link", device.link == vabi::LinkLayer::kInfiniband ? "ib" : "roce"},
                   {"abi", device.abi_version},
                   {"driver_id", device.driver_id},
                   {"node_type", device.node_type},
                   {"node_guid", device.node_guid},
                   {"pci", device.pci_address[0] != '\0'},
                   {"node", "uverbs" + std::to_string(device.uverbs)}});
  }
  return out;
}

// The steps that overlays let fail.
json FaultsOf(const vabi::WorldImage& image) {
  json steps = json::array();
  for (uint32_t i = 0; i < image.fault_count; ++i) steps.push_back(image.fault[i].step);
  return steps;
}

json Answer(vabi::WorldCompiler& compiler, const std::string& line) {
  json value;
  try {
    value = json::parse(line);
  } catch (const json::parse_error& error) {
    return {{"error", std::string("not valid JSON: ") + error.what()}};
  }
  bool wants_model = false;
  if (value.is_object() && value.contains("model")) {
    wants_model = value["model"] == true;
    value.erase("model");
  }
  auto spec = vabi::WorldSpec::FromJson(value);
  if (!spec) return {{"error", spec.error()}};
  auto world = compiler.Compile(*spec);
  if (!world) return {{"error", world.error()}};
  if (!world->absent.empty()) return {{"absent", world->absent}};
  auto path = vabi::WriteWorld(*world, spec->run_dir, spec->cache_dir);
  if (!path) return {{"error", path.error()}};
  json answer = {{"world", path->string()},
                 {"digest", world->digest},
                 {"devices", DevicesOf(*world->image)},
                 {"faults", FaultsOf(*world->image)}};
  if (wants_model) answer["model"] = ModelOf(*world->image);
  return answer;
}

int Serve(const std::string& root) {
  vabi::WorldCompiler compiler(root);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << Answer(compiler, line).dump(-1, ' ', false, json::error_handler_t::replace)
              << std::endl;
  }
  return 0;
}

int PrintRules() {
  json rules = json::array();
  vabi::RuleRows().ForParts([&](std::span<const vabi::RuleRow> rows) {
    for (const vabi::RuleRow& row : rows) {
      rules.push_back({{"name", row.name},
                       {"errno", NameOf(row.error)},
                       {"kind", row.kind == vabi::RuleKind::check ? "check" : "structural"},
                       {"source", row.source}});
    }
  });
  std::cout << rules.dump(1) << "\n";
  return 0;
}

int PrintModel(const std::string& root, const std::string& kernel) {
  vabi::WorldCompiler compiler(root);
  auto model = compiler.Kernel(kernel);
  if (!model) {
    std::cerr << "vabi-world: " << model.error() << "\n";
    return 2;
  }
  json out = ModelOf((*model)->image());
  out["name"] = kernel;
  out["headers"] = (*model)->headers();
  for (size_t i = 0; i < vabi::DriverRows().size(); ++i) {
    out["drivers"][vabi::DriverRows()[i].name] =
        (*model)->HasDriver(static_cast<vabi::DriverId>(i));
  }
  std::cout << out.dump(1) << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 2) return Serve(argv[1]);
  if (argc == 3 && std::strcmp(argv[2], "rules") == 0) return PrintRules();
  if (argc == 4 && std::strcmp(argv[2], "model") == 0) return PrintModel(argv[1], argv[3]);
  std::cerr << "usage: vabi-world ROOT [rules | model KERNEL] (ROOT holds matrix/ and "
               "reference-headers/)\n";
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "vabi-world: %s\n", error.what());
  return 2;
}
