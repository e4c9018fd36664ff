// SPDX-License-Identifier: BSD-2-Clause
#include "harness/world/model_changes.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace vabi {
namespace {

using facts::Error;
using facts::Result;
using nlohmann::json;

// Every errno that a uverbs path of any kernel answers, or an overlay may ask for.
struct ErrnoName {
  const char* name;
  int value;
};
constexpr ErrnoName kErrnoNames[] = {
    {"EPERM", EPERM},
    {"ENOENT", ENOENT},
    {"EINTR", EINTR},
    {"EIO", EIO},
    {"ENXIO", ENXIO},
    {"E2BIG", E2BIG},
    {"EBADF", EBADF},
    {"EAGAIN", EAGAIN},
    {"ENOMEM", ENOMEM},
    {"EACCES", EACCES},
    {"EFAULT", EFAULT},
    {"EBUSY", EBUSY},
    {"EEXIST", EEXIST},
    {"ENODEV", ENODEV},
    {"ENOTDIR", ENOTDIR},
    {"EINVAL", EINVAL},
    {"ENFILE", ENFILE},
    {"EMFILE", EMFILE},
    {"ENOTTY", ENOTTY},
    {"EFBIG", EFBIG},
    {"ENOSPC", ENOSPC},
    {"ESPIPE", ESPIPE},
    {"EROFS", EROFS},
    {"EPIPE", EPIPE},
    {"EDOM", EDOM},
    {"ERANGE", ERANGE},
    {"ENOSYS", ENOSYS},
    {"ENODATA", ENODATA},
    {"ETIME", ETIME},
    {"EPROTO", EPROTO},
    {"ENOTSUPP", 524},  // the kernel's own, of which the C library knows nothing
    {"EBADMSG", EBADMSG},
    {"EOVERFLOW", EOVERFLOW},
    {"EMSGSIZE", EMSGSIZE},
    {"EPROTONOSUPPORT", EPROTONOSUPPORT},
    {"EOPNOTSUPP", EOPNOTSUPP},
    {"EADDRINUSE", EADDRINUSE},
    {"EADDRNOTAVAIL", EADDRNOTAVAIL},
    {"ENETDOWN", ENETDOWN},
    {"ENETUNREACH", ENETUNREACH},
    {"ECONNRESET", ECONNRESET},
    {"ENOBUFS", ENOBUFS},
    {"EISCONN", EISCONN},
    {"ENOTCONN", ENOTCONN},
    {"ETIMEDOUT", ETIMEDOUT},
    {"ECONNREFUSED", ECONNREFUSED},
    {"EHOSTUNREACH", EHOSTUNREACH},
    {"EALREADY", EALREADY},
    {"EINPROGRESS", EINPROGRESS},
    {"EREMOTEIO", EREMOTEIO},
    {"ECANCELED", ECANCELED},
    {"EXFULL", EXFULL},
};

template <typename Names>
std::vector<std::string> NamesOf(const Names& names) {
  std::vector<std::string> all;
  for (size_t i = 0; i < names.size(); ++i) all.emplace_back(names[i]);
  return all;
}

template <typename Rows>
std::vector<std::string> RowNames(const Rows& rows) {
  std::vector<std::string> names;
  for (size_t i = 0; i < rows.size(); ++i) names.emplace_back(rows[i].name);
  return names;
}

std::vector<std::string> FieldNames() {
  std::vector<std::string> names;
  for (size_t i = 0; i < FieldRows().size(); ++i) {
    names.push_back(std::string(FieldRows()[i].structure_name) + "." + FieldRows()[i].path);
  }
  return names;
}

Result<size_t> Find(const char* what, const std::string& name,
                    const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
  }
  return Error{std::string("unknown ") + what + " \"" + name + "\"" + Nearest(name, names)};
}

// The boolean `key` of a change; it must be there.
Result<bool> Flag(const json& change, const char* key) {
  if (!change.contains(key) || !change[key].is_boolean()) {
    return Error{std::string("needs \"") + key + "\": true or false"};
  }
  return change[key].get<bool>();
}

Result<int64_t> Number(const json& change, const char* key) {
  if (change.contains(key)) {
    const json& value = change[key];
    if (value.is_number_integer()) return value.get<int64_t>();
    // Overlays fill in text: "$VALUE".
    if (value.is_string()) {
      const std::string text = value.get<std::string>();
      char* end = nullptr;
      errno = 0;
      const long long number = std::strtoll(text.c_str(), &end, 0);
      if (!text.empty() && *end == '\0' && errno == 0) return static_cast<int64_t>(number);
      return Error{std::string("\"") + key + "\" must be a whole number, not \"" + text + "\""};
    }
  }
  return Error{std::string("needs \"") + key + "\": a whole number"};
}

Result<bool> ApplyRule(const json& change, WorldImage* image) {
  auto index = Find("rule", change["rule"].get<std::string>(), RowNames(RuleRows()));
  if (!index) return Error{index.error()};
  RuleEntry& entry = image->rule[*index];
  if (!change.contains("on") && !change.contains("errno") && !change.contains("known_by")) {
    return Error{"a rule needs \"on\", \"errno\" or \"known_by\""};
  }
  if (change.contains("on")) {
    auto on = Flag(change, "on");
    if (!on) return on;
    entry.on = *on;
  }
  if (change.contains("errno")) {
    const auto error = ErrnoByName(change["errno"].get<std::string>());
    if (!error) return Error{"unknown errno \"" + change["errno"].get<std::string>() + "\""};
    entry.error = static_cast<int16_t>(*error);
  }
  if (change.contains("known_by")) {
    const auto known = KnownByName(change["known_by"].get<std::string>());
    if (!known) return Error{"known_by is calibrated, source or headers"};
    entry.known_by = *known;
  }
  return true;
}

Result<bool> ApplyDriver(const json& change, WorldImage* image, DriverPresence* drivers) {
  auto driver = Find("driver", change["driver"].get<std::string>(), RowNames(DriverRows()));
  if (!driver) return Error{driver.error()};
  if (change.contains("present")) {
    auto present = Flag(change, "present");
    if (!present) return present;
    drivers->present[*driver] = *present;
    return true;
  }
  if (!change.contains("op")) return Error{"a driver needs \"present\", or \"op\" with \"served\""};
  auto op = Find("operation", change["op"].get<std::string>(), NamesOf(OpNames()));
  if (!op) return Error{op.error()};
  auto served = Flag(change, "served");
  if (!served) return served;
  image->op_served[*driver][*op] = *served;
  return true;
}

Result<bool> ApplyField(const json& change, WorldImage* image) {
  auto index = Find("field", change["field"].get<std::string>(), FieldNames());
  if (!index) return Error{index.error()};
  FieldLoc& loc = image->field[*index];
  if (change.contains("present")) {
    auto present = Flag(change, "present");
    if (!present) return present;
    if (*present) return Error{"a field becomes present by its \"offset\" and \"size\""};
    loc = {-1, 0};
    return true;
  }
  auto offset = Number(change, "offset");
  if (!offset) return Error{offset.error()};
  auto size = Number(change, "size");
  if (!size) return Error{size.error()};
  loc = {static_cast<int16_t>(*offset), static_cast<uint16_t>(*size)};
  return true;
}

// {"KEY": "name", "served": bool} on one of the served tables.
Result<bool> ApplyServed(const json& change, const char* key, const std::vector<std::string>& names,
                         uint8_t* served) {
  auto index = Find(key, change[key].get<std::string>(), names);
  if (!index) return Error{index.error()};
  auto flag = Flag(change, "served");
  if (!flag) return flag;
  served[*index] = *flag;
  return true;
}

}  // namespace

std::optional<int> ErrnoByName(std::string_view name) {
  for (const ErrnoName& row : kErrnoNames) {
    if (row.name == name) return row.value;
  }
  return std::nullopt;
}

std::optional<KnownBy> KnownByName(std::string_view name) {
  for (KnownBy known_by : {KnownBy::kCalibrated, KnownBy::kSource, KnownBy::kHeaders}) {
    if (KnownByText(known_by) == name) return known_by;
  }
  return std::nullopt;
}

const char* KnownByText(KnownBy known_by) {
  constexpr const char* kTexts[] = {"calibrated", "source", "headers"};
  return kTexts[static_cast<int>(known_by)];
}

std::string Nearest(std::string_view name, std::span<const std::string> candidates) {
  size_t best = std::string::npos;
  const std::string* found = nullptr;
  std::vector<size_t> row;
  for (const std::string& candidate : candidates) {
    if (candidate.empty()) continue;  // numbers that are kept free
    row.assign(candidate.size() + 1, 0);
    for (size_t j = 0; j <= candidate.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const size_t replaced = diagonal + (name[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < best) {
      best = row.back();
      found = &candidate;
    }
  }
  if (found == nullptr || best > std::max<size_t>(2, name.size() / 2)) return "";
  return " (did you mean \"" + *found + "\"?)";
}

Result<bool> ApplyModelChange(const json& change, WorldImage* image, DriverPresence* drivers) {
  if (!change.is_object()) return Error{"must be an object"};
  for (const char* key :
       {"rule", "knob", "method", "attribute", "write", "write_ex", "driver", "struct", "field"}) {
    if (change.contains(key) && !change[key].is_string()) {
      return Error{std::string("\"") + key + "\" must be a name"};
    }
  }
  if (change.contains("rule")) return ApplyRule(change, image);
  if (change.contains("driver")) return ApplyDriver(change, image, drivers);
  if (change.contains("knob")) {
    auto index = Find("knob", change["knob"].get<std::string>(), RowNames(KnobRows()));
    if (!index) return Error{index.error()};
    auto value = Number(change, "value");
    if (!value) return Error{value.error()};
    image->knob[*index] = *value;
    return true;
  }
  if (change.contains("method")) {
    return ApplyServed(change, "method", RowNames(MethodRows()), image->method_served);
  }
  if (change.contains("write")) {
    return ApplyServed(change, "write", NamesOf(WriteNames()), image->write_served);
  }
  if (change.contains("write_ex")) {
    return ApplyServed(change, "write_ex", NamesOf(WriteExNames()), image->write_ex_served);
  }
  if (change.contains("attribute")) {
    auto index = Find("constant", change["attribute"].get<std::string>(), NamesOf(ConstNames()));
    if (!index) return Error{index.error()};
    auto served = Flag(change, "served");
    if (!served) return served;
    if (*served) {
      auto value = Number(change, "value");
      if (!value) return Error{value.error()};
      image->constant[*index] = {*value, 1};
    } else {
      image->constant[*index] = {};
    }
    return true;
  }
  if (change.contains("struct")) {
    auto index = Find("struct", change["struct"].get<std::string>(), NamesOf(StructNames()));
    if (!index) return Error{index.error()};
    auto size = Number(change, "size");
    if (!size) return Error{size.error()};
    image->struct_size[*index] = static_cast<uint16_t>(*size);
    return true;
  }
  if (change.contains("field")) return ApplyField(change, image);
  return false;
}

}  // namespace vabi
