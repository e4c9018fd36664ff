// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_LIBC_MAPPED_H_
#define VABI_SHIMS_LIBC_MAPPED_H_

// Which libraries the processes of a world run on. The file that VERBS_ABI_MAPPED names gets a line
// "PID PATH" for each loaded object: when a process starts, opens a device, and ends. Unless it is
// set nothing is told.

namespace vabi::libc {

// What the process has loaded since it was last told. Any thread, not between vfork and exec.
void TellMapped();

}  // namespace vabi::libc

#endif  // VABI_SHIMS_LIBC_MAPPED_H_
