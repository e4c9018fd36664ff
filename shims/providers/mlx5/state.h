// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_STATE_H_
#define VABI_SHIMS_PROVIDERS_MLX5_STATE_H_

#include <map>
#include <memory>
#include <vector>

#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/completion_queue.h"
#include "shims/providers/mlx5/queue_pair.h"
#include "shims/providers/mlx5/receive_queue.h"
#include "shims/providers/mlx5/steering.h"
#include "shims/uverbs/objects.h"

// What the driver keeps for each object of the core.

namespace vabi::mlx5 {

// What can be mapped at an offset that a command gave (struct mlx5_user_mmap_entry).
struct MapEntry {
  enum class Kind : uint8_t { kUarWriteCombining, kUarNonCached, kVar, kDeviceMemory } kind;
  uint64_t length;  // bytes
  uint32_t page_index;
  void* memory = nullptr;  // kDeviceMemory
};

// struct mlx5_ib_ucontext and mlx5_bfreg_info
struct ContextState final : DriverState {
  int version = 0;  // 0: the short request; 2
  bool devx = false, dyn_uar = false, uar_4k = false;
  uint8_t cqe_version = 0;
  uint32_t low_latency = 0;
  uint32_t total_bfregs = 0, dyn_bfregs = 0;  // total: static and dynamic
  uint32_t static_pages = 0, pages = 0;
  std::vector<uint32_t> bfreg_users;     // by number
  std::vector<uint32_t> uars;            // by page; kInvalidUar: none yet
  std::map<uint32_t, MapEntry> entries;  // by command << 16 | index

  // rdma_user_mmap_entry_insert_range for one of the commands first…last: the offset's page, or 0.
  uint32_t Insert(uint32_t first_command, uint32_t last_command, const MapEntry& entry);
};

// An object that a command names by number, as the context that wrote it sees it: the firmware
// tells contexts apart by their uid.
enum class Ownership { kNone, kOwn, kForeign };

struct PdState final : DriverState {
  PdState(const UverbsFile& owner, uint32_t number);
  ~PdState() override;
  // Commands that user space writes name domains by number.
  static Ownership Find(const UverbsFile& file, uint32_t pdn);

  uint32_t device, pdn;
};

struct CqState final : DriverState {
  std::unique_ptr<CompletionQueue> queue;
  uint32_t cqe_size = 64;
  bool real_time = false;  // asked for; queues that complete here must be able to
};

struct SrqState final : DriverState {
  std::unique_ptr<SharedQueue> queue;
  uint32_t entries = 0;  // power of two
};

// What IB_QPT_DRIVER stands for; qp->type since 5.8, qp_sub_type before.
enum class Dynamic : uint8_t { kNone, kInitiator, kTarget };

struct QueuePairState final : DriverState {
  std::unique_ptr<QueuePair> pair;
  Dynamic dynamic = Dynamic::kNone;
  uint32_t bfreg = 0;  // kInvalidBfreg: none of the context's
  ContextState* context = nullptr;
  uint32_t rq_count = 0, rq_shift = 0, rq_sges = 0;
  uint32_t atomic_access = 0, resp_depth = 0;  // qp->trans_qp
  std::unique_ptr<PacketSink> rss;             // of a queue pair that only spreads frames
  uint32_t query_mask = 0;                     // of the QUERY_QP under way
  QpAttributes target;                         // of a DCT: what its NIC was told
};

struct WqState final : DriverState {
  std::unique_ptr<QueuePair> queue;  // receives only, and no endpoint: what flow rules bring
};

struct MwState final : DriverState {
  uint32_t device = 0, index_key = 0;
};

struct DmState final : DriverState {
  uint8_t* base = nullptr;
  uint64_t size = 0;
  uint64_t requested = 0;
  uint32_t page = 0;  // its MapEntry
  ContextState* context = nullptr;
  ~DmState() override;
};

struct UarState final : DriverState {
  uint32_t page = 0;  // its MapEntry
};

inline ContextState& StateOf(Context& context) {
  return *static_cast<ContextState*>(context.driver.get());
}
inline PdState& StateOf(Pd& pd) { return *static_cast<PdState*>(pd.driver.get()); }
inline CqState& StateOf(Cq& cq) { return *static_cast<CqState*>(cq.driver.get()); }
inline SrqState& StateOf(Srq& srq) { return *static_cast<SrqState*>(srq.driver.get()); }
inline QueuePairState& StateOf(Qp& qp) { return *static_cast<QueuePairState*>(qp.driver.get()); }
inline WqState& StateOf(Wq& wq) { return *static_cast<WqState*>(wq.driver.get()); }
inline DmState& StateOf(Dm& dm) { return *static_cast<DmState*>(dm.driver.get()); }
// True when it needs what this NIC has not.
inline bool LacksTime(Cq* cq) {
  return cq != nullptr && StateOf(*cq).real_time && !kCaps.real_time_timestamps;
}
// The context of an object's file.
ContextState& ContextOf(UverbsFile& file);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_STATE_H_
