// SPDX-License-Identifier: BSD-2-Clause
// Asks the kernel what a list says and writes down the answers; knows nothing of RDMA itself.
//
//   vabi-probe [--device NODE] [--skip FILE] [--from CASE] LIST ANSWERS
//
// --skip: a file of "CASE:ID" lines, calls that are answered "oops" without being made, because
// they took the kernel down before. --from: begin with that case.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "harness/probe/probe_run.h"

int main(int argc, char** argv) {
  vabi::probe::Options options;
  std::string from, list_path, answers_path;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    bool more = i + 1 < argc;
    if (word == "--device" && more) {
      options.device = argv[++i];
    } else if (word == "--from" && more) {
      from = argv[++i];
    } else if (word == "--skip" && more) {
      std::ifstream file(argv[++i]);
      for (std::string line; std::getline(file, line);) options.lethal.insert(line);
    } else if (list_path.empty()) {
      list_path = word;
    } else if (answers_path.empty()) {
      answers_path = word;
    }
  }
  if (answers_path.empty()) {
    std::cerr << "usage: vabi-probe [--device NODE] [--skip FILE] [--from CASE] LIST ANSWERS\n";
    return 2;
  }
  std::ifstream file(list_path);
  if (!file) {
    std::cerr << "vabi-probe: " << list_path << ": " << std::strerror(errno) << "\n";
    return 2;
  }
  std::stringstream text;
  text << file.rdbuf();
  const std::string list = text.str();
  vabi::probe::Answers answers;
  if (!answers.Open(answers_path.c_str())) {
    std::cerr << "vabi-probe: " << answers_path << ": " << std::strerror(errno) << "\n";
    return 2;
  }
  bool begun = from.empty();
  for (const vabi::probe::Block& block : vabi::probe::SplitCases(list)) {
    begun = begun || block.name == from;
    std::string error;
    if (begun && !vabi::probe::RunCase(block, options, &answers, &error)) {
      std::cerr << "vabi-probe: " << list_path << ": " << error << "\n";
      return 2;
    }
  }
  answers.Append("all done\n");
  answers.Close();
  return 0;
}
