// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_FACTS_SUBPROCESS_H_
#define VABI_HARNESS_FACTS_SUBPROCESS_H_

#include <string>
#include <vector>

#include "harness/facts/result.h"

namespace vabi::facts {

struct ProcessResult {
  int status = 0;      // exit status, or 128 + signal
  std::string output;  // standard output and standard error
};

// Runs a program found by PATH, without a shell and with no input, for at most two minutes. Error
// only when it could not be started.
Result<ProcessResult> RunProcess(const std::vector<std::string>& arguments);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_SUBPROCESS_H_
