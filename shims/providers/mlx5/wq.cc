// SPDX-License-Identifier: BSD-2-Clause
// qp.c: mlx5_ib_create_wq, mlx5_ib_modify_wq, mlx5_ib_create_rwq_ind_table
#include <algorithm>
#include <bit>
#include <mutex>

#include "shims/fabric/nic.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/doorbell.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/uverbs/context.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

#define REQ(field) VABI_F(mlx5_ib_create_wq, field)

using fabric::EndpointState;

// enum ib_wq_type, ib_wq_flags, ib_wq_state, ib_wq_attr_mask
constexpr uint32_t kTypeReceive = 0;
constexpr uint32_t kCvlanStripping = 1, kScatterFcs = 2, kDelayDrop = 4, kEndPadding = 8;
enum WqStateNumber : uint32_t { kWqReset = 0, kWqReady = 1, kWqError = 2 };
constexpr uint32_t kWqFlags = 4;
constexpr uint64_t kQuantum = 64;
constexpr size_t kReplyLength = 4;  // response_length; reserved behind it must fit too

struct Request {
  uint64_t buffer, doorbell;
  uint32_t count, shift, user_index, flags;
};

// prepare_user_rq
int ReadRequest(Call& call, Request* request) {
  const World& world = call.world;
  OwnedBody<64> body(world, VABI_S(mlx5_ib_create_wq));
  const size_t least = world.Has(REQ(single_stride_log_num_of_bytes))
                           ? world.End(REQ(single_stride_log_num_of_bytes))
                           : body.length();
  const RequestRules rules = {least, RuleId::mlx5_create_wq_length, RuleId::mlx5_create_wq_tail};
  if (const int error = CopyRequest(call, body.base(), body.length(), rules)) return error;
  const auto striding = static_cast<uint64_t>(world.Flag(VABI_C(MLX5_IB_CREATE_WQ_STRIDING_RQ)));
  const uint64_t comp_mask = body.Get(REQ(comp_mask));
  if (call.Violates(RuleId::mlx5_create_wq_comp_mask, (comp_mask & ~striding) != 0)) {
    return call.Refuse(RuleId::mlx5_create_wq_comp_mask);
  }
  if (call.Violates(RuleId::mlx5_create_wq_reserved, body.Get(REQ(reserved)) != 0)) {
    return call.Refuse(RuleId::mlx5_create_wq_reserved);
  }
  if (call.Violates(RuleId::mlx5_create_wq_striding,
                    (comp_mask & striding) != 0 && !kCaps.striding_rq)) {
    return call.Refuse(RuleId::mlx5_create_wq_striding);
  }
  request->buffer = body.Get(REQ(buf_addr));
  request->doorbell = body.Get(REQ(db_addr));
  request->count = body.U32(REQ(rq_wqe_count));
  request->shift = body.U32(REQ(rq_wqe_shift));
  request->user_index = body.U32(REQ(user_index));
  request->flags = body.U32(REQ(flags));
  return 0;
}

// set_user_rq_size, create_user_rq, create_rq
int CheckRequest(Call& call, const Wq& wq, const Request& request) {
  if (call.Violates(RuleId::mlx5_create_wq_depth, wq.max_wr > 1u << kCaps.log_max_wq_sz)) {
    return call.Refuse(RuleId::mlx5_create_wq_depth);
  }
  if (request.count == 0) return call.Refuse(RuleId::mlx5_create_wq_count);
  if (request.shift >= 32 || uint64_t{request.count} << request.shift > UINT64_MAX >> 1) {
    return call.Refuse(RuleId::mlx5_create_wq_overflow);
  }
  if (request.buffer == 0) return call.Refuse(RuleId::mlx5_create_wq_no_buffer);
  if (const int error =
          PinMemory(call, request.buffer, uint64_t{request.count} << request.shift, false))
    return error;
  if (call.Violates(RuleId::mlx5_create_wq_buffer_offset, request.buffer % kQuantum != 0)) {
    return call.Refuse(RuleId::mlx5_create_wq_buffer_offset);
  }
  if (const int error = PinDoorbell(call, request.doorbell)) return error;
  if (call.Violates(RuleId::mlx5_real_time, LacksTime(wq.cq)))
    return call.Refuse(RuleId::mlx5_real_time);
  uint32_t missing = 0;
  if (!kCaps.end_pad) missing |= kEndPadding;
  if (!kCaps.vlan_cap) missing |= kCvlanStripping;
  if (!kCaps.eth_net_offloads) missing |= kScatterFcs;
  if (!kCaps.delay_drop) missing |= kDelayDrop;
  if (call.Violates(RuleId::mlx5_create_wq_flags, (wq.create_flags & missing) != 0)) {
    return call.Refuse(RuleId::mlx5_create_wq_flags);
  }
  constexpr uint32_t kLeastShift = 4;
  if (request.shift < kLeastShift || 1 << request.shift > kCaps.max_wqe_sz_rq) {
    return call.Unmodelled("mlx5: sizes of work queue elements that the firmware refuses");
  }
  return 0;
}

// The length of the structure, of which only response_length was copied before 7.2.
int Answer(Call& call, StructId id, FieldId field) {
  if (call.out.length() == 0) return 0;
  OwnedBody<16> reply(call.world, id);
  reply.Set(field, kReplyLength);
  const bool whole = call.world.Knob(KnobId::mlx5_respond_zeroes) != 0;
  return Respond(call, reply.base(), whole ? reply.length() : kReplyLength, OldRespond::kWhole);
}

bool ReplyTooShort(const Call& call, StructId id) {
  return call.out.length() != 0 && call.out.length() < call.world.Size(id);
}

}  // namespace

int Mlx5Driver::CreateWq(Call& call, Wq& wq) {
  if (call.Violates(RuleId::mlx5_create_wq_reply,
                    ReplyTooShort(call, VABI_S(mlx5_ib_create_wq_resp)))) {
    return call.Refuse(RuleId::mlx5_create_wq_reply);
  }
  if (call.Violates(RuleId::mlx5_create_wq_permission,
                    (wq.create_flags & kDelayDrop) != 0 && !HasCapabilities(call.world))) {
    return call.Refuse(RuleId::mlx5_create_wq_permission);
  }
  if (wq.wq_type != kTypeReceive) return call.Refuse(RuleId::mlx5_create_wq_type);
  Request request = {};
  if (const int error = ReadRequest(call, &request)) return error;
  if (const int error = CheckRequest(call, wq, request)) return error;
  if (const int error = Answer(call, VABI_S(mlx5_ib_create_wq_resp),
                               VABI_F(mlx5_ib_create_wq_resp, response_length))) {
    return error;
  }
  wq.wqn = wq.device->NextQpn();
  auto state = std::make_unique<WqState>();
  const bool signature =
      (request.flags & static_cast<uint32_t>(call.world.Flag(VABI_C(MLX5_WQ_FLAG_SIGNATURE)))) != 0;
  QueuePair::Parts parts;
  // The NIC works with the logarithm.
  parts.receive = {request.buffer, std::bit_floor(request.count), request.shift, signature,
                   request.doorbell};
  parts.recv_cq = StateOf(*wq.cq).queue.get();
  parts.user_indices = ContextOf(call.file).cqe_version != 0;
  parts.user_index = request.user_index;
  state->queue = std::make_unique<QueuePair>(parts);
  state->queue->service = fabric::Service::kRaw;
  state->queue->qpn = wq.wqn;
  state->queue->device = wq.device->number();
  state->queue->pd = StateOf(*wq.pd).pdn;
  Watch(state->queue.get());
  wq.driver = std::move(state);
  return 0;
}

int Mlx5Driver::ModifyWq(Call& call, Wq& wq, uint32_t mask, uint32_t state, uint32_t flags) {
  OwnedBody<16> body(call.world, VABI_S(mlx5_ib_modify_wq));
  const RequestRules rules = {body.length(), RuleId::mlx5_modify_wq_length,
                              RuleId::mlx5_modify_wq_tail};
  if (const int error = CopyRequest(call, body.base(), body.length(), rules)) return error;
  const uint64_t reserved = body.Get(VABI_F(mlx5_ib_modify_wq, comp_mask)) |
                            body.Get(VABI_F(mlx5_ib_modify_wq, reserved));
  if (call.Violates(RuleId::mlx5_modify_wq_reserved, reserved != 0)) {
    return call.Refuse(RuleId::mlx5_modify_wq_reserved);
  }
  if (call.Violates(RuleId::mlx5_modify_wq_flags,
                    (mask & kWqFlags) != 0 && (flags & (kCvlanStripping | kEndPadding)) != 0)) {
    return call.Refuse(RuleId::mlx5_modify_wq_flags);
  }
  const bool normal = state == kWqReset || state == wq.state ||
                      (wq.state == kWqReset && state == kWqReady) ||
                      (wq.state == kWqReady && state == kWqError);
  if (!normal)
    return call.Unmodelled("mlx5: a transition of a work queue that the firmware judges");
  std::lock_guard lock(fabric::Lock());
  QueuePair& queue = *StateOf(wq).queue;
  if (state == kWqReset) {
    queue.Reset();
    queue.state = EndpointState::kReset;
  } else {
    queue.state = state == kWqReady ? EndpointState::kRtr : EndpointState::kErr;
  }
  fabric::Kick();
  return 0;
}

void Mlx5Driver::DestroyWq(Wq& wq) {
  Unwatch(StateOf(wq).queue.get());
  wq.driver.reset();
}

int Mlx5Driver::CreateRwqIndTable(Call& call, RwqIndTable& table) {
  if (call.On(RuleId::mlx5_ind_table_input) && call.in.length() != 0) {
    const int clear = call.in.TailIsZero(0);
    if (clear < 0) return call.Refuse(RuleId::mlx5_request_fault);
    if (clear == 0) return call.Refuse(RuleId::mlx5_ind_table_input);
  }
  if (call.Violates(RuleId::mlx5_ind_table_size,
                    table.wqs.size() > size_t{1} << kCaps.log_max_rqt_size)) {
    return call.Refuse(RuleId::mlx5_ind_table_size);
  }
  if (call.Violates(RuleId::mlx5_ind_table_reply,
                    ReplyTooShort(call, VABI_S(mlx5_ib_create_rwq_ind_tbl_resp)))) {
    return call.Refuse(RuleId::mlx5_ind_table_reply);
  }
  table.number = table.device->NextNumber();
  return Answer(call, VABI_S(mlx5_ib_create_rwq_ind_tbl_resp),
                VABI_F(mlx5_ib_create_rwq_ind_tbl_resp, response_length));
}

}  // namespace vabi::mlx5
