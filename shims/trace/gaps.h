// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_TRACE_GAPS_H_
#define VABI_SHIMS_TRACE_GAPS_H_

#include "shims/trace/trace.h"

// Traces that hold only gaps: what is not modelled, and what went past the shim. A path behind this
// word names one. Enabled() is false there, so that they cost what no trace costs.

namespace vabi::trace {

inline constexpr char kGaps[] = "gaps:";

// Does this record belong in the trace that is open? Always when Enabled().
bool Wants(const Record& record);

// An overlay let `step` fail, as the trace names it. A whole trace has the command's own line.
void Fault(const char* step);

// Event(), by a descriptor that is closed again, for a process that has no trace open: a child of
// vfork, another user. Where the file cannot be written, standard error is told. No allocation.
void EventTo(const char* path, const char* name, const char* text);

}  // namespace vabi::trace

#endif  // VABI_SHIMS_TRACE_GAPS_H_
