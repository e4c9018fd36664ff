// SPDX-License-Identifier: BSD-2-Clause
// Commands: mlx5_ifc.h (create_sched_elem_in); what is asked of elements: rdma-core's
// mlx5dv_sched_node_create(3).
#include "shims/providers/mlx5/schedule.h"

#include <map>
#include <mutex>
#include <utility>

#include "shims/fabric/nic.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

// sched_elem, sched_context
constexpr PrmField kFields = {128, 64}, kHierarchy = {192, 8}, kType = {384, 8},
                   kTsarType = {424, 8}, kParent = {448, 32}, kShare = {544, 32},
                   kMostBandwidth = {576, 32};
constexpr uint64_t kNic = 3, kTsar = 0, kQueueGroup = 4, kRoundsByDeficit = 0;  // DWRR
constexpr uint64_t kFieldShare = 1, kFieldMostBandwidth = 2;

struct Element {
  const UverbsFile* owner = nullptr;
  uint64_t type = 0, parent = 0;
  int children = 0;
};
using Name = std::pair<uint32_t, uint32_t>;  // device, number
// Guarded by fabric::Lock().
std::map<Name, Element>& All() {
  static auto* const all = new std::map<Name, Element>();  // files may close while all ends
  return *all;
}

struct Scheduler final : DevxState {
  Name name;
  ~Scheduler() override {
    std::lock_guard lock(fabric::Lock());
    const auto found = All().find(name);
    const auto parent = All().find({name.first, static_cast<uint32_t>(found->second.parent)});
    if (parent != All().end()) --parent->second.children;
    All().erase(found);
  }
};

}  // namespace

FirmwareAnswer CreateScheduler(IoctlCall& call, std::span<const uint8_t> in,
                               std::span<uint8_t> out) {
  const uint64_t type = PrmGet(in, kType), parent = PrmGet(in, kParent);
  const bool known = PrmGet(in, kHierarchy) == kNic && PrmGet(in, kTsarType) == kRoundsByDeficit &&
                     (type == kTsar || type == kQueueGroup);
  if (!known) return Unknown("mlx5: SCHEDULING_ELEMENT of a kind that the NIC does not tell of");
  const bool limits = PrmGet(in, kShare) != 0 || PrmGet(in, kMostBandwidth) != 0;
  if (parent == 0 && (type != kTsar || limits))
    return Unknown("mlx5: SCHEDULING_ELEMENT at the root that is a leaf or has limits");
  const uint32_t device = call.file.device().number();
  std::lock_guard lock(fabric::Lock());
  if (parent != 0) {
    const auto above = All().find({device, static_cast<uint32_t>(parent)});
    if (above == All().end() || above->second.type != kTsar || above->second.owner != &call.file)
      return Unknown("mlx5: SCHEDULING_ELEMENT below what is no node of the context");
    ++above->second.children;
  }
  auto object = std::make_unique<Scheduler>();
  const uint32_t number = call.file.device().NextNumber();
  object->name = {device, number};
  object->id = GeneralId(GeneralObject::kSchedulingElement, number);
  All()[object->name] = {.owner = &call.file, .type = type, .parent = parent};
  PrmSet(out, prm::kOutObjectId, number);
  return {.object = std::move(object)};
}

FirmwareAnswer ModifyScheduler(const DevxState& object, std::span<const uint8_t> in) {
  std::lock_guard lock(fabric::Lock());
  const Element& element = All().at(static_cast<const Scheduler&>(object).name);
  const uint64_t fields = PrmGet(in, kFields);
  if (PrmGet(in, kHierarchy) != kNic || PrmGet(in, kType) != element.type ||
      (fields & ~(kFieldShare | kFieldMostBandwidth)) != 0 || (element.parent == 0 && fields != 0))
    return Unknown("mlx5: SCHEDULING_ELEMENT changed in more than its share and its limit");
  return {.object = nullptr};
}

bool HasChildren(const DevxState& object) {
  if (object.id >> 32 != GeneralId(GeneralObject::kSchedulingElement, 0) >> 32) return false;
  std::lock_guard lock(fabric::Lock());
  return All().at(static_cast<const Scheduler&>(object).name).children != 0;
}

}  // namespace vabi::mlx5
