// SPDX-License-Identifier: BSD-2-Clause
//   vabi-dump netlink [DEVICE-INDEX] | tree FOLDER…
#include <cstdio>
#include <cstdlib>
#include <string>

#include "harness/probe/dump.h"

int main(int argc, char** argv) {
  std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "netlink") {
    return vabi::probe::DumpNetlink(
        argc > 2 ? static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 0)) : 0);
  }
  if (verb == "tree" && argc > 2) {
    for (int i = 2; i < argc; ++i) vabi::probe::DumpTree(argv[i]);
    return 0;
  }
  std::fprintf(stderr, "usage: vabi-dump netlink [DEVICE-INDEX] | tree FOLDER...\n");
  return 2;
}
