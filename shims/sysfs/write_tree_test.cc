// SPDX-License-Identifier: BSD-2-Clause
#include "shims/sysfs/write_tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace vabi::sysfs {
namespace {

namespace fs = std::filesystem;

class WriteTreeTest : public ::testing::Test {
 protected:
  WriteTreeTest() {
    std::string name = (fs::temp_directory_path() / "vabi-sysfs-XXXXXX").string();
    dir_ = mkdtemp(name.data());
    tree_.Add("/sys/devices/x/uverbs0/dev", "231:192\n");
    tree_.AddLink("/sys/class/infiniband_verbs/uverbs0", "/sys/devices/x/uverbs0");
    tree_.Add("/sys/class/infiniband_verbs/abi_version", "6\n");
    tree_.AddUnreadable("/sys/devices/x/bad", EINVAL);
    tree_.AddDirectory("/sys/class/infiniband");
  }
  ~WriteTreeTest() override { fs::remove_all(dir_); }

  static std::string Read(const fs::path& path) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  fs::path dir_;
  Tree tree_;
};

TEST_F(WriteTreeTest, WritesFilesLinksAndEmptyFolders) {
  ASSERT_EQ(WriteTree(tree_, dir_ / "root"), "");
  EXPECT_EQ(Read(dir_ / "root/sys/class/infiniband_verbs/uverbs0/dev"), "231:192\n");
  EXPECT_EQ(fs::read_symlink(dir_ / "root/sys/class/infiniband_verbs/uverbs0"),
            "../../devices/x/uverbs0");
  EXPECT_TRUE(fs::is_directory(dir_ / "root/sys/class/infiniband"));
}

TEST_F(WriteTreeTest, MarksUnreadableFilesWithStickyBitAndTime) {
  ASSERT_EQ(WriteTree(tree_, dir_ / "root"), "");
  struct stat st;
  ASSERT_EQ(stat((dir_ / "root/sys/devices/x/bad").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 01444U);
  EXPECT_EQ(st.st_mtim.tv_sec, EINVAL);
  EXPECT_EQ(st.st_size, 0);
}

TEST_F(WriteTreeTest, RefusesARootThatExists) {
  ASSERT_EQ(WriteTree(tree_, dir_ / "root"), "");
  EXPECT_NE(WriteTree(tree_, dir_ / "root").find("File exists"), std::string::npos);
}

TEST_F(WriteTreeTest, EditsFollowLinks) {
  ApplyEdits({{"/sys/class/infiniband_verbs/uverbs0/dev", false, 0, "1:2"}}, &tree_);
  EXPECT_EQ(tree_.files().at("/sys/devices/x/uverbs0/dev").content, "1:2");
  ApplyEdits({{"/sys/class/infiniband_verbs/uverbs0/dev", false, EIO, ""}}, &tree_);
  EXPECT_EQ(tree_.files().at("/sys/devices/x/uverbs0/dev").read_errno, EIO);
  ApplyEdits({{"/sys/class/infiniband_verbs/abi_version", true, 0, ""}}, &tree_);
  EXPECT_EQ(tree_.files().count("/sys/class/infiniband_verbs/abi_version"), 0U);
  ApplyEdits({{"/sys/devices/x", true, 0, ""}}, &tree_);
  EXPECT_EQ(tree_.files().count("/sys/devices/x/uverbs0/dev"), 0U);
  EXPECT_EQ(tree_.files().count("/sys/class/infiniband_verbs/uverbs0"), 0U) << "a link to it";
}

TEST_F(WriteTreeTest, EqualTreesShareOneCopyAndOthersDoNot) {
  const Materialised first = Materialise(tree_, dir_ / "cache");
  ASSERT_EQ(first.error, "");
  EXPECT_EQ(Materialise(tree_, dir_ / "cache").root, first.root);
  Tree other = tree_;
  ApplyEdits({{"/sys/class/infiniband_verbs/abi_version", false, 0, "7\n"}}, &other);
  const Materialised second = Materialise(other, dir_ / "cache");
  ASSERT_EQ(second.error, "");
  EXPECT_NE(second.root, first.root);
  EXPECT_EQ(Read(first.root / "sys/class/infiniband_verbs/abi_version"), "6\n");
  EXPECT_EQ(Read(second.root / "sys/class/infiniband_verbs/abi_version"), "7\n");
}

TEST_F(WriteTreeTest, SaysWhichFileCannotBeWritten) {
  std::ofstream(dir_ / "file") << "x";
  EXPECT_NE(Materialise(tree_, dir_ / "file").error.find("file"), std::string::npos);
}

}  // namespace
}  // namespace vabi::sysfs
