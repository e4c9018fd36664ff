// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_FACTS_ELF_SECTION_H_
#define VABI_HARNESS_FACTS_ELF_SECTION_H_

#include <optional>
#include <string>
#include <string_view>

namespace vabi::facts {

// The content of a section of a 64-bit little-endian ELF image; nothing when it has none, or when
// the image is damaged.
std::optional<std::string_view> ElfSection(std::string_view image, std::string_view name);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_ELF_SECTION_H_
