// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/run.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "harness/conformance/framework/abi_test.h"

namespace vabi::conformance {
namespace {

constexpr size_t kTraceLines = 40;
constexpr size_t kMessage = 16 * 1024;  // bytes of a result's text that are kept

// "harness/conformance/x_test.cc": without the place of the source tree.
const char* Shortened(const char* file) {
  if (file == nullptr) return "?";
  const char* found = std::strstr(file, "harness/");
  return found != nullptr ? found : file;
}

// Collects what failed.
class Collector : public ::testing::EmptyTestEventListener {
 public:
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    text_ += std::string(Shortened(result.file_name())) + ":" +
             std::to_string(result.line_number()) + ": " + result.message() + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void WriteAll(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    done += static_cast<size_t>(wrote);
  }
}

[[noreturn]] void RunChild(const std::string& name, int seconds, int report) {
  alarm(static_cast<unsigned>(seconds));
  StartTrace();
  ::testing::GTEST_FLAG(filter) = name;
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  auto* collector = new Collector;
  listeners.Append(collector);
  const int failed = RUN_ALL_TESTS();
  std::string text = collector->text();
  if (failed != 0) {
    if (text.size() > kMessage) text.resize(kMessage);
    text += "the trace of this test:\n" + trace().Tail(kTraceLines);
  }
  WriteAll(report, text);
  std::fflush(stderr);
  _exit(failed != 0 ? 1 : 0);
}

std::string ReadAll(int fd) {
  std::string text;
  char bytes[4096];
  for (;;) {
    const ssize_t got = read(fd, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(bytes, static_cast<size_t>(got));
  }
}

}  // namespace

Result RunAlone(const std::string& name, int seconds) {
  Result result{name, false, {}};
  int ends[2];
  if (pipe(ends) != 0) {
    result.message = std::string("pipe: ") + std::strerror(errno);
    return result;
  }
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    RunChild(name, seconds, ends[1]);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    result.message = std::string("fork: ") + std::strerror(errno);
    return result;
  }
  result.message = ReadAll(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    result.message += number == SIGALRM ? "no end after " + std::to_string(seconds) + " s\n"
                                        : std::string("crashed: SIG") + sigabbrev_np(number) + "\n";
    return result;
  }
  result.passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!result.passed && result.message.empty()) {
    result.message = "exit status " + std::to_string(WEXITSTATUS(status)) + " before its end";
  }
  return result;
}

}  // namespace vabi::conformance
