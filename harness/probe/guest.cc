// SPDX-License-Identifier: BSD-2-Clause
// Small things that a guest without a distribution needs: making an rxe device, and handing a file
// to the host through the shared memory of an ivshmem device.
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

constexpr size_t kAnswers = 32u << 20;  // where the tar begins; scripts/verbs_abi/oracle/vm.py
constexpr size_t kShared = 64u << 20;

int Fail(const char* what) {
  std::fprintf(stderr, "vabi-guest: %s: %s\n", what, std::strerror(errno));
  return 1;
}

int Put(const char* shared, const char* file) {
  int in = open(file, O_RDONLY | O_CLOEXEC);
  if (in < 0) return Fail(file);
  int out = open(shared, O_RDWR | O_CLOEXEC);
  if (out < 0) return Fail(shared);
  void* map = mmap(nullptr, kShared, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0);
  if (map == MAP_FAILED) return Fail("mmap of the shared memory");
  char* at = static_cast<char*>(map) + kAnswers;
  uint64_t size = 0;
  for (;;) {
    ssize_t n = read(in, at + 8 + size, kShared - kAnswers - 8 - size);
    if (n < 0) return Fail(file);
    if (n == 0) break;
    size += static_cast<uint64_t>(n);
  }
  std::memcpy(at, &size, sizeof(size));
  return 0;
}

void Attr(std::string& message, uint16_t type, const void* data, size_t size) {
  nlattr attr{static_cast<uint16_t>(NLA_HDRLEN + size), type};
  message.append(reinterpret_cast<const char*>(&attr), sizeof(attr));
  message.append(static_cast<const char*>(data), size);
  message.append((4 - size % 4) % 4, '\0');
}

// RDMA_NLDEV_CMD_NEWLINK, as `rdma link add NAME type TYPE netdev NETDEV` sends it.
int AddLink(const char* name, const char* type, const char* netdev) {
  constexpr uint16_t kNewLink = (5 << 10) | 3;  // client NLDEV, command NEWLINK
  constexpr uint16_t kDevName = 2, kNdevName = 51, kLinkType = 65;
  std::string body;
  Attr(body, kDevName, name, std::strlen(name) + 1);
  Attr(body, kLinkType, type, std::strlen(type) + 1);
  Attr(body, kNdevName, netdev, std::strlen(netdev) + 1);
  nlmsghdr header{};
  header.nlmsg_len = static_cast<uint32_t>(sizeof(header) + body.size());
  header.nlmsg_type = kNewLink;
  header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  header.nlmsg_seq = 1;
  std::string message(reinterpret_cast<char*>(&header), sizeof(header));
  message += body;
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  if (fd < 0) return Fail("netlink socket");
  if (send(fd, message.data(), message.size(), 0) < 0) return Fail("netlink send");
  alignas(8) char reply[4096];
  ssize_t n = recv(fd, reply, sizeof(reply), 0);
  if (n < static_cast<ssize_t>(sizeof(nlmsghdr) + sizeof(int))) return Fail("netlink receive");
  int error = 0;
  std::memcpy(&error, reply + sizeof(nlmsghdr), sizeof(error));
  errno = -error;
  return error == 0 ? 0 : Fail("RDMA_NLDEV_CMD_NEWLINK");
}

}  // namespace

int main(int argc, char** argv) {
  std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "put" && argc == 4) return Put(argv[2], argv[3]);
  if (verb == "addlink" && argc == 5) return AddLink(argv[2], argv[3], argv[4]);
  std::fprintf(stderr, "usage: vabi-guest put SHARED FILE | addlink NAME TYPE NETDEV\n");
  return 2;
}
