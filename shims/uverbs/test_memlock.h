// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_TEST_MEMLOCK_H_
#define VABI_SHIMS_UVERBS_TEST_MEMLOCK_H_

#include <sys/resource.h>

#include <cstdint>

// While it lives, this process may lock so much. For tests: no machine's own limit is an odd number
// of pages.

namespace vabi {

class Memlock {
 public:
  explicit Memlock(uint64_t pages) {
    getrlimit(RLIMIT_MEMLOCK, &before_);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(pages * 4096 + (pages != 0 ? 1 : 0));
    setrlimit(RLIMIT_MEMLOCK, &limit);
  }
  ~Memlock() { setrlimit(RLIMIT_MEMLOCK, &before_); }
  Memlock(const Memlock&) = delete;
  Memlock& operator=(const Memlock&) = delete;

 private:
  rlimit before_;
};

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_TEST_MEMLOCK_H_
