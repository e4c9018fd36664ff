// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_FACTS_SCALAR_H_
#define VABI_HARNESS_FACTS_SCALAR_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "harness/facts/model.h"

namespace vabi::facts {

// Size in bytes of a scalar type as UAPI headers spell it ("__u32", "unsigned long", "void *").
// Nothing for records, typedefs of a header's own and anything else.
std::optional<uint32_t> ScalarSize(std::string_view type, Arch arch);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_SCALAR_H_
