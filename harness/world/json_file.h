// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_WORLD_JSON_FILE_H_
#define VABI_HARNESS_WORLD_JSON_FILE_H_

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/facts/result.h"

namespace vabi {

// The JSON object in a file of matrix/. The error names the file, and the line of a syntax error.
inline facts::Result<nlohmann::json> ReadJsonFile(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) return facts::Error{path.string() + ": cannot be read"};
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  try {
    nlohmann::json value = nlohmann::json::parse(text);
    if (!value.is_object()) return facts::Error{path.string() + ": must hold one JSON object"};
    return value;
  } catch (const nlohmann::json::parse_error& error) {
    const size_t end = std::min(text.size(), error.byte == 0 ? 0 : error.byte - 1);
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(end), '\n');
    return facts::Error{path.string() + ":" + std::to_string(line) +
                        ": not valid JSON: " + error.what()};
  }
}

// "file: /pointer: what", as every error about a matrix file reads.
inline facts::Error At(const std::filesystem::path& file, const std::string& pointer,
                       const std::string& what) {
  return facts::Error{file.string() + ": " + pointer + ": " + what};
}

// Names of the files DIR/*.json, without the ending, sorted.
inline std::vector<std::string> JsonNames(const std::filesystem::path& dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace vabi

#endif  // VABI_HARNESS_WORLD_JSON_FILE_H_
