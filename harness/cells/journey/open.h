// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CELLS_JOURNEY_OPEN_H_
#define VABI_HARNESS_CELLS_JOURNEY_OPEN_H_

#include <infiniband/verbs.h>

namespace journey {

// Opens the device of that name, or the first (wanted: null). Null when there is none or it does
// not open; the report says which step failed.
ibv_context* Open(const char* wanted);

}  // namespace journey

#endif  // VABI_HARNESS_CELLS_JOURNEY_OPEN_H_
