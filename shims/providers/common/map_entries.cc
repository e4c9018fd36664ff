// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/common/map_entries.h"

namespace vabi::provider {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t Pages(uint64_t length) { return (length + kPage - 1) / kPage; }

}  // namespace

uint64_t MapEntries::Insert(const MapEntry& entry, uint32_t min_page, uint32_t max_page) {
  const uint64_t pages = Pages(entry.length);
  uint64_t first = min_page;
  for (const auto& [page, other] : entries_) {
    if (page + Pages(other.length) <= first) continue;
    if (page >= first + pages) break;
    first = page + Pages(other.length);
  }
  if (first > max_page || first + pages > uint64_t{UINT32_MAX}) return kFull;
  entries_[first] = entry;
  return first * kPage;
}

const MapEntry* MapEntries::Find(uint64_t offset) const {
  const auto found = entries_.find(offset / kPage);
  return found == entries_.end() ? nullptr : &found->second;
}

const MapEntry* MapEntries::FindExact(uint64_t offset, uint64_t length) const {
  const MapEntry* entry = Find(offset);
  return entry != nullptr && Pages(entry->length) == Pages(length) ? entry : nullptr;
}

void MapEntries::Remove(uint64_t offset) { entries_.erase(offset / kPage); }

}  // namespace vabi::provider
