// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/elf_section.h"

#include <elf.h>

#include <cstring>

namespace vabi::facts {
namespace {

template <typename T>
bool Read(std::string_view image, uint64_t offset, T& out) {
  if (offset > image.size() || image.size() - offset < sizeof out) return false;
  std::memcpy(&out, image.data() + offset, sizeof out);
  return true;
}

std::string_view Part(std::string_view image, uint64_t offset, uint64_t size) {
  if (offset > image.size() || image.size() - offset < size) return {};
  return image.substr(offset, size);
}

}  // namespace

std::optional<std::string_view> ElfSection(std::string_view image, std::string_view name) {
  Elf64_Ehdr header;
  if (!Read(image, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr))
    return std::nullopt;
  auto at = [&](uint64_t index) { return header.e_shoff + index * sizeof(Elf64_Shdr); };
  Elf64_Shdr names, section;
  if (!Read(image, at(header.e_shstrndx), names)) return std::nullopt;
  std::string_view strings = Part(image, names.sh_offset, names.sh_size);
  for (uint64_t i = 0; i < header.e_shnum && Read(image, at(i), section); ++i) {
    if (section.sh_name >= strings.size()) continue;
    std::string_view called = strings.substr(section.sh_name);
    if (called.substr(0, called.find('\0')) == name)
      return Part(image, section.sh_offset, section.sh_size);
  }
  return std::nullopt;
}

}  // namespace vabi::facts
