// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_RECEIVE_QUEUE_H_
#define VABI_SHIMS_PROVIDERS_MLX5_RECEIVE_QUEUE_H_

#include <cstdint>
#include <memory>

#include "shims/fabric/fabric.h"
#include "shims/providers/mlx5/completion_queue.h"
#include "shims/providers/mlx5/tag_list.h"
#include "shims/uverbs/objects.h"

// Receives in the program's memory: a queue pair's own ring, or a shared queue. Calls with
// fabric::Lock() held.

namespace vabi::mlx5 {

// Elements of a fixed size in a ring; the program counts them in the doorbell record.
class ReceiveRing {
 public:
  struct Geometry {
    uint64_t buffer = 0;
    uint32_t count = 0;      // power of two; 0: no ring
    uint32_t shift = 0;      // log2 of an element's bytes
    bool signature = false;  // each element begins with a signature segment
    uint64_t doorbell = 0;   // the 16-bit counter of posted elements
  };

  explicit ReceiveRing(const Geometry& geometry) : geometry_(geometry) {}
  bool Pop(fabric::RecvRequest* out);
  // The one that was popped last is the first again.
  void Return() { --head_; }
  // Takes an element without looking into it. False: none there.
  bool Skip(uint16_t* index);
  void Reset() { head_ = producer_ = 0; }

 private:
  bool Empty();

  Geometry geometry_;
  uint16_t head_ = 0, producer_ = 0;
};

// A shared receive queue: elements are taken along a chain that the program keeps.
class SharedQueue {
 public:
  struct Geometry {
    uint64_t buffer;
    uint32_t count;
    uint32_t shift;
    bool signature;
    uint64_t doorbell;
  };

  // `tag`: what completions of an XRC queue carry: its user index, or before cqe_version 1 its
  // number.
  SharedQueue(uint32_t number, uint32_t tag, const Geometry& geometry, Srq* srq)
      : number_(number), tag_(tag), geometry_(geometry), srq_(srq) {}
  SharedQueue(const SharedQueue&) = delete;
  SharedQueue& operator=(const SharedQueue&) = delete;

  uint32_t number() const { return number_; }
  uint32_t tag() const { return tag_; }
  Srq& srq() const { return *srq_; }
  bool Pop(fabric::RecvRequest* out);
  // A queue that matches tags, and completes in a queue of its own.
  void MatchTags(CompletionQueue* queue) {
    tags_ = std::make_unique<TagList>();
    tag_queue_ = queue;
  }
  TagList* tags() const { return tags_.get(); }
  CompletionQueue* tag_queue() const { return tag_queue_; }
  // IB_EVENT_SRQ_LIMIT_REACHED once fewer than so many are left; 0: never.
  void Arm(uint32_t limit) { limit_ = limit; }
  uint32_t limit() const { return limit_; }

 private:
  void Report(uint32_t event);

  uint32_t number_, tag_;
  Geometry geometry_;
  Srq* srq_;
  uint16_t head_ = 0;  // index of the next element
  uint16_t taken_ = 0, posted_ = 0;
  uint32_t limit_ = 0;
  std::unique_ptr<TagList> tags_;
  CompletionQueue* tag_queue_ = nullptr;
};

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_RECEIVE_QUEUE_H_
