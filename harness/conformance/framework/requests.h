// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CONFORMANCE_FRAMEWORK_REQUESTS_H_
#define VABI_HARNESS_CONFORMANCE_FRAMEWORK_REQUESTS_H_

#include <cstdint>
#include <string>
#include <vector>

// The bytes of requests, which no trace has: what the library hands to the kernel in write
// commands, by whatever way they go. The program's own ioctl() and write() stand before libc's and
// the shim's.

namespace vabi::conformance {

struct Request {
  uint32_t command = 0;  // IB_USER_VERBS_CMD_…
  bool extended = false;
  std::vector<uint8_t> core;  // of the core's structure, without headers

  // The member at `offset` of the structure that cmd_write.h sends; 0 behind its end.
  uint32_t U32(size_t offset) const;
};

// Records the requests of this process while it lives; one at a time.
class RequestWatch {
 public:
  RequestWatch();
  RequestWatch(const RequestWatch&) = delete;
  ~RequestWatch();
  std::vector<Request> Of(uint32_t command) const;

 private:
  friend void Record(Request request);
  std::vector<Request> requests_;
};

}  // namespace vabi::conformance

#endif  // VABI_HARNESS_CONFORMANCE_FRAMEWORK_REQUESTS_H_
