// SPDX-License-Identifier: BSD-2-Clause
#include "harness/world/spec.h"

#include <set>

namespace vabi {

using facts::Error;
using facts::Result;
using nlohmann::json;

OverlaySpec OverlaySpec::Parse(const std::string& text) {
  OverlaySpec overlay;
  overlay.text = text;
  std::string head = text;
  if (const size_t equals = text.find('='); equals != std::string::npos) {
    head = text.substr(0, equals);
    overlay.value = text.substr(equals + 1);
    overlay.has_value = true;
  }
  const size_t at = head.find('@');
  overlay.name = head.substr(0, at);
  if (at != std::string::npos) overlay.step = head.substr(at + 1);
  return overlay;
}

Result<WorldSpec> WorldSpec::FromJson(const json& value) {
  if (!value.is_object()) return Error{"a world must be an object"};
  static const std::set<std::string> kKeys = {"kernel", "devices", "overlays",  "relax",
                                              "knobs",  "run_dir", "cache_dir", "trace"};
  for (const auto& [key, unused] : value.items()) {
    if (kKeys.count(key) == 0) return Error{"/" + key + ": unknown key"};
  }
  WorldSpec spec;
  try {
    spec.kernel = value.at("kernel").get<std::string>();
    for (const json& device : value.at("devices")) {
      spec.devices.push_back({device.at("provider").get<std::string>(), device.value("name", ""),
                              device.value("link", "")});
    }
    for (const json& overlay : value.value("overlays", json::array())) {
      spec.overlays.push_back(OverlaySpec::Parse(overlay.get<std::string>()));
    }
    for (const json& rule : value.value("relax", json::array())) {
      spec.relax.push_back(rule.get<std::string>());
    }
    for (const json& knob : value.value("knobs", json::array())) {
      spec.knobs.push_back(knob.get<std::string>());
    }
    spec.run_dir = value.at("run_dir").get<std::string>();
    spec.cache_dir = value.value("cache_dir", "");
    spec.trace = value.value("trace", "");
  } catch (const json::exception& error) {
    return Error{std::string("not a world: ") + error.what()};
  }
  return spec;
}

}  // namespace vabi
