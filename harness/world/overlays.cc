// SPDX-License-Identifier: BSD-2-Clause
#include "harness/world/overlays.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

#include "harness/world/json_file.h"

namespace vabi {
namespace {

using facts::Error;
using facts::Result;
using nlohmann::json;
namespace fs = std::filesystem;

void ReplaceAll(std::string* text, const std::string& from, const std::string& to) {
  for (size_t at = text->find(from); at != std::string::npos;
       at = text->find(from, at + to.size())) {
    text->replace(at, from.size(), to);
  }
}

// The change with its variables filled in, for one device (or none).
json FillIn(const json& change, const OverlaySpec& overlay, const DeviceImage* device) {
  json filled = change;
  for (auto& [key, value] : filled.items()) {
    if (!value.is_string()) continue;
    std::string text = value.get<std::string>();
    ReplaceAll(&text, "$VALUE", overlay.value);
    ReplaceAll(&text, "$STEP", overlay.step);
    if (device != nullptr) {
      ReplaceAll(&text, "$DEVICE", device->name);
      ReplaceAll(&text, "$UVERBS", std::to_string(device->uverbs));
    }
    value = text;
  }
  return filled;
}

Result<int64_t> Value(const json& change) {
  if (change.contains("value")) {
    const json& value = change["value"];
    if (value.is_number_integer()) return value.get<int64_t>();
    if (value.is_boolean()) return static_cast<int64_t>(value.get<bool>());
    if (value.is_string()) {
      const std::string text = value.get<std::string>();
      char* end = nullptr;
      errno = 0;
      const long long number = std::strtoll(text.c_str(), &end, 0);
      if (text.empty() || *end != '\0') {
        return Error{"needs a whole number, not \"" + text + "\""};
      }
      // What they are set in has 32 bits at most, with or without a sign.
      if (errno != 0 || number < INT32_MIN || number > UINT32_MAX) {
        return Error{"needs a number of 32 bits, not \"" + text + "\""};
      }
      return static_cast<int64_t>(number);
    }
  }
  return Error{"needs \"value\": a whole number"};
}

// Names that a {"node": NAME, "value": N} and its like can set.
template <typename Target>
using Setters = std::map<std::string, void (*)(Target&, int64_t)>;

template <typename Target>
Result<bool> Set(const Setters<Target>& setters, const json& change, const char* key,
                 Target& target) {
  const std::string name = change[key].get<std::string>();
  const auto setter = setters.find(name);
  if (setter == setters.end()) {
    std::vector<std::string> names;
    for (const auto& [known, unused] : setters) names.push_back(known);
    return Error{std::string("unknown ") + key + " \"" + name + "\"" + Nearest(name, names)};
  }
  auto value = Value(change);
  if (!value) return Error{value.error()};
  if (name == "mode" && change["value"].is_string()) {
    const std::string text = change["value"].get<std::string>();
    if (text[0] != '0' || *value < 0 || *value > 07777) {
      return Error{"needs permission bits with a leading 0, such as 0600, not \"" + text + "\""};
    }
  }
  if (name == "memlock" && *value < 0) {
    return Error{"needs a number of KiB, as ulimit -l counts them, not \"" +
                 std::to_string(*value) + "\""};
  }
  setter->second(target, *value);
  return true;
}

const Setters<DeviceImage> kDeviceSetters = {
    {"abi_version", [](DeviceImage& d, int64_t v) { d.abi_version = static_cast<uint32_t>(v); }},
    {"hidden_from_netlink",
     [](DeviceImage& d, int64_t v) { d.hidden_from_netlink = v != 0 ? 1 : 0; }},
    {"driver_id", [](DeviceImage& d, int64_t v) { d.driver_id = static_cast<uint32_t>(v); }},
    {"node_type", [](DeviceImage& d, int64_t v) { d.node_type = static_cast<uint8_t>(v); }},
};
const Setters<NodeView> kNodeSetters = {
    {"present", [](NodeView& n, int64_t v) { n.present = v != 0; }},
    {"kind", [](NodeView& n, int64_t v) { n.kind = static_cast<uint8_t>(v); }},
    {"mode", [](NodeView& n, int64_t v) { n.mode = static_cast<uint32_t>(v); }},
    {"uid", [](NodeView& n, int64_t v) { n.uid = static_cast<uint32_t>(v); }},
    {"gid", [](NodeView& n, int64_t v) { n.gid = static_cast<uint32_t>(v); }},
    {"major", [](NodeView& n, int64_t v) { n.major = static_cast<uint32_t>(v); }},
    {"minor", [](NodeView& n, int64_t v) { n.minor = static_cast<uint32_t>(v); }},
};
const Setters<WorldImage> kViewSetters = {
    {"uid", [](WorldImage& w, int64_t v) { w.uid = static_cast<uint32_t>(v); }},
    {"gid", [](WorldImage& w, int64_t v) { w.gid = static_cast<uint32_t>(v); }},
    {"check_permissions", [](WorldImage& w, int64_t v) { w.check_permissions = v != 0; }},
    {"virtual_time", [](WorldImage& w, int64_t v) { w.virtual_time = v != 0; }},
    {"memlock",
     [](WorldImage& w, int64_t v) {
       w.memlock_stated = 1;
       w.memlock_kib = static_cast<uint32_t>(v);
     }},
};
const Setters<PortImage> kPortSetters = {
    {"state", [](PortImage& p, int64_t v) { p.state = static_cast<uint8_t>(v); }},
    {"phys_state", [](PortImage& p, int64_t v) { p.phys_state = static_cast<uint8_t>(v); }},
    {"gid_count", [](PortImage& p, int64_t v) { p.gid_count = static_cast<uint8_t>(v); }},
    {"lid", [](PortImage& p, int64_t v) { p.lid = static_cast<uint16_t>(v); }},
    {"max_msg_size", [](PortImage& p, int64_t v) { p.max_msg_size = static_cast<uint32_t>(v); }},
};

// A step that no command is called would never come. What is not in these tables has a form of its
// own: "open", "mmap:KIND", "netlink:NAME", "command 77", "object 3 method 9".
Result<bool> CheckStep(const std::string& step) {
  if (step.find_first_of(": ") != std::string::npos) return true;
  std::vector<std::string> names = {"open"};
  for (size_t i = 0; i < MethodRows().size(); ++i) names.emplace_back(MethodRows()[i].name);
  for (size_t i = 0; i < WriteNames().size(); ++i) names.emplace_back(WriteNames()[i]);
  for (size_t i = 0; i < WriteExNames().size(); ++i) names.emplace_back(WriteExNames()[i]);
  if (std::find(names.begin(), names.end(), step) != names.end()) return true;
  return Error{"unknown step \"" + step + "\"" + Nearest(step, names)};
}

Result<bool> AddFault(const json& change, WorldImage* image) {
  const std::string step = change["fault"].get<std::string>();
  if (step.empty()) return Error{"needs a step, as the trace names it: errno@CREATE_CQ=ENOMEM"};
  auto known = CheckStep(step);
  if (!known) return known;
  if (image->fault_count == std::size(image->fault)) return Error{"too many faults in one world"};
  const auto error = ErrnoByName(change.value("errno", ""));
  if (!error) return Error{"unknown errno \"" + change.value("errno", "") + "\""};
  Fault& fault = image->fault[image->fault_count++];
  if (step.size() >= sizeof fault.step) return Error{"step \"" + step + "\" is too long"};
  std::memcpy(fault.step, step.c_str(), step.size() + 1);
  fault.error = *error;
  fault.after = change.value("after", 0U);
  fault.count = change.value("count", 0U);
  return true;
}

// "2s", "500ms", "100cmds", with or without "after:".
bool ReadMoment(std::string text, ScriptStep* step) {
  if (text.rfind("after:", 0) == 0) text.erase(0, 6);
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text.c_str(), &end, 10);
  if (end == text.c_str()) return false;
  const std::string unit = end;
  if (unit == "cmds" && number > 0 && number <= UINT32_MAX) {
    step->after_calls = static_cast<uint32_t>(number);
  } else if (unit == "ms" && number < 1'000'000) {
    step->after_ns = number * 1'000'000;
  } else if (unit == "s" && number < 1'000) {
    step->after_ns = number * 1'000'000'000;
  } else {
    return false;
  }
  return true;
}

// enum ib_event_type, as far as they are a port's
struct EventRow {
  const char* name;
  uint32_t number;
};
constexpr EventRow kPortEvents[] = {
    {"PORT_ACTIVE", 9}, {"PORT_ERR", 10},          {"LID_CHANGE", 11}, {"PKEY_CHANGE", 12},
    {"SM_CHANGE", 13},  {"CLIENT_REREGISTER", 17}, {"GID_CHANGE", 18}};

Result<bool> AddStep(const json& change, WorldImage* image) {
  ScriptStep step = {};
  std::string when;
  if (change.contains("unplug")) {
    step.kind = ScriptStep::kUnplug;
    when = change["unplug"].get<std::string>();
  } else {
    const std::string text = change["event"].get<std::string>();
    const size_t at = text.find('@');
    const std::string name = text.substr(0, at);
    if (at != std::string::npos) when = text.substr(at + 1);
    std::vector<std::string> names = {"DEVICE_FATAL"};
    for (const EventRow& row : kPortEvents) {
      names.push_back(row.name);
      if (name == row.name) step.event = row.number;
    }
    if (step.event == 0 && name != "DEVICE_FATAL") {
      return Error{"unknown event \"" + name + "\"" + Nearest(name, names)};
    }
    step.kind = step.event != 0 ? ScriptStep::kPortEvent : ScriptStep::kDeviceFatal;
  }
  if (!ReadMoment(when, &step)) {
    return Error{"needs a moment, such as 2s, 500ms or 100cmds, not \"" + when + "\""};
  }
  for (uint32_t i = 0; i < image->device_count; ++i) {
    if (image->script_count == std::size(image->script))
      return Error{"too many events in one world"};
    step.device = static_cast<int32_t>(i);
    image->script[image->script_count++] = step;
  }
  return true;
}

Result<bool> AddEdit(const json& change, CompiledWorld* world) {
  SysfsEdit edit;
  edit.path = "/sys/" + change["sysfs"].get<std::string>();
  if (change.contains("content")) {
    edit.content = change["content"].get<std::string>();
  } else if (change.value("absent", false)) {
    edit.absent = true;
  } else if (const auto error = ErrnoByName(change.value("errno", "")); error) {
    edit.read_errno = *error;
  } else {
    return Error{"a sysfs change needs \"content\", \"absent\": true, or \"errno\""};
  }
  world->sysfs_edits.push_back(std::move(edit));
  return true;
}

// Changes that are about one device.
Result<bool> ApplyToDevice(const json& change, uint32_t number, CompiledWorld* world) {
  WorldImage& image = *world->image;
  if (change.contains("device")) return Set(kDeviceSetters, change, "device", image.device[number]);
  if (change.contains("port"))
    return Set(kPortSetters, change, "port", image.device[number].ports[0]);
  if (change.contains("node")) {
    for (uint32_t i = 0; i < image.node_count; ++i) {
      if (image.node[i].device != static_cast<int32_t>(number)) continue;
      auto set = Set(kNodeSetters, change, "node", image.node[i]);
      if (!set) return set;
    }
    return true;
  }
  return AddEdit(change, world);
}

bool IsAboutDevices(const json& change) {
  if (change.contains("device") || change.contains("port") || change.contains("node")) return true;
  if (!change.contains("sysfs")) return false;
  const std::string path = change["sysfs"].get<std::string>();
  return path.find("$DEVICE") != std::string::npos || path.find("$UVERBS") != std::string::npos;
}

Result<bool> ApplyChange(const json& change, const OverlaySpec& overlay, CompiledWorld* world,
                         DriverPresence* drivers) {
  if (IsAboutDevices(change)) {
    bool found = false;
    for (uint32_t i = 0; i < world->image->device_count; ++i) {
      const DeviceImage& device = world->image->device[i];
      if (!overlay.step.empty() && overlay.step != device.name) continue;
      found = true;
      auto applied = ApplyToDevice(FillIn(change, overlay, &device), i, world);
      if (!applied) return applied;
    }
    if (!found && !overlay.step.empty()) {
      return Error{"there is no device \"" + overlay.step + "\" in this world"};
    }
    return true;
  }
  const json filled = FillIn(change, overlay, nullptr);
  if (filled.contains("event") || filled.contains("unplug"))
    return AddStep(filled, world->image.get());
  if (filled.contains("fault")) return AddFault(filled, world->image.get());
  if (filled.contains("sysfs")) return AddEdit(filled, world);
  if (filled.contains("userland")) {
    world->userland_edits.push_back(overlay.text);
    return true;
  }
  if (filled.contains("view")) return Set(kViewSetters, filled, "view", *world->image);
  auto applied = ApplyModelChange(filled, world->image.get(), drivers);
  if (applied && !*applied) return Error{"names nothing that an overlay can change"};
  return applied;
}

}  // namespace

Result<bool> ApplyOverlay(const fs::path& root, const OverlaySpec& overlay, CompiledWorld* world,
                          DriverPresence* drivers) {
  const fs::path dir = root / "matrix" / "overlays";
  const fs::path path = dir / (overlay.name + ".json");
  if (!fs::exists(path)) {
    return Error{"unknown overlay \"" + overlay.name + "\"" +
                 Nearest(overlay.name, JsonNames(dir))};
  }
  auto file = ReadJsonFile(path);
  if (!file) return Error{file.error()};
  const bool takes_value = file->contains("value");
  if (takes_value != overlay.has_value || (takes_value && overlay.value.empty())) {
    return Error{"overlay " + overlay.text +
                 (takes_value ? ": needs a value: " : ": takes no value") +
                 (takes_value ? (*file)["value"].get<std::string>() : "")};
  }

  json changes = file->value("changes", json::array());
  std::string pointer = "/changes/";
  if (const json values = file->value("values", json::object()); values.contains(overlay.value)) {
    changes = values[overlay.value];
    pointer = "/values/" + overlay.value + "/";
  }
  for (size_t i = 0; i < changes.size(); ++i) {
    try {
      auto applied = ApplyChange(changes[i], overlay, world, drivers);
      if (!applied) {
        // Is the file at fault, or the value or step that somebody wrote?
        if (overlay.step.empty() && changes[i].dump().find('$') == std::string::npos) {
          return At(path, pointer + std::to_string(i), applied.error());
        }
        return Error{"overlay " + overlay.text + ": " + applied.error()};
      }
    } catch (const json::exception& error) {
      return At(path, pointer + std::to_string(i), error.what());
    }
  }
  return true;
}

}  // namespace vabi
