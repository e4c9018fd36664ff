// SPDX-License-Identifier: BSD-2-Clause
//
// What libclang does not tell of a declaration is read from the source text beside it.
#ifndef VABI_HARNESS_FACTS_C_TEXT_H_
#define VABI_HARNESS_FACTS_C_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace vabi::facts {

// The tokens of a piece of C, without comments.
std::vector<std::string> CTokens(std::string_view text);

// The tokens, separated by one space.
std::string JoinTokens(std::string_view text);

// "MACRO(int *, name)" → MACRO and {"int *", "name"}; name empty when `text` does not begin with a
// macro call.
struct MacroCall {
  std::string name;
  std::vector<std::string> arguments;
};
MacroCall ReadMacroCall(std::string_view text);

// The identifier at the start of `text`, maybe empty.
std::string_view LeadingIdentifier(std::string_view text);

// "[A][2]; …" → "A ] [ 2": what stands inside the outermost brackets at the start of `text`. Empty
// when there are none, or when all dimensions are plain numbers.
std::string SymbolicDims(std::string_view text);

}  // namespace vabi::facts

#endif  // VABI_HARNESS_FACTS_C_TEXT_H_
