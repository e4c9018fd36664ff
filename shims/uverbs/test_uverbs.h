// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_TEST_UVERBS_H_
#define VABI_SHIMS_UVERBS_TEST_UVERBS_H_

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/world/test_world.h"
#include "shims/trace/trace.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/test_calls.h"
#include "shims/uverbs/test_driver.h"
#include "shims/uverbs/test_fd_table.h"
#include "shims/uverbs/uverbs_file.h"

// One device with the test driver, one open file, and the three ways in as a program uses them.

namespace vabi {

// A request or reply by this kernel's layout, on the heap.
class Struct : public Body {
 public:
  Struct(const World& world, StructId id, size_t tail = 0)
      : Struct(world, std::make_shared<Bytes>(world.Size(id) + tail)) {}
  Bytes& bytes() { return *bytes_; }
  Struct& With(FieldId field, uint64_t value) {
    Set(field, value);
    return *this;
  }

 private:
  Struct(const World& world, std::shared_ptr<Bytes> bytes)
      : Body(world, bytes->data(), bytes->size()), bytes_(std::move(bytes)) {}
  std::shared_ptr<Bytes> bytes_;
};

class UverbsTest : public testing::Test {
 protected:
  explicit UverbsTest(const char* kernel = "debian-7.3.4")
      : image_(std::make_unique<WorldImage>(Pristine(kernel))),
        world_(image_.get()),
        trace_path_(testing::TempDir() + "/uverbs_test." + std::to_string(getpid())) {
    TestDriver::script() = {};
    SetDriverForTest(DriverId::rxe, &TestDriver::Make);
    // The test driver has everything that the kernel's core can do.
    for (auto& served : image().op_served[Index(DriverId::rxe)]) served = 1;
    Reinstall();
  }
  ~UverbsTest() override {
    file_.reset();
    fds_.Close();
    trace::Open("");
    unlink(trace_path_.c_str());
  }
  // After a change of the world or of the driver's script.
  void Reinstall() {
    file_.reset();
    fds_.Close();
    ASSERT_TRUE(InstallWorld(world_));
    unlink(trace_path_.c_str());
    trace::Open(trace_path_.c_str());
    file_ = std::make_shared<UverbsFile>(*FindDevice(0));
  }

  const World& world() const { return world_; }
  WorldImage& image() { return *image_; }
  int64_t C(ConstId id) const { return world().Flag(id); }
  UverbsFile& file() { return *file_; }
  Device& device() { return *FindDevice(0); }
  static TestDriver::Script& script() { return TestDriver::script(); }

  // write() of a legacy command. Request and reply are the core's; the driver's parts follow.
  long Write(uint32_t command, Struct request, Bytes* reply = nullptr, Bytes driver_in = {}) {
    return SendWrite(file(), LegacyCommand(command, request.bytes(), reply, driver_in));
  }
  // Extended write(); both bodies are filled up to whole words of 8 bytes.
  long WriteEx(uint32_t command, Bytes request, Bytes* reply = nullptr, Bytes driver_in = {},
               uint16_t driver_out_words = 0) {
    return SendWrite(
        file(), ExtendedCommand(command, request, reply, driver_in, driver_out_words * size_t{8}));
  }
  Request New(ConstId object, ConstId method) {
    return Request(static_cast<uint16_t>(C(object)), static_cast<uint16_t>(C(method)),
                   device().image().driver_id);
  }
  long Ioctl(Request& request, unsigned long number = kVerbsIoctl) {
    return SendIoctl(file(), request, number);
  }
  // DEVICE.INVOKE_WRITE
  long Invoke(uint32_t command, const Bytes& request, Bytes* reply = nullptr) {
    Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_INVOKE_WRITE));
    call.AddConst(C(VABI_C(UVERBS_ATTR_WRITE_CMD)), command);
    if (!request.empty()) call.AddIn(C(VABI_C(UVERBS_ATTR_CORE_IN)), request);
    if (reply != nullptr) call.AddOut(C(VABI_C(UVERBS_ATTR_CORE_OUT)), *reply);
    return Ioctl(call);
  }

  Struct S(StructId id, size_t tail = 0) const { return Struct(world(), id, tail); }
  uint32_t U32(const Bytes& bytes, FieldId field) const {
    return Body(world(), const_cast<uint8_t*>(bytes.data()), bytes.size()).U32(field);
  }

  void OpenContext() {
    Request call = New(VABI_C(UVERBS_OBJECT_DEVICE), VABI_C(UVERBS_METHOD_GET_CONTEXT));
    ASSERT_EQ(0, Ioctl(call));
  }
  uint32_t AllocPd() {
    Bytes reply(4);
    EXPECT_GT(Write(3, S(VABI_S(ib_uverbs_alloc_pd)), &reply), 0);
    return U32(reply, VABI_F(ib_uverbs_alloc_pd_resp, pd_handle));
  }
  Struct CqRequest() const {
    return S(VABI_S(ib_uverbs_create_cq))
        .With(VABI_F(ib_uverbs_create_cq, cqe), 16)
        .With(VABI_F(ib_uverbs_create_cq, user_handle), 0x1234)
        .With(VABI_F(ib_uverbs_create_cq, comp_channel), static_cast<uint32_t>(-1));
  }
  uint32_t CreateCq() {
    Bytes reply(8);
    EXPECT_GT(Write(18, CqRequest(), &reply), 0);
    return U32(reply, VABI_F(ib_uverbs_create_cq_resp, cq_handle));
  }
  Struct QpRequest(uint32_t pd, uint32_t cq, uint8_t type = 2) const {
    return S(VABI_S(ib_uverbs_create_qp))
        .With(VABI_F(ib_uverbs_create_qp, pd_handle), pd)
        .With(VABI_F(ib_uverbs_create_qp, send_cq_handle), cq)
        .With(VABI_F(ib_uverbs_create_qp, recv_cq_handle), cq)
        .With(VABI_F(ib_uverbs_create_qp, max_send_wr), 8)
        .With(VABI_F(ib_uverbs_create_qp, qp_type), type);
  }
  uint32_t CreateQp(uint32_t pd, uint32_t cq, uint8_t type = 2) {
    Bytes reply(32);
    EXPECT_GT(Write(24, QpRequest(pd, cq, type), &reply), 0);
    return U32(reply, VABI_F(ib_uverbs_create_qp_resp, qp_handle));
  }
  int CreateChannel() {
    Bytes reply(4);
    EXPECT_GT(Write(17, S(VABI_S(ib_uverbs_create_comp_channel)), &reply), 0);
    const int fd = static_cast<int>(U32(reply, VABI_F(ib_uverbs_create_comp_channel_resp, fd)));
    fds_.push_back(fd);
    return fd;
  }
  long DestroyPd(uint32_t pd) {
    return Write(4,
                 S(VABI_S(ib_uverbs_dealloc_pd)).With(VABI_F(ib_uverbs_dealloc_pd, pd_handle), pd));
  }

  // The trace so far, and its last line.
  std::vector<nlohmann::json> Trace() {
    std::vector<nlohmann::json> lines;
    std::ifstream in(trace_path_);
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  nlohmann::json Last() {
    auto lines = Trace();
    return lines.empty() ? nlohmann::json::object() : lines.back();
  }
  std::string LastRule() { return Last().value("rule", ""); }

  // Compiling a world takes longer than most tests; each kernel is compiled once.
  static const WorldImage& Pristine(const std::string& kernel) {
    static auto* worlds = new std::map<std::string, std::unique_ptr<TestWorld>>;
    std::unique_ptr<TestWorld>& world = (*worlds)[kernel];
    if (!world)
      world = std::make_unique<TestWorld>(kernel, std::initializer_list<const char*>{"rxe"});
    return world->image();
  }

  std::unique_ptr<WorldImage> image_;
  World world_;
  std::string trace_path_;
  std::shared_ptr<UverbsFile> file_;
  OpenedFds fds_;
};

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_TEST_UVERBS_H_
