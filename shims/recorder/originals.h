// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_RECORDER_ORIGINALS_H_
#define VABI_SHIMS_RECORDER_ORIGINALS_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

// The functions that the recorder stands before, looked up on first use.

namespace vabi::recorder {

enum class Symbol : uint16_t {
#define VABI_SYM(ret, name, params) name,
#include "shims/recorder/symbols.def"
#undef VABI_SYM
  kCount
};

// The next definition behind ours; where there is none, a function that fails with ENOSYS.
void* Original(Symbol symbol);

namespace original {
#define VABI_SYM(ret, name, params)                                      \
  inline auto name() {                                                   \
    using Function = ret(*) params;                                      \
    return reinterpret_cast<Function>(recorder::Original(Symbol::name)); \
  }
#include "shims/recorder/symbols.def"
#undef VABI_SYM
}  // namespace original

}  // namespace vabi::recorder

// The exported functions, record_NAME in C++, NAME for the linker.
extern "C" {
#define VABI_SYM(ret, name, params) \
  __attribute__((visibility("default"))) ret record_##name params __asm__(#name);
#include "shims/recorder/symbols.def"
#undef VABI_SYM
}

#endif  // VABI_SHIMS_RECORDER_ORIGINALS_H_
