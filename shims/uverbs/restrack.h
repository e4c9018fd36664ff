// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_RESTRACK_H_
#define VABI_SHIMS_UVERBS_RESTRACK_H_

#include <cstdint>
#include <vector>

#include "harness/world/image.h"
#include "shims/uverbs/objects.h"

// core/restrack.c: what programs have of each device, for RDMA netlink. It stands in the file
// "restrack" of the run folder, so that every process of the world sees what all of them have; in a
// world without a run folder it is the process' own. What the kernel itself has is not in it.

namespace vabi {

// enum rdma_restrack_type, as far as it is kept
enum class TrackType : uint8_t { kPd, kCq, kQp, kCmId, kMr, kCtx, kSrq, kCount };

// A struct rdma_restrack_entry with what nldev.c tells of the object around it. `id` is unique of a
// device and a type; that of a queue pair is its number.
struct Tracked {
  TrackType type;
  uint8_t device;
  uint32_t id, pid;
  uint32_t context, pd, cq, srq;  // ids of what it belongs to
  uint32_t users;                 // ib_pd.usecnt, ib_cq.usecnt
  uint32_t cqe;
  uint32_t lkey, rkey;
  uint64_t length, iova;
  uint32_t remote_qpn, rq_psn, sq_psn;
  uint8_t kind, state, port, migration;  // kind: enum ib_qp_type, ib_srq_type
  uint8_t connected;                     // the queue pair has a remote number
  uint8_t has_srq;
  uint32_t qpn, port_space;          // of a CM identifier
  uint8_t source[128], target[128];  // struct sockaddr_storage
};

// Writes the object's entry, anew if it has one. Nothing to do for types that are not kept.
void Track(Object& object);
// The entries of what it belongs to: their use counts have changed.
void TrackParents(Object& object);
void Track(Context& context);
void Untrack(Object& object);
void Untrack(Context& context);
// Of other parts of the fake kernel: `*slot` is 0 at first. The id is the entry's own to give.
void TrackEntry(const WorldImage& image, Tracked entry, uint32_t* slot);
void UntrackEntry(const WorldImage& image, uint32_t* slot);

// Some objects had no room here: what is found is not all that there is.
bool LostTrack(const WorldImage& image);
// What there is of a type on a device, by id.
std::vector<Tracked> FindTracked(const WorldImage& image, uint32_t device, TrackType type);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_RESTRACK_H_
