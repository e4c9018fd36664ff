// SPDX-License-Identifier: BSD-2-Clause
// The descriptor table, without the wrappers: how long a file lives (fs/file_table.c:fput).
#include "shims/libc/descriptors.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace vabi::libc {

// What start.cc holds in the preloaded library.
uint8_t g_fd_bits[kMaxFds];
std::atomic<Mode> g_mode{Mode::kActive};
void Start() {}
void TraceEvent(const char*, const char*) {}
void NoteFakeDescriptor() {}

namespace {

class CountedFile : public File {
 public:
  explicit CountedFile(int* released) : released_(released) {}
  void Release() override { ++*released_; }
  const char* Name() const override { return "counted"; }

 private:
  int* released_;
};

class DescriptorsTest : public testing::Test {
 protected:
  int Open() {
    const int fd = dup(0);
    FdTable::Install(fd, std::make_shared<CountedFile>(&released_));
    return fd;
  }
  void Close(int fd) {
    Closed(fd);
    close(fd);
  }
  int released_ = 0;
};

TEST_F(DescriptorsTest, TheLastDescriptorReleasesTheFile) {
  const int first = Open(), second = dup(first);
  Duplicated(first, second);
  Close(first);
  EXPECT_EQ(0, released_);
  EXPECT_EQ(second, FdTable::Get(second)->backing_fd());
  Close(second);
  EXPECT_EQ(1, released_);
  EXPECT_EQ(nullptr, FdTable::Get(second));
}

// A read that is under way when another thread closes the descriptor goes on: fdget has counted it.
TEST_F(DescriptorsTest, ACallKeepsTheFileOpen) {
  const int fd = Open();
  std::shared_ptr<File> call = FdTable::Get(fd);
  Close(fd);
  EXPECT_EQ(nullptr, FdTable::Get(fd));
  EXPECT_EQ(0, released_);
  EXPECT_EQ(-1, call->backing_fd()) << "the number may be another file's by now";
  call.reset();
  EXPECT_EQ(1, released_);
}

TEST_F(DescriptorsTest, AReusedNumberReleasesWhatItWas) {
  const int fd = Open();
  FdTable::Install(fd, std::make_shared<CountedFile>(&released_));
  EXPECT_EQ(1, released_);
  Close(fd);
  EXPECT_EQ(2, released_);
}

}  // namespace
}  // namespace vabi::libc
