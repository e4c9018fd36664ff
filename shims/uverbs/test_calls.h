// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_TEST_CALLS_H_
#define VABI_SHIMS_UVERBS_TEST_CALLS_H_

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shims/uverbs/uverbs_file.h"

// The three ways in as a library uses them, for the unit tests of the core and of every driver.

namespace vabi {

using Bytes = std::vector<uint8_t>;

// The bytes of write() for a legacy command: the header, the core's request, which begins with the
// address of the reply, and the driver's. `reply` is what core and driver answer together.
inline Bytes LegacyCommand(uint32_t command, Bytes request, Bytes* reply, const Bytes& driver) {
  if (reply != nullptr && !reply->empty()) {
    const uint64_t address = reinterpret_cast<uintptr_t>(reply->data());
    // A request that is too short on purpose has no room for all of it.
    std::memcpy(request.data(), &address, std::min(sizeof(address), request.size()));
  }
  Bytes all(8);
  all.insert(all.end(), request.begin(), request.end());
  all.insert(all.end(), driver.begin(), driver.end());
  const uint16_t words[2] = {static_cast<uint16_t>(all.size() / 4),
                             static_cast<uint16_t>(reply == nullptr ? 0 : reply->size() / 4)};
  std::memcpy(all.data(), &command, 4);
  std::memcpy(all.data() + 4, words, 4);
  return all;
}

// The bytes of an extended write(); the core's request is filled up to whole words of 8 bytes. The
// last `driver_out` bytes of the reply are the driver's.
inline Bytes ExtendedCommand(uint32_t command, Bytes request, Bytes* reply, const Bytes& driver,
                             size_t driver_out) {
  request.resize((request.size() + 7) & ~size_t{7});
  Bytes all(24);
  all.insert(all.end(), request.begin(), request.end());
  all.insert(all.end(), driver.begin(), driver.end());
  const uint32_t number = command | 0x80000000;
  const auto out = static_cast<uint16_t>(reply == nullptr ? 0 : (reply->size() - driver_out) / 8);
  const uint16_t core[2] = {static_cast<uint16_t>(request.size() / 8), out};
  const uint64_t address = reply == nullptr ? 0 : reinterpret_cast<uintptr_t>(reply->data());
  const uint16_t own[2] = {static_cast<uint16_t>(driver.size() / 8),
                           static_cast<uint16_t>(driver_out / 8)};
  std::memcpy(all.data(), &number, 4);
  std::memcpy(all.data() + 4, core, 4);
  std::memcpy(all.data() + 8, &address, 8);
  std::memcpy(all.data() + 16, own, 4);
  return all;
}

inline long SendWrite(UverbsFile& file, const Bytes& bytes) {
  return file.Write(bytes.data(), bytes.size());
}

// struct ib_uverbs_attr
struct RawAttr {
  uint16_t attr_id, len, flags;
  uint8_t elem_id, elem_reserved;
  uint64_t data;
};

// An ioctl as libibverbs builds it.
class Request {
 public:
  Request(uint16_t object, uint16_t method, uint32_t driver_id) {
    header_.object_id = object;
    header_.method_id = method;
    header_.driver_id = driver_id;
  }
  RawAttr& Add(int64_t id, size_t length, uint64_t data, uint16_t flags = 1) {
    attrs_.push_back({static_cast<uint16_t>(id), static_cast<uint16_t>(length), flags, 0, 0, data});
    return attrs_.back();
  }
  RawAttr& AddIn(int64_t id, const Bytes& bytes) {
    uint64_t data = 0;
    if (bytes.size() <= 8) {
      if (!bytes.empty()) std::memcpy(&data, bytes.data(), bytes.size());
    } else {
      data = reinterpret_cast<uintptr_t>(bytes.data());
    }
    return Add(id, bytes.size(), data);
  }
  RawAttr& AddOut(int64_t id, Bytes& bytes) {
    return Add(id, bytes.size(), reinterpret_cast<uintptr_t>(bytes.data()));
  }
  RawAttr& AddHandle(int64_t id, uint64_t handle = 0) { return Add(id, 0, handle); }
  RawAttr& AddConst(int64_t id, uint64_t value) { return Add(id, 8, value); }
  RawAttr* Find(int64_t id) {
    for (RawAttr& attr : attrs_) {
      if (attr.attr_id == id) return &attr;
    }
    return nullptr;
  }
  bool Written(int64_t id) { return (Find(id)->flags & 2) != 0; }  // UVERBS_ATTR_F_VALID_OUTPUT

  struct Header {
    uint16_t length = 0, object_id = 0, method_id = 0, num_attrs = 0;
    uint64_t reserved1 = 0;
    uint32_t driver_id = 0, reserved2 = 0;
  };
  Header& header() { return header_; }
  std::vector<RawAttr>& attrs() { return attrs_; }
  bool keep_length = false;  // a test has set header().length and num_attrs itself

 private:
  Header header_;
  std::vector<RawAttr> attrs_;
};

inline constexpr unsigned long kVerbsIoctl = 0xc0181b01;  // RDMA_VERBS_IOCTL

// The attributes' flags and data are what the kernel left there.
inline long SendIoctl(UverbsFile& file, Request& request, unsigned long number = kVerbsIoctl) {
  if (!request.keep_length) {
    request.header().num_attrs = static_cast<uint16_t>(request.attrs().size());
    request.header().length = static_cast<uint16_t>(24 + 16 * request.attrs().size());
  }
  Bytes all(24 + 16 * request.attrs().size());
  std::memcpy(all.data(), &request.header(), 24);
  const size_t rest = all.size() - 24;
  if (rest != 0) std::memcpy(all.data() + 24, request.attrs().data(), rest);
  const long result = file.Ioctl(number, all.data());
  if (rest != 0) std::memcpy(request.attrs().data(), all.data() + 24, rest);
  return result;
}

// The rule of a trace's last line; "" when it names none.
inline std::string LastRuleIn(const std::string& trace_path) {
  std::string rule;
  std::ifstream in(trace_path);
  for (std::string line; std::getline(in, line);)
    rule = nlohmann::json::parse(line).value("rule", "");
  return rule;
}

// What GoogleTest takes as the name of a case.
inline std::string CaseName(std::string text) {
  for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_TEST_CALLS_H_
