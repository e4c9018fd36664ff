// SPDX-License-Identifier: BSD-2-Clause
// dm.c (main.c before 5.12): device memory. Both the NIC and the program map it.
#include <atomic>
#include <cerrno>

#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/sys/shared_memory.h"
#include "shims/sys/sys.h"
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/context.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

using attr::kMandatory;
using attr::kOptional;

constexpr uint64_t kPage = 4096, kGranule = 64;  // MLX5_MEMIC_BASE_SIZE
constexpr uint32_t kBaseAlignment = 6;           // MLX5_MEMIC_BASE_ALIGN
std::atomic<uint64_t> memory_used{0};  // of the device's, in pages; one device's worth for all

int MakeMemory(uint64_t size, DmState* state) {
  void* memory = sys::MakeShared(size);
  if (sys::IsError(memory)) return sys::ErrorOf(memory);
  state->base = static_cast<uint8_t*>(memory);
  state->size = size;
  return 0;
}

// uverbs_copy_to: an attribute that is not there is no error where it is optional.
int Answer(IoctlCall& call, ConstId attribute, const void* from, size_t size) {
  return call.Has(attribute) ? call.CopyOut(attribute, from, size) : 0;
}

int QueryDm(IoctlCall& call) {
  const auto* dm = call.Get<Dm>(VABI_C(MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE));
  const auto& state = *static_cast<const DmState*>(dm->driver.get());
  const auto index = static_cast<uint16_t>(state.page & 0xffff);
  const uint64_t offset = 0;
  if (const int error =
          call.CopyOut(VABI_C(MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX), &index, sizeof(index))) {
    return error;
  }
  if (const int error =
          call.CopyOut(VABI_C(MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET), &offset, sizeof(offset))) {
    return error;
  }
  return call.CopyOut(VABI_C(MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH), &state.requested,
                      sizeof(state.requested));
}

int MapOperation(IoctlCall& call) {
  uint8_t operation = 0;
  if (const int error = call.CopyIn(VABI_C(MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_OP), &operation, 1))
    return error;
  const bool has = operation < 32 && (kCaps.memic_operations >> operation & 1) != 0;
  if (!has) return call.Refuse(RuleId::mlx5_dm_operation);
  return call.Unmodelled("mlx5: DM.MAP_OP_ADDR");
}

constexpr AttrSpec kAlloc[] = {
    attr::Out(VABI_C(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET), 8, kMandatory),
    attr::Out(VABI_C(MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX), 2, kOptional),
    attr::Const(VABI_C(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE), kOptional),
};
constexpr AttrSpec kMapOperation[] = {
    attr::Idr(VABI_C(MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_HANDLE), ObjectType::kDm, Access::kRead,
              kMandatory),
    attr::In(VABI_C(MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_OP), 1, kMandatory),
    attr::Out(VABI_C(MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_START_OFFSET), 8, kMandatory),
    attr::Out(VABI_C(MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_PAGE_INDEX), 2, kOptional),
};
constexpr AttrSpec kQuery[] = {
    attr::Idr(VABI_C(MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE), ObjectType::kDm, Access::kRead, kMandatory),
    attr::Out(VABI_C(MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET), 8, kMandatory),
    attr::Out(VABI_C(MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX), 2, kMandatory),
    attr::Out(VABI_C(MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH), 8, kMandatory),
};
const MethodSpec kMethods[] = {
    {.id = MethodId::DM__ALLOC, .needs = Op::alloc_dm, .attributes = kAlloc, .handler = nullptr},
    {.id = MethodId::DM__MAP_OP_ADDR,
     .needs = Op::alloc_dm,
     .attributes = kMapOperation,
     .handler = MapOperation},
    {.id = MethodId::DM__QUERY, .needs = Op::alloc_dm, .attributes = kQuery, .handler = QueryDm},
};

}  // namespace

std::span<const MethodSpec> DeviceMemoryMethods() { return kMethods; }

DmState::~DmState() {
  if (base != nullptr) {
    sys::Munmap(base, size);
    memory_used.fetch_sub(size / kPage);
  }
}

int Mlx5Driver::AllocDm(Call& call, Dm& dm, uint32_t log_alignment) {
  auto& ioctl = static_cast<IoctlCall&>(call);  // there is no other way to this command
  const World& world = call.world;
  uint64_t type = static_cast<uint64_t>(world.Flag(VABI_C(MLX5_IB_UAPI_DM_TYPE_MEMIC)));
  if (ioctl.Has(VABI_C(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE))) {
    if (const int error = ioctl.GetConst(VABI_C(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE), &type))
      return error;
  }
  if (type != static_cast<uint64_t>(world.Flag(VABI_C(MLX5_IB_UAPI_DM_TYPE_MEMIC)))) {
    bool known = false;
    for (const ConstId icm : {VABI_C(MLX5_IB_UAPI_DM_TYPE_STEERING_SW_ICM),
                              VABI_C(MLX5_IB_UAPI_DM_TYPE_HEADER_MODIFY_SW_ICM),
                              VABI_C(MLX5_IB_UAPI_DM_TYPE_HEADER_MODIFY_PATTERN_SW_ICM),
                              VABI_C(MLX5_IB_UAPI_DM_TYPE_ENCAP_SW_ICM)}) {
      known |= world.Constant(icm) == static_cast<int64_t>(type);
    }
    if (call.Violates(RuleId::mlx5_alloc_dm_permission, known && !HasCapabilities(world))) {
      return call.Refuse(RuleId::mlx5_alloc_dm_permission);
    }
    // Steering memory needs a NIC whose tables software may own: this one is none.
    return call.Refuse(RuleId::mlx5_alloc_dm_type);
  }
  const uint64_t size = (dm.length + kGranule - 1) / kGranule * kGranule;
  if (call.Violates(RuleId::mlx5_alloc_dm_length, size == 0))
    return call.Refuse(RuleId::mlx5_alloc_dm_length);
  const uint32_t alignment = log_alignment < kBaseAlignment ? 0 : log_alignment - kBaseAlignment;
  if (call.Violates(RuleId::mlx5_alloc_dm_alignment,
                    alignment > static_cast<uint32_t>(kCaps.log_max_memic_addr_alignment))) {
    return call.Refuse(RuleId::mlx5_alloc_dm_alignment);
  }
  const uint64_t pages = (size + kPage - 1) / kPage;
  if (pages > kCaps.memic_size / kPage - memory_used.load())
    return call.Refuse(RuleId::mlx5_alloc_dm_memory);
  auto state = std::make_unique<DmState>();
  if (const int error = MakeMemory(pages * kPage, state.get())) return error;
  memory_used.fetch_add(pages);
  state->requested = dm.length;
  ContextState& context = ContextOf(call.file);
  state->context = &context;
  const auto command = static_cast<uint32_t>(world.Flag(VABI_C(MLX5_IB_MMAP_DEVICE_MEM)));
  state->page =
      context.Insert(command, command, {MapEntry::Kind::kDeviceMemory, size, 0, state->base});
  if (state->page == 0) return call.Refuse(RuleId::mlx5_map_entries_full);
  const auto index = static_cast<uint16_t>(state->page & 0xffff);
  const uint64_t offset = 0;
  int error = Answer(ioctl, VABI_C(MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX), &index, sizeof(index));
  if (error == 0)
    error = Answer(ioctl, VABI_C(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET), &offset, sizeof(offset));
  if (error != 0) {
    context.entries.erase(state->page);
    return error;
  }
  dm.driver = std::move(state);
  return 0;
}

void Mlx5Driver::FreeDm(Dm& dm) {
  DmState& state = StateOf(dm);
  state.context->entries.erase(state.page);
  dm.driver.reset();
}

}  // namespace vabi::mlx5
