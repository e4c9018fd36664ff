// SPDX-License-Identifier: BSD-2-Clause
// The finished library as a guest: what it asks of the C library that it meets, and what it shows
// of itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>

#include "shims/libc/elf_symbols.h"

namespace vabi::libc {
namespace {

// {2, 17} of "GLIBC_2.17"; {0, 0} of anything else.
std::pair<int, int> Version(const std::string& text) {
  int major = 0, minor = 0;
  std::sscanf(text.c_str(), "GLIBC_%d.%d", &major, &minor);
  return {major, minor};
}

std::set<std::string> TableNames() {
  return {
#define VABI_SYM(ret, name, ...) #name,
#include VABI_SYMBOLS
#undef VABI_SYM
  };
}

TEST(AbiFloor, NothingIsAskedOfCLibrariesNewerThan217) {
  std::set<std::string> newer;
  size_t imported = 0;
  for (const DynamicSymbol& symbol : DynamicSymbols(VABI_SHIM)) {
    if (symbol.defined || symbol.version.empty()) continue;
    ++imported;
    if (Version(symbol.version) > std::pair(2, 17))
      newer.insert(symbol.name + "@" + symbol.version);
  }
  EXPECT_GT(imported, 25U) << "the reader of the library sees nothing";
  EXPECT_THAT(newer, ::testing::IsEmpty()) << "bind it to its old version in compat.cc";
}

// This program is linked against the C library of today, whose start-up code is newer than that.
TEST(AbiFloor, NewerSymbolsAreSeenWhereTheyAre) {
  bool newer = false;
  for (const DynamicSymbol& symbol : DynamicSymbols("/proc/self/exe")) {
    newer = newer || (!symbol.defined && Version(symbol.version) > std::pair(2, 17));
  }
  EXPECT_TRUE(newer);
}

TEST(AbiFloor, ExactlyTheTableIsExported) {
  std::set<std::string> exported;
  for (const DynamicSymbol& symbol : DynamicSymbols(VABI_SHIM)) {
    if (symbol.defined) exported.insert(symbol.name);
  }
  EXPECT_EQ(exported, TableNames());
}

TEST(AbiFloor, NoOtherLibraryIsNeededThanThoseOfGlibc) {
  for (const DynamicSymbol& symbol : DynamicSymbols(VABI_SHIM)) {
    if (symbol.defined) continue;
    EXPECT_THAT(symbol.version, ::testing::AnyOf("", ::testing::StartsWith("GLIBC_")))
        << symbol.name;
  }
}

}  // namespace
}  // namespace vabi::libc
