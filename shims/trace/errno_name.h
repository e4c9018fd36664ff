// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_TRACE_ERRNO_NAME_H_
#define VABI_SHIMS_TRACE_ERRNO_NAME_H_

namespace vabi::trace {

// "EINVAL" for 22; null for a number that has no name here.
const char* ErrnoName(int error);

}  // namespace vabi::trace

#endif  // VABI_SHIMS_TRACE_ERRNO_NAME_H_
