// SPDX-License-Identifier: BSD-2-Clause
// libFuzzer target for the two front ends: whatever a program sends, the answer is an errno and
// never a crash. Built by clang with the preset "fuzz"; runs in the source root:
//   VABI_FUZZ_SEEDS=DIR uverbs_fuzz           writes one well-formed input for each command and
//   method into DIR uverbs_fuzz -max_total_time=60 DIR
// `verbs-abi test --only fuzz` does both.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "harness/world/test_world.h"
#include "shims/uverbs/command_table.h"
#include "shims/uverbs/method_table.h"
#include "shims/uverbs/test_driver.h"
#include "shims/uverbs/test_fd_table.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

constexpr size_t kScratch = 1 << 20;  // more than 65535 words of 8 bytes, the longest reply
alignas(64) uint8_t scratch[kScratch];

void Save(const std::string& path, const std::vector<uint8_t>& seed) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(seed.data(), 1, seed.size(), file) != seed.size() ||
      std::fclose(file) != 0) {
    std::fprintf(stderr, "uverbs_fuzz: cannot write %s\n", path.c_str());
    std::exit(2);
  }
}

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
    const uint64_t reply = reinterpret_cast<uintptr_t>(scratch);
    WriteWords(3, {Low(reply), High(reply)}, 1);
    for (int i = 0; i < 2; ++i) {
      WriteWords(18, {Low(reply), High(reply), 0, 0, 8, 0, ~0u, 0}, 2);
    }
    WriteWords(24, {Low(reply), High(reply), 0, 0, 0, 1, 2, 0, 4, 4, 1, 1, 0, 2 << 8}, 8);
  }

  // One file for each command and method that the device serves.
  void WriteSeeds(const std::string& folder) {
    const Device& device = *FindDevice(0);
    for (uint32_t number = 0; number < CommandTable::kMax; ++number) {
      for (const bool extended : {false, true}) {
        const CommandEntry* entry = device.commands().Find(number, extended);
        if (entry == nullptr || entry->handler == nullptr) continue;
        Save(folder + (extended ? "/ex_" : "/write_") + entry->name,
             SeedOf(static_cast<uint8_t>(number), extended, *entry));
      }
    }
    for (size_t i = 0; i < MethodRows().size(); ++i) {
      const MethodRow& row = MethodRows()[i];
      if (*row.name == '\0') continue;
      const auto object = static_cast<uint16_t>(world_.world().Flag(row.object));
      const auto method = static_cast<uint16_t>(world_.world().Flag(row.method));
      const CompiledMethod* compiled = device.methods().Find(object, method);
      if (compiled == nullptr || object > 31 || method > 15) continue;
      Save(folder + "/ioctl_" + row.name, SeedOf(object, method, *compiled));
    }
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

  // The kernel writes replies to where the program says, and here the program's memory is the fake
  // kernel's own: an address that is not that of the scratch buffer must be one at which nothing
  // is, page 0 or beyond user space.
  static void KeepOffOurMemory(std::vector<uint8_t>* command) {
    uint64_t address;
    if (command->size() < 8 + sizeof(address)) return;
    std::memcpy(&address, command->data() + 8, sizeof(address));
    const bool beyond = address >> 63 != 0;
    if (address == reinterpret_cast<uintptr_t>(scratch) || beyond) return;
    address &= 0xfff;
    std::memcpy(command->data() + 8, &address, sizeof(address));
  }

  // Mostly well-formed: right word counts and a reply buffer, so that inputs get to the handlers.
  void FuzzWrite(const uint8_t* data, size_t size) {
    std::vector<uint8_t> all(data, data + size);
    const uint8_t shape = all.back();
    all.resize((all.size() & ~size_t{7}) + 8);
    uint32_t command = all[0] & 63;
    const uint64_t reply = reinterpret_cast<uintptr_t>(scratch);
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
    KeepOffOurMemory(&all);
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
      if (attr.len > 8 || (data[at + 6] & 1) != 0)
        attr.data = reinterpret_cast<uintptr_t>(scratch) + data[at + 4];
      if ((data[at + 6] & 0xf0) == 0xf0) attr.data = data[at + 7];  // a bad pointer now and then
      attrs.push_back(attr);
    }
    Ioctl(object, method, attrs);
  }

  // A write() of the command with a body of zeros, all of it, and room for the whole reply.
  static std::vector<uint8_t> SeedOf(uint8_t number, bool extended, const CommandEntry& entry) {
    const size_t header = extended ? 24 : 8, unit = extended ? 8 : 4;
    std::vector<uint8_t> seed(1 + header + entry.request_size);
    seed[0] = 1;
    seed[1] = number;
    const auto out_words = static_cast<uint16_t>((entry.response_size + unit - 1) / unit);
    std::memcpy(seed.data() + 1 + 6, &out_words, 2);
    seed.push_back(extended ? 1 : 2);  // the shape: with a reply buffer
    return seed;
  }
  // An ioctl with each attribute once, as short as it may be; handles of the objects that are
  // there.
  static std::vector<uint8_t> SeedOf(uint16_t object, uint16_t method,
                                     const CompiledMethod& compiled) {
    std::vector<uint8_t> seed = {0, static_cast<uint8_t>(object), static_cast<uint8_t>(method)};
    for (const CompiledAttr& attribute : compiled.attributes) {
      const AttrSpec& spec = *attribute.spec;
      const bool handle = spec.kind == AttrKind::kIdr || spec.kind == AttrKind::kFd ||
                          spec.kind == AttrKind::kRawFd;
      const bool array = spec.kind == AttrKind::kIdrsArray;
      const size_t length = handle ? 0 : attribute.min * (array ? sizeof(uint32_t) : 1);
      const uint8_t value = spec.object == ObjectType::kCq   ? 1
                            : spec.object == ObjectType::kQp ? 3
                                                             : 0;
      const uint8_t bytes[8] = {
          static_cast<uint8_t>((attribute.id & 31) | (attribute.id >= 0x1000 ? 0x80 : 0)),
          static_cast<uint8_t>(std::min<size_t>(length, 255)),
          1,
          0,
          handle ? value : uint8_t{0},
          0,
          spec.kind == AttrKind::kPtrOut ? uint8_t{1} : uint8_t{0},
          0};
      seed.insert(seed.end(), bytes, bytes + sizeof(bytes));
    }
    return seed;
  }

  TestWorld world_;
  std::shared_ptr<UverbsFile> file_;
};

Target& TheTarget() {
  static auto* const target = new Target;
  return *target;
}

}  // namespace
}  // namespace vabi

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (const char* folder = std::getenv("VABI_FUZZ_SEEDS")) {
    vabi::TheTarget().WriteSeeds(folder);
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vabi::Target& target = vabi::TheTarget();
  target.Reset();
  target.Run(data, size);
  vabi::CloseAllFiles();
  vabi::TestDriver::script().log.clear();
  return 0;
}
