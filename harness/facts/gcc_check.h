// SPDX-License-Identifier: BSD-2-Clause
//
// For tests: lets gcc judge a C text.
#ifndef VABI_HARNESS_FACTS_GCC_CHECK_H_
#define VABI_HARNESS_FACTS_GCC_CHECK_H_

#include <string>
#include <vector>

#include "harness/facts/model.h"

namespace vabi::facts {

// The errors that gcc finds in `text`, one a line without file name; empty when it compiles.
// `include` is searched before the machine's own headers, unless it is empty.
std::vector<std::string> GccErrors(const std::string& text, Arch arch, const std::string& include);

// Upstream version of an installed Debian package ("6.1.192" of "6.1.192-3"); empty when it is not
// installed.
std::string PackageVersion(const std::string& package);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_GCC_CHECK_H_
