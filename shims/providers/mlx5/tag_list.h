// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_TAG_LIST_H_
#define VABI_SHIMS_PROVIDERS_MLX5_TAG_LIST_H_

#include <cstdint>
#include <list>
#include <optional>

#include "shims/fabric/fabric.h"

// The list of a shared queue that matches tags (XRQ): receives that messages choose by the tag in
// their header. Numbers in work queue elements and completions: rdma-core's mlx5dv.h, cq.c.

namespace vabi::mlx5 {

// struct ibv_tmh, ibv_rvh (rdma-core's tm_types.h)
inline constexpr uint32_t kTagHeader = 16, kRendezvousHeader = 32;
enum TagOpcode : uint8_t { kTagNone = 0, kTagRendezvous = 1, kTagFinish = 2, kTagEager = 3 };

struct TagEntry {
  uint16_t index = 0;
  uint64_t tag = 0, mask = 0;
  fabric::Sge buffer = {};
};

class TagList {
 public:
  // The place that the element before has named; the first one is 0.
  void Append(TagEntry entry, uint16_t next) {
    entry.index = next_;
    next_ = next;
    entries_.push_back(entry);
  }
  bool Remove(uint16_t index) {
    return entries_.remove_if([&](const TagEntry& entry) { return entry.index == index; }) != 0;
  }
  // The oldest one that matches; it is taken off the list.
  std::optional<TagEntry> Take(uint64_t tag) {
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      if (((at->tag ^ tag) & at->mask) != 0) continue;
      const TagEntry taken = *at;
      entries_.erase(at);
      return taken;
    }
    return std::nullopt;
  }

  // Messages that found no entry: as the NIC counts them, and as the program has told.
  uint16_t unexpected = 0, told = 0;

 private:
  std::list<TagEntry> entries_;
  uint16_t next_ = 0;
};

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_TAG_LIST_H_
