// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_RXE_QUEUE_H_
#define VABI_SHIMS_PROVIDERS_RXE_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shims/providers/rxe/layout.h"
#include "shims/uverbs/driver.h"

// The queues that rxe shares with a program (rxe_queue.c, rxe_mmap.c): a header with two indices
// and elements of a power of two bytes. Each has an offset in its device, which the program is told
// to give to mmap.

namespace vabi::rxe {

class Queue;

// Where the device's queues lie for mmap, and those that wait to be mapped (rxe_dev.pending_mmaps).
// Used with the fabric's lock held.
class Arena {
 public:
  // Room for `size` bytes: its offset.
  int64_t Allocate(uint64_t size, uint64_t alignment);
  // Nobody maps it any more.
  void Free(int64_t offset);

  // rxe_mmap: a queue may be mapped once, by the context that made it.
  struct Pending {
    const Context* context;
    int64_t offset;
    uint64_t size;
    const char* kind;
    void* memory;
  };
  std::vector<Pending> pending;

 private:
  int64_t next_ = 0;
};

class Queue {
 public:
  // The producer is the program (work queues) or rxe (completion queues); the other index is rxe's
  // view of what it has consumed or produced, of which the shared one is but a copy.
  enum class Kind : uint8_t { kFromClient, kToClient };

  Queue() = default;
  ~Queue() { Destroy(); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  void Swap(Queue& other);

  // rxe_queue_init: at least `count` elements of at least `element` bytes; count becomes what fits.
  // 0, -ENOMEM.
  int Create(Arena& arena, const Layout& layout, Kind kind, uint32_t* count, uint64_t element,
             uint64_t alignment);
  void Destroy();
  bool exists() const { return base_ != nullptr; }
  void AnnounceTo(const Context* context, const char* kind);

  int64_t offset() const { return offset_; }
  uint64_t size() const { return size_; }  // bytes, whole pages: mminfo.size
  uint32_t mask() const { return mask_; }
  uint64_t element() const { return 1ULL << log2_; }

  // Indices, always within the mask: the program may write anything.
  uint32_t Producer() const {
    return kind_ == Kind::kToClient
               ? own_
               : Shared(layout_->producer_index).load(std::memory_order_acquire) & mask_;
  }
  uint32_t Consumer() const {
    return kind_ == Kind::kFromClient
               ? own_
               : Shared(layout_->consumer_index).load(std::memory_order_acquire) & mask_;
  }
  bool Empty() const { return Producer() == Consumer(); }
  bool Full() const { return ((Producer() + 1) & mask_) == Consumer(); }
  uint32_t Count() const { return (Producer() - Consumer()) & mask_; }
  uint8_t* Slot(uint32_t index) const {
    return base_ + layout_->data + (static_cast<uint64_t>(index & mask_) << log2_);
  }
  void AdvanceConsumer() { SetOwn(own_ + 1); }
  // kFromClient: as if the program had filled the slot at Producer(); slots before it become
  // visible.
  void AdvanceClientProducer() {
    Shared(layout_->producer_index).store((Producer() + 1) & mask_, std::memory_order_release);
  }
  void RetreatConsumer() { SetOwn(own_ - 1); }
  void AdvanceProducer() { SetOwn(own_ + 1); }
  // rxe_queue_reset, after the queue was drained.
  void ZeroElements();

  // resize_finish: takes over what `old` holds. The new queue is empty and of the same kind.
  void TakeOver(Queue& old, uint64_t element);

 private:
  std::atomic<uint32_t>& Shared(uint32_t at) const {
    return *reinterpret_cast<std::atomic<uint32_t>*>(base_ + at);
  }
  void SetOwn(uint32_t index) {
    own_ = index & mask_;
    Shared(kind_ == Kind::kToClient ? layout_->producer_index : layout_->consumer_index)
        .store(own_, std::memory_order_release);
  }

  Arena* arena_ = nullptr;
  const Layout* layout_ = nullptr;
  uint8_t* base_ = nullptr;
  int64_t offset_ = 0;
  uint64_t size_ = 0;
  uint64_t used_ = 0;  // bytes, header and elements
  uint32_t log2_ = 0, mask_ = 0;
  uint32_t own_ = 0;
  Kind kind_ = Kind::kFromClient;
};

}  // namespace vabi::rxe

#endif  // VABI_SHIMS_PROVIDERS_RXE_QUEUE_H_
