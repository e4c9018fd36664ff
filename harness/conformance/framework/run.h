// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CONFORMANCE_FRAMEWORK_RUN_H_
#define VABI_HARNESS_CONFORMANCE_FRAMEWORK_RUN_H_

#include <string>
#include <vector>

namespace vabi::conformance {

struct Result {
  std::string name;  // "Fallback.EnottyMarksTheWholeContext"
  bool passed = false;
  std::string message;  // of a failed one: every failed expectation, and the trace's end
};

// Runs one test of those that are registered in a process of its own, which ends after `seconds`
// whatever it does. A crash and a hang are failures.
Result RunAlone(const std::string& name, int seconds);

}  // namespace vabi::conformance

#endif  // VABI_HARNESS_CONFORMANCE_FRAMEWORK_RUN_H_
