// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_TRACE_DESCRIPTOR_H_
#define VABI_SHIMS_TRACE_DESCRIPTOR_H_

namespace vabi::trace {

// The descriptor behind this process' trace, or -1: none. Programs must not close it.
int Descriptor();
// The program wants the number: the trace goes on by another, which is the answer; -1: no more.
int MoveDescriptor();

}  // namespace vabi::trace

#endif  // VABI_SHIMS_TRACE_DESCRIPTOR_H_
