// SPDX-License-Identifier: BSD-2-Clause
// devx.c: commands that user space writes for the firmware itself. This NIC's firmware knows
// QUERY_HCA_CAP; objects, memory and events that user space would own are not modelled.
#include <cerrno>
#include <cstring>
#include <iterator>
#include <vector>

#include "shims/providers/mlx5/bfregs.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/providers/mlx5/wire_format.h"
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/mr_access.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

using attr::kMandatory;
using attr::kOptional;

constexpr uint16_t kHeader = 16;  // general_obj_in_cmd_hdr, general_obj_out_cmd_hdr
// Command header: opcode, uid, operation modifier; reply: status, syndrome.
constexpr uint32_t kInOpcode = 0, kInOpMod = 6;
constexpr uint16_t kQueryHcaCap = 0x100;
constexpr uint16_t kGeneralStart = 0xb00, kGeneralEnd = 0xd00;
// devx_is_whitelist_cmd: QUERY_HCA_CAP, QUERY_HCA_VPORT_CONTEXT, QUERY_ESW_VPORT_CONTEXT,
// QUERY_ESW_FUNCTIONS
constexpr uint16_t kWhitelist[] = {0x100, 0x762, 0x752, 0x740};
// devx_is_general_cmd, in its order
constexpr uint16_t kGeneral[] = {0x100, 0x762, 0x752, 0x750, 0x101, 0x10a, 0x754, 0x760, 0x76f,
                                 0x770, 0x725, 0x80d, 0x822, 0x824, 0x826, 0x842, 0x740};

template <size_t kCount>
bool In(const uint16_t (&list)[kCount], uint16_t opcode) {
  for (const uint16_t one : list) {
    if (one == opcode) return true;
  }
  return false;
}

// The capabilities in cmd_hca_cap (PRM): where each number stands, counted in bits from the most
// significant.
struct CapabilityRow {
  uint16_t bit, width;
  uint64_t value;
};
constexpr CapabilityRow kGeneralDevice[] = {
    {128, 8, static_cast<uint64_t>(kCaps.log_max_srq_sz)},
    {136, 8, static_cast<uint64_t>(kCaps.log_max_qp_sz)},
    {155, 5, static_cast<uint64_t>(kCaps.log_max_qp)},
    {171, 5, static_cast<uint64_t>(kCaps.log_max_srq)},
    {200, 8, static_cast<uint64_t>(kCaps.log_max_cq_sz)},
    {219, 5, static_cast<uint64_t>(kCaps.log_max_cq)},
    {224, 8, static_cast<uint64_t>(kCaps.log_max_eq_sz)},
    {234, 6, static_cast<uint64_t>(kCaps.log_max_mkey)},
    {330, 6, static_cast<uint64_t>(kCaps.log_max_ra_req_qp)},
    {346, 6, static_cast<uint64_t>(kCaps.log_max_ra_res_qp)},
    {352, 1, kCaps.end_pad},
    {427, 5, static_cast<uint64_t>(kCaps.local_ca_ack_delay)},
    {440, 8, 1},  // num_ports
    {451, 5, static_cast<uint64_t>(kCaps.log_max_msg)},
    {480, 16, kCaps.stat_rate_support},
    {508, 4, static_cast<uint64_t>(kCaps.cqe_version)},
    {512, 1, 1},  // compact_address_vector
    {516, 1, kCaps.ipoib_basic_offloads},
    {533, 1, kCaps.sctr_data_cqe},
    {539, 1, kCaps.qos},
    {542, 1, 1},  // atomic
    {545, 1, kCaps.cq_resize},
    {546, 1, kCaps.cq_moderation},
    {551, 1, kCaps.pg},
    {552, 1, kCaps.block_lb_mc},
    {558, 1, kCaps.apm},
    {561, 1, kCaps.imaicl},
    {566, 1, kCaps.qkv},
    {567, 1, kCaps.pkv},
    {572, 1, kCaps.xrc},
    {576, 1, kCaps.uar_4k},
    {600, 8, static_cast<uint64_t>(kCaps.log_pg_sz)},
    {608, 1, 1},  // bf
    {619, 5, static_cast<uint64_t>(kCaps.log_bf_reg_size)},
    {656, 16, static_cast<uint64_t>(kCaps.max_wqe_sz_sq)},
    {688, 16, static_cast<uint64_t>(kCaps.max_wqe_sz_rq)},
    {743, 25, static_cast<uint64_t>(kCaps.max_qp_mcg)},
    {792, 8, static_cast<uint64_t>(kCaps.log_max_mcg)},
    {811, 5, static_cast<uint64_t>(kCaps.log_max_pd)},
    {827, 5, static_cast<uint64_t>(kCaps.log_max_xrcd)},
    {1216, 32, kCaps.device_frequency_khz / 1000},
    {1248, 32, kCaps.device_frequency_khz},
    {1312, 32, static_cast<uint64_t>(kCaps.num_of_uars_per_page)},
    {1471, 1, kCaps.cqe_compression},
};

void PutBits(uint8_t* bytes, size_t size, const CapabilityRow& row) {
  for (uint16_t i = 0; i < row.width; ++i) {
    const uint32_t bit = row.bit + i;
    if (bit / 8 >= size) return;
    if ((row.value >> (row.width - 1 - i) & 1) != 0)
      bytes[bit / 8] |= static_cast<uint8_t>(0x80 >> bit % 8);
  }
}

int QueryHcaCap(IoctlCall& call, std::span<const uint8_t> in, std::vector<uint8_t>* out) {
  const uint16_t kind = static_cast<uint16_t>(Load16(in.data() + kInOpMod) >> 1);
  if (kind ==
      0) {  // general device capabilities; the lowest bit asks for current ones instead of the most
    const size_t room = out->size() - kHeader;
    for (const CapabilityRow& row : kGeneralDevice) PutBits(out->data() + kHeader, room, row);
    PutBits(out->data() + kHeader, room, {368, 16, 0});
    const uint64_t link = call.file.device().image().link == LinkLayer::kEthernet ? 1 : 0;
    PutBits(out->data() + kHeader, room, {438, 2, link});  // port_type
  }
  // All else that this NIC could tell is that it has none of it.
  return 0;
}

int Other(IoctlCall& call) {
  const World& world = call.world;
  if (call.file.context() == nullptr) return call.Refuse(RuleId::mlx5_no_context);
  const std::span<const uint8_t> in = call.Bytes(VABI_C(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN));
  const size_t out_length = call.Length(VABI_C(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT));
  if (in.size() < kHeader) return call.Refuse(RuleId::mlx5_request_fault);
  const uint16_t opcode = Load16(in.data() + kInOpcode);
  const bool on_list = world.Knob(KnobId::mlx5_devx_whitelist) != 0 && In(kWhitelist, opcode);
  if (call.Violates(RuleId::mlx5_devx_no_uid, !on_list && !ContextOf(call.file).devx)) {
    return call.Refuse(RuleId::mlx5_devx_no_uid);
  }
  const bool general = In(kGeneral, opcode) || (opcode >= kGeneralStart && opcode < kGeneralEnd);
  if (call.Violates(RuleId::mlx5_devx_not_general, !general))
    return call.Refuse(RuleId::mlx5_devx_not_general);
  if (opcode != kQueryHcaCap)
    return call.Unmodelled("mlx5: a DEVX command other than QUERY_HCA_CAP");
  std::vector<uint8_t> out(out_length);
  if (const int error = QueryHcaCap(call, in, &out)) return error;
  return call.CopyOut(VABI_C(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT), out.data(), out.size());
}

int QueryUar(IoctlCall& call) {
  if (call.file.context() == nullptr) return call.Refuse(RuleId::mlx5_no_context);
  uint32_t bfreg = 0;
  if (call.CopyIn(VABI_C(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX), &bfreg, sizeof(bfreg)) != 0) {
    return call.Refuse(RuleId::mlx5_request_fault);
  }
  const ContextState& context = ContextOf(call.file);
  if (!ValidDynamicBfreg(context, bfreg)) return call.Refuse(RuleId::mlx5_devx_uar);
  const uint32_t per_page = kUarsInPage * kNonFastPathBfregsPerUar;
  const uint32_t index = context.uars[bfreg / per_page + context.static_pages] +
                         bfreg % per_page / kNonFastPathBfregsPerUar;
  return call.CopyOut(VABI_C(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX), &index, sizeof(index));
}

int QueryEqn(IoctlCall& call) {
  uint32_t vector = 0;
  if (call.CopyIn(VABI_C(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC), &vector, sizeof(vector)) != 0) {
    return call.Refuse(RuleId::mlx5_request_fault);
  }
  if (call.file.context() == nullptr) return call.Refuse(RuleId::mlx5_no_context);
  // mlx5_comp_eqn_get: ENOENT behind the last vector (mlx5_vector2eqn before).
  if (vector >= call.file.device().comp_vectors()) return call.Refuse(RuleId::mlx5_devx_eqn);
  constexpr uint32_t kFirstEqn = 8;  // behind the driver's own queues
  const uint32_t eqn = kFirstEqn + vector;
  return call.CopyOut(VABI_C(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN), &eqn, sizeof(eqn));
}

// What needs a DEVX context answers so first.
int NeedsUid(IoctlCall& call, const char* what) {
  if (call.file.context() == nullptr) return call.Refuse(RuleId::mlx5_no_context);
  if (call.Violates(RuleId::mlx5_devx_no_uid, !ContextOf(call.file).devx)) {
    return call.Refuse(RuleId::mlx5_devx_no_uid);
  }
  return call.Unmodelled(what);
}
int CreateObject(IoctlCall& call) { return NeedsUid(call, "mlx5: DEVX_OBJ.CREATE"); }
int ModifyObject(IoctlCall& call) { return NeedsUid(call, "mlx5: DEVX_OBJ.MODIFY"); }
int QueryObject(IoctlCall& call) { return NeedsUid(call, "mlx5: DEVX_OBJ.QUERY"); }
int QueryObjectAsync(IoctlCall& call) { return NeedsUid(call, "mlx5: DEVX_OBJ.ASYNC_QUERY"); }
int RegisterMemory(IoctlCall& call) { return NeedsUid(call, "mlx5: DEVX_UMEM.REG"); }
int Subscribe(IoctlCall& call) { return NeedsUid(call, "mlx5: DEVX.SUBSCRIBE_EVENT"); }
int AllocCommandFd(IoctlCall& call) { return call.Unmodelled("mlx5: DEVX_ASYNC_CMD_FD.ALLOC"); }
int AllocEventFd(IoctlCall& call) { return call.Unmodelled("mlx5: DEVX_ASYNC_EVENT_FD.ALLOC"); }
int Destroyed(IoctlCall&) { return 0; }

constexpr AttrSpec Private(ConstId id, AttrKind kind, ConstId object, Access access,
                           bool mandatory) {
  return {.id = id,
          .kind = kind,
          .mandatory = mandatory,
          .object = ObjectType::kPrivate,
          .private_type = static_cast<uint16_t>(object),
          .access = access};
}
constexpr AttrSpec Any(ConstId id, Access access) {
  return {.id = id,
          .kind = AttrKind::kIdr,
          .mandatory = true,
          .object = ObjectType::kAny,
          .access = access};
}

constexpr AttrSpec kOther[] = {
    attr::InMin(VABI_C(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN), kHeader, kMandatory, true),
    attr::OutMin(VABI_C(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT), kHeader, kMandatory),
};
constexpr AttrSpec kQueryUar[] = {
    attr::In(VABI_C(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX), 4, kMandatory),
    attr::Out(VABI_C(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX), 4, kMandatory),
};
constexpr AttrSpec kQueryEqn[] = {
    attr::In(VABI_C(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC), 4, kMandatory),
    attr::Out(VABI_C(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN), 4, kMandatory),
};
constexpr AttrSpec kSubscribe[] = {
    Private(VABI_C(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE), AttrKind::kFd,
            VABI_C(MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD), Access::kRead, kMandatory),
    Private(VABI_C(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE), AttrKind::kIdr,
            VABI_C(MLX5_IB_OBJECT_DEVX_OBJ), Access::kRead, kOptional),
    attr::InMin(VABI_C(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST), 2, kMandatory, true),
    attr::In(VABI_C(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE), 8, kOptional),
    attr::In(VABI_C(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM), 4, kOptional),
};
constexpr AttrSpec kCreateObject[] = {
    Private(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE), AttrKind::kIdr,
            VABI_C(MLX5_IB_OBJECT_DEVX_OBJ), Access::kNew, kMandatory),
    attr::InMin(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN), kHeader, kMandatory, true),
    attr::OutMin(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT), kHeader, kMandatory),
};
constexpr AttrSpec kDestroyObject[] = {
    Private(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE), AttrKind::kIdr,
            VABI_C(MLX5_IB_OBJECT_DEVX_OBJ), Access::kDestroy, kMandatory),
};
constexpr AttrSpec kModifyObject[] = {
    Any(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE), Access::kRead),
    attr::InMin(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN), kHeader, kMandatory, true),
    attr::OutMin(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT), kHeader, kMandatory),
};
constexpr AttrSpec kQueryObject[] = {
    Any(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE), Access::kRead),
    attr::InMin(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN), kHeader, kMandatory, true),
    attr::OutMin(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT), kHeader, kMandatory),
};
constexpr AttrSpec kQueryObjectAsync[] = {
    Any(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE), Access::kRead),
    attr::InMin(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN), kHeader, kMandatory, true),
    attr::Const(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN), kMandatory),
    Private(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD), AttrKind::kFd,
            VABI_C(MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD), Access::kRead, kMandatory),
    attr::In(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID), 8, kMandatory),
};
constexpr AttrSpec kRegisterMemory[] = {
    Private(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE), AttrKind::kIdr,
            VABI_C(MLX5_IB_OBJECT_DEVX_UMEM), Access::kNew, kMandatory),
    attr::In(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR), 8, kMandatory),
    attr::In(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN), 8, kMandatory),
    attr::RawFd(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD), kOptional),
    attr::Flags(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS), kOptional),
    attr::Const(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP), kOptional),
    attr::Out(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID), 4, kMandatory),
};
constexpr AttrSpec kDeregisterMemory[] = {
    Private(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE), AttrKind::kIdr,
            VABI_C(MLX5_IB_OBJECT_DEVX_UMEM), Access::kDestroy, kMandatory),
};
constexpr AttrSpec kAllocCommandFd[] = {
    Private(VABI_C(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE), AttrKind::kFd,
            VABI_C(MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD), Access::kNew, kMandatory),
};
constexpr AttrSpec kAllocEventFd[] = {
    Private(VABI_C(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE), AttrKind::kFd,
            VABI_C(MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD), Access::kNew, kMandatory),
    attr::Flags(VABI_C(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS), kMandatory),
};
const MethodSpec kMethods[] = {
    {.id = MethodId::DEVX__OTHER, .needs = Op::always, .attributes = kOther, .handler = Other},
    {.id = MethodId::DEVX__QUERY_UAR,
     .needs = Op::always,
     .attributes = kQueryUar,
     .handler = QueryUar},
    {.id = MethodId::DEVX__QUERY_EQN,
     .needs = Op::always,
     .attributes = kQueryEqn,
     .handler = QueryEqn},
    {.id = MethodId::DEVX__SUBSCRIBE_EVENT,
     .needs = Op::always,
     .attributes = kSubscribe,
     .handler = Subscribe},
    {.id = MethodId::DEVX_OBJ__CREATE,
     .needs = Op::always,
     .attributes = kCreateObject,
     .handler = CreateObject},
    {.id = MethodId::DEVX_OBJ__DESTROY,
     .needs = Op::always,
     .attributes = kDestroyObject,
     .handler = Destroyed},
    {.id = MethodId::DEVX_OBJ__MODIFY,
     .needs = Op::always,
     .attributes = kModifyObject,
     .handler = ModifyObject},
    {.id = MethodId::DEVX_OBJ__QUERY,
     .needs = Op::always,
     .attributes = kQueryObject,
     .handler = QueryObject},
    {.id = MethodId::DEVX_OBJ__ASYNC_QUERY,
     .needs = Op::always,
     .attributes = kQueryObjectAsync,
     .handler = QueryObjectAsync},
    {.id = MethodId::DEVX_UMEM__REG,
     .needs = Op::always,
     .attributes = kRegisterMemory,
     .handler = RegisterMemory},
    {.id = MethodId::DEVX_UMEM__DEREG,
     .needs = Op::always,
     .attributes = kDeregisterMemory,
     .handler = Destroyed},
    {.id = MethodId::DEVX_ASYNC_CMD_FD__ALLOC,
     .needs = Op::always,
     .attributes = kAllocCommandFd,
     .handler = AllocCommandFd},
    {.id = MethodId::DEVX_ASYNC_EVENT_FD__ALLOC,
     .needs = Op::always,
     .attributes = kAllocEventFd,
     .handler = AllocEventFd},
};

}  // namespace

std::span<const MethodSpec> DevxMethods() { return kMethods; }

}  // namespace vabi::mlx5
