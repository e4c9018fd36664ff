// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_RXE_SHARED_RECEIVE_QUEUE_H_
#define VABI_SHIMS_PROVIDERS_RXE_SHARED_RECEIVE_QUEUE_H_

#include "shims/providers/rxe/pool.h"
#include "shims/providers/rxe/queue.h"
#include "shims/uverbs/objects.h"

namespace vabi::rxe {

struct SharedReceiveQueue : DriverState {
  static SharedReceiveQueue& Of(Srq& srq) {
    return *static_cast<SharedReceiveQueue*>(srq.driver.get());
  }
  Queue queue;
  Pool::Seat seat;
  uint32_t max_sge = 0, limit = 0;
};

}  // namespace vabi::rxe

#endif  // VABI_SHIMS_PROVIDERS_RXE_SHARED_RECEIVE_QUEUE_H_
