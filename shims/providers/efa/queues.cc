// SPDX-License-Identifier: BSD-2-Clause
// efa_verbs.c: completion queues and queue pairs
#include "shims/providers/efa/card.h"
#include "shims/providers/efa/driver.h"
#include "shims/uverbs/qp_state.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::efa {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint32_t kSrd = 0;  // EFA_QP_DRIVER_TYPE_SRD

uint64_t Whole(uint64_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }

bool Zero(const Body& body, FieldId field) {
  uint8_t bytes[8] = {};
  body.GetBytes(field, bytes, sizeof(bytes));
  for (const uint8_t byte : bytes) {
    if (byte != 0) return false;
  }
  return true;
}

PlacesState& PlacesOf(Object& object) { return *static_cast<PlacesState*>(object.driver.get()); }

struct CqRules {
  static constexpr RuleId kShort = rule::cq_input_short, kTail = rule::cq_input_tail,
                          kMask = rule::cq_comp_mask, kReserved = rule::cq_reserved;
};
struct QpRules {
  static constexpr RuleId kShort = rule::qp_input_short, kTail = rule::qp_input_tail,
                          kMask = rule::qp_comp_mask, kReserved = rule::qp_reserved;
};

// A request that ends with `last` or later, with no comp_mask and nothing in what is reserved.
template <typename Rules>
int ReadRequest(Call& call, const Body& body, FieldId last, FieldId comp_mask,
                std::initializer_list<FieldId> reserved) {
  if (const int error = provider::CopyRequest(
          call, body.base(), body.length(),
          {call.world.End(last), Rules::kShort, Rules::kTail, rule::input_fault})) {
    return error;
  }
  if (call.Violates(Rules::kMask, body.Get(comp_mask) != 0)) return call.Refuse(Rules::kMask);
  for (const FieldId field : reserved) {
    if (call.Violates(Rules::kReserved, !Zero(body, field))) return call.Refuse(Rules::kReserved);
  }
  return 0;
}

// The transitions of srd_qp_state_table: what a move must bring, and what it may.
struct SrdMove {
  QpState from, to;
  uint32_t must, may;
};
constexpr SrdMove kSrdMoves[] = {
    {QpState::kReset, QpState::kReset, 0, 0},
    {QpState::kReset, QpState::kInit, kQpPkeyIndex | kQpPort | kQpQkey, 0},
    {QpState::kInit, QpState::kReset, 0, 0},
    {QpState::kInit, QpState::kErr, 0, 0},
    {QpState::kInit, QpState::kInit, 0, kQpPkeyIndex | kQpPort | kQpQkey},
    {QpState::kInit, QpState::kRtr, 0, kQpPkeyIndex | kQpQkey},
    {QpState::kRtr, QpState::kReset, 0, 0},
    {QpState::kRtr, QpState::kErr, 0, 0},
    {QpState::kRtr, QpState::kRts, kQpSqPsn, kQpCurState | kQpQkey | kQpRnrRetry},
    {QpState::kRts, QpState::kReset, 0, 0},
    {QpState::kRts, QpState::kErr, 0, 0},
    {QpState::kRts, QpState::kRts, 0, kQpCurState | kQpQkey},
    {QpState::kRts, QpState::kSqd, 0, kQpEnSqdAsyncNotify},
    {QpState::kSqd, QpState::kReset, 0, 0},
    {QpState::kSqd, QpState::kErr, 0, 0},
    {QpState::kSqd, QpState::kRts, 0, kQpCurState | kQpQkey},
    {QpState::kSqd, QpState::kSqd, 0, kQpPkeyIndex | kQpQkey},
    {QpState::kSqe, QpState::kReset, 0, 0},
    {QpState::kSqe, QpState::kErr, 0, 0},
    {QpState::kSqe, QpState::kRts, 0, kQpCurState | kQpQkey},
    {QpState::kErr, QpState::kReset, 0, 0},
    {QpState::kErr, QpState::kErr, 0, 0},
};

// efa_modify_srd_qp_is_ok
bool SrdMoveIsOk(QpState current, QpState next, uint32_t mask) {
  if ((mask & kQpCurState) != 0 && current != QpState::kRtr && current != QpState::kRts &&
      current != QpState::kSqd && current != QpState::kSqe) {
    return false;
  }
  for (const SrdMove& move : kSrdMoves) {
    if (move.from != current || move.to != next) continue;
    return (mask & move.must) == move.must && (mask & ~(move.must | move.may | kQpState)) == 0;
  }
  return false;
}

}  // namespace

int EfaDriver::CreateCq(Call& call, Cq& cq) {
  const World& world = call.world;
#define REQ(name) VABI_PF(efa_ibv_create_cq, name)
  if (call.Violates(rule::cq_flags, cq.flags != 0)) return call.Refuse(rule::cq_flags);
  if (call.Violates(rule::cq_none, cq.cqe == 0)) return call.Refuse(rule::cq_none);
  if (call.Violates(rule::cq_cqe, cq.cqe > kCard.max_cq_depth)) return call.Refuse(rule::cq_cqe);
  OwnedBody<32> request(world, structure::efa_ibv_create_cq);
  if (const int error = ReadRequest<CqRules>(call, request, REQ(num_sub_cqs), REQ(comp_mask),
                                             {REQ(reserved_50), REQ(reserved_58)})) {
    return error;
  }
  const uint32_t size = request.U32(REQ(cq_entry_size));
  const bool known = size == kCard.short_entry || size == kCard.long_entry;
  if (world.Knob(knob::entry_sizes) != 0) {
    const bool gids = (request.U32(REQ(flags)) &
                       static_cast<uint32_t>(world.Flag(constant::EFA_CREATE_CQ_WITH_SGID))) != 0;
    if (call.Violates(rule::cq_entry_size, !known || (gids && size != kCard.long_entry)))
      return call.Refuse(rule::cq_entry_size);
  } else if (call.Violates(rule::cq_entry_size, size == 0)) {
    return call.Refuse(rule::cq_entry_size);
  }
  if (call.Violates(rule::cq_sub_cqs, request.U32(REQ(num_sub_cqs)) != kCard.sub_cqs_per_cq))
    return call.Refuse(rule::cq_sub_cqs);
  if (!known) return call.Unmodelled("efa: what the card says of entries of that size");
#undef REQ
  const uint64_t bytes = Whole(uint64_t{size} * cq.cqe * kCard.sub_cqs_per_cq);
  if (const int error = Allocate(call, bytes)) return error;
  auto state = std::make_unique<PlacesState>();
  state->context = &StateOf(*call.file.context());
  OwnedBody<64> reply(world, structure::efa_ibv_create_cq_resp);
#define RESP(name) VABI_PF(efa_ibv_create_cq_resp, name)
  reply.Set(RESP(cq_idx), cq.device->NextNumber());
  reply.Set(RESP(q_mmap_size), bytes);
  reply.Set(RESP(q_mmap_key), state->Add(world, bytes, "CQ", ContextState::kPages));
  if (world.Has(RESP(db_mmap_key))) {
    reply.Set(RESP(comp_mask),
              static_cast<uint64_t>(world.Flag(constant::EFA_CREATE_CQ_RESP_DB_OFF)));
    reply.Set(RESP(db_mmap_key), state->Add(world, kPage, "CQ doorbell", ContextState::kUncached));
  }
#undef RESP
  if (const int error = Reply(call, reply)) {
    state->Forget();
    return error;
  }
  cq.driver = std::move(state);
  return 0;
}

void EfaDriver::DestroyCq(Cq& cq) { PlacesOf(cq).Forget(); }

int EfaDriver::CreateQp(Call& call, Qp& qp) {
  const World& world = call.world;
  OwnedBody<32> request(world, structure::efa_ibv_create_qp);
#define REQ(name) VABI_PF(efa_ibv_create_qp, name)
  const auto read = [&]() -> int {
    if (const int error = ReadRequest<QpRules>(call, request, REQ(driver_qp_type), REQ(comp_mask),
                                               {REQ(reserved_90), REQ(reserved_98)})) {
      return error;
    }
    const auto known =
        static_cast<uint32_t>(world.Flag(constant::EFA_CREATE_QP_WITH_UNSOLICITED_WRITE_RECV));
    if (call.Violates(rule::qp_flags, (request.U32(REQ(flags)) & ~known) != 0))
      return call.Refuse(rule::qp_flags);
    return 0;
  };
  const auto check = [&]() -> int {
    if (call.Violates(rule::qp_size, qp.cap.max_send_wr > kCard.max_sq_depth ||
                                         qp.cap.max_recv_wr > kCard.max_rq_depth ||
                                         qp.cap.max_send_sge > kCard.max_sq_sge ||
                                         qp.cap.max_recv_sge > kCard.max_rq_sge ||
                                         qp.cap.max_inline > kCard.inline_buf_size)) {
      return call.Refuse(rule::qp_size);
    }
    if (call.Violates(rule::qp_type, qp.qp_type != kQptDriver && qp.qp_type != kQptUd))
      return call.Refuse(rule::qp_type);
    if (call.Violates(rule::qp_create_flags, qp.create_flags != 0))
      return call.Refuse(rule::qp_create_flags);
    return 0;
  };
  const bool input_first = world.Knob(knob::qp_input_first) != 0;
  int error = input_first ? read() : check();
  if (error != 0) return error;
  const uint32_t send_ring = request.U32(REQ(sq_ring_size));
  if (call.Violates(rule::qp_ring, input_first && send_ring > kCard.max_llq_size))
    return call.Refuse(rule::qp_ring);
  error = input_first ? check() : read();
  if (error != 0) return error;
  if (call.Violates(rule::qp_driver_type,
                    qp.qp_type != kQptUd && request.U32(REQ(driver_qp_type)) != kSrd)) {
    return call.Refuse(rule::qp_driver_type);
  }
  const uint64_t receive_bytes = Whole(request.U32(REQ(rq_ring_size)));
  if (const int none = Allocate(call, receive_bytes)) return none;
  const uint32_t sent = request.U32(REQ(sq_ring_size));
  if (sent > kCard.max_llq_size)
    return call.Unmodelled("efa: what the card says of a send ring longer than its queue");
#undef REQ
  auto state = std::make_unique<PlacesState>();
  state->context = &StateOf(*call.file.context());
  OwnedBody<64> reply(world, structure::efa_ibv_create_qp_resp);
#define RESP(name) VABI_PF(efa_ibv_create_qp_resp, name)
  reply.Set(RESP(sq_db_mmap_key), state->Add(world, kPage, "SQ doorbell", ContextState::kUncached));
  reply.Set(RESP(llq_desc_mmap_key),
            state->Add(world, Whole(sent), "LLQ", ContextState::kWriteCombining));
  if (receive_bytes != 0) {
    reply.Set(RESP(rq_db_mmap_key),
              state->Add(world, kPage, "RQ doorbell", ContextState::kUncached));
    reply.Set(RESP(rq_mmap_key), state->Add(world, receive_bytes, "RQ", ContextState::kPages));
    reply.Set(RESP(rq_mmap_size), receive_bytes);
  }
  reply.Set(RESP(recv_sub_cq_idx), 1);
#undef RESP
  if (const int fault = Reply(call, reply)) {
    state->Forget();
    return fault;
  }
  qp.qp_num = qp.device->NextQpn();
  qp.driver = std::move(state);
  return 0;
}

// What efa_modify_qp says of private bytes is for nobody: neither form of the command hands any on
// (core/uverbs_cmd.c: UAPI_DEF_WRITE_I, UAPI_DEF_WRITE_IO_EX).
int EfaDriver::ModifyQp(Call& call, Qp& qp, QpState next, const QpAttributes& attr, uint32_t mask) {
  const World& world = call.world;
  if (call.Violates(rule::modify_standard, (mask & ~kQpStandardBits) != 0))
    return call.Refuse(rule::modify_standard);
  uint32_t supported =
      kQpState | kQpCurState | kQpEnSqdAsyncNotify | kQpPkeyIndex | kQpPort | kQpQkey | kQpSqPsn;
  if (world.Knob(knob::rnr_retry) != 0) supported |= kQpRnrRetry;
  if (call.Violates(rule::modify_mask, (mask & ~supported) != 0))
    return call.Refuse(rule::modify_mask);
  const QpState current =
      (mask & kQpCurState) != 0 ? static_cast<QpState>(attr.cur_qp_state) : qp.state;
  const bool srd = qp.qp_type == kQptDriver && world.Knob(knob::srd_table) != 0;
  if (call.Violates(rule::modify_transition,
                    srd ? !SrdMoveIsOk(current, next, mask)
                        : !ModifyQpIsOk(current, next, kQptUd, mask, RateLimit::kNowhere))) {
    return call.Refuse(rule::modify_transition);
  }
  if (call.Violates(rule::modify_pkey, (mask & kQpPkeyIndex) != 0 && attr.pkey_index != 0))
    return call.Refuse(rule::modify_pkey);
  return 0;
}

int EfaDriver::CheckQuery(Call& call, const Qp&, uint32_t mask) {
  uint32_t supported = kQpState | kQpPkeyIndex | kQpPort | kQpQkey | kQpSqPsn | kQpCap;
  if (call.world.Knob(knob::rnr_retry) != 0) supported |= kQpRnrRetry;
  return call.Violates(rule::query_mask, (mask & ~supported) != 0) ? call.Refuse(rule::query_mask)
                                                                   : 0;
}

// What was set before is the card's; the rest is zero.
int EfaDriver::QueryQp(Call&, Qp& qp) {
  QpAttributes told;
  told.qkey = qp.attr.qkey;
  told.sq_psn = qp.attr.sq_psn;
  told.rnr_retry = qp.attr.rnr_retry;
  told.port_num = 1;
  qp.attr = told;
  return 0;
}

int EfaDriver::DestroyQp(Call&, Qp& qp) {
  PlacesOf(qp).Forget();
  return 0;
}

}  // namespace vabi::efa
