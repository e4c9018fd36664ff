// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_FACTS_RESULT_H_
#define VABI_HARNESS_FACTS_RESULT_H_

#include <optional>
#include <string>
#include <utility>

namespace vabi::facts {

// A sentence for a person: what is wrong, where, and what was expected.
struct Error {
  std::string message;
};

// A value, or the reason why there is none.
template <typename T>
class Result {
 public:
  Result(T value) : value_(std::move(value)) {}              // NOLINT: implicit by intent
  Result(Error error) : error_(std::move(error.message)) {}  // NOLINT: implicit by intent

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  // Empty when ok().
  const std::string& error() const { return error_; }

  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  std::string error_;
};

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_RESULT_H_
