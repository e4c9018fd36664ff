// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_FACTS_TEMPORARY_H_
#define VABI_HARNESS_FACTS_TEMPORARY_H_

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace vabi::facts {

// A folder that lives as long as this. `path` is empty when none could be made.
struct TemporaryFolder {
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "vabi-facts-XXXXXX").string();
    if (mkdtemp(name.data())) path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path path;
};

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_TEMPORARY_H_
