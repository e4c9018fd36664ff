// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_TEST_REMOTE_H_
#define VABI_SHIMS_FABRIC_TEST_REMOTE_H_

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "shims/fabric/flow.h"
#include "shims/fabric/nic.h"
#include "shims/fabric/remote.h"
#include "shims/fabric/test_endpoint.h"
#include "shims/sys/sys.h"

// A queue pair here, connected to one in a process of its own. Neither has a thread: this side
// steps the NIC while it waits, the other one in a loop. What the other side has is in memory that
// both see.

namespace vabi::fabric {

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/fabric-test-XXXXXX";
    if (mkdtemp(name) != nullptr) path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::string path_;
};

// Two Ethernet devices, each with one port and one GID, ending in the device's number + 1.
inline std::unique_ptr<WorldImage> TestWorld(const std::string& folder) {
  auto image = std::make_unique<WorldImage>();
  image->device_count = 2;
  for (uint8_t i = 0; i < 2; ++i) {
    DeviceImage& device = image->device[i];
    device.link = LinkLayer::kEthernet;
    device.port_count = 1;
    device.ports[0].gid_count = 1;
    device.ports[0].gids[0].raw[0] = 0xfe;
    device.ports[0].gids[0].raw[15] = static_cast<uint8_t>(i + 1);
    device.ports[0].gids[0].type = 2;
  }
  snprintf(image->run_dir, sizeof(image->run_dir), "%s", folder.c_str());
  return image;
}

class RemoteTest : public testing::Test {
 protected:
  static constexpr uint32_t kSize = 1 << 20;
  static constexpr uint32_t kKey = 0x1234;
  static constexpr uint32_t kAll = kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteRead |
                                   kAccessRemoteAtomic | kAccessMwBind;

  struct Endpoint2 : TestEndpoint {
    void Answered(const Completion& completion) override { answers.push_back(completion); }
    void Resume() override { ++resumed; }
    void Aim(uint32_t srq) override { aimed = srq; }
    uint32_t flow_tries() const { return flow == nullptr ? 0 : flow->silent_tries; }
    std::vector<Completion> answers;
    int resumed = 0;
    uint32_t aimed = 0;
  };

  // What both processes see.
  struct Seen {
    volatile uint32_t qpn;       // of the other side, once it is there
    volatile uint32_t command;   // this side asks: see Other
    volatile uint32_t done;      // commands carried out
    volatile uint32_t receives;  // completions there so far
    volatile uint32_t events, state, aimed;
    volatile uint64_t where;   // this side's bytes
    volatile uint32_t length;  // for kSendBack
    struct {
      volatile uint64_t wr_id;
      volatile Status status;
      volatile uint32_t byte_length, immediate, source_qpn, source_lid;
      volatile bool has_grh;
    } received[4096];
    alignas(4096) uint8_t bytes[kSize];
  };

  void SetUp() override {
    image = TestWorld(folder.path());
    void* shared =
        mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    seen = static_cast<Seen*>(shared);
    ForgetAll();
    UseThread(false);
  }
  void TearDown() override {
    End();
    {
      std::lock_guard lock(Lock());
      if (own.qpn != 0) RemoveEndpoint(&own);
    }
    Unattend();
    UseWorld(nullptr);
    ForbidPullingIn(false);
    ForgetAll();
    munmap(seen, sizeof(Seen));
    EXPECT_TRUE(folder.empty()) << "something was left in the run folder";
  }

  static void Prepare(Endpoint2& qp, Service service, uint32_t device, uint32_t pd,
                      uint8_t* bytes) {
    AddDevice(0, *WorldDevice(0));
    AddDevice(1, *WorldDevice(1));
    qp.device = device;
    qp.qpn = ReserveQpn(device);
    qp.service = service;
    qp.pd = pd;
    qp.access = kAll;
    qp.mtu = 1024;
    qp.gid[0] = 0xfe;
    qp.gid[15] = static_cast<uint8_t>(device + 1);
    qp.timeout = 1;  // 8 us
    qp.min_rnr_timer = 1;
    qp.checks_psn = true;
    qp.qkey = 0x77;
    qp.state = EndpointState::kRts;
    MemoryKey key = {};
    key.base = key.iova = reinterpret_cast<uintptr_t>(bytes);
    key.length = kSize;
    key.access = kAll;
    key.pd = pd;
    std::lock_guard lock(Lock());
    AddKey(device, kKey, key);
    AddEndpoint(&qp);
  }
  static const DeviceImage* WorldDevice(int i) { return &current->device[i]; }

  // Starts the other process; its queue pair has `change` applied.
  void Start(Service service, std::function<void(Endpoint2&)> change = nullptr) {
    current = image.get();
    ASSERT_EQ(pipe(gate), 0);
    other = fork();
    ASSERT_GE(other, 0);
    if (other == 0) {
      close(gate[1]);
      alarm(120);
      Other(service, change);
      _exit(0);
    }
    close(gate[0]);
    for (int i = 0; i < 20000 && seen->qpn == 0; ++i) usleep(1000);
    ASSERT_NE(seen->qpn, 0u);
    UseWorld(image.get());
    bytes.assign(kSize, 0);
    for (uint32_t i = 0; i < kSize; ++i) bytes[i] = PatternAt(1, i);
    for (uint32_t i = 0; i < kSize; ++i) seen->bytes[i] = PatternAt(2, i);
    seen->where = reinterpret_cast<uintptr_t>(bytes.data());
    Service mine = service;
    if (service == Service::kXrcTarget) mine = Service::kXrcInitiator;
    if (service == Service::kDcTarget) mine = Service::kDcInitiator;
    Prepare(own, mine, 0, 5, bytes.data());
    own.dest_qpn = seen->qpn;
    own.address.is_global = 1;
    own.address.dgid[0] = 0xfe;
    own.address.dgid[15] = 2;
    Ask(kConnect);
    Attend(own);
  }
  // Ends it; it leaves the world as a process does that exits.
  void End() {
    if (other <= 0) return;
    close(gate[1]);
    int status = 0;
    waitpid(other, &status, 0);
    other = 0;
  }
  void Kill() {
    kill(other, SIGKILL);
    int status = 0;
    waitpid(other, &status, 0);
    close(gate[1]);
    other = 0;
  }

  enum Command : uint32_t {
    kNone,
    kNone1,  // nothing, but it has been there
    kConnect,
    kReady,
    kNotReady,
    kPost,
    kForbidPulling,
    kDestroy,
    kSendBack,  // a WRITE to where this side has its bytes, and no step after it
  };
  // Has the other process do something, and waits until it has.
  void Ask(Command command) {
    const uint32_t before = seen->done;
    seen->command = command;
    for (int i = 0; i < 20000 && seen->done == before; ++i) {
      usleep(1000);
    }
    ASSERT_NE(seen->done, before);
  }

  // The other process: posts receives of 64 KiB at the start of its bytes when asked to.
  void Other(Service service, const std::function<void(Endpoint2&)>& change) {
    UseWorld(current);
    static Endpoint2 qp;
    Prepare(qp, service, 1, 9, seen->bytes);
    if (change) change(qp);
    Attend(qp);
    uint64_t wr_id = 100;
    size_t told = 0;
    uint32_t source = 0;
    seen->qpn = qp.qpn;
    for (;;) {
      pollfd one = {gate[0], POLLIN, 0};
      if (poll(&one, 1, 0) != 0) break;
      if (!Step()) usleep(50);
      for (; told < qp.completed.size(); ++told) {
        auto& row = seen->received[told % 4096];
        const Received& from = qp.completed[told];
        row.wr_id = from.wr_id;
        row.status = from.completion.status;
        row.byte_length = from.completion.byte_length;
        row.immediate = from.completion.immediate;
        row.source_qpn = from.completion.source_qpn;
        row.has_grh = from.completion.has_grh;
        seen->receives = static_cast<uint32_t>(told + 1);
      }
      seen->events = static_cast<uint32_t>(qp.events.size());
      seen->state = static_cast<uint32_t>(qp.state);
      seen->aimed = qp.aimed;
      const uint32_t command = seen->command;
      if (command == kNone) continue;
      std::unique_lock lock(Lock());
      switch (command) {
        case kConnect:
          qp.dest_qpn = source = kFirstOther;
          qp.address.is_global = 1;
          qp.address.dgid[0] = 0xfe;
          qp.address.dgid[15] = 1;
          break;
        case kPost:
          qp.Receive(wr_id++, {{reinterpret_cast<uintptr_t>(seen->bytes), 65536, kKey}});
          break;
        case kReady:
          qp.state = EndpointState::kRts;
          lock.unlock();
          Attend(qp);
          break;
        case kNotReady:
          qp.state = EndpointState::kInit;
          break;
        case kForbidPulling:
          ForbidPullingIn(true);
          break;
        case kDestroy:
          RemoveEndpoint(&qp);
          break;
        case kSendBack: {
          SendRequest request = Request(Opcode::kWrite, 0, 0);
          request.sges[0] = {reinterpret_cast<uintptr_t>(seen->bytes), seen->length, kKey};
          request.remote_address = seen->where;
          Completion completion;
          Execute(qp, request, 0, &completion);
          break;
        }
        default:
          break;
      }
      seen->command = kNone;
      seen->done = seen->done + 1;
    }
    UseWorld(nullptr);
  }
  // This side takes its place second, and asks for one number: the first of the second block of
  // device 0 — or of its first, since the other side makes its own on device 1.
  static constexpr uint32_t kFirstOther = 0x11;
  static void ForbidPullingIn(bool on);

  SendRequest Request(Opcode opcode, uint32_t offset, uint32_t length) {
    SendRequest request;
    request.opcode = opcode;
    request.sge_count = 1;
    request.sges[0] = {reinterpret_cast<uintptr_t>(bytes.data()) + offset, length, kKey};
    request.remote_address = reinterpret_cast<uintptr_t>(seen->bytes);
    request.rkey = kKey;
    return request;
  }
  Outcome Post(const SendRequest& request, Completion* completion, uint32_t attempt = 0) {
    std::lock_guard lock(Lock());
    return Execute(own, request, attempt, completion);
  }
  // Steps until `what` holds; 30 s at most.
  template <typename What>
  bool Until(What what) {
    for (int i = 0; i < 600000; ++i) {
      if (what()) return true;
      if (!Step()) usleep(50);
    }
    return false;
  }
  // One request to its end.
  Completion Run(const SendRequest& request) {
    Completion completion;
    const size_t before = own.answers.size();
    uint32_t attempt = 0;
    Outcome outcome = Outcome::kRetry;
    Until([&] {
      outcome = Post(request, &completion, attempt++);
      return outcome != Outcome::kRetry;
    });
    if (outcome == Outcome::kDone) return completion;
    EXPECT_TRUE(Until([&] { return own.answers.size() > before; }));
    return own.answers.size() > before ? own.answers.back() : completion;
  }

  inline static WorldImage* current = nullptr;
  Folder folder;
  std::unique_ptr<WorldImage> image;
  Seen* seen = nullptr;
  Endpoint2 own;
  std::vector<uint8_t> bytes;
  pid_t other = 0;
  int gate[2] = {-1, -1};
};

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_TEST_REMOTE_H_
