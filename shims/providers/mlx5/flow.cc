// SPDX-License-Identifier: BSD-2-Clause
// fs.c, counters.c, and the raw packet parts of qp.c: declared, so that what they refuse by their
// form they do refuse; behind that they are not modelled.
#include "shims/providers/mlx5/driver.h"
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/ioctl.h"

namespace vabi::mlx5 {
namespace {

using attr::kMandatory;
using attr::kOptional;

constexpr uint16_t kMatchParams =
    4 * 4 * 32;  // 7.3: struct mlx5_ib_match_params, MLX5_IB_DW_MATCH_PARAM words

constexpr AttrSpec Matcher(ConstId id, Access access) {
  return {.id = id,
          .kind = AttrKind::kIdr,
          .mandatory = true,
          .object = ObjectType::kPrivate,
          .private_type = static_cast<uint16_t>(VABI_C(MLX5_IB_OBJECT_FLOW_MATCHER)),
          .access = access};
}
constexpr AttrSpec DevxObject(ConstId id, AttrKind kind) {
  AttrSpec spec = {.id = id,
                   .kind = kind,
                   .object = ObjectType::kPrivate,
                   .private_type = static_cast<uint16_t>(VABI_C(MLX5_IB_OBJECT_DEVX_OBJ)),
                   .access = Access::kRead};
  if (kind == AttrKind::kIdrsArray) spec.min = spec.max = AttrSize::Bytes(1);
  return spec;
}

int CreateFlow(IoctlCall& call) { return call.Unmodelled("mlx5: FLOW.CREATE of its own"); }
int CreateMatcher(IoctlCall& call) { return call.Unmodelled("mlx5: FLOW_MATCHER.CREATE"); }
int CreateModifyHeader(IoctlCall& call) {
  return call.Unmodelled("mlx5: FLOW_ACTION.CREATE_MODIFY_HEADER");
}
int CreatePacketReformat(IoctlCall& call) {
  return call.Unmodelled("mlx5: FLOW_ACTION.CREATE_PACKET_REFORMAT");
}
int Destroyed(IoctlCall&) { return 0; }

// mlx5_ib_flow_type: NORMAL brings a priority, ALL_DEFAULT and MC_DEFAULT and SNIFFER nothing.
constexpr AttrSpec kFlowTypes[] = {
    attr::In(VABI_C(MLX5_IB_FLOW_TYPE_NORMAL), 2, kOptional),
    attr::In(VABI_C(MLX5_IB_FLOW_TYPE_SNIFFER), 0, kOptional),
    attr::In(VABI_C(MLX5_IB_FLOW_TYPE_ALL_DEFAULT), 0, kOptional),
    attr::In(VABI_C(MLX5_IB_FLOW_TYPE_MC_DEFAULT), 0, kOptional),
};
constexpr AttrSpec MatchParams(ConstId id, bool copied) {
  return {.id = id,
          .kind = AttrKind::kPtrIn,
          .mandatory = true,
          .alloc_and_copy = copied,
          .min = AttrSize::Bytes(1),
          .max = AttrSize::Bytes(kMatchParams)};
}
constexpr AttrSpec kCreateFlow[] = {
    attr::Idr(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_HANDLE), ObjectType::kFlow, Access::kNew, kMandatory),
    MatchParams(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE), true),
    Matcher(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_MATCHER), Access::kRead),
    attr::Idr(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_DEST_QP), ObjectType::kQp, Access::kRead, kOptional),
    DevxObject(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX), AttrKind::kIdr),
    {.id = VABI_C(MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS),
     .kind = AttrKind::kIdrsArray,
     .min = AttrSize::Bytes(1),
     .max = AttrSize::Bytes(2),
     .object = ObjectType::kFlowAction,
     .access = Access::kRead},
    attr::In(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_TAG), 4, kOptional),
    DevxObject(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX), AttrKind::kIdrsArray),
    attr::InMin(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX_OFFSET), 4, kOptional, true),
    attr::Flags(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_FLAGS), kOptional),
};
constexpr AttrSpec kDestroyFlow[] = {
    attr::Idr(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_HANDLE), ObjectType::kFlow, Access::kDestroy,
              kMandatory),
};
constexpr AttrSpec kCreateMatcher[] = {
    Matcher(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE), Access::kNew),
    MatchParams(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK), false),
    {.id = VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE),
     .kind = AttrKind::kEnumIn,
     .mandatory = true,
     .variants = kFlowTypes},
    attr::In(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA), 1, kMandatory),
    attr::Flags(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS), kOptional),
    attr::Const(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE), kOptional),
    attr::In(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_IB_PORT), 4, kOptional),
};
constexpr AttrSpec kDestroyMatcher[] = {
    Matcher(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE), Access::kDestroy),
};
constexpr AttrSpec kModifyHeader[] = {
    attr::Idr(VABI_C(MLX5_IB_ATTR_CREATE_MODIFY_HEADER_HANDLE), ObjectType::kFlowAction,
              Access::kNew, kMandatory),
    attr::InMin(VABI_C(MLX5_IB_ATTR_CREATE_MODIFY_HEADER_ACTIONS_PRM), 8, kMandatory, true),
    attr::Const(VABI_C(MLX5_IB_ATTR_CREATE_MODIFY_HEADER_FT_TYPE), kMandatory),
};
constexpr AttrSpec kPacketReformat[] = {
    attr::Idr(VABI_C(MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_HANDLE), ObjectType::kFlowAction,
              Access::kNew, kMandatory),
    attr::InMin(VABI_C(MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_DATA_BUF), 1, kOptional, true),
    attr::Const(VABI_C(MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_TYPE), kMandatory),
    attr::Const(VABI_C(MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_FT_TYPE), kMandatory),
};
// MLX5_IB_OBJECT_STEERING_ANCHOR and MLX5_IB_OBJECT_PP need capabilities that this NIC lacks
// (mlx5_ib_shared_ft_allowed, pp_is_supported): the kernel does not know them here.
const MethodSpec kMethods[] = {
    {.id = MethodId::FLOW__MLX5_CREATE,
     .needs = Op::create_flow,
     .attributes = kCreateFlow,
     .handler = CreateFlow},
    {.id = MethodId::FLOW__MLX5_DESTROY,
     .needs = Op::create_flow,
     .attributes = kDestroyFlow,
     .handler = Destroyed},
    {.id = MethodId::FLOW_MATCHER__CREATE,
     .needs = Op::create_flow,
     .attributes = kCreateMatcher,
     .handler = CreateMatcher},
    {.id = MethodId::FLOW_MATCHER__DESTROY,
     .needs = Op::create_flow,
     .attributes = kDestroyMatcher,
     .handler = Destroyed},
    {.id = MethodId::FLOW_ACTION__CREATE_MODIFY_HEADER,
     .needs = Op::destroy_flow_action,
     .attributes = kModifyHeader,
     .handler = CreateModifyHeader},
    {.id = MethodId::FLOW_ACTION__CREATE_PACKET_REFORMAT,
     .needs = Op::destroy_flow_action,
     .attributes = kPacketReformat,
     .handler = CreatePacketReformat},
};

}  // namespace

std::span<const MethodSpec> FlowMethods() { return kMethods; }

int Mlx5Driver::CreateFlow(Call& call, Flow&) { return call.Unmodelled("mlx5: flow rules"); }
// What is counted and read comes with the flow rule that they are bound to; without one READ is
// refused.
int Mlx5Driver::CreateCounters(Call&, Counters&) { return 0; }

}  // namespace vabi::mlx5
