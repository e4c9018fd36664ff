// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_LIBC_PRELOAD_TEST_MAIN_H_
#define VABI_SHIMS_LIBC_PRELOAD_TEST_MAIN_H_

#include <initializer_list>
#include <string>
#include <vector>

// Tests of the finished, preloaded library: the test program starts itself again inside a world,
// and then its own libc calls are the ones that are intercepted.

namespace vabi::libc {

// A folder for this run, outside of every world; removed at the end.
const std::string& ScratchDir();
// Where the world of this process is written; tests may make further ones for programs that they
// start.
std::string MakeWorld(const std::string& name, const std::string& kernel,
                      std::initializer_list<const char*> overlays = {});

// Runs a program to its end: its output and error output together, and its exit status.
struct Ran {
  std::string output;
  int status;
};
// `environment`: NAME=VALUE, in place of the process' own.
Ran RunProgram(const std::vector<std::string>& command,
               const std::vector<std::string>& environment);
// The process' own environment, with changes.
std::vector<std::string> Environment(const std::vector<std::string>& changes);

}  // namespace vabi::libc

#endif  // VABI_SHIMS_LIBC_PRELOAD_TEST_MAIN_H_
