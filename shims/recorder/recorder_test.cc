// SPDX-License-Identifier: BSD-2-Clause
// The recorder stands before the shim here, so that its real kernel is the fake one: what it writes
// down must be what the fake kernel writes down of the same calls, and the program must notice
// neither.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "shims/libc/preload_test_main.h"

namespace vabi::recorder {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kNode[] = "/dev/infiniband/uverbs1";  // rxe0
constexpr unsigned long kVerbsIoctl = 0xc0181b01;

// The lines that the last calls wrote, without who and when; the device is told more often here,
// and a mapping's kind only the fake kernel knows.
class Lines {
 public:
  explicit Lines(const char* file) : path_(libc::ScratchDir() + "/" + file) {}
  std::vector<std::string> Next() {
    std::vector<std::string> lines;
    std::ifstream in(path_);  // there is none before the first line
    in.seekg(seen_);
    for (std::string line; std::getline(in, line); seen_ = in.tellg()) {
      if (line.find("\"event\"") != std::string::npos) continue;
      line = line.substr(0, line.find(",\"pid\""));
      line = std::regex_replace(line, std::regex(R"("device":"[^"]*",)"), "");
      line = std::regex_replace(line, std::regex(R"x(,"(rule|answer)":"[^"]*")x"), "");
      lines.push_back(std::regex_replace(line, std::regex("mmap:[A-Z]+"), "mmap"));
    }
    return lines;
  }

 private:
  std::string path_;
  std::streamoff seen_ = 0;
};

class Recorder : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_.Next();
    recorded_.Next();
  }
  // Both traces' lines of what the test did; they have to be the same.
  std::vector<std::string> Told() {
    const std::vector<std::string> lines = recorded_.Next();
    EXPECT_EQ(lines, fake_.Next());
    return lines;
  }
  Lines fake_{"main.trace"}, recorded_{"record"};
};

int Write(int fd, const std::vector<uint32_t>& words) {
  return static_cast<int>(write(fd, words.data(), words.size() * 4));
}
uint32_t Low(const void* pointer) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer));
}
uint32_t HighOf(const void* pointer) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer) >> 32);
}

TEST_F(Recorder, WritesDownOpenCommandsAndEvents) {
  const int fd = open(kNode, O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  uint32_t reply[4] = {};
  ASSERT_EQ(Write(fd, {0, 2u << 16 | 4, Low(reply), HighOf(reply)}), 16);  // GET_CONTEXT
  const int async = static_cast<int>(reply[0]);
  ASSERT_EQ(Write(fd, {17, 1u << 16 | 4, Low(reply), HighOf(reply)}), 16);  // COMP_CHANNEL
  const int channel = static_cast<int>(reply[0]);
  char event[16];
  fcntl(channel, F_SETFL, O_NONBLOCK);
  EXPECT_EQ(read(channel, event, sizeof event), -1);
  EXPECT_EQ(errno, EAGAIN);
  fcntl(async, F_SETFL, O_NONBLOCK);
  EXPECT_EQ(read(async, event, sizeof event), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(Write(fd, {4, 3, 99}), -1);  // DEALLOC_PD of none
  EXPECT_EQ(errno, ENOENT);
  close(channel);
  close(async);
  close(fd);
  EXPECT_THAT(Told(), ElementsAre(HasSubstr(R"("via":"open")"), HasSubstr("GET_CONTEXT"),
                                  HasSubstr("CREATE_COMP_CHANNEL"), HasSubstr("read:comp_event"),
                                  HasSubstr("read:async_event"), HasSubstr("DEALLOC_PD")));
}

TEST_F(Recorder, WritesDownIoctlsAsTheyWereSent) {
  const int fd = open(kNode, O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  struct {
    uint16_t length = 24 + 16 * 2, object = 0, method = 3, count = 2;  // DEVICE.GET_CONTEXT
    uint64_t reserved1 = 0;
    uint32_t driver = 14, reserved2 = 0;  // RDMA_DRIVER_RXE
    struct {
      uint16_t id, length, flags, more;
      uint64_t data;
    } attributes[2] = {};
  } call;
  uint32_t vectors = 0;
  uint64_t support = 0;
  call.attributes[0] = {0, 4, 1, 0, reinterpret_cast<uintptr_t>(&vectors)};
  call.attributes[1] = {1, 8, 1, 0, reinterpret_cast<uintptr_t>(&support)};
  ASSERT_EQ(ioctl(fd, kVerbsIoctl, &call), 0);
  // The kernel has marked the replies; the trace has the flags that the program gave.
  EXPECT_EQ(call.attributes[0].flags, 3);
  close(fd);
  EXPECT_THAT(Told(), ElementsAre(HasSubstr(R"("via":"open")"),
                                  HasSubstr(R"("attrs":[{"id":0,"len":4,"flags":1},)")));
}

TEST_F(Recorder, FollowsCopiesOfDescriptors) {
  const int fd = open(kNode, O_RDWR | O_CLOEXEC);
  const int copy = dup(fd), third = fcntl(fd, F_DUPFD_CLOEXEC, 100);
  close(fd);
  uint32_t reply[4] = {};
  EXPECT_EQ(Write(copy, {0, 2u << 16 | 4, Low(reply), HighOf(reply)}), 16);  // GET_CONTEXT
  EXPECT_EQ(Write(third, {4, 3, 99}), -1);                                   // DEALLOC_PD of none
  close(static_cast<int>(reply[0]));
  EXPECT_EQ(Told().size(), 3U);
  close(third);
  const int plain = open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_EQ(dup2(plain, copy), copy);  // no device any more
  EXPECT_EQ(Write(copy, {77, 2}), 8);
  close(copy);
  close(plain);
  EXPECT_THAT(Told(), ElementsAre());
}

TEST_F(Recorder, WritesDownMappingsThatFail) {
  const int fd = open(kNode, O_RDWR | O_CLOEXEC);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0x5000), MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  close(fd);
  EXPECT_THAT(Told(), ElementsAre(HasSubstr(R"("via":"open")"),
                                  AllOf(HasSubstr(R"("via":"mmap")"), HasSubstr("EINVAL"),
                                        HasSubstr(R"("flags":"0x5000")"))));
}

TEST_F(Recorder, WritesDownNodesThatDoNotOpen) {
  EXPECT_EQ(open("/dev/infiniband/uverbs9", O_RDWR), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_THAT(recorded_.Next(),
              ElementsAre(R"({"via":"open","name":"open","result":-2,"errno":"ENOENT")"));
}

TEST_F(Recorder, WritesDownNetlinkWhenTheAnswerIsThere) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  ASSERT_GE(fd, 0);
  struct {
    struct nlmsghdr header;
    uint16_t length, type;
    uint32_t index;
  } request = {{24, 5 << 10 | 1, NLM_F_REQUEST, 7, 0}, 8, 1, 1};  // GET of device 1
  char answer[4096];
  ASSERT_EQ(send(fd, &request, 24, 0), 24);
  EXPECT_THAT(recorded_.Next(), ElementsAre());
  ASSERT_GT(recv(fd, answer, sizeof answer, MSG_PEEK), 0);
  ASSERT_GT(recv(fd, answer, sizeof answer, 0), 0);
  request.header.nlmsg_seq = 8;
  request.index = 99;  // no such device
  ASSERT_EQ(send(fd, &request, 24, 0), 24);
  ASSERT_GT(recv(fd, answer, sizeof answer, 0), 0);
  close(fd);
  EXPECT_THAT(Told(), ElementsAre(AllOf(HasSubstr(R"("name":"GET")"), HasSubstr(R"("result":0)")),
                                  AllOf(HasSubstr(R"("name":"GET")"), HasSubstr("EINVAL"))));
}

TEST_F(Recorder, IsSilentOnEverythingElse) {
  const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  char byte = 0;
  EXPECT_EQ(write(fd, &byte, 1), 1);
  EXPECT_EQ(read(fd, &byte, 1), 0);
  close(fd);
  const int pair = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  close(pair);
  EXPECT_THAT(Told(), ElementsAre());
}

TEST(Recording, SaysWhichProgramOnWhichKernelOnce) {
  close(open(kNode, O_RDWR | O_CLOEXEC));
  std::ifstream in(libc::ScratchDir() + "/record");
  size_t count = 0;
  for (std::string line; std::getline(in, line);) {
    count += line.find(R"({"event":"recording","text":")") == 0 &&
             line.find(" on Linux ") != std::string::npos;
  }
  EXPECT_EQ(count, 1U);
}

}  // namespace
}  // namespace vabi::recorder
