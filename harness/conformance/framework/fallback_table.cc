// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/fallback_table.h"

namespace vabi::conformance {

const FallbackRow* FallbackOfMethod(std::string_view method, Release release) {
  for (const FallbackRow& row : kFallbacks) {
    if (row.method == method && !(release < row.since)) return &row;
  }
  return nullptr;
}

const FallbackRow* FallbackOfCommand(std::string_view command, bool extended) {
  for (const FallbackRow& row : kFallbacks) {
    if (row.command != command) continue;
    if (row.form == Form::kEither || row.form == (extended ? Form::kExtended : Form::kLegacy))
      return &row;
  }
  return nullptr;
}

}  // namespace vabi::conformance
