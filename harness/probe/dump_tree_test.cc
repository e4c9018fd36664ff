// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "harness/probe/dump.h"

namespace vabi::probe {
namespace {

std::string Dumped(const std::string& root) {
  testing::internal::CaptureStdout();
  DumpTree(root);
  return testing::internal::GetCapturedStdout();
}

class DumpTreeTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "/tree-" + std::to_string(::getpid());
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ + "/gids");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void File(const std::string& name, const std::string& text, mode_t mode = 0444) {
    std::ofstream(root_ + "/" + name) << text;
    chmod((root_ + "/" + name).c_str(), mode);
  }
  std::string root_;
};

TEST_F(DumpTreeTest, TellsModesContentsAndLinksInOrder) {
  File("b", "two\n", 0644);
  File("a", "x\\\x01");
  std::filesystem::create_symlink("../device", root_ + "/link");
  EXPECT_EQ(Dumped(root_), "folder " + root_ + " \nfile " + root_ +
                               "/a 0444 \"x\\\\\\x01\"\nfile " + root_ +
                               "/b 0644 \"two\\n\"\nfolder " + root_ + "/gids \nlink " + root_ +
                               "/link ../device\n");
}

TEST_F(DumpTreeTest, ReadsOnlyTheFirstFewAndTheLastOfATable) {
  for (int i = 0; i < 12; ++i) File("gids/" + std::to_string(i), "g\n");
  std::string text = Dumped(root_ + "/gids");
  EXPECT_NE(text.find("numbered " + root_ + "/gids 12\n"), std::string::npos);
  EXPECT_NE(text.find("/gids/5 "), std::string::npos);
  EXPECT_EQ(text.find("/gids/6 "), std::string::npos);
  EXPECT_NE(text.find("/gids/11 "), std::string::npos);
}

TEST_F(DumpTreeTest, TellsWhatIsMissing) {
  EXPECT_EQ(Dumped(root_ + "/none"), "missing " + root_ + "/none ENOENT\n");
}

}  // namespace
}  // namespace vabi::probe
