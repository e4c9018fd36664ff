// SPDX-License-Identifier: BSD-2-Clause
// Protection domains and memory windows.
#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"

namespace vabi {

int AllocPd(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_alloc_pd));
  if (const int error = c.Request(request)) return error;
  Pd* pd;
  if (const int error = c.New(&pd)) return error;
  if (const int error = c.driver().AllocPd(c.call, *pd)) return error;
  c.Created();
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_alloc_pd_resp));
  reply.Set(VABI_F(ib_uverbs_alloc_pd_resp, pd_handle), pd->handle);
  return c.Respond(reply);
}

int DeallocPd(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_dealloc_pd));
  if (const int error = c.Request(request)) return error;
  return c.Destroy<Pd>(request.Get(VABI_F(ib_uverbs_dealloc_pd, pd_handle)));
}

int AllocMw(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_alloc_mw));
  if (const int error = c.Request(request)) return error;
  Mw* mw;
  if (const int error = c.New(&mw)) return error;
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_alloc_mw, pd_handle)), &mw->pd)) {
    return error;
  }
  mw->mw_type = static_cast<uint8_t>(request.Get(VABI_F(ib_uverbs_alloc_mw, mw_type)));
  // IB_MW_TYPE_1, IB_MW_TYPE_2
  if (c.Violates(RuleId::mw_type, mw->mw_type != 1 && mw->mw_type != 2)) {
    return c.Refuse(RuleId::mw_type);
  }
  if (const int error = c.driver().AllocMw(c.call, *mw)) return error;
  ++mw->pd->users;
  c.Created();
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_alloc_mw_resp));
  reply.Set(VABI_F(ib_uverbs_alloc_mw_resp, mw_handle), mw->handle);
  reply.Set(VABI_F(ib_uverbs_alloc_mw_resp, rkey), mw->rkey);
  return c.Respond(reply);
}

int DeallocMw(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_dealloc_mw));
  if (const int error = c.Request(request)) return error;
  return c.Destroy<Mw>(request.Get(VABI_F(ib_uverbs_dealloc_mw, mw_handle)));
}

}  // namespace vabi
