// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_LIBC_ELF_SYMBOLS_H_
#define VABI_SHIMS_LIBC_ELF_SYMBOLS_H_

#include <string>
#include <vector>

namespace vabi::libc {

// One row of a shared object's or program's dynamic symbol table.
struct DynamicSymbol {
  std::string name;
  std::string version;  // "GLIBC_2.2.5"; empty: none
  bool defined;         // by this file; else it imports it
};

// Empty when the file is no 64-bit ELF file with a dynamic symbol table.
std::vector<DynamicSymbol> DynamicSymbols(const std::string& path);

}  // namespace vabi::libc

#endif  // VABI_SHIMS_LIBC_ELF_SYMBOLS_H_
