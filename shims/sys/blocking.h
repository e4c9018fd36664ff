// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYS_BLOCKING_H_
#define VABI_SHIMS_SYS_BLOCKING_H_

namespace vabi::sys {

// O_NONBLOCK of the descriptor as it stands now; false of one that is not open.
bool IsNonBlocking(int fd);

}  // namespace vabi::sys

#endif  // VABI_SHIMS_SYS_BLOCKING_H_
