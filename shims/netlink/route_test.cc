// SPDX-License-Identifier: BSD-2-Clause
#include "shims/netlink/route.h"

#include <gtest/gtest.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "harness/world/test_world.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/test_driver.h"

namespace vabi::netlink {
namespace {

// A socket of a world with mlx5 on RoCE: eth0, number 2, 10.0.0.1 (harness/world/devices.cc).
class Route {
 public:
  explicit Route(const char* provider = "rxe") : world_("debian-6.12.117", {provider}) {
    InstallWorld(world_.world());
    result_ = FakeKernel::OpenNetlink(SOCK_RAW, 0, &opened_);
    if (result_ == 0) opened_.file->set_backing_fd(opened_.fd);
  }
  ~Route() {
    if (result_ != 0) return;
    opened_.file->Release();
    close(opened_.fd);
  }
  int result() const { return result_; }

  struct Answer {
    uint16_t type = 0;
    int error = 0;
    std::string head;
    std::map<uint16_t, std::string> attributes;
  };
  // All messages that a request is answered with.
  std::vector<Answer> Ask(uint16_t type, uint16_t flags, const std::string& body) {
    struct nlmsghdr header = {};
    header.nlmsg_len = static_cast<uint32_t>(sizeof(header) + body.size());
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
    header.nlmsg_seq = 7;
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
    bytes += body;
    EXPECT_EQ(static_cast<ssize_t>(bytes.size()), opened_.file->Write(bytes.data(), bytes.size()));
    std::vector<Answer> all;
    char buffer[8192];
    for (ssize_t got; (got = opened_.file->Read(buffer, sizeof(buffer), true)) > 0;)
      all.push_back(Parse(std::string(buffer, static_cast<size_t>(got))));
    return all;
  }

 private:
  static Answer Parse(const std::string& bytes) {
    Answer answer;
    struct nlmsghdr header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    EXPECT_EQ(bytes.size(), header.nlmsg_len);
    EXPECT_EQ(7U, header.nlmsg_seq);
    answer.type = header.nlmsg_type;
    if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_type == NLMSG_DONE) {
      std::memcpy(&answer.error, bytes.data() + sizeof(header), sizeof(answer.error));
      return answer;
    }
    const size_t head =
        header.nlmsg_type == RTM_NEWLINK ? sizeof(struct ifinfomsg) : sizeof(struct ifaddrmsg);
    answer.head = bytes.substr(sizeof(header), head);
    for (size_t at = sizeof(header) + head; at < bytes.size();) {
      struct nlattr attribute;
      std::memcpy(&attribute, bytes.data() + at, sizeof(attribute));
      if (attribute.nla_len < sizeof(attribute)) break;
      answer.attributes[attribute.nla_type] =
          bytes.substr(at + sizeof(attribute), attribute.nla_len - sizeof(attribute));
      at += NLA_ALIGN(attribute.nla_len);
    }
    return answer;
  }
  TestWorld world_;
  Opened opened_;
  int result_;
};

std::string Named(const std::string& name) {
  std::string body(sizeof(struct ifinfomsg), '\0');
  const struct nlattr head = {static_cast<uint16_t>(sizeof(struct nlattr) + name.size() + 1),
                              IFLA_IFNAME};
  body.append(reinterpret_cast<const char*>(&head), sizeof(head));
  body += name;
  body.resize(NLMSG_ALIGN(body.size() + 1));
  return body;
}

TEST(RouteSocket, OnlyInWorldsWithInterfaces) {
  EXPECT_EQ(0, Route("rxe").result());
  EXPECT_EQ(0, Route("siw").result());
  EXPECT_EQ(0, Route("mlx5").result()) << "IPoIB";
  EXPECT_EQ(1, Route("efa").result()) << "the machine's own interfaces stay";
}

TEST(RouteSocket, FindsALinkByItsName) {
  Route route;
  const auto found = route.Ask(RTM_GETLINK, 0, Named("eth0"));
  ASSERT_EQ(1U, found.size());
  EXPECT_EQ(RTM_NEWLINK, found[0].type);
  int number;
  std::memcpy(&number, found[0].head.data() + 4, sizeof(number));
  EXPECT_EQ(2, number);
  EXPECT_EQ(std::string("eth0\0", 5), found[0].attributes.at(IFLA_IFNAME));
  // The address from which the link-local one and the node GUID are made: ff:fe in the middle, and
  // the local bit turned.
  EXPECT_EQ(std::string("\0\0\xc0\0\x01\0", 6), found[0].attributes.at(IFLA_ADDRESS));
  const auto none = route.Ask(RTM_GETLINK, 0, Named("eth7"));
  ASSERT_EQ(1U, none.size());
  EXPECT_EQ(-ENODEV, none[0].error);
}

// ulp/ipoib/ipoib_main.c: ipoib_setup_common, ipoib_intf_init; RFC 4391, 9.1.1.
TEST(RouteSocket, InfinibandPortsHaveIpoib) {
  Route route("mlx5");
  const auto found = route.Ask(RTM_GETLINK, 0, Named("ib0"));
  ASSERT_EQ(1U, found.size());
  uint16_t type;
  std::memcpy(&type, found[0].head.data() + 2, sizeof(type));
  EXPECT_EQ(32, type) << "ARPHRD_INFINIBAND";
  const std::string& address = found[0].attributes.at(IFLA_ADDRESS);
  ASSERT_EQ(20U, address.size());
  EXPECT_EQ(std::string("\xfe\x80\0\0\0\0\0\0\x02\0\xc0\xff\xfe\0\x01\0", 16), address.substr(4))
      << "the port's GID";
  EXPECT_EQ(std::string("\0\xff\xff\xff\xff\x12\x40\x1b\xff\xff\0\0\0\0\0\0\xff\xff\xff\xff", 20),
            found[0].attributes.at(IFLA_BROADCAST))
      << "with the P_Key in the middle";
  EXPECT_EQ(std::string("\xfc\x07\0\0", 4), found[0].attributes.at(IFLA_MTU)) << "2044";
}

// What the port does its interface follows.
TEST(RouteSocket, ALinkFollowsItsPort) {
  SetDriverForTest(DriverId::mlx5, &TestDriver::Make);
  Route route("mlx5");
  SetDriverForTest(DriverId::mlx5, nullptr);
  FindDevice(0)->Become(kPortDown);
  const auto down = route.Ask(RTM_GETLINK, 0, Named("ib0"));
  EXPECT_EQ(std::string("\x02", 1), down.at(0).attributes.at(IFLA_OPERSTATE)) << "IF_OPER_DOWN";
  FindDevice(0)->SetGone(true);
  EXPECT_EQ(-ENODEV, route.Ask(RTM_GETLINK, 0, Named("ib0")).at(0).error);
  EXPECT_EQ(-ENODEV, route.Ask(RTM_GETLINK, 0, Named("eth0")).at(0).error);
  EXPECT_TRUE(RouteSocket::HasInterfaces(*InstalledWorld())) << "still not the machine's";
}

TEST(RouteSocket, ListsAddresses) {
  // An iWARP device's GID is none of its interface's addresses.
  for (const char* provider : {"rxe", "siw", "mlx5"}) {
    Route route(provider);
    struct ifaddrmsg ask = {};
    ask.ifa_index = 2;
    const auto all = route.Ask(RTM_GETADDR, NLM_F_DUMP,
                               std::string(reinterpret_cast<const char*>(&ask), sizeof(ask)));
    ASSERT_EQ(3U, all.size()) << "link-local, IPv4 and the end";
    std::vector<std::string> addresses;
    for (const auto& answer : all) {
      if (answer.type == RTM_NEWADDR) addresses.push_back(answer.attributes.at(IFA_ADDRESS));
    }
    ASSERT_EQ(2U, addresses.size());
    EXPECT_EQ(std::string("\x0a\0\0\x01", 4), addresses[0]) << "IPv4 comes first";
    EXPECT_EQ(std::string("\xfe\x80\0\0\0\0\0\0\x02\0\xc0\xff\xfe\0\x01\0", 16), addresses[1]);
    EXPECT_EQ(NLMSG_DONE, all.back().type);
  }
}

TEST(RouteSocket, NoRouteLeadsAnywhere) {
  Route route;
  const auto answer = route.Ask(RTM_GETROUTE, 0, std::string(sizeof(struct rtmsg), '\0'));
  ASSERT_EQ(1U, answer.size());
  EXPECT_EQ(-ENETUNREACH, answer[0].error);
  const auto other = route.Ask(RTM_NEWLINK, NLM_F_ACK, Named("eth9"));
  ASSERT_EQ(1U, other.size());
  EXPECT_EQ(-EOPNOTSUPP, other[0].error) << "not modelled";
}

}  // namespace
}  // namespace vabi::netlink
