// SPDX-License-Identifier: BSD-2-Clause
// Linked into unit tests: with VERBS_ABI_TEST_RULES=FILE in the environment, each test appends one
// line to FILE,
//   Suite.Name <tab> passed | failed | skipped <tab> names of the rules that were asked for, parted
//   by blanks <tab> of the knobs
// `test --relax` reads from it which tests could notice that a rule is gone or a knob turned.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "harness/world/world.h"

namespace vabi {
namespace {

std::atomic<bool> asked[kCountOf<RuleId>], knobs[kCountOf<KnobId>];

class RuleWatch : public testing::EmptyTestEventListener {
 public:
  explicit RuleWatch(const char* path)
      : fd_(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {}

 private:
  void OnTestStart(const testing::TestInfo&) override {
    for (std::atomic<bool>& rule : asked) rule = false;
    for (std::atomic<bool>& knob : knobs) knob = false;
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    const testing::TestResult& result = *test.result();
    std::string line = std::string(test.test_suite_name()) + "." + test.name() + "\t" +
                       (result.Skipped()  ? "skipped"
                        : result.Passed() ? "passed"
                                          : "failed") +
                       "\t";
    for (size_t i = 0; i < RuleRows().size(); ++i) {
      if (asked[i]) line += std::string(RuleRows()[i].name) + " ";
    }
    line += '\t';
    for (size_t i = 0; i < KnobRows().size(); ++i) {
      if (knobs[i]) line += std::string(KnobRows()[i].name) + " ";
    }
    line += '\n';
    if (write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  }

  const int fd_;
};

const bool watching = [] {
  const char* path = std::getenv("VERBS_ABI_TEST_RULES");
  if (path == nullptr) return false;
  rules_asked = asked;
  knobs_asked = knobs;
  testing::UnitTest::GetInstance()->listeners().Append(new RuleWatch(path));
  return true;
}();

}  // namespace
}  // namespace vabi
