// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/cursor.h"

#include <algorithm>
#include <limits>

namespace vabi::facts {

std::string Cursor::Pointer() const {
  if (!parent_) return "";
  return parent_->Pointer() + "/" + (key_ ? std::string(key_) : std::to_string(index_));
}

void Cursor::Fail(const std::string& expected) const {
  std::string pointer = Pointer();
  constexpr size_t kShown = 60;
  std::string found = value_.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (found.size() > kShown) found = found.substr(0, kShown) + "...";
  throw FormatError(where_ + ": at " + (pointer.empty() ? "the top level" : pointer) +
                    ": expected " + expected + ", found " + found);
}

const Json& Cursor::Object() const {
  if (!value_.is_object()) Fail("an object");
  return value_;
}

Cursor Cursor::operator[](const char* key) const {
  auto found = Object().find(key);
  if (found == value_.end()) Fail(std::string("a member \"") + key + "\"");
  return Cursor(*found, this, key, 0);
}

size_t Cursor::Size() const {
  if (!value_.is_array()) Fail("an array");
  return value_.size();
}

Cursor Cursor::At(size_t index) const {
  if (index >= Size()) Fail("at least " + std::to_string(index + 1) + " elements");
  return Cursor(value_[index], this, nullptr, index);
}

std::string Cursor::String() const {
  if (!value_.is_string()) Fail("a string");
  return value_.get<std::string>();
}

uint32_t Cursor::Uint32() const {
  if (!value_.is_number_unsigned() ||
      value_.get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
    Fail("a number from 0 to 2^32-1");
  }
  return value_.get<uint32_t>();
}

int64_t Cursor::Int64() const {
  if (!value_.is_number_integer()) Fail("an integer");
  return IsUnsignedBeyondInt64() ? static_cast<int64_t>(value_.get<uint64_t>())
                                 : value_.get<int64_t>();
}

bool Cursor::IsUnsignedBeyondInt64() const {
  return value_.is_number_unsigned() &&
         value_.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

void Cursor::AllowOnly(std::initializer_list<std::string_view> keys) const {
  for (auto it = Object().begin(); it != value_.end(); ++it) {
    if (std::find(keys.begin(), keys.end(), it.key()) != keys.end()) continue;
    std::string known;
    for (std::string_view key : keys) known += (known.empty() ? "" : ", ") + std::string(key);
    Fail("only the members " + known + " but not \"" + it.key() + "\"");
  }
}

Json ParseJson(std::string_view text, const std::string& where) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    size_t at = std::min<size_t>(error.byte ? error.byte - 1 : 0, text.size());
    std::string_view before = text.substr(0, at);
    size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
    size_t column =
        at - (before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1) + 1;
    throw FormatError(
        where + ":" + std::to_string(line) + ":" + std::to_string(column) +
        ": expected JSON, found " +
        (at >= text.size() ? "the end of the file: it seems to be cut off" : "a syntax error") +
        " (" + error.what() + ")");
  }
}

}  // namespace vabi::facts
