// SPDX-License-Identifier: BSD-2-Clause
// Work queues and their indirection tables: extended write() only.
#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"

namespace vabi {
namespace {

// enum ib_wq_attr_mask, enum ib_wq_state
enum : uint32_t { kWqState = 1, kWqCurState = 2, kWqFlags = 4, kWqLastState = 2 };

}  // namespace

int CreateWqEx(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_ex_create_wq));
  if (const int error = c.Request(request)) return error;
  if (c.Violates(RuleId::wq_comp_mask,
                 request.Get(VABI_F(ib_uverbs_ex_create_wq, comp_mask)) != 0)) {
    return c.Refuse(RuleId::wq_comp_mask);
  }
  Wq* wq;
  if (const int error = c.New(&wq)) return error;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_ex_create_wq, pd_handle)), &wq->pd)) {
    return error;
  }
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_ex_create_wq, cq_handle)), &wq->cq)) {
    return error;
  }
  wq->user_handle = request.Get(VABI_F(ib_uverbs_ex_create_wq, user_handle));
  wq->wq_type = request.U32(VABI_F(ib_uverbs_ex_create_wq, wq_type));
  wq->max_wr = request.U32(VABI_F(ib_uverbs_ex_create_wq, max_wr));
  wq->max_sge = request.U32(VABI_F(ib_uverbs_ex_create_wq, max_sge));
  wq->create_flags = request.U32(VABI_F(ib_uverbs_ex_create_wq, create_flags));
  wq->events = c.file.async_events;
  if (const int error = c.driver().CreateWq(c.call, *wq)) return error;
  ++wq->pd->users;
  ++wq->cq->users;
  c.Created();
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_ex_create_wq_resp));
  reply.Set(VABI_F(ib_uverbs_ex_create_wq_resp, wq_handle), wq->handle);
  reply.Set(VABI_F(ib_uverbs_ex_create_wq_resp, max_wr), wq->max_wr);
  reply.Set(VABI_F(ib_uverbs_ex_create_wq_resp, max_sge), wq->max_sge);
  reply.Set(VABI_F(ib_uverbs_ex_create_wq_resp, wqn), wq->wqn);
  reply.Set(VABI_F(ib_uverbs_ex_create_wq_resp, response_length), c.ResponseLength(reply.length()));
  return c.Respond(reply);
}

int ModifyWqEx(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_ex_modify_wq));
  if (const int error = c.Request(request)) return error;
  const uint32_t mask = request.U32(VABI_F(ib_uverbs_ex_modify_wq, attr_mask));
  if (c.Violates(RuleId::wq_modify_mask_empty, mask == 0))
    return c.Refuse(RuleId::wq_modify_mask_empty);
  if (c.Violates(RuleId::wq_modify_mask_unknown, mask > (kWqState | kWqCurState | kWqFlags))) {
    return c.Refuse(RuleId::wq_modify_mask_unknown);
  }
  Wq* wq;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_ex_modify_wq, wq_handle)), &wq))
    return error;
  uint32_t current = wq->state;
  if ((mask & kWqCurState) != 0)
    current = request.U32(VABI_F(ib_uverbs_ex_modify_wq, curr_wq_state));
  if (c.Violates(RuleId::wq_modify_state, (mask & kWqCurState) != 0 && current > kWqLastState)) {
    return c.Refuse(RuleId::wq_modify_state);
  }
  uint32_t next = current;
  if ((mask & kWqState) != 0) next = request.U32(VABI_F(ib_uverbs_ex_modify_wq, wq_state));
  if (c.Violates(RuleId::wq_modify_state, (mask & kWqState) != 0 && next > kWqLastState)) {
    return c.Refuse(RuleId::wq_modify_state);
  }
  const uint32_t flags =
      (mask & kWqFlags) != 0 ? request.U32(VABI_F(ib_uverbs_ex_modify_wq, flags)) : 0;
  if (const int error = c.driver().ModifyWq(c.call, *wq, mask, next, flags)) return error;
  wq->state = next;
  return 0;
}

int DestroyWqEx(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_ex_destroy_wq));
  if (const int error = c.Request(request)) return error;
  if (c.Violates(RuleId::wq_comp_mask,
                 request.Get(VABI_F(ib_uverbs_ex_destroy_wq, comp_mask)) != 0)) {
    return c.Refuse(RuleId::wq_comp_mask);
  }
  std::unique_ptr<Wq> dead;
  if (const int error = c.Destroy(request.Get(VABI_F(ib_uverbs_ex_destroy_wq, wq_handle)), &dead)) {
    return error;
  }
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_ex_destroy_wq_resp));
  reply.Set(VABI_F(ib_uverbs_ex_destroy_wq_resp, events_reported), dead->events_reported);
  reply.Set(VABI_F(ib_uverbs_ex_destroy_wq_resp, response_length),
            c.ResponseLength(reply.length()));
  return c.Respond(reply);
}

int CreateRwqIndTableEx(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_ex_create_rwq_ind_table));
  if (const int error = c.RequestStart(request)) return error;
  if (c.Violates(RuleId::ind_table_comp_mask,
                 request.Get(VABI_F(ib_uverbs_ex_create_rwq_ind_table, comp_mask)) != 0)) {
    return c.Refuse(RuleId::ind_table_comp_mask);
  }
  const uint32_t log_size =
      request.U32(VABI_F(ib_uverbs_ex_create_rwq_ind_table, log_ind_tbl_size));
  constexpr uint32_t kMaxLogSize = 0x0d;  // IB_USER_VERBS_MAX_LOG_IND_TBL_SIZE
  if (log_size > kMaxLogSize) return c.Refuse(RuleId::ind_table_size);
  std::vector<uint32_t> handles(size_t{1} << log_size);
  if (const int error = c.RequestNext(handles.data(), handles.size() * sizeof(uint32_t)))
    return error;
  if (const int error = c.RequestFinish()) return error;
  std::vector<Wq*> wqs;
  for (const uint32_t handle : handles) {
    Wq* wq;
    if (const int error = c.Read(handle, &wq)) return error;
    wqs.push_back(wq);
  }
  RwqIndTable* table;
  if (const int error = c.New(&table)) return error;
  table->wqs = std::move(wqs);
  if (const int error = c.driver().CreateRwqIndTable(c.call, *table)) return error;
  for (Wq* wq : table->wqs) ++wq->users;
  c.Created();
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_ex_create_rwq_ind_table_resp));
  reply.Set(VABI_F(ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_handle), table->handle);
  reply.Set(VABI_F(ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_num), table->number);
  reply.Set(VABI_F(ib_uverbs_ex_create_rwq_ind_table_resp, response_length),
            c.ResponseLength(reply.length()));
  return c.Respond(reply);
}

int DestroyRwqIndTableEx(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_ex_destroy_rwq_ind_table));
  if (const int error = c.Request(request)) return error;
  if (c.Violates(RuleId::ind_table_comp_mask,
                 request.Get(VABI_F(ib_uverbs_ex_destroy_rwq_ind_table, comp_mask)) != 0)) {
    return c.Refuse(RuleId::ind_table_comp_mask);
  }
  return c.Destroy<RwqIndTable>(
      request.Get(VABI_F(ib_uverbs_ex_destroy_rwq_ind_table, ind_tbl_handle)));
}

}  // namespace vabi
