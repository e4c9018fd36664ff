// SPDX-License-Identifier: BSD-2-Clause
// The interpreter against files whose behaviour is known: /dev/null, /dev/zero, a pipe-like block.
#include "harness/probe/probe_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace vabi::probe {
namespace {

// Runs a list on a device file; returns the answers.
std::string Ask(const std::string& device, const std::string& text,
                const std::set<std::string>& lethal = {}) {
  std::string path = testing::TempDir() + "/answers-" + std::to_string(::getpid());
  Answers answers;
  EXPECT_TRUE(answers.Open(path.c_str()));
  Options options{device, lethal};
  for (const Block& block : SplitCases(text)) {
    std::string error;
    if (!RunCase(block, options, &answers, &error)) answers.Append(error + "\n");
  }
  answers.Close();
  std::stringstream all;
  all << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  return all.str();
}

TEST(ProbeRun, AnswersWithReturnErrnoAndChangedBytes) {
  EXPECT_EQ(Ask("/dev/zero",
                "case c\ncall o open 2 cap=A:ret\nmem r a5*4\ncall r read $A &r 3\n"
                "call w write 99 &r 1\n"),
            "c:o fd 0\nc:r 3 0 r+0=000000\nc:w -1 EBADF\nc:end exit 0\n");
}

TEST(ProbeRun, SkipsCallsWhoseSymbolNobodyGave) {
  EXPECT_EQ(Ask("/dev/null",
                "case c\ncall a write $A &null 1\nmem q $pd:4\ncall b write 1 &q 0\n"
                "mem q 00\ncall d close 99\n"),
            "c:a skipped\nc:b skipped\nc:d -1 EBADF\nc:end exit 0\n");
}

TEST(ProbeRun, AnswersOopsForCallsThatAreLeftOut) {
  EXPECT_EQ(Ask("/dev/null", "case c\ncall a close 99\ncall b close 99\n", {"c:a"}),
            "c:a oops\nc:b -1 EBADF\nc:end exit 0\n");
}

TEST(ProbeRun, InterruptsACallThatBlocks) {
  // Nobody opens the other end of a FIFO.
  std::string fifo = testing::TempDir() + "/fifo-" + std::to_string(::getpid());
  ASSERT_EQ(std::system(("rm -f " + fifo + "; mkfifo " + fifo).c_str()), 0);
  EXPECT_EQ(Ask(fifo, "case c\ncall o open 0\n"), "c:o blocked -\nc:end exit 0\n");
  std::remove(fifo.c_str());
}

TEST(ProbeRun, GivesEveryCaseAProcessWithNothingLeftOpen) {
  EXPECT_EQ(Ask("/dev/null", "case a\ncall o open 2 cap=A:ret\ncase b\ncall w write $A &null 0\n"),
            "a:o fd 0\na:end exit 0\nb:w skipped\nb:end exit 0\n");
}

TEST(ProbeRun, TellsWhatCannotBeParsed) {
  EXPECT_EQ(Ask("/dev/null", "case a\ncall o close 99\n\ncase b\nnonsense x y\n"),
            "a:o -1 EBADF\na:end exit 0\n"
            "case b (from line 4 on), its line 2: unknown statement: 'nonsense'\n");
}

TEST(ProbeRun, MakesForkedCallsInAChild) {
  EXPECT_EQ(Ask("/dev/null",
                "case c\ncall o open 2 cap=A:ret\ncall f fork-close $A\n"
                "call w write $A &null 0\n"),
            "c:o fd 0\nc:f 0 0\nc:w 0 0\nc:end exit 0\n");
}

TEST(ProbeRun, TellsTheSignalThatEndedACase) {
  // The mapping is gone, so taking note of what changed in it faults.
  EXPECT_EQ(Ask("/dev/null", "case c\nmem q 00\nset a &q\ncall u munmap $a 4096\n"),
            "c:u died\nc:end signal 11\n");
}

}  // namespace
}  // namespace vabi::probe
