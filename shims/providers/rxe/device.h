// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_RXE_DEVICE_H_
#define VABI_SHIMS_PROVIDERS_RXE_DEVICE_H_

#include <memory>
#include <unordered_map>
#include <vector>

#include "shims/fabric/fabric.h"
#include "shims/fabric/nic.h"
#include "shims/providers/rxe/layout.h"
#include "shims/providers/rxe/pool.h"
#include "shims/providers/rxe/queue.h"
#include "shims/uverbs/device.h"

namespace vabi::rxe {

class QueuePair;

// What one rxe device keeps (struct rxe_dev). Used with the fabric's lock held, but for what never
// changes.
class RxeDevice : public fabric::Pollable {
 public:
  explicit RxeDevice(const Device& device);
  ~RxeDevice() override;

  // Queue pairs whose request at the head of the queue waits for its peer, or whose send queue
  // drains.
  bool Progress() override;
  bool NeedsPolling() const override { return !waiting.empty(); }
  // The NIC's thread looks after waiting queue pairs from now on. Without the fabric's lock.
  void StartPolling();
  void StopPollingIfIdle();

  const World& world;
  const uint32_t number;
  const Layout layout;
  fabric::Wording wording;
  // Values of this kernel, and of this device.
  const uint32_t entry_size;  // bytes of a completion that rxe writes
  const uint32_t port_mtu;    // bytes: what a datagram may carry
  const bool user_numbers;    // knob rxe.wr_numbers
  const bool access_event, last_wqe_event, drain_by_slot, local_flushed, error_filled,
      flushes_later, send_sge_bound;

  Pool contexts, pds, cqs, qps, srqs, regions, windows, handles;
  Arena arena;
  std::vector<QueuePair*> waiting;
  std::unordered_map<uint32_t, Ah*> address_handles;  // by ah_num
  // Region 1 is the kernel's own, of its MAD layer.
  uint32_t next_region = 2, next_window = 0, next_ah = 1, next_srq = 0;

 private:
  std::atomic<bool> polled_{false};
};

struct ContextState : DriverState {
  Pool::Seat seat;
};

struct ProtectionDomain : DriverState {
  uint32_t number = 0;
  Pool::Seat seat;
};

inline uint32_t NumberOf(const Pd* pd) {
  return pd == nullptr ? 0 : static_cast<const ProtectionDomain*>(pd->driver.get())->number;
}

}  // namespace vabi::rxe

#endif  // VABI_SHIMS_PROVIDERS_RXE_DEVICE_H_
