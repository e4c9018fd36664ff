// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYS_OWN_FD_H_
#define VABI_SHIMS_SYS_OWN_FD_H_

namespace vabi::sys {

// Moves a descriptor that the shim keeps for itself to where it takes no number from the program:
// beyond what RLIMIT_NOFILE lets the program have, or, where that limit is large or must not be
// raised for a moment, as high as is cheap. Close-on-exec. The new number; `fd` itself when there
// is no other.
int MoveAside(int fd);

}  // namespace vabi::sys

#endif  // VABI_SHIMS_SYS_OWN_FD_H_
