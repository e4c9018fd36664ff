// SPDX-License-Identifier: BSD-2-Clause
// Frames and flow rules. Frames are written here byte by byte from RFC 791, 768, 9293 and IEEE
// 802.1Q; what commands refuse is from the kernel's fs.c and counters.c (functions stand in
// abi.def).
#include "shims/providers/mlx5/steering.h"

#include <functional>

#include "shims/providers/mlx5/test_mlx5.h"

namespace vabi::mlx5 {
namespace {

#define FLOW(field) VABI_F(ib_uverbs_flow_attr, field)

Bytes Concat(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
const Bytes kHere = {0x01, 0x50, 0x56, 0x19, 0x20, 0xa7};  // a multicast address
const Bytes kThere = {0x24, 0x8a, 0x07, 0xa5, 0x28, 0xc8};

Bytes Ipv4(uint8_t protocol, const Bytes& payload) {
  Bytes packet = {0x45, 0x28, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  packet.insert(packet.end(), payload.begin(), payload.end());
  return packet;
}
Bytes UdpFrame(const Bytes& to = kHere) {
  return Concat(
      {to, kThere, {0x08, 0x00}, Ipv4(17, {0x04, 0xd2, 0x16, 0x2e, 0, 8, 0, 0, 'p', 'q'})});
}
MatchParams Parsed(const Bytes& frame) {
  return ParseFrame({frame.data(), static_cast<uint32_t>(frame.size())});
}
bool Holds(const MatchParams& params, size_t at, const Bytes& bytes) {
  return std::memcmp(params.data() + at, bytes.data(), bytes.size()) == 0;
}

// Offsets: PRM, fte_match_set_lyr_2_4.
TEST(Packet, UdpOverIpv4) {
  const MatchParams params = Parsed(UdpFrame());
  EXPECT_TRUE(Holds(params, 0, kThere)) << "source";
  EXPECT_TRUE(Holds(params, 6, {0x08, 0x00}));
  EXPECT_TRUE(Holds(params, 8, kHere)) << "destination";
  EXPECT_TRUE(Holds(params, 16, {17, 0x28, 4 << 1, 0})) << "protocol, DSCP and ECN, version";
  EXPECT_TRUE(Holds(params, 28, {0x04, 0xd2, 0x16, 0x2e})) << "UDP ports";
  EXPECT_TRUE(Holds(params, 20, {0, 0, 0, 0})) << "no TCP ports";
  EXPECT_TRUE(Holds(params, 44, {1, 2, 3, 4}));
  EXPECT_TRUE(Holds(params, 60, {5, 6, 7, 8}));
}

TEST(Packet, VlanAndTcpOverIpv6) {
  Bytes ip = {0x61, 0x2a, 0xbc, 0xde, 0, 20, 6, 33};
  for (uint8_t i = 0; i < 32; ++i) ip.push_back(i);
  const Bytes tcp = {0, 80, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x51, 0x12, 0, 0};
  const MatchParams params =
      Parsed(Concat({kHere, kThere, {0x81, 0x00, 0xbc, 0x0c, 0x86, 0xdd}, ip, tcp}));
  EXPECT_TRUE(Holds(params, 6, {0x86, 0xdd})) << "the type behind the tag";
  EXPECT_TRUE(Holds(params, 14, {0xbc, 0x0c})) << "priority 5, CFI 1, id 0xc0c";
  EXPECT_TRUE(Holds(params, 16, {6, 0x12, 0x80 | 6 << 1 | 1, 0x12}))
      << "cvlan, version, nine flags";
  EXPECT_TRUE(Holds(params, 20, {0, 80, 1, 2}));
  EXPECT_TRUE(Holds(params, 32, {0, 1, 2, 3}));
  EXPECT_TRUE(Holds(params, 48, {16, 17, 18, 19}));
  EXPECT_TRUE(Holds(params, 64 + 28, {0, 0x0a, 0xbc, 0xde})) << "flow label";
}

TEST(Packet, VxlanTellsItsNetwork) {
  const Bytes udp = {0, 1, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0x76, 0xad, 0xf1, 0};
  const MatchParams params = Parsed(Concat({kHere, kThere, {0x08, 0x00}, Ipv4(17, udp)}));
  EXPECT_TRUE(Holds(params, 64 + 20, {0x76, 0xad, 0xf1}));
}

TEST(Packet, TooShortFramesHaveWhatIsThere) {
  const MatchParams params = Parsed(Concat({kHere, kThere, {0x08, 0x00, 0x45}}));
  EXPECT_TRUE(Holds(params, 6, {0x08, 0x00}));
  EXPECT_TRUE(Holds(params, 16, {0, 0, 0, 0}));
}

class Taker final : public PacketSink {
 public:
  void Receive(const Frame& frame) override {
    ++frames;
    tag = frame.flow_tag;
  }
  int frames = 0;
  uint32_t tag = 0;
};

class Tables : public testing::Test {
 protected:
  FlowRule Rule(uint32_t priority, PacketSink* sink) {
    FlowRule rule;
    rule.priority = priority;
    rule.enable = kMatchOuter;
    std::memset(&rule.mask[8], 0xff, 6);
    std::memcpy(&rule.value[8], kHere.data(), 6);
    rule.sink = sink;
    return rule;
  }
  void Arrive(const Bytes& frame) { Steer(0, {frame.data(), static_cast<uint32_t>(frame.size())}); }
  Taker first_, second_;
};

TEST_F(Tables, TheLowestNumberComesFirst) {
  FlowRule late = Rule(3, &second_), early = Rule(1, &first_);
  AddRule(&late), AddRule(&early);
  Arrive(UdpFrame());
  EXPECT_EQ(1, first_.frames);
  EXPECT_EQ(0, second_.frames);
  Arrive(UdpFrame(kThere));
  EXPECT_EQ(1, first_.frames) << "another destination";
  early.next = true;
  Arrive(UdpFrame());
  EXPECT_EQ(1, second_.frames) << "the next table, too";
  RemoveRule(&early), RemoveRule(&late);
  Arrive(UdpFrame());
  EXPECT_EQ(2, first_.frames);
  EXPECT_EQ(1, second_.frames);
}

TEST_F(Tables, RulesOfOneMatchAllGetIt) {
  FlowRule one = Rule(1, &first_), other = Rule(1, &second_);
  FlowCounter counter;
  one.counter = &counter;
  other.has_tag = true, other.tag = 0xabc;
  AddRule(&one), AddRule(&other);
  Arrive(UdpFrame());
  EXPECT_EQ(1, first_.frames);
  EXPECT_EQ(1, second_.frames);
  EXPECT_EQ(0xabcu, first_.tag) << "the entry's tag";
  EXPECT_EQ(1u, counter.packets);
  EXPECT_EQ(UdpFrame().size(), counter.bytes);
  FlowRule third = Rule(1, nullptr);
  EXPECT_FALSE(Conflicts(third));
  third.drop = true;
  EXPECT_TRUE(Conflicts(third));
  third.drop = false, third.has_tag = true, third.tag = 1;
  EXPECT_TRUE(Conflicts(third));
  RemoveRule(&one), RemoveRule(&other);
}

TEST_F(Tables, DroppedFramesDoNotLeave) {
  FlowRule rule = Rule(1, nullptr);
  rule.egress = rule.drop = true;
  AddRule(&rule);
  const Bytes here = UdpFrame(), there = UdpFrame(kThere);
  EXPECT_FALSE(Leaves(0, {here.data(), static_cast<uint32_t>(here.size())}));
  EXPECT_TRUE(Leaves(0, {there.data(), static_cast<uint32_t>(there.size())}));
  EXPECT_TRUE(Leaves(1, {here.data(), static_cast<uint32_t>(here.size())})) << "another device";
  RemoveRule(&rule);
}

TEST_F(Tables, UnknownHeadersAreTold) {
  MatchParams mask = {};
  EXPECT_TRUE(Parses(mask, 0xff));
  mask[kInnerHeaders] = 1;
  EXPECT_FALSE(Parses(mask, 0xff));
  EXPECT_TRUE(Parses(mask, kMatchOuter)) << "a section that does not count";
}

// A raw packet queue pair that sends to itself.
class Flows : public Mlx5Test {
 public:
  explicit Flows(const char* kernel = "debian-7.3.4") : Mlx5Test(kernel) {
    image().device[0].link = LinkLayer::kEthernet;
    Reinstall();
    OpenContext();
    MakeCq(&cq_);
    raw_.type = 8;
    Struct own = QpPrivate(raw_);
    own.Set(VABI_F(mlx5_ib_create_qp, sq_buf_addr), Address(sends_.base()));
    EXPECT_GT(MakeQp(cq_, cq_, &raw_, own.bytes()), 0) << LastRule();
    EXPECT_GT(Modify(raw_, 0x21, {{MODIFY(qp_state), 1}, {MODIFY(port_num), 1}}), 0) << LastRule();
    EXPECT_GT(Modify(raw_, 0x1, {{MODIFY(qp_state), 2}}), 0) << LastRule();
    EXPECT_GT(Modify(raw_, 0x1, {{MODIFY(qp_state), 3}}), 0) << LastRule();
  }
  void TestBody() override {}
  using Mlx5Test::image;
  using Mlx5Test::LastRule;

  struct Attr {
    uint32_t type = 0, flags = 0, priority = 0, comp_mask = 0;
    uint32_t qp = 0;
  };
  Bytes FlowRequest(const Attr& attr, std::initializer_list<Bytes> specs) {
    Struct request = S(VABI_S(ib_uverbs_create_flow));
    request.Set(VABI_F(ib_uverbs_create_flow, comp_mask), attr.comp_mask);
    request.Set(VABI_F(ib_uverbs_create_flow, qp_handle), attr.qp != 0 ? attr.qp : raw_.handle);
    const Body body = request.Sub(VABI_F(ib_uverbs_create_flow, flow_attr));
    const Bytes chain = Concat(specs);
    body.Set(FLOW(type), attr.type);
    body.Set(FLOW(flags), attr.flags);
    body.Set(FLOW(priority), attr.priority);
    body.Set(FLOW(size), chain.size());
    body.Set(FLOW(num_of_specs), specs.size());
    body.Set(FLOW(port), 1);
    return Concat({request.bytes(), chain});
  }
  // CREATE_FLOW (extended command 50) of so many specs.
  int Create(const Attr& attr, std::initializer_list<Bytes> specs, const Bytes& driver = {}) {
    Bytes reply(8);
    const long result = WriteEx(50, FlowRequest(attr, specs), &reply, driver);
    flow_ = In(reply).U32(VABI_F(ib_uverbs_create_flow_resp, flow_handle));
    return Errno(result);
  }
  // The same by DEVICE.INVOKE_WRITE, where the driver's part need not be words of 8 bytes.
  int Invoke(std::initializer_list<Bytes> specs, const Bytes& driver) {
    const Bytes core = FlowRequest({}, specs);
    Bytes reply(8);
    Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_INVOKE_WRITE));
    call.AddConst(C(VABI_C(UVERBS_ATTR_WRITE_CMD)), 0x80000000 | 50);
    call.AddIn(C(VABI_C(UVERBS_ATTR_CORE_IN)), core);
    call.AddOut(C(VABI_C(UVERBS_ATTR_CORE_OUT)), reply);
    call.AddIn(C(VABI_C(UVERBS_ATTR_UHW_IN)), driver);
    return Errno(Ioctl(call));
  }
  int Destroy() {
    Struct request = S(VABI_S(ib_uverbs_destroy_flow));
    request.Set(VABI_F(ib_uverbs_destroy_flow, flow_handle), flow_);
    return Errno(WriteEx(51, request.bytes(), nullptr));
  }
  // A spec: type, value, mask.
  static Bytes Spec(uint16_t type, const Bytes& value, const Bytes& mask) {
    const auto size = static_cast<uint8_t>(8 + value.size() + mask.size());
    return Concat(
        {{static_cast<uint8_t>(type), static_cast<uint8_t>(type >> 8), 0, 0, size, 0, 0, 0},
         value,
         mask});
  }
  static Bytes Eth(const Bytes& type = {0, 0}, const Bytes& type_mask = {0, 0}) {
    return Spec(0x20, Concat({kHere, Bytes(6), type, {0, 0}}),
                Concat({Bytes(6, 0xff), Bytes(6), type_mask, {0, 0}}));
  }
  static Bytes V4(uint8_t protocol = 0, uint8_t mask = 0, uint8_t ttl_mask = 0) {
    return Spec(0x30, {1, 2, 3, 4, 0, 0, 0, 0, protocol, 0, 0, 0},
                {255, 255, 255, 255, 0, 0, 0, 0, mask, 0, ttl_mask, 0});
  }
  static Bytes Udp() { return Spec(0x41, {0x16, 0x2e, 0, 0}, {255, 255, 0, 0}); }
  static Bytes Action(uint16_t type, uint32_t value) {
    const Bytes number = {static_cast<uint8_t>(value),
                          static_cast<uint8_t>(value >> 8),
                          static_cast<uint8_t>(value >> 16),
                          static_cast<uint8_t>(value >> 24),
                          0,
                          0,
                          0,
                          0};
    return Spec(type, number, {});
  }

  // The frame's bytes as a message of one pointer; true when it came back into a receive.
  bool Loops(const Bytes& frame) {
    std::memcpy(memory_.base(), frame.data(), frame.size());
    std::memset(memory_.At(4096), 0xee, 2048);
    raw_.Receive(memory_.At(4096), 2048, lkey_);
    uint8_t* wqe = sends_.At(size_t{raw_.posted_blocks} % 16 * 64);
    std::memset(wqe, 0, 64);
    Put32(wqe, uint32_t{raw_.posted_blocks} << 8 | 0x0a);
    Put32(wqe + 4, raw_.number << 8 | 4);
    wqe[11] = 8;
    // The first 14 bytes stand in the Ethernet segment.
    Put16(wqe + 28, 14);
    std::memcpy(wqe + 30, frame.data(), 14);
    Put32(wqe + 48, static_cast<uint32_t>(frame.size() - 14));
    Put32(wqe + 52, lkey_), Put64(wqe + 56, Address(memory_.At(14)));
    ++raw_.posted_blocks;
    raw_.Ring();
    Settle();
    bool arrived = false;
    while (const uint8_t* cqe = cq_.Poll()) {
      if (cqe[63] >> 4 != 2) continue;  // MLX5_CQE_RESP_SEND
      arrived = true;
      length_ = Get32(cqe + 44);
      tag_ = Get32(cqe + 56);
      EXPECT_EQ(raw_.index, Get32(cqe + 32));
    }
    return arrived && std::memcmp(memory_.At(4096), frame.data(), frame.size()) == 0;
  }

  // COUNTERS
  uint32_t MakeCounters() {
    Request call = New(VABI_C(UVERBS_OBJECT_COUNTERS), VABI_C(UVERBS_METHOD_COUNTERS_CREATE));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_CREATE_COUNTERS_HANDLE)));
    EXPECT_EQ(0, Ioctl(call)) << LastRule();
    return static_cast<uint32_t>(call.attrs()[0].data);
  }
  int ReadCounters(uint32_t handle, size_t count, Bytes* values) {
    values->assign(count * 8, 0xee);
    Request call = New(VABI_C(UVERBS_OBJECT_COUNTERS), VABI_C(UVERBS_METHOD_COUNTERS_READ));
    call.AddHandle(C(VABI_C(UVERBS_ATTR_READ_COUNTERS_HANDLE)), handle);
    call.AddOut(C(VABI_C(UVERBS_ATTR_READ_COUNTERS_BUFF)), *values).len =
        static_cast<uint16_t>(values->size());
    return Errno(Ioctl(call));
  }
  // struct mlx5_ib_create_flow with one struct mlx5_ib_flow_counters_data
  Bytes Describe(const Bytes& rows, uint32_t count = 0) {
    rows_ = rows;
    Bytes request(8 + 16);
    const uint64_t address = Address(rows_.data());
    request[0] = 1;
    std::memcpy(request.data() + 8, &address, 8);
    const uint32_t all = count != 0 ? count : static_cast<uint32_t>(rows.size() / 8);
    std::memcpy(request.data() + 16, &all, 4);
    return request;
  }

  // Matchers, and flows of the driver's own method
  Request Matcher(const Bytes& mask, uint8_t criteria = 1, uint16_t priority = 0) {
    mask_ = mask;
    Request call =
        New(VABI_C(MLX5_IB_OBJECT_FLOW_MATCHER), VABI_C(MLX5_IB_METHOD_FLOW_MATCHER_CREATE));
    call.AddHandle(C(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE)));
    call.AddIn(C(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK)), mask_);
    call.Add(C(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE)), 2, priority);
    call.Add(C(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA)), 1, criteria);
    return call;
  }
  uint32_t MakeMatcher(uint8_t criteria = 1, uint16_t priority = 0) {
    Request call = Matcher(Concat({Bytes(6, 0xff), Bytes(10)}), criteria, priority);
    EXPECT_EQ(0, Ioctl(call)) << LastRule();
    return static_cast<uint32_t>(call.attrs()[0].data);
  }
  Request RawFlow(uint32_t matcher, const Bytes& value, bool to_qp = true) {
    value_ = value;
    Request call = New(VABI_C(UVERBS_OBJECT_FLOW), VABI_C(MLX5_IB_METHOD_CREATE_FLOW));
    call.AddHandle(C(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_HANDLE)));
    call.AddIn(C(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE)), value_);
    call.AddHandle(C(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_MATCHER)), matcher);
    if (to_qp) call.AddHandle(C(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_DEST_QP)), raw_.handle);
    return call;
  }
  int DestroyBy(ConstId object, ConstId method, ConstId attribute, uint32_t handle) {
    Request call = New(object, method);
    call.AddHandle(C(attribute), handle);
    return Errno(Ioctl(call));
  }
  Request New(ConstId object, ConstId method) {
    return Request(static_cast<uint16_t>(C(object)), static_cast<uint16_t>(C(method)),
                   image().device[0].driver_id);
  }
  long Ioctl(Request& request) {
    request.header().num_attrs = static_cast<uint16_t>(request.attrs().size());
    request.header().length = static_cast<uint16_t>(24 + 16 * request.attrs().size());
    Bytes all(request.header().length);
    std::memcpy(all.data(), &request.header(), 24);
    std::memcpy(all.data() + 24, request.attrs().data(), all.size() - 24);
    const long result = file_->Ioctl(0xc0181b01, all.data());
    std::memcpy(request.attrs().data(), all.data() + 24, all.size() - 24);
    return result;
  }
  int64_t Const(ConstId id) const { return C(id); }

  Cq cq_{64};
  mlx5::Mlx5Test::Qp raw_;
  Pages sends_{4096};
  Bytes rows_, mask_, value_;
  uint32_t flow_ = 0, length_ = 0, tag_ = 0;
};

TEST_F(Flows, FramesComeWhereRulesSendThem) {
  EXPECT_FALSE(Loops(UdpFrame())) << "no rule";
  ASSERT_EQ(0, Create({}, {Eth({0x08, 0x00}, {0xff, 0xff}), V4(17, 0xff), Udp()})) << LastRule();
  EXPECT_TRUE(Loops(UdpFrame()));
  EXPECT_EQ(UdpFrame().size(), length_);
  EXPECT_EQ(0u, tag_) << "MLX5_FS_DEFAULT_FLOW_TAG";
  Bytes other = UdpFrame();
  other[26] = 9;  // the source address
  EXPECT_FALSE(Loops(other));
  EXPECT_EQ(0, Destroy());
  EXPECT_FALSE(Loops(UdpFrame()));
}

TEST_F(Flows, TagsAndDrops) {
  ASSERT_EQ(0, Create({.priority = 3}, {Eth(), Action(0x1000, 0x1234)})) << LastRule();
  EXPECT_TRUE(Loops(UdpFrame()));
  EXPECT_EQ(0x1234u, tag_);
  // IPv4 to a unicast address has the rule's own priority; multicast comes behind all others.
  ASSERT_EQ(0, Create({.priority = 0}, {V4(), Spec(0x1001, {}, {})})) << LastRule();
  EXPECT_FALSE(Loops(UdpFrame()));
  EXPECT_EQ(0, Destroy());
  EXPECT_TRUE(Loops(UdpFrame()));
}

TEST_F(Flows, LeftoversTakeTheRest) {
  ASSERT_EQ(0, Create({.type = 2}, {})) << LastRule();
  EXPECT_TRUE(Loops(UdpFrame())) << "multicast";
  EXPECT_EQ(0, Destroy());
  EXPECT_FALSE(Loops(UdpFrame()));
  ASSERT_EQ(0, Create({.type = 1}, {})) << LastRule();
  EXPECT_TRUE(Loops(UdpFrame()));
}

TEST_F(Flows, CountersCount) {
  const uint32_t counters = MakeCounters();
  const Bytes count = Action(0x1003, counters);
  Bytes values;
  EXPECT_EQ(EINVAL, Create({}, {Eth(), count})) << "nothing says what is counted";
  EXPECT_EQ("mlx5.counters.undescribed", LastRule());
  // Bytes at index 0, packets at index 2.
  ASSERT_EQ(0,
            Create({}, {Eth(), count}, Describe({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0})))
      << LastRule();
  EXPECT_TRUE(Loops(UdpFrame()));
  EXPECT_TRUE(Loops(UdpFrame()));
  EXPECT_EQ(EINVAL, ReadCounters(counters, 2, &values));
  EXPECT_EQ("mlx5.counters.read_index", LastRule());
  ASSERT_EQ(0, ReadCounters(counters, 3, &values)) << LastRule();
  uint64_t read[3];
  std::memcpy(read, values.data(), sizeof(read));
  EXPECT_EQ(2 * UdpFrame().size(), read[0]);
  EXPECT_EQ(0u, read[1]);
  EXPECT_EQ(2u, read[2]);
  const uint32_t counting = flow_;
  EXPECT_EQ(EINVAL, Create({}, {V4(), count}, Describe({0, 0, 0, 0, 0, 0, 0, 0})));
  EXPECT_EQ("mlx5.counters.bound", LastRule());
  flow_ = counting;
  EXPECT_EQ(0, Destroy());
  EXPECT_EQ(0, Create({}, {V4(), count}, Describe({0, 0, 0, 0, 0, 0, 0, 0}))) << "free again";
}

TEST_F(Flows, MatchersMakeFlows) {
  const uint32_t matcher = MakeMatcher();
  Request call = RawFlow(matcher, kThere);
  ASSERT_EQ(0, Ioctl(call)) << LastRule();
  EXPECT_TRUE(Loops(UdpFrame()));
  EXPECT_EQ(EBUSY, DestroyBy(VABI_C(MLX5_IB_OBJECT_FLOW_MATCHER),
                             VABI_C(MLX5_IB_METHOD_FLOW_MATCHER_DESTROY),
                             VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE), matcher));
  EXPECT_EQ("mlx5.matcher.busy", LastRule());
  Bytes gone(8);
  EXPECT_EQ(EBUSY, Errno(Write(kDestroyQp,
                               S(VABI_S(ib_uverbs_destroy_qp))
                                   .With(VABI_F(ib_uverbs_destroy_qp, qp_handle), raw_.handle),
                               &gone)));
  EXPECT_EQ(0, DestroyBy(VABI_C(UVERBS_OBJECT_FLOW), VABI_C(MLX5_IB_METHOD_DESTROY_FLOW),
                         VABI_C(MLX5_IB_ATTR_CREATE_FLOW_HANDLE),
                         static_cast<uint32_t>(call.attrs()[0].data)))
      << LastRule();
  EXPECT_FALSE(Loops(UdpFrame()));
  EXPECT_EQ(
      0, DestroyBy(VABI_C(MLX5_IB_OBJECT_FLOW_MATCHER), VABI_C(MLX5_IB_METHOD_FLOW_MATCHER_DESTROY),
                   VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE), matcher));
}

// One offence for each rule.
struct Offence {
  const char* rule;
  int error;
  std::function<int(Flows&)> commit;
  const char* kernel = "debian-7.3.4";
};

int Go(Flows& t, Request call) {
  const long result = t.Ioctl(call);
  return result < 0 ? static_cast<int>(-result) : 0;
}

const std::vector<Offence>& Offences() {
  using F = Flows;
  static const auto* const all = new std::vector<Offence>{
      {"mlx5.create_flow.length", EOPNOTSUPP, [](F& t) { return t.Invoke({t.Eth()}, Bytes(4)); }},
      {"mlx5.create_flow.counters", EINVAL,
       [](F& t) {
         return t.Create({}, {t.Eth()}, {2, 0, 0, 0, 0, 0, 0, 0});
       }},
      {"mlx5.create_flow.tail", EOPNOTSUPP,
       [](F& t) {
         return t.Create({}, {t.Eth()}, Concat({Bytes(8), {1}, Bytes(7)}));
       }},
      {"mlx5.create_flow.priority", ENOMEM,
       [](F& t) { return t.Create({.priority = 16}, {t.Eth()}); }},
      {"mlx5.create_flow.flags", EINVAL, [](F& t) { return t.Create({.flags = 1}, {t.Eth()}); }},
      {"mlx5.create_flow.flags", EINVAL, [](F& t) { return t.Create({.flags = 4}, {t.Eth()}); },
       "linux-4.16"},
      {"mlx5.create_flow.egress_default", EINVAL,
       [](F& t) { return t.Create({.type = 1, .flags = 4}, {}); }},
      {"mlx5.create_flow.sniffer", EOPNOTSUPP, [](F& t) { return t.Create({.type = 3}, {}); }},
      {"mlx5.create_flow.type", EOPNOTSUPP, [](F& t) { return t.Create({.type = 4}, {}); }},
      {"mlx5.create_flow.ethertype", EINVAL,
       [](F& t) {
         return t.Create({}, {t.Eth({0x86, 0xdd}, {0xff, 0xff}), t.V4()});
       }},
      {"mlx5.create_flow.field", EOPNOTSUPP, [](F& t) { return t.Create({}, {t.V4(0, 0, 1)}); }},
      {"mlx5.create_flow.protocol", EINVAL,
       [](F& t) {
         return t.Create({}, {t.V4(6, 0xff), t.Udp()});
       }},
      {"mlx5.create_flow.esp", EOPNOTSUPP,
       [](F& t) { return t.Create({}, {t.Spec(0x34, Bytes(8), Bytes(8))}); }},
      {"mlx5.create_flow.mpls", EOPNOTSUPP,
       [](F& t) { return t.Create({}, {t.Spec(0x60, Bytes(4), Bytes(4, 1))}); }},
      {"mlx5.create_flow.gre", EOPNOTSUPP,
       [](F& t) {
         return t.Create({}, {t.Spec(0x51, Bytes(8), Concat({{1}, Bytes(7)}))});
       }},
      {"mlx5.create_flow.tag", EINVAL,
       [](F& t) {
         return t.Create({}, {t.Eth(), t.Action(0x1000, 1 << 24)});
       }},
      {"mlx5.create_flow.count_twice", EINVAL,
       [](F& t) {
         const Bytes count = t.Action(0x1003, t.MakeCounters());
         return t.Create({}, {t.Eth(), count, count}, t.Describe(Bytes(8)));
       }},
      {"mlx5.create_flow.value", EINVAL,
       [](F& t) {
         return t.Create({}, {t.Spec(0x30, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, Bytes(12))});
       }},
      {"mlx5.create_flow.conflict", EEXIST,
       [](F& t) {
         EXPECT_EQ(0, t.Create({}, {t.V4()})) << t.LastRule();
         return t.Create({}, {t.V4(), t.Spec(0x1001, {}, {})});
       }},
      {"mlx5.counters.many", EINVAL,
       [](F& t) {
         return t.Create({}, {t.Eth(), t.Action(0x1003, t.MakeCounters())},
                         t.Describe(Bytes(8), 8192));
       }},
      {"mlx5.counters.fault", EFAULT,
       [](F& t) {
         Bytes request = t.Describe(Bytes(8));
         std::memset(request.data() + 8, 0, 8);
         return t.Create({}, {t.Eth(), t.Action(0x1003, t.MakeCounters())}, request);
       }},
      {"mlx5.counters.description", EINVAL,
       [](F& t) {
         return t.Create({}, {t.Eth(), t.Action(0x1003, t.MakeCounters())},
                         t.Describe({2, 0, 0, 0, 0, 0, 0, 0}));
       }},
      {"mlx5.raw_flow.permission", EPERM,
       [](F& t) {
         const uint32_t matcher = t.MakeMatcher();
         t.image().check_permissions = 1, t.image().uid = 1000;
         return Go(t, t.RawFlow(matcher, kThere));
       }},
      {"mlx5.raw_flow.destination", EINVAL,
       [](F& t) {
         Request call = t.RawFlow(t.MakeMatcher(), kThere);
         call.Add(t.Const(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_FLAGS)), 4, 2);
         return Go(t, call);
       }},
      {"mlx5.raw_flow.tag", EINVAL,
       [](F& t) {
         Request call = t.RawFlow(t.MakeMatcher(), kThere);
         call.Add(t.Const(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_TAG)), 4, 1 << 24);
         return Go(t, call);
       }},
      {"mlx5.raw_flow.priority", ENOMEM,
       [](F& t) { return Go(t, t.RawFlow(t.MakeMatcher(1, 16), kThere)); }},
      {"mlx5.raw_flow.type", EOPNOTSUPP,
       [](F& t) {
         Request call = t.Matcher(Bytes(16));
         call.attrs()[2].len = 0;
         call.attrs()[2].elem_id =
             static_cast<uint8_t>(t.Const(VABI_C(MLX5_IB_FLOW_TYPE_ALL_DEFAULT)));
         EXPECT_EQ(0, t.Ioctl(call)) << t.LastRule();
         return Go(t, t.RawFlow(static_cast<uint32_t>(call.attrs()[0].data), Bytes(16)));
       }},
      {"mlx5.matcher.two_types", EINVAL,
       [](F& t) {
         Request call = t.Matcher(Bytes(16));
         call.AddConst(t.Const(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE)), 0);
         call.Add(t.Const(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS)), 4, 0);
         return Go(t, call);
       }},
      {"mlx5.matcher.table_type", EINVAL,
       [](F& t) {
         Request call = t.Matcher(Bytes(16));
         call.AddConst(t.Const(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE)), 99);
         return Go(t, call);
       }},
      {"mlx5.matcher.fdb", EINVAL,
       [](F& t) {
         Request call = t.Matcher(Bytes(16));
         call.AddConst(t.Const(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE)),
                       static_cast<uint64_t>(t.Const(VABI_C(MLX5_IB_UAPI_FLOW_TABLE_TYPE_FDB))));
         return Go(t, call);
       }},
      {"mlx5.matcher.port", EINVAL,
       [](F& t) {
         Request call = t.Matcher(Bytes(16));
         call.Add(t.Const(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_IB_PORT)), 4, 9);
         return Go(t, call);
       }},
      {"mlx5.matcher.port_table", EINVAL,
       [](F& t) {
         Request call = t.Matcher(Bytes(16));
         call.Add(t.Const(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_IB_PORT)), 4, 1);
         return Go(t, call);
       }},
      {"mlx5.matcher.port_capability", EOPNOTSUPP,
       [](F& t) {
         Request call = t.Matcher(Bytes(16));
         call.AddConst(t.Const(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE)),
                       static_cast<uint64_t>(
                           t.Const(VABI_C(MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_TRANSPORT_RX))));
         call.Add(t.Const(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_IB_PORT)), 4, 1);
         return Go(t, call);
       }},
  };
  return *all;
}

TEST(FlowRules, EachRefusesItsOffence) {
  for (const Offence& offence : Offences()) {
    SCOPED_TRACE(offence.rule);
    Flows t(offence.kernel);
    EXPECT_EQ(offence.error, offence.commit(t));
    EXPECT_EQ(offence.rule, t.LastRule());
  }
}

// One world at a time: the next one takes the devices of the last away.
TEST(FlowRules, On50TheLastProtocolCounts) {
  Flows linux_5_0("linux-5.0");
  EXPECT_EQ(0, linux_5_0.Create({}, {Flows::V4(6, 0xff), Flows::Udp()}));
}

TEST(FlowRules, On416NoPrivateRequestIsLookedAt) {
  Flows linux_4_16("linux-4.16");
  EXPECT_EQ(0, linux_4_16.Create({}, {Flows::Eth()}, {2, 0, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace vabi::mlx5
