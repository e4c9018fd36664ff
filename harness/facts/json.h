// SPDX-License-Identifier: BSD-2-Clause
//
// The facts file format, read and written (reference-headers/README.md describes it).
#ifndef VABI_HARNESS_FACTS_JSON_H_
#define VABI_HARNESS_FACTS_JSON_H_

#include <filesystem>
#include <string>
#include <string_view>

#include "harness/facts/model.h"
#include "harness/facts/result.h"
#include "harness/facts/snapshot.h"

namespace vabi::facts {

inline constexpr int kFormat = 1;

// One header's facts from the text of its file; `where` names the file in errors.
Result<Header> ParseHeader(std::string_view text, const std::string& where);

// The canonical text of a header's facts: one line a declaration. Equal facts give equal bytes, so
// its digest names it.
std::string WriteHeader(const Header& header);

// The canonical text of a snapshot's own file. The headers' digests are taken from the snapshot.
std::string WriteSnapshot(const Snapshot& snapshot);

// Writes DIR/NAME.json and those header files that DIR does not have yet.
Result<std::filesystem::path> SaveSnapshot(const Snapshot& snapshot,
                                           const std::filesystem::path& dir);

// Where DIR keeps the facts of a header.
std::filesystem::path HeaderFile(const std::filesystem::path& dir, std::string_view path,
                                 std::string_view digest);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_JSON_H_
