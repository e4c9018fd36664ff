// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_COMMON_MAP_ENTRIES_H_
#define VABI_SHIMS_PROVIDERS_COMMON_MAP_ENTRIES_H_

#include <cstdint>
#include <map>

// What a context lets a process map, by offset: ucontext->mmap_xa (struct rdma_user_mmap_entry,
// core/ib_core_uverbs.c, since 5.5; before, drivers kept lists of the same use).

namespace vabi::provider {

struct MapEntry {
  uint64_t length = 0;    // bytes
  const char* kind = "";  // for the trace; static storage
  uint32_t flag = 0;      // the driver's (mmap_flag)
  uint64_t address = 0;   // the driver's
};

class MapEntries {
 public:
  // rdma_user_mmap_entry_insert_range: the offset in bytes of the first free pages, or kFull.
  uint64_t Insert(const MapEntry& entry, uint32_t min_page = 0, uint32_t max_page = UINT32_MAX);
  static constexpr uint64_t kFull = UINT64_MAX;
  // rdma_user_mmap_entry_get_pgoff: null where no entry begins.
  const MapEntry* Find(uint64_t offset) const;
  // rdma_user_mmap_entry_get: of exactly that length in whole pages.
  const MapEntry* FindExact(uint64_t offset, uint64_t length) const;
  // rdma_user_mmap_entry_remove: the offset is free again; what is mapped stays so.
  void Remove(uint64_t offset);

 private:
  std::map<uint64_t, MapEntry> entries_;  // by page
};

}  // namespace vabi::provider

#endif  // VABI_SHIMS_PROVIDERS_COMMON_MAP_ENTRIES_H_
