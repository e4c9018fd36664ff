// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "harness/world/test_world.h"
#include "shims/socket_file.h"
#include "shims/trace/trace.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/restrack.h"
#include "shims/uverbs/test_driver.h"

// Expected answers marked "real" were read from rxe0 on lo under
// Debian's 5.10.223, 6.1.192, 6.12.117 and 7.3.4 kernels, attribute by attribute and errno by
// errno; the others are from the source that the rule names.

namespace vabi {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kGet = 1, kPortGet = 5, kSysGet = 6, kGetChardev = 15;
constexpr int kResGet = 9;
constexpr int kDevIndex = 1, kPortIndex = 3, kChardevType = 69;
constexpr int kDump = NLM_F_ROOT | NLM_F_MATCH;

// A request under construction.
class Ask {
 public:
  explicit Ask(int command, int flags = 0, int client = 5) {
    struct nlmsghdr header = {};
    header.nlmsg_len = sizeof header;
    header.nlmsg_type = static_cast<uint16_t>(client << 10 | command);
    header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
    header.nlmsg_seq = 7;
    bytes_.assign(reinterpret_cast<const char*>(&header), sizeof header);
  }
  Ask& Put(int type, const std::string& value) {
    struct nlattr attribute = {static_cast<uint16_t>(NLA_HDRLEN + value.size()),
                               static_cast<uint16_t>(type)};
    bytes_.append(reinterpret_cast<const char*>(&attribute), sizeof attribute);
    bytes_ += value;
    bytes_.resize(NLMSG_ALIGN(bytes_.size()));
    return Length(static_cast<uint32_t>(bytes_.size()));
  }
  Ask& Put32(int type, uint32_t value) {
    return Put(type, std::string(reinterpret_cast<const char*>(&value), sizeof value));
  }
  Ask& Length(uint32_t length) {
    std::memcpy(bytes_.data(), &length, sizeof length);
    return *this;
  }
  Ask& Flags(uint16_t flags) {
    std::memcpy(bytes_.data() + offsetof(struct nlmsghdr, nlmsg_flags), &flags, sizeof flags);
    return *this;
  }
  Ask& Type(uint16_t type) {
    std::memcpy(bytes_.data() + offsetof(struct nlmsghdr, nlmsg_type), &type, sizeof type);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string Hex(const uint8_t* data, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", data[i]);
    text += digits;
  }
  return text;
}

// "1401/2 1=00000000 2=7278653000": type and flags in hex, then attributes; or "error -22", "done
// 0".
std::string Show(const std::string& datagram) {
  std::string text;
  size_t at = 0;
  while (at + sizeof(struct nlmsghdr) <= datagram.size()) {
    struct nlmsghdr header;
    std::memcpy(&header, datagram.data() + at, sizeof header);
    const auto* body = reinterpret_cast<const uint8_t*>(datagram.data()) + at + sizeof header;
    const size_t size = header.nlmsg_len - sizeof header;
    if (!text.empty()) text += " + ";
    if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_type == NLMSG_DONE) {
      int error;
      std::memcpy(&error, body, sizeof error);
      text += header.nlmsg_type == NLMSG_DONE ? "done " : "error ";
      text += std::to_string(error);
    } else {
      char start[32];
      std::snprintf(start, sizeof start, "%x/%x", header.nlmsg_type, header.nlmsg_flags);
      text += start;
      for (size_t offset = 0; offset + NLA_HDRLEN <= size;) {
        struct nlattr attribute;
        std::memcpy(&attribute, body + offset, sizeof attribute);
        text += " " + std::to_string(attribute.nla_type) + "=" +
                Hex(body + offset + NLA_HDRLEN, attribute.nla_len - NLA_HDRLEN);
        offset += NLA_ALIGN(attribute.nla_len);
      }
    }
    at += NLMSG_ALIGN(header.nlmsg_len);
  }
  return text;
}

// What stands in the first entry of a table of objects, the last attribute of a message shown:
// `depth` attributes of attributes are opened.
std::string Inside(const std::string& shown, int depth) {
  const size_t last = shown.rfind('=');
  std::string bytes;
  for (size_t at = last + 1; at + 1 < shown.size(); at += 2)
    bytes += static_cast<char>(std::stoi(shown.substr(at, 2), nullptr, 16));
  std::string text;
  for (size_t offset = 0; offset + NLA_HDRLEN <= bytes.size();) {
    struct nlattr attribute;
    std::memcpy(&attribute, bytes.data() + offset, sizeof attribute);
    if (attribute.nla_len < NLA_HDRLEN) break;
    if (!text.empty()) text += " ";
    text += std::to_string(attribute.nla_type) + "=" +
            Hex(reinterpret_cast<const uint8_t*>(bytes.data()) + offset + NLA_HDRLEN,
                attribute.nla_len - NLA_HDRLEN);
    if (depth > 1) break;
    offset += NLA_ALIGN(attribute.nla_len);
  }
  return depth > 1 ? Inside(text, depth - 1) : text;
}

// A socket of a world that has rxe0 on lo, as the real machine had.
class RdmaNetlink {
 public:
  explicit RdmaNetlink(const std::string& kernel,
                       std::initializer_list<const char*> providers = {"rxe"},
                       std::initializer_list<const char*> overlays = {})
      : world_(kernel, providers, overlays) {
    for (uint32_t i = 0; i < world_.image().device_count; ++i) {
      DeviceImage& device = world_.image().device[i];
      if (device.driver != DriverId::rxe) continue;
      device.node_guid = device.sys_image_guid = 0x020000fffe000000;
      std::strcpy(device.ports[0].ndev, "lo");
      device.ports[0].ndev_ifindex = 1;
    }
    InstallWorld(world_.world());
    open_result_ = FakeKernel::OpenNetlink(SOCK_RAW, 20, &opened_);
    if (open_result_ == 0) opened_.file->set_backing_fd(opened_.fd);
  }
  ~RdmaNetlink() {
    if (open_result_ != 0) return;
    opened_.file->Release();
    close(opened_.fd);
  }
  WorldImage& image() { return world_.image(); }
  int open_result() const { return open_result_; }
  SocketFile& socket() { return static_cast<SocketFile&>(*opened_.file); }

  ssize_t Send(const std::string& bytes) { return socket().Write(bytes.data(), bytes.size()); }
  std::string Receive(size_t room = 8192) {
    std::string buffer(room, '\0');
    const ssize_t size = socket().Read(buffer.data(), buffer.size(), true);
    if (size < 0) return "";
    buffer.resize(static_cast<size_t>(size));
    return buffer;
  }
  // Everything that one request brings.
  std::vector<std::string> Answers(const Ask& ask) {
    Send(ask.bytes());
    std::vector<std::string> answers;
    for (std::string datagram = Receive(); !datagram.empty(); datagram = Receive()) {
      answers.push_back(Show(datagram));
    }
    return answers;
  }

 private:
  TestWorld world_;
  Opened opened_;
  int open_result_ = 0;
};

// The capability flags are the driver's, which is not linked in here.
constexpr char kRxeHandle[] = "1=00000000 2=7278653000 3=01000000";
const std::string kRxeDevice =
    std::string(kRxeHandle) +
    " 4=0000000000000000 6=000000feff000002 7=000000feff000002 14=01 84=00";

struct Kernel {
  const char* name;
  std::string device;   // what GET tells after the header
  std::string sys_get;  // what SYS_GET tells
  std::string sys_get_short;
};
void PrintTo(const Kernel& kernel, std::ostream* out) { *out << kernel.name; }

const Kernel kReal[] = {
    {"debian-5.10.223", kRxeDevice + " 67=726f636500", "1406/0 66=01", "error -22"},
    {"debian-6.1.192", kRxeDevice + " 67=726f636500", "1406/0 66=01 96=00 93=01", "error -22"},
    {"debian-6.12.117", kRxeDevice + " 101=01 67=726f636500", "1406/0 66=01 96=00 103=01 93=01",
     "error -34"},
    {"debian-7.3.4", kRxeDevice + " 101=01 67=726f636500", "1406/0 66=01 96=00 103=01 93=01",
     "error -34"},
};

class RealAnswers : public ::testing::TestWithParam<Kernel> {
 protected:
  RealAnswers() : netlink_(GetParam().name) {}
  RdmaNetlink netlink_;
};
INSTANTIATE_TEST_SUITE_P(Kernels, RealAnswers, ::testing::ValuesIn(kReal), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
  return name;
});

TEST_P(RealAnswers, DevicesAreDumpedOneADatagramThenDone) {
  EXPECT_THAT(netlink_.Answers(Ask(kGet, kDump)),
              ElementsAre("1401/2 " + GetParam().device, "done 0"));
  EXPECT_THAT(netlink_.Answers(Ask(kGet, kDump | NLM_F_ACK)),
              ElementsAre("1401/2 " + GetParam().device, "done 0"))
      << "a dump is not acknowledged";
}

TEST_P(RealAnswers, OneDeviceByIndex) {
  const std::string device = "1401/0 " + GetParam().device;
  EXPECT_THAT(netlink_.Answers(Ask(kGet).Put32(kDevIndex, 0)), ElementsAre(device));
  EXPECT_THAT(netlink_.Answers(Ask(kGet, NLM_F_ACK).Put32(kDevIndex, 0)),
              ElementsAre(device, "error 0"));
  EXPECT_THAT(netlink_.Answers(Ask(kGet)), ElementsAre("error -22"));
  EXPECT_THAT(netlink_.Answers(Ask(kGet).Put32(kDevIndex, 99)), ElementsAre("error -22"));
}

TEST_P(RealAnswers, QueriesAreReadLiberally) {
  const std::string device = "1401/0 " + GetParam().device;
  EXPECT_THAT(netlink_.Answers(Ask(kGet).Put(kDevIndex, std::string(2, '\0'))),
              ElementsAre("error -22"));
  EXPECT_THAT(netlink_.Answers(Ask(kGet).Put(kDevIndex, std::string(8, '\0'))),
              ElementsAre(device));
  EXPECT_THAT(netlink_.Answers(Ask(kGet).Put32(kDevIndex, 0).Put32(250, 1)), ElementsAre(device));
}

TEST_P(RealAnswers, Ports) {
  const std::string port = std::string(kRxeHandle) + " 12=04 13=05 50=01000000 51=6c6f00";
  EXPECT_THAT(netlink_.Answers(Ask(kPortGet, kDump).Put32(kDevIndex, 0)),
              ElementsAre("1405/2 " + port, "done 0"));
  EXPECT_THAT(netlink_.Answers(Ask(kPortGet, kDump)), ElementsAre("done -22"));
  EXPECT_THAT(netlink_.Answers(Ask(kPortGet).Put32(kDevIndex, 0).Put32(kPortIndex, 1)),
              ElementsAre("1401/0 " + port));
  EXPECT_THAT(netlink_.Answers(Ask(kPortGet).Put32(kDevIndex, 0).Put32(kPortIndex, 2)),
              ElementsAre("error -22"));
  EXPECT_THAT(netlink_.Answers(Ask(kPortGet).Put32(kDevIndex, 0)), ElementsAre("error -22"));
}

TEST_P(RealAnswers, TheNodeOfADevice) {
  const std::string uverbs("uverbs", 7);
  const std::string node =
      "140f/0 73=0e000000 72=c0e7000000000000 71=0200000000000000 70=7576657262733000";
  EXPECT_THAT(netlink_.Answers(Ask(kGetChardev).Put32(kDevIndex, 0).Put(kChardevType, uverbs)),
              ElementsAre(node));
  EXPECT_THAT(netlink_.Answers(Ask(kGetChardev).Put32(kDevIndex, 0)), ElementsAre("error -22"));
  EXPECT_THAT(netlink_.Answers(Ask(kGetChardev).Put(kChardevType, uverbs)),
              ElementsAre("error -95"));
  EXPECT_THAT(
      netlink_.Answers(
          Ask(kGetChardev).Put32(kDevIndex, 0).Put(kChardevType, std::string("nonsense", 9))),
      ElementsAre("error -95"));
  EXPECT_THAT(
      netlink_.Answers(
          Ask(kGetChardev).Put32(kDevIndex, 0).Put32(kPortIndex, 1).Put(kChardevType, uverbs)),
      ElementsAre("error -22"));
  EXPECT_THAT(netlink_.Answers(Ask(kGetChardev).Put32(kPortIndex, 1).Put(kChardevType, uverbs)),
              ElementsAre("error -22"));
  EXPECT_THAT(netlink_.Answers(Ask(kGetChardev).Put32(kDevIndex, 0).Put(kChardevType, "uverbs")),
              ElementsAre("error -22"))
      << "no final zero";
  EXPECT_THAT(netlink_.Answers(Ask(kGetChardev).Put32(kDevIndex, 0).Put(kChardevType, "")),
              ElementsAre("error -22"));
  EXPECT_THAT(
      netlink_.Answers(
          Ask(kGetChardev).Put32(kDevIndex, 0).Put(kChardevType, std::string("uverbs\0junk", 11))),
      ElementsAre(node));
  EXPECT_THAT(
      netlink_.Answers(Ask(kGetChardev, kDump).Put32(kDevIndex, 0).Put(kChardevType, uverbs)),
      ElementsAre("error -22"));
}

// core/user_mad.c:ib_umad_get_nl_info, ib_issm_get_nl_info; core/ucma.c:ucma_get_global_nl_info.
TEST_P(RealAnswers, NodesOfOtherModules) {
  const std::string umad("umad", 5), issm("issm", 5), rdma_cm("rdma_cm", 8);
  EXPECT_THAT(netlink_.Answers(Ask(kGetChardev).Put(kChardevType, rdma_cm)),
              ElementsAre("140f/0 72=000a100000000000 71=0400000000000000 70=72646d615f636d00"));
  EXPECT_THAT(netlink_.Answers(Ask(kGetChardev).Put32(kDevIndex, 0).Put(kChardevType, rdma_cm)),
              ElementsAre("error -95"));
  EXPECT_THAT(netlink_.Answers(Ask(kGetChardev).Put(kChardevType, umad)), ElementsAre("error -95"));
  EXPECT_THAT(netlink_.Answers(Ask(kGetChardev).Put32(kDevIndex, 0).Put(kChardevType, umad)),
              ElementsAre("error -22"));
  EXPECT_THAT(
      netlink_.Answers(
          Ask(kGetChardev).Put32(kDevIndex, 0).Put32(kPortIndex, 1).Put(kChardevType, umad)),
      ElementsAre("140f/0 72=00e7000000000000 71=0500000000000000 70=756d61643000"));
  EXPECT_THAT(
      netlink_.Answers(
          Ask(kGetChardev).Put32(kDevIndex, 0).Put32(kPortIndex, 1).Put(kChardevType, issm)),
      ElementsAre("error -95"));
}

// RDMA_NLDEV_ATTR_CHARDEV_TYPE_SIZE: 32 characters and the final zero pass the policy.
TEST_P(RealAnswers, ATypeOfANodeIsShort) {
  std::string type(32, 'x');
  type += '\0';
  EXPECT_THAT(netlink_.Answers(Ask(kGetChardev).Put32(kDevIndex, 0).Put(kChardevType, type)),
              ElementsAre("error -95"));
  EXPECT_THAT(netlink_.Answers(Ask(kGetChardev).Put32(kDevIndex, 0).Put(kChardevType, "x" + type)),
              ElementsAre("error -22"));
}

TEST_P(RealAnswers, TheSystem) {
  EXPECT_THAT(netlink_.Answers(Ask(kSysGet)), ElementsAre(GetParam().sys_get));
  EXPECT_THAT(netlink_.Answers(Ask(kSysGet).Put(kDevIndex, std::string(2, '\0'))),
              ElementsAre(GetParam().sys_get_short));
  EXPECT_THAT(netlink_.Answers(Ask(kSysGet).Put(kChardevType, "uverbs")), ElementsAre("error -22"));
  EXPECT_THAT(netlink_.Answers(Ask(kSysGet, kDump)), ElementsAre("error -22"));
}

TEST_P(RealAnswers, OddRequests) {
  EXPECT_THAT(netlink_.Answers(Ask(200)), ElementsAre("error -22"));
  EXPECT_THAT(netlink_.Answers(Ask(0)), ElementsAre("error -22"));
  EXPECT_THAT(netlink_.Answers(Ask(kGet, 0, 9)), ElementsAre("error -22"));
  EXPECT_THAT(netlink_.Answers(Ask(kGet, 0, 3)), ElementsAre("error -22"));
  EXPECT_THAT(netlink_.Answers(Ask(kGet).Flags(kDump)), IsEmpty()) << "no request";
  EXPECT_THAT(netlink_.Answers(Ask(kGet).Flags(NLM_F_ACK)), ElementsAre("error 0"));
  EXPECT_THAT(netlink_.Answers(Ask(kGet, NLM_F_ACK).Type(NLMSG_DONE)), ElementsAre("error 0"));
  EXPECT_THAT(netlink_.Answers(Ask(kGet, kDump).Length(12)), IsEmpty());
  EXPECT_THAT(netlink_.Answers(Ask(kGet, kDump).Length(100)), IsEmpty());
}

TEST_P(RealAnswers, ASecondDumpWaitsForTheFirst) {
  netlink_.Send(Ask(kGet, kDump).bytes());
  EXPECT_THAT(netlink_.Answers(Ask(kGet, kDump)),
              ElementsAre("1401/2 " + GetParam().device, "error -16", "done 0"));
}

TEST_P(RealAnswers, ShortBuffersLoseTheRest) {
  netlink_.Send(Ask(kGet, kDump).bytes());
  char small[20];
  struct iovec part = {small, sizeof small};
  struct sockaddr_nl from = {};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  EXPECT_GT(netlink_.socket().ReceiveMessage(&message, MSG_PEEK | MSG_TRUNC), 20);
  EXPECT_TRUE(message.msg_flags & MSG_TRUNC);
  EXPECT_EQ(message.msg_namelen, 12U);
  EXPECT_EQ(from.nl_family, AF_NETLINK);
  EXPECT_EQ(from.nl_pid, 0U);
  EXPECT_EQ(netlink_.socket().ReceiveMessage(&message, 0), 20);
  EXPECT_EQ(Show(netlink_.Receive()), "done 0");
}

TEST_P(RealAnswers, SendingToNobody) {
  SocketFile& socket = netlink_.socket();
  EXPECT_EQ(netlink_.Send(""), -ENODATA);
  EXPECT_EQ(netlink_.Send(std::string(300000, '\0')), -EMSGSIZE);
  struct sockaddr_nl to = {};
  char bytes[16] = {};
  struct iovec part = {bytes, sizeof bytes};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_name = &to;
  message.msg_namelen = sizeof to;
  to.nl_family = AF_INET;
  EXPECT_EQ(socket.SendMessage(&message, 0), -EINVAL);
  to.nl_family = AF_NETLINK;
  to.nl_pid = 12345;
  EXPECT_EQ(socket.SendMessage(&message, 0), -ECONNREFUSED);
  message.msg_namelen = 4;
  EXPECT_EQ(socket.SendMessage(&message, 0), -EINVAL);
}

TEST_P(RealAnswers, Names) {
  SocketFile& socket = netlink_.socket();
  struct sockaddr_nl name = {};
  name.nl_family = AF_NETLINK;
  auto* address = reinterpret_cast<struct sockaddr*>(&name);
  EXPECT_EQ(socket.Bind(address, 8), -EINVAL);
  EXPECT_EQ(socket.Bind(address, sizeof name), 0);
  socklen_t length = sizeof name;
  EXPECT_EQ(socket.SocketName(address, &length, false), 0);
  EXPECT_EQ(name.nl_pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(length, 12U);
  // net/socket.c:move_addr_to_user
  EXPECT_EQ(socket.SocketName(address, nullptr, false), -EFAULT);
  length = static_cast<socklen_t>(-1);
  EXPECT_EQ(socket.SocketName(address, &length, false), -EINVAL);
  length = 2;
  EXPECT_EQ(socket.SocketName(address, &length, true), 0);
  EXPECT_EQ(length, 12U);
  EXPECT_EQ(socket.SocketName(nullptr, &length, false), -EFAULT);
  EXPECT_EQ(socket.ReceiveMessage(nullptr, MSG_DONTWAIT), -EFAULT);
  name.nl_pid = 77;
  EXPECT_EQ(socket.Bind(address, sizeof name), -EINVAL);

  Opened second;
  ASSERT_EQ(FakeKernel::OpenNetlink(SOCK_DGRAM, 20, &second), 0);
  auto& other = static_cast<SocketFile&>(*second.file);
  name.nl_pid = static_cast<uint32_t>(getpid());
  EXPECT_EQ(other.Bind(address, sizeof name), -EADDRINUSE);
  name.nl_pid = 0;
  EXPECT_EQ(other.Bind(address, sizeof name), 0);
  EXPECT_EQ(other.SocketName(address, &length, false), 0);
  EXPECT_LT(static_cast<int>(name.nl_pid), 0);
  other.Release();
  close(second.fd);
}

TEST_P(RealAnswers, Options) {
  SocketFile& socket = netlink_.socket();
  const int on = 1;
  for (int option : {3, 4, 5, 10, 11, 12}) {
    int value = -1;
    socklen_t length = sizeof value;
    EXPECT_EQ(socket.SetOption(270, option, &on, sizeof on), 0) << option;
    EXPECT_EQ(socket.GetOption(270, option, &value, &length), 0) << option;
    EXPECT_EQ(value, 1) << option;
  }
  for (int option : {6, 7, 9, 13}) {
    EXPECT_EQ(socket.SetOption(270, option, &on, sizeof on), -ENOPROTOOPT) << option;
  }
  int value = -1;
  socklen_t length = sizeof value;
  EXPECT_EQ(socket.GetOption(SOL_SOCKET, SO_PROTOCOL, &value, &length), 0);
  EXPECT_EQ(value, 20);
}

TEST_P(RealAnswers, ErrorsRepeatTheRequestUnlessCapped) {
  const Ask ask = Ask(kGet).Put32(kDevIndex, 99);
  netlink_.Send(ask.bytes());
  EXPECT_EQ(netlink_.Receive().size(), 44U);  // header, errno, the whole request
  const int on = 1;
  netlink_.socket().SetOption(270, NETLINK_CAP_ACK, &on, sizeof on);
  netlink_.Send(ask.bytes());
  EXPECT_EQ(netlink_.Receive().size(), 36U);
}

TEST_P(RealAnswers, ChangesNeedAPrivilegedUser) {
  netlink_.image().check_permissions = 1;
  netlink_.image().uid = 1000;
  EXPECT_THAT(netlink_.Answers(Ask(2).Put32(kDevIndex, 0)), ElementsAre("error -1"));  // SET
  EXPECT_THAT(netlink_.Answers(Ask(kGet, kDump)),
              ElementsAre("1401/2 " + GetParam().device, "done 0"));
}

TEST(RdmaNetlinkTest, TellsOfEachDeviceThatItsNamespaceSees) {
  RdmaNetlink netlink("debian-6.12.117", {"mlx5", "rxe"});
  EXPECT_EQ(netlink.Answers(Ask(kGet, kDump)).size(), 3U);
  netlink.image().device[0].hidden_from_netlink = 1;
  const auto answers = netlink.Answers(Ask(kGet, kDump));
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_THAT(answers[0], ::testing::HasSubstr("2=7278653000"));  // rxe0
  EXPECT_THAT(netlink.Answers(Ask(kGet).Put32(kDevIndex, 0)), ElementsAre("error -22"));
}

// core/nldev.c:fill_port_info
TEST(RdmaNetlinkTest, InfinibandPortsTellMore) {
  RdmaNetlink netlink("debian-6.12.117", {"mlx5"});
  PortImage& port = netlink.image().device[0].ports[0];
  port.cap_flags = 0x2259e848;
  port.lid = 0x12;
  port.sm_lid = 0x34;
  port.lmc = 3;
  const auto answers = netlink.Answers(Ask(kPortGet).Put32(kDevIndex, 0).Put32(kPortIndex, 1));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_THAT(answers[0], ::testing::HasSubstr(" 4=48e8592200000000 8=00000000000080fe 9=12000000 "
                                               "10=34000000 11=03 12=04 13=05"));
}

// core/nldev.c:fill_port_info: 4.20 tells port_cap_flags, 5.0 port_cap_flags2 above them.
TEST(RdmaNetlinkTest, MoreCapabilitiesArePartOfTheSameNumberSince50) {
  for (const auto& [kernel, told] :
       {std::pair{"linux-4.20", " 4=48e8592200000000 "}, {"linux-5.0", " 4=48e8592232000000 "}}) {
    RdmaNetlink netlink(kernel, {"mlx5"});
    PortImage& port = netlink.image().device[0].ports[0];
    port.cap_flags = 0x2259e848;
    port.cap_flags2 = 0x32;
    const auto answers = netlink.Answers(Ask(kPortGet).Put32(kDevIndex, 0).Put32(kPortIndex, 1));
    ASSERT_EQ(answers.size(), 1U) << kernel;
    EXPECT_THAT(answers[0], ::testing::HasSubstr(told)) << kernel;
  }
}

TEST(RdmaNetlinkTest, AWorldWithoutNetlinkHasNoSuchProtocol) {
  RdmaNetlink netlink("debian-6.12.117", {"rxe"}, {"no-netlink"});
  EXPECT_EQ(netlink.open_result(), -EPROTONOSUPPORT);
}

TEST(RdmaNetlinkTest, BeforeGetChardevTheRequestIsUnknown) {
  RdmaNetlink netlink("debian-6.12.117", {"rxe"}, {"no-netlink-chardev"});
  EXPECT_THAT(netlink.Answers(
                  Ask(kGetChardev).Put32(kDevIndex, 0).Put(kChardevType, std::string("uverbs", 7))),
              ElementsAre("error -22"));
  EXPECT_EQ(netlink.Answers(Ask(kGet, kDump)).size(), 2U);
}

// core/nldev.c:fill_dev_info, fill_port_info of 4.16: no protocol, no dim, capabilities of every
// port, no netdev.
TEST(RdmaNetlinkTest, TheFirstNldevTellsLess) {
  RdmaNetlink netlink("linux-4.16", {"rxe"});
  EXPECT_THAT(netlink.Answers(Ask(kGet, kDump)),
              ElementsAre("1401/2 1=00000000 2=7278653000 3=01000000 4=0000000000000000 "
                          "6=000000feff000002 7=000000feff000002 14=01",
                          "done 0"));
  netlink.image().device[0].ports[0].cap_flags = 0x10000;
  EXPECT_THAT(
      netlink.Answers(Ask(kPortGet).Put32(kDevIndex, 0).Put32(kPortIndex, 1)),
      ElementsAre("1401/0 1=00000000 2=7278653000 3=01000000 4=0000010000000000 12=04 13=05"));
  EXPECT_THAT(netlink.Answers(
                  Ask(kGetChardev).Put32(kDevIndex, 0).Put(kChardevType, std::string("uverbs", 7))),
              ElementsAre("error -22"));
  EXPECT_THAT(netlink.Answers(Ask(kSysGet)), ElementsAre("error -22"));
  EXPECT_EQ(netlink.Send(""), 0) << "refused only since 5.17";
}

// core/netlink.c of 4.4: the family is there, but no client that tells of devices. Acks have no
// NLM_F_CAPPED.
TEST(RdmaNetlinkTest, TheOldestKernelsTellNothing) {
  RdmaNetlink netlink("linux-4.4", {"mlx5"});
  EXPECT_EQ(netlink.open_result(), 0);
  EXPECT_THAT(netlink.Answers(Ask(kGet, kDump)), ElementsAre("error -22"));
  const int on = 1;
  EXPECT_EQ(netlink.socket().SetOption(270, NETLINK_CAP_ACK, &on, sizeof on), 0);
  EXPECT_EQ(netlink.socket().SetOption(270, NETLINK_EXT_ACK, &on, sizeof on), -ENOPROTOOPT);
  netlink.Send(Ask(kGet).bytes());
  struct nlmsghdr header;
  std::memcpy(&header, netlink.Receive().data(), sizeof header);
  EXPECT_EQ(header.nlmsg_flags, 0);
}

TEST(RdmaNetlinkTest, OtherTypesAndFamilies) {
  RdmaNetlink netlink("debian-6.12.117");
  Opened opened;
  EXPECT_EQ(FakeKernel::OpenNetlink(SOCK_STREAM, 20, &opened), -ESOCKTNOSUPPORT);
  EXPECT_EQ(FakeKernel::OpenNetlink(SOCK_RAW, 4, &opened), 1)
      << "NETLINK_SOCK_DIAG is the machine's own";
}

TEST(RdmaNetlinkTest, WhatIsNotModelledIsRefusedAndNeverInvented) {
  RdmaNetlink netlink("debian-6.12.117");
  EXPECT_THAT(netlink.Answers(Ask(9, kDump)), ElementsAre("error -95"));  // RES_GET
}

// core/nldev.c:fill_res_info, attribute by attribute: 16 the entry, 17 its name, 18 how many there
// are, 118 how many there can be. On RoCE the kernel has a PD, a CQ and a queue pair for itself
// (core/mad.c).
class Resources : public ::testing::Test {
 protected:
  static std::string Entry(const std::string& name, char count, uint64_t limit = 0) {
    std::string padded = name + std::string(4 - name.size() % 4, '\0');
    const auto put = [](uint16_t type, size_t length, const std::string& value) {
      const uint16_t header[2] = {static_cast<uint16_t>(4 + length), type};
      return std::string(reinterpret_cast<const char*>(header), 4) + value;
    };
    const auto number = [](uint64_t value) {
      return std::string(reinterpret_cast<const char*>(&value), 8);
    };
    std::string inner =
        put(17, name.size() + 1, padded) + put(18, 8, number(static_cast<uint8_t>(count)));
    if (limit != 0) inner += put(118, 8, number(limit));
    return put(16, inner.size(), inner);
  }
  static std::string HexOf(const std::string& bytes) {
    return Hex(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  static std::string Said(const char* kernel) {
    SetDriverForTest(DriverId::rxe, &TestDriver::Make);
    RdmaNetlink netlink(kernel);
    const auto answers = netlink.Answers(Ask(kResGet).Put32(kDevIndex, 0));
    const auto dumped = netlink.Answers(Ask(kResGet, kDump));
    SetDriverForTest(DriverId::rxe, nullptr);
    EXPECT_EQ(answers.size(), 1U);
    EXPECT_EQ(dumped.size(), 2U);
    if (answers.size() != 1 || dumped.size() != 2) return "";
    EXPECT_EQ(dumped[1], "done 0");
    EXPECT_EQ(dumped[0].substr(7), answers[0].substr(7));
    return answers[0];
  }
};

TEST_F(Resources, AreCountedByKind) {
  const std::string start = "1409/0 1=00000000 2=7278653000 15=";
  const std::string old = Entry("pd", 1) + Entry("cq", 1) + Entry("qp", 1) + Entry("cm_id", 0) +
                          Entry("mr", 0) + Entry("ctx", 0);
  EXPECT_EQ(Said("debian-5.10.223"), start + HexOf(old));
  EXPECT_EQ(Said("debian-6.1.192"), start + HexOf(old + Entry("srq", 0)));
  // The test driver has 1000 queue pairs and tells no other limit.
  EXPECT_EQ(
      Said("debian-7.3.4"),
      start + HexOf(Entry("pd", 1) + Entry("cq", 1) + Entry("qp", 1, 1000) + Entry("cm_id", 0) +
                    Entry("mr", 0) + Entry("ctx", 0) + Entry("srq", 0) + Entry("comp_cntr", 0)));
}

// What programs have comes on top.
TEST_F(Resources, OfProgramsAreCounted) {
  SetDriverForTest(DriverId::rxe, &TestDriver::Make);
  RdmaNetlink netlink("debian-5.10.223");
  uint32_t slots[2] = {};
  Tracked mr = {};
  mr.type = TrackType::kMr;
  for (uint32_t& slot : slots) TrackEntry(netlink.image(), mr, &slot);
  EXPECT_THAT(netlink.Answers(Ask(kResGet).Put32(kDevIndex, 0)).at(0),
              ::testing::HasSubstr(HexOf(Entry("mr", 2))));
  UntrackEntry(netlink.image(), &slots[0]);
  EXPECT_THAT(netlink.Answers(Ask(kResGet).Put32(kDevIndex, 0)).at(0),
              ::testing::HasSubstr(HexOf(Entry("mr", 1))));
  UntrackEntry(netlink.image(), &slots[1]);
  SetDriverForTest(DriverId::rxe, nullptr);
}

// The list keeps some thousands: who asks then learns in the trace that it is not all.
TEST_F(Resources, ThatHadNoRoomAreNamedInTheTrace) {
  SetDriverForTest(DriverId::rxe, &TestDriver::Make);
  RdmaNetlink netlink("debian-5.10.223");
  const std::string path = ::testing::TempDir() + "/netlink." + std::to_string(getpid());
  const auto told = [&] {
    trace::Open(path.c_str());
    netlink.Answers(Ask(kResGet).Put32(kDevIndex, 0));
    trace::Open("");
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    unlink(path.c_str());
    return text.find("more objects than the list has room for") != std::string::npos;
  };
  EXPECT_FALSE(told());
  std::vector<uint32_t> slots(10'000);
  Tracked mr = {};
  mr.type = TrackType::kMr;
  for (uint32_t& slot : slots) TrackEntry(netlink.image(), mr, &slot);
  EXPECT_TRUE(told());
  for (uint32_t& slot : slots) UntrackEntry(netlink.image(), &slot);
  SetDriverForTest(DriverId::rxe, nullptr);
}

// core/nldev.c:fill_res_qp_entry, fill_res_mr_entry of each release: 21 the number, 22 the remote
// one, 23 and 24 starting numbers, 25 migration, 26 type, 27 state, 28 the process, 42 rkey, 43
// lkey, 44 IOVA, 45 length, 60 the PD, 62 the MR.
TEST_F(Resources, AreListedAsTheReleaseTellsThem) {
  constexpr int kResQpGet = 10, kResMrGet = 13, kLqpn = 21, kMrn = 62;
  const struct {
    const char* kernel;
    const char* qp;
    const char* mr;
  } cases[] = {
      {"linux-4.16", "3=01000000 21=21000000 22=99000000 23=07000000 24=08000000 25=00 26=02 27=03",
       ""},
      {"linux-4.17", "3=01000000 21=21000000 22=99000000 23=07000000 24=08000000 25=00 26=02 27=03",
       "42=41000000 43=40000000 44=0010000000000000 45=0020000000000000"},
      {"linux-4.18", "3=01000000 21=21000000 22=99000000 23=07000000 24=08000000 25=00 26=02 27=03",
       "42=41000000 43=40000000 45=0020000000000000"},
      {"linux-5.3",
       "3=01000000 21=21000000 22=99000000 23=07000000 24=08000000 25=00 26=02 27=03 60=05000000",
       "42=41000000 43=40000000 45=0020000000000000 62="},
  };
  for (const auto& it : cases) {
    RdmaNetlink netlink(it.kernel, {"mlx5"});  // of which the kernel's own are not listed
    Tracked qp = {}, mr = {};
    qp.type = TrackType::kQp;
    qp.id = 0x21;
    qp.kind = 2;
    qp.state = 3;
    qp.port = qp.connected = 1;
    qp.remote_qpn = 0x99;
    qp.rq_psn = 7;
    qp.sq_psn = 8;
    qp.pd = mr.pd = 5;
    mr.type = TrackType::kMr;
    mr.lkey = 0x40;
    mr.rkey = 0x41;
    mr.iova = 0x1000;
    mr.length = 0x2000;
    uint32_t slots[2] = {};
    TrackEntry(netlink.image(), qp, &slots[0]);
    TrackEntry(netlink.image(), mr, &slots[1]);
    const uint32_t id = FindTracked(netlink.image(), 0, TrackType::kMr).at(0).id;
    const auto list = netlink.Answers(Ask(kResQpGet, kDump).Put32(kDevIndex, 0));
    ASSERT_EQ(list.size(), 2u) << it.kernel;
    EXPECT_THAT(Inside(list[0], 2), ::testing::StartsWith(it.qp)) << it.kernel;
    EXPECT_EQ(list[1], "done 0");
    const auto regions = netlink.Answers(Ask(kResMrGet, kDump).Put32(kDevIndex, 0));
    if (*it.mr == '\0') {
      EXPECT_THAT(regions, ElementsAre("error -22")) << "4.16 lists queue pairs alone";
    } else {
      EXPECT_THAT(Inside(regions.at(0), 2), ::testing::StartsWith(it.mr)) << it.kernel;
    }
    if (std::string(it.kernel) == "linux-5.3") {
      EXPECT_THAT(netlink.Answers(Ask(kResMrGet).Put32(kDevIndex, 0).Put32(kMrn, id)).at(0),
                  ::testing::HasSubstr(it.mr));
      EXPECT_THAT(netlink.Answers(Ask(kResMrGet).Put32(kDevIndex, 0).Put32(kMrn, id + 1)),
                  ElementsAre("error -2"));
      EXPECT_THAT(netlink.Answers(Ask(kResMrGet).Put32(kDevIndex, 0)), ElementsAre("error -22"));
      EXPECT_THAT(netlink.Answers(Ask(kResQpGet).Put32(kDevIndex, 0).Put32(kLqpn, 0x21)),
                  ElementsAre("error -22"))
          << "a queue pair belongs to a port";
      EXPECT_EQ(
          netlink
              .Answers(Ask(kResQpGet).Put32(kDevIndex, 0).Put32(kPortIndex, 1).Put32(kLqpn, 0x21))
              .size(),
          1u);
    }
    for (uint32_t& slot : slots) UntrackEntry(netlink.image(), &slot);
  }
}

// What mad.c:ib_mad_port_open has made on a port of rxe, as each release tells of it: 21 the
// number, 24 the starting number, 26 GSI, 27 RTS, 29 who, 37 places, 38 users, 39 how it is polled,
// 60 the PD, 61 the CQ, 84 DIM; the sizes are of rxe_queue.c.
TEST_F(Resources, OfTheKernelsOwnAreListed) {
  constexpr int kResQpGet = 10, kResCqGet = 12, kResPdGet = 14, kMrGet = 13;
  const std::string who = "29=69625f636f726500";
  const struct {
    const char* kernel;
    std::string qp, cq, pd;
  } cases[] = {
      {"linux-4.16", "3=01000000 21=01000000 24=00000000 26=01 27=03 " + who, "", ""},
      {"linux-4.17", "3=01000000 21=01000000 24=00000000 26=01 27=03 " + who,
       "37=ff030000 38=0200000000000000 39=02 " + who, "38=0100000000000000 " + who},
      {"linux-5.14", "21=01000000 " + who + " 24=00000000 26=01 27=03",
       "37=ff030000 38=0200000000000000 39=02 84=00 61=00000000 " + who,
       "38=0100000000000000 60=00000000 " + who},
      {"debian-6.12.117", "3=01000000 21=01000000 " + who + " 24=00000000 26=01 27=03",
       "37=ff030000 38=0200000000000000 39=02 84=00 61=00000000 " + who,
       "38=0100000000000000 60=00000000 " + who},
  };
  for (const auto& it : cases) {
    SetDriverForTest(DriverId::rxe, &TestDriver::Make);
    RdmaNetlink netlink(it.kernel);
    SetDriverForTest(DriverId::rxe, nullptr);
    const auto list = [&](int command) {
      return netlink.Answers(Ask(command, kDump).Put32(kDevIndex, 0));
    };
    EXPECT_EQ(Inside(list(kResQpGet).at(0), 2), it.qp) << it.kernel;
    if (it.cq.empty()) continue;
    EXPECT_EQ(Inside(list(kResCqGet).at(0), 2), it.cq) << it.kernel;
    EXPECT_THAT(Inside(list(kResPdGet).at(0), 2), ::testing::EndsWith(it.pd)) << it.kernel;
    EXPECT_THAT(list(kMrGet), ElementsAre("done 0")) << "get_dma_mr is not tracked";
  }
}

// fill_port_info asks the device; a device that is gone has no index any more
// (core/device.c:disable_device).
TEST(RdmaNetlinkFollows, PortEventsAndUnplug) {
  SetDriverForTest(DriverId::mlx5, &TestDriver::Make);
  RdmaNetlink kernel("debian-6.12.117", {"rxe", "mlx5"});
  SetDriverForTest(DriverId::mlx5, nullptr);
  const auto port = [&] {
    return kernel.Answers(Ask(kPortGet).Put32(kDevIndex, 1).Put32(kPortIndex, 1)).at(0);
  };
  EXPECT_THAT(port(), testing::HasSubstr(" 12=04 13=05")) << "IB_PORT_ACTIVE, LinkUp";
  EXPECT_THAT(port(), testing::Not(testing::HasSubstr(" 51="))) << "no interface of its own";
  FindDevice(1)->Become(kPortDown);
  EXPECT_THAT(port(), testing::HasSubstr(" 12=01 13=03")) << "IB_PORT_DOWN, Disabled";
  EXPECT_EQ(kernel.Answers(Ask(kGet, kDump)).size(), 3u);
  FindDevice(1)->SetGone(true);
  EXPECT_EQ(port(), "error -22");
  EXPECT_EQ(kernel.Answers(Ask(kGet, kDump)).size(), 2u) << "rxe0 and the end";
}

}  // namespace
}  // namespace vabi
