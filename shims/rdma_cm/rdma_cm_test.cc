// SPDX-License-Identifier: BSD-2-Clause
#include <arpa/inet.h>

#include "shims/providers/test_offence.h"
#include "shims/rdma_cm/test_rdma_cm.h"
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
  f.use = 1;
  const uint32_t passive = f.Next().id;
  EXPECT_EQ(0, f.Accept(passive));
  f.use = 0;
  EXPECT_EQ(5U, f.Next().event);
  EXPECT_EQ(0, f.Establish(active));
  f.use = 1;
  EXPECT_EQ(9U, f.Next().event);
  EXPECT_EQ(0, f.Destroy(passive));
  f.use = 0;
  EXPECT_EQ(10U, f.Next().event);
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

}  // namespace
}  // namespace vabi::rdma_cm
