// SPDX-License-Identifier: BSD-2-Clause
// devx.c: commands that user space writes for the firmware itself (firmware.cc). Events that user
// space would own are not modelled.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <vector>

#include "shims/providers/common/udata.h"
#include "shims/providers/mlx5/bfregs.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/providers/mlx5/firmware.h"
#include "shims/providers/mlx5/firmware_queues.h"
#include "shims/providers/mlx5/wire_format.h"
#include "shims/uverbs/attr_spec.h"
#include "shims/uverbs/context.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/mr_access.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

using attr::kMandatory;
using attr::kOptional;

constexpr uint16_t kHeader = prm::kHeader;
// Command header: opcode, uid, operation modifier; reply: status, syndrome.
constexpr uint32_t kInOpcode = 0, kInOpMod = 6;
constexpr uint16_t kQueryHcaCap = 0x100, kQueryHcaVportContext = 0x762;
constexpr uint16_t kGeneralStart = 0xb00, kGeneralEnd = 0xd00;
constexpr int kGeneralRangeSince = 500;

// A command on one of devx.c's lists: from when and until when, as mlx5.devx.commands counts.
struct Listed {
  static constexpr int kFirst = 419, kNow = 9999;
  constexpr Listed(int number, int from = kFirst, int to = kNow)
      : opcode(static_cast<uint16_t>(number)), since(from), until(to) {}
  uint16_t opcode;
  int since, until;
};

// devx_is_whitelist_cmd: QUERY_HCA_CAP, QUERY_HCA_VPORT_CONTEXT, QUERY_ESW_VPORT_CONTEXT,
// QUERY_ESW_FUNCTIONS
constexpr Listed kWhitelist[] = {{0x100, 420}, {0x762, 420}, {0x752, 502}, {0x740, 601}};
// devx_is_general_cmd, in its order
constexpr Listed kGeneral[] = {0x100, {0x762, 420}, {0x752, 502}, 0x750,        0x101,       0x10a,
                               0x754, 0x760,        0x76f,        0x770,        0x725,       0x80d,
                               0x822, 0x824,        0x826,        {0x842, 504}, {0x740, 601}};

// devx_is_obj_create_cmd
constexpr uint16_t kSetFlowTableEntry = 0x936, kCreatePsv = 0x600;  // those that ask for more
constexpr Listed kCreates[] = {0xa00, 0x200, 0x400, 0x800, 0x816,       0x90c, 0x904, 0x908,
                               0x916, 0x900, 0x912, 0x771, 0x930,       0x933, 0x939, 0x93d,
                               0x940, 0x782, 0x827, 0x829, 0x500,       0x700, 0x705, 0x710,
                               0x717, 0x806, 0x80e, 0x936, {0x600, 504}};
// devx_is_obj_modify_cmd
constexpr Listed kModifies[] = {
    0xa01,        0x403,        0x90d,        0x905,       0x909,
    0x917,        0x901,        0x913,        0x93c,       0x785,
    0x827,        0x829,        0x502,        0x503,       0x504,
    0x505,        0x506,        0x507,        0x50a,       0x708,
    0x703,        0x714,        0x71a,        0x936,       {0x712, 419, 500},
    {0x726, 500}, {0x729, 504}, {0x72a, 504}, {0x50e, 507}};
// devx_is_obj_query_cmd
constexpr Listed kQueries[] = {0xa02, 0x201,        0x402,        0x90f,       0x907, 0x90b, 0x919,
                               0x903, 0x915,        0x773,        0x932,       0x935, 0x937, 0x93b,
                               0x942, 0x784,        0x82a,        0x50b,       0x702, 0x707, 0x713,
                               0x719, {0x725, 500}, {0x727, 500}, {0x93f, 500}};
// devx_get_obj_id: commands that name a queue pair, and the one for a DCT.
constexpr uint16_t kOfQueuePairs[] = {0x50b, 0x502, 0x50e, 0x503, 0x504,
                                      0x505, 0x506, 0x507, 0x50a};
constexpr uint16_t kQueryDct = 0x713, kQueryCq = 0x402, kModifyCq = 0x403, kQueryMkey = 0x201,
                   kModifyGeneral = 0xa01, kQueryGeneral = 0xa02;

bool In(std::span<const Listed> list, const World& world, uint16_t opcode) {
  const auto now = static_cast<int>(world.Knob(KnobId::mlx5_devx_commands));
  return std::any_of(list.begin(), list.end(), [&](const Listed& one) {
    return one.opcode == opcode && one.since <= now && now <= one.until;
  });
}

// The capabilities in cmd_hca_cap (PRM): where each number stands, counted in bits from the most
// significant.
struct CapabilityRow {
  uint16_t bit, width;
  uint64_t value;
};
constexpr uint64_t kGeneralObjects = uint64_t{1}
                                         << static_cast<int>(GeneralObject::kSchedulingElement) |
                                     uint64_t{1} << static_cast<int>(GeneralObject::kReservedQpn) |
                                     uint64_t{1} << static_cast<int>(GeneralObject::kAvQpMapping);
constexpr CapabilityRow kGeneralDevice[] = {
    {32, 1, 1},  // hca_cap_2
    {107, 5, static_cast<uint64_t>(kCaps.log_dma_mmo_max_size)},
    {128, 8, static_cast<uint64_t>(kCaps.log_max_srq_sz)},
    {136, 8, static_cast<uint64_t>(kCaps.log_max_qp_sz)},
    {155, 5, static_cast<uint64_t>(kCaps.log_max_qp)},
    {171, 5, static_cast<uint64_t>(kCaps.log_max_srq)},
    {200, 8, static_cast<uint64_t>(kCaps.log_max_cq_sz)},
    {219, 5, static_cast<uint64_t>(kCaps.log_max_cq)},
    {224, 8, static_cast<uint64_t>(kCaps.log_max_eq_sz)},
    {234, 6, static_cast<uint64_t>(kCaps.log_max_mkey)},
    {290, 1, kCaps.qpc_extension},
    {298, 6, static_cast<uint64_t>(kCaps.log_max_ra_req_dc)},
    {314, 6, static_cast<uint64_t>(kCaps.log_max_ra_res_dc)},
    {330, 6, static_cast<uint64_t>(kCaps.log_max_ra_req_qp)},
    {339, 1, kCaps.dma_mmo_sq},
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
    {538, 1, kCaps.dct},
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
    {720, 16, static_cast<uint64_t>(kCaps.max_wqe_sz_sq)},  // max_wqe_sz_sq_dc
    {743, 25, static_cast<uint64_t>(kCaps.max_qp_mcg)},
    {792, 8, static_cast<uint64_t>(kCaps.log_max_mcg)},
    {811, 5, static_cast<uint64_t>(kCaps.log_max_pd)},
    {827, 5, static_cast<uint64_t>(kCaps.log_max_xrcd)},
    {1024, 64, kGeneralObjects},
    {1216, 32, kCaps.device_frequency_khz / 1000},
    {1248, 32, kCaps.device_frequency_khz},
    {1312, 32, static_cast<uint64_t>(kCaps.num_of_uars_per_page)},
    {1469, 1, kCaps.cqe_128_always},
    {1471, 1, kCaps.cqe_compression},
};

constexpr CapabilityRow kGeneralDevice2[] = {
    {147, 5, static_cast<uint64_t>(kCaps.log_reserved_qpn_granularity)},
};

constexpr CapabilityRow kQos[] = {
    {8, 1, kCaps.nic_sq_scheduling},   {9, 1, kCaps.nic_bw_share},
    {10, 1, kCaps.nic_rate_limit},     {33, 1, kCaps.nic_qp_scheduling},
    {256, 16, kCaps.nic_element_type}, {272, 16, kCaps.nic_tsar_type},
};

// odp_cap, by service: send, receive, write, read, atomic, srq_receive from the highest bit on.
constexpr uint64_t kOdpSend = 1u << 31, kOdpReceive = 1u << 30, kOdpWrite = 1u << 29,
                   kOdpRead = 1u << 28, kOdpAtomic = 1u << 27, kOdpSrq = 1u << 26;

// As the driver has turned it on (mlx5/core/main.c:handle_hca_cap_odp), or all that the card has.
void QueryOdp(const World& world, bool current, std::span<uint8_t> out) {
  if (!kCaps.pg) return;
  const uint64_t all = kOdpSend | kOdpWrite | kOdpRead | kOdpAtomic;
  const uint64_t srq = !current || world.Knob(KnobId::mlx5_odp_srq) != 0 ? kOdpSrq : 0;
  const bool dc = !current || world.Knob(KnobId::mlx5_odp_dc) != 0;
  PrmSet(out, {64, 1}, 1);  // sig
  PrmSet(out, {128, 32}, all | kOdpReceive | srq);
  PrmSet(out, {192, 32}, kOdpSend | srq);
  PrmSet(out, {224, 32}, srq != 0 ? all | srq : 0);
  PrmSet(out, {256, 32}, dc ? all | kOdpSrq : 0);
}

int QueryHcaCap(IoctlCall& call, std::span<const uint8_t> in, std::vector<uint8_t>* out) {
  enum : uint16_t { kGeneral = 0, kOdp = 2, kQualityOfService = 0xc, kGeneral2 = 0x20 };
  const uint16_t modifier = Load16(in.data() + kInOpMod);
  const auto kind = static_cast<uint16_t>(modifier >> 1);
  const std::span<uint8_t> capability = std::span(*out).subspan(kHeader);
  const auto put = [&](const CapabilityRow& row) {
    PrmSet(capability, {row.bit, row.width}, row.value);
  };
  // The lowest bit of the modifier asks for current ones instead of the most.
  if (kind == kGeneral) {
    const bool ethernet = call.file.device().image().link == LinkLayer::kEthernet;
    for (const CapabilityRow& row : kGeneralDevice) put(row);
    put({337, 1, ethernet});  // rts2rts_qp_udp_sport
    put({368, 16, 0});
    put({438, 2, ethernet});  // port_type
    if (kCaps.tag_matching && !ethernet) {
      put({1520, 1, 1});
      put({1521, 1, 1});  // rndv_offload_rc
      put({1523, 5, static_cast<uint64_t>(kCaps.log_tag_matching_list_sz)});
    }
  }
  if (kind == kGeneral2) {
    for (const CapabilityRow& row : kGeneralDevice2) put(row);
  }
  if (kind == kQualityOfService) {
    for (const CapabilityRow& row : kQos) put(row);
  }
  if (kind == kOdp) QueryOdp(call.world, (modifier & 1) != 0, capability);
  // All else that this NIC could tell is that it has none of it.
  return 0;
}

// hca_vport_context of the function's own port, as far as this NIC has what it tells.
void QueryVport(const Device& device, std::span<uint8_t> context) {
  const PortImage& port = device.port(1);
  const uint64_t active = device.PortState(1);
  PrmSet(context, {280, 4}, active);
  PrmSet(context, {284, 4}, active);
  PrmSet(context, {768, 16}, port.lid);
  PrmSet(context, {792, 3}, port.lmc);
  PrmSet(context, {800, 16}, port.sm_lid);
}

// What needs a DEVX context asks for it first.
int CheckUid(IoctlCall& call) {
  if (call.file.context() == nullptr) return call.Refuse(RuleId::mlx5_no_context);
  if (call.Violates(RuleId::mlx5_devx_no_uid, !ContextOf(call.file).devx)) {
    return call.Refuse(RuleId::mlx5_devx_no_uid);
  }
  if (call.Violates(RuleId::mlx5_devx_raw, !HasCapabilities(call.world)))
    return call.Refuse(RuleId::mlx5_devx_raw);
  return 0;
}

int Other(IoctlCall& call) {
  const World& world = call.world;
  if (call.file.context() == nullptr) return call.Refuse(RuleId::mlx5_no_context);
  const std::span<const uint8_t> in = call.Bytes(VABI_C(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN));
  const size_t out_length = call.Length(VABI_C(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT));
  if (in.size() < kHeader) return call.Refuse(RuleId::mlx5_request_fault);
  const uint16_t opcode = Load16(in.data() + kInOpcode);
  const bool on_list = In(kWhitelist, world, opcode);
  if (!on_list) {
    if (const int error = CheckUid(call)) return error;
  }
  const bool general =
      In(kGeneral, world, opcode) || (opcode >= kGeneralStart && opcode < kGeneralEnd &&
                                      world.Knob(KnobId::mlx5_devx_commands) >= kGeneralRangeSince);
  if (call.Violates(RuleId::mlx5_devx_not_general, !general))
    return call.Refuse(RuleId::mlx5_devx_not_general);
  std::vector<uint8_t> out(out_length);
  const bool infiniband = call.file.device().image().link == LinkLayer::kInfiniband;
  if (opcode == kQueryHcaCap) {
    if (const int error = QueryHcaCap(call, in, &out)) return error;
  } else if (opcode == kQueryHcaVportContext && infiniband && PrmGet(in, {64, 1}) == 0) {
    QueryVport(call.file.device(), std::span(out).subspan(kHeader));
  } else {
    return call.Unmodelled("mlx5: a DEVX command other than queries of capabilities and vports");
  }
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
  const uint32_t eqn = kFirstEqn + vector;
  return call.CopyOut(VABI_C(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN), &eqn, sizeof(eqn));
}

int NeedsUid(IoctlCall& call, const char* what) {
  const int error = CheckUid(call);
  return error != 0 ? error : call.Unmodelled(what);
}
// MLX5_CMD_STAT_* to an errno (mlx5/core/cmd.c:cmd_status_to_err)
int ErrnoOf(PrmStatus status) {
  switch (status) {
    case PrmStatus::kLimit:
      return ENOMEM;
    case PrmStatus::kNoResources:
      return EAGAIN;
    case PrmStatus::kBadInputLength:
      return EIO;
    default:
      return EINVAL;
  }
}

// What all commands of objects have alike.
int CheckObjectCommand(IoctlCall& call, std::span<const uint8_t> in, bool listed) {
  if (call.file.context() == nullptr) return call.Refuse(RuleId::mlx5_no_context);
  if (call.Violates(RuleId::mlx5_devx_tunnel, PrmGet(in, prm::kTunnel) != 0)) {
    return call.Refuse(RuleId::mlx5_devx_tunnel);
  }
  if (const int error = CheckUid(call)) return error;
  if (call.Violates(RuleId::mlx5_devx_not_of_objects, !listed))
    return call.Refuse(RuleId::mlx5_devx_not_of_objects);
  return 0;
}

// What the firmware said, as the caller gets it: since 5.18 (mlx5_cmd_do) the reply also where the
// firmware refused, and EREMOTEIO.
int Finish(IoctlCall& call, ConstId out_attribute, FirmwareAnswer& answer,
           std::vector<uint8_t>* out) {
  if (answer.unmodelled != nullptr) return call.Unmodelled(answer.unmodelled);
  if (answer.status == PrmStatus::kOk) return call.CopyOut(out_attribute, out->data(), out->size());
  const bool told = call.world.Knob(KnobId::mlx5_devx_remote_errors) != 0;
  PrmSet(*out, prm::kStatus, static_cast<uint64_t>(answer.status));
  if (told) {
    if (const int error = call.CopyOut(out_attribute, out->data(), out->size())) return error;
  }
  const int refused = call.Refuse(RuleId::mlx5_devx_firmware);
  return told ? refused : -ErrnoOf(answer.status);
}

int CreateObject(IoctlCall& call) {
  const std::span<const uint8_t> in = call.Bytes(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN));
  const auto opcode = static_cast<uint16_t>(PrmGet(in, prm::kOpcode));
  const uint64_t modifier = PrmGet(in, prm::kOpMod);
  const bool listed = In(kCreates, call.world, opcode) &&
                      (opcode != kSetFlowTableEntry || modifier == 0) &&
                      (opcode != kCreatePsv || PrmGet(in, {64, 4}) == 1);
  if (const int error = CheckObjectCommand(call, in, listed)) return error;
  if (call.Violates(RuleId::mlx5_devx_mkey_length,
                    opcode == static_cast<uint16_t>(PrmOpcode::kCreateMkey) &&
                        in.size() < prm::kCreateMkeyLeast)) {
    return call.Refuse(RuleId::mlx5_devx_mkey_length);
  }
  std::vector<uint8_t> out(call.Length(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT)));
  FirmwareAnswer answer = FirmwareCreate(call, in, out);
  if (answer.object != nullptr) {
    auto object = std::make_unique<Object>(ObjectType::kPrivate);
    object->private_type = static_cast<uint16_t>(VABI_C(MLX5_IB_OBJECT_DEVX_OBJ));
    object->driver = std::move(answer.object);
    call.Created(VABI_C(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE), std::move(object));
  }
  return Finish(call, VABI_C(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT), answer, &out);
}

// devx_get_obj_id: the command that created what this one names, and its number. 0: another kind.
uint64_t NamedObject(std::span<const uint8_t> in) {
  const auto opcode = static_cast<uint16_t>(PrmGet(in, prm::kOpcode));
  const uint64_t number = PrmGet(in, prm::kNumber);
  if (std::ranges::find(kOfQueuePairs, opcode) != std::end(kOfQueuePairs))
    return EncodedId(PrmOpcode::kCreateQp, number);
  switch (opcode) {
    case kQueryDct:
      return EncodedId(PrmOpcode::kCreateDct, number);
    case kQueryCq:
    case kModifyCq:
      return EncodedId(PrmOpcode::kCreateCq, number);
    case kQueryMkey:
      return EncodedId(PrmOpcode::kCreateMkey, number);
    case kModifyGeneral:
    case kQueryGeneral:
      return GeneralId(static_cast<GeneralObject>(PrmGet(in, prm::kObjectType)),
                       PrmGet(in, prm::kObjectId));
    default:
      return 0;
  }
}

bool MadeByDevx(const Object& object) {
  return object.type == ObjectType::kPrivate &&
         object.private_type == static_cast<uint16_t>(VABI_C(MLX5_IB_OBJECT_DEVX_OBJ));
}

// devx_is_valid_obj_id
bool Names(Object& object, uint64_t named) {
  switch (object.type) {
    case ObjectType::kQp: {
      const auto& qp = static_cast<Qp&>(object);
      const auto* state = static_cast<const QueuePairState*>(qp.driver.get());
      if (state != nullptr && state->dynamic == Dynamic::kTarget)
        return named == EncodedId(PrmOpcode::kCreateDct, state->pair->qpn);
      return named == EncodedId(PrmOpcode::kCreateQp, qp.qp_num);
    }
    case ObjectType::kCq:
      return named ==
             EncodedId(PrmOpcode::kCreateCq, StateOf(static_cast<Cq&>(object)).queue->number());
    case ObjectType::kPrivate: {
      if (!MadeByDevx(object)) return false;
      return named == static_cast<const DevxState*>(object.driver.get())->id;
    }
    default:
      return false;
  }
}

template <typename Command>
int ObjectCommand(IoctlCall& call, ConstId handle, ConstId in_attribute, ConstId out_attribute,
                  std::span<const Listed> list, Command command) {
  const std::span<const uint8_t> in = call.Bytes(in_attribute);
  const auto opcode = static_cast<uint16_t>(PrmGet(in, prm::kOpcode));
  const bool listed = In(list, call.world, opcode) &&
                      (opcode != kSetFlowTableEntry || PrmGet(in, prm::kOpMod) == 1);
  if (const int error = CheckObjectCommand(call, in, listed)) return error;
  Object& object = *call.GetObject(handle);
  // The kernel looks at this where it looks the handle up.
  if (call.world.Knob(KnobId::mlx5_devx_any_object) == 0 && !MadeByDevx(object))
    return call.Refuse(RuleId::handle_kind);
  const uint64_t named = NamedObject(in);
  if (named == 0) return call.Unmodelled("mlx5: a DEVX command of this kind of object");
  if (call.Violates(RuleId::mlx5_devx_other_object, !Names(object, named)))
    return call.Refuse(RuleId::mlx5_devx_other_object);
  std::vector<uint8_t> out(call.Length(out_attribute));
  FirmwareAnswer answer = command(call, object, in, out);
  return Finish(call, out_attribute, answer, &out);
}

int ModifyObject(IoctlCall& call) {
  return ObjectCommand(call, VABI_C(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE),
                       VABI_C(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN),
                       VABI_C(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT), kModifies, FirmwareModify);
}

int QueryObject(IoctlCall& call) {
  return ObjectCommand(call, VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE),
                       VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN),
                       VABI_C(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT), kQueries, FirmwareQuery);
}

int QueryObjectAsync(IoctlCall& call) { return NeedsUid(call, "mlx5: DEVX_OBJ.ASYNC_QUERY"); }
// devx_umem_get, devx_umem_find_best_pgsize
int RegisterMemory(IoctlCall& call) {
  if (const int error = CheckUid(call)) return error;
  uint64_t access = 0, address = 0, length = 0;
  const auto allowed = static_cast<uint64_t>(call.world.Knob(KnobId::mlx5_devx_umem_access));
  if (const int error =
          call.GetFlags(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS), allowed, &access)) {
    return error;
  }
  if (call.CopyIn(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR), &address, sizeof(address)) != 0 ||
      call.CopyIn(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN), &length, sizeof(length)) != 0) {
    return call.Refuse(RuleId::mlx5_request_fault);
  }
  const auto flags = static_cast<uint32_t>(access);
  if (const int error = CheckMrAccess(call, flags)) return error;
  if (call.Has(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD)))
    return call.Unmodelled("mlx5: DEVX_UMEM.REG of a dma-buf");
  if (const int error = PinMemory(call, address, length, provider::AccessWrites(flags)))
    return error;
  uint64_t pages = ~uint64_t{0};
  if (call.Has(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP))) {
    if (const int error = call.GetConst(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP), &pages)) {
      return error;
    }
  }
  constexpr int kPageShift = 12;
  int highest = kPageShift;
  while (highest < 63 && uint64_t{1} << highest < length) ++highest;
  const uint64_t of_use = pages >> kPageShift << kPageShift & ((uint64_t{2} << highest) - 1);
  if (call.Violates(RuleId::mlx5_devx_umem_pages, of_use == 0))
    return call.Refuse(RuleId::mlx5_devx_umem_pages);
  Device& device = call.file.device();
  const uint32_t id = device.NextNumber();
  auto object = std::make_unique<Object>(ObjectType::kPrivate);
  object->private_type = static_cast<uint16_t>(VABI_C(MLX5_IB_OBJECT_DEVX_UMEM));
  object->driver = std::make_unique<UmemState>(call.file, id, address, length);
  call.Created(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE), std::move(object));
  return call.CopyOut(VABI_C(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID), &id, sizeof(id));
}
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
