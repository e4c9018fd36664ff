// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sys/own_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "shims/sys/sys.h"

namespace vabi::sys {
namespace {

int InChild(const std::function<int()>& run) {
  const pid_t child = fork();
  if (child == 0) _exit(run());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void SetLimit(rlim_t soft, rlim_t hard) {
  const rlimit limit = {soft, hard};
  setrlimit(RLIMIT_NOFILE, &limit);
}

// setrlimit(2): RLIMIT_NOFILE is one more than the highest number that can be had.
TEST(MoveAside, LeavesTheProgramAllNumbersOfItsLimit) {
  EXPECT_EQ(0, InChild([] {
              SetLimit(40, 400);
              closefrom(3);
              const int lowest = dup(0);
              const int own = MoveAside(dup(0));
              if (own < 40) return 1;
              if (fcntl(own, F_GETFD) != FD_CLOEXEC) return 2;
              rlimit limit;
              getrlimit(RLIMIT_NOFILE, &limit);
              if (limit.rlim_cur != 40 || limit.rlim_max != 400) return 3;
              if (dup(0) != lowest + 1) return 4;
              for (int fd = lowest + 2; fd < 40; ++fd) {
                if (dup(0) != fd) return 5;
              }
              return dup(0) == -1 ? 0 : 6;
            }));
}

TEST(MoveAside, TakesALargeLimitsMiddle) {
  EXPECT_EQ(0, InChild([] {
              rlimit limit;
              getrlimit(RLIMIT_NOFILE, &limit);
              SetLimit(limit.rlim_max, limit.rlim_max);
              if (limit.rlim_max <= 4096) return 0;
              return MoveAside(dup(0)) == 4096 ? 0 : 1;
            }));
}

TEST(MoveAside, MakesDoWithTheHighestNumberWhereTheLimitIsHard) {
  if (getuid() == 0) {
    EXPECT_EQ(0, InChild([] {
                SetLimit(40, 40);
                closefrom(3);
                if (setuid(65534) != 0) return 1;
                return MoveAside(dup(0)) == 39 ? 0 : 2;
              }));
  }
}

}  // namespace
}  // namespace vabi::sys
