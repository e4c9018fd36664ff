// SPDX-License-Identifier: BSD-2-Clause
// Asks RDMA netlink a fixed list of questions and prints every answer attribute by attribute.
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "harness/probe/dump.h"

namespace vabi::probe {
namespace {

// From rdma_netlink.h; client NLDEV.
constexpr uint16_t kClient = 5 << 10;
constexpr uint16_t kGet = 1, kPortGet = 5, kSysGet = 6, kResGet = 9, kGetChardev = 15;
constexpr uint16_t kDevIndex = 1, kDevName = 2, kPortIndex = 3, kChardevType = 69;

struct Attribute {
  uint16_t type;
  std::string data;
};

struct Question {
  std::string name;
  uint16_t command;
  uint16_t flags;
  std::vector<Attribute> attributes;
};

std::string Number(uint32_t value) { return {reinterpret_cast<char*>(&value), sizeof(value)}; }
std::string Text(const char* text) { return {text, std::strlen(text) + 1}; }

std::vector<Question> Questions(uint32_t device) {
  const uint16_t dump = NLM_F_REQUEST | NLM_F_DUMP, one = NLM_F_REQUEST, ack = one | NLM_F_ACK;
  std::vector<Question> list = {
      {"get.dump", kGet, dump, {}},
      {"get.dump_ack", kGet, static_cast<uint16_t>(dump | NLM_F_ACK), {}},
      {"get.index", kGet, one, {{kDevIndex, Number(device)}}},
      {"get.index_ack", kGet, ack, {{kDevIndex, Number(device)}}},
      {"get.none", kGet, one, {}},
      {"get.absent", kGet, one, {{kDevIndex, Number(77)}}},
      {"get.short", kGet, one, {{kDevIndex, std::string("\0\0", 2)}}},
      {"get.unknown_attribute", kGet, one, {{kDevIndex, Number(device)}, {900, Number(1)}}},
      {"port.dump", kPortGet, dump, {{kDevIndex, Number(device)}}},
      {"port.dump_none", kPortGet, dump, {}},
      {"port.one", kPortGet, one, {{kDevIndex, Number(device)}, {kPortIndex, Number(1)}}},
      {"port.zero", kPortGet, one, {{kDevIndex, Number(device)}, {kPortIndex, Number(0)}}},
      {"port.two", kPortGet, one, {{kDevIndex, Number(device)}, {kPortIndex, Number(2)}}},
      {"port.none", kPortGet, one, {{kDevIndex, Number(device)}}},
      {"sys.get", kSysGet, one, {}},
      {"sys.dump", kSysGet, dump, {}},
      {"res.dump", kResGet, dump, {}},
      {"res.one", kResGet, one, {{kDevIndex, Number(device)}}},
      {"chardev.dump", kGetChardev, dump, {}},
      {"chardev.none", kGetChardev, one, {}},
      {"chardev.no_type", kGetChardev, one, {{kDevIndex, Number(device)}}},
      {"chardev.no_device", kGetChardev, one, {{kChardevType, Text("uverbs")}}},
      {"chardev.absent_device",
       kGetChardev,
       one,
       {{kChardevType, Text("uverbs")}, {kDevIndex, Number(77)}}},
      {"chardev.by_name",
       kGetChardev,
       one,
       {{kChardevType, Text("uverbs")}, {kDevName, Text("rxe0")}}},
      {"chardev.long_type",
       kGetChardev,
       one,
       {{kChardevType, std::string(40, 'x') + '\0'}, {kDevIndex, Number(device)}}},
      {"chardev.unterminated",
       kGetChardev,
       one,
       {{kChardevType, "uverbs"}, {kDevIndex, Number(device)}}},
      {"unknown.60", 60, one, {}},
      {"unknown.60_ack", 60, ack, {}},
      {"unknown.0", 0, one, {}},
  };
  for (const char* type : {"uverbs", "umad", "issm", "rdma_cm", "nothing", ""}) {
    list.push_back({std::string("chardev.") + type,
                    kGetChardev,
                    one,
                    {{kChardevType, Text(type)}, {kDevIndex, Number(device)}}});
    list.push_back(
        {std::string("chardev.no_device_") + type, kGetChardev, one, {{kChardevType, Text(type)}}});
  }
  return list;
}

std::string Message(const Question& question, uint32_t sequence) {
  std::string body;
  for (const Attribute& attribute : question.attributes) {
    nlattr header{static_cast<uint16_t>(NLA_HDRLEN + attribute.data.size()), attribute.type};
    body.append(reinterpret_cast<char*>(&header), sizeof(header));
    body += attribute.data;
    body.append((4 - attribute.data.size() % 4) % 4, '\0');
  }
  nlmsghdr header{};
  header.nlmsg_len = static_cast<uint32_t>(sizeof(header) + body.size());
  header.nlmsg_type = kClient | question.command;
  header.nlmsg_flags = question.flags;
  header.nlmsg_seq = sequence;
  return std::string(reinterpret_cast<char*>(&header), sizeof(header)) + body;
}

void PrintAttributes(const char* at, size_t size, int depth) {
  while (size >= sizeof(nlattr)) {
    nlattr attribute;
    std::memcpy(&attribute, at, sizeof(attribute));
    if (attribute.nla_len < sizeof(attribute) || attribute.nla_len > size) break;
    size_t length = attribute.nla_len - sizeof(attribute);
    std::printf("%*sattr %u%s len %zu %s\n", depth * 2 + 2, "", attribute.nla_type & NLA_TYPE_MASK,
                (attribute.nla_type & NLA_F_NESTED) != 0 ? " nested" : "", length,
                Hex(at + sizeof(attribute), length).c_str());
    size_t step = NLA_ALIGN(attribute.nla_len);
    at += step < size ? step : size;
    size -= step < size ? step : size;
  }
}

// Prints one datagram's messages; true when the answer is complete.
bool PrintReplies(const char* at, size_t size, bool dump) {
  bool complete = false;
  while (size >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, at, sizeof(header));
    if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > size) break;
    const char* body = at + sizeof(header);
    size_t length = header.nlmsg_len - sizeof(header);
    if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_type == NLMSG_DONE) {
      int error = 0;
      if (length >= sizeof(error)) std::memcpy(&error, body, sizeof(error));
      std::printf(" %s %s flags 0x%x len %zu\n", header.nlmsg_type == NLMSG_DONE ? "done" : "error",
                  error == 0 ? "0" : strerrorname_np(-error), header.nlmsg_flags, length);
      complete = true;
    } else {
      std::printf(" reply type 0x%x flags 0x%x len %zu\n", header.nlmsg_type, header.nlmsg_flags,
                  length);
      PrintAttributes(body, length, 1);
      if (!dump) complete = true;
    }
    size_t step = NLMSG_ALIGN(header.nlmsg_len);
    at += step < size ? step : size;
    size -= step < size ? step : size;
  }
  return complete;
}

}  // namespace

int DumpNetlink(uint32_t device) {
  uint32_t sequence = 0;
  for (const Question& question : Questions(device)) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
    if (fd < 0) {
      std::printf("netlink %s\n socket %s\n", question.name.c_str(), strerrorname_np(errno));
      continue;
    }
    std::printf("netlink %s\n", question.name.c_str());
    std::string message = Message(question, ++sequence);
    if (send(fd, message.data(), message.size(), 0) < 0) {
      std::printf(" send %s\n", strerrorname_np(errno));
    } else {
      bool dump = (question.flags & NLM_F_DUMP) == NLM_F_DUMP;
      bool complete = false;
      // Requests without an answer and without an ack stay silent: a short wait ends them.
      while (!complete) {
        pollfd item{fd, POLLIN, 0};
        if (poll(&item, 1, 300) != 1) {
          std::printf(" silence\n");
          break;
        }
        alignas(8) char buffer[32768];
        ssize_t size = recv(fd, buffer, sizeof(buffer), 0);
        if (size < 0) {
          std::printf(" receive %s\n", strerrorname_np(errno));
          break;
        }
        complete = PrintReplies(buffer, static_cast<size_t>(size), dump);
      }
    }
    close(fd);
  }
  return 0;
}

}  // namespace vabi::probe
