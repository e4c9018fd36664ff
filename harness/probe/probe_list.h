// SPDX-License-Identifier: BSD-2-Clause
// The probe's call list: cases of calls, each call on memory objects that are described in the
// list.
//
// One statement a line, words separated by one space:
//   case NAME                    what follows runs in one child process, with nothing left from
//   before mem NAME BLOB [PLACE]        a memory object (or new contents for it); PLACE is one of
//                                  plain  followed by kSlack bytes that are watched too (default)
//                                  edge   its last byte is the last one mapped
//                                  ro     as plain, in memory that cannot be written
//                                  quiet  as plain, changes are not told: a device writes it when
//                                  it will
//   set NAME BLOB                a number of up to 8 bytes, little-endian, as a symbol
//   call ID OP ARGUMENT… [OPTION…]
//
// BLOB: parts joined by ','
//   0a0b…       bytes               0*N, a5*N   a byte N times
//   &NAME[+N]   the object's address, 8 bytes
//   $SYM:N      the symbol's value, N bytes, little-endian
//
// An ARGUMENT is a number (decimal, 0x…, or negative), $SYM, or &NAME[+N].
// OP: open write read ioctl poll close dup mmap munmap fcntl fork-write fork-ioctl fork-close
// seteuid
//     store MAPPING OFFSET OBJECT LENGTH, load MAPPING OFFSET OBJECT LENGTH,
//     settle MAPPING OFFSET VALUE LIMIT-MS, pause-ms
// OPTION:
//   cap=SYM:NAME:OFF:LEN         after success, SYM is what stands there
//   cap=SYM:ret                  after success, SYM is the return value
//   mask=RULE:NAME:OFF:LEN       bytes that differ from run to run, printed as the rule's name
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace vabi::probe {

inline constexpr size_t kSlack = 64;
inline constexpr unsigned char kUntouched = 0xa5;  // what reply memory holds before the call

struct Part {
  enum class Kind { kBytes, kAddress, kSymbol } kind = Kind::kBytes;
  std::string text;     // the bytes, or the name
  uint64_t number = 0;  // address offset, or symbol width
};

using Blob = std::vector<Part>;

struct Argument {
  enum class Kind { kNumber, kSymbol, kAddress } kind = Kind::kNumber;
  std::string name;
  uint64_t number = 0;
};

struct Capture {
  std::string symbol, object;  // object empty: the return value
  size_t offset = 0, length = 0;
};

struct Mask {
  std::string rule, object;
  size_t offset = 0, length = 0;
};

enum class Place { kPlain, kEdge, kReadOnly, kQuiet };

struct Statement {
  enum class Kind { kMemory, kSet, kCall } kind = Kind::kCall;
  std::string name;  // of the object, symbol or call
  Blob blob;
  Place place = Place::kPlain;
  std::string op;
  std::vector<Argument> arguments;
  std::vector<Capture> captures;
  std::vector<Mask> masks;
};

struct Case {
  std::string name;
  std::vector<Statement> statements;
};

struct List {
  std::vector<Case> cases;
};

// The parts of a list that are one case each, "case NAME" first; what stands before the first one
// is no case's.
struct Block {
  std::string_view name, text;
  size_t line = 1;  // where it begins
};
std::vector<Block> SplitCases(std::string_view text);

// Parses a whole list. On failure `error` says line and reason, and the list is empty.
List Parse(std::string_view text, std::string* error);

}  // namespace vabi::probe
