// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/c_text.h"

#include <algorithm>
#include <cctype>

namespace vabi::facts {
namespace {

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) || c == '\\'; }

size_t SkipSpace(std::string_view text, size_t at) {
  while (at < text.size()) {
    if (IsSpace(text[at])) {
      ++at;
    } else if (text.substr(at, 2) == "/*") {
      size_t end = text.find("*/", at + 2);
      at = end == std::string_view::npos ? text.size() : end + 2;
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    } else {
      break;
    }
  }
  return at;
}

// Length of the token that starts at `at`, which is no space.
size_t TokenLength(std::string_view text, size_t at) {
  size_t end = at + 1;
  if (IsWord(text[at])) {
    while (end < text.size() && IsWord(text[end])) ++end;
    return end - at;
  }
  if (text[at] == '"' || text[at] == '\'') {
    while (end < text.size() && text[end] != text[at]) end += text[end] == '\\' ? 2 : 1;
    return std::min(end + 1, text.size()) - at;
  }
  constexpr std::string_view kPairs[] = {
      "<<", ">>", "->", "&&", "||", "==", "!=", "<=", ">=", "##", "++", "--"};
  return std::find(std::begin(kPairs), std::end(kPairs), text.substr(at, 2)) != std::end(kPairs)
             ? 2
             : 1;
}

}  // namespace

std::vector<std::string> CTokens(std::string_view text) {
  std::vector<std::string> tokens;
  for (size_t at = SkipSpace(text, 0); at < text.size(); at = SkipSpace(text, at)) {
    size_t length = TokenLength(text, at);
    tokens.emplace_back(text.substr(at, length));
    at += length;
  }
  return tokens;
}

std::string JoinTokens(std::string_view text) {
  std::string joined;
  for (const std::string& token : CTokens(text)) joined += (joined.empty() ? "" : " ") + token;
  return joined;
}

std::string_view LeadingIdentifier(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && IsWord(text[end])) ++end;
  return text.substr(0, end);
}

MacroCall ReadMacroCall(std::string_view text) {
  std::string_view name = LeadingIdentifier(text);
  size_t at = SkipSpace(text, name.size());
  if (name.empty() || at >= text.size() || text[at] != '(') return {};
  MacroCall call{std::string(name), {}};
  int depth = 0;
  size_t start = ++at;
  for (; at < text.size(); ++at) {
    char c = text[at];
    if ((c == ',' || c == ')') && depth == 0) {
      call.arguments.push_back(std::string(text.substr(start, at - start)));
      start = at + 1;
      if (c == ')') break;
    }
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
  }
  for (std::string& argument : call.arguments) {
    size_t first = argument.find_first_not_of(" \t\n"), last = argument.find_last_not_of(" \t\n");
    argument = first == std::string::npos ? "" : argument.substr(first, last - first + 1);
  }
  return call;
}

std::string SymbolicDims(std::string_view text) {
  size_t at = SkipSpace(text, 0), begin = at + 1, end = at;
  while (at < text.size() && text[at] == '[') {
    size_t close = text.find(']', at);
    if (close == std::string_view::npos) return "";
    end = close;
    at = SkipSpace(text, close + 1);
  }
  if (end < begin) return "";
  std::string_view inside = text.substr(begin, end - begin);
  bool symbolic = std::any_of(inside.begin(), inside.end(), [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '*' || c == '+';
  });
  // 0x10 is a number too.
  std::string joined = JoinTokens(inside);
  if (joined.find_first_not_of("0123456789abcdefABCDEFxX") == std::string::npos &&
      (joined.empty() || std::isdigit(static_cast<unsigned char>(joined[0])))) {
    return "";
  }
  return symbolic ? joined : "";
}

}  // namespace vabi::facts
