// SPDX-License-Identifier: BSD-2-Clause
// Performs a case's calls and writes one line an answer:
//
//   CASE:ID RETURN ERRNO[ NAME+OFFSET=BYTES]…
//
// RETURN is a number, "fd" (a new file descriptor), "addr" (a new mapping), "blocked" (the call had
// not ended within kCallLimit and was interrupted) or "skipped" (a symbol that it needs was never
// given). After a case: "CASE:end exit|signal N|limit". A line that ends after the id was begun and
// never finished: the call did not come back.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "harness/probe/probe_list.h"

namespace vabi::probe {

inline constexpr int kCallLimitMs = 400;
inline constexpr int kCaseLimitMs = 120000;

// Where answers go: memory shared with the children, and with the host of a guest. What is in it
// survives the process (a file) or the machine (memory of a virtual device).
class Answers {
 public:
  // Maps the file, making it when it is not there. Returns false with errno set.
  bool Open(const char* path);
  void Append(const std::string& text);
  // Ends a line that was begun and not finished.
  void EndLine(const std::string& text);
  // Cuts a plain file to what was written.
  void Close();

 private:
  char* area_ = nullptr;
  size_t* used_ = nullptr;
  int fd_ = -1;
  bool plain_ = false;
};

struct Options {
  std::string device = "/dev/infiniband/uverbs0";
  std::set<std::string> lethal;  // "CASE:ID" of calls that are answered "oops" unperformed
};

// Runs the case in a child process and waits for it. The child parses it: what a list comes to in
// memory would have to be copied for every child. False: it cannot be parsed; `error` says why.
bool RunCase(const Block& block, const Options& options, Answers* answers, std::string* error);

}  // namespace vabi::probe
