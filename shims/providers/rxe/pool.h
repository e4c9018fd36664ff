// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_RXE_POOL_H_
#define VABI_SHIMS_PROVIDERS_RXE_POOL_H_

#include <atomic>
#include <cstdint>
#include <utility>

// rxe_pool.c: how many objects of one kind a device has, in all contexts together. Usable without a
// lock.

namespace vabi::rxe {

class Pool {
 public:
  // `kernels`: how many of the `max` are the kernel's own.
  Pool(int64_t max, int64_t kernels) : max_(max), count_(kernels) {}

  // An object's place in the pool. It is taken first and then found to be one too many, as by
  // atomic_inc_return.
  class Seat {
   public:
    Seat() = default;
    explicit Seat(Pool* pool) : pool_(pool), over_(++pool->count_ > pool->max_) {}
    Seat(Seat&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), over_(other.over_) {}
    Seat& operator=(Seat&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(over_, other.over_);
      return *this;
    }
    ~Seat() {
      if (pool_ != nullptr) --pool_->count_;
    }
    bool over() const { return over_; }

   private:
    Pool* pool_ = nullptr;
    bool over_ = false;
  };
  Seat Take() { return Seat(this); }

 private:
  const int64_t max_;
  std::atomic<int64_t> count_;
};

}  // namespace vabi::rxe

#endif  // VABI_SHIMS_PROVIDERS_RXE_POOL_H_
