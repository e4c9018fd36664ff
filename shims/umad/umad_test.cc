// SPDX-License-Identifier: BSD-2-Clause
#include <poll.h>
#include <sys/mman.h>

#include "shims/providers/test_offence.h"
#include "shims/umad/answer.h"
#include "shims/umad/test_umad.h"

namespace vabi::umad {
namespace {

using Message = UmadFixture::Message;
using Off = Offence<UmadFixture>;

uint64_t Big(const Bytes& bytes, size_t at, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i) value = value << 8 | bytes[at + static_cast<size_t>(i)];
  return value;
}
uint32_t Word(const Bytes& bytes, size_t at) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

// Errnos from core/user_mad.c and core/mad.c of the releases named.
const Off kOffences[] = {
    {"debian-7.3.4", "umad.ioctl.unknown", ENOTTY,
     [](UmadFixture& f) { return f.file().Ioctl(0xc01c1b09, nullptr); }},
    {"debian-7.3.4", "umad.agent.gone", EPIPE,
     [](UmadFixture& f) {
       FindDevice(0)->SetGone(true);
       return f.RegisterAgent(1);
     }},
    {"debian-7.3.4", "umad.agent.fault", EFAULT,
     [](UmadFixture& f) { return f.file().Ioctl(0xc01c1b01, nullptr); }},
    {"debian-7.3.4", "umad.agent.qpn", EINVAL, [](UmadFixture& f) { return f.RegisterAgent(2); }},
    {"debian-7.3.4", "umad.agent.flags", EINVAL,
     [](UmadFixture& f) {
       UmadFixture::Request2 request;
       request.flags = 2;
       const long result = f.RegisterAgent2(request);
       EXPECT_EQ(1U, request.flags) << "IB_USER_MAD_REG_FLAGS_CAP";
       return result;
     }},
    {"debian-7.3.4", "umad.agent.many", ENOMEM,
     [](UmadFixture& f) {
       for (int i = 0; i < 32; ++i) EXPECT_EQ(0, f.RegisterAgent(1));
       return f.RegisterAgent(1);
     }},
    {"debian-7.3.4", "umad.agent.oui", EINVAL,
     [](UmadFixture& f) {
       UmadFixture::Request2 request;
       request.mgmt_class = 0x32;
       request.oui = 0x1001405;
       return f.RegisterAgent2(request);
     }},
    {"debian-7.3.4", "umad.agent.service.first", EPROTONOSUPPORT,
     [](UmadFixture& f) {
       f.Use(2);
       return f.RegisterAgent(0, 0, 7);  // also a bad RMPP version: looked at later
     }},
    {"linux-4.19", "umad.agent.service", EPROTONOSUPPORT,
     [](UmadFixture& f) {
       f.Use(2);
       return f.RegisterAgent(0);
     }},
    {"linux-4.19", "umad.agent.rmpp_version", EINVAL,
     [](UmadFixture& f) {
       f.Use(2);
       return f.RegisterAgent(0, 0, 7);
     }},
    {"debian-7.3.4", "umad.agent.class_version", EINVAL,
     [](UmadFixture& f) {
       UmadFixture::Request request;
       request.mgmt_class = 4;
       request.version = 0x83;
       return f.RegisterAgent(request);
     }},
    {"debian-7.3.4", "umad.agent.class", EINVAL,
     [](UmadFixture& f) { return f.RegisterAgent(1, 80); }},
    {"debian-7.3.4", "umad.agent.vendor_oui", EINVAL,
     [](UmadFixture& f) { return f.RegisterAgent(1, 0x30); }},
    {"debian-7.3.4", "umad.agent.class_rmpp", EINVAL,
     [](UmadFixture& f) { return f.RegisterAgent(1, 4, 1); }},
    {"debian-7.3.4", "umad.agent.class_qp", EINVAL,
     [](UmadFixture& f) { return f.RegisterAgent(0, 4); }},
    {"linux-4.4", "umad.agent.class_qp", EINVAL,
     [](UmadFixture& f) { return f.RegisterAgent(1, 0x81); }},
    {"debian-7.3.4", "umad.agent.user_rmpp", EINVAL,
     [](UmadFixture& f) {
       UmadFixture::Request2 request;
       request.flags = 1;
       return f.RegisterAgent2(request);
     }},
    {"debian-7.3.4", "umad.agent.in_use", EINVAL,
     [](UmadFixture& f) {
       UmadFixture::Request request;
       request.mgmt_class = 4;
       request.methods[0] = 1 << 1;
       EXPECT_EQ(0, f.RegisterAgent(request));
       request.methods[0] = 1 << 2;
       EXPECT_EQ(0, f.RegisterAgent(request)) << "another method";
       request.methods[0] = 1 << 1 | 1 << 3;
       return f.RegisterAgent(request);
     }},
    {"debian-6.12.117", "umad.agent.in_use", EINVAL,
     [](UmadFixture& f) {
       UmadFixture::Request request;  // ib_cm has it
       request.mgmt_class = 7;
       request.version = 2;
       request.methods[0] = 1 << 3;
       return f.RegisterAgent(request);
     }},
    {"debian-7.3.4", "umad.unregister.fault", EFAULT,
     [](UmadFixture& f) { return f.file().Ioctl(0x40041b02, nullptr); }},
    {"debian-7.3.4", "umad.unregister.id", EINVAL, [](UmadFixture& f) { return f.Unregister(32); }},
    {"linux-4.4", "umad.unregister.id", EINVAL, [](UmadFixture& f) { return f.Unregister(0); }},
    {"debian-7.3.4", "umad.pkey.late", EINVAL,
     [](UmadFixture& f) {
       EXPECT_EQ(0, f.RegisterAgent(1));
       return f.EnablePkey();
     }},
    {"debian-7.3.4", "umad.write.short", EINVAL,
     [](UmadFixture& f) {
       f.Start();
       return f.Send(Bytes(64 + 35));
     }},
    {"debian-7.3.4", "umad.write.fault", EFAULT,
     [](UmadFixture& f) {
       f.Start();
       return f.file().Write(nullptr, 320);
     }},
    {"debian-7.3.4", "umad.write.id", EINVAL,
     [](UmadFixture& f) {
       f.Start();
       Message message(1, 1, 0x11);
       message.bytes[0] = 32;
       return f.Send(message);
     }},
    {"debian-7.3.4", "umad.write.no_agent", EIO,
     [](UmadFixture& f) {
       f.Start();
       Message message(1, 1, 0x11);
       message.bytes[0] = 31;
       return f.Send(message);
     }},
    {"linux-5.9", "umad.write.no_agent", EINVAL,
     [](UmadFixture& f) {
       f.Start();
       Message message(1, 1, 0x11);
       message.bytes[0] = 31;
       return f.Send(message);
     }},
    {"debian-7.3.4", "address.grh_required", EINVAL,
     [](UmadFixture& f) {
       f.Use(2);
       EXPECT_EQ(0, f.EnablePkey());
       EXPECT_EQ(0, f.RegisterAgent(1));
       return f.Send(Message(4, 1, 0x12).To(1, 1));
     }},
    {"debian-7.3.4", "umad.write.class_header", EINVAL,
     [](UmadFixture& f) {
       f.Start();
       Message message(3, 1, 0x11);
       message.bytes[0] = 1;
       message.bytes.resize(64 + 55);  // the SA's header has 56
       return f.Send(message);
     }},
    {"debian-7.3.4", "umad.write.long", EINVAL,
     [](UmadFixture& f) {
       f.Start();
       Message message(4, 1, 0x12);
       message.bytes[0] = 1;
       message.bytes.resize(64 + 257);
       return f.Send(message);
     }},
    {"debian-7.3.4", "umad.write.duplicate", EINVAL,
     [](UmadFixture& f) {
       f.image().virtual_time = 0;
       f.Start();
       Message message = Message(4, 1, 0x12).To(77, 1);
       message.bytes[0] = 1;
       message.bytes[10] = 1;  // a minute and more
       EXPECT_EQ(320, f.Send(message));
       return f.Send(message);
     }},
    {"debian-7.3.4", "umad.write.class_rmpp", EINVAL,
     [](UmadFixture& f) {
       EXPECT_EQ(0, f.EnablePkey());
       EXPECT_EQ(0, f.RegisterAgent(1, 3, 1));
       return f.Send(Message(4, 1, 0x12).To(1, 1));
     }},
    {"debian-7.3.4", "umad.write.route", EINVAL,
     [](UmadFixture& f) {
       f.Start();
       Message message(0x81, 1, 0x11);
       message.mad(7) = 64;  // hops
       return f.Send(message);
     }},
    {"linux-4.4", "umad.write.route", EINVAL,
     [](UmadFixture& f) {
       f.Start();
       Message message(0x81, 1, 0x11);
       message.mad(7) = 1;
       message.mad(128 + 1) = 2;  // out of a port that is not this one
       return f.Send(message);
     }},
    {"debian-7.3.4", "umad.issm.busy", EAGAIN,
     [](UmadFixture& f) {
       NodeView node = {};
       std::shared_ptr<File> first, second;
       Device& device = *FindDevice(0);
       Decision call(device.world(), trace::FrontEnd::kOpen, f.image().device[0].name, "open");
       EXPECT_EQ(0, IssmFile::Open(call, device, 1, &node, true, &first));
       return call.Finish(IssmFile::Open(call, device, 1, &node, true, &second));
     }},
    {"debian-7.3.4", "umad.read.header", EINVAL,
     [](UmadFixture& f) {
       uint8_t bytes[55];
       return f.file().Read(bytes, sizeof(bytes), true);
     }},
    {"debian-7.3.4", "umad.read.gone", EIO,
     [](UmadFixture& f) {
       FindDevice(0)->SetGone(true);
       uint8_t bytes[320];
       return f.file().Read(bytes, sizeof(bytes), true);
     }},
    {"linux-5.9", "umad.read.again", EAGAIN,
     [](UmadFixture& f) {
       FindDevice(0)->SetGone(true);  // not looked at before 5.10
       uint8_t bytes[320];
       return f.file().Read(bytes, sizeof(bytes), true);
     }},
    {"debian-7.3.4", "umad.read.short", EINVAL,
     [](UmadFixture& f) {
       f.Start();
       EXPECT_EQ(320, f.Send(Message(0x81, 1, 0x11)));
       uint8_t bytes[319];
       return f.file().Read(bytes, sizeof(bytes), true);
     }},
    {"debian-7.3.4", "umad.read.fault", EFAULT,
     [](UmadFixture& f) {
       f.Start();
       EXPECT_EQ(320, f.Send(Message(0x81, 1, 0x11)));
       const long result = f.file().Read(nullptr, 320, true);
       EXPECT_EQ(320U, f.Receive().size()) << "what could not be delivered stays";
       // For the rule in the trace.
       EXPECT_EQ(320, f.Send(Message(0x81, 1, 0x11)));
       f.file().Read(nullptr, 320, true);
       return result;
     }},
};

class UmadRules : public testing::TestWithParam<Off> {};
TEST_P(UmadRules, AnswersAsTheKernelDoes) { ExpectRefusal(GetParam()); }
INSTANTIATE_TEST_SUITE_P(All, UmadRules, testing::ValuesIn(kOffences),
                         [](const auto& info) { return CaseName(info.param); });

TEST(Umad, OlderKernelsTakeWhatNewOnesRefuse) {
  UmadFixture f("linux-6.6");
  f.Start();
  Message message(3, 1, 0x11);
  message.bytes[0] = 1;
  message.bytes.resize(64 + 55);
  EXPECT_EQ(64 + 55, f.Send(message)) << "core/user_mad.c:ib_umad_write (6.6)";
}

TEST(Umad, HeadersGrowWithPkeySupport) {
  UmadFixture f;
  EXPECT_EQ(0, f.RegisterAgent(0));
  Message message(0x81, 1, 0x11);
  Bytes old(message.bytes.begin(), message.bytes.begin() + 56);
  old.insert(old.end(), message.bytes.begin() + 64, message.bytes.end());
  ASSERT_EQ(56 + 256, f.Send(old));
  EXPECT_EQ(56U + 256, f.Receive().size());
}

TEST(Umad, RegisterAgent2BringsPkeySupport) {
  UmadFixture f;
  UmadFixture::Request2 request;
  request.qpn = 0;
  ASSERT_EQ(0, f.RegisterAgent2(request));
  EXPECT_EQ(0U, request.id);
  ASSERT_EQ(320, f.Send(Message(0x81, 1, 0x11)));
  EXPECT_EQ(320U, f.Receive().size());
}

// IBTA 14.2.5.3; PortInfo and the others likewise below.
TEST(Umad, TheLocalPortAnswersADirectedRoute) {
  UmadFixture f;
  f.Start();
  const Bytes got = f.Ask(Message(0x81, 1, 0x11));
  ASSERT_EQ(320U, got.size());
  EXPECT_EQ(0U, Word(got, 0)) << "the agent";
  EXPECT_EQ(0U, Word(got, 4)) << "status";
  EXPECT_EQ(320U, Word(got, 16)) << "length";
  EXPECT_EQ(0xffffU, Big(got, 28, 2)) << "build_smp_wc: the permissive LID";
  constexpr size_t mad = 64, data = 64 + 64;
  EXPECT_EQ(0x81, got[mad + 3]) << "GetResp";
  EXPECT_EQ(0x8000U, Big(got, mad + 4, 2)) << "the direction bit";
  EXPECT_EQ(0x42U, Big(got, mad + 12, 4)) << "the lower half of the transaction number";
  EXPECT_NE(0U, Big(got, mad + 8, 4)) << "agent.hi_tid";
  EXPECT_EQ(1, got[data + 2]) << "a channel adapter";
  EXPECT_EQ(1, got[data + 3]) << "ports";
  const DeviceImage& device = f.image().device[0];
  EXPECT_EQ(device.node_guid, Big(got, data + 12, 8));
  EXPECT_EQ(device.ports[0].pkey_count, Big(got, data + 28, 2));
  EXPECT_EQ(0x1017U, Big(got, data + 30, 2)) << "device";
  EXPECT_EQ(1, got[data + 36]) << "local port";
}

TEST(Umad, PortInfoOfANeighbourByItsLid) {
  UmadFixture f;
  f.Start();
  const Bytes got = f.Ask(Message(1, 1, 0x15).To(2, 0));
  ASSERT_EQ(320U, got.size());
  EXPECT_EQ(2U, Big(got, 28, 2)) << "from LID 2";
  constexpr size_t data = 64 + 64;
  EXPECT_EQ(0xfe80000000000000U, Big(got, data + 8, 8));
  EXPECT_EQ(2U, Big(got, data + 16, 2)) << "LID";
  EXPECT_EQ(1U, Big(got, data + 18, 2)) << "the subnet manager's LID";
  EXPECT_EQ(0x2259e848U, Big(got, data + 20, 4)) << "matrix/providers/mlx5.json";
  EXPECT_EQ(2, got[data + 31]) << "4X";
  EXPECT_EQ(4, got[data + 32] & 15) << "active";
  EXPECT_EQ(5, got[data + 33] >> 4) << "link up";
  EXPECT_EQ(5, got[data + 36] >> 4) << "MTU 4096";
  EXPECT_EQ(2, got[data + 62] >> 4) << "EDR";
}

TEST(Umad, TheSubnetManagersNodeSetsItsBit) {
  UmadFixture f;
  f.Start();
  SetSubnetManager(*FindDevice(0), 1, true);
  ASSERT_EQ(320, f.Send(Message(0x81, 1, 0x15)));
  EXPECT_EQ(0x2259e84aU, Big(f.Receive(), 128 + 20, 4));
  SetSubnetManager(*FindDevice(0), 1, false);
  ASSERT_EQ(320, f.Send(Message(0x81, 1, 0x15)));
  EXPECT_EQ(0x2259e848U, Big(f.Receive(), 128 + 20, 4));
}

TEST(Umad, OtherAttributesOfTheSubnetAgent) {
  UmadFixture f;
  f.Start();
  ASSERT_EQ(320, f.Send(Message(0x81, 1, 0x10)));
  EXPECT_EQ(0, std::strncmp(f.image().device[0].node_desc,
                            reinterpret_cast<const char*>(f.Receive().data()) + 128, 64));
  ASSERT_EQ(320, f.Send(Message(0x81, 1, 0x16)));
  EXPECT_EQ(0xffff0000U, Big(f.Receive(), 128, 4)) << "one P_Key";
  ASSERT_EQ(320, f.Send(Message(0x81, 1, 0x16, 4)));
  EXPECT_EQ(0x801cU, Big(f.Receive(), 64 + 4, 2)) << "128 P_Keys are 4 blocks";
  ASSERT_EQ(320, f.Send(Message(0x81, 1, 0x14)));
  EXPECT_EQ(f.image().device[0].node_guid, Big(f.Receive(), 128, 8));
  ASSERT_EQ(320, f.Send(Message(0x81, 1, 0x12)));
  EXPECT_EQ(0x800cU, Big(f.Receive(), 64 + 4, 2)) << "SwitchInfo of no switch";
}

TEST(Umad, PerformanceCountersAreZero) {
  UmadFixture f;
  f.Start();
  Message ask = Message(4, 1, 1).To(1, 1);
  ask.bytes[0] = 1;
  ASSERT_EQ(320, f.Send(ask));
  EXPECT_EQ(0x0200U, Big(f.Receive(), 128 + 2, 2)) << "IB_PMA_CLASS_CAP_EXT_WIDTH";
  Message counters = Message(4, 1, 0x12).To(1, 1);
  counters.bytes[0] = 1;
  counters.mad(65) = 1;
  counters.mad(90) = 0x55;
  const Bytes got = f.Ask(counters);
  EXPECT_EQ(1U, Word(got, 0)) << "the agent that asked";
  EXPECT_EQ(1U, Big(got, 20, 4)) << "from QP1";
  EXPECT_EQ(1, got[128 + 1]) << "of port 1";
  EXPECT_EQ(0, got[64 + 90]);
  counters.mad(65) = 2;
  ASSERT_EQ(320, f.Send(counters));
  EXPECT_EQ(0x001cU, Big(f.Receive(), 64 + 4, 2)) << "no such port";
}

// opensm: osm_sminfo_rcv.c; the ports name the LID 1 as the manager's.
TEST(Umad, TheSubnetHasAManager) {
  UmadFixture f;
  f.Start();
  const Bytes got = f.Ask(Message(1, 1, 0x20).To(1, 0));
  ASSERT_EQ(320U, got.size());
  EXPECT_EQ(0x81, got[64 + 3]);
  EXPECT_EQ(0U, Big(got, 64 + 4, 2));
  EXPECT_EQ(f.image().device[0].node_guid, Big(got, 128, 8)) << "the port's GUID";
  EXPECT_EQ(0x03, got[128 + 20]) << "priority 0, MASTER";
}

// A question to the subnet administrator, as libibumad sends it: class 3, version 2, RMPP by the
// kernel; the mask of components, and a record.
struct SubnetQuestion : Message {
  SubnetQuestion(uint8_t method, uint16_t attribute, uint64_t mask = 0)
      : Message(3, method, attribute) {
    To(1, 1);
    this->mad(2) = 2;
    for (size_t i = 0; i < 8; ++i) this->mad(48 + i) = static_cast<uint8_t>(mask >> (56 - 8 * i));
  }
  uint8_t& record(size_t at) { return this->mad(56 + at); }
};
class Subnet : public testing::Test {
 protected:
  Subnet() {
    EXPECT_EQ(0, f_.EnablePkey());
    UmadFixture::Request request;
    request.mgmt_class = 3;
    request.version = 2;
    request.rmpp = 1;
    EXPECT_EQ(0, f_.RegisterAgent(request));
  }
  Bytes Ask(const SubnetQuestion& question) {
    EXPECT_EQ(320, f_.Send(question));
    return Read(2048);
  }
  Bytes Read(size_t room) {
    Bytes bytes(room);
    const long result = f_.file().Read(bytes.data(), bytes.size(), true);
    last_ = result;
    bytes.resize(result < 0 ? 0 : static_cast<size_t>(result));
    return bytes;
  }
  static constexpr size_t kMad = 64, kRecords = 64 + 56;
  UmadFixture f_;
  long last_ = 0;
};

// 108 bytes of a record take 112 (14 times 8); two are more than the 200 of a segment.
TEST_F(Subnet, ListsNodes) {
  const Bytes got = Ask(SubnetQuestion(0x12, 0x11));
  ASSERT_EQ(kRecords + 2 * 112, got.size()) << "mad_rmpp.c:get_mad_len";
  EXPECT_EQ(got.size(), Word(got, 16)) << "ib_user_mad_hdr.length";
  EXPECT_EQ(0x92, got[kMad + 3]) << "GetTableResp";
  EXPECT_EQ(0U, Big(got, kMad + 4, 2));
  EXPECT_EQ(1, got[kMad + 24]) << "RMPP version";
  EXPECT_EQ(1, got[kMad + 25]) << "data";
  EXPECT_EQ(3, got[kMad + 26] & 7) << "active, first";
  EXPECT_EQ(1U, Big(got, kMad + 28, 4)) << "segment";
  EXPECT_EQ(2U * 112 + 2 * 20, Big(got, kMad + 32, 4)) << "with the class header of each";
  EXPECT_EQ(14U, Big(got, kMad + 44, 2)) << "offset";
  for (size_t i = 0; i < 2; ++i) {
    const size_t at = kRecords + 112 * i;
    const DeviceImage& device = f_.image().device[i];
    EXPECT_EQ(i + 1, Big(got, at, 2)) << "LID";
    EXPECT_EQ(1, got[at + 4 + 2]) << "a channel adapter";
    EXPECT_EQ(device.node_guid, Big(got, at + 4 + 12, 8));
    EXPECT_EQ(
        0, std::strncmp(device.node_desc, reinterpret_cast<const char*>(got.data()) + at + 44, 64));
  }
}

// user_mad.c:copy_recv_mad
TEST_F(Subnet, ATableNeedsRoom) {
  ASSERT_EQ(320, f_.Send(SubnetQuestion(0x12, 0x11)));
  Read(64 + 255);
  EXPECT_EQ(-EINVAL, last_) << "not even of the first segment";
  Bytes bytes(64 + 256);
  EXPECT_EQ(-ENOSPC, f_.file().Read(bytes.data(), bytes.size(), true));
  EXPECT_EQ(kRecords + 2 * 112, Word(bytes, 16)) << "but with its header, which says how much";
  EXPECT_EQ(0x92, bytes[kMad + 3]);
  EXPECT_EQ(kRecords + 2 * 112, Read(2048).size()) << "it stays";
}

TEST_F(Subnet, FindsByComponents) {
  SubnetQuestion by_lid(0x12, 0x11, 1);
  by_lid.record(1) = 2;
  const Bytes one = Ask(by_lid);
  ASSERT_EQ(kRecords + 112, one.size()) << "shorter than a MAD";
  EXPECT_EQ(7, one[kMad + 26] & 7) << "active, first, last";
  EXPECT_EQ(2U, Big(one, kRecords, 2));
  by_lid.record(1) = 77;
  const Bytes none = Ask(by_lid);
  EXPECT_EQ(kRecords, none.size());
  EXPECT_EQ(0U, Big(none, kMad + 44, 2));
  SubnetQuestion get(1, 0x11, 1);
  get.record(1) = 77;
  EXPECT_EQ(0x0300U, Big(Ask(get), kMad + 4, 2)) << "NO_RECORDS";
  get.record(1) = 2;
  const Bytes found = Ask(get);
  ASSERT_EQ(320U, found.size());
  EXPECT_EQ(0x81, found[kMad + 3]);
  EXPECT_EQ(2U, Big(found, kRecords, 2));
  EXPECT_EQ(0x0400U, Big(Ask(SubnetQuestion(1, 0x11)), kMad + 4, 2)) << "TOO_MANY_RECORDS";
}

TEST_F(Subnet, ListsPorts) {
  const Bytes got = Ask(SubnetQuestion(0x12, 0x12));
  ASSERT_EQ(kRecords + 2 * 72, got.size());
  EXPECT_EQ(9U, Big(got, kMad + 44, 2));
  EXPECT_EQ(1, got[kRecords + 2]) << "port";
  EXPECT_EQ(1U, Big(got, kRecords + 4 + 16, 2)) << "PortInfo's LID";
  EXPECT_EQ(2U, Big(got, kRecords + 72 + 4 + 16, 2));
  SubnetQuestion managers(0x12, 0x12, 1 << 7);
  managers.mad(20) = 0x80;
  managers.record(4 + 23) = 2;
  EXPECT_EQ(kRecords, Ask(managers).size()) << "no port has IsSM";
  managers.record(4 + 23) = 8;
  EXPECT_EQ(kRecords + 2 * 72, Ask(managers).size());
}

// opensm's defaults, docs/fabric.md: MTU 4096 (5), life 18, all exact (2 in the upper bits); EDR of
// four lanes is 100 Gb/s (16).
TEST_F(Subnet, ListsPaths) {
  SubnetQuestion question(0x12, 0x35, 1 << 4 | 1 << 5 | 1 << 12);
  question.record(41) = 2;
  question.record(43) = 1;
  const Bytes got = Ask(question);
  ASSERT_EQ(kRecords + 64, got.size());
  EXPECT_EQ(8U, Big(got, kMad + 44, 2));
  EXPECT_EQ(0,
            std::memcmp(f_.image().device[1].ports[0].gids[0].raw, got.data() + kRecords + 8, 16));
  EXPECT_EQ(0,
            std::memcmp(f_.image().device[0].ports[0].gids[0].raw, got.data() + kRecords + 24, 16));
  EXPECT_EQ(0x00020001U, Big(got, kRecords + 40, 4)) << "DLID, SLID";
  EXPECT_EQ(0x80, got[kRecords + 49]) << "reversible";
  EXPECT_EQ(0xffffU, Big(got, kRecords + 50, 2));
  EXPECT_EQ(0x85, got[kRecords + 54]);
  EXPECT_EQ(0x90, got[kRecords + 55]);
  EXPECT_EQ(0x92, got[kRecords + 56]);
  EXPECT_EQ(kRecords + 4 * 64, Ask(SubnetQuestion(0x12, 0x35)).size()) << "of each pair of ports";
}

TEST_F(Subnet, IsNotReachedThroughAPortThatIsDown) {
  FindDevice(1)->Become(kPortDown);
  EXPECT_EQ(kRecords + 112, Ask(SubnetQuestion(0x12, 0x11)).size()) << "nor is that port in it";
  FindDevice(0)->Become(kPortDown);
  ASSERT_EQ(320, f_.Send(SubnetQuestion(0x12, 0x11)));
  EXPECT_EQ("a question to the subnet through a port that is down", f_.LastUnmodelled());
}

// opensm answers a question with no SM_Key or its own (osm_sa_mad_ctrl.c), which is 1 unless
// somebody says otherwise; others it discards.
TEST_F(Subnet, TakesItsOwnKeyAlone) {
  SubnetQuestion question(0x12, 0x11);
  question.mad(36 + 7) = 1;
  EXPECT_EQ(kRecords + 2 * 112, Ask(question).size());
  SubnetQuestion foreign(0x12, 0x11);
  foreign.mad(15) = 0x43;
  foreign.mad(36 + 7) = 7;
  const Bytes got = f_.Ask(foreign);
  EXPECT_EQ(static_cast<uint32_t>(ETIMEDOUT), Word(got, 4));
  EXPECT_EQ("", f_.LastUnmodelled());
}

TEST_F(Subnet, SaysWhatItDoesNotKnow) {
  ASSERT_EQ(320, f_.Send(SubnetQuestion(0x12, 0x38)));
  EXPECT_EQ("a question to the subnet administrator other than for nodes, ports and paths",
            f_.LastUnmodelled());
  SubnetQuestion by_level(0x12, 0x35, 1 << 15);
  by_level.mad(15) = 0x43;  // the first one still waits
  ASSERT_EQ(320, f_.Send(by_level));
  EXPECT_EQ("a component by which the subnet administrator is asked for records",
            f_.LastUnmodelled());
}

// mlx5_ib_process_mad leaves SMInfo; generate_unmatched_resp answers.
TEST(Umad, TheKernelAnswersWhatNobodyTakes) {
  UmadFixture f;
  f.Start();
  const Bytes got = f.Ask(Message(1, 1, 0x20).To(2, 0));
  ASSERT_EQ(320U, got.size());
  EXPECT_EQ(0x81, got[64 + 3]);
  EXPECT_EQ(0x000cU, Big(got, 64 + 4, 2)) << "IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB";
}

TEST(Umad, NobodyThere) {
  UmadFixture f;
  f.Start();
  const Bytes got = f.Ask(Message(1, 1, 0x11).To(77, 0));
  EXPECT_EQ(64U + 24, got.size()) << "send_handler: IB_MGMT_MAD_HDR";
  EXPECT_EQ(static_cast<uint32_t>(ETIMEDOUT), Word(got, 4));
  EXPECT_EQ(1, got[64 + 3]) << "the request itself";
  Message silent = Message(1, 1, 0x11).To(77, 0);
  silent.bytes[8] = 0;
  ASSERT_EQ(320, f.Send(silent));
  struct pollfd wait = {f.fd(), POLLIN, 0};
  EXPECT_EQ(0, poll(&wait, 1, 50)) << "without a time there is nothing to tell";
}

TEST(Umad, ADirectedRouteThatLeavesEndsNowhere) {
  UmadFixture f;
  f.Start();
  Message message(0x81, 1, 0x11);
  message.mad(7) = 1;
  message.mad(128 + 1) = 1;
  ASSERT_EQ(320, f.Send(message));
  EXPECT_EQ(static_cast<uint32_t>(ETIMEDOUT), Word(f.Receive(), 4));
}

TEST(Umad, AnAgentThatLeavesLosesItsAnswers) {
  UmadFixture f;
  f.image().virtual_time = 0;
  f.Start();
  Message message = Message(1, 1, 0x11).To(77, 0);
  message.bytes[8] = 20;
  ASSERT_EQ(320, f.Send(message));
  ASSERT_EQ(0, f.Unregister(0));
  struct pollfd wait = {f.fd(), POLLIN, 0};
  EXPECT_EQ(0, poll(&wait, 1, 100));
}

TEST(Umad, SaysWhatIsNotModelled) {
  UmadFixture f;
  f.Start();
  ASSERT_EQ(320, f.Send(Message(0x81, 2, 0x15)));
  EXPECT_EQ("setting an attribute by a MAD", f.LastUnmodelled());
  ASSERT_EQ(320, f.Send(Message(0x81, 1, 0x17)));
  EXPECT_EQ("an attribute that the device's agent has", f.LastUnmodelled());
}

}  // namespace
}  // namespace vabi::umad
