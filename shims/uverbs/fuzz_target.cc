// SPDX-License-Identifier: BSD-2-Clause
// libFuzzer target for the two front ends: whatever a program sends, the answer is an errno and never a
// crash. Built by clang with -DVABI_FUZZ=ON; runs in the source root:
//   uverbs_fuzz -max_total_time=60
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "harness/world/test_world.h"
#include "shims/uverbs/test_driver.h"
#include "shims/uverbs/test_fd_table.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

constexpr size_t kScratch = 1 << 20;  // more than 65535 words of 8 bytes, the longest reply
alignas(64) uint8_t scratch[kScratch];

class Target {
 public:
  Target() : world_("debian-7.3.4", {"rxe"}) {
    SetDriverForTest(DriverId::rxe, &TestDriver::Make);
    for (auto& served : world_.image().op_served[Index(DriverId::rxe)]) served = 1;
    if (!InstallWorld(world_.world())) std::abort();
  }

  // Every input meets the same objects: a PD (0), two CQs (1, 2), a queue pair (3).
  void Reset() {
    file_ = std::make_shared<UverbsFile>(*FindDevice(0));
    Ioctl(0, 3, {});
    const uint64_t reply = reinterpret_cast<uint64_t>(scratch);
    WriteWords(3, {Low(reply), High(reply)}, 1);
    for (int i = 0; i < 2; ++i) {
      WriteWords(18, {Low(reply), High(reply), 0, 0, 8, 0, ~0u, 0}, 2);
    }
    WriteWords(24, {Low(reply), High(reply), 0, 0, 0, 1, 2, 0, 4, 4, 1, 1, 0, 2 << 8}, 8);
  }

  void Run(const uint8_t* data, size_t size) {
    if (size < 8) return;
    if ((data[0] & 1) != 0) {
      FuzzWrite(data + 1, size - 1);
    } else {
      FuzzIoctl(data + 1, size - 1);
    }
  }

 private:
  static uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
  static uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

  void WriteWords(uint32_t command, std::vector<uint32_t> body, uint16_t out_words) {
    const auto in_words = static_cast<uint32_t>(body.size() + 2);
    body.insert(body.begin(), {command, in_words | uint32_t{out_words} << 16});
    file_->Write(body.data(), body.size() * 4);
  }

  struct Attr {
    uint16_t id, len, flags;
    uint8_t elem, reserved;
    uint64_t data;
  };
  void Ioctl(uint16_t object, uint16_t method, const std::vector<Attr>& attrs) {
    std::vector<uint8_t> all(24 + 16 * attrs.size());
    const uint16_t head[4] = {static_cast<uint16_t>(all.size()), object, method,
                              static_cast<uint16_t>(attrs.size())};
    const uint32_t driver_id = FindDevice(0)->image().driver_id;
    std::memcpy(all.data(), head, 8);
    std::memcpy(all.data() + 16, &driver_id, 4);
    if (!attrs.empty()) std::memcpy(all.data() + 24, attrs.data(), 16 * attrs.size());
    file_->Ioctl(0xc0181b01, all.data());
  }

  // Mostly well-formed: right word counts and a reply buffer, so that inputs get to the handlers.
  void FuzzWrite(const uint8_t* data, size_t size) {
    std::vector<uint8_t> all(data, data + size);
    const uint8_t shape = all.back();
    all.resize((all.size() & ~size_t{7}) + 8);
    uint32_t command = all[0] & 63;
    const uint64_t reply = reinterpret_cast<uint64_t>(scratch);
    if ((shape & 1) != 0) {
      command |= 0x80000000;
      all.resize(all.size() < 24 ? 24 : all.size());
      const auto in_words = static_cast<uint16_t>((all.size() - 24) / 8);
      std::memcpy(all.data() + 4, &in_words, 2);
      std::memcpy(all.data() + 8, &reply, 8);
      std::memset(all.data() + 16, 0, 8);
    } else {
      const auto in_words = static_cast<uint16_t>(all.size() / 4);
      std::memcpy(all.data() + 4, &in_words, 2);
      if (all.size() >= 16 && (shape & 2) != 0) std::memcpy(all.data() + 8, &reply, 8);
    }
    std::memcpy(all.data(), &command, 4);
    if ((shape & 4) != 0) all.assign(data, data + size);  // as it came
    file_->Write(all.data(), all.size());
  }

  void FuzzIoctl(const uint8_t* data, size_t size) {
    const uint16_t object = data[0] & 31, method = data[1] & 15;
    std::vector<Attr> attrs;
    for (size_t at = 2; at + 8 <= size && attrs.size() < 24; at += 8) {
      Attr attr = {};
      attr.id = data[at] & 31;
      if ((data[at] & 0x80) != 0) attr.id |= 0x1000;
      attr.len = data[at + 1];
      attr.flags = data[at + 2] & 1;
      attr.elem = data[at + 3] & 3;
      attr.data = data[at + 4] | uint64_t{data[at + 5]} << 8;
      if (attr.len > 8 || (data[at + 6] & 1) != 0) attr.data = reinterpret_cast<uint64_t>(scratch) + data[at + 4];
      if ((data[at + 6] & 0xf0) == 0xf0) attr.data = data[at + 7];  // a bad pointer now and then
      attrs.push_back(attr);
    }
    Ioctl(object, method, attrs);
  }

  TestWorld world_;
  std::shared_ptr<UverbsFile> file_;
};

}  // namespace
}  // namespace vabi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* target = new vabi::Target;
  target->Reset();
  target->Run(data, size);
  vabi::CloseAllFiles();
  vabi::TestDriver::script().log.clear();
  return 0;
}
