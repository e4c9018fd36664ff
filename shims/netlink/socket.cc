// SPDX-License-Identifier: BSD-2-Clause
#include "shims/netlink/socket.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "shims/netlink/route.h"
#include "shims/sys/sys.h"
#include "shims/trace/gaps.h"
#include "shims/trace/trace.h"
#include "shims/uverbs/device.h"

namespace vabi::netlink {
namespace {

constexpr int kNetlinkRdma = 20;  // NETLINK_RDMA
constexpr int kSolNetlink = 270;  // SOL_NETLINK
// The default limit of what one send may hold (net.core.wmem_default), less what an skb needs.
constexpr size_t kLongestSend = 212992 - 32;

// Port ids are unique in the network namespace; between processes they do not meet, since libnl and
// the kernel make them of the process id.
std::mutex g_ports_mutex;
std::set<uint32_t>& Ports() {
  static auto* ports = new std::set<uint32_t>;
  return *ports;
}

long Raw(long number, long a, long b = 0, long c = 0, long d = 0, long e = 0) {
  return sys::Syscall(number, a, b, c, d, e);
}
template <typename T>
long Word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

// What messages tell the trace: all but the sequence number, which libnl takes from the clock, and
// the port.
void Said(const std::string& datagram) {
  size_t at = 0;
  while (datagram.size() - at >= sizeof(struct nlmsghdr)) {
    struct nlmsghdr header;
    std::memcpy(&header, datagram.data() + at, sizeof header);
    const size_t length = std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size() - at);
    if (length < sizeof header) return;
    trace::Answered(&header.nlmsg_type, sizeof header.nlmsg_type);
    trace::Answered(datagram.data() + at + sizeof header, length - sizeof header);
    at += length;
  }
}

void SaidByDump(const World& world, Dump dump) {
  int result = 0;
  while (const auto datagram = Continue(world, &dump, &result)) Said(*datagram);
}

constexpr size_t kMostParts = 1024;  // UIO_MAXIOV

int Gather(const struct msghdr& message, std::string* out) {
  size_t total = 0;
  for (size_t i = 0; i < message.msg_iovlen; ++i) {
    struct iovec part;
    if (sys::CopyFromUser(&part, reinterpret_cast<uintptr_t>(message.msg_iov + i), sizeof part) !=
        0) {
      return -EFAULT;
    }
    if (part.iov_len > kLongestSend + 64 || total + part.iov_len > kLongestSend + 64) {
      out->assign(kLongestSend + 64, '\0');  // longer than any limit: the caller refuses it
      return 0;
    }
    const size_t at = out->size();
    out->resize(at + part.iov_len);
    if (part.iov_len != 0 &&
        sys::CopyFromUser(out->data() + at, reinterpret_cast<uintptr_t>(part.iov_base),
                          part.iov_len) != 0) {
      return -EFAULT;
    }
    total += part.iov_len;
  }
  return 0;
}

// net/socket.c:move_addr_to_user: as much as there is room for, and the whole length.
int GiveAddress(const struct sockaddr_nl& from, struct sockaddr* address, socklen_t* length) {
  constexpr int kWhole = sizeof from;
  int room = 0;
  if (sys::CopyFromUser(&room, reinterpret_cast<uintptr_t>(length), sizeof room) != 0)
    return -EFAULT;
  if (room < 0) return -EINVAL;
  const auto given = static_cast<size_t>(std::min(room, kWhole));
  if (sys::CopyToUser(reinterpret_cast<uintptr_t>(address), &from, given) != 0) return -EFAULT;
  return sys::CopyToUser(reinterpret_cast<uintptr_t>(length), &kWhole, sizeof kWhole);
}

}  // namespace

RdmaSocket::~RdmaSocket() = default;

void RdmaSocket::set_backing_fd(int fd) {
  const std::lock_guard<std::mutex> lock(mutex_);
  SocketFile::set_backing_fd(fd);
}

void RdmaSocket::Release() {
  if (!bound_) return;
  const std::lock_guard<std::mutex> lock(g_ports_mutex);
  Ports().erase(port_id_);
}

int RdmaSocket::Refuse(RuleId rule) const {
  const RuleEntry& entry = world_.Rule(rule);
  return entry.relaxed ? -EXFULL : -entry.error;
}

bool RdmaSocket::Violates(RuleId rule, bool condition) const {
  const RuleEntry& entry = world_.Rule(rule);
  return condition && entry.on && !entry.relaxed;
}

// netlink_insert
int RdmaSocket::BindTo(uint32_t port_id) {
  const std::lock_guard<std::mutex> lock(g_ports_mutex);
  if (!Ports().insert(port_id).second) {
    if (Violates(RuleId::netlink_address_in_use, true))
      return Refuse(RuleId::netlink_address_in_use);
  }
  bound_ = true;
  port_id_ = port_id;
  return 0;
}

// netlink_autobind: the process id, and when that is taken, numbers from -4097 downwards.
int RdmaSocket::AutoBind() {
  uint32_t port_id = static_cast<uint32_t>(sys::GetPid());
  {
    const std::lock_guard<std::mutex> lock(g_ports_mutex);
    for (uint32_t rover = static_cast<uint32_t>(-4097); Ports().count(port_id); --rover)
      port_id = rover;
  }
  return BindTo(port_id);
}

int RdmaSocket::Bind(const struct sockaddr* address, socklen_t length) {
  struct sockaddr_nl asked = {};
  if (length < sizeof asked) return Refuse(RuleId::netlink_address);
  if (sys::CopyFromUser(&asked, reinterpret_cast<uintptr_t>(address), sizeof asked) != 0)
    return -EFAULT;
  if (asked.nl_family != AF_NETLINK) return Refuse(RuleId::netlink_address);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bound_) {
    if (Violates(RuleId::netlink_rebind, asked.nl_pid != port_id_))
      return Refuse(RuleId::netlink_rebind);
  } else {
    const int error = asked.nl_pid != 0 ? BindTo(asked.nl_pid) : AutoBind();
    if (error != 0) return error;
  }
  groups_ = asked.nl_groups;
  return 0;
}

int RdmaSocket::Connect(const struct sockaddr* address, socklen_t length) {
  struct sockaddr_nl asked = {};
  if (length < sizeof asked.nl_family) return -EINVAL;
  if (sys::CopyFromUser(&asked, reinterpret_cast<uintptr_t>(address),
                        std::min<size_t>(length, sizeof asked)) != 0) {
    return -EFAULT;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (asked.nl_family == AF_UNSPEC) {
    peer_port_id_ = 0;
    return 0;
  }
  if (asked.nl_family != AF_NETLINK || length < sizeof asked)
    return Refuse(RuleId::netlink_address);
  if (!bound_) {
    if (const int error = AutoBind(); error != 0) return error;
  }
  peer_port_id_ = asked.nl_pid;
  return 0;
}

int RdmaSocket::SocketName(struct sockaddr* address, socklen_t* length, bool peer) {
  struct sockaddr_nl name = {};
  name.nl_family = AF_NETLINK;
  const std::lock_guard<std::mutex> lock(mutex_);
  name.nl_pid = peer ? peer_port_id_ : port_id_;
  name.nl_groups = peer ? 0 : groups_;
  return GiveAddress(name, address, length);
}

int RdmaSocket::SetOption(int level, int name, const void* value, socklen_t length) {
  if (level != kSolNetlink) {
    return static_cast<int>(Raw(SYS_setsockopt, backing_fd(), level, name, Word(value), length));
  }
  int flag = 0;
  if (length >= sizeof flag &&
      sys::CopyFromUser(&flag, reinterpret_cast<uintptr_t>(value), sizeof flag) != 0) {
    return -EFAULT;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  switch (name) {
    case NETLINK_ADD_MEMBERSHIP:
    case NETLINK_DROP_MEMBERSHIP:
      if (flag < 1 || flag > 32) return -EINVAL;
      if (name == NETLINK_ADD_MEMBERSHIP) {
        groups_ |= 1U << (flag - 1);
      } else {
        groups_ &= ~(1U << (flag - 1));
      }
      return 0;
    case NETLINK_PKTINFO:
    case NETLINK_BROADCAST_ERROR:
    case NETLINK_NO_ENOBUFS:
    case NETLINK_LISTEN_ALL_NSID:
    case NETLINK_CAP_ACK:
    case NETLINK_EXT_ACK:
    case NETLINK_GET_STRICT_CHK:
      if (name > world_.Knob(KnobId::netlink_last_option)) return Refuse(RuleId::netlink_option);
      options_ = flag ? options_ | (1U << name) : options_ & ~(1U << name);
      return 0;
    default:
      return Refuse(RuleId::netlink_option);
  }
}

int RdmaSocket::GetOption(int level, int name, void* value, socklen_t* length) {
  int answer = 0;
  if (level == SOL_SOCKET && (name == SO_PROTOCOL || name == SO_DOMAIN || name == SO_TYPE)) {
    answer = name == SO_PROTOCOL ? protocol_ : name == SO_DOMAIN ? AF_NETLINK : type_;
  } else if (level != kSolNetlink) {
    return static_cast<int>(
        Raw(SYS_getsockopt, backing_fd(), level, name, Word(value), Word(length)));
  } else {
    if (name == NETLINK_LIST_MEMBERSHIPS) {
      const std::lock_guard<std::mutex> lock(mutex_);
      socklen_t size = sizeof groups_;
      if (sys::CopyToUser(reinterpret_cast<uintptr_t>(value), &groups_, size) != 0) return -EFAULT;
      return sys::CopyToUser(reinterpret_cast<uintptr_t>(length), &size, sizeof size);
    }
    const bool known = name == NETLINK_PKTINFO || name == NETLINK_BROADCAST_ERROR ||
                       name == NETLINK_NO_ENOBUFS || name == NETLINK_LISTEN_ALL_NSID ||
                       name == NETLINK_CAP_ACK || name == NETLINK_EXT_ACK ||
                       name == NETLINK_GET_STRICT_CHK;
    if (!known || name > world_.Knob(KnobId::netlink_last_option)) {
      return Refuse(RuleId::netlink_option);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    answer = static_cast<int>((options_ >> name) & 1);
  }
  socklen_t room = 0;
  if (sys::CopyFromUser(&room, reinterpret_cast<uintptr_t>(length), sizeof room) != 0)
    return -EFAULT;
  if (level == kSolNetlink && room < sizeof answer) return -EINVAL;
  room = std::min<socklen_t>(room, sizeof answer);
  if (sys::CopyToUser(reinterpret_cast<uintptr_t>(value), &answer, room) != 0) return -EFAULT;
  return sys::CopyToUser(reinterpret_cast<uintptr_t>(length), &room, sizeof room);
}

// netlink_sendmsg
ssize_t RdmaSocket::SendMessage(const struct msghdr* user, int flags) {
  struct msghdr message;
  if (sys::CopyFromUser(&message, reinterpret_cast<uintptr_t>(user), sizeof message) != 0)
    return -EFAULT;
  if (message.msg_iovlen > kMostParts) return -EMSGSIZE;  // net/socket.c:copy_msghdr_from_user
  if (flags & MSG_OOB) return -EOPNOTSUPP;
  std::string datagram;
  const int copied = Gather(message, &datagram);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Violates(RuleId::netlink_empty, copied == 0 && datagram.empty())) {
    return Refuse(RuleId::netlink_empty);
  }
  uint32_t to = peer_port_id_;
  if (message.msg_name != nullptr && message.msg_namelen != 0) {
    struct sockaddr_nl address = {};
    if (message.msg_namelen < sizeof address) return Refuse(RuleId::netlink_address);
    if (sys::CopyFromUser(&address, reinterpret_cast<uintptr_t>(message.msg_name),
                          sizeof address) != 0) {
      return -EFAULT;
    }
    if (address.nl_family != AF_NETLINK) return Refuse(RuleId::netlink_address);
    to = address.nl_pid;
  }
  if (!bound_) {
    if (const int error = AutoBind(); error != 0) return error;
  }
  if (Violates(RuleId::netlink_too_long, datagram.size() > kLongestSend)) {
    return Refuse(RuleId::netlink_too_long);
  }
  if (copied != 0) return copied;
  if (to != 0) return Refuse(RuleId::netlink_no_peer);
  const auto size = static_cast<ssize_t>(datagram.size());
  Receive(std::move(datagram));
  return size;
}

// core/netlink.c:rdma_nl_rcv_skb
void RdmaSocket::Receive(std::string datagram) {
  size_t at = 0;
  while (datagram.size() - at >= sizeof(struct nlmsghdr)) {
    struct nlmsghdr header;
    std::memcpy(&header, datagram.data() + at, sizeof header);
    if (header.nlmsg_len < sizeof header || datagram.size() - at < header.nlmsg_len) return;
    const std::string whole = datagram.substr(at, header.nlmsg_len);
    at += std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size() - at);

    int error = 0;
    bool dump_started = false;
    const bool local_service =
        header.nlmsg_type >> 10 == static_cast<uint32_t>(world_.Flag(VABI_C(RDMA_NL_LS)));
    const bool handled = ((header.nlmsg_flags & NLM_F_REQUEST) || local_service) &&
                         header.nlmsg_type >= NLMSG_MIN_TYPE;
    if (handled) {
      trace::Record record;
      record.front_end = trace::FrontEnd::kNetlink;
      record.start_ns = trace::Enabled() ? sys::MonotonicNs() : 0;
      Request request;
      request.header = header;
      request.payload = {reinterpret_cast<const uint8_t*>(whole.data()) + sizeof header,
                         whole.size() - sizeof header};
      request.port_id = port_id_;
      request.privileged = !world_.image().check_permissions || world_.image().uid == 0;
      request.record = &record;
      record.core_in = static_cast<int32_t>(request.payload.size());
      Reply reply = Handle(world_, request);
      error = reply.error;
      if (reply.dump && dump_) {
        // __netlink_dump_start: one at a time.
        if (Violates(RuleId::netlink_dump_busy, true)) {
          record.rule = static_cast<int>(Index(RuleId::netlink_dump_busy));
          error = Refuse(RuleId::netlink_dump_busy);
          reply.dump.reset();
        }
      }
      record.result = error;
      if (reply.message) record.core_out = static_cast<int32_t>(reply.message->size());
      if (trace::Wants(record)) {
        if (reply.message) Said(*reply.message);
        if (reply.dump) SaidByDump(world_, *reply.dump);
        trace::Write(record);
      }
      if (reply.message) Deliver(*reply.message);
      if (reply.dump) {
        dump_ = std::move(reply.dump);
        dump_started = true;  // a dump that started is not acknowledged
        ContinueDump();
      }
    }
    if (!dump_started && ((header.nlmsg_flags & NLM_F_ACK) || error != 0))
      Answer(header, whole, error);
  }
}

// net/netlink/af_netlink.c:netlink_ack
void RdmaSocket::Answer(const struct nlmsghdr& header, const std::string& whole, int error) {
  const bool capped = error == 0 || ((options_ >> NETLINK_CAP_ACK) & 1);
  uint16_t flags = 0;
  if (capped && world_.Knob(KnobId::netlink_capped_flag)) flags |= NLM_F_CAPPED;
  Message message(NLMSG_ERROR, flags, header.nlmsg_seq, port_id_);
  message.Append(&error, sizeof error);
  if (capped) {
    message.Append(&header, sizeof header);
  } else {
    message.Append(whole.data(), whole.size());
  }
  Deliver(message.Finish());
}

void RdmaSocket::Deliver(const std::string& datagram) {
  // A receiver that does not receive loses messages, as with a full netlink socket.
  Raw(SYS_sendto, backing_fd(), Word(datagram.data()), static_cast<long>(datagram.size()),
      MSG_DONTWAIT | MSG_NOSIGNAL);
}

// net/netlink/af_netlink.c:netlink_dump: one datagram each time, and a message of its own at the
// end.
void RdmaSocket::ContinueDump() {
  if (!dump_) return;
  int result = 0;
  if (const auto datagram = Continue(world_, &*dump_, &result)) {
    Deliver(*datagram);
    return;
  }
  Message done(NLMSG_DONE, NLM_F_MULTI, dump_->header.nlmsg_seq, dump_->port_id);
  done.Append(&result, sizeof result);
  Deliver(done.Finish());
  dump_.reset();
}

// netlink_recvmsg
ssize_t RdmaSocket::ReceiveMessage(struct msghdr* user, int flags) {
  const uint64_t at = reinterpret_cast<uintptr_t>(user);
  struct msghdr message;
  if (sys::CopyFromUser(&message, at, sizeof message) != 0) return -EFAULT;
  // Its real name is not the one to be seen: that is put in afterwards.
  void* const name = message.msg_name;
  const socklen_t room = message.msg_namelen;
  message.msg_name = nullptr;
  message.msg_namelen = 0;
  const long result = Raw(SYS_recvmsg, backing_fd(), Word(&message), flags);
  message.msg_name = name;
  message.msg_namelen = room;
  if (result < 0) return result;
  if (name != nullptr) {
    struct sockaddr_nl from = {};
    from.nl_family = AF_NETLINK;
    // net/socket.c:____sys_recvmsg: the message is taken, whatever becomes of the name
    if (sys::CopyToUser(reinterpret_cast<uintptr_t>(name), &from,
                        std::min<size_t>(room, sizeof from)) != 0) {
      return -EFAULT;
    }
    message.msg_namelen = sizeof from;
  }
  if (sys::CopyToUser(at, &message, sizeof message) != 0) return -EFAULT;
  const std::lock_guard<std::mutex> lock(mutex_);
  ContinueDump();
  return result;
}

ssize_t RdmaSocket::Read(void* user, size_t size, bool nonblock) {
  struct iovec part = {user, size};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return ReceiveMessage(&message, nonblock ? MSG_DONTWAIT : 0);
}

ssize_t RdmaSocket::Write(const void* user, size_t size) {
  struct iovec part = {const_cast<void*>(user), size};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return SendMessage(&message, 0);
}

long RdmaSocket::Ioctl(unsigned long request, void* argument) {
  return Raw(SYS_ioctl, backing_fd(), static_cast<long>(request), Word(argument));
}

}  // namespace vabi::netlink

namespace vabi {

namespace {

// A datagram socket that is connected to itself, by a name that Linux finds (unix(7): autobind);
// close-on-exec. The descriptor, or -errno.
int MakeEcho() {
  const int fd = static_cast<int>(sys::Syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd < 0) return fd;
  struct sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  socklen_t length = sizeof name;
  const long at = reinterpret_cast<long>(&name);
  long error = sys::Syscall(SYS_bind, fd, at, sizeof name.sun_family);
  if (error == 0) error = sys::Syscall(SYS_getsockname, fd, at, reinterpret_cast<long>(&length));
  if (error == 0) error = sys::Syscall(SYS_connect, fd, at, length);
  if (error == 0) return fd;
  sys::Close(fd);
  return static_cast<int>(error);
}

// A socket that could not be made: libibverbs then goes by sysfs, and the trace says why.
int RefuseSocket(const World& world, RuleId rule) {
  const RuleEntry& entry = world.Rule(rule);
  const int error = entry.relaxed ? EXFULL : entry.error;
  if (trace::Enabled()) {
    trace::Record record;
    record.front_end = trace::FrontEnd::kNetlink;
    std::strcpy(record.name, "socket");
    record.result = -error;
    record.rule = static_cast<int>(Index(rule));
    trace::Write(record);
  }
  return -error;
}

}  // namespace

int FakeKernel::OpenNetlink(int type, int protocol, Opened* out) {
  using netlink::RouteSocket;
  const bool rdma = protocol == netlink::kNetlinkRdma;
  if (!rdma && protocol != RouteSocket::kProtocol) return 1;
  const World* world = InstalledWorld();
  if (world == nullptr) return 1;
  // Without interfaces of its own a world leaves the machine's to the program.
  if (!rdma && !RouteSocket::HasInterfaces(*world)) return 1;
  const int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (kind != SOCK_RAW && kind != SOCK_DGRAM) {
    if (!rdma) return -ESOCKTNOSUPPORT;
    return RefuseSocket(*world, RuleId::netlink_socket_type);
  }
  if (rdma && world->Knob(KnobId::netlink_level) == 0) {
    return RefuseSocket(*world, RuleId::netlink_no_family);
  }
  out->fd = MakeEcho();
  if (out->fd < 0) return out->fd;
  if (rdma) {
    out->file = std::make_shared<netlink::RdmaSocket>(*world, kind, protocol);
  } else {
    out->file = std::make_shared<RouteSocket>(*world, kind);
  }
  out->file->set_backing_fd(out->fd);
  return 0;
}

}  // namespace vabi
