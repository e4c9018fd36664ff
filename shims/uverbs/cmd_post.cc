// SPDX-License-Identifier: BSD-2-Clause
// POST_SEND, POST_RECV, POST_SRQ_RECV. Of the modelled drivers only rxe's user space comes here, and only to
// ring the doorbell: POST_SEND without work requests. Work requests in the command are not modelled.
#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"

namespace vabi {
namespace {

// Where the arrays of a post command stand, and whether they fit into the request.
int CheckArrays(Command& c, uint64_t count, uint64_t sge_count, uint64_t wqe_size, size_t least,
                bool size_first) {
  if (size_first && c.Violates(RuleId::post_wqe_size, wqe_size < least)) {
    return c.Refuse(RuleId::post_wqe_size);
  }
  size_t offset;
  if (const int error = c.RequestSkip(wqe_size * count, &offset)) return error;
  if (const int error = c.RequestSkip(sge_count * c.world.Size(VABI_S(ib_uverbs_sge)), &offset)) {
    return error;
  }
  if (const int error = c.RequestFinish()) return error;
  if (!size_first && c.Violates(RuleId::post_wqe_size, wqe_size < least)) {
    return c.Refuse(RuleId::post_wqe_size);
  }
  return 0;
}

int Answer(Command& c, StructId reply_id, int result) {
  OwnedBody<64> reply(c.world, reply_id);  // bad_wr is 0: there was none
  const int answered = c.Respond(reply);
  return answered != 0 ? answered : result;
}

}  // namespace

int PostSend(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_post_send));
  if (const int error = c.RequestStart(request)) return error;
  const uint32_t count = request.U32(VABI_F(ib_uverbs_post_send, wr_count));
  if (const int error =
          CheckArrays(c, count, request.U32(VABI_F(ib_uverbs_post_send, sge_count)),
                      request.U32(VABI_F(ib_uverbs_post_send, wqe_size)),
                      c.world.Size(VABI_S(ib_uverbs_send_wr)), false)) {
    return error;
  }
  Qp* qp;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_post_send, qp_handle)), &qp)) return error;
  if (count != 0) return c.call.Unmodelled("POST_SEND with work requests");
  return Answer(c, VABI_S(ib_uverbs_post_send_resp), c.driver().PostSend(c.call, qp->Real()));
}

int PostRecv(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_post_recv));
  if (const int error = c.RequestStart(request)) return error;
  const uint32_t count = request.U32(VABI_F(ib_uverbs_post_recv, wr_count));
  if (const int error =
          CheckArrays(c, count, request.U32(VABI_F(ib_uverbs_post_recv, sge_count)),
                      request.U32(VABI_F(ib_uverbs_post_recv, wqe_size)),
                      c.world.Size(VABI_S(ib_uverbs_recv_wr)), true)) {
    return error;
  }
  Qp* qp;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_post_recv, qp_handle)), &qp)) return error;
  if (count != 0) return c.call.Unmodelled("POST_RECV with work requests");
  return Answer(c, VABI_S(ib_uverbs_post_recv_resp), c.driver().PostRecv(c.call, qp->Real()));
}

int PostSrqRecv(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_post_srq_recv));
  if (const int error = c.RequestStart(request)) return error;
  const uint32_t count = request.U32(VABI_F(ib_uverbs_post_srq_recv, wr_count));
  if (const int error =
          CheckArrays(c, count, request.U32(VABI_F(ib_uverbs_post_srq_recv, sge_count)),
                      request.U32(VABI_F(ib_uverbs_post_srq_recv, wqe_size)),
                      c.world.Size(VABI_S(ib_uverbs_recv_wr)), true)) {
    return error;
  }
  Srq* srq;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_post_srq_recv, srq_handle)), &srq)) {
    return error;
  }
  if (count != 0) return c.call.Unmodelled("POST_SRQ_RECV with work requests");
  return Answer(c, VABI_S(ib_uverbs_post_srq_recv_resp), 0);
}

}  // namespace vabi
