// SPDX-License-Identifier: BSD-2-Clause
// The preloaded library as a program sees it. What nodes and attribute files must look like was
// read on real kernels (see shims/sysfs); what calls must answer is the Linux interface.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "shims/libc/preload_test_main.h"

namespace vabi::libc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr char kNode[] = "/dev/infiniband/uverbs0";
constexpr char kDevice[] = "/sys/class/infiniband/mlx5_0";
constexpr char kRealDevice[] =
    "/sys/devices/pci0000:a0/0000:a0:01.0/0000:a1:00.0/infiniband/mlx5_0";
constexpr char kUnreadable[] = "/sys/class/infiniband_verbs/uverbs1/abi_version";
// _IOWR(RDMA_IOCTL_MAGIC, 1, struct ib_uverbs_ioctl_hdr) with its 24 bytes.
constexpr unsigned long kVerbsIoctl = 0xc0181b01;

std::string ReadFd(int fd) {
  char buffer[4096];
  const ssize_t size = read(fd, buffer, sizeof buffer);
  return size < 0 ? std::string("errno ") + std::to_string(errno)
                  : std::string(buffer, static_cast<size_t>(size));
}
std::string ReadPath(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::string("open errno ") + std::to_string(errno);
  const std::string text = ReadFd(fd);
  close(fd);
  return text;
}
std::set<std::string> List(DIR* dir) {
  std::set<std::string> names;
  while (const struct dirent* entry = readdir(dir)) {
    if (entry->d_name[0] != '.') names.insert(entry->d_name);
  }
  return names;
}
std::string Link(const std::string& path) {
  char buffer[4096];
  const ssize_t size = readlink(path.c_str(), buffer, sizeof buffer);
  return size < 0 ? "errno " + std::to_string(errno)
                  : std::string(buffer, static_cast<size_t>(size));
}
std::string FdLink(int fd) { return Link("/proc/self/fd/" + std::to_string(fd)); }
// A device file answers the RDMA ioctl, an ordinary one does not know it.
bool IsDevice(int fd) {
  char header[24] = {};
  return ioctl(fd, kVerbsIoctl, header) == -1 && errno != ENOTTY && errno != EBADF;
}
std::string Trace() {
  std::ifstream in(ScratchDir() + "/main.trace");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

constexpr char kRxe[] = "/dev/infiniband/uverbs1";

// A write() command of up to eight words behind its header, and its reply of as many.
struct Command {
  uint32_t command;
  uint16_t in_words, out_words;
  uint64_t response;
  uint32_t words[8];
};
bool Run(int fd, uint32_t command, std::initializer_list<uint32_t> words, uint32_t* reply,
         uint16_t reply_words) {
  Command request = {};
  request.command = command;
  request.in_words = static_cast<uint16_t>(4 + words.size());
  request.out_words = reply_words;
  request.response = reinterpret_cast<uintptr_t>(reply);
  std::copy(words.begin(), words.end(), request.words);
  const size_t size = 4 * static_cast<size_t>(request.in_words);
  return write(fd, &request, size) == static_cast<ssize_t>(size);
}
// GET_CONTEXT of rxe: the async event file.
int GetContext(int fd) {
  uint32_t reply[2] = {};
  return Run(fd, 0, {}, reply, 2) ? static_cast<int>(reply[0]) : -1;
}
int CreateChannel(int fd) {
  uint32_t reply[1] = {};
  return Run(fd, 17, {}, reply, 1) ? static_cast<int>(reply[0]) : -1;
}
// CREATE_CQ of rxe, whose reply ends in the place to map: the queue, or MAP_FAILED.
void* CreateMappedCq(int fd) {
  struct {
    uint32_t handle, cqe;
    uint64_t offset;
    uint32_t size, pad;
  } reply = {};
  // user_handle, cqe, comp_vector, comp_channel, reserved
  if (!Run(fd, 18, {0, 0, 16, 0, ~0U, 0}, reinterpret_cast<uint32_t*>(&reply), 6)) {
    return MAP_FAILED;
  }
  return mmap(nullptr, reply.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
              static_cast<off_t>(reply.offset));
}
int InChild(const std::function<int()>& run) {
  const pid_t child = fork();
  if (child == 0) _exit(run());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(Nodes, LookLikeCharacterDevicesToEveryStat) {
  struct stat st;
  struct statx sx;
  ASSERT_EQ(stat(kNode, &st), 0);
  EXPECT_EQ(st.st_mode, static_cast<mode_t>(S_IFCHR | 0666));
  EXPECT_EQ(st.st_rdev, makedev(231, 192));
  EXPECT_EQ(st.st_uid, 0U);
  ASSERT_EQ(lstat(kNode, &st), 0);
  EXPECT_EQ(st.st_rdev, makedev(231, 192));
  ASSERT_EQ(stat("/dev/char/231:193", &st), 0);
  EXPECT_EQ(st.st_rdev, makedev(231, 193));
  ASSERT_EQ(lstat("/dev/char/231:193", &st), 0);
  EXPECT_TRUE(S_ISLNK(st.st_mode));
  ASSERT_EQ(statx(AT_FDCWD, kNode, 0, STATX_BASIC_STATS, &sx), 0);
  EXPECT_EQ(sx.stx_mode, S_IFCHR | 0666);
  EXPECT_EQ(sx.stx_rdev_major, 231U);
  EXPECT_EQ(sx.stx_rdev_minor, 192U);
  const int dir = open("/dev/infiniband", O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(fstatat(dir, "uverbs1", &st, 0), 0);
  EXPECT_EQ(st.st_rdev, makedev(231, 193));
  close(dir);
  EXPECT_EQ(stat("/dev/infiniband/uverbs7", &st), -1);
  EXPECT_EQ(errno, ENOENT);
  // Programs built before glibc 2.33.
  const auto old =
      reinterpret_cast<int (*)(int, const char*, struct stat*)>(dlsym(RTLD_DEFAULT, "__xstat"));
  ASSERT_NE(old, nullptr);
  ASSERT_EQ(old(1, kNode, &st), 0);
  EXPECT_EQ(st.st_rdev, makedev(231, 192));
}

TEST(Nodes, OpenAsDevices) {
  const int fd = open(kNode, O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  struct stat st;
  ASSERT_EQ(fstat(fd, &st), 0);
  EXPECT_TRUE(S_ISCHR(st.st_mode));
  EXPECT_EQ(st.st_rdev, makedev(231, 192));
  EXPECT_EQ(FdLink(fd), kNode);
  EXPECT_TRUE(IsDevice(fd));
  EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  EXPECT_EQ(lseek(fd, 0, SEEK_SET), -1);
  EXPECT_EQ(errno, ESPIPE);
  close(fd);
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
  EXPECT_EQ(open(kNode, O_RDWR | O_DIRECTORY), -1);
  EXPECT_EQ(errno, ENOTDIR);
  EXPECT_EQ(open("/dev/infiniband/uverbs7", O_RDWR), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST(Nodes, AreListed) {
  DIR* dir = opendir("/dev/infiniband");
  ASSERT_NE(dir, nullptr);
  std::set<std::string> devices;
  while (const struct dirent* entry = readdir(dir)) {
    if (entry->d_type == DT_CHR) devices.insert(entry->d_name);
  }
  closedir(dir);
  EXPECT_THAT(devices,
              UnorderedElementsAre("uverbs0", "uverbs1", "umad0", "umad1", "issm0", "rdma_cm"));
  dir = opendir("/dev/char");
  EXPECT_THAT(List(dir),
              UnorderedElementsAre("231:192", "231:193", "231:0", "231:1", "231:64", "10:256"));
  closedir(dir);
}

// core/rdma_core.c:alloc_begin_fd_uobject: event files are opened O_RDONLY, and
// uverbs_main.c:ib_uverbs_event_poll knows nothing of writing.
TEST(Nodes, EventFilesAreForReadingOnly) {
  const int fd = open(kRxe, O_RDWR);
  ASSERT_GE(fd, 0);
  const int events = GetContext(fd);
  ASSERT_GE(events, 0);
  EXPECT_EQ(fcntl(events, F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(write(events, "12345678", 8), -1);
  EXPECT_EQ(errno, EBADF);
  struct iovec nothing = {nullptr, 0};
  EXPECT_EQ(writev(events, &nothing, 1), -1);
  EXPECT_EQ(errno, EBADF);
  struct pollfd both[2] = {{events, POLLIN | POLLOUT, -1}, {fd, POLLOUT, 0}};
  EXPECT_EQ(poll(both, 1, 0), 0);
  EXPECT_EQ(both[0].revents, 0);
  const struct timespec none = {};
  EXPECT_EQ(ppoll(both, 2, &none, nullptr), 1) << "the device itself can always be written to";
  EXPECT_EQ(both[0].revents, 0);
  EXPECT_EQ(both[1].revents, POLLOUT);
  fd_set in, out;
  FD_ZERO(&in);
  FD_ZERO(&out);
  FD_SET(events, &in);
  FD_SET(events, &out);
  struct timeval at_once = {};
  EXPECT_EQ(select(events + 1, &in, &out, nullptr, &at_once), 0);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {};
  event.events = EPOLLIN | EPOLLOUT;
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, events, &event), 0);
  EXPECT_EQ(epoll_wait(epoll, &event, 1, 0), 0);
  EXPECT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), -1);
  EXPECT_EQ(errno, EPERM) << "fs/eventpoll.c: uverbs_fops has no poll";
  close(epoll);
  close(events);
  close(fd);
}

TEST(Sysfs, FilesLookLikeAttributes) {
  struct stat st;
  const std::string state = std::string(kDevice) + "/ports/1/state";
  ASSERT_EQ(stat(state.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode, static_cast<mode_t>(S_IFREG | 0444));
  EXPECT_EQ(st.st_size, 4096);
  EXPECT_EQ(st.st_uid, 0U);
  const int fd = open(state.c_str(), O_RDONLY);
  ASSERT_EQ(fstat(fd, &st), 0);
  EXPECT_EQ(st.st_size, 4096);
  EXPECT_EQ(ReadFd(fd), "4: ACTIVE\n");
  EXPECT_EQ(FdLink(fd), std::string(kRealDevice) + "/ports/1/state");
  close(fd);
  // The number goes to a file that is none of ours.
  ASSERT_EQ(open("/dev/null", O_RDONLY), fd);
  ASSERT_EQ(fstat(fd, &st), 0);
  EXPECT_TRUE(S_ISCHR(st.st_mode));
  close(fd);
}

TEST(Sysfs, NobodyWritesWhatHasNoStore) {
  EXPECT_EQ(open("/sys/class/infiniband/mlx5_0/ports/1/state", O_WRONLY), -1);
  EXPECT_EQ(errno, EACCES);
  EXPECT_EQ(open("/sys/class/infiniband/mlx5_0/new", O_WRONLY | O_CREAT, 0644), -1);
  EXPECT_EQ(errno, EACCES);
  EXPECT_EQ(fopen("/sys/class/infiniband/mlx5_0/ports/1/state", "w"), nullptr);
  EXPECT_EQ(errno, EACCES);
}

// fs/kernfs/file.c, fs/namei.c:do_open, vfs_tmpfile, fs/open.c:do_dentry_open; seen on 6.18 with
// /sys/class/net/lo
TEST(Sysfs, OpensAndMapsAsKernfsDoes) {
  const std::string file = std::string(kDevice) + "/ports/1/state";
  const auto open_error = [](const char* path, int flags) {
    const int fd = open(path, flags, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0 ? 0 : errno;
  };
  EXPECT_EQ(open_error(file.c_str(), O_RDONLY | O_CREAT), 0);
  EXPECT_EQ(open_error(file.c_str(), O_RDONLY | O_CREAT | O_EXCL), EEXIST);
  EXPECT_EQ(open_error(file.c_str(), O_RDONLY | O_DIRECT), EINVAL);
  EXPECT_EQ(open_error(kDevice, O_RDONLY | O_CREAT), EISDIR);
  EXPECT_EQ(open_error(kDevice, O_RDWR | O_TMPFILE), EOPNOTSUPP);
  EXPECT_EQ(open_error(kNode, O_RDWR | O_DIRECT), EINVAL);
  const int folder = open(kDevice, O_RDONLY | O_DIRECTORY);
  EXPECT_EQ(openat(folder, "", O_RDONLY), -1);
  EXPECT_EQ(errno, ENOENT);
  close(folder);
  const int fd = open(file.c_str(), O_RDONLY);
  for (const int kind : {MAP_SHARED, MAP_PRIVATE}) {
    EXPECT_EQ(mmap(nullptr, 4096, PROT_READ, kind, fd, 0), MAP_FAILED);
    EXPECT_EQ(errno, ENODEV);
  }
  close(fd);
}

// The trees are kept from run to run.
TEST(Sysfs, IsNotChangedByStreamsAndNewFiles) {
  const std::string file = std::string(kDevice) + "/ports/1/state";
  FILE* stream = fopen("/dev/null", "r");
  EXPECT_EQ(freopen(file.c_str(), "w", stream), nullptr);
  EXPECT_EQ(errno, EACCES);
  const int fd = open(file.c_str(), O_RDONLY | O_TRUNC);
  EXPECT_EQ(ReadFd(fd), "4: ACTIVE\n");
  close(fd);
  constexpr char kNew[] = "/dev/infiniband/new";
  EXPECT_EQ(open(kNew, O_RDWR | O_CREAT, 0600), -1);
  EXPECT_EQ(errno, EROFS);
  EXPECT_EQ(creat(kNew, 0600), -1);
  EXPECT_EQ(errno, EROFS);
  EXPECT_EQ(fopen(kNew, "w"), nullptr);
  EXPECT_EQ(errno, EROFS);
  EXPECT_EQ(fopen(kNew, "r"), nullptr);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(open("/dev/infiniband", O_RDWR | O_TMPFILE, 0600), -1);
  EXPECT_EQ(errno, EROFS);
  EXPECT_EQ(access(kNew, F_OK), -1);
}

// include/uapi/linux/magic.h: by it libudev and systemd know sysfs.
TEST(Sysfs, TellsItsKind) {
  const std::string file = std::string(kDevice) + "/ports/1/state";
  struct statfs by_path, by_number;
  for (const auto& [path, kind] : {std::pair<std::string, long>{file, 0x62656572},
                                   {kDevice, 0x62656572},
                                   {kNode, 0x01021994},
                                   {"/dev/infiniband", 0x01021994}}) {
    SCOPED_TRACE(path);
    const int fd = open(path.c_str(), O_RDONLY);
    ASSERT_EQ(statfs(path.c_str(), &by_path), 0);
    ASSERT_EQ(fstatfs(fd, &by_number), 0);
    EXPECT_EQ(static_cast<long>(by_path.f_type), kind);
    EXPECT_EQ(static_cast<long>(by_number.f_type), kind);
    close(fd);
  }
}

TEST(Sysfs, AFileWhoseReadFailsOpens) {
  const int fd = open(kUnreadable, O_RDONLY);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(ReadFd(fd), "errno 5");
  char byte;
  EXPECT_EQ(pread(fd, &byte, 1, 0), -1);
  EXPECT_EQ(errno, EIO);
  struct stat st;
  ASSERT_EQ(fstat(fd, &st), 0);
  EXPECT_EQ(st.st_mode, static_cast<mode_t>(S_IFREG | 0444));
  ASSERT_EQ(stat(kUnreadable, &st), 0);
  EXPECT_EQ(st.st_mode, static_cast<mode_t>(S_IFREG | 0444));
  close(fd);
  FILE* stream = fopen(kUnreadable, "r");
  ASSERT_NE(stream, nullptr);
  char line[16];
  EXPECT_EQ(fgets(line, sizeof line, stream), nullptr);
  EXPECT_EQ(errno, EIO);
  EXPECT_TRUE(ferror(stream));
  fclose(stream);
}

TEST(Sysfs, StreamsReadIt) {
  FILE* stream = fopen("/sys/class/infiniband_verbs/abi_version", "r");
  ASSERT_NE(stream, nullptr);
  int version = 0;
  EXPECT_EQ(fscanf(stream, "%d", &version), 1);
  EXPECT_EQ(version, 6);
  fclose(stream);
}

TEST(Paths, NeverShowWhereThingsStand) {
  char* path = realpath(kDevice, nullptr);
  EXPECT_STREQ(path, kRealDevice);
  free(path);
  path = canonicalize_file_name("/dev/char/231:192");
  EXPECT_STREQ(path, kNode);
  free(path);
  EXPECT_EQ(Link(kDevice), "../../devices/pci0000:a0/0000:a0:01.0/0000:a1:00.0/infiniband/mlx5_0");
  EXPECT_EQ(Link(kNode), "errno " + std::to_string(EINVAL));
  EXPECT_EQ(realpath("/sys/class/infiniband/none", nullptr), nullptr);
  EXPECT_EQ(errno, ENOENT);

  char before[4096];
  ASSERT_NE(getcwd(before, sizeof before), nullptr);
  ASSERT_EQ(chdir(kDevice), 0);
  char now[4096];
  EXPECT_STREQ(getcwd(now, sizeof now), kRealDevice);
  EXPECT_EQ(Link("/proc/self/cwd"), kRealDevice);
  EXPECT_EQ(ReadPath("ports/1/link_layer"), "InfiniBand\n");
  EXPECT_EQ(ReadPath("device/vendor"), "0x15b3\n");
  EXPECT_EQ(getcwd(now, 4), nullptr);
  EXPECT_EQ(errno, ERANGE);
  ASSERT_EQ(chdir(before), 0);
  EXPECT_STREQ(getcwd(now, sizeof now), before);
}

TEST(Paths, AreUnderstoodInEverySpelling) {
  EXPECT_EQ(ReadPath("//sys/./class//infiniband/mlx5_0/ports/1/state"), "4: ACTIVE\n");
  EXPECT_EQ(ReadPath("/sys/class/net/../infiniband/mlx5_0/ports/1/state"), "4: ACTIVE\n");
  // Through the link and up from where it leads, as the kernel walks.
  EXPECT_EQ(ReadPath("/sys/class/infiniband/mlx5_0/../../vendor"), "0x15b3\n");
  if (access("/sys/class", F_OK) != 0) GTEST_SKIP() << "the machine itself has no /sys here";
  const int top = open("/sys/class", O_RDONLY | O_DIRECTORY);
  ASSERT_GE(top, 0);
  const int file = openat(top, "infiniband/mlx5_0/ports/1/state", O_RDONLY);
  EXPECT_EQ(ReadFd(file), "4: ACTIVE\n");
  const int device = openat(top, "infiniband/mlx5_0", O_RDONLY | O_DIRECTORY);
  const int again = openat(device, "../../../../../../class/infiniband/rxe0/parent", O_RDONLY);
  EXPECT_GE(again, 0) << strerror(errno);
  for (int fd : {top, file, device, again}) close(fd);
  char before[4096];
  ASSERT_NE(getcwd(before, sizeof before), nullptr);
  ASSERT_EQ(chdir("/"), 0);
  EXPECT_EQ(ReadPath("sys/class/infiniband/mlx5_0/ports/1/state"), "4: ACTIVE\n");
  ASSERT_EQ(chdir("/dev"), 0);
  struct stat st;
  EXPECT_EQ(stat("infiniband/uverbs0", &st), 0);
  ASSERT_EQ(chdir(before), 0);
}

TEST(Paths, OutOfTheWorldAgain) {
  if (access("/sys/class", F_OK) != 0) GTEST_SKIP() << "the machine itself has no /sys here";
  struct stat inside, machine;
  ASSERT_EQ(stat("/sys/class/infiniband/..", &inside), 0);
  ASSERT_EQ(stat("/sys/class", &machine), 0);
  EXPECT_EQ(inside.st_ino, machine.st_ino);
}

TEST(Paths, TheLauncherMayRedirectFurtherOnes) {
  EXPECT_EQ(ReadPath("/verbs-abi/nowhere/dir/file"), "elsewhere\n");
  char* path = realpath("/verbs-abi/nowhere/dir/../dir", nullptr);
  EXPECT_STREQ(path, "/verbs-abi/nowhere/dir");
  free(path);
  EXPECT_EQ(access("/verbs-abi/nowhere/none", F_OK), -1);
}

int g_visited;
std::string g_visits;
int Visit(const char* path, const struct stat*, int, struct FTW* more) {
  ++g_visited;
  g_visits += std::string(path) + "|" + (path + more->base) + "\n";
  return 0;
}

TEST(Folders, AreWalkedAndMatchedUnderTheirOwnNames) {
  struct dirent** list = nullptr;
  ASSERT_EQ(scandir("/sys/class/infiniband", &list, nullptr, alphasort), 4);
  EXPECT_STREQ(list[2]->d_name, "mlx5_0");
  for (int i = 0; i < 4; ++i) free(list[i]);
  free(list);

  glob_t found = {};
  ASSERT_EQ(glob("/sys/class/infiniband/*/ports/1/state", 0, nullptr, &found), 0);
  ASSERT_EQ(found.gl_pathc, 2U);
  EXPECT_STREQ(found.gl_pathv[0], "/sys/class/infiniband/mlx5_0/ports/1/state");
  globfree(&found);

  ASSERT_EQ(nftw("/sys/class/infiniband_verbs", Visit, 8, FTW_PHYS), 0);
  EXPECT_EQ(g_visited, 4);
  EXPECT_THAT(g_visits, HasSubstr("/sys/class/infiniband_verbs/uverbs0|uverbs0\n"));
  EXPECT_THAT(g_visits, Not(HasSubstr(ScratchDir())));
}

TEST(Errno, StaysWhenACallSucceeds) {
  errno = 77;
  struct stat st;
  stat(kNode, &st);
  const int fd = open(kNode, O_RDWR);
  const int sysfs = open("/sys/class/infiniband_verbs/abi_version", O_RDONLY);
  char byte[8];
  EXPECT_GT(read(sysfs, byte, sizeof byte), 0);
  DIR* dir = opendir("/dev/infiniband");
  readdir(dir);
  closedir(dir);
  close(sysfs);
  close(fd);
  const int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 20);
  close(netlink);
  EXPECT_EQ(errno, 77);
}

TEST(Descriptors, OfOneFileShareIt) {
  const int first = open(kNode, O_RDWR);
  const int second = dup(first);
  const int third = fcntl(first, F_DUPFD_CLOEXEC, 100);
  EXPECT_GE(third, 100);
  EXPECT_TRUE(fcntl(third, F_GETFD) & FD_CLOEXEC);
  const int null = open("/dev/null", O_RDWR);
  ASSERT_EQ(dup2(first, null), null);
  close(first);
  for (int fd : {second, third, null}) EXPECT_TRUE(IsDevice(fd)) << fd;
  // Over a device: the device is gone from that number.
  const int zero = open("/dev/zero", O_RDONLY);
  ASSERT_EQ(dup3(zero, second, O_CLOEXEC), second);
  EXPECT_FALSE(IsDevice(second));
  EXPECT_EQ(FdLink(second), "/dev/zero");
  close_range(static_cast<unsigned>(third), static_cast<unsigned>(third), 0);
  EXPECT_EQ(fcntl(third, F_GETFD), -1);
  EXPECT_TRUE(IsDevice(null));
  for (int fd : {second, null, zero}) close(fd);
  EXPECT_EQ(open("/dev/null", O_RDONLY), first) << "numbers are free again";
  EXPECT_FALSE(IsDevice(first));
  close(first);
}

TEST(Processes, AChildHasTheFilesOfItsParent) {
  const int fd = open(kNode, O_RDWR);
  const pid_t child = fork();
  if (child == 0) {
    const bool works = IsDevice(fd) && FdLink(fd) == kNode;
    close(fd);
    _exit(works ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(IsDevice(fd)) << "the child's close is not the parent's";
  close(fd);
}

// Python's subprocess closes everything between vfork and exec.
TEST(Processes, AChildInTheParentsMemoryClosesOnlyItsOwnDescriptors) {
  const int fd = open(kNode, O_RDWR);
  const int null = open("/dev/null", O_RDWR);
  const pid_t child = vfork();
  if (child == 0) {
    close(fd);
    dup2(fd + 1, null);
    close_range(3, 1000, 0);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(IsDevice(fd));
  EXPECT_FALSE(IsDevice(null));
  close(fd);
  close(null);
}

// uverbs compares credentials by identity: core/uverbs_main.c:ib_safe_file_access.
TEST(Processes, NewCredentialsMayNotWriteToOldFiles) {
  const int fd = open(kNode, O_RDWR);
  char header[8] = {};
  EXPECT_EQ(write(fd, header, 4), -1);
  EXPECT_EQ(errno, EINVAL);
  ASSERT_EQ(seteuid(geteuid()), 0);
  EXPECT_EQ(write(fd, header, 4), -1);
  EXPECT_EQ(errno, EACCES);
  close(fd);
}

TEST(Processes, ProgramsStartedWithoutEnvironmentStayInTheWorld) {
  const std::vector<std::string> cat = {"/bin/cat", "/sys/class/infiniband_verbs/uverbs0/ibdev"};
  EXPECT_EQ(RunProgram(cat, {}).output, "mlx5_0\n");
  EXPECT_EQ(RunProgram(cat, {"LD_PRELOAD=" VABI_SHIM}).output, "mlx5_0\n");
  EXPECT_EQ(RunProgram({"/bin/sh", "-c", "exec cat " + cat[1]}, {"PATH=/bin"}).output, "mlx5_0\n");
}

TEST(Processes, ProgramsThatClearTheirEnvironmentStayInTheWorld) {
  const Ran ran =
      RunProgram({"/usr/bin/env", "-i", "/bin/cat", "/sys/class/infiniband_verbs/uverbs0/ibdev"},
                 Environment({}));
  EXPECT_EQ(ran.output, "mlx5_0\n");
}

TEST(Processes, SpawnedProgramsStayInTheWorld) {
  const std::string out = ScratchDir() + "/spawned";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  char* argv[] = {const_cast<char*>("cat"),
                  const_cast<char*>("/sys/class/infiniband_verbs/uverbs0/ibdev"), nullptr};
  char* none[] = {nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawnp(&child, "cat", &actions, nullptr, argv, none), 0);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ReadPath(out.c_str()), "mlx5_0\n");
  EXPECT_EQ(posix_spawnp(&child, "no-such-program", &actions, nullptr, argv, none), ENOENT);
  posix_spawn_file_actions_destroy(&actions);
  FILE* pipe = popen("cat /sys/class/infiniband_verbs/uverbs0/ibdev", "r");
  char line[32] = {};
  fgets(line, sizeof line, pipe);
  pclose(pipe);
  EXPECT_STREQ(line, "mlx5_0\n");
}

// A userland with a C library of its own: every program runs through its loader, scripts'
// interpreters too.
TEST(Processes, RunThroughTheLoaderOfTheUserland) {
  const std::string loader = "VERBS_ABI_LOADER=/lib64/ld-linux-x86-64.so.2";
  const std::string script = ScratchDir() + "/script";
  std::ofstream(script)
      << "#! /bin/sh -e\necho \"$0 $1\"\nexec tr '\\0' ' ' < /proc/self/cmdline\n";
  ASSERT_EQ(chmod(script.c_str(), 0755), 0);
  // This process itself does not run through it, but starts others that do.
  setenv("VERBS_ABI_LOADER", "/lib64/ld-linux-x86-64.so.2", 1);
  const Ran direct = RunProgram({"/bin/cat", "/proc/self/cmdline"}, {});
  const Ran scripted = RunProgram({script, "argument"}, {"PATH=/bin:/usr/bin"});
  unsetenv("VERBS_ABI_LOADER");
  EXPECT_THAT(direct.output, HasSubstr("ld-linux-x86-64.so.2"));
  EXPECT_THAT(direct.output, HasSubstr("--preload"));
  EXPECT_THAT(scripted.output, HasSubstr(script + " argument\n"));
  EXPECT_THAT(scripted.output, HasSubstr("--argv0 tr ")) << "what the script starts, too";
  EXPECT_EQ(scripted.status, 0);
}

TEST(Worlds, ThatDoNotFitEndTheProgramWithOneLine) {
  const Ran absent = RunProgram({"/bin/true"}, Environment({"VERBS_ABI_WORLD=/nonexistent/world"}));
  EXPECT_EQ(absent.status, 2);
  EXPECT_THAT(absent.output, HasSubstr("/nonexistent/world"));
  EXPECT_EQ(std::count(absent.output.begin(), absent.output.end(), '\n'), 1);
  const std::string broken = ScratchDir() + "/broken";
  std::ofstream(broken) << "not a world";
  EXPECT_EQ(RunProgram({"/bin/true"}, Environment({"VERBS_ABI_WORLD=" + broken})).status, 2);
  std::string bytes;
  {
    std::ifstream in(std::getenv("VERBS_ABI_WORLD"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  bytes[8] = static_cast<char>(bytes[8] + 1);  // the tables' digest
  std::ofstream(broken, std::ios::binary) << bytes;
  const Ran other = RunProgram({"/bin/true"}, Environment({"VERBS_ABI_WORLD=" + broken}));
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.output, HasSubstr("another build"));
}

TEST(Worlds, TellWhatEachProcessHasLoaded) {
  const std::string told = ScratchDir() + "/mapped";
  const auto environment = Environment({"VERBS_ABI_MAPPED=" + told});
  ASSERT_EQ(RunProgram({"/bin/true"}, Environment({})).status, 0);
  EXPECT_FALSE(std::filesystem::exists(told));
  // One starts another with nothing left of its environment.
  ASSERT_EQ(RunProgram({"/usr/bin/env", "-i", "/bin/sh", "-c", "/bin/true; :"}, environment).status,
            0);
  std::ifstream in(told);
  std::map<std::string, std::set<std::string>> files;
  for (std::string pid, path; in >> pid >> path;) {
    files[pid].insert(path.substr(path.rfind('/') + 1));
  }
  EXPECT_EQ(files.size(), 2u);
  for (const auto& [pid, names] : files) {
    EXPECT_TRUE(names.contains("libverbs_abi_shim.so")) << pid;
    EXPECT_TRUE(names.contains("libc.so.6")) << pid;
  }
}

TEST(Worlds, TellWhatWasLoadedLater) {
  const std::string told = ScratchDir() + "/mapped-later";
  setenv("VERBS_ABI_MAPPED", told.c_str(), 1);
  void* library = dlopen("libresolv.so.2", RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const int fd = open(kNode, O_RDWR | O_CLOEXEC);
  close(fd);
  dlclose(library);
  unsetenv("VERBS_ABI_MAPPED");
  std::ifstream in(told);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  EXPECT_THAT(text, HasSubstr("/libresolv.so.2\n"));
}

TEST(Worlds, AreOptional) {
  const auto bare = Environment({"VERBS_ABI_WORLD=", "VERBS_ABI_REDIRECT="});
  EXPECT_NE(RunProgram({"/bin/ls", "/sys/class/infiniband/mlx5_0"}, bare).status, 0);
  EXPECT_EQ(RunProgram({"/bin/ls", "/sys/class/infiniband/mlx5_0"}, Environment({})).status, 0);
}

TEST(Worlds, HaveAUserOfTheirOwn) {
  const std::string world = MakeWorld("user", "debian-6.12.117", {"cdev-mode@mlx5_0=0600"});
  const auto environment = Environment({"VERBS_ABI_WORLD=" + world});
  EXPECT_NE(RunProgram({"/usr/bin/test", "-w", kNode}, environment).status, 0);
  EXPECT_EQ(RunProgram({"/usr/bin/test", "-w", "/dev/infiniband/uverbs1"}, environment).status, 0);
  EXPECT_EQ(RunProgram({"/usr/bin/test", "-w", kNode}, Environment({})).status, 0);
  const Ran listed = RunProgram({"/bin/ls", "-l", kNode}, environment);
  EXPECT_THAT(listed.output, HasSubstr("crw-------"));
}

// A world with a script has one tree for each stage, and a link to the one that is now.
TEST(Worlds, FollowWhatHappensToTheirDevices) {
  const std::string world =
      MakeWorld("staged", "debian-6.12.117", {"event=PORT_ERR@999s", "unplug@999s"});
  const auto environment = Environment({"VERBS_ABI_WORLD=" + world});
  const std::string folder = world.substr(0, world.rfind('/'));
  const std::string port = std::string(kDevice) + "/ports/1/";
  const auto cat = [&](const std::string& path) {
    return RunProgram({"/bin/cat", path}, environment).output;
  };
  const auto turn = [&](const char* stage) {
    std::filesystem::remove(folder + "/tree");
    std::filesystem::create_symlink(std::string("tree.") + stage, folder + "/tree");
  };
  EXPECT_EQ(cat(port + "state"), "4: ACTIVE\n");
  EXPECT_EQ(RunProgram({"/usr/bin/realpath", kDevice}, environment).output,
            "/sys/devices/pci0000:a0/0000:a0:01.0/0000:a1:00.0/infiniband/mlx5_0\n")
      << "nobody sees where things stand";
  EXPECT_EQ(RunProgram({"/bin/sh", "-c", "cd " + port + " && /bin/pwd -P && cat ../../node_type"},
                       environment)
                .output,
            "/sys/devices/pci0000:a0/0000:a0:01.0/0000:a1:00.0/infiniband/mlx5_0/ports/1\n1: CA\n");
  turn("d-");
  EXPECT_EQ(cat(port + "state"), "1: DOWN\n");
  EXPECT_EQ(cat(port + "phys_state"), "3: Disabled\n");
  turn("x-");
  EXPECT_EQ(RunProgram({"/bin/ls", "/sys/class/infiniband"}, environment).output, "rxe0\n");
  EXPECT_NE(RunProgram({"/usr/bin/test", "-e", kNode}, environment).status, 0);
  turn("--");
  EXPECT_EQ(RunProgram({"/usr/bin/test", "-e", kNode}, environment).status, 0);
}

// util/open_cdev.c:open_cdev_robust, with an hour instead of its five seconds.
TEST(Time, PassesAtOnceWhenWaitingForANode) {
  const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  ASSERT_GE(inotify_add_watch(watch, "/dev/char/", IN_CREATE), 0);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  struct itimerspec hour = {};
  hour.it_value.tv_sec = 3600;
  ASSERT_EQ(timerfd_settime(timer, 0, &hour, nullptr), 0);
  struct pollfd fds[2] = {{watch, POLLIN, 0}, {timer, POLLIN, 0}};
  EXPECT_EQ(poll(fds, 2, -1), 1);
  EXPECT_EQ(fds[1].revents, POLLIN);
  close(watch);
  close(timer);
}

TEST(Time, OtherWaitsAreTheProgramsOwn) {
  const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  ASSERT_GE(inotify_add_watch(watch, ScratchDir().c_str(), IN_CREATE), 0);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  struct itimerspec hour = {};
  hour.it_value.tv_sec = 3600;
  timerfd_settime(timer, 0, &hour, nullptr);
  struct pollfd fds[2] = {{watch, POLLIN, 0}, {timer, POLLIN, 0}};
  EXPECT_EQ(poll(fds, 2, 0), 0);
  struct itimerspec left = {};
  timerfd_gettime(timer, &left);
  EXPECT_GT(left.it_value.tv_sec, 3000);
  close(watch);
  close(timer);
}

TEST(Sockets, OfRdmaNetlinkAnswer) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 20);
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  struct sockaddr_nl name = {};
  name.nl_family = AF_NETLINK;
  ASSERT_EQ(bind(fd, reinterpret_cast<struct sockaddr*>(&name), sizeof name), 0);
  struct nlmsghdr get = {sizeof get, 0x1401, NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH, 1, 0};
  ASSERT_EQ(send(fd, &get, sizeof get, 0), static_cast<ssize_t>(sizeof get));
  struct pollfd ready = {fd, POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 1);
  char answer[4096];
  struct sockaddr_nl from = {};
  socklen_t length = sizeof from;
  EXPECT_GT(
      recvfrom(fd, answer, sizeof answer, 0, reinterpret_cast<struct sockaddr*>(&from), &length),
      0);
  EXPECT_EQ(length, sizeof from);
  EXPECT_EQ(from.nl_family, AF_NETLINK);
  close(fd);
  const int route = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  EXPECT_GE(route, 0) << "other families are the machine's";
  close(route);
}

// net/netlink/af_netlink.c:netlink_ops (sock_no_shutdown): it goes on as if nobody had asked.
TEST(Sockets, OfRdmaNetlinkCannotBeShutDown) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 20);
  EXPECT_EQ(shutdown(fd, SHUT_RDWR), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  struct nlmsghdr get = {sizeof get, 0x1401, NLM_F_REQUEST | NLM_F_DUMP, 1, 0};
  ASSERT_EQ(send(fd, &get, sizeof get, 0), static_cast<ssize_t>(sizeof get));
  char answer[4096];
  EXPECT_GT(recv(fd, answer, sizeof answer, MSG_DONTWAIT), 0);
  close(fd);
}

// net/socket.c:do_recvmmsg, __sys_sendmmsg
TEST(Sockets, TakeAndGiveManyMessages) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 20);
  struct nlmsghdr get = {sizeof get, 0x1401, NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH, 1, 0};
  struct iovec part = {&get, sizeof get};
  struct mmsghdr sent[2] = {};
  sent[0].msg_hdr.msg_iov = &part;
  sent[0].msg_hdr.msg_iovlen = 1;
  sent[1].msg_hdr.msg_iovlen = 1025;  // UIO_MAXIOV: the second is refused
  EXPECT_EQ(sendmmsg(fd, sent, 2, 0), 1);
  EXPECT_EQ(sent[0].msg_len, sizeof get);
  EXPECT_EQ(sendmmsg(fd, sent + 1, 1, 0), -1);
  EXPECT_EQ(errno, EMSGSIZE);
  char answers[4][4096];
  struct iovec parts[4];
  struct mmsghdr got[4] = {};
  for (int i = 0; i < 4; ++i) {
    parts[i] = {answers[i], sizeof answers[i]};
    got[i].msg_hdr.msg_iov = &parts[i];
    got[i].msg_hdr.msg_iovlen = 1;
  }
  // Each device in a message of its own (core/device.c:ib_enum_all_devs), and the end.
  ASSERT_EQ(recvmmsg(fd, got, 4, MSG_WAITFORONE, nullptr), 3);
  const auto type = [&](int i) {
    return reinterpret_cast<const struct nlmsghdr*>(answers[i])->nlmsg_type;
  };
  EXPECT_GT(got[0].msg_len, sizeof(struct nlmsghdr));
  EXPECT_EQ(type(0), 0x1401);
  EXPECT_EQ(type(1), 0x1401);
  EXPECT_EQ(type(2), NLMSG_DONE);
  EXPECT_EQ(recvmmsg(fd, got, 4, MSG_DONTWAIT, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
  struct timespec wrong = {0, -1};
  EXPECT_EQ(recvmmsg(fd, got, 4, MSG_DONTWAIT, &wrong), -1);
  EXPECT_EQ(errno, EINVAL);
  // A limit that is over ends it behind the first message.
  ASSERT_EQ(sendmmsg(fd, sent, 1, 0), 1);
  struct timespec over = {};
  EXPECT_EQ(recvmmsg(fd, got, 4, 0, &over), 1);
  close(fd);
}

TEST(Libraries, LoadFromRedirectedPaths) {
  void* library = dlopen("/verbs-abi/nowhere/libm.so", RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlsym(library, "cos"), nullptr);
  dlclose(library);
  EXPECT_EQ(dlopen("/verbs-abi/nowhere/none.so", RTLD_NOW), nullptr);
}

// fs/namei.c:proc_pid_get_link leads to the inode, and opening that opens the device anew.
TEST(Links, OfDescriptorsOpenTheFileAnew) {
  const int fd = open(kRxe, O_RDWR);
  ASSERT_GE(GetContext(fd), 0);
  for (const std::string& folder :
       {std::string("/proc/self/fd/"), "/proc/" + std::to_string(getpid()) + "/fd/",
        std::string("/dev/fd/")}) {
    const std::string link = folder + std::to_string(fd);
    const int again = open(link.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(again, 0) << link;
    EXPECT_EQ(FdLink(again), kRxe);
    const int events = GetContext(again);
    EXPECT_GE(events, 0) << "a file of its own has no context yet: " << link;
    close(events);
    close(again);
    struct stat st;
    ASSERT_EQ(stat(link.c_str(), &st), 0);
    EXPECT_EQ(st.st_rdev, makedev(231, 193));
    ASSERT_EQ(lstat(link.c_str(), &st), 0);
    EXPECT_TRUE(S_ISLNK(st.st_mode));
  }
  close(fd);
}

TEST(Links, OfDescriptorsOfEventsAndSocketsOpenNothing) {
  const int fd = open(kRxe, O_RDWR);
  const int events = GetContext(fd), route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 20);
  for (const int one : {events, route}) {
    EXPECT_EQ(open(("/proc/self/fd/" + std::to_string(one)).c_str(), O_RDONLY), -1);
    EXPECT_EQ(errno, ENXIO) << "fs/inode.c:no_open, net/socket.c:sock_no_open";
    close(one);
  }
  close(fd);
}

TEST(Links, OfDescriptorsKeepWhatASysfsFileIs) {
  const int fd = open("/sys/class/infiniband_verbs/abi_version", O_RDONLY);
  const int device = open(kNode, O_RDWR);
  const int again = open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY);
  struct stat st;
  ASSERT_EQ(fstat(again, &st), 0);
  EXPECT_EQ(st.st_size, 4096);
  EXPECT_EQ(ReadFd(again), "6\n");
  for (const int one : {fd, device, again}) close(one);
}

TEST(Links, FromElsewhereLeadIntoTheWorld) {
  const std::string link = ScratchDir() + "/link", second = ScratchDir() + "/second";
  ASSERT_EQ(symlink(kNode, link.c_str()), 0);
  ASSERT_EQ(symlink("link", second.c_str()), 0);
  for (const std::string& path : {link, second}) {
    const int fd = open(path.c_str(), O_RDWR);
    ASSERT_GE(fd, 0) << path;
    EXPECT_TRUE(IsDevice(fd));
    EXPECT_EQ(FdLink(fd), kNode);
    close(fd);
    EXPECT_EQ(open(path.c_str(), O_RDWR | O_NOFOLLOW), -1);
    EXPECT_EQ(errno, ELOOP);
  }
  const int folder = open(ScratchDir().c_str(), O_RDONLY | O_DIRECTORY);
  const int fd = openat(folder, "second", O_RDWR);
  EXPECT_TRUE(IsDevice(fd));
  close(fd);
  close(folder);
  unlink(link.c_str());
  EXPECT_EQ(open(second.c_str(), O_RDWR), -1);
  EXPECT_EQ(errno, ENOENT);
  unlink(second.c_str());
}

// fs/file.c:__fget_light: O_PATH opens no device, and its descriptor is none to read or ioctl.
TEST(Nodes, LookTheSameByPathAndByDescriptor) {
  for (const char* node : {kNode, "/dev/infiniband/rdma_cm", "/dev/infiniband/umad0"}) {
    SCOPED_TRACE(node);
    const int fd = open(node, O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    struct stat path, file;
    ASSERT_EQ(stat(node, &path), 0);
    ASSERT_EQ(fstat(fd, &file), 0);
    EXPECT_EQ(file.st_dev, path.st_dev);
    EXPECT_EQ(file.st_ino, path.st_ino);
    EXPECT_EQ(file.st_mode, path.st_mode);
    EXPECT_EQ(file.st_rdev, path.st_rdev);
    EXPECT_EQ(file.st_mtime, path.st_mtime);
    struct statx by_path, by_fd;
    ASSERT_EQ(statx(AT_FDCWD, node, 0, STATX_BASIC_STATS, &by_path), 0);
    ASSERT_EQ(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &by_fd), 0);
    EXPECT_EQ(by_fd.stx_ino, by_path.stx_ino);
    EXPECT_EQ(by_fd.stx_dev_minor, by_path.stx_dev_minor);
    close(fd);
  }
}

// fs/open.c: do_ftruncate, vfs_fallocate; fs/sync.c: vfs_fsync_range.
TEST(Nodes, HaveNoContent) {
  const int fd = open(kNode, O_RDWR | O_CLOEXEC), read_only = open(kNode, O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_GE(read_only, 0);
  const auto error = [](int result) { return result == -1 ? errno : result; };
  EXPECT_EQ(error(ftruncate(fd, 0)), EINVAL);
  EXPECT_EQ(error(ftruncate64(read_only, 0)), EINVAL);
  EXPECT_EQ(error(fsync(fd)), EINVAL);
  EXPECT_EQ(error(fdatasync(fd)), EINVAL);
  EXPECT_EQ(error(fallocate(fd, 0, 0, 4096)), ENODEV);
  EXPECT_EQ(error(fallocate64(fd, FALLOC_FL_KEEP_SIZE, 0, 4096)), ENODEV);
  EXPECT_EQ(error(fallocate(fd, 0, -1, 4096)), EINVAL);
  EXPECT_EQ(error(fallocate(fd, 0, 0, 0)), EINVAL);
  EXPECT_EQ(error(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 4096)), EOPNOTSUPP);
  EXPECT_EQ(error(fallocate(read_only, 0, 0, 4096)), EBADF);
  errno = 0;
  EXPECT_EQ(posix_fallocate(fd, 0, 4096), ENODEV);
  EXPECT_EQ(posix_fallocate64(fd, 0, 0), EINVAL);
  EXPECT_EQ(errno, 0);
  close(fd);
  close(read_only);
  const int plain = memfd_create("plain", MFD_CLOEXEC);
  EXPECT_EQ(error(ftruncate(plain, 10)), 0);
  EXPECT_EQ(error(fallocate(plain, 0, 0, 4096)), 0);
  EXPECT_EQ(error(fsync(plain)), 0);
  close(plain);
}

// fs/open.c: do_dentry_open, fs/fcntl.c: F_GETFL, fs/read_write.c: vfs_read, vfs_write.
TEST(Nodes, KeepTheModeTheyWereOpenedWith) {
  for (const char* node : {kNode, "/dev/infiniband/rdma_cm", "/dev/infiniband/umad0"}) {
    for (const int mode : {O_RDONLY, O_WRONLY, O_RDWR, 3}) {
      SCOPED_TRACE(std::string(node) + " " + std::to_string(mode));
      const int fd = open(node, mode | O_CLOEXEC | O_NONBLOCK);
      ASSERT_GE(fd, 0);
      EXPECT_EQ(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK), mode | O_NONBLOCK);
      char byte = 0;
      const auto error = [](ssize_t result) { return result == -1 ? errno : 0; };
      const bool reads = mode == O_RDONLY || mode == O_RDWR,
                 writes = mode == O_WRONLY || mode == O_RDWR;
      EXPECT_EQ(error(read(fd, &byte, 1)) == EBADF, !reads);
      EXPECT_EQ(error(write(fd, &byte, 1)) == EBADF, !writes);
      close(fd);
    }
  }
}

TEST(Nodes, OpenedAsPathsCanBeLookedAt) {
  const int fd = open(kNode, O_PATH | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  struct stat st;
  ASSERT_EQ(fstat(fd, &st), 0);
  EXPECT_TRUE(S_ISCHR(st.st_mode));
  EXPECT_EQ(st.st_rdev, makedev(231, 192));
  struct statx sx;
  ASSERT_EQ(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &sx), 0);
  EXPECT_EQ(sx.stx_rdev_minor, 192U);
  EXPECT_TRUE(fcntl(fd, F_GETFL) & O_PATH);
  EXPECT_EQ(FdLink(fd), kNode);
  char bytes[24] = {};
  struct iovec part = {bytes, 0};
  const auto refused = [](long result) { return result == -1 && errno == EBADF; };
  EXPECT_TRUE(refused(ioctl(fd, kVerbsIoctl, bytes)));
  EXPECT_TRUE(refused(read(fd, bytes, 8)));
  EXPECT_TRUE(refused(write(fd, bytes, 8)));
  EXPECT_TRUE(refused(writev(fd, &part, 1)));
  EXPECT_TRUE(refused(pread(fd, bytes, 8, 0)));
  EXPECT_TRUE(refused(lseek(fd, 0, SEEK_SET)));
  EXPECT_TRUE(refused(fcntl(fd, F_SETFL, O_NONBLOCK)));
  const int copy = dup(fd);
  close(fd);
  const int device = open(("/proc/self/fd/" + std::to_string(copy)).c_str(), O_RDWR);
  EXPECT_TRUE(IsDevice(device));
  close(device);
  close(copy);
  EXPECT_EQ(open("/dev/infiniband/uverbs7", O_PATH), -1);
  EXPECT_EQ(errno, ENOENT);
}

// fs/read_write.c: uverbs_fops has no read, and no position (uverbs_main.c:ib_uverbs_open:
// stream_open).
TEST(Parts, HaveNoPlaceInADevice) {
  const int fd = open(kNode, O_RDWR);
  char bytes[8] = {};
  struct iovec part = {bytes, 8}, empty = {bytes, 0};
  const auto fails = [](ssize_t result, int error) { return result == -1 && errno == error; };
  EXPECT_TRUE(fails(pread(fd, bytes, 8, 0), ESPIPE));
  EXPECT_TRUE(fails(pwrite(fd, bytes, 8, 0), ESPIPE));
  EXPECT_TRUE(fails(pread(fd, bytes, 8, -1), EINVAL));
  EXPECT_TRUE(fails(pwrite(fd, bytes, 8, -1), EINVAL));
  EXPECT_TRUE(fails(preadv(fd, &part, 1, 0), ESPIPE));
  EXPECT_TRUE(fails(pwritev(fd, &part, 1, 0), ESPIPE));
  EXPECT_TRUE(fails(preadv(fd, &part, 1, -1), EINVAL));
  EXPECT_TRUE(fails(pwritev(fd, &part, 1, -1), EINVAL));
  EXPECT_TRUE(fails(preadv2(fd, &part, 1, 0, 0), ESPIPE));
  EXPECT_TRUE(fails(pwritev2(fd, &part, 1, 0, 0), ESPIPE));
  EXPECT_TRUE(fails(pwritev2(fd, &part, 1, -2, 0), EINVAL));
  // -1 is "where the file stands": a read or a write without position.
  EXPECT_TRUE(fails(preadv2(fd, &part, 1, -1, 0), EINVAL)) << "it cannot be read";
  EXPECT_TRUE(fails(pwritev2(fd, &part, 1, -1, RWF_NOWAIT), EOPNOTSUPP)) << "do_loop_readv_writev";
  part.iov_len = 4;
  EXPECT_TRUE(fails(pwritev2(fd, &part, 1, -1, 0), EINVAL)) << "ib_uverbs_write: too short";
  EXPECT_EQ(pwritev2(fd, &empty, 1, -1, 0), 0);
  EXPECT_TRUE(fails(readv(fd, &empty, 1), EINVAL)) << "before it is seen that nothing is asked";
  const struct iovec* volatile nowhere = nullptr;
  EXPECT_TRUE(fails(readv(fd, const_cast<const struct iovec*>(nowhere), 1), EINVAL));
  void* volatile kernels = reinterpret_cast<void*>(-4096L);
  EXPECT_TRUE(fails(write(fd, kernels, 4), EFAULT)) << "access_ok comes before the device";
  close(fd);
  const int writes = open(kNode, O_WRONLY), reads = open(kNode, O_RDONLY);
  EXPECT_TRUE(fails(read(writes, bytes, 8), EBADF));
  EXPECT_TRUE(fails(readv(writes, &part, 1), EBADF));
  EXPECT_TRUE(fails(writev(reads, &empty, 1), EBADF));
  close(writes);
  close(reads);
  // Attribute files have a position.
  const int file = open("/sys/class/infiniband_verbs/abi_version", O_RDONLY);
  const int broken = open(kUnreadable, O_RDONLY);
  part.iov_len = 1;
  EXPECT_EQ(preadv(file, &part, 1, 0), 1);
  EXPECT_TRUE(fails(preadv(broken, &part, 1, 0), EIO));
  close(file);
  close(broken);
}

// A program of its own, for another kernel's world: is the list read ahead of the mode?
constexpr char kListFirst[] = "VABI_TEST_LIST_FIRST";
[[maybe_unused]] const bool g_list_first = [] {
  if (getenv(kListFirst) == nullptr) return false;
  const int fd = open(kNode, O_RDWR), reads = open(kNode, O_RDONLY);
  char byte = 0;
  struct iovec negative = {&byte, static_cast<size_t>(-1)}, empty = {&byte, 0};
  const struct iovec* volatile nowhere = nullptr;
  const auto* list = const_cast<const struct iovec*>(nowhere);
  const auto fails = [](ssize_t result, int error) { return result == -1 && errno == error; };
  const bool first = fails(readv(fd, list, 1), EFAULT) && fails(writev(reads, list, 1), EFAULT) &&
                     fails(writev(reads, &negative, 1), EINVAL);
  const bool behind = fails(readv(fd, list, 1), EINVAL) && fails(writev(reads, list, 1), EBADF) &&
                      fails(writev(reads, &negative, 1), EBADF);
  const bool both = fails(readv(fd, &empty, 1), EINVAL) && fails(writev(reads, &empty, 1), EBADF);
  _exit(!both ? 3 : first ? 1 : behind ? 2 : 4);
}();

// fs/read_write.c:vfs_readv of 4.4, 4.14 to 6.6, 6.13; measured on 5.10.223 and 6.12.117.
TEST(Parts, AreReadBeforeTheModeFrom414To66) {
  const std::pair<const char*, int> kernels[] = {{"linux-4.4", 2},       {"linux-4.16", 1},
                                                 {"debian-5.10.223", 1}, {"linux-6.6", 1},
                                                 {"debian-6.12.117", 2}, {"debian-7.3.4", 2}};
  for (const auto& [kernel, expected] : kernels) {
    const Ran ran = RunProgram({"/proc/self/exe"},
                               Environment({std::string(kListFirst) + "=1",
                                            "VERBS_ABI_WORLD=" + MakeWorld(kernel, kernel, {})}));
    EXPECT_EQ(ran.status, expected) << kernel << " " << ran.output;
  }
}

// lib/iov_iter.c:__import_iovec reads the list as user memory before the file sees it.
TEST(Parts, AreReadAsTheKernelReadsThem) {
  const int fd = open(kNode, O_RDWR);
  char bytes[8] = {};
  std::vector<struct iovec> parts(1025, {bytes, 0});
  struct iovec& part = parts[0];
  const struct iovec* volatile nowhere = nullptr;
  EXPECT_EQ(writev(fd, const_cast<const struct iovec*>(nowhere), 1), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(writev(fd, &part, 1), 0) << "nothing to write: the device is not asked";
  EXPECT_EQ(writev(fd, parts.data(), 1025), -1);
  EXPECT_EQ(errno, EINVAL);
  part.iov_len = static_cast<size_t>(-1);
  EXPECT_EQ(writev(fd, &part, 1), -1);
  EXPECT_EQ(errno, EINVAL);
  close(fd);
}

// fs/open.c:close_range refuses unknown flags before it closes anything.
TEST(Descriptors, ARefusedCloseRangeClosesNothing) {
  const int fd = open(kNode, O_RDWR);
  EXPECT_EQ(close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 0x100), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_TRUE(IsDevice(fd));
  EXPECT_EQ(close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 0), 0);
  EXPECT_FALSE(IsDevice(fd));
}

// What is the shim's own is not open for the program, and outlives its closing of everything.
TEST(Descriptors, TheTraceIsNotTheProgramsToClose) {
  close(open(kNode, O_RDWR));
  const pid_t child = fork();
  if (child == 0) {
    int own = -1;
    for (int fd = 3; fd < 5000; ++fd) {
      if (FdLink(fd).find("main.trace") != std::string::npos) own = fd;
    }
    if (own < 0) _exit(1);
    if (close(own) != -1 || errno != EBADF) _exit(2);
    closefrom(3);
    const size_t before = Trace().size();
    close(open(kNode, O_RDWR));
    if (Trace().size() == before) _exit(3);
    close_range(3, ~0U, 0);
    const size_t again = Trace().size();
    close(open(kNode, O_RDWR));
    _exit(Trace().size() == again ? 4 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Descriptors, TheTraceMakesRoomForTheProgram) {
  close(open(kNode, O_RDWR));
  EXPECT_EQ(0, InChild([] {
              int own = -1;
              for (int fd = 3; fd < 5000; ++fd) {
                if (FdLink(fd).find("main.trace") != std::string::npos) own = fd;
              }
              if (own < 0) return 1;
              if (fcntl(own, F_GETFD) != -1 || errno != EBADF) return 2;
              struct rlimit limit;
              getrlimit(RLIMIT_NOFILE, &limit);
              if (own < static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 4096))) return 3;
              limit.rlim_cur = limit.rlim_max = std::max<rlim_t>(limit.rlim_max, 5000);
              if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
              if (dup2(0, own) != own || fcntl(own, F_GETFD) != 0) return 4;
              const size_t before = Trace().size();
              close(open(kNode, O_RDWR));
              if (Trace().size() == before) return 5;
              struct stat standard, st;
              if (fstat(0, &standard) != 0 || fstat(own, &st) != 0) return 6;
              return st.st_ino == standard.st_ino && close(own) == 0 ? 0 : 7;
            }));
}

// Programs count on the lowest number (open(2)).
TEST(Descriptors, HaveTheNumbersOfAKernel) {
  EXPECT_EQ(0, InChild([] {
              closefrom(3);
              constexpr int first = 3;
              const int fd = open(kRxe, O_RDWR);
              if (fd != first || GetContext(fd) != first + 1) return 1;
              if (CreateChannel(fd) != first + 2) return 2;
              if (CreateMappedCq(fd) == MAP_FAILED) return 3;
              if (socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 20) != first + 3) return 4;
              for (int next = first + 4; next < first + 8; ++next) {
                if (open("/dev/null", O_RDONLY) != next) return 5;
              }
              return 0;
            }));
}

// A daemon closes what it did not open; nothing of the device's hangs on that.
TEST(Descriptors, ThatTheProgramDidNotOpenAreNotThere) {
  EXPECT_EQ(
      0, InChild([] {
        const int fd = open(kRxe, O_RDWR);
        const int events = GetContext(fd), netlink = socket(AF_NETLINK, SOCK_RAW, 20);
        auto* before = static_cast<uint8_t*>(CreateMappedCq(fd));
        if (before == MAP_FAILED) return 1;
        for (int other = 3; other < 5000; ++other) {
          if (other != fd && other != events && other != netlink) close(other);
        }
        before[4095] = 1;
        if (CreateMappedCq(fd) == MAP_FAILED) return 2;
        struct nlmsghdr get = {sizeof get, 0x1401, NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH, 1, 0};
        if (send(netlink, &get, sizeof get, 0) != static_cast<ssize_t>(sizeof get)) return 3;
        char answer[4096];
        if (recv(netlink, answer, sizeof answer, MSG_DONTWAIT) <= 0) return 4;
        closefrom(3);
        const int again = open(kRxe, O_RDWR);
        if (again != 3 || GetContext(again) != 4) return 5;
        return CreateMappedCq(again) != MAP_FAILED ? 0 : 6;
      }));
}

size_t Told(const char* text) {
  const std::string trace = Trace();
  size_t count = 0;
  for (size_t at = 0; (at = trace.find(text, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(RawCalls, OnPathsAndOtherArgumentsAreNamedToo) {
  const int fd = open(kNode, O_RDWR);
  size_t told = Told("not_intercepted");
  syscall(SYS_openat, AT_FDCWD, "/dev/null-there-is-none", O_RDWR);
  EXPECT_EQ(Told("not_intercepted"), told);
  syscall(SYS_openat, AT_FDCWD, kNode, O_RDWR);
  EXPECT_EQ(Told("not_intercepted"), ++told);
  // Of a number that no machine has: the call itself goes to this one.
  syscall(SYS_unlink, "/dev/infiniband/uverbs77777");
  EXPECT_EQ(Told("not_intercepted"), ++told);
  syscall(SYS_fchmodat, AT_FDCWD, "/dev/infiniband/uverbs77777", 0600);
  EXPECT_EQ(Told("not_intercepted"), ++told);
  close(static_cast<int>(syscall(SYS_dup, fd)));
  EXPECT_EQ(Told("not_intercepted"), ++told);
  struct stat st;
  syscall(SYS_fstat, fd, &st);
  EXPECT_EQ(Told("not_intercepted"), ++told);
  syscall(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
  EXPECT_EQ(Told("not_intercepted"), ++told);
  syscall(SYS_close_range, fd, fd, 0);
  EXPECT_FALSE(IsDevice(fd));
  EXPECT_EQ(Told("not_intercepted"), told);
}

TEST(Sockets, ThatPassADescriptorOfADeviceAreNamed) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const int fd = open(kNode, O_RDWR), null = open("/dev/null", O_RDWR);
  for (const int passed : {null, fd}) {
    const size_t told = Told("passed over a socket");
    char byte = 'x';
    struct iovec part = {&byte, 1};
    alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    struct msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    struct cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &passed, sizeof passed);
    EXPECT_EQ(sendmsg(ends[0], &message, 0), 1);
    EXPECT_EQ(Told("passed over a socket"), told + (passed == fd));
  }
  for (int each : {fd, null, ends[0], ends[1]}) close(each);
}

// The kernel's state is the same for both; here the child has a copy.
TEST(Processes, AnInheritedFileThatAChildUsesIsNamed) {
  const int fd = open(kRxe, O_RDWR);
  // include/uapi/rdma/ib_user_ioctl_verbs.h: UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT.
  struct {
    uint16_t length = 24, object = 0, method = 3, attributes = 0;
    uint64_t reserved1 = 0;
    uint32_t driver = 14, reserved2 = 0;  // RDMA_DRIVER_RXE
  } header;
  const size_t told = Told("inherited by fork");
  const auto in_child = [&](bool own) {
    const pid_t child = fork();
    if (child == 0) {
      const int used = own ? open(kRxe, O_RDWR) : fd;
      _exit(ioctl(used, kVerbsIoctl, &header) == 0 ? 0 : errno);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(in_child(true), 0);
  EXPECT_EQ(Told("inherited by fork"), told);
  EXPECT_EQ(in_child(false), 0);
  EXPECT_EQ(Told("inherited by fork"), told + 1);
  close(fd);
}

// A kernel shows sysfs to everybody; the world's files are their owner's.
TEST(Processes, ThatCannotReachTheWorldAnyMoreAreNamed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  // The trace is open before, since it may be out of that user's reach as well.
  close(open(kRxe, O_RDWR));
  const size_t told = Told("cannot reach");
  EXPECT_EQ(InChild([] {
              if (setuid(65534) != 0) return -1;
              return open(kDevice, O_RDONLY) < 0 ? errno : 0;
            }),
            EACCES);
  EXPECT_EQ(Told("cannot reach"), told + 1);
}

// The same file answers, whichever way a call comes.
TEST(RawCalls, ThatMoveDataAskOrMapAreServed) {
  const int fd = open(kRxe, O_RDWR);
  const size_t told = Told("not_intercepted");
  // core/uverbs_main.c:ib_uverbs_mmap: no context yet.
  EXPECT_EQ(syscall(SYS_mmap, nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  // fs/read_write.c: uverbs_fops has no read.
  char bytes[8] = {};
  EXPECT_EQ(syscall(SYS_read, fd, bytes, sizeof bytes), -1);
  EXPECT_EQ(errno, EINVAL);
  struct iovec part = {bytes, sizeof bytes};
  EXPECT_EQ(syscall(SYS_readv, fd, &part, 1), -1);
  EXPECT_EQ(errno, EINVAL);
  // stream_open: there is no position.
  EXPECT_EQ(syscall(SYS_pread64, fd, bytes, sizeof bytes, 0), -1);
  EXPECT_EQ(errno, ESPIPE);
  EXPECT_EQ(syscall(SYS_pwrite64, fd, bytes, sizeof bytes, 0), -1);
  EXPECT_EQ(errno, ESPIPE);
  // uverbs_main.c:ib_uverbs_write: a whole header, and a command that there is.
  EXPECT_EQ(syscall(SYS_write, fd, bytes, 4), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(syscall(SYS_writev, fd, &part, 1), -1);
  EXPECT_NE(errno, ENOSYS);
  // uverbs_ioctl.c:ib_uverbs_ioctl: the header tells its length.
  char header[24] = {};
  EXPECT_EQ(syscall(SYS_ioctl, fd, kVerbsIoctl, header), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(Told("not_intercepted"), told);
  close(fd);
}

TEST(Memory, OfADeviceIsMappedByIt) {
  const int fd = open(kNode, O_RDWR);
  // core/uverbs_main.c:ib_uverbs_mmap: no context yet.
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  void* plain = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(plain, MAP_FAILED);
  munmap(plain, 4096);
  close(fd);
}

// Whether a thread that waits in `wait` can be cancelled, and is ended by nothing else: kernels
// wait by wait_event_interruptible, so a handler with SA_RESTART ends no call (signal(7)).
void ExpectCancellable(int fd, void* (*wait)(void* number)) {
  struct sigaction action = {}, before;
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, wait, &fd), 0);
  for (int i = 0; i < 20; ++i) {
    usleep(1000);
    pthread_kill(thread, SIGUSR1);
  }
  usleep(1000);
  ASSERT_EQ(pthread_cancel(thread), 0);
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 10;
  void* result = nullptr;
  ASSERT_EQ(pthread_timedjoin_np(thread, &result, &limit), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  sigaction(SIGUSR1, &before, nullptr);
}
void* WaitInRead(void* number) {
  char event[512];
  read(*static_cast<int*>(number), event, sizeof event);
  return nullptr;
}
void* WaitInReadv(void* number) {
  char event[512];
  const struct iovec part = {event, sizeof event};
  readv(*static_cast<int*>(number), &part, 1);
  return nullptr;
}
// RDMA_USER_CM_CMD_GET_EVENT, as rdma_get_cm_event asks for it: 8 bytes behind the header.
void* WaitInWrite(void* number) {
  char event[336];
  struct {
    uint32_t command;
    uint16_t in, out;
    uint64_t response;
  } request = {12, 8, sizeof event, reinterpret_cast<uintptr_t>(event)};
  write(*static_cast<int*>(number), &request, sizeof request);
  return nullptr;
}

// pthreads(7): read and write are places where a thread may be cancelled.
TEST(Threads, ThatWaitForAnEventCanBeCancelled) {
  const int fd = open(kRxe, O_RDWR);
  ASSERT_GE(GetContext(fd), 0);
  const int channel = CreateChannel(fd);
  ASSERT_GE(channel, 0);
  ExpectCancellable(channel, WaitInRead);
  ExpectCancellable(channel, WaitInReadv);
  close(channel);
  close(fd);
  const int umad = open("/dev/infiniband/umad0", O_RDWR);
  ASSERT_GE(umad, 0);
  ExpectCancellable(umad, WaitInRead);
  close(umad);
  const int events = open("/dev/infiniband/rdma_cm", O_RDWR);
  ASSERT_GE(events, 0);
  ExpectCancellable(events, WaitInWrite);
  close(events);
}

// A kernel says EFAULT of what leads nowhere (fs/namei.c:getname_flags, fs/stat.c, fs/select.c,
// net/socket.c), and nothing ends the program.
TEST(Pointers, ThatLeadNowhereAreRefused) {
  constexpr size_t kPage = 4096;
  auto* const pages = static_cast<char*>(
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  // Not unmapped: something else would be mapped there.
  ASSERT_EQ(mprotect(pages + kPage, kPage, PROT_NONE), 0);
  // One that begins as a path of the world and goes on where nothing is.
  char* const torn = pages + kPage - 5;
  std::memcpy(torn, "/dev/", 5);
  const char* const bad[] = {reinterpret_cast<char*>(1), reinterpret_cast<char*>(-4096),
                             pages + kPage, torn};
  struct stat st;
  char text[64];
  const int folder = open("/dev", O_RDONLY | O_DIRECTORY);
  for (const char* path : bad) {
    const auto expect_fault = [&](const char* call, long result) {
      EXPECT_EQ(result, -1) << call;
      EXPECT_EQ(errno, EFAULT) << call << " of " << static_cast<const void*>(path);
    };
    expect_fault("open", open(path, O_RDONLY));
    expect_fault("openat", openat(folder, path, O_RDONLY));
    expect_fault("creat", creat(path, 0600));
    expect_fault("stat", stat(path, &st));
    expect_fault("fstatat", fstatat(folder, path, &st, 0));
    expect_fault("fstatat", fstatat(folder, path, &st, AT_EMPTY_PATH));
    expect_fault("access", access(path, R_OK));
    expect_fault("readlink", readlink(path, text, sizeof text));
    expect_fault("chdir", chdir(path));
    expect_fault("execve", execve(path, environ, environ));
    expect_fault("unlink", unlink(path));
    expect_fault("syscall", syscall(SYS_openat, AT_FDCWD, path, O_RDONLY));
  }
  close(folder);
  void* volatile unknown = reinterpret_cast<void*>(1);  // else the compiler refuses it, too
  void* const nowhere = unknown;
  EXPECT_EQ(stat(kNode, static_cast<struct stat*>(nowhere)), -1);
  EXPECT_EQ(errno, EFAULT);
  const int fd = open(kNode, O_RDWR);
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  EXPECT_EQ(readlink(link.c_str(), static_cast<char*>(nowhere), 64), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(readlink(link.c_str(), text, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(fstat(fd, static_cast<struct stat*>(nowhere)), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(ioctl(fd, kVerbsIoctl, nowhere), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(write(fd, nowhere, 64), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(poll(static_cast<struct pollfd*>(nowhere), 1, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  close(fd);
  const int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
  ASSERT_GE(netlink, 0);
  EXPECT_EQ(bind(netlink, static_cast<struct sockaddr*>(nowhere), 12), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(sendmsg(netlink, static_cast<struct msghdr*>(nowhere), 0), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(recvmsg(netlink, static_cast<struct msghdr*>(nowhere), MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EFAULT);
  struct mmsghdr many = {};
  EXPECT_EQ(recvmmsg(netlink, &many, 1, MSG_DONTWAIT, static_cast<struct timespec*>(nowhere)), -1);
  EXPECT_EQ(errno, EFAULT);
  close(netlink);
  munmap(pages, 2 * kPage);
}

// arch/x86/kernel/sys_x86_64.c:mmap, mm/mmap.c:ksys_mmap_pgoff, do_mmap: before the device is
// asked, which would refuse what it has no context for (EINVAL).
TEST(Memory, IsRefusedBeforeTheDeviceIsAsked) {
  const auto error = [](int fd, size_t size, int protection, int flags, off_t offset = 0,
                        void* at = nullptr) {
    return mmap(at, size, protection, flags, fd, offset) == MAP_FAILED ? errno : 0;
  };
  const int reads = open(kRxe, O_RDONLY), writes = open(kRxe, O_WRONLY), neither = open(kRxe, 3);
  const int both = open(kRxe, O_RDWR), path = open(kRxe, O_PATH);
  EXPECT_EQ(error(reads, 4096, PROT_READ | PROT_WRITE, MAP_SHARED), EACCES);
  EXPECT_EQ(error(reads, 4096, PROT_READ, MAP_SHARED), EINVAL);
  EXPECT_EQ(error(reads, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE), EINVAL);
  for (const int fd : {writes, neither}) {
    EXPECT_EQ(error(fd, 4096, PROT_READ, MAP_SHARED), EACCES);
    EXPECT_EQ(error(fd, 4096, PROT_READ, MAP_PRIVATE), EACCES);
  }
  EXPECT_EQ(error(path, 4096, PROT_READ, MAP_SHARED), EBADF);
  EXPECT_EQ(error(both, size_t{1} << 47, PROT_READ, MAP_SHARED), ENOMEM);
  EXPECT_EQ(error(both, ~size_t{0}, PROT_READ, MAP_SHARED), ENOMEM);
  // A queue that the device would map, once.
  ASSERT_GE(GetContext(both), 0);
  struct {
    uint32_t handle, cqe;
    uint64_t offset;
    uint32_t size, pad;
  } made = {};
  ASSERT_TRUE(
      vabi::libc::Run(both, 18, {0, 0, 16, 0, ~0U, 0}, reinterpret_cast<uint32_t*>(&made), 6));
  const auto map = [&](int flags, off_t behind = 0, void* at = nullptr) {
    return error(both, made.size, PROT_READ | PROT_WRITE, flags,
                 static_cast<off_t>(made.offset) + behind, at);
  };
  EXPECT_EQ(map(MAP_SHARED, 2048), EINVAL);
  EXPECT_EQ(map(0), EINVAL);
  EXPECT_EQ(map(MAP_SHARED | MAP_HUGETLB), EINVAL);
  EXPECT_EQ(map(MAP_SHARED | MAP_GROWSDOWN), EINVAL);
  EXPECT_EQ(map(MAP_SHARED | MAP_FIXED, 0, reinterpret_cast<void*>(1)), EINVAL);
  // file_mmap_ok: it would end beyond 64 bits.
  EXPECT_EQ(error(both, 8192, PROT_READ, MAP_SHARED, -4096), EOVERFLOW);
  // uverbs_fops has no mmap_supported_flags, and MAP_FIXED_NOREPLACE is none that all know.
  constexpr int kSync = 0x80000;  // MAP_SYNC
  EXPECT_EQ(map(MAP_SHARED_VALIDATE | kSync), EOPNOTSUPP);
  EXPECT_EQ(map(MAP_SHARED_VALIDATE | MAP_FIXED_NOREPLACE), EOPNOTSUPP);
  EXPECT_EQ(error(reads, 4096, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | kSync), EOPNOTSUPP);
  EXPECT_EQ(error(reads, 4096, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE), EACCES);
  EXPECT_EQ(map(MAP_SHARED_VALIDATE | MAP_NORESERVE), 0);
  for (const int fd : {reads, writes, neither, both, path}) close(fd);
}

// A program of its own, for another kernel's world: bit 0: MAP_SHARED_VALIDATE is known, bit 1: an
// end beyond 64 bits is refused before the device is asked.
constexpr char kMapping[] = "VABI_TEST_MAPPING";
[[maybe_unused]] const bool g_mapping = [] {
  if (getenv(kMapping) == nullptr) return false;
  const int fd = open(kNode, O_RDWR);
  const auto error = [fd](size_t size, int flags, off_t offset) {
    return mmap(nullptr, size, PROT_READ, flags, fd, offset) == MAP_FAILED ? errno : 0;
  };
  const int sync = error(4096, MAP_SHARED_VALIDATE | 0x80000 /* MAP_SYNC */, 0);
  const int end = error(8192, MAP_SHARED, -4096);
  const bool sound = (sync == EOPNOTSUPP || sync == EINVAL) &&
                     (end == EOVERFLOW || end == ENODEV || end == EINVAL);
  _exit(!sound ? 9 : (sync == EOPNOTSUPP ? 1 : 0) | (end == EOVERFLOW ? 2 : 0));
}();

// mm/mmap.c:do_mmap of 4.14 and 4.15, file_mmap_ok of 4.16 and 4.17.
TEST(Memory, IsRefusedAsEachKernelDoes) {
  const std::pair<const char*, int> kernels[] = {
      {"linux-4.4", 0}, {"linux-4.16", 1}, {"linux-4.17", 3}, {"debian-7.3.4", 3}};
  for (const auto& [kernel, expected] : kernels) {
    const std::string world = MakeWorld(std::string("mapping-") + kernel, kernel, {});
    const Ran ran =
        RunProgram({"/proc/self/exe"},
                   Environment({std::string(kMapping) + "=1", "VERBS_ABI_WORLD=" + world}));
    EXPECT_EQ(ran.status, expected) << kernel << " " << ran.output;
  }
}

// A queue of rxe: mm/vmalloc.c:remap_vmalloc_range gives it VM_DONTEXPAND and VM_MIXEDMAP.
TEST(Memory, OfADeviceIsNoOrdinaryMemory) {
  const int fd = open(kRxe, O_RDWR);
  ASSERT_GE(GetContext(fd), 0);
  constexpr size_t kPage = 4096;
  void* const queue = CreateMappedCq(fd);
  ASSERT_NE(queue, MAP_FAILED);
  EXPECT_EQ(mremap(queue, kPage, 2 * kPage, MREMAP_MAYMOVE), MAP_FAILED);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(syscall(SYS_mremap, queue, kPage, 2 * kPage, MREMAP_MAYMOVE, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(madvise(queue, kPage, MADV_DODUMP), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(syscall(SYS_madvise, queue, kPage, MADV_DODUMP), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(madvise(queue, kPage, MADV_DONTFORK), 0);
  EXPECT_EQ(InChild([queue] {
              unsigned char there;
              return mincore(queue, kPage, &there) == 0 ? 0 : errno;
            }),
            ENOMEM);
  EXPECT_EQ(madvise(queue, kPage, MADV_DOFORK), 0);
  EXPECT_EQ(mprotect(queue, kPage, PROT_READ), 0);
  // What is mapped in its place is ordinary, whichever way it went.
  void* plain = mmap(queue, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(plain, queue);
  EXPECT_EQ(madvise(plain, kPage, MADV_DODUMP), 0);
  munmap(plain, kPage);
  void* const other = CreateMappedCq(fd);
  ASSERT_NE(other, MAP_FAILED);
  EXPECT_EQ(syscall(SYS_munmap, other, kPage), 0);
  plain = mmap(other, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(plain, other);
  EXPECT_EQ(madvise(plain, kPage, MADV_DODUMP), 0);
  munmap(plain, kPage);
  close(fd);
}

}  // namespace
}  // namespace vabi::libc
