// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_SYS_USER_SPACE_H_
#define VABI_SHIMS_SYS_USER_SPACE_H_

#include <cstdint>

namespace vabi::sys {

// access_ok: whether a user may have anything there at all (what read and write ask before the
// file is asked: fs/read_write.c).
bool InUserSpace(uint64_t address, uint64_t size);

}  // namespace vabi::sys

#endif  // VABI_SHIMS_SYS_USER_SPACE_H_
