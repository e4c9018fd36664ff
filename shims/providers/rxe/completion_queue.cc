// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/rxe/completion_queue.h"

#include <cstring>

#include "shims/uverbs/events.h"

namespace vabi::rxe {
namespace {

constexpr uint8_t kSolicited = 1, kNextCompletion = 2;
constexpr uint32_t kEventCqError = 0;  // IB_EVENT_CQ_ERR

}  // namespace

bool CompletionQueue::Post(const Layout& layout, uint32_t entry_size,
                           const WorkCompletion& completion, bool solicited) {
  if (queue.Full()) {
    if (cq.events) cq.events->Report(cq.user_handle, kEventCqError, &cq.async_events_reported, &cq);
    return false;
  }
  uint8_t* entry = queue.Slot(queue.Producer());
  std::memset(entry, 0, entry_size);
  Store(entry, layout.wc_wr_id, completion.wr_id);
  Store(entry, layout.wc_status, completion.status);
  Store(entry, layout.wc_opcode, completion.opcode);
  Store(entry, layout.wc_byte_length, completion.byte_length);
  Store(entry, layout.wc_immediate, completion.immediate);
  Store(entry, layout.wc_qpn, completion.qpn);
  Store(entry, layout.wc_source_qpn, completion.source_qpn);
  Store(entry, layout.wc_flags, completion.flags);
  Store(entry, layout.wc_port, completion.port);
  queue.AdvanceProducer();
  if ((notify & kNextCompletion) != 0 || ((notify & kSolicited) != 0 && solicited)) {
    notify = 0;
    if (cq.channel) cq.channel->Notify(cq);
  }
  return true;
}

}  // namespace vabi::rxe
