// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/gcc_check.h"

#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace vabi::facts {
namespace {

std::string Output(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return "";
  std::string out;
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    out.append(buffer.data(), n);
  pclose(pipe);
  return out;
}

}  // namespace

std::vector<std::string> GccErrors(const std::string& text, Arch arch, const std::string& include) {
  std::string dir = (std::filesystem::temp_directory_path() / "vabi-gcc-XXXXXX").string();
  if (!mkdtemp(dir.data())) return {"no temporary folder"};
  std::string file = dir + "/check.c";
  std::ofstream(file) << text;
  // The machine has no 32-bit libc headers; kernel headers need none, only the folder of asm/.
  std::string flags =
      arch == Arch::kI386 ? "-m32 -ffreestanding -idirafter /usr/include/x86_64-linux-gnu" : "-m64";
  if (!include.empty()) flags += " -I'" + include + "'";
  std::string out = Output("LC_ALL=C gcc -std=gnu11 -fsyntax-only " + flags + " '" + file +
                           "' 2>&1; echo \"exit $?\"");
  std::filesystem::remove_all(dir);

  std::vector<std::string> errors;
  std::istringstream lines(out);
  std::string last;
  for (std::string line; std::getline(lines, line); last = line) {
    size_t at = line.find("error: ");
    if (at != std::string::npos) errors.push_back(line.substr(at + 7));
  }
  // A compiler that could not run has found nothing wrong, and nothing right either.
  if (last != "exit 0" && errors.empty()) errors.push_back("gcc: " + out);
  return errors;
}

std::string PackageVersion(const std::string& package) {
  std::string version = Output("dpkg-query -W -f '${Version}' " + package + " 2>/dev/null");
  return version.substr(0, version.find('-'));
}

}  // namespace vabi::facts
