// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_FACTS_SHA256_H_
#define VABI_HARNESS_FACTS_SHA256_H_

#include <string>
#include <string_view>

namespace vabi::facts {

// FIPS 180-4 SHA-256 as 64 lower-case hex digits.
std::string Sha256Hex(std::string_view data);

// The first eight digits, by which facts files are named.
inline std::string ShortDigest(std::string_view data) { return Sha256Hex(data).substr(0, 8); }

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_SHA256_H_
