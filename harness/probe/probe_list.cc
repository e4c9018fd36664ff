// SPDX-License-Identifier: BSD-2-Clause
#include "harness/probe/probe_list.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <stdexcept>

namespace vabi::probe {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  while (true) {
    size_t at = text.find(separator);
    words.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return words;
    text.remove_prefix(at + 1);
  }
}

uint64_t Number(std::string_view text) {
  std::string copy(text);
  char* end = nullptr;
  errno = 0;
  uint64_t value = copy.starts_with("-")
                       ? static_cast<uint64_t>(std::strtoll(copy.c_str(), &end, 0))
                       : std::strtoull(copy.c_str(), &end, 0);
  if (copy.empty() || *end != '\0' || errno != 0) {
    throw std::runtime_error("not a number: '" + copy + "'");
  }
  return value;
}

uint8_t Byte(std::string_view two) {
  uint8_t value = 0;
  auto [end, code] = std::from_chars(two.data(), two.data() + two.size(), value, 16);
  if (two.size() != 2 || code != std::errc() || end != two.data() + 2) {
    throw std::runtime_error("not a byte: '" + std::string(two) + "'");
  }
  return value;
}

// "NAME" or "NAME+OFFSET"
void NameAndOffset(std::string_view text, std::string* name, uint64_t* offset) {
  size_t plus = text.find('+');
  *name = text.substr(0, plus);
  *offset = plus == std::string_view::npos ? 0 : Number(text.substr(plus + 1));
}

Part ParsePart(std::string_view text) {
  Part part;
  if (text.starts_with('&')) {
    part.kind = Part::Kind::kAddress;
    NameAndOffset(text.substr(1), &part.text, &part.number);
  } else if (text.starts_with('$')) {
    size_t colon = text.find(':');
    if (colon == std::string_view::npos) throw std::runtime_error("a symbol without a width");
    part.kind = Part::Kind::kSymbol;
    part.text = text.substr(1, colon - 1);
    part.number = Number(text.substr(colon + 1));
    if (part.number > 8) throw std::runtime_error("a symbol wider than 8 bytes");
  } else if (size_t star = text.find('*'); star != std::string_view::npos) {
    std::string_view byte = text.substr(0, star);
    part.text.assign(Number(text.substr(star + 1)),
                     byte == "0" ? '\0' : static_cast<char>(Byte(byte)));
  } else {
    if (text.size() % 2 != 0) throw std::runtime_error("half a byte");
    for (size_t i = 0; i < text.size(); i += 2)
      part.text += static_cast<char>(Byte(text.substr(i, 2)));
  }
  return part;
}

Blob ParseBlob(std::string_view text) {
  Blob blob;
  if (text == "-") return blob;
  for (std::string_view part : Split(text, ',')) blob.push_back(ParsePart(part));
  return blob;
}

Argument ParseArgument(std::string_view text) {
  Argument argument;
  if (text.starts_with('$')) {
    argument.kind = Argument::Kind::kSymbol;
    argument.name = text.substr(1);
  } else if (text.starts_with('&')) {
    argument.kind = Argument::Kind::kAddress;
    NameAndOffset(text.substr(1), &argument.name, &argument.number);
  } else {
    argument.number = Number(text);
  }
  return argument;
}

void ParseOption(std::string_view key, std::string_view value, Statement* call) {
  std::vector<std::string_view> words = Split(value, ':');
  if (key == "cap" && words.size() == 2 && words[1] == "ret") {
    call->captures.push_back({std::string(words[0]), "", 0, 0});
  } else if ((key == "cap" || key == "mask") && words.size() == 4) {
    size_t offset = Number(words[2]), length = Number(words[3]);
    if (key == "mask") {
      call->masks.push_back({std::string(words[0]), std::string(words[1]), offset, length});
    } else {
      if (length > 8) throw std::runtime_error("a capture longer than 8 bytes");
      call->captures.push_back({std::string(words[0]), std::string(words[1]), offset, length});
    }
  } else {
    throw std::runtime_error("unknown option: '" + std::string(key) + "'");
  }
}

Statement ParseStatement(const std::vector<std::string_view>& words) {
  Statement statement;
  if (words.size() < 3) throw std::runtime_error("too few words");
  statement.name = words[1];
  if (words[0] == "mem") {
    statement.kind = Statement::Kind::kMemory;
    statement.blob = ParseBlob(words[2]);
    std::string_view place = words.size() > 3 ? words[3] : "plain";
    static const std::map<std::string_view, Place> kPlaces = {{"plain", Place::kPlain},
                                                              {"edge", Place::kEdge},
                                                              {"ro", Place::kReadOnly},
                                                              {"quiet", Place::kQuiet}};
    auto found = kPlaces.find(place);
    if (found == kPlaces.end()) {
      throw std::runtime_error("unknown place: '" + std::string(place) + "'");
    }
    statement.place = found->second;
  } else if (words[0] == "set") {
    statement.kind = Statement::Kind::kSet;
    statement.blob = ParseBlob(words[2]);
  } else if (words[0] == "call") {
    statement.op = words[2];
    for (size_t i = 3; i < words.size(); ++i) {
      size_t equals = words[i].find('=');
      if (equals == std::string_view::npos) {
        statement.arguments.push_back(ParseArgument(words[i]));
      } else {
        ParseOption(words[i].substr(0, equals), words[i].substr(equals + 1), &statement);
      }
    }
  } else {
    throw std::runtime_error("unknown statement: '" + std::string(words[0]) + "'");
  }
  return statement;
}

}  // namespace

std::vector<Block> SplitCases(std::string_view text) {
  constexpr std::string_view kStart = "case ";
  std::vector<Block> blocks;
  size_t line = 1, begin = 0;  // of the block that is open
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view words = text.substr(at, end - at);
    if (words.starts_with(kStart)) {
      if (!blocks.empty()) blocks.back().text = text.substr(begin, at - begin);
      blocks.push_back({words.substr(kStart.size()), {}, line});
      begin = at;
    }
    at = end + 1;
  }
  if (!blocks.empty()) blocks.back().text = text.substr(begin);
  return blocks;
}

List Parse(std::string_view text, std::string* error) {
  List list;
  size_t line_number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++line_number;
    if (line.empty() || line.starts_with('#')) continue;
    std::vector<std::string_view> words = Split(line, ' ');
    try {
      if (words[0] == "case") {
        if (words.size() != 2) throw std::runtime_error("a case needs one name");
        list.cases.push_back({std::string(words[1]), {}});
      } else if (list.cases.empty()) {
        throw std::runtime_error("a statement before the first case");
      } else {
        list.cases.back().statements.push_back(ParseStatement(words));
      }
    } catch (const std::runtime_error& problem) {
      *error = "line " + std::to_string(line_number) + ": " + problem.what();
      return {};
    }
  }
  return list;
}

}  // namespace vabi::probe
