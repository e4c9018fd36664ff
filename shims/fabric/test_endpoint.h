// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_TEST_ENDPOINT_H_
#define VABI_SHIMS_FABRIC_TEST_ENDPOINT_H_

#include <gtest/gtest.h>
#include <string.h>

#include <deque>
#include <memory>
#include <vector>

#include "shims/fabric/address.h"
#include "shims/fabric/fabric.h"
#include "shims/fabric/memory.h"

// A queue pair for tests: receives in a list, completions kept.

namespace vabi::fabric {

inline uint64_t test_now = 1;

struct Received {
  uint64_t wr_id;
  Completion completion;
};

class TestEndpoint : public Endpoint {
 public:
  TestEndpoint() { wording = &test_wording; }

  bool PopReceive(RecvRequest* out) override {
    if (receives.empty()) return false;
    *out = receives.front();
    if (out->sge_count != kMalformed) receives.pop_front();
    return true;
  }
  void ReturnReceive(const RecvRequest& request) override { receives.push_front(request); }
  void CompleteReceive(const RecvRequest& request, const Completion& completion) override {
    completed.push_back({request.wr_id, completion});
    if (overrun) state = EndpointState::kErr;
  }
  void EnterError() override { ++errors; }
  void Report(Event event) override { events.push_back(event); }

  void Receive(uint64_t wr_id, std::vector<Sge> sges) {
    RecvRequest request;
    request.wr_id = wr_id;
    request.sge_count = static_cast<uint32_t>(sges.size());
    std::copy(sges.begin(), sges.end(), request.sges);
    receives.push_back(request);
  }

  Wording test_wording;
  std::deque<RecvRequest> receives;
  std::vector<Received> completed;
  std::vector<Event> events;
  int errors = 0;
  bool overrun = false;
};

// A byte that says where it stands.
inline uint8_t PatternAt(uint64_t seed, uint64_t position) {
  const uint64_t mixed = (seed * 0x9e3779b97f4a7c15ULL + position) * 0xbf58476d1ce4e5b9ULL;
  return static_cast<uint8_t>(mixed >> 56);
}

// Two queue pairs on two devices, each with a region of 64 KiB, connected to each other.
class FabricTest : public testing::Test {
 protected:
  static constexpr uint32_t kSize = 65536;
  static constexpr uint32_t kAll =
      kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteRead | kAccessRemoteAtomic;

  struct Side {
    TestEndpoint qp;
    std::vector<uint8_t> bytes = std::vector<uint8_t>(kSize + 8);
    uint8_t* memory = nullptr;
    uint32_t key = 0;
    uint64_t address() const { return reinterpret_cast<uintptr_t>(memory); }
    Sge At(uint32_t offset, uint32_t length) const { return {address() + offset, length, key}; }
  };

  void SetUp() override {
    ForgetAll();
    test_now = 1;
    SetClock([] { return test_now; });
    for (uint32_t device = 0; device < 2; ++device) {
      auto image = std::make_unique<DeviceImage>();
      image->link = LinkLayer::kEthernet;
      image->port_count = 1;
      image->ports[0].gid_count = 1;
      image->ports[0].gids[0].raw[0] = 0xfe;
      image->ports[0].gids[0].raw[15] = static_cast<uint8_t>(device + 1);
      image->ports[0].gids[0].type = 2;
      AddDevice(device, *image);
    }
    Prepare(a, 0, 100);
    Prepare(b, 1, 200);
    Connect(a, b);
    Connect(b, a);
  }
  void TearDown() override {
    SetClock(nullptr);
    ForgetAll();
  }

  static void Prepare(Side& side, uint32_t device, uint32_t qpn) {
    side.memory = side.bytes.data() + (-reinterpret_cast<uintptr_t>(side.bytes.data()) & 7);
    for (uint32_t i = 0; i < kSize; ++i) side.memory[i] = PatternAt(qpn, i);
    side.key = 0x1000 + qpn;
    side.qp.device = device;
    side.qp.qpn = qpn;
    side.qp.pd = 7;
    side.qp.access = kAll;
    side.qp.mtu = 1024;
    side.qp.gid[0] = 0xfe;
    side.qp.gid[15] = static_cast<uint8_t>(device + 1);
    side.qp.state = EndpointState::kRts;
    MemoryKey key = {};
    key.base = key.iova = side.address();
    key.length = kSize;
    key.access = kAll;
    key.pd = side.qp.pd;
    AddKey(device, side.key, key);
    AddEndpoint(&side.qp);
  }
  static void Connect(Side& from, const Side& to) {
    from.qp.dest_qpn = to.qp.qpn;
    from.qp.address.is_global = 1;
    memcpy(from.qp.address.dgid, to.qp.gid, 16);
  }
  void SetService(Service service) { a.qp.service = b.qp.service = service; }

  static SendRequest Request(Opcode opcode, std::vector<Sge> sges) {
    SendRequest request;
    request.opcode = opcode;
    request.sge_count = static_cast<uint32_t>(sges.size());
    std::copy(sges.begin(), sges.end(), request.sges);
    return request;
  }
  SendRequest Remote(Opcode opcode, std::vector<Sge> sges, uint32_t offset) {
    SendRequest request = Request(opcode, std::move(sges));
    request.remote_address = b.address() + offset;
    request.rkey = b.key;
    return request;
  }
  // Runs the request until it is done, the clock jumping to each retry; at most 1000 times.
  Completion Run(const SendRequest& request) { return RunOn(a, request); }
  Completion RunOn(Side& side, const SendRequest& request) {
    Completion completion;
    attempts = 0;
    while (Execute(side.qp, request, attempts, &completion) == Outcome::kRetry) {
      ++attempts;
      if (side.qp.retry_at_ns != 0) test_now = side.qp.retry_at_ns;
      if (attempts > 1000) {
        ADD_FAILURE() << "still retrying after 1000 attempts";
        break;
      }
    }
    return completion;
  }
  // True when b's bytes [offset, offset + length) are still what they were.
  bool Untouched(const Side& side, uint32_t offset, uint32_t length) {
    for (uint32_t i = 0; i < length; ++i) {
      if (side.memory[offset + i] != PatternAt(side.qp.qpn, offset + i)) return false;
    }
    return true;
  }

 public:
  Side a, b;

 protected:
  uint32_t attempts = 0;
};

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_TEST_ENDPOINT_H_
