// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/cell.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

namespace vabi::conformance {
namespace {

using nlohmann::json;

template <typename Map>
const typename Map::mapped_type& Find(const Map& map, std::string_view name, const char* kind) {
  const auto found = map.find(name);
  if (found != map.end()) return found->second;
  std::fprintf(stderr, "conformance: the kernel model has no %s '%.*s'\n", kind,
               static_cast<int>(name.size()), name.data());
  std::abort();
}

int ErrnoOf(const std::string& name) {
  for (int error = 1; error < 134; ++error) {
    const char* known = strerrorname_np(error);
    if (known != nullptr && name == known) return error;
  }
  return 0;
}

void Bools(const json& from, std::map<std::string, bool, std::less<>>* to) {
  for (const auto& [name, served] : from.items()) (*to)[name] = served.get<bool>();
}

void TakeModel(const json& model, Cell* cell) {
  for (const auto& [name, rule] : model.at("rules").items()) {
    cell->rules[name] = {rule.at("on").get<bool>(), ErrnoOf(rule.at("errno").get<std::string>())};
  }
  for (const auto& [name, value] : model.at("knobs").items()) cell->knobs[name] = value.get<long>();
  Bools(model.at("methods"), &cell->methods);
  Bools(model.at("write"), &cell->write);
  Bools(model.at("write_ex"), &cell->write_ex);
  for (const auto& [name, size] : model.at("structs").items())
    cell->structs[name] = size.get<size_t>();
  for (const auto& [driver, ops] : model.at("ops").items()) Bools(ops, &cell->ops[driver]);
}

}  // namespace

Release ParseRelease(std::string_view text) {
  Release release;
  std::sscanf(std::string(text).c_str(), "%d.%d", &release.major, &release.minor);
  return release;
}

long Cell::Knob(std::string_view name) const { return Find(knobs, name, "knob"); }
const RuleFact& Cell::Rule(std::string_view name) const { return Find(rules, name, "rule"); }
bool Cell::Op(std::string_view driver, std::string_view operation) const {
  return Find(Find(ops, driver, "driver"), operation, "operation");
}

bool Cell::Serves(std::string_view name) const {
  if (name.find('.') != name.npos) return Find(methods, name, "method") && HasIoctl();
  if (name.substr(0, 3) == "EX_") return Find(write_ex, name.substr(3), "extended command");
  return Find(write, name, "write command");
}

size_t Cell::SizeOf(std::string_view structure) const {
  const auto found = structs.find(structure);
  return found == structs.end() ? 0 : found->second;
}

bool Cell::HasOverlay(std::string_view text) const {
  return std::find(overlays.begin(), overlays.end(), text) != overlays.end();
}

std::optional<std::string> Cell::OverlayValue(std::string_view name) const {
  for (const std::string& text : overlays) {
    const size_t equals = text.find('=');
    if (equals != text.npos && std::string_view(text).substr(0, equals) == name)
      return text.substr(equals + 1);
  }
  return std::nullopt;
}

bool ParseCell(const std::string& text, Cell* cell, std::string* error) {
  try {
    const json value = json::parse(text);
    cell->id = value.at("id").get<std::string>();
    cell->kernel = value.at("kernel").get<std::string>();
    cell->userland = value.at("userland").get<std::string>();
    cell->release = ParseRelease(value.at("release").get<std::string>());
    cell->trace = value.at("trace").get<std::string>();
    for (const json& device : value.at("devices")) {
      cell->devices.push_back({device.at("driver").get<std::string>(),
                               device.at("name").get<std::string>(),
                               device.at("link").get<std::string>(), device.at("abi").get<int>()});
    }
    cell->overlays = value.at("overlays").get<std::vector<std::string>>();
    TakeModel(value.at("model"), cell);
  } catch (const json::exception& problem) {
    *error = problem.what();
    return false;
  }
  if (cell->devices.empty()) {
    *error = "/devices is empty";
    return false;
  }
  return true;
}

}  // namespace vabi::conformance
