// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CONFORMANCE_FRAMEWORK_ERRORS_H_
#define VABI_HARNESS_CONFORMANCE_FRAMEWORK_ERRORS_H_

#include <gmock/gmock.h>

#include <cerrno>
#include <cstring>
#include <ostream>
#include <string>

// Errnos by name: an Error prints as "EINVAL", and is what calls of the framework return.

namespace vabi::conformance {

inline std::string ErrorName(int error) {
  const char* name = error == 0 ? "success" : strerrorname_np(error);
  return name != nullptr ? name : "errno " + std::to_string(error);
}

// The answer of a call: 0, or an errno.
struct Error {
  int value = 0;
  bool ok() const { return value == 0; }
  bool operator==(const Error&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Error& error) {
  return out << ErrorName(error.value);
}

// verbs answer with the errno itself, with -1 and errno, or with its negative: one form for all.
inline Error FromVerb(int result) {
  if (result == 0) return {0};
  if (result == -1) return {errno};
  return {result < 0 ? -result : result};
}

MATCHER(Succeeds, "") { return arg.ok(); }
MATCHER_P(FailsWith, error,
          std::string(negation ? "does not fail" : "fails") + " with " + ErrorName(error)) {
  return arg.value == error;
}

}  // namespace vabi::conformance

#endif  // VABI_HARNESS_CONFORMANCE_FRAMEWORK_ERRORS_H_
