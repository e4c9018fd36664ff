// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_FACTS_BTF_TYPES_H_
#define VABI_HARNESS_FACTS_BTF_TYPES_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "harness/facts/binary.h"
#include "harness/facts/result.h"

struct btf;

namespace vabi::facts {

using Btf = std::shared_ptr<struct btf>;

// BTF from its raw bytes; `base` is what it is split from, or null. Error in libbpf's words.
Result<Btf> ParseBtf(std::string_view bytes, const Btf& base);

// Adds the types called `names`, and all enumerators, that `btf` has beyond its base.
void AddBtfTypes(const Btf& btf, const std::set<std::string>& names, const std::string& file,
                 BinaryTypes& types);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_BTF_TYPES_H_
