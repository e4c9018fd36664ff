// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_FACTS_ASSERTIONS_H_
#define VABI_HARNESS_FACTS_ASSERTIONS_H_

#include <string>

#include "harness/facts/snapshot.h"

namespace vabi::facts {

// A C program that includes one header and asserts each fact about it: size and alignment of every
// struct, offset and size of every member at any depth, value of every enumerator and macro. What
// the compiler says about it is a judgement of facts that no part of this library has made.
std::string WriteAssertions(const Header& header, Arch arch);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_ASSERTIONS_H_
