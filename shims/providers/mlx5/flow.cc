// SPDX-License-Identifier: BSD-2-Clause
// fs.c: flow matchers, and flows that are made with them; flow actions only by their form.
#include <algorithm>
#include <cstring>

#include "shims/providers/mlx5/driver.h"
#include "shims/providers/mlx5/flow_state.h"
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/context.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/uverbs_file.h"

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

constexpr uint32_t kEgress = 1 << 2;  // IB_FLOW_ATTR_FLAGS_EGRESS
constexpr uint32_t kTagLimit = 1 << 24;

// struct mlx5_ib_flow_matcher
struct MatcherState final : DriverState {
  MatchParams mask = {};
  uint8_t enable = 0;
  uint16_t priority = 0;
  bool normal = false;
  enum class Table : uint8_t { kReceive, kTransmit, kOther } table = Table::kReceive;
};

// mlx5_ib_matcher_ns
int ChooseTable(IoctlCall& call, MatcherState* matcher) {
  const bool typed = call.Has(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE));
  const bool flagged = call.Has(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS));
  if (call.Violates(RuleId::mlx5_matcher_two_types, typed && flagged)) {
    return call.Refuse(RuleId::mlx5_matcher_two_types);
  }
  if (typed) {
    uint64_t type = 0;
    if (const int error = call.GetConst(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE), &type)) {
      return error;
    }
    const auto is = [&](ConstId id) {
      return call.world.Constant(id) == static_cast<int64_t>(type);
    };
    if (is(VABI_C(MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX))) return 0;
    matcher->table = is(VABI_C(MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_TX))
                         ? MatcherState::Table::kTransmit
                         : MatcherState::Table::kOther;
    if (matcher->table == MatcherState::Table::kTransmit ||
        is(VABI_C(MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_RX)) ||
        is(VABI_C(MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_TX)) ||
        is(VABI_C(MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_TRANSPORT_RX)) ||
        is(VABI_C(MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_TRANSPORT_TX))) {
      return 0;
    }
    // Only in switchdev mode are there FDB tables.
    return call.Refuse(is(VABI_C(MLX5_IB_UAPI_FLOW_TABLE_TYPE_FDB))
                           ? RuleId::mlx5_matcher_fdb
                           : RuleId::mlx5_matcher_table_type);
  }
  uint64_t flags = 0;
  if (const int error =
          call.GetFlags(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS), kEgress, &flags)) {
    return error;
  }
  if (flags != 0) matcher->table = MatcherState::Table::kTransmit;
  return 0;
}

int CheckMatcherPort(IoctlCall& call, const MatcherState& matcher) {
  uint32_t port = 0;
  if (!call.Has(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_IB_PORT))) return 0;
  call.CopyIn(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_IB_PORT), &port, sizeof(port));
  if (call.Violates(RuleId::mlx5_matcher_port, !call.file.device().ValidPort(port))) {
    return call.Refuse(RuleId::mlx5_matcher_port);
  }
  if (call.Violates(RuleId::mlx5_matcher_port_table,
                    matcher.table != MatcherState::Table::kOther)) {
    return call.Refuse(RuleId::mlx5_matcher_port_table);
  }
  return call.Refuse(RuleId::mlx5_matcher_port_capability);
}

int CreateMatcher(IoctlCall& call) {
  if (call.file.context() == nullptr) return call.Refuse(RuleId::mlx5_no_context);
  auto state = std::make_unique<MatcherState>();
  call.CopyIn(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK), state->mask.data(), kMatchSize);
  state->normal = call.EnumId(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE)) ==
                  static_cast<int>(call.world.Flag(VABI_C(MLX5_IB_FLOW_TYPE_NORMAL)));
  if (state->normal) {
    call.CopyIn(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE), &state->priority,
                sizeof(state->priority));
  }
  call.CopyIn(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA), &state->enable,
              sizeof(state->enable));
  if (const int error = ChooseTable(call, state.get())) return error;
  if (const int error = CheckMatcherPort(call, *state)) return error;
  auto object = std::make_unique<Object>(ObjectType::kPrivate);
  object->private_type = static_cast<uint16_t>(VABI_C(MLX5_IB_OBJECT_FLOW_MATCHER));
  object->device = &call.file.device();
  object->driver = std::move(state);
  call.Created(VABI_C(MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE), std::move(object));
  return 0;
}

// raw_fs_is_multicast
bool IsMulticast(const MatcherState& matcher, const MatchParams& value) {
  if ((matcher.enable & kMatchOuter) == 0) return false;
  constexpr size_t kIpv4 = kMatchDestination + kMatchIpv4;
  return ((matcher.mask[kMatchDmac] & value[kMatchDmac] & 1) != 0) ||
         ((matcher.mask[kIpv4] & 0xf0) == 0xe0 && (value[kIpv4] & 0xf0) == 0xe0);
}

// get_dests, for the tables that this NIC's port has.
int ReadDestination(IoctlCall& call, const MatcherState& matcher, Qp* qp, uint64_t* flags) {
  const auto miss =
      static_cast<uint64_t>(call.world.Flag(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DEFAULT_MISS)));
  const auto drop =
      static_cast<uint64_t>(call.world.Flag(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP)));
  // Whatever is wrong, CREATE_FLOW says EINVAL.
  uint64_t given = 0;
  call.CopyIn(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_FLAGS), &given, sizeof(given));
  const bool devx = call.Has(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX));
  const bool receives = matcher.table == MatcherState::Table::kReceive;
  const bool wrong = (given & ~(miss | drop)) != 0 || given == (miss | drop) ||
                     (receives && devx && (qp != nullptr || given != 0)) ||
                     (receives && qp != nullptr && given != 0) ||
                     (qp != nullptr && qp->qp_type != kQptRawPacket) ||
                     (!receives && qp != nullptr);
  if (wrong) return call.Refuse(RuleId::mlx5_raw_flow_destination);
  *flags = given;
  return 0;
}

int CreateFlow(IoctlCall& call) {
  if (call.Violates(RuleId::mlx5_raw_flow_permission, !HasCapabilities(call.world))) {
    return call.Refuse(RuleId::mlx5_raw_flow_permission);
  }
  Object* matcher = call.GetObject(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_MATCHER));
  const auto& criteria = *static_cast<MatcherState*>(matcher->driver.get());
  auto* qp = call.Get<Qp>(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_DEST_QP));
  uint64_t flags = 0;
  if (const int error = ReadDestination(call, criteria, qp, &flags)) return error;
  if (call.Has(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX)) ||
      !call.GetObjects(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX)).empty() ||
      !call.GetObjects(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS)).empty()) {
    return call.Unmodelled("mlx5: flows with DEVX objects or flow actions");
  }
  auto rule = std::make_unique<FlowRule>();
  if (call.Has(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_TAG))) {
    call.CopyIn(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_TAG), &rule->tag, sizeof(rule->tag));
    if (call.Violates(RuleId::mlx5_raw_flow_tag, rule->tag >= kTagLimit)) {
      return call.Refuse(RuleId::mlx5_raw_flow_tag);
    }
    rule->has_tag = true;
  }
  if (!criteria.normal) return call.Refuse(RuleId::mlx5_raw_flow_type);
  if (criteria.priority > kLastUserPriority) return call.Refuse(RuleId::mlx5_raw_flow_priority);
  if (criteria.table == MatcherState::Table::kOther) {
    return call.Unmodelled("mlx5: flow tables of RDMA traffic");
  }
  const std::span<const uint8_t> value = call.Bytes(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE));
  if (value.empty()) {
    call.CopyIn(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE), rule->value.data(), kMatchSize);
  } else {
    std::memcpy(rule->value.data(), value.data(), std::min(value.size(), kMatchSize));
  }
  rule->mask = criteria.mask;
  rule->enable = criteria.enable;
  if (!Parses(rule->mask, rule->enable)) {
    return call.Unmodelled("mlx5: a match of headers that no frame here has");
  }
  const auto drop =
      static_cast<uint64_t>(call.world.Flag(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP)));
  rule->device = call.file.device().number();
  rule->egress = criteria.table == MatcherState::Table::kTransmit;
  rule->priority = IsMulticast(criteria, rule->value) ? kMulticastPriority
                                                      : PriorityOf(criteria.priority, false);
  rule->drop = (flags & drop) != 0;
  if (qp != nullptr) rule->sink = SinkOf(*qp);
  auto state = std::make_unique<FlowState>();
  state->rules.push_back(std::move(rule));
  if (const int error = state->Install(call)) return error;
  state->matcher = matcher;
  ++matcher->users;
  auto flow = std::make_unique<Flow>();
  Introduce(*flow, call.file);
  flow->qp = qp;
  if (qp != nullptr) ++qp->users;
  flow->driver = std::move(state);
  call.Created(VABI_C(MLX5_IB_ATTR_CREATE_FLOW_HANDLE), std::move(flow));
  return 0;
}
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

}  // namespace vabi::mlx5
