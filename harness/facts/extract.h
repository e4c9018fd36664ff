// SPDX-License-Identifier: BSD-2-Clause
//
// Facts from header files, by asking a C compiler (libclang) for both architectures.
#ifndef VABI_HARNESS_FACTS_EXTRACT_H_
#define VABI_HARNESS_FACTS_EXTRACT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "harness/facts/result.h"
#include "harness/facts/snapshot.h"

namespace vabi::facts {

// A header that the compiler did not accept; the snapshot is without it.
struct Problem {
  std::string header;
  unsigned line = 0;    // 0 when the compiler names none
  std::string message;  // the compiler's words
};

struct Extraction {
  Snapshot snapshot;
  std::vector<Problem> problems;
};

// Facts of INCLUDE_DIR/rdma/**.h, each header parsed alone. What these include is searched in
// INCLUDE_DIR first, then among the machine's own kernel headers. Fails when there is no header, or
// when none can be parsed.
Result<Extraction> ExtractFacts(const std::filesystem::path& include_dir, const std::string& name,
                                const Source& source);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_EXTRACT_H_
