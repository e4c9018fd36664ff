// SPDX-License-Identifier: BSD-2-Clause
#include <arpa/inet.h>

#include "shims/providers/test_offence.h"
#include "shims/rdma_cm/manager.h"
#include "shims/rdma_cm/test_rdma_cm.h"
#include "shims/uverbs/restrack.h"
#include "shims/uverbs/script.h"

namespace vabi::rdma_cm {

int CmFixture::Body::Parse(bool six, const char* text, void* to) {
  return inet_pton(six ? AF_INET6 : AF_INET, text, to);
}

namespace {

using Off = Offence<CmFixture>;
using Body = CmFixture::Body;

uint32_t Word(const Bytes& bytes, size_t at) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

// A connection request that the listener has heard of: its identifier, in file 1.
uint32_t Requested(CmFixture& f) {
  f.Listener();
  EXPECT_EQ(0, f.Connect(f.Ready()));
  f.use = 1;
  return f.Next().id;
}

constexpr char kFirstGid[] = "fe80::200:c0ff:fe00:100", kSecondGid[] = "fe80::200:c0ff:fe00:200";
constexpr uint64_t kTcpService = 0x01060000;  // RDMA_IB_IP_PS_TCP

uint16_t Big16(const Bytes& bytes, size_t at) {
  return static_cast<uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}
uint64_t Big64(const Bytes& bytes, size_t at) {
  uint64_t value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return __builtin_bswap64(value);
}
bool HasGid(const Bytes& bytes, size_t at, const char* text) {
  uint8_t gid[16];
  return inet_pton(AF_INET6, text, gid) == 1 && std::memcmp(bytes.data() + at, gid, 16) == 0;
}

// Errnos from core/ucma.c, cma.c, cm.c and addr.c of the releases named.
const Off kOffences[] = {
    {"debian-7.3.4", "rdma_cm.credentials", EACCES,
     [](CmFixture& f) {
       BumpCredentialGeneration();
       return f.Create();
     }},
    {"debian-7.3.4", "rdma_cm.header.short", EINVAL,
     [](CmFixture& f) { return f.file().Write(&f, 7); }},
    {"debian-7.3.4", "rdma_cm.header.fault", EFAULT,
     [](CmFixture& f) { return f.file().Write(nullptr, 8); }},
    {"debian-7.3.4", "rdma_cm.command.range", EINVAL,
     [](CmFixture& f) { return f.Command(25, Body(8)); }},
    {"linux-6.16", "rdma_cm.command.range", EINVAL,
     [](CmFixture& f) { return f.Command(23, Body(8)); }},
    {"debian-7.3.4", "rdma_cm.length", EINVAL,
     [](CmFixture& f) { return f.Command(7, Body(8), 0, 9); }},
    {"debian-7.3.4", "rdma_cm.command.absent", ENOSYS,
     [](CmFixture& f) { return f.Command(13, Body(24)); }},
    {"debian-7.3.4", "rdma_cm.reply.short", ENOSPC,
     [](CmFixture& f) { return f.Create(CmFixture::kTcp, 1, 3); }},
    {"linux-5.7", "rdma_cm.reply.short", ENOSPC, [](CmFixture& f) { return f.Next(323).result; }},
    {"debian-7.3.4", "rdma_cm.request.fault", EFAULT, [](CmFixture& f) { return f.Fault(); }},
    {"debian-7.3.4", "rdma_cm.reply.fault", EFAULT,
     [](CmFixture& f) {
       return f.Command(0, Body(24).At<uint64_t>(0, 1).At<uint16_t>(16, CmFixture::kTcp), 4);
     }},
    {"debian-7.3.4", "rdma_cm.port_space", EINVAL, [](CmFixture& f) { return f.Create(0x0107); }},
    {"debian-7.3.4", "rdma_cm.id.none", ENOENT, [](CmFixture& f) { return f.Destroy(77); }},
    {"debian-7.3.4", "rdma_cm.id.file", EINVAL,
     [](CmFixture& f) {
       const uint32_t id = f.Made();
       f.use = 1;
       return f.Listen(id);
     }},
    {"debian-7.3.4", "rdma_cm.id.removed", ENXIO,
     [](CmFixture& f) {
       const uint32_t id = f.Made();
       EXPECT_EQ(0, f.Bind(id, "10.0.0.1"));
       ScriptStep step = {};
       step.kind = ScriptStep::kUnplug;
       Happen(*FindDevice(0), step);
       const CmFixture::Seen seen = f.Next();
       EXPECT_EQ(11U, seen.event) << "RDMA_CM_EVENT_DEVICE_REMOVAL";
       return f.Listen(id);
     }},
    {"debian-7.3.4", "rdma_cm.id.device", EINVAL, [](CmFixture& f) { return f.Route(f.Made()); }},
    {"debian-7.3.4", "rdma_cm.address.family", EINVAL,
     [](CmFixture& f) {
       return f.Command(2, Body(40).At<uint16_t>(8, 99).At<uint32_t>(36, f.Made()));
     }},
    {"linux-4.10", "rdma_cm.bind.family", EAFNOSUPPORT,
     [](CmFixture& f) {
       return f.Command(2, Body(40).At<uint16_t>(8, 99).At<uint32_t>(36, f.Made()));
     }},
    {"debian-7.3.4", "rdma_cm.address.size", EINVAL,
     [](CmFixture& f) {
       return f.Command(20,
                        Body(136).At<uint32_t>(0, f.Made()).At<uint16_t>(4, 28).Ip(8, "10.0.0.1"));
     }},
    {"debian-7.3.4", "rdma_cm.bind.state", EINVAL,
     [](CmFixture& f) {
       const uint32_t id = f.Made();
       EXPECT_EQ(0, f.Bind(id, "10.0.0.1"));
       return f.Bind(id, "10.0.0.1");
     }},
    {"debian-7.3.4", "rdma_cm.bind.link_local", EINVAL,
     [](CmFixture& f) { return f.Bind(f.Made(), "fe80::1"); }},
    {"debian-7.3.4", "rdma_cm.bind.interface", ENODEV,
     [](CmFixture& f) { return f.Bind(f.Made(), "fe80::1", 0, 99); }},
    {"debian-7.3.4", "rdma_cm.bind.device", ENODEV,
     [](CmFixture& f) { return f.Bind(f.Made(), "fe80::1", 0, 2); }},
    {"debian-7.3.4", "rdma_cm.bind.address", EADDRNOTAVAIL,
     [](CmFixture& f) { return f.Bind(f.Made(), "192.0.2.9"); }},
    {"debian-7.3.4", "rdma_cm.port.privileged", EACCES,
     [](CmFixture& f) {
       f.image().check_permissions = 1;
       f.image().uid = 1000;
       return f.Bind(f.Made(), "10.0.0.1", 1023);
     }},
    {"debian-7.3.4", "rdma_cm.port.any", EADDRNOTAVAIL,
     [](CmFixture& f) {
       EXPECT_EQ(0, f.Bind(f.Made(), "10.0.0.1", 7000));
       return f.Bind(f.Made(), "0.0.0.0", 7000);
     }},
    {"debian-7.3.4", "rdma_cm.port.in_use", EADDRINUSE,
     [](CmFixture& f) {
       EXPECT_EQ(0, f.Bind(f.Made(), "10.0.0.1", 7000));
       EXPECT_EQ(0, f.Bind(f.Made(), "10.0.0.2", 7000)) << "another address";
       EXPECT_EQ(0, f.Bind(f.Made(CmFixture::kUdp), "10.0.0.1", 7000)) << "another port space";
       return f.Bind(f.Made(), "10.0.0.1", 7000);
     }},
    {"debian-7.3.4", "rdma_cm.resolve.family", EINVAL,
     [](CmFixture& f) {
       const uint32_t id = f.Made();
       EXPECT_EQ(0, f.Bind(id, "10.0.0.1"));
       return f.Resolve(id, "fe80::1", 0, 2);
     }},
    {"debian-7.3.4", "rdma_cm.resolve.state", EINVAL,
     [](CmFixture& f) { return f.Resolve(f.Ready(), "10.0.0.1"); }},
    {"debian-7.3.4", "rdma_cm.resolve.unreachable", ENETUNREACH,
     [](CmFixture& f) { return f.Resolve(f.Made(), "192.0.2.9"); }},
    {"debian-7.3.4", "rdma_cm.resolve.loopback", ENODEV,
     [](CmFixture& f) {
       FindDevice(0)->SetGone(true);
       FindDevice(1)->SetGone(true);
       return f.Resolve(f.Made(), "127.0.0.1");
     }},
    {"debian-7.3.4", "rdma_cm.route.timeout", EINVAL,
     [](CmFixture& f) {
       const uint32_t id = f.Made();
       EXPECT_EQ(0, f.Resolve(id, "10.0.0.1", 7000));
       return f.Route(id, 0);
     }},
    {"debian-7.3.4", "rdma_cm.route.state", EINVAL,
     [](CmFixture& f) { return f.Route(f.Ready()); }},
    {"debian-7.3.4", "rdma_cm.route.interface", ENODEV,
     [](CmFixture& f) {
       const uint32_t id = f.Made();
       EXPECT_EQ(0, f.Resolve(id, "127.0.0.1", 7000));
       EXPECT_EQ(0U, f.Next().event);
       return f.Route(id);
     }},
    {"debian-7.3.4", "rdma_cm.query.option", ENOSYS,
     [](CmFixture& f) { return f.Query(19, f.Made(), 9, 280); }},
    {"debian-6.12.117", "rdma_cm.query.option", ENOSYS,
     [](CmFixture& f) { return f.Query(19, f.Made(), 3, 280); }},
    {"debian-7.3.4", "rdma_cm.request.length", EINVAL,
     [](CmFixture& f) { return f.Command(6, CmFixture::Parameters(Body(288), 0), 0, 279); }},
    {"debian-7.3.4", "rdma_cm.connect.valid", EINVAL,
     [](CmFixture& f) { return f.Command(6, Body(288).At<uint32_t>(272, f.Ready())); }},
    {"debian-7.3.4", "rdma_cm.connect.state", EINVAL,
     [](CmFixture& f) {
       const uint32_t id = f.Made();
       EXPECT_EQ(0, f.Bind(id, "10.0.0.1"));
       return f.Connect(id);
     }},
    {"debian-7.3.4", "rdma_cm.private_data", EINVAL,
     [](CmFixture& f) {
       const uint32_t id = f.Ready();
       return f.Connect(id, 57);  // 92 bytes, less the header's 36
     }},
    {"debian-7.3.4", "rdma_cm.listen.state", EINVAL,
     [](CmFixture& f) { return f.Listen(f.Ready()); }},
    {"debian-7.3.4", "rdma_cm.accept.state", EINVAL,
     [](CmFixture& f) { return f.Accept(f.Ready()); }},
    {"debian-7.3.4", "rdma_cm.reply.state", EINVAL,
     [](CmFixture& f) {
       const uint32_t id = Requested(f);
       EXPECT_EQ(0, f.Accept(id));
       return f.Accept(id);
     }},
    {"debian-7.3.4", "rdma_cm.reject.reason", EINVAL,
     [](CmFixture& f) { return f.Reject(Requested(f), 0, 5); }},
    {"debian-7.3.4", "rdma_cm.no_connection", EINVAL,
     [](CmFixture& f) { return f.Disconnect(f.Ready()); }},
    {"debian-7.3.4", "rdma_cm.reject.state", EINVAL,
     [](CmFixture& f) {
       const uint32_t id = Requested(f);
       EXPECT_EQ(0, f.Reject(id));
       return f.Reject(id);
     }},
    {"debian-7.3.4", "rdma_cm.qp_state", EINVAL,
     [](CmFixture& f) { return f.QpAttributes(f.Ready(), 7); }},
    {"debian-7.3.4", "rdma_cm.qp_attr.state", EINVAL,
     [](CmFixture& f) {
       f.Listener();
       const uint32_t id = f.Ready();
       EXPECT_EQ(0, f.Connect(id));
       EXPECT_EQ(0, f.QpAttributes(id, 1));
       return f.QpAttributes(id, 2);  // nobody has answered yet
     }},
    {"debian-7.3.4", "rdma_cm.event.again", EAGAIN, [](CmFixture& f) { return f.Next().result; }},
    {"debian-7.3.4", "rdma_cm.option.size", EINVAL,
     [](CmFixture& f) { return f.Option(f.Made(), 0, 0, &f, (4 << 20) + 1); }},
    {"debian-7.3.4", "rdma_cm.option.fault", EFAULT,
     [](CmFixture& f) { return f.Option(f.Made(), 0, 0, nullptr, 1); }},
    {"debian-7.3.4", "rdma_cm.option.unknown", ENOSYS,
     [](CmFixture& f) { return f.Option(f.Made(), 0, 9, "", 1); }},
    {"linux-5.0", "rdma_cm.option.unknown", ENOSYS,
     [](CmFixture& f) { return f.Option(f.Made(), 0, 3, "", 1); }},
    {"debian-7.3.4", "rdma_cm.option.length", EINVAL,
     [](CmFixture& f) { return f.Option(f.Made(), 0, 0, "1234", 4); }},
    {"debian-7.3.4", "rdma_cm.option.state", EINVAL,
     [](CmFixture& f) { return f.Option(f.Ready(), 0, 2, "1\0\0", 4); }},
    {"debian-7.3.4", "rdma_cm.option.service", EINVAL,
     [](CmFixture& f) { return f.Option(f.Made(CmFixture::kUdp), 0, 3, "1", 1); }},
    {"debian-7.3.4", "rdma_cm.join.address", EINVAL,
     [](CmFixture& f) {
       return f.Command(
           22, Body(152).At<uint32_t>(16, f.Made()).At<uint16_t>(20, 15).Ip(24, "239.0.0.1"), 4);
     }},
    {"debian-7.3.4", "rdma_cm.join.flags", EINVAL,
     [](CmFixture& f) { return f.JoinGroup(f.Made(), "239.0.0.1", 2); }},
    {"debian-7.3.4", "rdma_cm.join.state", EINVAL,
     [](CmFixture& f) { return f.JoinGroup(f.Ready(CmFixture::kUdp), "239.0.0.1"); }},
    {"debian-7.3.4", "rdma_cm.join.service", EINVAL,
     [](CmFixture& f) {
       const uint32_t id = f.Made();
       EXPECT_EQ(0, f.Bind(id, "10.0.0.1"));
       return f.JoinGroup(id, "239.0.0.1");
     }},
    {"debian-7.3.4", "rdma_cm.join.ipv6", 524,
     [](CmFixture& f) {
       const uint32_t id = f.Made(CmFixture::kUdp);
       EXPECT_EQ(0, f.Bind(id, "10.0.0.1"));
       return f.JoinGroup(id, "ff0e::1");
     }},
    {"debian-7.3.4", "rdma_cm.leave.none", ENOENT,
     [](CmFixture& f) {
       return f.Command(17, Body(16).At<uint64_t>(0, CmFixture::Address(&f.reply)), 4);
     }},
    {"debian-7.3.4", "rdma_cm.leave.file", EINVAL,
     [](CmFixture& f) {
       const uint32_t id = f.Made(CmFixture::kUdp);
       EXPECT_EQ(0, f.Bind(id, "10.0.0.1"));
       EXPECT_EQ(0, f.JoinGroup(id, "239.0.0.1"));
       f.use = 1;
       return f.Command(17, Body(16).At<uint64_t>(0, CmFixture::Address(&f.reply)), 4);
     }},
    {"debian-7.3.4", "rdma_cm.bind.ipoib", EINVAL,
     [](CmFixture& f) { return f.Bind(f.Made(2), "10.0.0.1"); }},
    {"linux-6.12", "rdma_cm.bind.device", ENODEV,
     [](CmFixture& f) { return f.BindGid(f.Made(), kFirstGid, kTcpService); }},
    {"debian-7.3.4", "rdma_cm.bind.service", EPROTONOSUPPORT,
     [](CmFixture& f) { return f.BindGid(f.Made(), "::", 0x01110000); }},
    {"linux-4.4", "rdma_cm.bind.service", EPROTONOSUPPORT,
     [](CmFixture& f) { return f.BindGid(f.Made(2), "::", 0, 0); }},
    {"debian-7.3.4", "rdma_cm.resolve.subnet", ENODEV,
     [](CmFixture& f) { return f.ResolveGid(f.Made(), "fec0::1", kTcpService | 7000); }},
    {"linux-6.12", "rdma_cm.route.interface", ENODEV,
     [](CmFixture& f) {
       const uint32_t id = f.Made();
       EXPECT_EQ(0, f.ResolveGid(id, kFirstGid, kTcpService | 7000)) << "rdma_cap_af_ib: RoCE, too";
       return f.Route(id);
     }},
    {"debian-7.3.4", "rdma_cm.option.path", EINVAL,
     [](CmFixture& f) {
       const uint8_t half[36] = {};
       return f.Option(f.Made(), 1, 1, half, sizeof(half));
     }},
    {"linux-4.4", "rdma_cm.option.path", EINVAL,
     [](CmFixture& f) {
       const uint32_t record[18] = {1 | 2 | 32};
       return f.Option(f.Made(), 1, 1, record, sizeof(record));
     }},
    {"debian-7.3.4", "rdma_cm.migrate.none", ENOENT,
     [](CmFixture& f) {
       return f.Command(18, Body(16).At<uint32_t>(8, f.Made()).At<uint32_t>(12, 9999), 4);
     }},
    {"debian-7.3.4", "rdma_cm.migrate.file", EINVAL,
     [](CmFixture& f) { return f.MigrateFromOther(); }},
};

class RdmaCmRules : public testing::TestWithParam<Off> {};
TEST_P(RdmaCmRules, AnswersAsTheKernelDoes) { ExpectRefusal(GetParam()); }
INSTANTIATE_TEST_SUITE_P(All, RdmaCmRules, testing::ValuesIn(kOffences),
                         [](const auto& info) { return CaseName(info.param); });

// The whole life of a connection, as librdmacm drives it (core/cma.c, cm.c of 7.3).
TEST(RdmaCm, ConnectsTalksAndDisconnects) {
  CmFixture f;
  const uint32_t listener = f.Listener();
  const uint32_t active = f.Ready();
  ASSERT_EQ(0, f.QpAttributes(active, 1));
  EXPECT_EQ(1U | 1 << 4 | 1 << 5 | 1 << 3, Word(f.attributes, 0)) << "cma_ib_init_qp_attr";
  ASSERT_EQ(0, f.Connect(active, 4));

  f.use = 1;
  const auto request = f.Next();
  ASSERT_EQ(0, request.result);
  EXPECT_EQ(4U, request.event) << "RDMA_CM_EVENT_CONNECT_REQUEST";
  EXPECT_EQ(0x3333U, request.uid) << "the listener's";
  EXPECT_NE(listener, request.id);
  const uint8_t* seen = request.bytes.data() + 20;
  EXPECT_EQ(0x1234U, Word(request.bytes, 20));
  EXPECT_EQ(4, seen[8 + 3]) << "private data";
  EXPECT_EQ(56, seen[264]) << "all that a request has room for";
  EXPECT_EQ(3, seen[266]) << "its initiator depth";
  EXPECT_EQ(5, seen[267]) << "its responder resources";
  EXPECT_EQ(6, seen[269]);
  EXPECT_EQ(7, seen[270]);

  const uint32_t passive = request.id;
  ASSERT_EQ(0, f.QpAttributes(passive, 2)) << "before the answer, too";
  EXPECT_EQ(1U | 1 << 7 | 1 << 8 | 1 << 20 | 1 << 12 | 1 << 17 | 1 << 15, Word(f.attributes, 0));
  EXPECT_EQ(3U, Word(f.attributes, 12)) << "iboe_get_mtu(1500)";
  EXPECT_EQ(0x1234U, Word(f.attributes, 32)) << "the peer's queue pair";
  EXPECT_EQ(1, f.attributes[40 + 29]) << "a global route";
  EXPECT_EQ(0, std::memcmp(f.image().device[0].ports[0].gids[1].raw, f.attributes.data() + 40, 16))
      << "to 10.0.0.1";
  EXPECT_EQ(1, f.attributes[40 + 20]) << "from the entry of 10.0.0.1";
  const uint32_t passive_psn = Word(f.attributes, 24);
  ASSERT_EQ(0, f.QpAttributes(passive, 3));
  const uint32_t active_psn = Word(f.attributes, 28);
  EXPECT_EQ(6, f.attributes[135]) << "retries, the requester's";
  EXPECT_EQ(7, f.attributes[136]);
  ASSERT_EQ(0, f.Accept(passive, 2));

  f.use = 0;
  const auto reply = f.Next();
  EXPECT_EQ(5U, reply.event) << "RDMA_CM_EVENT_CONNECT_RESPONSE";
  EXPECT_EQ(196, reply.bytes[20 + 264]);
  EXPECT_EQ(2, reply.bytes[20 + 8 + 1]);
  ASSERT_EQ(0, f.QpAttributes(active, 2));
  EXPECT_EQ(active_psn, Word(f.attributes, 24)) << "what the other side sends with";
  EXPECT_EQ(3, f.attributes[131]) << "max_dest_rd_atomic: the accepting side's initiator depth";
  ASSERT_EQ(0, f.QpAttributes(active, 3));
  EXPECT_EQ(passive_psn, Word(f.attributes, 28));
  EXPECT_EQ(5, f.attributes[130]) << "max_rd_atomic: the accepting side's responder resources";
  ASSERT_EQ(0, f.Establish(active));

  f.use = 1;
  const auto established = f.Next();
  EXPECT_EQ(9U, established.event) << "RDMA_CM_EVENT_ESTABLISHED";
  EXPECT_EQ(0x2222U, established.uid) << "the one that ACCEPT brought";
  EXPECT_EQ(passive, established.id);

  f.use = 0;
  ASSERT_EQ(0, f.Disconnect(active));
  f.use = 1;
  EXPECT_EQ(10U, f.Next().event) << "RDMA_CM_EVENT_DISCONNECTED";
  f.use = 0;
  EXPECT_EQ(-EAGAIN, f.Next().result) << "not before the answer";
  f.use = 1;
  ASSERT_EQ(0, f.Disconnect(passive));
  f.use = 0;
  EXPECT_EQ(10U, f.Next().event);
  EXPECT_EQ(0, f.Destroy(active));
  EXPECT_EQ(4U, f.reply) << "events that were read: address, route, response, disconnected";
}

TEST(RdmaCm, ADestroyedPeerDisconnects) {
  CmFixture f;
  f.Listener();
  const uint32_t active = f.Ready();
  EXPECT_EQ(0, f.Connect(active));
  const uint32_t passive = f.AcceptOf(active);
  EXPECT_EQ(9U, f.Next().event);
  EXPECT_EQ(0, f.Destroy(passive));
  f.use = 0;
  EXPECT_EQ(10U, f.Next().event);
}

// States of the identifiers that have a device, by the order in which they got it (enum
// rdma_cm_state).
std::vector<int> TrackedStates(CmFixture& f) {
  std::vector<int> states;
  for (const Tracked& entry : FindTracked(f.image(), 0, TrackType::kCmId))
    states.push_back(entry.state);
  return states;
}

TEST(RdmaCm, NetlinkHasEveryIdentifierAsItIsNow) {
  CmFixture f;
  f.Listener();
  const uint32_t active = f.Ready();
  EXPECT_EQ((std::vector<int>{8, 4}), TrackedStates(f)) << "LISTEN, ROUTE_RESOLVED";
  ASSERT_EQ(0, f.Connect(active));
  EXPECT_EQ((std::vector<int>{8, 5, 5}), TrackedStates(f)) << "with the request's: CONNECT";
  const uint32_t passive = f.AcceptOf(active);
  ASSERT_EQ(0, f.Disconnect(passive));
  EXPECT_EQ((std::vector<int>{8, 6, 5}), TrackedStates(f))
      << "cma.c:cma_ib_handler: DISCONNECT is who was told; who asked waits for the answer";
  f.use = 0;
  ASSERT_EQ(0, f.Destroy(active));
  EXPECT_EQ((std::vector<int>{8, 6}), TrackedStates(f)) << "the answer, and one is gone";
}

// One that a command has nothing to do with costs it nothing.
TEST(RdmaCm, NetlinkIsToldOfWhatWasTouchedAlone) {
  CmFixture f;
  const uint32_t one = f.Made(), other = f.Made();
  ASSERT_EQ(0, f.Bind(one, "10.0.0.1"));
  IdPointer id;
  {
    Manager& manager = Manager::Get();
    const auto lock = manager.Lock();
    id = manager.Find(one);
    manager.Drain();
    id->qpn = 0x777;
  }
  ASSERT_EQ(0, f.Bind(other, "10.0.0.1"));
  const auto qpn = [&] { return FindTracked(f.image(), 0, TrackType::kCmId).at(0).qpn; };
  EXPECT_EQ(0U, qpn());
  EXPECT_NE(0, f.Bind(one, "10.0.0.1"));
  EXPECT_EQ(0x777U, qpn());
}

TEST(RdmaCm, NobodyListens) {
  CmFixture f;
  const uint32_t id = f.Ready();
  ASSERT_EQ(0, f.Connect(id));
  const auto seen = f.Next();
  EXPECT_EQ(8U, seen.event) << "RDMA_CM_EVENT_REJECTED";
  EXPECT_EQ(8, seen.status) << "IB_CM_REJ_INVALID_SERVICE_ID";
  const uint32_t datagram = f.Ready(CmFixture::kUdp);
  ASSERT_EQ(0, f.Connect(datagram));
  const auto told = f.Next();
  EXPECT_EQ(7U, told.event) << "RDMA_CM_EVENT_UNREACHABLE";
  EXPECT_EQ(1, told.status) << "IB_SIDR_UNSUPPORTED";
}

TEST(RdmaCm, ARejectionBringsItsReasonAndData) {
  CmFixture f;
  const uint32_t passive = Requested(f);
  ASSERT_EQ(0, f.Reject(passive, 3));
  f.use = 0;
  const auto seen = f.Next();
  EXPECT_EQ(8U, seen.event);
  EXPECT_EQ(28, seen.status) << "IB_CM_REJ_CONSUMER_DEFINED";
  EXPECT_EQ(148, seen.bytes[20 + 264]);
}

TEST(RdmaCm, DatagramsAskForAQueuePair) {
  CmFixture f;
  f.Listener(CmFixture::kUdp);
  const uint32_t active = f.Ready(CmFixture::kUdp);
  ASSERT_EQ(0, f.Connect(active, 2));
  f.use = 1;
  const auto request = f.Next();
  EXPECT_EQ(4U, request.event);
  EXPECT_EQ(180, request.bytes[20 + 296]) << "216 bytes, less the header's 36";
  EXPECT_EQ(2, request.bytes[20 + 40 + 1]);
  ASSERT_EQ(0, f.Accept(request.id));
  f.use = 0;
  const auto seen = f.Next();
  EXPECT_EQ(9U, seen.event);
  EXPECT_EQ(0x1234U, Word(seen.bytes, 20));
  EXPECT_EQ(0x01234567U, Word(seen.bytes, 24)) << "RDMA_UDP_QKEY";
  EXPECT_EQ(1, seen.bytes[20 + 8 + 29]) << "an address with a global route";
  f.use = 1;
  EXPECT_EQ(-EAGAIN, f.Next().result) << "the accepting side is told nothing";
}

TEST(RdmaCm, JoinsAGroup) {
  CmFixture f;
  const uint32_t id = f.Made(CmFixture::kUdp);
  ASSERT_EQ(0, f.Bind(id, "10.0.0.1"));
  ASSERT_EQ(0, f.Resolve(id, "239.1.2.3")) << "through the interface that it is bound to";
  EXPECT_EQ(0U, f.Next().event);
  ASSERT_EQ(0, f.JoinGroup(id, "239.1.2.3"));
  const uint32_t member = f.reply;
  const auto seen = f.Next();
  EXPECT_EQ(12U, seen.event) << "RDMA_CM_EVENT_MULTICAST_JOIN";
  EXPECT_EQ(0x5555U, seen.uid) << "the membership's";
  EXPECT_EQ(0xffffffU, Word(seen.bytes, 20));
  EXPECT_EQ(0x01234567U, Word(seen.bytes, 24));
  const uint8_t group[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};
  EXPECT_EQ(0, std::memcmp(group, seen.bytes.data() + 28, 16)) << "cma_iboe_set_mgid";
  ASSERT_EQ(
      0,
      f.Command(17, Body(16).At<uint64_t>(0, CmFixture::Address(&f.reply)).At<uint32_t>(8, member),
                4));
  EXPECT_EQ(1U, f.reply) << "events that were read";
}

TEST(RdmaCm, AnAddressThatNobodyHas) {
  CmFixture f;
  const uint32_t id = f.Made();
  ASSERT_EQ(0, f.Resolve(id, "10.0.0.77"));
  f.WaitForEvent();
  const auto seen = f.Next();
  EXPECT_EQ(1U, seen.event) << "RDMA_CM_EVENT_ADDR_ERROR";
  EXPECT_EQ(-ETIMEDOUT, seen.status);
}

TEST(RdmaCm, RepliesGrewIn58) {
  for (const bool grown : {false, true}) {
    CmFixture f(grown ? "linux-5.8" : "linux-5.7");
    const uint32_t id = f.Made();
    ASSERT_EQ(0, f.Resolve(id, "10.0.0.2", 7000));
    EXPECT_EQ(0U, f.Next().event);
    ASSERT_EQ(0, f.Query(5, id, 0, 208));
    EXPECT_EQ(grown ? 1U : 0xeeeeeeeeU, Word(f.answer, 200)) << "ibdev_index";
    ASSERT_EQ(0, f.Query(19, id, 0, 280));
    EXPECT_EQ(grown ? 1U : 0xeeeeeeeeU, Word(f.answer, 272));
    EXPECT_EQ(1, f.answer[8]) << "port";
    EXPECT_EQ(16, f.answer[12]) << "size of a sockaddr_in";
    ASSERT_EQ(0, f.Query(19, id, 0, 272)) << "what older libraries have room for";
  }
}

TEST(RdmaCm, NumbersOfRequests) {
  for (const bool early : {false, true}) {
    CmFixture f(early ? "debian-5.10.223" : "linux-5.9");
    f.Listener();
    const uint32_t active = f.Ready();
    ASSERT_EQ(0, f.Connect(active));
    // ucma_connect_event_handler takes a number at once; older kernels when the event is read.
    const uint32_t between = f.Made();
    f.use = 1;
    EXPECT_EQ(early, f.Next().id < between);
  }
}

TEST(RdmaCm, GidsOfTheDefaultType) {
  const struct {
    const char* kernel;
    uint8_t type;
  } cases[] = {{"linux-4.10", 1}, {"linux-4.16", 2}};
  for (const auto& it : cases) {
    CmFixture f(it.kernel);
    // An entry of RoCE v1 before the other ones.
    auto& port = f.image().device[0].ports[0];
    port.gids[port.gid_count] = port.gids[1];
    port.gids[port.gid_count++].type = 1;
    f.Listener();
    ASSERT_EQ(0, f.Connect(f.Ready()));
    f.use = 1;
    ASSERT_EQ(0, f.QpAttributes(f.Next().id, 2));
    EXPECT_EQ(it.type, port.gids[f.attributes[40 + 20]].type) << it.kernel;
  }
}

TEST(RdmaCm, ReuseNeedsBothSides) {
  CmFixture f;
  const int on = 1;
  const uint32_t first = f.Made(), second = f.Made();
  ASSERT_EQ(0, f.Option(first, 0, 1, &on, 4));
  ASSERT_EQ(0, f.Option(second, 0, 1, &on, 4));
  ASSERT_EQ(0, f.Bind(first, "10.0.0.1", 7000));
  ASSERT_EQ(0, f.Bind(second, "10.0.0.1", 7000));
  EXPECT_EQ(-EADDRINUSE, f.Listen(second)) << "a listener is alone";
}

class Infiniband : public CmFixture {
 public:
  explicit Infiniband(const char* kernel = "debian-7.3.4") : CmFixture(kernel, "mlx5") {}
  // Bound to the first port, on the way to the second.
  uint32_t Across(uint16_t port_space = kTcp) {
    const uint32_t id = Made(port_space);
    EXPECT_EQ(0, Bind(id, "10.0.0.1"));
    EXPECT_EQ(0, Resolve(id, "10.0.0.2", 7000));
    EXPECT_EQ(0U, Next().event);
    return id;
  }
  uint32_t Routed(uint32_t id) {
    EXPECT_EQ(0, Route(id));
    EXPECT_EQ(2U, Next().event) << "RDMA_CM_EVENT_ROUTE_RESOLVED";
    return id;
  }
};

// addr.c:rdma_translate_ip of an interface of ARPHRD_INFINIBAND, cma.c:rdma_read_gids.
TEST(RdmaCmInfiniband, IpAddressesLeadToThePortsGids) {
  Infiniband f;
  const uint32_t id = f.Across();
  ASSERT_EQ(0, f.Query(19, id, 0, 280));
  EXPECT_EQ(0x0200c0fffe000100U, Big64(f.answer, 0)) << "the device of 10.0.0.1";
  EXPECT_EQ(1, f.answer[8]);
  EXPECT_EQ(0xffff, Big16(f.answer, 10)) << "of the interface's broadcast address";
  EXPECT_EQ(16, f.answer[12]) << "still a sockaddr_in";
  ASSERT_EQ(0, f.Query(19, id, 2, 280));
  EXPECT_EQ(27, f.answer[16]) << "AF_IB";
  EXPECT_EQ(0xffff, Big16(f.answer, 18));
  EXPECT_TRUE(HasGid(f.answer, 16 + 8, kFirstGid));
  EXPECT_TRUE(HasGid(f.answer, 16 + 128 + 8, kSecondGid));
  EXPECT_EQ(kTcpService | 7000, Big64(f.answer, 16 + 128 + 24)) << "rdma_get_service_id";
}

// cma.c:cma_query_ib_route; what opensm answers: osm_sa_path_record.c:pr_rcv_build_pr.
TEST(RdmaCmInfiniband, TheSubnetAnswersForPaths) {
  Infiniband f;
  const uint32_t id = f.Across();
  ASSERT_EQ(0, f.Query(19, id, 1, 80));
  EXPECT_EQ(0U, Word(f.answer, 0)) << "none yet";
  f.Routed(id);
  ASSERT_EQ(0, f.Query(19, id, 1, 80));
  EXPECT_EQ(1U, Word(f.answer, 0));
  const size_t record = 16;
  EXPECT_TRUE(HasGid(f.answer, record + 8, kSecondGid));
  EXPECT_TRUE(HasGid(f.answer, record + 24, kFirstGid));
  EXPECT_EQ(2, Big16(f.answer, record + 40)) << "LID of the target";
  EXPECT_EQ(1, Big16(f.answer, record + 42));
  EXPECT_EQ(0, f.answer[record + 47]) << "no hop limit within the subnet";
  EXPECT_EQ(0x80, f.answer[record + 49]) << "reversible";
  EXPECT_EQ(0xffff, Big16(f.answer, record + 50));
  EXPECT_EQ(0x80 | 5, f.answer[record + 54]) << "4096 bytes";
  EXPECT_EQ(0x80 | 16, f.answer[record + 55]) << "IB_RATE_100_GBPS: four lanes of EDR";
  EXPECT_EQ(0x80 | 18, f.answer[record + 56]) << "OSM_DEFAULT_SUBNET_TIMEOUT";
  ASSERT_EQ(0, f.Query(5, id, 0, 208));
  EXPECT_EQ(2, Big16(f.answer, 8 + 32));
  EXPECT_EQ(16, f.answer[8 + 60]) << "rate";

  ASSERT_EQ(0, f.QpAttributes(id, 1));
  f.use = 1;
  const uint32_t listener = f.Made();
  ASSERT_EQ(0, f.Bind(listener, "10.0.0.2", 7000));
  ASSERT_EQ(0, f.Listen(listener));
  f.use = 0;
  ASSERT_EQ(0, f.Connect(id, 1));
  f.use = 1;
  const auto request = f.Next();
  ASSERT_EQ(4U, request.event);
  EXPECT_EQ(56, request.bytes[20 + 264]) << "behind struct cma_hdr";
  ASSERT_EQ(0, f.QpAttributes(request.id, 2));
  EXPECT_EQ(0, f.attributes[40 + 29]) << "no global route";
  EXPECT_EQ(1U, Word(f.attributes, 40 + 24) & 0xffff) << "back to LID 1";
  EXPECT_EQ(16, f.attributes[40 + 28]) << "static rate";
  EXPECT_EQ(5U, Word(f.attributes, 12)) << "path MTU";
  ASSERT_EQ(0, f.Query(19, request.id, 0, 280));
  EXPECT_EQ(0x0200c0fffe000200U, Big64(f.answer, 0)) << "the device that it came to";
}

TEST(RdmaCmInfiniband, WhatTheSubnetDoesNotKnow) {
  Infiniband f;
  const uint32_t id = f.Made();
  ASSERT_EQ(0, f.ResolveGid(id, "fe80::1234", kTcpService | 7000)) << "the same subnet";
  EXPECT_EQ(0U, f.Next().event);
  ASSERT_EQ(0, f.Route(id));
  const auto seen = f.Next();
  EXPECT_EQ(3U, seen.event) << "RDMA_CM_EVENT_ROUTE_ERROR";
  EXPECT_EQ(-EINVAL, seen.status) << "sa_query.c:recv_handler, of an answer that is an error";
}

TEST(RdmaCmInfiniband, NobodyAnswersForAPortThatIsDown) {
  Infiniband f;
  const uint32_t id = f.Across();
  FindDevice(0)->Become(kPortDown);
  ASSERT_EQ(0, f.Route(id, 1));
  f.WaitForEvent();
  const auto seen = f.Next();
  EXPECT_EQ(3U, seen.event);
  EXPECT_EQ(-ETIMEDOUT, seen.status);
}

// A loopback address has a path on InfiniBand, unlike on RoCE.
TEST(RdmaCmInfiniband, ALoopbackAddressHasARoute) {
  Infiniband f;
  const uint32_t id = f.Made();
  ASSERT_EQ(0, f.Resolve(id, "127.0.0.1", 7000));
  EXPECT_EQ(0U, f.Next().event);
  f.Routed(id);
  ASSERT_EQ(0, f.Query(19, id, 1, 80));
  EXPECT_EQ(0x80, f.answer[16 + 56]) << "IBTA, table 205: no packet life time for loopback";
  EXPECT_EQ(1, Big16(f.answer, 16 + 40));
}

// cma.c: cma_select_ib_ps, cma_bind_port
TEST(RdmaCmInfiniband, GidsAreBoundWithServiceIds) {
  Infiniband f;
  const uint32_t named = f.Made(), any = f.Made();
  ASSERT_EQ(0, f.BindGid(named, kSecondGid, kTcpService | 7000));
  ASSERT_EQ(0, f.Query(19, named, 0, 280));
  EXPECT_EQ(48, f.answer[12]) << "a sockaddr_ib";
  EXPECT_EQ(kTcpService | 7000, Big64(f.answer, 16 + 24));
  EXPECT_EQ(0x0200c0fffe000200U, Big64(f.answer, 0));
  ASSERT_EQ(0, f.BindGid(any, "::", 0, 0));
  ASSERT_EQ(0, f.Query(19, any, 0, 280));
  EXPECT_EQ(kTcpService, Big64(f.answer, 16 + 24) & ~0xffffULL);
  EXPECT_NE(0U, Big64(f.answer, 16 + 24) & 0xffff) << "a port of its own";
  EXPECT_EQ(~0ULL, Big64(f.answer, 16 + 32));
  EXPECT_EQ(-EADDRNOTAVAIL, f.BindGid(f.Made(), "::", kTcpService | 7000)) << "somebody has it";
  EXPECT_EQ(-ENODEV, f.BindGid(f.Made(), "fe80::1234", kTcpService));
}

// cma.c:cma_resolve_ib_dev
TEST(RdmaCmInfiniband, ThePortThatAGidIsReachedThrough) {
  for (const bool first : {false, true}) {
    Infiniband f(first ? "linux-4.16" : "linux-4.10");
    const uint32_t id = f.Made();
    ASSERT_EQ(0, f.ResolveGid(id, kSecondGid, kTcpService | 7000));
    EXPECT_EQ(0U, f.Next().event);
    ASSERT_EQ(0, f.Query(19, id, 2, 280));
    EXPECT_TRUE(HasGid(f.answer, 16 + 8, first ? kFirstGid : kSecondGid));
    EXPECT_TRUE(HasGid(f.answer, 16 + 128 + 8, kSecondGid));
  }
}

// cma.c: cma_user_data_offset, cma_save_ip_info, cma_find_listener: of an address of the family
// AF_IB the program puts the header into its private data itself.
TEST(RdmaCmInfiniband, GidsConnect) {
  const struct {
    uint8_t version, ip_version;
    const char* gid;
    const char* why;
    uint32_t event;  // at the listener; 0: none
  } cases[] = {{0, 0x00, kSecondGid, "no header: a request for listeners of AF_IB", 4},
               {0, 0x60, kSecondGid, "an IPv6 header, whose addresses are the GIDs", 4},
               {0xad, 0x60, kSecondGid, "cma_format_hdr writes the version", 4},
               {0, 0x60, "2001:db8::1", "validate_ipv6_net_dev: no way back", 0}};
  for (const auto& it : cases) {
    Infiniband f;
    f.use = 1;
    const uint32_t listener = f.Made(CmFixture::kTcp, 0x3333);
    ASSERT_EQ(0, f.BindGid(listener, kSecondGid, kTcpService | 7000));
    ASSERT_EQ(0, f.Listen(listener));
    f.use = 0;
    const uint32_t id = f.Made();
    ASSERT_EQ(0, f.BindGid(id, kFirstGid, kTcpService));
    ASSERT_EQ(0, f.ResolveGid(id, kSecondGid, kTcpService | 7000));
    EXPECT_EQ(0U, f.Next().event);
    f.Routed(id);
    auto body = CmFixture::Parameters(Body(288).At<uint32_t>(272, id), 0, 92);
    body.At<uint8_t>(8, it.version).At<uint8_t>(9, it.ip_version);
    inet_pton(AF_INET6, it.event != 0 ? kFirstGid : it.gid, body.bytes.data() + 8 + 4);
    inet_pton(AF_INET6, kSecondGid, body.bytes.data() + 8 + 20);
    ASSERT_EQ(0, f.Command(6, body)) << "92 bytes are all the program's";
    if (it.event == 0) {
      const auto seen = f.Next();
      EXPECT_EQ(8U, seen.event) << it.why;
      EXPECT_EQ(28, seen.status) << "IB_CM_REJ_CONSUMER_DEFINED: cm_destroy_id";
      continue;
    }
    f.use = 1;
    const auto request = f.Next();
    ASSERT_EQ(it.event, request.event) << it.why;
    EXPECT_EQ(92, request.bytes[20 + 264]);
    EXPECT_EQ(0, request.bytes[20 + 8]) << "CMA_VERSION";
    EXPECT_EQ(it.ip_version, request.bytes[20 + 8 + 1]) << "with its header";
    ASSERT_EQ(0, f.Query(19, request.id, 0, 280));
    EXPECT_EQ(27, f.answer[16]) << "cma_save_ib_info";
    EXPECT_TRUE(HasGid(f.answer, 16 + 8, kSecondGid));
    EXPECT_TRUE(HasGid(f.answer, 16 + 128 + 8, kFirstGid));
    EXPECT_EQ(kTcpService | 7000, Big64(f.answer, 16 + 24));
  }
}

// cma.c: cma_join_ib_multicast, cma_set_mgid
TEST(RdmaCmInfiniband, JoinsAGroupOfTheSubnet) {
  Infiniband f;
  const uint32_t id = f.Made(CmFixture::kUdp);
  ASSERT_EQ(0, f.Bind(id, "10.0.0.1"));
  ASSERT_EQ(0, f.JoinGroup(id, "239.1.2.3"));
  const auto seen = f.Next();
  EXPECT_EQ(12U, seen.event);
  EXPECT_EQ(0x01234567U, Word(seen.bytes, 24));
  EXPECT_TRUE(HasGid(seen.bytes, 28, "ff12:4001:ffff::f01:203")) << "ip_ib_mc_map";
  EXPECT_LE(0xc000U, Word(seen.bytes, 28 + 24) & 0xffff) << "a multicast LID";
  EXPECT_EQ(1, seen.bytes[28 + 29]);
  const uint32_t by_gid = f.Made(CmFixture::kUdp);
  ASSERT_EQ(0, f.BindGid(by_gid, kFirstGid, 0x01110000));
  EXPECT_EQ(-EADDRNOTAVAIL, f.JoinGroup(by_gid, "239.1.2.3")) << "ib_sa_get_mcmember_rec";
}

// ucma.c:ucma_set_ib_path
TEST(RdmaCmInfiniband, AProgramMayKnowTheWayItself) {
  Infiniband f;
  const uint32_t id = f.Across();
  uint8_t record[72] = {1 | 2 | 32};
  std::memcpy(record + 8 + 8, f.image().device[1].ports[0].gids[0].raw, 16);
  std::memcpy(record + 8 + 24, f.image().device[0].ports[0].gids[0].raw, 16);
  record[8 + 41] = 7;  // LID
  record[8 + 54] = 0x80 | 4;
  ASSERT_EQ(0, f.Option(id, 1, 1, record, sizeof(record)));
  EXPECT_EQ(2U, f.Next().event);
  ASSERT_EQ(0, f.Query(19, id, 1, 80));
  EXPECT_EQ(7, Big16(f.answer, 16 + 40));
  EXPECT_EQ(0x80 | 4, f.answer[16 + 54]);
  EXPECT_EQ(-EINVAL, f.Option(id, 1, 1, record, sizeof(record))) << "the route is known";
}

}  // namespace
}  // namespace vabi::rdma_cm
