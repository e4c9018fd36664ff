// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/counters.h"

#include <algorithm>
#include <mutex>

#include "shims/fabric/nic.h"
#include "shims/providers/mlx5/doorbell.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/sys/sys.h"

namespace vabi::mlx5 {
namespace {

#define HEAD(field) VABI_F(mlx5_ib_create_flow, field)
#define DATA(field) VABI_F(mlx5_ib_flow_counters_data, field)
#define DESC(field) VABI_F(mlx5_ib_flow_counters_desc, field)

constexpr uint32_t kMaxCounters = 8191;  // MAX_COUNTERS_NUM
constexpr uint32_t kPackets = 0, kBytes = 1;

}  // namespace

int CreateFlowRequest::Read(Call& call) {
  const World& world = call.world;
  if (world.Knob(KnobId::mlx5_flow_counters) == 0 || call.in.length() == 0) return 0;
  OwnedBody<16> head(world, VABI_S(mlx5_ib_create_flow));
  const size_t least = world.End(HEAD(reserved));
  if (call.Violates(RuleId::mlx5_create_flow_length, call.in.length() < least)) {
    return call.Refuse(RuleId::mlx5_create_flow_length);
  }
  if (call.in.Copy(head.base(), head.length()) != 0) return call.Refuse(RuleId::mlx5_request_fault);
  const uint32_t sets = head.U32(HEAD(ncounters_data));
  if (call.Violates(RuleId::mlx5_create_flow_counters, sets > 1)) {
    return call.Refuse(RuleId::mlx5_create_flow_counters);
  }
  const size_t wanted = least + (sets != 0 ? world.Size(VABI_S(mlx5_ib_flow_counters_data)) : 0);
  if (call.On(RuleId::mlx5_create_flow_tail) && call.in.length() > wanted &&
      call.in.TailIsZero(wanted) != 1) {
    return call.Refuse(RuleId::mlx5_create_flow_tail);
  }
  present = true;
  describes = sets != 0;
  if (!describes) return 0;
  OwnedBody<32> data(world, VABI_S(mlx5_ib_flow_counters_data));
  if (call.in.CopyAt(least, data.base(), data.length()) != 0) {
    return call.Refuse(RuleId::mlx5_request_fault);
  }
  descriptions = data.Get(DATA(counters_data));
  count = data.U32(DATA(ncounters));
  return 0;
}

int CountersState::Describe(Call& call, const CreateFlowRequest& request) {
  const World& world = call.world;
  if (!request.describes) {
    return buffer_entries != 0 ? 0 : call.Refuse(RuleId::mlx5_counters_undescribed);
  }
  if (call.Violates(RuleId::mlx5_counters_many, request.count > kMaxCounters)) {
    return call.Refuse(RuleId::mlx5_counters_many);
  }
  const size_t size = world.Size(VABI_S(mlx5_ib_flow_counters_desc));
  std::vector<uint8_t> bytes(size * request.count);
  if (sys::CopyFromUser(bytes.data(), request.descriptions, bytes.size()) != 0) {
    return call.Refuse(RuleId::mlx5_counters_fault);
  }
  if (call.Violates(RuleId::mlx5_counters_bound, buffer_entries != 0)) {
    return call.Refuse(RuleId::mlx5_counters_bound);
  }
  std::vector<Entry> described;
  for (uint32_t i = 0; i < request.count; ++i) {
    const Body row(world, bytes.data() + i * size, size);
    const Entry entry = {row.U32(DESC(description)), row.U32(DESC(index))};
    if (entry.description > kBytes) return call.Refuse(RuleId::mlx5_counters_description);
    described.push_back(entry);
  }
  entries = std::move(described);
  for (const Entry& entry : entries) buffer_entries = std::max(buffer_entries, entry.index + 1);
  return 0;
}

void CountersState::Forget() {
  entries.clear();
  buffer_entries = 0;
}

CountersState* CountersOf(const Flow& flow) {
  for (Object* resource : flow.resources) {
    if (resource->type == ObjectType::kCounters) {
      return static_cast<CountersState*>(resource->driver.get());
    }
  }
  return nullptr;
}

int Mlx5Driver::CreateCounters(Call&, Counters& counters) {
  counters.driver = std::make_unique<CountersState>();
  return 0;
}

// The values are added to what the buffer holds: zeroes, the core made it so.
int Mlx5Driver::ReadCounters(Call& call, Counters& counters, std::span<uint64_t> values) {
  const auto& state = *static_cast<CountersState*>(counters.driver.get());
  if (state.buffer_entries > values.size()) return call.Refuse(RuleId::mlx5_counters_read_index);
  Settle();
  std::lock_guard lock(fabric::Lock());
  for (const CountersState::Entry& entry : state.entries) {
    values[entry.index] +=
        entry.description == kPackets ? state.counter.packets : state.counter.bytes;
  }
  return 0;
}

}  // namespace vabi::mlx5
