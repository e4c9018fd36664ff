// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_RXE_COMPLETION_QUEUE_H_
#define VABI_SHIMS_PROVIDERS_RXE_COMPLETION_QUEUE_H_

#include <cstdint>

#include "shims/providers/rxe/pool.h"
#include "shims/providers/rxe/queue.h"
#include "shims/uverbs/objects.h"

namespace vabi::rxe {

// What a completion tells (struct ib_uverbs_wc, as far as rxe fills it).
struct WorkCompletion {
  uint64_t wr_id = 0;
  uint32_t status = 0, opcode = 0, byte_length = 0, immediate = 0, qpn = 0, source_qpn = 0,
           flags = 0;
  uint8_t port = 0;
};

struct CompletionQueue : DriverState {
  explicit CompletionQueue(Cq& cq) : cq(cq) {}

  static CompletionQueue& Of(Cq& cq) { return *static_cast<CompletionQueue*>(cq.driver.get()); }

  // rxe_cq_post: false when the queue is full; the program hears of that by an event, the
  // completion is lost. With the fabric's lock held.
  bool Post(const Layout& layout, uint32_t entry_size, const WorkCompletion& completion,
            bool solicited);

  Cq& cq;
  Queue queue;
  Pool::Seat seat;
  uint8_t notify = 0;  // enum ib_cq_notify_flags: 1 solicited, 2 the next one
};

}  // namespace vabi::rxe

#endif  // VABI_SHIMS_PROVIDERS_RXE_COMPLETION_QUEUE_H_
