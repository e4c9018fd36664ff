// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_EVENT_FD_H_
#define VABI_SHIMS_UVERBS_EVENT_FD_H_

#include <memory>

#include "shims/uverbs/command.h"
#include "shims/uverbs/events.h"
#include "shims/uverbs/ioctl.h"

namespace vabi {

// ib_uverbs_get_async_event: the file that the caller names, or the context's default one.
std::shared_ptr<AsyncEventFile> EventsOf(IoctlCall& call, ConstId attribute);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_EVENT_FD_H_
