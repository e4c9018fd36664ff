// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/abi_test.h"

#include <unistd.h>

#include <map>
#include <utility>

namespace vabi::conformance {
namespace {

// Filled before main(), by the tests' own files in any order.
std::map<std::string, Needs>& Registry() {
  static std::map<std::string, Needs> registry;
  return registry;
}

Cell the_cell;
std::unique_ptr<Trace> the_trace;

}  // namespace

const Cell& cell() { return the_cell; }
Trace& trace() { return *the_trace; }

bool Declare(const char* suite, const char* name, Needs needs) {
  Registry()[std::string(suite) + "." + name] = std::move(needs);
  return true;
}

const Needs* Declared(const std::string& name) {
  const auto found = Registry().find(name);
  return found == Registry().end() ? nullptr : &found->second;
}

void SetCell(Cell cell) { the_cell = std::move(cell); }

void StartTrace() {
  traces::Reader reader(the_cell.trace, getpid());
  reader.SkipToEnd();
  the_trace = std::make_unique<Trace>(std::move(reader));
}

}  // namespace vabi::conformance
