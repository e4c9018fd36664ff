// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_TRACE_READER_H_
#define VABI_HARNESS_TRACE_READER_H_

#include <string>
#include <vector>

#include "harness/trace/command.h"

// Reads traces while they are written: each call gives what has been added since the last one.

namespace vabi::traces {

class Reader {
 public:
  // `pid`: only lines of that process; 0: of all. The file need not be there yet.
  explicit Reader(std::string path, long pid = 0);

  // Leaves out all that is in the file now.
  void SkipToEnd();
  // Commands that ended since the last call. A half-written last line waits for the next one.
  // `places` go on from call to call.
  std::vector<Command> Next();

 private:
  std::string path_;
  long pid_;
  long offset_ = 0;
};

// The command in one line of a trace; false for an event line or one that is no JSON.
bool Parse(const std::string& line, Command* command);

}  // namespace vabi::traces

#endif  // VABI_HARNESS_TRACE_READER_H_
