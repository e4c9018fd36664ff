// SPDX-License-Identifier: BSD-2-Clause
// UD, multicast, and who answers to which address.
#include "shims/fabric/test_endpoint.h"

namespace vabi::fabric {
namespace {

class Datagram : public FabricTest {
 protected:
  void SetUp() override {
    FabricTest::SetUp();
    SetService(Service::kUd);
    b.qp.qkey = 0x1234;
  }
  SendRequest To(const Side& side, std::vector<Sge> sges) {
    SendRequest request = Request(Opcode::kSend, std::move(sges));
    request.address.is_global = 1;
    memcpy(request.address.dgid, side.qp.gid, 16);
    request.remote_qpn = side.qp.qpn;
    request.remote_qkey = 0x1234;
    return request;
  }
};

TEST_F(Datagram, ArrivesBehindFortyBytes) {
  b.qp.Receive(4, {b.At(0, 50), b.At(1000, 100)});
  SendRequest request = To(b, {a.At(0, 64)});
  request.opcode = Opcode::kSendImm;
  request.immediate = 99;
  request.address.traffic_class = 0xa5;
  request.address.flow_label = 0x12345;
  request.address.hop_limit = 63;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  ASSERT_EQ(b.qp.completed.size(), 1u);
  const Completion& got = b.qp.completed[0].completion;
  EXPECT_EQ(got.byte_length, 104u);
  EXPECT_TRUE(got.has_grh);
  EXPECT_EQ(got.network_header, NetworkHeader::kIpv6);
  EXPECT_EQ(got.source_qpn, a.qp.qpn);
  EXPECT_EQ(got.immediate, 99u);
  // IPv6 header (RFC 8200): version 6, class, label; payload length, UDP, hop limit; both
  // addresses.
  const uint8_t head[8] = {0x6a, 0x51, 0x23, 0x45, 0, 96, 17, 63};
  EXPECT_EQ(memcmp(b.memory, head, 8), 0);
  EXPECT_EQ(memcmp(b.memory + 8, a.qp.gid, 16), 0);
  EXPECT_EQ(memcmp(b.memory + 24, b.qp.gid, 16), 0);
  for (uint32_t i = 0; i < 64; ++i) {
    ASSERT_EQ(i < 10 ? b.memory[40 + i] : b.memory[1000 + i - 10], PatternAt(100, i)) << i;
  }
}

TEST_F(Datagram, OverIpv4TheHeaderStandsInTheSecondHalf) {
  auto image = std::make_unique<DeviceImage>();
  image->link = LinkLayer::kEthernet;
  image->port_count = 1;
  image->ports[0].gid_count = 1;
  const uint8_t ours[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
  memcpy(image->ports[0].gids[0].raw, ours, 16);
  image->ports[0].gids[0].type = 2;
  AddDevice(0, *image);
  Connect(a, a);
  a.qp.qkey = 0x1234;
  a.qp.Receive(1, {a.At(0, 100)});
  SendRequest request = To(a, {a.At(500, 4)});
  memcpy(request.address.dgid, ours, 16);
  request.address.hop_limit = 64;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  ASSERT_EQ(a.qp.completed.size(), 1u);
  EXPECT_EQ(a.qp.completed[0].completion.network_header, NetworkHeader::kIpv4);
  const uint8_t zeros[20] = {};
  EXPECT_EQ(memcmp(a.memory, zeros, 20), 0);
  EXPECT_EQ(a.memory[20], 0x45);
  EXPECT_EQ(a.memory[20 + 8], 64);
  EXPECT_EQ(a.memory[20 + 9], 17);
  EXPECT_EQ(memcmp(a.memory + 20 + 12, ours + 12, 4), 0);
  uint32_t sum = 0;  // RFC 791: the header's sum with its checksum is all ones
  for (int i = 0; i < 20; i += 2)
    sum += static_cast<uint32_t>(a.memory[20 + i] << 8 | a.memory[21 + i]);
  EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu);
}

TEST_F(Datagram, WhatDoesNotFitNobodyHearsOf) {
  b.qp.Receive(1, {b.At(0, 200)});
  SendRequest wrong_key = To(b, {a.At(0, 8)});
  wrong_key.remote_qkey = 1;
  EXPECT_EQ(Run(wrong_key).status, Status::kSuccess);
  SendRequest nobody = To(b, {a.At(0, 8)});
  nobody.remote_qpn = 4711;
  EXPECT_EQ(Run(nobody).status, Status::kSuccess);
  SendRequest nowhere = To(b, {a.At(0, 8)});
  nowhere.address.dgid[3] = 1;
  EXPECT_EQ(Run(nowhere).status, Status::kSuccess);
  b.qp.service = Service::kRc;
  EXPECT_EQ(Run(To(b, {a.At(0, 8)})).status, Status::kSuccess);
  b.qp.service = Service::kUd;
  b.qp.state = EndpointState::kInit;
  EXPECT_EQ(Run(To(b, {a.At(0, 8)})).status, Status::kSuccess);
  EXPECT_EQ(b.qp.receives.size(), 1u);
  EXPECT_TRUE(b.qp.completed.empty());
  b.qp.state = EndpointState::kRts;
  EXPECT_EQ(Run(To(b, {a.At(0, 8)})).status, Status::kSuccess);
  EXPECT_EQ(b.qp.completed.size(), 1u);
  EXPECT_EQ(Run(To(b, {a.At(0, 8)})).status, Status::kSuccess) << "no receive left";
  EXPECT_EQ(b.qp.completed.size(), 1u);
}

TEST_F(Datagram, LongerThanTheMtu) {
  EXPECT_EQ(Run(To(b, {a.At(0, 1025)})).status, Status::kLocalLength);
  a.qp.state = EndpointState::kRts;
  a.qp.test_wording.datagram_length =
      Status::kSuccess;  // rxe_req.c, C10-93.1.1: nothing is sent, no error
  b.qp.Receive(1, {b.At(0, 4000)});
  EXPECT_EQ(Run(To(b, {a.At(0, 1025)})).status, Status::kSuccess);
  EXPECT_TRUE(b.qp.completed.empty());
  EXPECT_EQ(Run(To(b, {a.At(0, 1024)})).status, Status::kSuccess);
  EXPECT_EQ(b.qp.completed.size(), 1u);
}

TEST_F(Datagram, TheReceiveNeedsRoomForTheHeaderToo) {
  b.qp.test_wording.ud_short = Wording::Short::kDropped;
  b.qp.Receive(1, {b.At(0, 47)});
  EXPECT_EQ(Run(To(b, {a.At(0, 8)})).status, Status::kSuccess);
  EXPECT_TRUE(b.qp.completed.empty());
  EXPECT_EQ(b.qp.receives.size(), 1u);
  b.qp.receives.clear();
  b.qp.Receive(2, {b.At(0, 48)});
  EXPECT_EQ(Run(To(b, {a.At(0, 8)})).status, Status::kSuccess);
  EXPECT_EQ(b.qp.completed.at(0).wr_id, 2u);
}

TEST_F(Datagram, OnlySends) {
  for (Opcode opcode : {Opcode::kWrite, Opcode::kWriteImm, Opcode::kRead, Opcode::kFetchAdd}) {
    a.qp.state = EndpointState::kRts;
    SendRequest request = To(b, {a.At(0, 8)});
    request.opcode = opcode;
    EXPECT_EQ(Run(request).status, Status::kLocalQpOperation);
  }
}

TEST_F(Datagram, AGroupHearsItAll) {
  const uint8_t group[16] = {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
  a.qp.qkey = 0x1234;
  EXPECT_EQ(AttachMulticast(&a.qp, group), 0);
  EXPECT_EQ(AttachMulticast(&b.qp, group), 0);
  EXPECT_EQ(AttachMulticast(&b.qp, group), 0) << "again is no second membership";
  a.qp.Receive(1, {a.At(100, 100)});
  b.qp.Receive(2, {b.At(0, 100)});
  b.qp.Receive(3, {b.At(0, 100)});
  SendRequest request = To(b, {a.At(0, 8)});
  memcpy(request.address.dgid, group, 16);
  request.remote_qpn = 0xffffff;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  EXPECT_EQ(a.qp.completed.size(), 1u);
  EXPECT_EQ(b.qp.completed.size(), 1u);
  EXPECT_EQ(DetachMulticast(&b.qp, group), 0);
  EXPECT_EQ(DetachMulticast(&b.qp, group), -EINVAL);
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  EXPECT_EQ(b.qp.completed.size(), 1u);
}

TEST_F(Datagram, InfinibandGoesByLid) {
  for (uint32_t device = 0; device < 2; ++device) {
    auto image = std::make_unique<DeviceImage>();
    image->link = LinkLayer::kInfiniband;
    image->port_count = 1;
    image->ports[0].lid = static_cast<uint16_t>(16 + 16 * device);
    image->ports[0].lmc = 2;
    image->ports[0].gid_count = 1;
    image->ports[0].gids[0].raw[15] = static_cast<uint8_t>(device + 1);
    AddDevice(device, *image);
  }
  a.qp.lid = 16;
  b.qp.Receive(1, {b.At(0, 100)});
  SendRequest request = To(b, {a.At(0, 8)});
  request.address = {};
  request.address.dlid = 35;  // path bits 3
  request.address.sl = 2;
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  ASSERT_EQ(b.qp.completed.size(), 1u);
  const Completion& got = b.qp.completed[0].completion;
  EXPECT_FALSE(got.has_grh);
  EXPECT_EQ(got.byte_length, 48u);
  EXPECT_EQ(got.source_lid, 16);
  EXPECT_EQ(got.sl, 2);
  EXPECT_TRUE(Untouched(b, 0, 40)) << "no GRH was sent; its room is left alone";
  request.address.dlid = 36;
  b.qp.Receive(2, {b.At(0, 100)});
  EXPECT_EQ(Run(request).status, Status::kSuccess);
  EXPECT_EQ(b.qp.completed.size(), 1u);
}

TEST_F(Datagram, DevicesWithTheSameAddressAreSearchedFromTheSendersOn) {
  auto image = std::make_unique<DeviceImage>();
  image->link = LinkLayer::kEthernet;
  image->port_count = 1;
  image->ports[0].gid_count = 1;
  image->ports[0].gids[0].raw[15] = 1;
  AddDevice(0, *image);
  AddDevice(1, *image);
  AddressVector address;
  address.dgid[15] = 1;
  EXPECT_EQ(Resolve(a.qp, address, 200), &b.qp);
  EXPECT_EQ(Resolve(a.qp, address, 100), &a.qp);
  Side same;
  Prepare(same, 0, 200);
  EXPECT_EQ(Resolve(a.qp, address, 200), &same.qp);
  EXPECT_EQ(Resolve(b.qp, address, 200), &b.qp);
  RemoveEndpoint(&same.qp);
}

}  // namespace
}  // namespace vabi::fabric
