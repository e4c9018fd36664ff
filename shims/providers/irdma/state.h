// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_IRDMA_STATE_H_
#define VABI_SHIMS_PROVIDERS_IRDMA_STATE_H_

#include <algorithm>
#include <vector>

#include "shims/providers/common/map_entries.h"
#include "shims/uverbs/objects.h"

// What the driver keeps for each object of the core.

namespace vabi::irdma {

// enum irdma_memreg_type
enum class Memory : uint16_t { kRegion = 0, kQp = 1, kCq = 2, kSrq = 3 };

struct MrState final : DriverState {
  Memory type = Memory::kRegion;
  uint64_t base = 0;      // user_base: the address that it is found by
  bool writable = false;  // ib_umem.writable
  int rings = 0;          // queues that stand in it (user_ring_refs, less one)
};

// struct irdma_ucontext
struct ContextState final : DriverState {
  bool legacy = false, raw_attributes = false;
  provider::MapEntries entries;
  // Memory that was registered for queues, and that no queue has taken yet; the newest is last.
  std::vector<MrState*> waiting;

  // irdma_get_pbl: the first of that kind and place, which waits no longer. Null: none.
  MrState* Take(Memory type, uint64_t base) {
    const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const MrState* mr) {
      return mr->type == type && mr->base == base;
    });
    if (found == waiting.end()) return nullptr;
    MrState* mr = *found;
    waiting.erase(found);
    ++mr->rings;
    return mr;
  }
  void Forget(const MrState* mr) { std::erase(waiting, mr); }
};

struct CqState final : DriverState {
  MrState* buffer = nullptr;
  MrState* shadow = nullptr;
  uint32_t size = 0;  // elements
};

// IRDMA_QP_STATE_*, as far as a queue pair gets here
enum class Hardware : uint8_t { kInvalid, kIdle, kRtr, kRts, kSqd, kError };

struct QpState final : DriverState {
  MrState* buffer = nullptr;
  uint32_t max_send_wr = 0, max_recv_wr = 0;
  QpCapabilities asked;
  Hardware hardware = Hardware::kInvalid;
};

inline ContextState& StateOf(Context& context) {
  return *static_cast<ContextState*>(context.driver.get());
}
inline MrState& StateOf(Mr& mr) { return *static_cast<MrState*>(mr.driver.get()); }
inline CqState& StateOf(Cq& cq) { return *static_cast<CqState*>(cq.driver.get()); }
inline QpState& StateOf(const Qp& qp) { return *static_cast<QpState*>(qp.driver.get()); }

}  // namespace vabi::irdma

#endif  // VABI_SHIMS_PROVIDERS_IRDMA_STATE_H_
