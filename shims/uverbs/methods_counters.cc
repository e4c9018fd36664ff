// SPDX-License-Identifier: BSD-2-Clause
// UVERBS_OBJECT_COUNTERS (uverbs_std_types_counters.c).
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/method_table.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi {
namespace {

using attr::kMandatory;
using attr::kOptional;

int Create(IoctlCall& call) {
  Device& device = call.file.device();
  if (!device.Offers(Op::create_counters)) return call.Refuse(RuleId::method_no_operation);
  auto counters = std::make_unique<Counters>();
  Introduce(*counters, call.file);
  if (const int error = device.driver().CreateCounters(call, *counters)) return error;
  call.Created(VABI_C(UVERBS_ATTR_CREATE_COUNTERS_HANDLE), std::move(counters));
  return 0;
}

int Read(IoctlCall& call) {
  Device& device = call.file.device();
  auto* counters = call.Get<Counters>(VABI_C(UVERBS_ATTR_READ_COUNTERS_HANDLE));
  if (!device.Offers(Op::read_counters)) return call.Refuse(RuleId::method_no_operation);
  if (call.Violates(RuleId::counters_unbound, counters->users == 0)) {
    return call.Refuse(RuleId::counters_unbound);
  }
  uint64_t flags;
  if (const int error = call.GetFlags(
          VABI_C(UVERBS_ATTR_READ_COUNTERS_FLAGS),
          static_cast<uint64_t>(call.world.Flag(VABI_C(IB_UVERBS_READ_COUNTERS_PREFER_CACHED))),
          &flags)) {
    return error;
  }
  std::vector<uint64_t> values(call.Length(VABI_C(UVERBS_ATTR_READ_COUNTERS_BUFF)) /
                               sizeof(uint64_t));
  if (const int error = device.driver().ReadCounters(call, *counters, values)) return error;
  return call.CopyOut(VABI_C(UVERBS_ATTR_READ_COUNTERS_BUFF), values.data(),
                      values.size() * sizeof(uint64_t));
}

constexpr AttrSpec kCreate[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_CREATE_COUNTERS_HANDLE), ObjectType::kCounters, Access::kNew,
              kMandatory),
};
constexpr AttrSpec kRead[] = {
    attr::Idr(VABI_C(UVERBS_ATTR_READ_COUNTERS_HANDLE), ObjectType::kCounters, Access::kRead,
              kMandatory),
    attr::OutMin(VABI_C(UVERBS_ATTR_READ_COUNTERS_BUFF), 0, kMandatory),
    attr::Flags(VABI_C(UVERBS_ATTR_READ_COUNTERS_FLAGS), kOptional),
};
constexpr MethodSpec kMethods[] = {
    {MethodId::COUNTERS__CREATE, Op::destroy_counters, kCreate, Create},
    {MethodId::COUNTERS__READ, Op::destroy_counters, kRead, Read},
};

}  // namespace

std::span<const MethodSpec> CountersMethods() { return kMethods; }

}  // namespace vabi
