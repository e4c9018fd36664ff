// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_RDMA_CM_TEST_RDMA_CM_H_
#define VABI_SHIMS_RDMA_CM_TEST_RDMA_CM_H_

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/world/test_world.h"
#include "shims/rdma_cm/cm_file.h"
#include "shims/trace/trace.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/test_calls.h"
#include "shims/uverbs/test_driver.h"
#include "shims/uverbs/test_fd_table.h"

namespace vabi::rdma_cm {

// Two RoCE ports of rxe, 10.0.0.1 and 10.0.0.2, and two open files; or as many of mlx5, which are
// InfiniBand ports with the LIDs 1 and 2, GIDs fe80::200:c0ff:fe00:100 and …:200, and IPoIB.
class CmFixture {
 public:
  explicit CmFixture(const char* kernel = "debian-7.3.4", const char* provider = "rxe")
      : image_(std::make_unique<WorldImage>(Pristine(kernel, provider))),
        world_(image_.get()),
        trace_path_(testing::TempDir() + "/rdma_cm_test." + std::to_string(getpid())) {
    TestDriver::script() = {};
    SetDriverForTest(DriverId::rxe, &TestDriver::Make);
    SetDriverForTest(DriverId::mlx5, &TestDriver::Make);
    if (!InstallWorld(world_)) ADD_FAILURE();
    unlink(trace_path_.c_str());
    trace::Open(trace_path_.c_str());
    for (int i = 0; i < 2; ++i) {
      fds_[i] = eventfd(0, EFD_NONBLOCK);
      files_[i] = std::make_shared<CmFile>(world_, nullptr);
      FdTable::Install(fds_[i], files_[i]);
      files_[i]->set_backing_fd(fds_[i]);
    }
  }
  ~CmFixture() {
    for (int i = 0; i < 2; ++i) {
      files_[i].reset();
      FdTable::Remove(fds_[i]);
      close(fds_[i]);
    }
    trace::Open("");
    unlink(trace_path_.c_str());
  }

  WorldImage& image() { return *image_; }
  std::string LastRule() const { return LastRuleIn(trace_path_); }
  int fd(int i) const { return fds_[i]; }
  CmFile& file(int i = 0) { return *files_[i]; }
  // Which of the two files the next commands go to.
  int use = 0;

  // A request: numbers of 1, 2, 4 or 8 bytes one behind the other, or bytes at an offset.
  class Body {
   public:
    explicit Body(size_t size) : bytes(size) {}
    // struct sockaddr_ib
    Body& Gid(size_t at, const char* text, uint64_t service = 0, uint64_t mask = ~0ULL) {
      At<uint16_t>(at, 27);
      At<uint16_t>(at + 2, 0xffff);
      EXPECT_EQ(1, Parse(true, text, bytes.data() + at + 8));
      At<uint64_t>(at + 24, __builtin_bswap64(service));
      return At<uint64_t>(at + 32, __builtin_bswap64(mask));
    }
    template <typename Type>
    Body& At(size_t at, Type value) {
      std::memcpy(bytes.data() + at, &value, sizeof(value));
      return *this;
    }
    Body& Ip(size_t at, const char* text, uint16_t port = 0, uint32_t scope = 0) {
      const bool six = std::strchr(text, ':') != nullptr;
      At<uint16_t>(at, six ? AF_INET6 : AF_INET);
      At<uint16_t>(at + 2, htons(port));
      if (six) At<uint32_t>(at + 24, scope);
      EXPECT_EQ(1, Parse(six, text, bytes.data() + at + (six ? 8 : 4)));
      return *this;
    }
    Bytes bytes;

   private:
    static int Parse(bool six, const char* text, void* to);
  };
  long Command(uint32_t command, const Body& body, uint16_t out = 0) {
    return Command(command, body, out, static_cast<uint16_t>(body.bytes.size()));
  }
  long Command(uint32_t command, const Body& body, uint16_t out, uint16_t in) {
    Bytes all(8);
    std::memcpy(all.data(), &command, 4);
    std::memcpy(all.data() + 4, &in, 2);
    std::memcpy(all.data() + 6, &out, 2);
    all.insert(all.end(), body.bytes.begin(), body.bytes.end());
    const long result = file(use).Write(all.data(), all.size());
    return result == static_cast<long>(all.size()) ? 0 : result;
  }
  template <typename Type>
  static uint64_t Address(Type* to) {
    return reinterpret_cast<uintptr_t>(to);
  }

  static constexpr uint16_t kTcp = 0x0106, kUdp = 0x0111;
  uint32_t reply = ~0U;
  long Create(uint16_t port_space = kTcp, uint64_t uid = 0x1111, uint16_t out = 4) {
    return Command(
        0,
        Body(24).At<uint64_t>(0, uid).At<uint64_t>(8, Address(&reply)).At<uint16_t>(16, port_space),
        out);
  }
  uint32_t Made(uint16_t port_space = kTcp, uint64_t uid = 0x1111) {
    EXPECT_EQ(0, Create(port_space, uid));
    return reply;
  }
  long Destroy(uint32_t id) {
    return Command(1, Body(16).At<uint64_t>(0, Address(&reply)).At<uint32_t>(8, id), 4);
  }
  long Bind(uint32_t id, const char* ip, uint16_t port = 0, uint32_t scope = 0) {
    const uint16_t size = std::strchr(ip, ':') != nullptr ? 28 : 16;
    return Command(20, Body(136).At<uint32_t>(0, id).At<uint16_t>(4, size).Ip(8, ip, port, scope));
  }
  long BindGid(uint32_t id, const char* gid, uint64_t service = 0, uint64_t mask = ~0ULL) {
    return Command(20,
                   Body(136).At<uint32_t>(0, id).At<uint16_t>(4, 48).Gid(8, gid, service, mask));
  }
  long ResolveGid(uint32_t id, const char* gid, uint64_t service) {
    return Command(21, Body(272).At<uint32_t>(0, id).At<uint32_t>(4, 2000).At<uint16_t>(10, 48).Gid(
                           16 + 128, gid, service));
  }
  long Resolve(uint32_t id, const char* ip, uint16_t port = 0, uint32_t scope = 0) {
    const uint16_t size = std::strchr(ip, ':') != nullptr ? 28 : 16;
    return Command(21,
                   Body(272).At<uint32_t>(0, id).At<uint32_t>(4, 2000).At<uint16_t>(10, size).Ip(
                       16 + 128, ip, port, scope));
  }
  long Route(uint32_t id, uint32_t timeout = 2000) {
    return Command(4, Body(8).At<uint32_t>(0, id).At<uint32_t>(4, timeout));
  }
  long Listen(uint32_t id, uint32_t backlog = 1) {
    return Command(7, Body(8).At<uint32_t>(0, id).At<uint32_t>(4, backlog));
  }
  // With recognizable numbers.
  static Body Parameters(Body body, size_t at, uint8_t length = 0) {
    body.At<uint32_t>(at, 0x1234);
    body.At<uint8_t>(at + 264, length);
    body.At<uint8_t>(at + 266, 5);  // responder resources
    body.At<uint8_t>(at + 267, 3);  // initiator depth
    body.At<uint8_t>(at + 269, 6);  // retries
    body.At<uint8_t>(at + 270, 7);
    body.At<uint8_t>(at + 271, 1);  // valid
    for (uint8_t i = 0; i < length; ++i) body.At<uint8_t>(at + 8 + i, static_cast<uint8_t>(i + 1));
    return body;
  }
  long Connect(uint32_t id, uint8_t length = 0) {
    return Command(6, Parameters(Body(288).At<uint32_t>(272, id), 0, length));
  }
  long Accept(uint32_t id, uint8_t length = 0, uint64_t uid = 0x2222) {
    return Command(8, Parameters(Body(296).At<uint64_t>(0, uid).At<uint32_t>(280, id), 8, length));
  }
  // The last step of the connecting side.
  long Establish(uint32_t id) { return Command(8, Body(296).At<uint32_t>(280, id)); }
  // The other file takes the request of the first one's `active`, which ends the connecting. What
  // comes next comes to the other file. Returns its identifier.
  uint32_t AcceptOf(uint32_t active) {
    use = 1;
    const uint32_t passive = Next().id;
    EXPECT_EQ(0, Accept(passive));
    use = 0;
    EXPECT_EQ(5U, Next().event) << "RDMA_CM_EVENT_CONNECT_RESPONSE";
    EXPECT_EQ(0, Establish(active));
    use = 1;
    return passive;
  }
  long Disconnect(uint32_t id) { return Command(10, Body(4).At<uint32_t>(0, id)); }
  long Reject(uint32_t id, uint8_t length = 0, uint8_t reason = 0) {
    return Command(9, Body(264).At<uint32_t>(0, id).At<uint8_t>(4, length).At<uint8_t>(5, reason));
  }
  Bytes attributes = Bytes(144);
  long QpAttributes(uint32_t id, uint32_t state, uint16_t out = 144) {
    return Command(11,
                   Body(16)
                       .At<uint64_t>(0, Address(attributes.data()))
                       .At<uint32_t>(8, id)
                       .At<uint32_t>(12, state),
                   out);
  }
  long Option(uint32_t id, uint32_t level, uint32_t name, const void* value, uint32_t size) {
    return Command(14, Body(24)
                           .At<uint64_t>(0, reinterpret_cast<uintptr_t>(value))
                           .At<uint32_t>(8, id)
                           .At<uint32_t>(12, level)
                           .At<uint32_t>(16, name)
                           .At<uint32_t>(20, size));
  }
  Bytes answer = Bytes(336);
  long Query(uint32_t command, uint32_t id, uint32_t option, uint16_t out) {
    std::fill(answer.begin(), answer.end(), 0xee);
    return Command(command,
                   Body(16)
                       .At<uint64_t>(0, Address(answer.data()))
                       .At<uint32_t>(8, id)
                       .At<uint32_t>(12, option),
                   out);
  }

  struct Seen {
    long result = 0;
    uint64_t uid = 0;
    uint32_t id = 0, event = ~0U;
    int32_t status = 0;
    Bytes bytes;
  };
  Seen Next(uint16_t out = 336) {
    Seen seen;
    seen.bytes = Bytes(336, 0xee);
    seen.result = Command(12, Body(8).At<uint64_t>(0, Address(seen.bytes.data())), out);
    if (seen.result != 0) return seen;
    std::memcpy(&seen.uid, seen.bytes.data(), 8);
    std::memcpy(&seen.id, seen.bytes.data() + 8, 4);
    std::memcpy(&seen.event, seen.bytes.data() + 12, 4);
    std::memcpy(&seen.status, seen.bytes.data() + 16, 4);
    return seen;
  }

  long JoinGroup(uint32_t id, const char* ip, uint16_t flags = 0) {
    const uint16_t size = std::strchr(ip, ':') != nullptr ? 28 : 16;
    return Command(22,
                   Body(152)
                       .At<uint64_t>(0, Address(&reply))
                       .At<uint64_t>(8, 0x5555)
                       .At<uint32_t>(16, id)
                       .At<uint16_t>(20, size)
                       .At<uint16_t>(22, flags)
                       .Ip(24, ip),
                   4);
  }
  // A descriptor that stands for another kind of file.
  long MigrateFromOther() {
    class Other : public File {
     public:
      const char* Name() const override { return "another"; }
    };
    const int other = eventfd(0, 0);
    FdTable::Install(other, std::make_shared<Other>());
    const long result = Command(
        18, Body(16).At<uint32_t>(8, Made()).At<uint32_t>(12, static_cast<uint32_t>(other)), 4);
    FdTable::Remove(other);
    close(other);
    return result;
  }
  // A header alone, right before memory that cannot be read.
  long Fault() {
    auto* pages = static_cast<uint8_t*>(
        mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(pages + 4096, 4096, PROT_NONE);
    const uint32_t header[2] = {7, 0};  // LISTEN, which reads 8 bytes whatever the header says
    std::memcpy(pages + 4096 - 8, header, 8);
    const long result = file(use).Write(pages + 4096 - 8, 8);
    munmap(pages, 8192);
    return result;
  }
  void WaitForEvent() {
    struct pollfd wait = {fds_[use], POLLIN, 0};
    EXPECT_EQ(1, poll(&wait, 1, 5000));
  }

  // A listener at 10.0.0.1:7000 (file 1), and an identifier that has resolved its way there.
  uint32_t Listener(uint16_t port_space = kTcp) {
    use = 1;
    const uint32_t id = Made(port_space, 0x3333);
    EXPECT_EQ(0, Bind(id, "10.0.0.1", 7000));
    EXPECT_EQ(0, Listen(id));
    use = 0;
    return id;
  }
  uint32_t Ready(uint16_t port_space = kTcp) {
    const uint32_t id = Made(port_space);
    EXPECT_EQ(0, Resolve(id, "10.0.0.1", 7000));
    EXPECT_EQ(0U, Next().event);
    EXPECT_EQ(0, Route(id));
    EXPECT_EQ(2U, Next().event);
    return id;
  }

 private:
  static const WorldImage& Pristine(const std::string& kernel, const char* provider) {
    static auto* worlds = new std::map<std::string, std::unique_ptr<TestWorld>>;
    std::unique_ptr<TestWorld>& world = (*worlds)[kernel + provider];
    if (!world) {
      world = std::make_unique<TestWorld>(kernel,
                                          std::initializer_list<const char*>{provider, provider});
    }
    return world->image();
  }
  std::unique_ptr<WorldImage> image_;
  World world_;
  std::string trace_path_;
  std::shared_ptr<CmFile> files_[2];
  int fds_[2] = {-1, -1};
};

}  // namespace vabi::rdma_cm

#endif  // VABI_SHIMS_RDMA_CM_TEST_RDMA_CM_H_
