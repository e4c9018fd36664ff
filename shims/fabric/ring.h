// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_FABRIC_RING_H_
#define VABI_SHIMS_FABRIC_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

// Frames from one process to one other, in memory that both have mapped: one writer, one reader.
// The reader believes nothing that the writer's memory says without looking at its bounds.

namespace vabi::fabric {

inline constexpr uint32_t kRingBytes = 65536;

// In front of every frame.
struct FrameHead {
  enum State : uint32_t {
    kReady = 1,      // written
    kTaken = 2,      // the reader works on it
    kPulled = 3,     // and needs nothing of the writer's memory any more
    kCancelled = 4,  // the writer took it back
    kPad = 5,        // nothing: the next frame is at the ring's start
  };
  uint32_t state;
  uint32_t size;  // bytes with this head, a multiple of 8

  std::atomic_ref<uint32_t> shared_state() { return std::atomic_ref<uint32_t>(state); }
};

struct Ring {
  // Who writes and who reads; the writer sets both when it begins, `writer` last. A ring of
  // somebody else's is not there.
  std::atomic<uint64_t> writer, reader;
  std::atomic<uint32_t> pull;  // the reader's: 1: it may read the writer's memory, 2: it may not
  alignas(64) std::atomic<uint64_t> head;  // bytes written ever
  alignas(64) std::atomic<uint64_t> tail;  // bytes read ever
  alignas(64) uint8_t bytes[kRingBytes];
};

inline uint32_t FrameSize(size_t bytes) { return static_cast<uint32_t>((bytes + 7) & ~size_t{7}); }

// The writer's view.
class RingWriter {
 public:
  RingWriter() = default;
  // Begins anew: whatever was in the ring is gone.
  void Begin(Ring* ring, uint64_t writer, uint64_t reader) {
    ring_ = ring;
    ring->writer.store(0, std::memory_order_release);
    ring->head.store(0, std::memory_order_relaxed);
    ring->tail.store(0, std::memory_order_relaxed);
    ring->pull.store(0, std::memory_order_relaxed);
    ring->reader.store(reader, std::memory_order_relaxed);
    ring->writer.store(writer, std::memory_order_release);
    head_ = 0;
  }
  Ring* ring() const { return ring_; }

  // Room for a frame of `size` bytes (FrameSize), or null. It is sent by Commit, or not at all.
  FrameHead* Reserve(uint32_t size) {
    const uint64_t tail = ring_->tail.load(std::memory_order_acquire);
    if (tail > head_) return nullptr;  // not what a reader does
    const uint32_t at = static_cast<uint32_t>(head_ % kRingBytes), rest = kRingBytes - at;
    const uint32_t pad = rest < size ? rest : 0;
    if (size + pad > kRingBytes - (head_ - tail)) return nullptr;
    if (pad != 0) {
      auto* head = reinterpret_cast<FrameHead*>(ring_->bytes + at);
      head->size = pad;
      head->shared_state().store(FrameHead::kPad, std::memory_order_relaxed);
      head_ += pad;
    }
    auto* frame = reinterpret_cast<FrameHead*>(ring_->bytes + head_ % kRingBytes);
    frame->size = size;
    frame->shared_state().store(FrameHead::kReady, std::memory_order_relaxed);
    return frame;
  }
  // Where the frame of the last Reserve ends: once the reader is there, the frame is done with.
  uint64_t Commit(const FrameHead* frame) {
    head_ += frame->size;
    ring_->head.store(head_, std::memory_order_release);
    return head_;
  }
  uint64_t written() const { return head_; }
  bool Done(uint64_t end) const { return ring_->tail.load(std::memory_order_acquire) >= end; }

 private:
  Ring* ring_ = nullptr;
  uint64_t head_ = 0;
};

// The reader's.
class RingReader {
 public:
  RingReader() = default;
  explicit RingReader(Ring* ring)
      : ring_(ring), tail_(ring->tail.load(std::memory_order_relaxed)) {}

  // The oldest frame, marked as taken; null: none. Cancelled ones are passed over. *broken: what
  // stands there is no ring.
  FrameHead* Next(bool* broken) {
    *broken = false;
    for (;;) {
      const uint64_t head = ring_->head.load(std::memory_order_acquire);
      if (head == tail_) return nullptr;
      const uint32_t at = static_cast<uint32_t>(tail_ % kRingBytes);
      auto* frame = reinterpret_cast<FrameHead*>(ring_->bytes + at);
      size_ = frame->size;
      if (head < tail_ || head - tail_ > kRingBytes || size_ < sizeof(FrameHead) ||
          size_ % 8 != 0 || size_ > kRingBytes - at || size_ > head - tail_) {
        *broken = true;
        return nullptr;
      }
      uint32_t expected = FrameHead::kReady;
      if (frame->shared_state().compare_exchange_strong(expected, FrameHead::kTaken)) return frame;
      Consume();
    }
  }
  // Of the frame that Next gave, as it was looked at.
  uint32_t size() const { return size_; }
  void Consume() {
    tail_ += size_;
    ring_->tail.store(tail_, std::memory_order_release);
  }
  Ring* ring() const { return ring_; }

 private:
  Ring* ring_ = nullptr;
  uint64_t tail_ = 0;
  uint32_t size_ = 0;
};

}  // namespace vabi::fabric

#endif  // VABI_SHIMS_FABRIC_RING_H_
