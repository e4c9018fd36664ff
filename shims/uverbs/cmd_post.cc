// SPDX-License-Identifier: BSD-2-Clause
// POST_SEND, POST_RECV, POST_SRQ_RECV. Of the modelled drivers only rxe's user space comes here, and only to
// ring the doorbell: POST_SEND without work requests. Work requests of POST_SEND are parsed as the core does and
// then forgotten, as rxe forgets those of a user's queue pair; those of receives are not modelled.
#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"
#include "shims/uverbs/qp_state.h"

namespace vabi {
namespace {

// Where the work requests stand, and those of their scatter-gather entries, in the request.
struct Arrays {
  size_t requests = 0, entries = 0;
};

// Whether the arrays of a post command fit into the request.
int CheckArrays(Command& c, uint64_t count, uint64_t sge_count, uint64_t wqe_size, size_t least,
                bool size_first, Arrays* arrays) {
  constexpr uint64_t kLargestAllocation = uint64_t{4} << 20;  // KMALLOC_MAX_SIZE of x86-64 and arm64, 4 KiB pages
  if (size_first && c.Violates(RuleId::post_wqe_size, wqe_size < least)) {
    return c.Refuse(RuleId::post_wqe_size);
  }
  if (const int error = c.RequestSkip(wqe_size * count, &arrays->requests)) return error;
  if (const int error =
          c.RequestSkip(sge_count * c.world.Size(VABI_S(ib_uverbs_sge)), &arrays->entries)) {
    return error;
  }
  if (const int error = c.RequestFinish()) return error;
  if (!size_first && c.Violates(RuleId::post_wqe_size, wqe_size < least)) {
    return c.Refuse(RuleId::post_wqe_size);
  }
  return wqe_size > kLargestAllocation ? -ENOMEM : 0;
}

// The loop of ib_uverbs_post_send over the work requests. The numbers are enum ib_wr_opcode's.
int CheckRequests(Command& c, const Qp& qp, const Arrays& arrays, const Body& request) {
#define FIELD(name) VABI_F(ib_uverbs_send_wr, name)
  const uint32_t count = request.U32(VABI_F(ib_uverbs_post_send, wr_count));
  const uint32_t size = request.U32(VABI_F(ib_uverbs_post_send, wqe_size));
  const uint32_t entries = request.U32(VABI_F(ib_uverbs_post_send, sge_count));
  const auto with_invalidate =
      static_cast<uint64_t>(c.world.Constant(VABI_C(IB_UVERBS_WR_SEND_WITH_INV)).value_or(8));
  uint32_t used = 0;
  for (uint32_t i = 0; i < count; ++i) {
    OwnedBody<256> wr(c.world, VABI_S(ib_uverbs_send_wr));
    if (c.in.CopyAt(arrays.requests + size_t{i} * size, wr.base(), wr.length()) != 0) {
      return c.Refuse(RuleId::request_fault);
    }
    const uint64_t opcode = wr.Get(FIELD(opcode));
    const uint32_t sges = wr.U32(FIELD(num_sge));
    if (sges + used > entries) return -EINVAL;  // in the kernel's 32 bits
    used += sges;
    if (qp.qp_type == kQptUd) {
      if (opcode != 2 && opcode != 3) return -EINVAL;
      Ah* ah;
      if (const int error = c.Read(wr.Get(FIELD(wr_ud_ah)), &ah)) return error;
    } else if (opcode > 6 && opcode != with_invalidate) {
      return -EINVAL;
    }
  }
  return 0;
#undef FIELD
}

// bad_wr tells which request was refused, from 1: none where there was none, else the first.
int Answer(Command& c, StructId reply_id, FieldId bad_wr, uint32_t count, int result) {
  OwnedBody<64> reply(c.world, reply_id);
  if (result != 0 && count != 0) reply.Set(bad_wr, 1);
  const int answered = c.Respond(reply);
  return answered != 0 ? answered : result;
}

}  // namespace

int PostSend(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_post_send));
  if (const int error = c.RequestStart(request)) return error;
  const uint32_t count = request.U32(VABI_F(ib_uverbs_post_send, wr_count));
  Arrays arrays;
  if (const int error =
          CheckArrays(c, count, request.U32(VABI_F(ib_uverbs_post_send, sge_count)),
                      request.U32(VABI_F(ib_uverbs_post_send, wqe_size)),
                      c.world.Size(VABI_S(ib_uverbs_send_wr)), false, &arrays)) {
    return error;
  }
  Qp* qp;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_post_send, qp_handle)), &qp)) return error;
  if (const int error = CheckRequests(c, *qp, arrays, request)) return error;
  return Answer(c, VABI_S(ib_uverbs_post_send_resp), VABI_F(ib_uverbs_post_send_resp, bad_wr), count,
                c.driver().PostSend(c.call, qp->Real()));
}

int PostRecv(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_post_recv));
  if (const int error = c.RequestStart(request)) return error;
  const uint32_t count = request.U32(VABI_F(ib_uverbs_post_recv, wr_count));
  Arrays arrays;
  if (const int error =
          CheckArrays(c, count, request.U32(VABI_F(ib_uverbs_post_recv, sge_count)),
                      request.U32(VABI_F(ib_uverbs_post_recv, wqe_size)),
                      c.world.Size(VABI_S(ib_uverbs_recv_wr)), true, &arrays)) {
    return error;
  }
  Qp* qp;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_post_recv, qp_handle)), &qp)) return error;
  if (count != 0) return c.call.Unmodelled("POST_RECV with work requests");
  return Answer(c, VABI_S(ib_uverbs_post_recv_resp), VABI_F(ib_uverbs_post_recv_resp, bad_wr), 0, c.driver().PostRecv(c.call, qp->Real()));
}

int PostSrqRecv(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_post_srq_recv));
  if (const int error = c.RequestStart(request)) return error;
  const uint32_t count = request.U32(VABI_F(ib_uverbs_post_srq_recv, wr_count));
  Arrays arrays;
  if (const int error =
          CheckArrays(c, count, request.U32(VABI_F(ib_uverbs_post_srq_recv, sge_count)),
                      request.U32(VABI_F(ib_uverbs_post_srq_recv, wqe_size)),
                      c.world.Size(VABI_S(ib_uverbs_recv_wr)), true, &arrays)) {
    return error;
  }
  Srq* srq;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_post_srq_recv, srq_handle)), &srq)) {
    return error;
  }
  if (count != 0) return c.call.Unmodelled("POST_SRQ_RECV with work requests");
  return Answer(c, VABI_S(ib_uverbs_post_srq_recv_resp), VABI_F(ib_uverbs_post_srq_recv_resp, bad_wr), 0, 0);
}

}  // namespace vabi
