// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CELLS_JOURNEY_STEP_H_
#define VABI_HARNESS_CELLS_JOURNEY_STEP_H_

#include <cstdarg>
#include <cstdint>

// The journey's report: one JSON object a line on standard output, flushed at once, so that a crash
// or a hang still tells how far it came.
//
//   {"step": "create_cq", "ok": true}
//   {"step": "reg_mr", "ok": false, "errno": "EINVAL", "note": "…"}
//   {"step": "ask:xrcd", "ok": false, "optional": true, "asked": true, "errno": "EOPNOTSUPP"}
//   {"step": "query_device", "ok": true, "values": {"max_qp": 262144}}

namespace journey {

// Number of steps that failed and were not optional.
int Failures();

// A step that must work for the cell to be whole; returns ok.
bool Must(const char* step, bool ok, int error = 0, const char* note = nullptr);
// A feature that the device or kernel may lack; returns ok.
bool May(const char* step, bool ok, int error = 0, const char* note = nullptr);
// Something that is asked to learn what the kernel, the driver and the library say to it: any
// answer is one, so that "no" is no loss. What was answered before and is refused later is told by
// the gate.
bool Ask(const char* what, bool ok, int error = 0);
// A fact worth having in the results.
void Value(const char* name, uint64_t value);

const char* ErrnoName(int error);

}  // namespace journey

#endif  // VABI_HARNESS_CELLS_JOURNEY_STEP_H_
