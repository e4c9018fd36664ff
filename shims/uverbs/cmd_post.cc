// SPDX-License-Identifier: BSD-2-Clause
// POST_SEND, POST_RECV, POST_SRQ_RECV. Of the modelled drivers only rxe's and siw's user space
// comes here, and only to ring the doorbell: POST_SEND without work requests. Work requests of
// POST_SEND are parsed as the core does and then forgotten: rxe forgets those of a user's queue
// pair, siw refuses them; receives go to the driver, which puts them into the program's queue (rxe
// up to 5.10).
#include <algorithm>
#include <vector>

#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"
#include "shims/uverbs/qp_state.h"

namespace vabi {
namespace {

// KMALLOC_MAX_SIZE of x86-64 and arm64, with pages of 4 KiB
constexpr uint64_t kLargestAllocation = uint64_t{4} << 20;

// What a post command says of the arrays behind it, and where in the request they stand.
struct Arrays {
  uint32_t count = 0, entry_count = 0, wqe_size = 0;
  size_t requests = 0, entries = 0;
  bool wrapped = false;  // it says more than 32 bits count, and the kernel multiplies in 32
};

// Whether the arrays fit into the request, and nothing but zeros is behind them.
int TakeArrays(Command& c, Arrays* arrays) {
  uint64_t bytes = uint64_t{arrays->wqe_size} * arrays->count;
  if (c.world.Knob(KnobId::post_sizes_wrap) != 0) bytes = static_cast<uint32_t>(bytes);
  arrays->wrapped = bytes != uint64_t{arrays->wqe_size} * arrays->count;
  if (const int error = c.RequestSkip(bytes, &arrays->requests)) return error;
  const uint64_t entry_size = c.world.Size(VABI_S(ib_uverbs_sge));
  if (const int error = c.RequestSkip(arrays->entry_count * entry_size, &arrays->entries))
    return error;
  return c.RequestFinish();
}

// struct ib_uverbs_send_wr and ib_uverbs_recv_wr: wr_id, num_sge, and the opcode or a reserved word
constexpr uint32_t kReadByCore = 16;

// copy_from_user of one work request into memory of wqe_size bytes.
int ReadRequest(Command& c, const Arrays& arrays, uint32_t index, const Body& to) {
  if (arrays.wrapped)
    return c.call.Unmodelled("work requests of 4 GiB and more: this kernel reads past the request");
  if (arrays.wqe_size == 0)
    return c.call.Unmodelled("work requests of no bytes take this kernel down");
  if (arrays.wqe_size < kReadByCore) {
    return c.call.Unmodelled(
        "work requests without an opcode: this kernel reads what its allocator left there");
  }
  const size_t size = std::min<size_t>(to.length(), arrays.wqe_size);
  if (c.in.CopyAt(arrays.requests + size_t{index} * arrays.wqe_size, to.base(), size) != 0) {
    return c.Refuse(RuleId::request_fault);
  }
  return 0;
}

// The loop of ib_uverbs_post_send over the work requests. The numbers are enum ib_wr_opcode's.
int CheckSends(Command& c, const Qp& qp, const Arrays& arrays) {
#define FIELD(name) VABI_F(ib_uverbs_send_wr, name)
  const auto with_invalidate =
      static_cast<uint64_t>(c.world.Constant(VABI_C(IB_UVERBS_WR_SEND_WITH_INV)).value_or(8));
  uint32_t used = 0;
  for (uint32_t i = 0; i < arrays.count; ++i) {
    OwnedBody<256> wr(c.world, VABI_S(ib_uverbs_send_wr));
    if (const int error = ReadRequest(c, arrays, i, wr)) return error;
    const uint64_t opcode = wr.Get(FIELD(opcode));
    const uint32_t entries = wr.U32(FIELD(num_sge));
    // in the kernel's 32 bits
    if (entries + used > arrays.entry_count) return c.Refuse(RuleId::post_sge_count);
    used += entries;
    if (qp.qp_type == kQptUd) {
      if (opcode != 2 && opcode != 3) return c.Refuse(RuleId::post_send_opcode);
      Ah* ah;
      if (const int error = c.Read(wr.Get(FIELD(wr_ud_ah)), &ah)) return error;
    } else if (opcode > 6 && opcode != with_invalidate) {
      return c.Refuse(RuleId::post_send_opcode);
    }
  }
  return 0;
#undef FIELD
}

// ib_uverbs_unmarshall_recv
int ReadReceives(Command& c, Arrays arrays, std::vector<fabric::RecvRequest>* list) {
  constexpr uint32_t kMostEntries =
      (~0u - 32) / 16;  // struct ib_recv_wr and its elements in 32 bits
  if (c.Violates(RuleId::post_recv_wqe_size,
                 arrays.wqe_size < c.world.Size(VABI_S(ib_uverbs_recv_wr)))) {
    return c.Refuse(RuleId::post_recv_wqe_size);
  }
  if (const int error = TakeArrays(c, &arrays)) return error;
  if (arrays.wqe_size > kLargestAllocation) return -ENOMEM;
  const size_t entry_size = c.world.Size(VABI_S(ib_uverbs_sge));
  uint32_t used = 0;
  for (uint32_t i = 0; i < arrays.count; ++i) {
    OwnedBody<256> wr(c.world, VABI_S(ib_uverbs_recv_wr));
    if (const int error = ReadRequest(c, arrays, i, wr)) return error;
    const uint32_t entries = wr.U32(VABI_F(ib_uverbs_recv_wr, num_sge));
    if (entries + used > arrays.entry_count || entries >= kMostEntries) {
      return c.Refuse(RuleId::post_sge_count);
    }
    fabric::RecvRequest& request = list->emplace_back();
    request.wr_id = wr.Get(VABI_F(ib_uverbs_recv_wr, wr_id));
    request.sge_count = entries;
    for (uint32_t entry = 0; entry < std::min<uint32_t>(entries, fabric::kMaxSge); ++entry) {
      OwnedBody<32> sge(c.world, VABI_S(ib_uverbs_sge));
      const size_t at = arrays.entries + (size_t{used} + entry) * entry_size;
      if (c.in.CopyAt(at, sge.base(), sge.length()) != 0) return c.Refuse(RuleId::request_fault);
      request.sges[entry] = {sge.Get(VABI_F(ib_uverbs_sge, addr)),
                             sge.U32(VABI_F(ib_uverbs_sge, length)),
                             sge.U32(VABI_F(ib_uverbs_sge, lkey))};
    }
    used += entries;
  }
  return 0;
}

// bad_wr tells which request was refused, from 1: none where there was none.
int Answer(Command& c, StructId reply_id, FieldId bad_wr, uint32_t bad, int result) {
  OwnedBody<64> reply(c.world, reply_id);
  if (result != 0) reply.Set(bad_wr, bad);
  const int answered = c.Respond(reply);
  return answered != 0 ? answered : result;
}

uint32_t BadRequest(const std::vector<fabric::RecvRequest>& list, uint32_t posted) {
  return list.empty() ? 0 : posted + 1;
}

}  // namespace

int PostSend(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_post_send));
  if (const int error = c.RequestStart(request)) return error;
  Arrays arrays = {request.U32(VABI_F(ib_uverbs_post_send, wr_count)),
                   request.U32(VABI_F(ib_uverbs_post_send, sge_count)),
                   request.U32(VABI_F(ib_uverbs_post_send, wqe_size))};
  if (const int error = TakeArrays(c, &arrays)) return error;
  if (c.Violates(RuleId::post_send_wqe_size,
                 arrays.wqe_size < c.world.Size(VABI_S(ib_uverbs_send_wr)))) {
    return c.Refuse(RuleId::post_send_wqe_size);
  }
  if (arrays.wqe_size > kLargestAllocation) return -ENOMEM;
  Qp* qp;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_post_send, qp_handle)), &qp))
    return error;
  if (const int error = CheckSends(c, *qp, arrays)) return error;
  return Answer(c, VABI_S(ib_uverbs_post_send_resp), VABI_F(ib_uverbs_post_send_resp, bad_wr),
                arrays.count != 0 ? 1 : 0, c.driver().PostSend(c.call, qp->Real(), arrays.count));
}

int PostRecv(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_post_recv));
  if (const int error = c.RequestStart(request)) return error;
  std::vector<fabric::RecvRequest> list;
  const Arrays arrays = {request.U32(VABI_F(ib_uverbs_post_recv, wr_count)),
                         request.U32(VABI_F(ib_uverbs_post_recv, sge_count)),
                         request.U32(VABI_F(ib_uverbs_post_recv, wqe_size))};
  if (const int error = ReadReceives(c, arrays, &list)) return error;
  Qp* qp;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_post_recv, qp_handle)), &qp))
    return error;
  uint32_t posted = 0;
  const int result = c.driver().PostRecv(c.call, qp->Real(), list, &posted);
  return Answer(c, VABI_S(ib_uverbs_post_recv_resp), VABI_F(ib_uverbs_post_recv_resp, bad_wr),
                BadRequest(list, posted), result);
}

int PostSrqRecv(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_post_srq_recv));
  if (const int error = c.RequestStart(request)) return error;
  std::vector<fabric::RecvRequest> list;
  const Arrays arrays = {request.U32(VABI_F(ib_uverbs_post_srq_recv, wr_count)),
                         request.U32(VABI_F(ib_uverbs_post_srq_recv, sge_count)),
                         request.U32(VABI_F(ib_uverbs_post_srq_recv, wqe_size))};
  if (const int error = ReadReceives(c, arrays, &list)) return error;
  Srq* srq;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_post_srq_recv, srq_handle)), &srq)) {
    return error;
  }
  uint32_t posted = 0;
  const int result = c.driver().PostSrqRecv(c.call, *srq, list, &posted);
  return Answer(c, VABI_S(ib_uverbs_post_srq_recv_resp),
                VABI_F(ib_uverbs_post_srq_recv_resp, bad_wr), BadRequest(list, posted), result);
}

}  // namespace vabi
