// SPDX-License-Identifier: BSD-2-Clause
// What changes files must reach neither the machine's own devices nor the trees of worlds.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include <cerrno>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "shims/libc/preload_test_main.h"

namespace vabi::libc {
namespace {

constexpr char kNode[] = "/dev/infiniband/uverbs0";
constexpr char kNew[] = "/dev/infiniband/mine";
constexpr char kAbsent[] = "/dev/infiniband/uverbs7";
constexpr char kFile[] = "/sys/class/infiniband/mlx5_0/node_desc";
constexpr char kFolder[] = "/sys/class/infiniband/mlx5_0/ports";

int ErrorOf(int result) { return result == -1 ? errno : result; }

struct stat StatOf(const std::string& path) {
  struct stat st = {};
  EXPECT_EQ(lstat(path.c_str(), &st), 0) << path;
  return st;
}

using Call = std::function<int(const char* path)>;

// Owners, modes and times are root's to change in devtmpfs and sysfs: what would be different then
// is not modelled, and a read-only file system says so.
TEST(Changes, LooksOfTheWorldsFilesStay) {
  const struct timeval times[2] = {};
  const struct timespec precise[2] = {};
  const struct utimbuf seconds = {};
  const std::vector<std::pair<const char*, Call>> calls = {
      {"chmod", [](const char* path) { return chmod(path, 0600); }},
      {"fchmodat", [](const char* path) { return fchmodat(AT_FDCWD, path, 0600, 0); }},
      {"chown", [](const char* path) { return chown(path, 7, 7); }},
      {"lchown", [](const char* path) { return lchown(path, 7, 7); }},
      {"fchownat", [](const char* path) { return fchownat(AT_FDCWD, path, 7, 7, 0); }},
      {"utime", [&](const char* path) { return utime(path, &seconds); }},
      {"utimes", [&](const char* path) { return utimes(path, times); }},
      {"lutimes", [&](const char* path) { return lutimes(path, times); }},
      {"utimensat", [&](const char* path) { return utimensat(AT_FDCWD, path, precise, 0); }},
      {"setxattr", [](const char* path) { return setxattr(path, "user.a", "1", 1, 0); }},
      {"lsetxattr", [](const char* path) { return lsetxattr(path, "user.a", "1", 1, 0); }},
      {"removexattr", [](const char* path) { return removexattr(path, "user.a"); }},
      {"lremovexattr", [](const char* path) { return lremovexattr(path, "user.a"); }}};
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    for (const char* path : {kNode, kFile, kFolder}) {
      const struct stat before = StatOf(path);
      EXPECT_EQ(ErrorOf(call(path)), EROFS) << path;
      const struct stat after = StatOf(path);
      EXPECT_EQ(after.st_mode, before.st_mode) << path;
      EXPECT_EQ(after.st_uid, before.st_uid) << path;
      EXPECT_EQ(after.st_mtime, before.st_mtime) << path;
    }
    EXPECT_EQ(ErrorOf(call(kAbsent)), ENOENT);
  }
}

TEST(Changes, LooksStayByDescriptorToo) {
  const struct timeval times[2] = {};
  const struct timespec precise[2] = {};
  for (const char* path : {kNode, kFile, kFolder}) {
    SCOPED_TRACE(path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    const struct stat before = StatOf(path);
    EXPECT_EQ(ErrorOf(fchmod(fd, 0600)), EROFS);
    EXPECT_EQ(ErrorOf(fchown(fd, 7, 7)), EROFS);
    EXPECT_EQ(ErrorOf(futimes(fd, times)), EROFS);
    EXPECT_EQ(ErrorOf(futimens(fd, precise)), EROFS);
    const char* volatile none = nullptr;  // the descriptor itself; glibc's header says never
    EXPECT_EQ(ErrorOf(utimensat(fd, none, precise, 0)), EROFS);
    EXPECT_EQ(ErrorOf(fsetxattr(fd, "user.a", "1", 1, 0)), EROFS);
    EXPECT_EQ(ErrorOf(fremovexattr(fd, "user.a")), EROFS);
    const struct stat after = StatOf(path);
    EXPECT_EQ(after.st_mode, before.st_mode);
    EXPECT_EQ(after.st_uid, before.st_uid);
    EXPECT_EQ(after.st_mtime, before.st_mtime);
    close(fd);
  }
}

TEST(Changes, NodesAreNeitherMadeNorRemoved) {
  const int folder = open("/dev/infiniband", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(folder, 0);
  EXPECT_EQ(ErrorOf(unlink(kNode)), EROFS);
  EXPECT_EQ(ErrorOf(unlinkat(folder, "uverbs0", 0)), EROFS);
  EXPECT_EQ(ErrorOf(remove(kNode)), EROFS);
  EXPECT_EQ(ErrorOf(unlink(kAbsent)), ENOENT);
  EXPECT_EQ(ErrorOf(rename(kNode, kNew)), EROFS);
  EXPECT_EQ(ErrorOf(renameat(folder, "uverbs0", folder, "mine")), EROFS);
  EXPECT_EQ(ErrorOf(renameat2(folder, "uverbs7", folder, "mine", 0)), ENOENT);
  EXPECT_EQ(ErrorOf(link(kNode, kNew)), EROFS);
  EXPECT_EQ(ErrorOf(mknod(kNew, S_IFCHR | 0600, makedev(231, 200))), EROFS);
  EXPECT_EQ(ErrorOf(mknod(kNode, S_IFCHR | 0600, makedev(231, 200))), EEXIST);
  EXPECT_EQ(ErrorOf(mknodat(folder, "mine", S_IFCHR | 0600, makedev(231, 200))), EROFS);
  EXPECT_EQ(ErrorOf(mkdir(kNew, 0700)), EROFS);
  EXPECT_EQ(ErrorOf(mkdirat(folder, "mine", 0700)), EROFS);
  EXPECT_EQ(ErrorOf(mkdir("/dev/infiniband", 0700)), EEXIST);
  EXPECT_EQ(ErrorOf(mkfifo(kNew, 0700)), EROFS);
  EXPECT_EQ(ErrorOf(symlink(kNode, kNew)), EROFS);
  EXPECT_EQ(ErrorOf(symlinkat(kNode, folder, "mine")), EROFS);
  // fs/open.c: vfs_truncate
  EXPECT_EQ(ErrorOf(truncate(kNode, 0)), EINVAL);
  EXPECT_EQ(ErrorOf(truncate("/dev/infiniband", 0)), EISDIR);
  close(folder);
  struct stat st;
  EXPECT_EQ(lstat(kNode, &st), 0);
  EXPECT_EQ(lstat(kNew, &st), -1);
}

// fs/namei.c: may_create, may_delete; fs/kernfs/dir.c: kernfs_dir_iops offers none of it in sysfs.
TEST(Changes, SysfsOffersNoneEvenToRoot) {
  const std::string fresh = std::string(kFolder) + "/mine";
  EXPECT_EQ(ErrorOf(unlink(kFile)), EPERM);
  EXPECT_EQ(ErrorOf(unlink(kFolder)), EISDIR);
  EXPECT_EQ(ErrorOf(rmdir(kFolder)), EPERM);
  EXPECT_EQ(ErrorOf(rmdir(kFile)), ENOTDIR);
  EXPECT_EQ(ErrorOf(remove(kFolder)), EPERM);
  EXPECT_EQ(ErrorOf(mkdir(fresh.c_str(), 0700)), EPERM);
  EXPECT_EQ(ErrorOf(mkdir(kFolder, 0700)), EEXIST);
  EXPECT_EQ(ErrorOf(mknod(fresh.c_str(), S_IFREG | 0600, 0)), EPERM);
  EXPECT_EQ(ErrorOf(symlink("x", fresh.c_str())), EPERM);
  EXPECT_EQ(ErrorOf(rename(kFile, fresh.c_str())), EPERM);
  EXPECT_EQ(ErrorOf(link(kFile, fresh.c_str())), EPERM);
  EXPECT_EQ(ErrorOf(truncate(kFile, 0)), EROFS);
  struct stat st;
  EXPECT_EQ(lstat(kFile, &st), 0);
  EXPECT_EQ(lstat(fresh.c_str(), &st), -1);
}

TEST(Changes, NothingMovesBetweenTheWorldAndTheMachine) {
  const std::string own = ScratchDir() + "/own";
  FILE* file = std::fopen(own.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fclose(file);
  EXPECT_EQ(ErrorOf(rename(own.c_str(), kNew)), EXDEV);
  EXPECT_EQ(ErrorOf(rename(kNode, (own + "2").c_str())), EXDEV);
  EXPECT_EQ(ErrorOf(link(kNode, (own + "2").c_str())), EXDEV);
  EXPECT_EQ(ErrorOf(rename(kNode, kFile)), EXDEV);
}

TEST(Changes, TheMachinesOwnFilesChangeAsEver) {
  const std::string own = ScratchDir() + "/file", other = ScratchDir() + "/other";
  FILE* file = std::fopen(own.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fclose(file);
  EXPECT_EQ(chmod(own.c_str(), 0640), 0);
  EXPECT_EQ(StatOf(own).st_mode & 07777, 0640U);
  EXPECT_EQ(truncate(own.c_str(), 5), 0);
  EXPECT_EQ(StatOf(own).st_size, 5);
  EXPECT_EQ(rename(own.c_str(), other.c_str()), 0);
  EXPECT_EQ(link(other.c_str(), own.c_str()), 0);
  EXPECT_EQ(unlink(own.c_str()), 0);
  EXPECT_EQ(symlink(kNode, own.c_str()), 0) << "what it leads to is nobody's";
  EXPECT_EQ(lchown(own.c_str(), getuid(), getgid()), 0);
  EXPECT_EQ(ErrorOf(chmod(own.c_str(), 0600)), EROFS) << "this follows it";
  EXPECT_EQ(unlink(own.c_str()), 0);
  EXPECT_EQ(mkdir(own.c_str(), 0700), 0);
  EXPECT_EQ(remove(own.c_str()), 0);
  EXPECT_EQ(remove(other.c_str()), 0);
  EXPECT_EQ(ErrorOf(unlink(other.c_str())), ENOENT);
}

TEST(Changes, WhatIsNotModelledIsTold) {
  const std::string world = MakeWorld("changed", "debian-6.1.192");
  const auto ran =
      RunProgram({"/bin/chmod", "600", kNode}, Environment({"VERBS_ABI_WORLD=" + world}));
  EXPECT_NE(ran.output.find("Read-only file system"), std::string::npos) << ran.output;
  FILE* trace = std::fopen((ScratchDir() + "/changed.trace").c_str(), "r");
  ASSERT_NE(trace, nullptr);
  char line[4096];
  bool told = false;
  while (std::fgets(line, sizeof line, trace) != nullptr) {
    const std::string text = line;
    told |= text.find(R"("event":"unmodelled")") != std::string::npos &&
            text.find("chmod") != std::string::npos;
  }
  std::fclose(trace);
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace vabi::libc
