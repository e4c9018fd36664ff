// SPDX-License-Identifier: BSD-2-Clause
//
// vabi-interceptable FILE…: can the shim be preloaded into these programs? One line each: the
// verdict's word, the file, and why. Exit status 0: all can; 1: some cannot; 2: usage.
//
// A script's interpreter is looked at in its place. Raw system calls cannot be seen in a file: the
// shim names them in the trace when they happen ("not_intercepted").
#include <cstdio>
#include <string>

#include "shims/libc/interceptable.h"

namespace {

using vabi::libc::Interceptable;

const char* Word(Interceptable verdict) {
  switch (verdict) {
    case Interceptable::kYes:
      return "interceptable";
    case Interceptable::kUnreadable:
      return "unreadable";
    default:
      return "not-interceptable";
  }
}

bool Say(const std::string& file) {
  std::string looked_at = file;
  char detail[256];
  Interceptable verdict = vabi::libc::Judge(looked_at.c_str(), detail, sizeof detail);
  // An interpreter may itself be a script, as Linux allows a few times over.
  for (int depth = 0; verdict == Interceptable::kScript && depth < 5; ++depth) {
    looked_at = detail;
    verdict = vabi::libc::Judge(looked_at.c_str(), detail, sizeof detail);
  }
  std::printf("%s\t%s\t%s%s%s\n", Word(verdict), file.c_str(), vabi::libc::Describe(verdict),
              looked_at == file ? "" : ": ", looked_at == file ? "" : looked_at.c_str());
  return verdict == Interceptable::kYes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: vabi-interceptable FILE...\n");
    return 2;
  }
  bool all = true;
  for (int i = 1; i < argc; ++i) all &= Say(argv[i]);
  return all ? 0 : 1;
}
