// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYS_WAITING_H_
#define VABI_SHIMS_SYS_WAITING_H_

#include <pthread.h>

// A read that waits is where a thread may be cancelled (pthreads(7)). A raw system call is none,
// unless the thread may be cancelled at any moment.

namespace vabi::sys {

// Runs `call`, which does nothing but wait in the kernel; the caller holds no lock. A cancelled
// thread leaves by unwinding, with libc's unwinder, which does not work together with the one that
// the shim has linked in: no function between the program and here may have anything to destroy at
// the call that leads here.
template <typename Function, typename... Arguments>
auto Waiting(Function* call, Arguments... arguments) {
  Function* volatile unknown = call;  // else the compiler knows that nothing leaves it that way
  int before = PTHREAD_CANCEL_DEFERRED;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  const auto result = unknown(arguments...);
  pthread_setcanceltype(before, nullptr);
  return result;
}

}  // namespace vabi::sys

#endif  // VABI_SHIMS_SYS_WAITING_H_
