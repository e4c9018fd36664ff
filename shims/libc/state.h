// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_LIBC_STATE_H_
#define VABI_SHIMS_LIBC_STATE_H_

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "harness/world/image.h"

// What every wrapper looks at first: small, flat and readable without a lock, so that calls which
// do not concern the world cost a load and a branch.

namespace vabi::libc {

// What the shim knows of a descriptor, as bits of one byte. 0: nothing, pass on.
enum FdBits : uint8_t {
  kFake = 1,        // stands for a File
  kDirectory = 2,   // a folder from which a relative path can reach a redirected one
  kSysfs = 4,       // opened below a redirected /sys
  kWatch = 8,       // an inotify descriptor that watches a folder of the world's /dev
  kDevFolder = 16,  // the world's /dev/infiniband
  kSocket = 32,     // with kFake: the File is a SocketFile
  kReadOnly = 64,   // with kFake: File::ReadOnly
  kOwn = 128,       // the shim's own (the trace): for the program it is not open
};

inline constexpr int kMaxFds = 1 << 20;
extern uint8_t g_fd_bits[kMaxFds];

inline uint8_t BitsOf(int fd) {
  if (static_cast<unsigned>(fd) >= static_cast<unsigned>(kMaxFds)) return 0;
  return __atomic_load_n(&g_fd_bits[fd], __ATOMIC_RELAXED);
}
inline void SetBits(int fd, uint8_t bits) {
  if (static_cast<unsigned>(fd) < static_cast<unsigned>(kMaxFds)) {
    __atomic_store_n(&g_fd_bits[fd], bits, __ATOMIC_RELAXED);
  }
}

enum class Mode : uint8_t {
  kNotStarted,
  kPassThrough,  // no world and no redirects: everything is passed on
  kActive,
};
extern std::atomic<Mode> g_mode;

// Reads the environment and maps the world; ends the process with one line on standard error when
// the world does not fit this shim. Safe to call at any time, from any thread.
void Start();

inline bool Active() {
  Mode mode = g_mode.load(std::memory_order_acquire);
  if (__builtin_expect(mode == Mode::kNotStarted, 0)) {
    Start();
    mode = g_mode.load(std::memory_order_acquire);
  }
  return mode == Mode::kActive;
}

// The mapped world; null when there is none (redirects alone, or pass-through).
const WorldImage* Image();
// Makes the fake kernels ready; before the first descriptor of theirs. False: no world.
bool InstallFakeKernels();
// The program puts a file of its own on a number that the shim keeps.
void MoveOwn(int fd);
// A line of its own in the trace.
void TraceEvent(const char* name, const char* text);

// The errno of the calling program stays as it was unless a call of its own fails.
class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

// -errno to libc's convention.
template <typename T>
T Answer(T result) {
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace vabi::libc

#endif  // VABI_SHIMS_LIBC_STATE_H_
