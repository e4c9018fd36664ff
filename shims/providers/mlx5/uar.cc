// SPDX-License-Identifier: BSD-2-Clause
// main.c: MLX5_IB_OBJECT_UAR and MLX5_IB_OBJECT_VAR
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/providers/mlx5/firmware_queues.h"
#include "shims/providers/mlx5/schedule.h"
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

using attr::kMandatory;

// MLX5_IB_MMAP_OFFSET_START and …_END
constexpr uint32_t kFirstCommand = 9, kLastCommand = 255;
constexpr uint32_t kPage = 4096;
constexpr int kPageShift = 12;

constexpr AttrSpec Private(ConstId id, ConstId object, Access access) {
  return {.id = id,
          .kind = AttrKind::kIdr,
          .mandatory = true,
          .object = ObjectType::kPrivate,
          .private_type = static_cast<uint16_t>(object),
          .access = access};
}

// mlx5_entry_to_mmap_offset
uint64_t OffsetOf(uint32_t page) {
  const uint64_t command = page >> 16, index = page & 0xffff;
  return ((index >> 8) << 16 | command << 8 | (index & 0xff)) << kPageShift;
}

int AllocUar(IoctlCall& call) {
  if (call.file.context() == nullptr) return call.Refuse(RuleId::mlx5_no_context);
  uint64_t type = 0;
  if (const int error = call.GetConst(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE), &type)) return error;
  const auto blue_flame =
      static_cast<uint64_t>(call.world.Flag(VABI_C(MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF)));
  const auto non_cached =
      static_cast<uint64_t>(call.world.Flag(VABI_C(MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)));
  if (call.Violates(RuleId::mlx5_uar_type, type != blue_flame && type != non_cached)) {
    return call.Refuse(RuleId::mlx5_uar_type);
  }
  if (call.Violates(RuleId::mlx5_uar_write_combining,
                    type == blue_flame && !kCaps.write_combining)) {
    return call.Refuse(RuleId::mlx5_uar_write_combining);
  }
  ContextState& context = ContextOf(call.file);
  MapEntry entry = {
      type == blue_flame ? MapEntry::Kind::kUarWriteCombining : MapEntry::Kind::kUarNonCached,
      kPage, call.file.device().NextNumber()};
  const uint32_t page = context.Insert(kFirstCommand, kLastCommand, entry);
  if (page == 0) return call.Refuse(RuleId::mlx5_map_entries_full);
  auto state = std::make_unique<UarState>();
  state->page = page;
  auto object = std::make_unique<Object>(ObjectType::kPrivate);
  object->private_type = static_cast<uint16_t>(VABI_C(MLX5_IB_OBJECT_UAR));
  object->driver = std::move(state);
  call.Created(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE), std::move(object));
  const uint64_t offset = OffsetOf(page);
  const uint32_t length = kPage;
  if (const int error =
          call.CopyOut(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET), &offset, sizeof(offset))) {
    return error;
  }
  if (const int error = call.CopyOut(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID), &entry.page_index,
                                     sizeof(entry.page_index))) {
    return error;
  }
  return call.CopyOut(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH), &length, sizeof(length));
}

// What is special goes through Driver::DestroyPrivate.
int Destroyed(IoctlCall&) { return 0; }

constexpr AttrSpec kAllocUar[] = {
    Private(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE), VABI_C(MLX5_IB_OBJECT_UAR), Access::kNew),
    attr::Const(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE), kMandatory),
    attr::Out(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID), 4, kMandatory),
    attr::Out(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH), 4, kMandatory),
    attr::Out(VABI_C(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET), 8, kMandatory),
};
constexpr AttrSpec kDestroyUar[] = {
    Private(VABI_C(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE), VABI_C(MLX5_IB_OBJECT_UAR),
            Access::kDestroy),
};

// MLX5_IB_OBJECT_VAR is there only for NICs with virtio queues (var_is_supported): this one has
// none, so the kernel does not know the object.
const MethodSpec kMethods[] = {
    {.id = MethodId::UAR__OBJ_ALLOC,
     .needs = Op::always,
     .attributes = kAllocUar,
     .handler = AllocUar},
    {.id = MethodId::UAR__OBJ_DESTROY,
     .needs = Op::always,
     .attributes = kDestroyUar,
     .handler = Destroyed},
};

}  // namespace

std::span<const MethodSpec> UarMethods() { return kMethods; }

int Mlx5Driver::DestroyPrivate(Call& call, Object& object) {
  if (object.private_type == static_cast<uint16_t>(VABI_C(MLX5_IB_OBJECT_UAR))) {
    // mmap_obj_cleanup: what is mapped stays so, the offset is free again.
    ContextOf(call.file).entries.erase(static_cast<UarState*>(object.driver.get())->page);
  }
  if (object.private_type == static_cast<uint16_t>(VABI_C(MLX5_IB_OBJECT_DEVX_UMEM)) &&
      InUse(*static_cast<UmemState*>(object.driver.get()))) {
    return call.Unmodelled("mlx5: DEVX_UMEM.DEREG of memory in which queues stand");
  }
  if (object.private_type == static_cast<uint16_t>(VABI_C(MLX5_IB_OBJECT_DEVX_OBJ)) &&
      HasChildren(*static_cast<DevxState*>(object.driver.get()))) {
    return call.Unmodelled("mlx5: DEVX_OBJ.DESTROY of a scheduling element with others below it");
  }
  if (object.private_type == static_cast<uint16_t>(VABI_C(MLX5_IB_OBJECT_FLOW_MATCHER)) &&
      call.Violates(RuleId::mlx5_matcher_busy, object.users > 0)) {
    return call.Refuse(RuleId::mlx5_matcher_busy);
  }
  return 0;
}

}  // namespace vabi::mlx5
