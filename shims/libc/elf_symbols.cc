// SPDX-License-Identifier: BSD-2-Clause
#include "shims/libc/elf_symbols.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

namespace vabi::libc {
namespace {

// A file in memory; reads outside of it give zeros and empty texts.
class Bytes {
 public:
  explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}

  template <typename T>
  T At(uint64_t offset) const {
    T value{};
    if (offset <= bytes_.size() && sizeof value <= bytes_.size() - offset) {
      std::memcpy(&value, bytes_.data() + offset, sizeof value);
    }
    return value;
  }
  std::string Text(uint64_t offset) const {
    if (offset >= bytes_.size()) return "";
    return bytes_.substr(offset, strnlen(bytes_.data() + offset, bytes_.size() - offset));
  }
  size_t size() const { return bytes_.size(); }

 private:
  std::string bytes_;
};

Elf64_Shdr FindSection(const Bytes& file, uint32_t type) {
  const auto header = file.At<Elf64_Ehdr>(0);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = file.At<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type == type) return section;
  }
  return {};
}

Elf64_Shdr Linked(const Bytes& file, const Elf64_Shdr& section) {
  const auto header = file.At<Elf64_Ehdr>(0);
  return file.At<Elf64_Shdr>(header.e_shoff + section.sh_link * sizeof(Elf64_Shdr));
}

// Version numbers that the file needs from others, to their names.
std::map<uint16_t, std::string> NeededVersions(const Bytes& file) {
  std::map<uint16_t, std::string> names;
  const Elf64_Shdr section = FindSection(file, SHT_GNU_verneed);
  const uint64_t strings = Linked(file, section).sh_offset;
  uint64_t at = section.sh_offset;
  for (unsigned i = 0; i < section.sh_info; ++i) {
    const auto need = file.At<Elf64_Verneed>(at);
    uint64_t aux_at = at + need.vn_aux;
    for (unsigned k = 0; k < need.vn_cnt; ++k) {
      const auto aux = file.At<Elf64_Vernaux>(aux_at);
      names[aux.vna_other] = file.Text(strings + aux.vna_name);
      if (aux.vna_next == 0) break;
      aux_at += aux.vna_next;
    }
    if (need.vn_next == 0) break;
    at += need.vn_next;
  }
  return names;
}

}  // namespace

std::vector<DynamicSymbol> DynamicSymbols(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const Bytes file(std::string(std::istreambuf_iterator<char>(in), {}));
  const auto header = file.At<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) {
    return {};
  }
  const Elf64_Shdr table = FindSection(file, SHT_DYNSYM);
  const Elf64_Shdr versions = FindSection(file, SHT_GNU_versym);
  const uint64_t strings = Linked(file, table).sh_offset;
  const auto needed = NeededVersions(file);
  std::vector<DynamicSymbol> symbols;
  const uint64_t count = std::min<uint64_t>(table.sh_size, file.size()) / sizeof(Elf64_Sym);
  for (uint64_t i = 1; i < count; ++i) {
    const auto symbol = file.At<Elf64_Sym>(table.sh_offset + i * sizeof(Elf64_Sym));
    const auto number = static_cast<uint16_t>(
        file.At<uint16_t>(versions.sh_offset + i * sizeof(uint16_t)) & 0x7fff);
    const auto version = needed.find(number);
    symbols.push_back({file.Text(strings + symbol.st_name),
                       version == needed.end() ? "" : version->second,
                       symbol.st_shndx != SHN_UNDEF});
  }
  return symbols;
}

}  // namespace vabi::libc
