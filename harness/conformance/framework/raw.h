// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CONFORMANCE_FRAMEWORK_RAW_H_
#define VABI_HARNESS_CONFORMANCE_FRAMEWORK_RAW_H_

#include <rdma/rdma_user_ioctl_cmds.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "harness/conformance/framework/errors.h"

// Commands straight to a context's cmd_fd, past libibverbs: for what the library never sends.

namespace vabi::conformance {

// Memory with a known pattern before and after it: whoever writes past its ends is found out.
class Guarded {
 public:
  explicit Guarded(size_t size, uint8_t fill = 0xa5);
  uint8_t* data() { return bytes_.data() + kSlack; }
  size_t size() const { return size_; }
  template <typename T>
  T Read(size_t offset = 0) const {
    T value;
    std::memcpy(&value, bytes_.data() + kSlack + offset, sizeof value);
    return value;
  }
  template <typename T>
  void Put(const T& value, size_t offset = 0) {
    std::memcpy(data() + offset, &value, sizeof value);
  }
  // Of the bytes inside, how many from the front no longer hold the fill: up to the last that was
  // written.
  size_t written() const;
  // Nothing outside was touched.
  bool intact() const;

 private:
  static constexpr size_t kSlack = 64;
  static constexpr uint8_t kCanary = 0x5c;
  size_t size_;
  uint8_t fill_;
  std::vector<uint8_t> bytes_;
};

// A uverbs file of the cell's device, past libibverbs; without a context yet.
class RawFile {
 public:
  RawFile();
  RawFile(const RawFile&) = delete;
  ~RawFile();
  int fd() const { return fd_; }

 private:
  int fd_;
};

// One ioctl method, its attributes in the order of the calls.
class RawIoctl {
 public:
  RawIoctl(int fd, uint32_t driver_id, uint16_t object, uint16_t method);

  // All are mandatory but those made Optional() right after.
  RawIoctl& In(uint16_t id, const void* data, uint16_t length);
  RawIoctl& Value(uint16_t id, uint64_t value, uint16_t length = 8);  // inline
  RawIoctl& Out(uint16_t id, void* data, uint16_t length);
  RawIoctl& Handle(uint16_t id, uint32_t handle);
  RawIoctl& NewHandle(uint16_t id);
  RawIoctl& Optional();
  RawIoctl& Enum(uint16_t id, uint8_t element, const void* data, uint16_t length);

  Error Call();
  // After Call: what stands in the attribute.
  uint32_t HandleOf(uint16_t id) const;
  bool ValidOutput(uint16_t id) const;

 private:
  RawIoctl& Add(uint16_t id, uint64_t data, uint16_t length);

  int fd_;
  uint32_t driver_id_;
  uint16_t object_, method_;
  std::vector<ib_uverbs_attr> attributes_;
};

// write() of a legacy command: `request` is the core request (its `response` field is filled in, it
// is the first when there is a reply) and then the driver's. Lengths without header.
struct RawRequest {
  uint32_t command = 0;
  std::vector<uint8_t> core, driver;
  Guarded* reply = nullptr;
  size_t reply_length = 0;  // what the request says of it; the driver's part follows the core's

  template <typename T>
  static RawRequest Of(uint32_t command, const T& core) {
    RawRequest request;
    request.command = command;
    request.core.assign(reinterpret_cast<const uint8_t*>(&core),
                        reinterpret_cast<const uint8_t*>(&core) + sizeof core);
    return request;
  }
};
Error RawWrite(int fd, RawRequest request);

// write() of an extended command. core and driver lengths are rounded up to 8 bytes with zeros.
Error RawWriteExtended(int fd, RawRequest request, size_t core_reply, size_t driver_reply);

// The same command behind DEVICE.INVOKE_WRITE; its number may have the extended bit.
Error RawInvoke(int fd, uint32_t driver_id, RawRequest request, size_t core_reply,
                size_t driver_reply);

// By whichever form of an extended command the kernel takes: INVOKE_WRITE where it is served, else
// write().
Error RawExtended(int fd, RawRequest request, size_t core_reply, size_t driver_reply);

// enum rdma_driver_id of the cell's device.
uint32_t DriverId();

}  // namespace vabi::conformance

#endif  // VABI_HARNESS_CONFORMANCE_FRAMEWORK_RAW_H_
