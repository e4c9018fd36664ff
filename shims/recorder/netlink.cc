// SPDX-License-Identifier: BSD-2-Clause
// Requests to RDMA netlink and their answers, which arrive as messages of their own.
#include <linux/netlink.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "shims/recorder/recorder.h"
#include "shims/sys/sys.h"

namespace vabi::recorder {
namespace {

struct Pending {
  int fd = -1;
  uint32_t sequence = 0;
  trace::Record record;
};
constexpr size_t kMaxPending = 16;  // requests without an answer; the oldest are given up

std::mutex g_mutex;
Pending g_pending[kMaxPending];
size_t g_next;

// Calls take(header, address) for each whole message.
template <typename Take>
void EachMessage(const void* user, size_t size, Take take) {
  uint64_t address = reinterpret_cast<uintptr_t>(user);
  struct nlmsghdr header;
  while (size >= sizeof header && sys::CopyFromUser(&header, address, sizeof header) == 0) {
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > size) return;
    take(header, address);
    const size_t step = std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), size);
    address += step;
    size -= step;
  }
}

}  // namespace

void Sent(int fd, const void* user, size_t size) {
  const KeepErrno keep;
  EachMessage(user, size, [fd](const struct nlmsghdr& header, uint64_t) {
    if (!(header.nlmsg_flags & NLM_F_REQUEST) || header.nlmsg_type < NLMSG_MIN_TYPE) return;
    const std::lock_guard<std::mutex> lock(g_mutex);
    Pending& one = g_pending[g_next++ % kMaxPending];
    one.fd = fd;
    one.sequence = header.nlmsg_seq;
    one.record = {};
    one.record.start_ns = sys::MonotonicNs();
    DescribeNetlink(header.nlmsg_type, header.nlmsg_len - sizeof header, &one.record);
  });
}

void Received(int fd, const void* user, size_t size) {
  const KeepErrno keep;
  EachMessage(user, size, [fd](const struct nlmsghdr& header, uint64_t address) {
    const std::lock_guard<std::mutex> lock(g_mutex);
    for (Pending& one : g_pending) {
      if (one.fd != fd || one.sequence != header.nlmsg_seq) continue;
      // Of a dump, the first part tells that it started.
      if (header.nlmsg_type == NLMSG_ERROR) {
        int error = 0;
        sys::CopyFromUser(&error, address + sizeof header, sizeof error);
        one.record.result = error;
      } else if (header.nlmsg_type >= NLMSG_MIN_TYPE && !(header.nlmsg_flags & NLM_F_MULTI)) {
        one.record.core_out = static_cast<int32_t>(header.nlmsg_len);
      }
      trace::Write(one.record);
      one.fd = -1;
    }
  });
}

}  // namespace vabi::recorder
