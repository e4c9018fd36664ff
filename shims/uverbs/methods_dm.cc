// SPDX-License-Identifier: BSD-2-Clause
// UVERBS_OBJECT_DM (uverbs_std_types_dm.c).
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/method_table.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

using attr::kMandatory;

int Alloc(IoctlCall& call) {
  Device& device = call.file.device();
  if (!device.Offers(Op::alloc_dm)) return call.Refuse(RuleId::method_no_operation);
  auto dm = std::make_unique<Dm>();
  Introduce(*dm, call.file);
  uint32_t alignment = 0;
  call.CopyIn(VABI_C(UVERBS_ATTR_ALLOC_DM_LENGTH), &dm->length, sizeof(dm->length));
  call.CopyIn(VABI_C(UVERBS_ATTR_ALLOC_DM_ALIGNMENT), &alignment, sizeof(alignment));
  if (const int error = device.driver().AllocDm(call, *dm, alignment)) return error;
  call.Created(VABI_C(UVERBS_ATTR_ALLOC_DM_HANDLE), std::move(dm));
  return 0;
}

constexpr AttrSpec kAlloc[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_ALLOC_DM_HANDLE), ObjectType::kDm, Access::kNew, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_ALLOC_DM_LENGTH), 8, kMandatory),
    attr::In(VABI_C(UVERBS_ATTR_ALLOC_DM_ALIGNMENT), 4, kMandatory),
};
constexpr MethodSpec kMethods[] = {
    {MethodId::DM__ALLOC, Op::dealloc_dm, kAlloc, Alloc},
};

}  // namespace

std::span<const MethodSpec> DmMethods() { return kMethods; }

}  // namespace vabi
