// SPDX-License-Identifier: BSD-2-Clause
#include "shims/netlink/route.h"

#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "shims/sys/sys.h"
#include "shims/uverbs/device.h"

namespace vabi::netlink {
namespace {

struct Interface {
  uint32_t number = 0;
  char name[16] = {};
  bool loopback = false, up = false;
  uint16_t type = ARPHRD_ETHER;
  uint32_t mtu = 1500;
  std::vector<uint8_t> hardware, broadcast;  // addresses
  std::vector<const uint8_t*> addresses;     // as GIDs
};

constexpr uint8_t kLoopback4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
constexpr uint8_t kLoopback6[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

bool IsV4(const uint8_t* gid) { return std::memcmp(gid, kLoopback4, 12) == 0; }

std::vector<Interface> Interfaces(const World& world) {
  std::vector<Interface> all;
  Interface loopback;
  loopback.number = 1;
  std::strcpy(loopback.name, "lo");
  loopback.loopback = loopback.up = true;
  loopback.type = ARPHRD_LOOPBACK;
  loopback.mtu = 65536;
  loopback.hardware = loopback.broadcast = std::vector<uint8_t>(6);
  loopback.addresses = {kLoopback4, kLoopback6};
  all.push_back(loopback);
  const WorldImage& image = world.image();
  for (uint32_t d = 0; d < image.device_count; ++d) {
    const DeviceImage& device = image.device[d];
    const Device* fake = FindDevice(d);
    if (fake != nullptr && fake->node_gone() && device.pci_address[0] != '\0') continue;
    for (uint32_t p = 0; p < device.port_count; ++p) {
      const PortImage& port = device.ports[p];
      if (port.ndev[0] == '\0') continue;
      Interface one;
      one.number = port.ndev_ifindex;
      std::snprintf(one.name, sizeof(one.name), "%s", port.ndev);
      one.up = (fake != nullptr ? fake->PortState(p + 1) : port.state) == 4;  // IB_PORT_ACTIVE
      if (device.link == LinkLayer::kInfiniband) {
        one.type = ARPHRD_INFINIBAND;
        one.mtu = kIpoibMtu;
        uint8_t address[kIpoibAddress];
        IpoibAddress(port, address);
        one.hardware.assign(address, address + kIpoibAddress);
        IpoibBroadcast(port, address);
        one.broadcast.assign(address, address + kIpoibAddress);
      } else {
        one.hardware.resize(6);
        InterfaceAddress(device, one.hardware.data());
        one.broadcast.assign(6, 0xff);
      }
      for (const auto& address : port.ndev_addresses) one.addresses.push_back(address);
      all.push_back(one);
    }
  }
  return all;
}

// A message of attributes by their numbers, which are the same in every kernel.
class Plain {
 public:
  Plain(uint16_t type, uint16_t flags, const struct nlmsghdr& request, uint32_t port_id)
      : message_(type, flags, request.nlmsg_seq, port_id) {}
  void Head(const void* bytes, size_t size) { message_.Append(bytes, size); }
  void Put(uint16_t type, const void* bytes, size_t size) {
    const struct nlattr head = {static_cast<uint16_t>(sizeof(struct nlattr) + size), type};
    message_.Append(&head, sizeof(head));
    message_.Append(bytes, size);
    static constexpr uint8_t kZero[4] = {};
    if (size % 4 != 0) message_.Append(kZero, 4 - size % 4);
  }
  void Put32(uint16_t type, uint32_t value) { Put(type, &value, sizeof(value)); }
  void PutText(uint16_t type, const char* text) { Put(type, text, std::strlen(text) + 1); }
  const std::string& Finish() { return message_.Finish(); }

 private:
  Message message_;
};

std::string Link(const Interface& one, uint16_t flags, const struct nlmsghdr& request,
                 uint32_t port_id) {
  Plain message(RTM_NEWLINK, flags, request, port_id);
  struct ifinfomsg head = {};
  head.ifi_type = one.type;
  head.ifi_index = static_cast<int>(one.number);
  head.ifi_flags = one.loopback ? IFF_UP | IFF_LOOPBACK | IFF_RUNNING | IFF_LOWER_UP
                                : IFF_UP | IFF_BROADCAST | IFF_MULTICAST;
  if (!one.loopback && one.up) head.ifi_flags |= IFF_RUNNING | IFF_LOWER_UP;
  message.Head(&head, sizeof(head));
  message.PutText(IFLA_IFNAME, one.name);
  message.Put32(IFLA_TXQLEN, 1000);
  constexpr uint8_t kUnknown = 0, kDown = 2, kUp = 6;  // IF_OPER_*
  const uint8_t state = one.loopback ? kUnknown : one.up ? kUp : kDown;
  message.Put(IFLA_OPERSTATE, &state, 1);
  const uint8_t mode = 0;
  message.Put(IFLA_LINKMODE, &mode, 1);
  message.Put32(IFLA_MTU, one.mtu);
  message.Put32(IFLA_GROUP, 0);
  const uint8_t carrier = one.up;
  message.Put(IFLA_CARRIER, &carrier, 1);
  message.PutText(IFLA_QDISC, one.loopback ? "noqueue" : "mq");
  message.Put(IFLA_ADDRESS, one.hardware.data(), one.hardware.size());
  message.Put(IFLA_BROADCAST, one.broadcast.data(), one.broadcast.size());
  return message.Finish();
}

std::string Address(const Interface& one, const uint8_t* gid, uint16_t flags,
                    const struct nlmsghdr& request, uint32_t port_id) {
  Plain message(RTM_NEWADDR, flags, request, port_id);
  const bool four = IsV4(gid);
  struct ifaddrmsg head = {};
  head.ifa_family = four ? AF_INET : AF_INET6;
  head.ifa_prefixlen = one.loopback ? (four ? 8 : 128) : (four ? 24 : 64);
  head.ifa_flags = IFA_F_PERMANENT;
  head.ifa_scope = one.loopback              ? uint8_t{RT_SCOPE_HOST}
                   : !four && gid[0] == 0xfe ? uint8_t{RT_SCOPE_LINK}
                                             : uint8_t{RT_SCOPE_UNIVERSE};
  head.ifa_index = one.number;
  message.Head(&head, sizeof(head));
  message.Put(IFA_ADDRESS, four ? gid + 12 : gid, four ? 4 : 16);
  if (four) {
    message.Put(IFA_LOCAL, gid + 12, 4);
    if (!one.loopback) {
      const uint8_t broadcast[4] = {gid[12], gid[13], gid[14], 255};
      message.Put(IFA_BROADCAST, broadcast, 4);
    }
    message.PutText(IFA_LABEL, one.name);
  }
  message.Put32(IFA_FLAGS, IFA_F_PERMANENT);
  const struct ifa_cacheinfo forever = {~0U, ~0U, 0, 0};
  message.Put(IFA_CACHEINFO, &forever, sizeof(forever));
  return message.Finish();
}

// The name that a RTM_GETLINK asks for: IFLA_IFNAME or IFLA_ALT_IFNAME.
std::string NameIn(const std::string& whole, size_t head) {
  constexpr uint16_t kAltName = 53;
  for (size_t at = sizeof(struct nlmsghdr) + head; at + sizeof(struct nlattr) <= whole.size();) {
    struct nlattr attribute;
    std::memcpy(&attribute, whole.data() + at, sizeof(attribute));
    if (attribute.nla_len < sizeof(attribute) || at + attribute.nla_len > whole.size()) break;
    const uint16_t type = attribute.nla_type & NLA_TYPE_MASK;
    if (type == IFLA_IFNAME || type == kAltName) {
      std::string name(whole, at + sizeof(attribute), attribute.nla_len - sizeof(attribute));
      return name.c_str();
    }
    at += NLA_ALIGN(attribute.nla_len);
  }
  return "";
}

}  // namespace

// As it begins: when its devices are unplugged, the machine's interfaces do not come instead.
bool RouteSocket::HasInterfaces(const World& world) {
  const WorldImage& image = world.image();
  for (uint32_t d = 0; d < image.device_count; ++d) {
    for (uint32_t p = 0; p < image.device[d].port_count; ++p) {
      if (image.device[d].ports[p].ndev[0] != '\0') return true;
    }
  }
  return false;
}

// rtnetlink_rcv_msg
void RouteSocket::Receive(std::string datagram) {
  size_t at = 0;
  while (datagram.size() - at >= sizeof(struct nlmsghdr)) {
    struct nlmsghdr header;
    std::memcpy(&header, datagram.data() + at, sizeof(header));
    if (header.nlmsg_len < sizeof(header) || datagram.size() - at < header.nlmsg_len) return;
    const std::string whole = datagram.substr(at, header.nlmsg_len);
    at += std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size() - at);
    if ((header.nlmsg_flags & NLM_F_REQUEST) == 0 || header.nlmsg_type < NLMSG_MIN_TYPE) {
      if (header.nlmsg_flags & NLM_F_ACK) Answer(header, whole, 0);
      continue;
    }
    const int error = Handle(header, whole);
    const bool dump = (header.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
    if (error != 0 || (!dump && (header.nlmsg_flags & NLM_F_ACK))) Answer(header, whole, error);
  }
}

int RouteSocket::Handle(const struct nlmsghdr& header, const std::string& whole) {
  trace::Record record;
  record.front_end = trace::FrontEnd::kNetlink;
  record.start_ns = trace::Enabled() ? sys::MonotonicNs() : 0;
  record.core_in = static_cast<int32_t>(whole.size() - sizeof(header));
  const bool dump = (header.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
  const uint16_t flags = dump ? NLM_F_MULTI : 0;
  const bool links = header.nlmsg_type == RTM_GETLINK;
  const bool addresses = header.nlmsg_type == RTM_GETADDR && dump;
  std::snprintf(record.name, sizeof(record.name), "route:%s",
                links                               ? "GETLINK"
                : header.nlmsg_type == RTM_GETADDR  ? "GETADDR"
                : header.nlmsg_type == RTM_GETROUTE ? "GETROUTE"
                : header.nlmsg_type == RTM_GETNEIGH ? "GETNEIGH"
                                                    : "other");
  const auto finish = [&](int error) {
    record.result = error;
    if (trace::Enabled()) trace::Write(record);
    return error;
  };
  // Nobody ever talked to these machines: no neighbour is known, and no route leads anywhere.
  const bool routes = header.nlmsg_type == RTM_GETROUTE;
  const bool nothing = routes || header.nlmsg_type == RTM_GETNEIGH;
  if (nothing && !dump) return finish(routes ? -ENETUNREACH : -ENOENT);
  if (!links && !addresses && !nothing) {
    record.unmodelled = "what the network interfaces of a world do, beyond links and addresses";
    return finish(-EOPNOTSUPP);
  }
  uint32_t number = 0;
  uint8_t family = AF_UNSPEC;
  const size_t head = links ? sizeof(struct ifinfomsg) : sizeof(struct ifaddrmsg);
  if (whole.size() >= sizeof(header) + head) {
    family = static_cast<uint8_t>(whole[sizeof(header)]);
    // ifi_index and ifa_index stand at the same place.
    std::memcpy(&number, whole.data() + sizeof(header) + 4, sizeof(number));
  }
  const std::string name = links && !dump ? NameIn(whole, head) : "";
  bool found = false;
  const std::vector<Interface> interfaces =
      nothing ? std::vector<Interface>{} : Interfaces(world());
  for (const Interface& one : interfaces) {
    if (!links) break;
    if (!dump && (number != 0 ? one.number != number : name != one.name)) continue;
    found = true;
    Deliver(Link(one, flags, header, port_id()));
  }
  // rtnl_dump_all: one family behind the other.
  for (const uint8_t listed : {uint8_t{AF_INET}, uint8_t{AF_INET6}}) {
    if (links || (family != AF_UNSPEC && family != listed)) continue;
    for (const Interface& one : interfaces) {
      if (number != 0 && number != one.number) continue;
      for (const uint8_t* gid : one.addresses) {
        if (IsV4(gid) == (listed == AF_INET)) Deliver(Address(one, gid, flags, header, port_id()));
      }
    }
  }
  if (links && !dump && !found) return finish(-ENODEV);
  if (dump) {
    Message done(NLMSG_DONE, NLM_F_MULTI, header.nlmsg_seq, port_id());
    const int result = 0;
    done.Append(&result, sizeof(result));
    Deliver(done.Finish());
  }
  return finish(0);
}

}  // namespace vabi::netlink
