// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/raw.h"

#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "harness/conformance/framework/abi_test.h"
#include "harness/conformance/framework/verbs.h"

namespace vabi::conformance {
namespace {

uint64_t Address(const void* data) { return reinterpret_cast<uintptr_t>(data); }

void PadTo8(std::vector<uint8_t>* bytes) { bytes->resize((bytes->size() + 7) / 8 * 8); }

Error Send(int fd, const std::vector<uint8_t>& bytes) {
  errno = 0;
  const ssize_t sent = write(fd, bytes.data(), bytes.size());
  if (sent == static_cast<ssize_t>(bytes.size())) return {0};
  return {errno != 0 ? errno : EIO};
}

}  // namespace

Guarded::Guarded(size_t size, uint8_t fill)
    : size_(size), fill_(fill), bytes_(size + 2 * kSlack, kCanary) {
  std::memset(data(), fill, size);
}

size_t Guarded::written() const {
  for (size_t length = size_; length > 0; --length) {
    if (bytes_[kSlack + length - 1] != fill_) return length;
  }
  return 0;
}

bool Guarded::intact() const {
  for (size_t i = 0; i < kSlack; ++i) {
    if (bytes_[i] != kCanary || bytes_[kSlack + size_ + i] != kCanary) return false;
  }
  return true;
}

RawFile::RawFile() {
  DeviceList list;
  ibv_device* device = list.Find(cell().device().name);
  if (device == nullptr) throw Broken("no device " + cell().device().name);
  const std::string path = std::string("/dev/infiniband/") + device->dev_name;
  fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0) throw Broken("open " + path + ": " + ErrorName(errno));
}

RawFile::~RawFile() { close(fd_); }

RawIoctl::RawIoctl(int fd, uint32_t driver_id, uint16_t object, uint16_t method)
    : fd_(fd), driver_id_(driver_id), object_(object), method_(method) {}

RawIoctl& RawIoctl::Add(uint16_t id, uint64_t data, uint16_t length) {
  ib_uverbs_attr attribute = {};
  attribute.attr_id = id;
  attribute.len = length;
  attribute.flags = UVERBS_ATTR_F_MANDATORY;
  attribute.data = data;
  attributes_.push_back(attribute);
  return *this;
}

// include/uapi/rdma/rdma_user_ioctl_cmds.h: up to 8 bytes stand in the attribute itself.
RawIoctl& RawIoctl::In(uint16_t id, const void* data, uint16_t length) {
  uint64_t value = Address(data);
  if (length <= sizeof value) {
    value = 0;
    std::memcpy(&value, data, length);
  }
  return Add(id, value, length);
}
RawIoctl& RawIoctl::Value(uint16_t id, uint64_t value, uint16_t length) {
  return Add(id, value, length);
}
RawIoctl& RawIoctl::Out(uint16_t id, void* data, uint16_t length) {
  return Add(id, Address(data), length);
}
RawIoctl& RawIoctl::Handle(uint16_t id, uint32_t handle) { return Add(id, handle, 0); }
RawIoctl& RawIoctl::NewHandle(uint16_t id) { return Add(id, 0, 0); }
RawIoctl& RawIoctl::Enum(uint16_t id, uint8_t element, const void* data, uint16_t length) {
  In(id, data, length);
  attributes_.back().attr_data.enum_data.elem_id = element;
  return *this;
}
RawIoctl& RawIoctl::Optional() {
  attributes_.back().flags = 0;
  return *this;
}

Error RawIoctl::Call() {
  ib_uverbs_ioctl_hdr header = {};
  const size_t attributes = attributes_.size() * sizeof(ib_uverbs_attr);
  std::vector<uint8_t> bytes(sizeof header + attributes);
  header.length = static_cast<uint16_t>(bytes.size());
  header.object_id = object_;
  header.method_id = method_;
  header.num_attrs = static_cast<uint16_t>(attributes_.size());
  header.driver_id = driver_id_;
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, attributes_.data(), attributes);
  errno = 0;
  const int result = ioctl(fd_, RDMA_VERBS_IOCTL, bytes.data());
  std::memcpy(attributes_.data(), bytes.data() + sizeof header, attributes);
  return result == 0 ? Error{0} : Error{errno};
}

uint32_t RawIoctl::HandleOf(uint16_t id) const {
  for (const ib_uverbs_attr& attribute : attributes_) {
    if (attribute.attr_id == id) return static_cast<uint32_t>(attribute.data);
  }
  throw Broken("no attribute " + std::to_string(id));
}

bool RawIoctl::ValidOutput(uint16_t id) const {
  for (const ib_uverbs_attr& attribute : attributes_) {
    if (attribute.attr_id == id) return (attribute.flags & UVERBS_ATTR_F_VALID_OUTPUT) != 0;
  }
  throw Broken("no attribute " + std::to_string(id));
}

Error RawWrite(int fd, RawRequest request) {
  if (request.reply != nullptr) {
    const uint64_t response = Address(request.reply->data());
    std::memcpy(request.core.data(), &response, sizeof response);
  }
  ib_uverbs_cmd_hdr header = {};
  header.command = request.command;
  const size_t total = sizeof header + request.core.size() + request.driver.size();
  header.in_words = static_cast<uint16_t>(total / 4);
  header.out_words = static_cast<uint16_t>(request.reply_length / 4);
  std::vector<uint8_t> bytes(sizeof header);
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes.insert(bytes.end(), request.core.begin(), request.core.end());
  bytes.insert(bytes.end(), request.driver.begin(), request.driver.end());
  return Send(fd, bytes);
}

Error RawWriteExtended(int fd, RawRequest request, size_t core_reply, size_t driver_reply) {
  PadTo8(&request.core);
  PadTo8(&request.driver);
  ib_uverbs_cmd_hdr header = {};
  header.command = request.command | IB_USER_VERBS_CMD_FLAG_EXTENDED;
  header.in_words = static_cast<uint16_t>(request.core.size() / 8);
  header.out_words = static_cast<uint16_t>(core_reply / 8);
  ib_uverbs_ex_cmd_hdr extended = {};
  // uverbs_main.c:verify_hdr: an address for no reply at all is EINVAL.
  extended.response = core_reply + driver_reply > 0 ? Address(request.reply->data()) : 0;
  extended.provider_in_words = static_cast<uint16_t>(request.driver.size() / 8);
  extended.provider_out_words = static_cast<uint16_t>(driver_reply / 8);
  std::vector<uint8_t> bytes(sizeof header + sizeof extended);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &extended, sizeof extended);
  bytes.insert(bytes.end(), request.core.begin(), request.core.end());
  bytes.insert(bytes.end(), request.driver.begin(), request.driver.end());
  return Send(fd, bytes);
}

Error RawInvoke(int fd, uint32_t driver_id, RawRequest request, size_t core_reply,
                size_t driver_reply) {
  RawIoctl call(fd, driver_id, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
  call.Value(UVERBS_ATTR_WRITE_CMD, request.command);
  call.In(UVERBS_ATTR_CORE_IN, request.core.data(), static_cast<uint16_t>(request.core.size()));
  if (core_reply > 0)
    call.Out(UVERBS_ATTR_CORE_OUT, request.reply->data(), static_cast<uint16_t>(core_reply));
  if (!request.driver.empty()) {
    call.In(UVERBS_ATTR_UHW_IN, request.driver.data(),
            static_cast<uint16_t>(request.driver.size()));
  }
  if (driver_reply > 0) {
    call.Out(UVERBS_ATTR_UHW_OUT, request.reply->data() + core_reply,
             static_cast<uint16_t>(driver_reply));
  }
  return call.Call();
}

Error RawExtended(int fd, RawRequest request, size_t core_reply, size_t driver_reply) {
  if (!cell().Serves("DEVICE.INVOKE_WRITE"))
    return RawWriteExtended(fd, std::move(request), core_reply, driver_reply);
  request.command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
  return RawInvoke(fd, DriverId(), std::move(request), core_reply, driver_reply);
}

uint32_t DriverId() {
  // erdma's name and what came later are not in the headers of 33.2.
  static const std::map<std::string, uint32_t> ids = {
      {"mlx5", RDMA_DRIVER_MLX5},
      {"mlx4", RDMA_DRIVER_MLX4},
      {"rxe", RDMA_DRIVER_RXE},
      {"siw", RDMA_DRIVER_SIW},
      {"efa", RDMA_DRIVER_EFA},
      {"hns", RDMA_DRIVER_HNS},
      {"irdma", RDMA_DRIVER_I40IW},
      {"bnxt_re", RDMA_DRIVER_BNXT_RE},
      {"vmw_pvrdma", RDMA_DRIVER_VMW_PVRDMA},
      {"erdma", 19},
  };
  const auto found = ids.find(cell().device().driver);
  if (found != ids.end()) return found->second;
  throw Broken("driver " + cell().device().driver + " has no number here yet");
}

}  // namespace vabi::conformance
