// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"
#include "shims/uverbs/mr_access.h"

namespace vabi {
namespace {

constexpr uint64_t kPageOffset = 4095;

// enum ib_mr_rereg_flags
enum : uint32_t { kReregTrans = 1, kReregPd = 2, kReregAccess = 4, kReregSupported = 7 };

}  // namespace

// ib_uverbs_reg_mr
int RegMr(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_reg_mr));
  if (const int error = c.Request(request)) return error;
  const uint64_t start = request.Get(VABI_F(ib_uverbs_reg_mr, start));
  const uint64_t iova = request.Get(VABI_F(ib_uverbs_reg_mr, hca_va));
  const uint32_t access = request.U32(VABI_F(ib_uverbs_reg_mr, access_flags));
  if (c.Violates(RuleId::mr_page_offset, (start & kPageOffset) != (iova & kPageOffset))) {
    return c.Refuse(RuleId::mr_page_offset);
  }
  Mr* mr;
  if (const int error = c.New(&mr)) return error;
  if (const int error = CheckMrAccess(c.call, access)) return error;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_reg_mr, pd_handle)), &mr->pd))
    return error;
  mr->start = start;
  mr->length = request.Get(VABI_F(ib_uverbs_reg_mr, length));
  mr->iova = iova;
  mr->access = access;
  if (const int error = c.driver().RegMr(c.call, *mr)) return error;
  ++mr->pd->users;
  c.Created();
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_reg_mr_resp));
  reply.Set(VABI_F(ib_uverbs_reg_mr_resp, mr_handle), mr->handle);
  reply.Set(VABI_F(ib_uverbs_reg_mr_resp, lkey), mr->lkey);
  reply.Set(VABI_F(ib_uverbs_reg_mr_resp, rkey), mr->rkey);
  return c.Respond(reply);
}

// ib_uverbs_rereg_mr. Drivers change the region in place (or make the new one look like the old).
int ReregMr(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_rereg_mr));
  if (const int error = c.Request(request)) return error;
  uint32_t flags = request.U32(VABI_F(ib_uverbs_rereg_mr, flags));
  const uint64_t start = request.Get(VABI_F(ib_uverbs_rereg_mr, start));
  const uint64_t length = request.Get(VABI_F(ib_uverbs_rereg_mr, length));
  const uint64_t iova = request.Get(VABI_F(ib_uverbs_rereg_mr, hca_va));
  const uint32_t access = request.U32(VABI_F(ib_uverbs_rereg_mr, access_flags));
  if (c.Violates(RuleId::mr_rereg_nothing, flags == 0)) return c.Refuse(RuleId::mr_rereg_nothing);
  if (c.Violates(RuleId::mr_rereg_flags, (flags & ~kReregSupported) != 0)) {
    return c.Refuse(RuleId::mr_rereg_flags);
  }
  if (c.Violates(RuleId::mr_rereg_range,
                 (flags & kReregTrans) != 0 && (start == 0 || iova == 0 || length == 0))) {
    return c.Refuse(RuleId::mr_rereg_range);
  }
  if (c.Violates(RuleId::mr_page_offset,
                 (flags & kReregTrans) != 0 && (start & kPageOffset) != (iova & kPageOffset))) {
    return c.Refuse(RuleId::mr_page_offset);
  }
  Mr* mr;
  if (const int error = c.Write(request.Get(VABI_F(ib_uverbs_rereg_mr, mr_handle)), &mr))
    return error;
  if (c.Violates(RuleId::mr_rereg_dm, mr->dm != nullptr)) return c.Refuse(RuleId::mr_rereg_dm);
  if ((flags & kReregAccess) != 0) {
    if (const int error = CheckMrAccess(c.call, access)) return error;
  }
  Pd* pd = mr->pd;
  if ((flags & kReregPd) != 0) {
    if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_rereg_mr, pd_handle)), &pd))
      return error;
    if (pd == mr->pd && c.world.Knob(KnobId::mr_rereg_same_pd_is_none) != 0) flags &= ~kReregPd;
  }
  if (const int error = c.driver().ReregMr(c.call, *mr, flags, start, length, iova, access, pd)) {
    return error;
  }
  if ((flags & kReregTrans) != 0) mr->pins.buffers = std::move(c.call.pins.buffers);
  if (pd != mr->pd) {
    ++pd->users;
    --mr->pd->users;
    mr->pd = pd;
  }
  if ((flags & kReregTrans) != 0) {
    mr->start = start;
    mr->iova = iova;
    mr->length = length;
  }
  if ((flags & kReregAccess) != 0) mr->access = access;
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_rereg_mr_resp));
  reply.Set(VABI_F(ib_uverbs_rereg_mr_resp, lkey), mr->lkey);
  reply.Set(VABI_F(ib_uverbs_rereg_mr_resp, rkey), mr->rkey);
  return c.Respond(reply);
}

int DeregMr(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_dereg_mr));
  if (const int error = c.Request(request)) return error;
  return c.Destroy<Mr>(request.Get(VABI_F(ib_uverbs_dereg_mr, mr_handle)));
}

}  // namespace vabi
