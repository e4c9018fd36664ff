// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/requests.h"

#include <dlfcn.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/types.h>

#include <cstdarg>
#include <cstring>

namespace vabi::conformance {
namespace {

RequestWatch* g_watch = nullptr;

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Of an attribute's data: up to 8 bytes stand in the attribute itself.
std::vector<uint8_t> DataOf(const ib_uverbs_attr& attribute) {
  std::vector<uint8_t> data(attribute.len);
  if (data.empty()) return data;
  const void* from = attribute.len <= sizeof attribute.data
                         ? static_cast<const void*>(&attribute.data)
                         : reinterpret_cast<const void*>(static_cast<uintptr_t>(attribute.data));
  std::memcpy(data.data(), from, data.size());
  return data;
}

}  // namespace

void Record(Request request) {
  if (g_watch != nullptr) g_watch->requests_.push_back(std::move(request));
}

namespace {

// INVOKE_WRITE: the core's part and the number in attributes of their own.
void RecordIoctl(const ib_uverbs_ioctl_hdr& header) {
  if (header.object_id != UVERBS_OBJECT_DEVICE || header.method_id != UVERBS_METHOD_INVOKE_WRITE)
    return;
  Request request;
  for (unsigned i = 0; i < header.num_attrs; ++i) {
    const std::vector<uint8_t> data = DataOf(header.attrs[i]);
    if (header.attrs[i].attr_id == UVERBS_ATTR_CORE_IN) request.core = data;
    if (header.attrs[i].attr_id == UVERBS_ATTR_WRITE_CMD && data.size() >= 4) {
      std::memcpy(&request.command, data.data(), sizeof request.command);
    }
  }
  request.extended = (request.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) != 0;
  request.command &= IB_USER_VERBS_CMD_COMMAND_MASK;
  Record(std::move(request));
}

void RecordWrite(const void* buffer, size_t size) {
  ib_uverbs_cmd_hdr header;
  if (size < sizeof header) return;
  std::memcpy(&header, buffer, sizeof header);
  Request request;
  request.extended = (header.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) != 0;
  request.command = header.command & IB_USER_VERBS_CMD_COMMAND_MASK;
  const size_t skip = sizeof header + (request.extended ? sizeof(ib_uverbs_ex_cmd_hdr) : 0);
  if (size < skip) return;
  const auto* bytes = static_cast<const uint8_t*>(buffer);
  request.core.assign(bytes + skip, bytes + size);
  Record(std::move(request));
}

}  // namespace

uint32_t Request::U32(size_t offset) const {
  uint32_t value = 0;
  if (offset + sizeof value <= core.size()) std::memcpy(&value, core.data() + offset, sizeof value);
  return value;
}

RequestWatch::RequestWatch() { g_watch = this; }
RequestWatch::~RequestWatch() { g_watch = nullptr; }

std::vector<Request> RequestWatch::Of(uint32_t command) const {
  std::vector<Request> found;
  for (const Request& request : requests_) {
    if (request.command == command) found.push_back(request);
  }
  return found;
}

namespace {
bool Watching() { return g_watch != nullptr; }
}  // namespace

}  // namespace vabi::conformance

// Exported, since the libraries that the program is linked to refer to them.
extern "C" {

int ioctl(int fd, unsigned long number, ...) {
  va_list list;
  va_start(list, number);
  void* argument = va_arg(list, void*);
  va_end(list);
  using vabi::conformance::Watching;
  if (Watching() && static_cast<uint32_t>(number) == static_cast<uint32_t>(RDMA_VERBS_IOCTL)) {
    vabi::conformance::RecordIoctl(*static_cast<const ib_uverbs_ioctl_hdr*>(argument));
  }
  static auto* next = vabi::conformance::Next<int(int, unsigned long, ...)>("ioctl");
  return next(fd, number, argument);
}

ssize_t write(int fd, const void* buffer, size_t size) {
  if (vabi::conformance::Watching()) vabi::conformance::RecordWrite(buffer, size);
  static auto* next = vabi::conformance::Next<ssize_t(int, const void*, size_t)>("write");
  return next(fd, buffer, size);
}

}  // extern "C"
