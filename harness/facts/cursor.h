// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_FACTS_CURSOR_H_
#define VABI_HARNESS_FACTS_CURSOR_H_

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace vabi::facts {

using Json = nlohmann::ordered_json;

// Thrown by Cursor, caught by the functions of json.h: the message is a whole sentence.
struct FormatError : std::exception {
  explicit FormatError(std::string text) : message(std::move(text)) {}
  const char* what() const noexcept override { return message.c_str(); }
  std::string message;
};

// A place in a JSON document that knows its way from the root, so that errors can name it as a JSON
// pointer. Lives on the stack while the document is walked; costs nothing until something is wrong.
class Cursor {
 public:
  Cursor(const Json& value, const std::string& where) : value_(value), where_(where) {}

  [[noreturn]] void Fail(const std::string& expected) const;

  // The members and elements of this value. Fail() where the kind is another.
  bool Has(const char* key) const { return Object().contains(key); }
  Cursor operator[](const char* key) const;
  Cursor At(size_t index) const;
  size_t Size() const;  // of an array

  std::string String() const;
  uint32_t Uint32() const;
  // Also takes values up to 2^64-1, as their bit pattern.
  int64_t Int64() const;
  bool IsNull() const { return value_.is_null(); }
  bool IsUnsignedBeyondInt64() const;

  // Fails at the first member that is not in the list.
  void AllowOnly(std::initializer_list<std::string_view> keys) const;

  const Json& json() const { return value_; }

 private:
  Cursor(const Json& value, const Cursor* parent, const char* key, size_t index)
      : value_(value), where_(parent->where_), parent_(parent), key_(key), index_(index) {}
  const Json& Object() const;
  std::string Pointer() const;

  const Json& value_;
  const std::string& where_;
  const Cursor* parent_ = nullptr;
  const char* key_ = nullptr;  // null for an array element
  size_t index_ = 0;
};

// Parses `text`; FormatError with line and column on bad syntax.
Json ParseJson(std::string_view text, const std::string& where);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_CURSOR_H_
