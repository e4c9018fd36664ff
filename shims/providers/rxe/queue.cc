// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/rxe/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "shims/sys/sys.h"

namespace vabi::rxe {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kCacheLine = 64;  // elements are never smaller (cache_line_size(), x86)
// The memory file's descriptor stands high, out of the way of programs that count on low numbers.
constexpr int kLowestFd = 500;

uint64_t PageAlign(uint64_t size) { return (size + kPage - 1) & ~(kPage - 1); }

}  // namespace

Arena::~Arena() {
  if (fd_ >= 0) sys::Close(fd_);
}

int64_t Arena::Allocate(uint64_t size, uint64_t alignment) {
  if (fd_ < 0) {
    const int fd = sys::MemfdCreate("rxe queues", MFD_CLOEXEC);
    if (fd < 0) return fd;
    const long high = sys::Syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kLowestFd);
    fd_ = high >= 0 ? static_cast<int>(high) : fd;
    if (high >= 0) sys::Close(fd);
  }
  // rxe_create_mmap_info: offsets begin behind the first page and only ever grow.
  const auto align = static_cast<int64_t>(alignment);
  if (next_ == 0) next_ = (static_cast<int64_t>(kPage) + align - 1) / align * align;
  const int64_t offset = next_;
  const int64_t end = offset + static_cast<int64_t>(size);
  if (const int error = sys::Ftruncate(fd_, end); error < 0) return error;
  next_ = (end + align - 1) / align * align;
  return offset;
}

void Arena::Free(int64_t offset, uint64_t size) {
  // A program that still has it mapped finds zeros there; with rxe it would keep the pages.
  std::erase_if(pending, [offset](const Pending& one) { return one.offset == offset; });
  sys::Syscall(SYS_fallocate, fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
               static_cast<long>(size));
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
  const int64_t offset = arena.Allocate(size, alignment);
  if (offset < 0) return -ENOMEM;
  void* base = sys::Mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, arena.fd(), offset);
  if (sys::IsError(base)) {
    arena.Free(offset, size);
    return -ENOMEM;
  }
  arena_ = &arena;
  layout_ = &layout;
  base_ = static_cast<uint8_t*>(base);
  offset_ = offset;
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
  arena_->Free(offset_, size_);
  base_ = nullptr;
}

void Queue::AnnounceTo(const Context* context, const char* kind) {
  // list_add: newest first
  arena_->pending.insert(arena_->pending.begin(), {context, offset_, size_, kind});
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
