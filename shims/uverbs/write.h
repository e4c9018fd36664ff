// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_WRITE_H_
#define VABI_SHIMS_UVERBS_WRITE_H_

#include <sys/types.h>

#include <cstddef>

namespace vabi {

class UverbsFile;

// uverbs_main.c:ib_uverbs_write of this world on this file: the count, or -errno.
ssize_t RunWrite(UverbsFile& file, const void* user, size_t count);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_WRITE_H_
