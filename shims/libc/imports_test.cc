// SPDX-License-Identifier: BSD-2-Clause
// Every libc function that the programs of our worlds import is either in the table of wrappers, or
// named in imports.txt with the reason why it cannot reach a fake path or descriptor, or need not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "shims/libc/elf_symbols.h"

namespace vabi::libc {
namespace {

namespace fs = std::filesystem;

std::set<std::string> TableNames() {
  return {
#define VABI_SYM(ret, name, params, version) #name,
#include "shims/libc/symbols.def"
#undef VABI_SYM
  };
}

// imports.txt: "[reason]" and then names, until the next reason. '#' starts a comment.
std::map<std::string, std::string> Classified() {
  std::map<std::string, std::string> reasons;
  std::ifstream in("shims/libc/imports.txt");
  std::string reason;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      reason = line;
      continue;
    }
    std::istringstream words(line);
    for (std::string name; words >> name;) reasons[name] = reason;
  }
  return reasons;
}

// Programs and libraries on this machine that meet the shim: what is not installed is not looked
// at.
std::vector<fs::path> Guests() {
  std::vector<fs::path> guests;
  const std::vector<std::string> starts = {
      "libibverbs.so",    "librdmacm.so",    "libibumad.so", "libibmad.so", "libmlx5.so",
      "libmlx4.so",       "libefa.so",       "libhns.so",    "libmana.so",  "libnl-3.so",
      "libnl-route-3.so", "libibnetdisc.so", "libuct_ib.so", "libucs.so"};
  const auto add = [&](const fs::path& dir, auto wanted) {
    std::error_code error;
    for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
      if (it->is_regular_file(error) && !it->is_symlink() &&
          wanted(it->path().filename().string())) {
        guests.push_back(it->path());
      }
    }
  };
  const auto library = [&](const std::string& name) {
    for (const std::string& start : starts) {
      if (name.compare(0, start.size(), start) == 0) return true;
    }
    return false;
  };
  const auto tool = [](const std::string& name) {
    static const std::set<std::string> kNames = {
        "rping",  "ucmatose", "udaddy", "mckey", "rdma_server", "rdma_client",
        "ibstat", "ibaddr",   "rdma",   "ip",    "ls",          "cat",
        "stat",   "bash",     "dash",   "env",   "timeout"};
    return name.compare(0, 4, "ibv_") == 0 || name.compare(0, 3, "ib_") == 0 ||
           kNames.count(name) != 0;
  };
  const auto any = [](const std::string&) { return true; };
  std::vector<fs::path> roots = {"/"};
  const char* cache = std::getenv("VERBS_ABI_CACHE");
  const char* home = std::getenv("HOME");
  const fs::path userlands =
      fs::path(cache ? cache : std::string(home ? home : "") + "/.cache/verbs-abi") / "userlands";
  std::error_code error;
  for (fs::recursive_directory_iterator it(userlands, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename() == "root") roots.push_back(it->path());
    if (it.depth() >= 2) it.disable_recursion_pending();
  }
  for (const fs::path& root : roots) {
    for (const char* dir : {"usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"}) {
      if (fs::is_symlink(root / "lib") && dir[0] == 'l') continue;
      add(root / dir, library);
      add(root / dir / "libibverbs", any);
    }
    add(root / "usr/bin", tool);
    add(root / "usr/sbin", tool);
  }
  return guests;
}

TEST(Imports, EveryImportOfEveryGuestIsCoveredOrExplained) {
  const auto table = TableNames();
  const auto reasons = Classified();
  ASSERT_GT(reasons.size(), 100U) << "imports.txt cannot be read";
  std::map<std::string, std::string> open;
  size_t looked_at = 0;
  for (const fs::path& guest : Guests()) {
    for (const DynamicSymbol& symbol : DynamicSymbols(guest.string())) {
      if (symbol.defined || symbol.version.compare(0, 6, "GLIBC_") != 0) continue;
      ++looked_at;
      if (!table.count(symbol.name) && !reasons.count(symbol.name))
        open[symbol.name] = guest.string();
    }
  }
  EXPECT_GT(looked_at, 500U) << "no programs found to look at";
  EXPECT_THAT(open, ::testing::IsEmpty())
      << "add a row to symbols.def, or the name to imports.txt under a reason";
}

TEST(Imports, NothingIsExplainedThatIsCovered) {
  const auto table = TableNames();
  for (const auto& [name, reason] : Classified()) {
    EXPECT_EQ(table.count(name), 0U) << name << " is in symbols.def and in imports.txt";
    EXPECT_GT(reason.size(), 10U) << name << " has no reason";
  }
}

}  // namespace
}  // namespace vabi::libc
