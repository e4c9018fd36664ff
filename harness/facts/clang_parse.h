// SPDX-License-Identifier: BSD-2-Clause
//
// One header through libclang, for one architecture.
#ifndef VABI_HARNESS_FACTS_CLANG_PARSE_H_
#define VABI_HARNESS_FACTS_CLANG_PARSE_H_

#include <clang-c/Index.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/facts/extract.h"
#include "harness/facts/model.h"

namespace vabi::facts {

class ClangParser {
 public:
  ClangParser(std::filesystem::path include_dir, Arch arch);
  ~ClangParser();
  ClangParser(const ClangParser&) = delete;
  ClangParser& operator=(const ClangParser&) = delete;

  // The declarations of INCLUDE_DIR/PATH in their order, macros with their values. Fields of type
  // Struct::i386 and value_i386 stay empty. On a parse error, fills `problem` and returns nothing.
  std::optional<Header> Parse(const std::string& path, Problem& problem);

 private:
  void EvaluateMacros(Header& header, const std::string& prelude);

  std::filesystem::path include_dir_;
  std::vector<std::string> arguments_;
  CXIndex index_;
};

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_CLANG_PARSE_H_
