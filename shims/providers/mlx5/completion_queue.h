// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_COMPLETION_QUEUE_H_
#define VABI_SHIMS_PROVIDERS_MLX5_COMPLETION_QUEUE_H_

#include <cstdint>

#include "shims/uverbs/objects.h"

// A completion queue as the NIC sees it: it writes elements into the program's buffer, and reports
// an event where the program has armed it. All calls with fabric::Lock() held.

namespace vabi::mlx5 {

struct CqeText {  // one element, all but its owner
  uint8_t bytes[64] = {};
  uint8_t opcode = 0;      // CqeOpcode
  bool solicited = false;  // errors count as solicited
};

class CompletionQueue {
 public:
  struct Geometry {
    uint64_t buffer;
    uint32_t entries;   // power of two
    uint32_t cqe_size;  // 64 or 128
    uint64_t doorbell;  // address of its record
    bool pads = false;  // of 128 bytes, and all of them are written
  };

  // `cq`: whom events are reported to; null: nobody.
  CompletionQueue(uint32_t number, const Geometry& geometry, Cq* cq, bool ignores_overrun);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  uint32_t number() const { return number_; }
  bool in_error() const { return error_; }
  uint32_t entries() const { return geometry_.entries; }
  // False: it does not fit (or did not, once): the queue is in error from then on.
  bool Write(const CqeText& text);
  // Elements that the program has not polled.
  uint32_t Outstanding();
  // Goes on in another buffer, behind a RESIZE_CQ element in the old one.
  void Resize(uint64_t buffer, uint32_t entries);
  // Looks whether the program has armed it. True when an event was reported.
  bool PollArm();
  bool wants_polling() const { return cq_ != nullptr && cq_->channel != nullptr; }

 private:
  void Put(const CqeText& text);
  bool Full();
  bool MaybeNotify();

  uint32_t number_;
  Geometry geometry_;
  Cq* cq_;
  bool ignores_overrun_;
  bool error_ = false;
  uint32_t producer_ = 0;   // never wraps at the queue's size
  uint32_t consumer_ = 0;   // 24 bits, as last read
  uint32_t solicited_ = 0;  // producer_ behind the last solicited element
  bool any_solicited_ = false;
  uint32_t arm_record_;  // as last seen, host order
  bool armed_ = false;
  bool fired_ = false;
  uint32_t fired_sequence_ = 0;
};

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_COMPLETION_QUEUE_H_
