// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_FACTS_TEXT_H_
#define VABI_HARNESS_FACTS_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace vabi::facts {

// Adds an item to a list in text: "a" + "b" → "a, b".
inline void AddItem(std::string& list, std::string_view item, std::string_view separator = ", ") {
  if (!list.empty()) list += separator;
  list += item;
}

// The items as one list; empty for none.
inline std::string JoinItems(const std::vector<std::string>& items,
                             std::string_view separator = ", ") {
  std::string list;
  for (const std::string& item : items) AddItem(list, item, separator);
  return list;
}

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_TEXT_H_
