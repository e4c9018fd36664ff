// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UMAD_TEST_UMAD_H_
#define VABI_SHIMS_UMAD_TEST_UMAD_H_

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/world/test_world.h"
#include "shims/trace/trace.h"
#include "shims/umad/umad_file.h"
#include "shims/uverbs/test_calls.h"
#include "shims/uverbs/test_driver.h"

namespace vabi::umad {

// Two InfiniBand ports of mlx5 (LIDs 1 and 2) and one of rxe, and an open umad of the first.
class UmadFixture {
 public:
  explicit UmadFixture(const char* kernel = "debian-7.3.4")
      : world_(kernel, {"mlx5", "mlx5", "rxe"}),
        trace_path_(testing::TempDir() + "/umad_test." + std::to_string(getpid())) {
    TestDriver::script() = {};
    SetDriverForTest(DriverId::mlx5, &TestDriver::Make);
    SetDriverForTest(DriverId::rxe, &TestDriver::Make);
    if (!InstallWorld(world_.world())) ADD_FAILURE();
    unlink(trace_path_.c_str());
    trace::Open(trace_path_.c_str());
    fd_ = eventfd(0, 0);
    Use(0);
  }
  ~UmadFixture() {
    file_.reset();
    trace::Open("");
    unlink(trace_path_.c_str());
    close(fd_);
  }

  // Opens the node of another device.
  void Use(uint32_t device) {
    file_ = std::make_shared<UmadFile>(*FindDevice(device), 1, nullptr);
    file_->set_backing_fd(fd_);
  }
  UmadFile& file() { return *file_; }
  WorldImage& image() { return world_.image(); }
  std::string LastRule() const { return LastRuleIn(trace_path_); }
  std::string LastUnmodelled() const {
    std::string said;
    std::ifstream in(trace_path_);
    for (std::string line; std::getline(in, line);)
      said = nlohmann::json::parse(line).value("unmodelled", "");
    return said;
  }

  // struct ib_user_mad_reg_req (28 bytes) and ib_user_mad_reg_req2 (40 bytes) on x86_64
  struct Request {
    uint32_t id = ~0U;
    uint64_t methods[2] = {};
    uint8_t qpn = 1, mgmt_class = 0, version = 1, oui[3] = {}, rmpp = 0;
  };
  long RegisterAgent(Request& request) {
    uint8_t bytes[28] = {};
    std::memcpy(bytes, &request.id, 4);
    std::memcpy(bytes + 4, request.methods, 16);
    bytes[20] = request.qpn;
    bytes[21] = request.mgmt_class;
    bytes[22] = request.version;
    std::memcpy(bytes + 23, request.oui, 3);
    bytes[26] = request.rmpp;
    const long result = file_->Ioctl(0xc01c1b01, bytes);
    std::memcpy(&request.id, bytes, 4);
    return result;
  }
  long RegisterAgent(uint8_t qpn, uint8_t mgmt_class = 0, uint8_t rmpp = 0) {
    Request request;
    request.qpn = qpn;
    request.mgmt_class = mgmt_class;
    request.rmpp = rmpp;
    return RegisterAgent(request);
  }
  struct Request2 {
    uint32_t id = ~0U, qpn = 1;
    uint8_t mgmt_class = 0, version = 1;
    uint16_t reserved = 0;
    uint32_t flags = 0;
    uint64_t methods[2] = {};
    uint32_t oui = 0;
    uint8_t rmpp = 0, end[3] = {};
  };
  long RegisterAgent2(Request2& request) { return file_->Ioctl(0xc0281b04, &request); }
  long EnablePkey() { return file_->Ioctl(0x1b03, nullptr); }
  long Unregister(uint32_t id) { return file_->Ioctl(0x40041b02, &id); }

  // The bytes of a write(): the header of 64 bytes that P_Key support brings, and a MAD.
  struct Message {
    Message(uint8_t mgmt_class, uint8_t method, uint16_t attribute, uint32_t modifier = 0)
        : bytes(64 + 256) {
      uint8_t* mad = bytes.data() + 64;
      mad[0] = 1;
      mad[1] = mgmt_class;
      mad[2] = 1;
      mad[3] = method;
      mad[15] = 0x42;  // transaction
      mad[17] = static_cast<uint8_t>(attribute);
      mad[16] = static_cast<uint8_t>(attribute >> 8);
      mad[23] = static_cast<uint8_t>(modifier);
      bytes[8] = 100;  // timeout_ms
      if (mgmt_class == 0x81) std::memset(mad + 32, 0xff, 4);
    }
    Message& To(uint16_t lid, uint8_t qpn) {
      bytes[28] = static_cast<uint8_t>(lid >> 8);
      bytes[29] = static_cast<uint8_t>(lid);
      bytes[23] = qpn;
      return *this;
    }
    uint8_t& mad(size_t at) { return bytes[64 + at]; }
    Bytes bytes;
  };
  long Send(const Bytes& bytes) { return file_->Write(bytes.data(), bytes.size()); }
  long Send(const Message& message) { return Send(message.bytes); }
  // What comes to a question.
  Bytes Ask(const Message& message) {
    EXPECT_EQ(320, Send(message));
    return Receive();
  }
  // The next MAD, with its header; empty: none comes.
  Bytes Receive() {
    Bytes bytes(64 + 256);
    struct pollfd wait = {fd_, POLLIN, 0};
    if (poll(&wait, 1, 2000) != 1) return {};
    const long result = file_->Read(bytes.data(), bytes.size(), true);
    bytes.resize(result < 0 ? 0 : static_cast<size_t>(result));
    return bytes;
  }
  // With P_Key support and agents 0 (QP0) and 1 (QP1).
  void Start() {
    EXPECT_EQ(0, EnablePkey());
    EXPECT_EQ(0, RegisterAgent(0));
    EXPECT_EQ(0, RegisterAgent(1));
  }
  int fd() const { return fd_; }

 private:
  TestWorld world_;
  std::string trace_path_;
  std::shared_ptr<UmadFile> file_;
  int fd_ = -1;
};

}  // namespace vabi::umad

#endif  // VABI_SHIMS_UMAD_TEST_UMAD_H_
