// SPDX-License-Identifier: BSD-2-Clause
#include "harness/trace/reader.h"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace vabi::traces {
namespace {

using nlohmann::json;

std::string Words(const json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int Number(const json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number_integer() ? found->get<int>() : -1;
}

}  // namespace

bool Parse(const std::string& line, Command* command) {
  const json value = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object() || !value.contains("via")) return false;
  command->via = Words(value, "via");
  command->device = Words(value, "device");
  command->name = Words(value, "name");
  command->inner = Words(value, "inner");
  command->object = Number(value, "object");
  command->method = Number(value, "method");
  command->command = Number(value, "command");
  command->core_in = Number(value, "core_in");
  command->core_out = Number(value, "core_out");
  command->uhw_in = Number(value, "uhw_in");
  command->uhw_out = Number(value, "uhw_out");
  const std::string flags = Words(value, "flags");
  if (!flags.empty()) command->flags = std::strtoull(flags.c_str(), nullptr, 16);
  for (const json& row : value.value("attrs", json::array())) {
    Attribute attribute{row.value("id", 0u), row.value("len", 0u), row.value("flags", 0u),
                        std::nullopt};
    if (row.contains("value")) attribute.value = row["value"].get<uint64_t>();
    command->attributes.push_back(attribute);
  }
  command->result = value.value("result", 0L);
  command->error = Words(value, "errno");
  command->rule = Words(value, "rule");
  command->fault = Words(value, "fault");
  command->unmodelled = Words(value, "unmodelled");
  command->pid = value.value("pid", 0L);
  return true;
}

Reader::Reader(std::string path, long pid) : path_(std::move(path)), pid_(pid) {}

void Reader::SkipToEnd() {
  std::ifstream file(path_, std::ios::binary | std::ios::ate);
  offset_ = file ? static_cast<long>(file.tellg()) : 0;
}

std::vector<Command> Reader::Next() {
  std::vector<Command> found;
  std::ifstream file(path_, std::ios::binary);
  if (!file) return found;
  file.seekg(offset_);
  for (std::string line; std::getline(file, line);) {
    if (file.eof()) break;  // no newline yet
    offset_ += static_cast<long>(line.size()) + 1;
    Command command;
    if (!Parse(line, &command)) continue;
    if (pid_ != 0 && command.pid != pid_) continue;
    found.push_back(std::move(command));
  }
  return found;
}

}  // namespace vabi::traces
