// SPDX-License-Identifier: BSD-2-Clause
// UVERBS_OBJECT_ASYNC_EVENT (uverbs_std_types_async_fd.c).
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/event_fd.h"
#include "shims/uverbs/method_table.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {

std::shared_ptr<AsyncEventFile> EventsOf(IoctlCall& call, ConstId attribute) {
  if (auto named = AsyncEventFile::From(call.GetFile(attribute))) return named;
  return call.file.async_events;
}

namespace {

int Alloc(IoctlCall& call) {
  auto events = std::make_shared<AsyncEventFile>(&call.file);
  if (!call.file.async_events) call.file.async_events = events;
  call.file.AddEventFile(events);
  call.CreatedFile(VABI_C(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE), std::move(events));
  return 0;
}

constexpr AttrSpec kAlloc[] = {
    attr::Fd(VABI_C(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE), ObjectType::kAsyncEvent, Access::kNew,
             attr::kMandatory),
};
constexpr MethodSpec kMethods[] = {
    {MethodId::ASYNC_EVENT__ALLOC, Op::always, kAlloc, Alloc},
};

}  // namespace

std::span<const MethodSpec> AsyncEventMethods() { return kMethods; }

}  // namespace vabi
