// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYS_LATER_H_
#define VABI_SHIMS_SYS_LATER_H_

#include <cstdint>
#include <functional>

namespace vabi::sys {

// Runs `what` after that many nanoseconds, on a thread of its own that lives only while something
// waits. Nothing is kept over fork: what waited in the parent happens there alone.
void Later(uint64_t delay_ns, std::function<void()> what);

}  // namespace vabi::sys

#endif  // VABI_SHIMS_SYS_LATER_H_
