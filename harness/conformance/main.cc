// SPDX-License-Identifier: BSD-2-Clause
//
// The conformance suites, built against a userland's own headers and run inside a cell
// (VERBS_ABI_CELL names the file with its facts, see framework/cell.h). Each test that holds runs
// in a process of its own.
//
//   conformance [PATTERN…]         runs them; one JSON object a line: {"test": …, "result": …,
//   "message": …} conformance --list             which hold, one a line conformance --why which do
//   not, and what the cell lacks conformance --alone NAME       one of them in this very process,
//   for a debugger
//
// Exit 0: all passed, 1: one failed, 2: no cell or no such test.

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/conformance/framework/abi_test.h"
#include "harness/conformance/framework/run.h"

namespace {

using namespace vabi::conformance;

constexpr int kSeconds = 10;  // of one test; the healthy ones take milliseconds

bool LoadCell() {
  const char* path = std::getenv("VERBS_ABI_CELL");
  if (path == nullptr) {
    std::fprintf(stderr, "conformance: VERBS_ABI_CELL is not set: run it with verbs-abi\n");
    return false;
  }
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Cell cell;
  std::string error;
  if (!ParseCell(text, &cell, &error)) {
    std::fprintf(stderr, "conformance: %s: %s\n", path, error.c_str());
    return false;
  }
  SetCell(std::move(cell));
  return true;
}

std::vector<std::string> AllTests() {
  std::vector<std::string> names;
  const auto& unit = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < unit.total_test_suite_count(); ++i) {
    const auto& suite = *unit.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      names.push_back(std::string(suite.name()) + "." + suite.GetTestInfo(j)->name());
    }
  }
  return names;
}

bool Picked(const std::string& name, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return true;
  for (const std::string& pattern : patterns) {
    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
  }
  return false;
}

int Run(const std::vector<std::string>& names) {
  int failed = 0;
  for (const std::string& name : names) {
    const Result result = RunAlone(name, kSeconds);
    nlohmann::json row = {{"test", name}, {"result", result.passed ? "passed" : "failed"}};
    if (!result.passed) row["message"] = result.message;
    std::printf("%s\n", row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    std::fflush(stdout);
    failed += result.passed ? 0 : 1;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  if (!LoadCell()) return 2;
  const std::string mode = argc > 1 && argv[1][0] == '-' ? argv[1] : "";
  std::vector<std::string> patterns(argv + (mode.empty() ? 1 : 2), argv + argc);
  std::vector<std::string> names;
  for (const std::string& name : AllTests()) {
    const Needs* needs = Declared(name);
    std::string why = "a declaration";
    const bool holds = needs != nullptr && Hold(*needs, cell(), &why);
    if (mode == "--why" && !holds) std::printf("%s needs %s\n", name.c_str(), why.c_str());
    if (holds && Picked(name, patterns)) names.push_back(name);
  }
  if (mode == "--why") return 0;
  if (names.empty() && !patterns.empty()) {
    std::fprintf(stderr,
                 "conformance: no test of that name holds in %s (--why tells what it lacks)\n",
                 cell().id.c_str());
    return 2;
  }
  if (mode == "--list") {
    for (const std::string& name : names) std::printf("%s\n", name.c_str());
    return 0;
  }
  if (mode == "--alone") {
    if (names.size() != 1) {
      std::fprintf(stderr, "conformance: --alone wants one test that holds here; %zu do\n",
                   names.size());
      return 2;
    }
    StartTrace();
    ::testing::GTEST_FLAG(filter) = names[0];
    return RUN_ALL_TESTS();
  }
  if (!mode.empty()) {
    std::fprintf(stderr, "conformance: unknown option %s\n", mode.c_str());
    return 2;
  }
  return Run(names);
}
