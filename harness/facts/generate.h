// SPDX-License-Identifier: BSD-2-Clause
//
// C headers from facts: what they declare has the layout and the values of the facts, so that
// extracting them gives the same facts again. They are written so that rdma-core builds with them,
// whose buildlib/make_abi_structs.py reads headers line by line.
#ifndef VABI_HARNESS_FACTS_GENERATE_H_
#define VABI_HARNESS_FACTS_GENERATE_H_

#include <filesystem>
#include <string>

#include "harness/facts/result.h"
#include "harness/facts/snapshot.h"

namespace vabi::facts {

// The text of one header; `origin` names the snapshot in its first line.
std::string GenerateHeader(const Header& header, const std::string& origin);

// Writes all headers of a snapshot below DIR: DIR/rdma/mlx5-abi.h and so on. Gives their number.
Result<size_t> GenerateHeaders(const Snapshot& snapshot, const std::filesystem::path& dir);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_GENERATE_H_
