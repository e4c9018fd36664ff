// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/rxe/device.h"

#include <algorithm>
#include <mutex>

#include "shims/providers/rxe/queue_pair.h"

namespace vabi::rxe {
namespace {

using fabric::Status;
using fabric::Wording;

// rxe.h and rxe_param.h: indices of windows begin here, those of SRQs there.
constexpr uint32_t kFirstWindow = 0x80001, kFirstSrq = 0x20001;

// One that the kernel's MAD layer has objects in as well.
Pool PoolOf(const World& world, KnobId max) {
  return Pool(world.Knob(max), world.Knob(KnobId::rxe_kernel_objects));
}

// rxe_req.c, rxe_comp.c, rxe_resp.c: which status each fault gets, and who goes to error for it.
Wording WordingOf(const World& world) {
  Wording wording;
  wording.local_key = static_cast<Status>(world.Knob(KnobId::rxe_status_key));
  wording.local_range = static_cast<Status>(world.Knob(KnobId::rxe_status_range));
  wording.local_target =
      static_cast<Status>(world.Knob(KnobId::rxe_status_target));  // do_read, do_atomic
  wording.nak_without_receive = world.Knob(KnobId::rxe_nak_without_receive) != 0;
  wording.regions_invalidate =
      static_cast<Wording::Regions>(world.Knob(KnobId::rxe_invalidates_regions));
  wording.datagram_length = Status::kSuccess;     // C10-93.1.1
  wording.no_read_depth = Status::kSuccess;       // check_init_depth: never gets its turn
  wording.unreliable_local_error_is_sqe = false;  // rxe_qp_error, whatever the service
  // copy_data: more than the receive has left is -EINVAL, which makes the receive malformed (class
  // A).
  wording.receive_length = Status::kLocalQpOperation;
  wording.length_nak = Status::kRemoteOperation;
  wording.receive_memory = Status::kLocalQpOperation;
  wording.receive_packet = Status::kRemoteInvalidRequest;  // RESPST_ERR_LENGTH
  wording.receive_access = Status::kRemoteAccess;
  wording.receive_invalidate = Status::kRemoteInvalidRequest;
  wording.access_takes_receive = true;
  wording.windows_bound_range = false;  // check_rkey: mr_check_range only
  wording.windows_check_pd = world.Knob(KnobId::rxe_window_pd) != 0;
  wording.uc_short = Wording::Short::kFails;
  wording.ud_short = world.Knob(KnobId::rxe_ud_length_first) != 0 ? Wording::Short::kDropped
                                                                  : Wording::Short::kFails;
  wording.unreliable_packet = Wording::Short::kDropped;
  wording.dropped = Status::kRemoteInvalidRequest;
  return wording;
}

}  // namespace

RxeDevice::RxeDevice(const Device& device)
    : world(device.world()),
      number(device.number()),
      layout(device.world()),
      wording(WordingOf(device.world())),
      entry_size(static_cast<uint32_t>(device.world().Knob(KnobId::rxe_cqe_size))),
      port_mtu(128u << device.image().ports[0].active_mtu),
      user_numbers(device.world().Knob(KnobId::rxe_wr_numbers) != 0),
      access_event(device.world().Knob(KnobId::rxe_access_event) != 0),
      last_wqe_event(device.world().Knob(KnobId::rxe_last_wqe_event) != 0),
      drain_by_slot(device.world().Knob(KnobId::rxe_drain_by_slot) != 0),
      local_flushed(device.world().Knob(KnobId::rxe_local_flushed) != 0),
      error_filled(device.world().Knob(KnobId::rxe_error_filled) != 0),
      flushes_later(device.world().Knob(KnobId::rxe_error_flushes_later) != 0),
      send_sge_bound(device.world().Knob(KnobId::rxe_send_sge_bound) != 0),
      contexts(device.world().Knob(KnobId::rxe_max_ucontext), 0),
      pds(PoolOf(device.world(), KnobId::rxe_max_pd)),
      cqs(PoolOf(device.world(), KnobId::rxe_max_cq)),
      qps(PoolOf(device.world(), KnobId::rxe_max_qp)),
      srqs(device.world().Knob(KnobId::rxe_max_srq), 0),
      regions(PoolOf(device.world(), KnobId::rxe_max_mr)),
      windows(device.world().Knob(KnobId::rxe_max_mw), 0),
      handles(device.world().Knob(KnobId::rxe_max_ah), 0),
      next_window(kFirstWindow),
      next_srq(kFirstSrq) {}

RxeDevice::~RxeDevice() {
  if (polled_) fabric::RemovePollable(this);
}

bool RxeDevice::Progress() {
  bool worked = false;
  const uint64_t now = waiting.empty() ? 0 : fabric::Now();
  // Driving one may end the wait of another.
  const std::vector<QueuePair*> looked_at = waiting;
  for (QueuePair* qp : looked_at) {
    if (std::find(waiting.begin(), waiting.end(), qp) == waiting.end()) continue;
    if (qp->waits() && now < qp->retry_at_ns) continue;
    qp->Drive();
    worked = true;
  }
  return worked;
}

void RxeDevice::StartPolling() {
  if (polled_.exchange(true)) {
    fabric::Kick();
  } else {
    fabric::AddPollable(this);
  }
}

void RxeDevice::StopPollingIfIdle() {
  {
    std::lock_guard lock(fabric::Lock());
    if (!waiting.empty()) return;
  }
  if (polled_.exchange(false)) fabric::RemovePollable(this);
}

}  // namespace vabi::rxe
