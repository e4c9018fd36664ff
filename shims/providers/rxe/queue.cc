// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/rxe/queue.h"

#include <errno.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "shims/sys/shared_memory.h"
#include "shims/sys/sys.h"

namespace vabi::rxe {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kCacheLine = 64;  // elements are never smaller (cache_line_size(), x86)

uint64_t PageAlign(uint64_t size) { return (size + kPage - 1) & ~(kPage - 1); }

}  // namespace

int64_t Arena::Allocate(uint64_t size, uint64_t alignment) {
  // rxe_create_mmap_info: offsets begin behind the first page and only ever grow.
  const auto align = static_cast<int64_t>(alignment);
  if (next_ == 0) next_ = (static_cast<int64_t>(kPage) + align - 1) / align * align;
  const int64_t offset = next_;
  next_ = (offset + static_cast<int64_t>(size) + align - 1) / align * align;
  return offset;
}

void Arena::Free(int64_t offset) {
  std::erase_if(pending, [offset](const Pending& one) { return one.offset == offset; });
}

void Queue::Swap(Queue& other) {
  std::swap(arena_, other.arena_);
  std::swap(layout_, other.layout_);
  std::swap(base_, other.base_);
  std::swap(offset_, other.offset_);
  std::swap(size_, other.size_);
  std::swap(used_, other.used_);
  std::swap(log2_, other.log2_);
  std::swap(mask_, other.mask_);
  std::swap(own_, other.own_);
  std::swap(kind_, other.kind_);
}

int Queue::Create(Arena& arena, const Layout& layout, Kind kind, uint32_t* count, uint64_t element,
                  uint64_t alignment) {
  element = std::bit_ceil(std::max(element, kCacheLine));
  const uint64_t slots = std::bit_ceil(static_cast<uint64_t>(*count) + 1);
  const uint64_t used = layout.data + slots * element;
  const uint64_t size = PageAlign(used);
  void* base = sys::MakeShared(size);
  if (sys::IsError(base)) return -ENOMEM;
  arena_ = &arena;
  layout_ = &layout;
  base_ = static_cast<uint8_t*>(base);
  offset_ = arena.Allocate(size, alignment);
  size_ = size;
  used_ = used;
  log2_ = static_cast<uint32_t>(std::countr_zero(element));
  mask_ = static_cast<uint32_t>(slots - 1);
  own_ = 0;
  kind_ = kind;
  Store<uint32_t>(base_, layout.log2_elem_size, log2_);
  Store<uint32_t>(base_, layout.index_mask, mask_);
  *count = mask_;
  return 0;
}

void Queue::Destroy() {
  if (base_ == nullptr) return;
  sys::Munmap(base_, size_);
  arena_->Free(offset_);
  base_ = nullptr;
}

void Queue::AnnounceTo(const Context* context, const char* kind) {
  // list_add: newest first
  arena_->pending.insert(arena_->pending.begin(), {context, offset_, size_, kind, base_});
}

void Queue::ZeroElements() { std::memset(base_ + layout_->data, 0, used_ - layout_->data); }

void Queue::TakeOver(Queue& old, uint64_t element) {
  uint32_t from = old.Consumer();
  const uint32_t end = old.Producer();
  uint32_t to = 0;
  while (from != end) {
    std::memcpy(Slot(to), old.Slot(from), element);
    ++to;
    from = (from + 1) & old.mask_;
  }
  if (kind_ == Kind::kToClient) {
    own_ = to & mask_;
  }
  Shared(layout_->producer_index).store(to & mask_, std::memory_order_release);
}

}  // namespace vabi::rxe
