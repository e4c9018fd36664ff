// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/address.h"
#include "shims/uverbs/command.h"
#include "shims/uverbs/commands.h"

namespace vabi {

// ib_uverbs_create_ah, verbs.c:rdma_create_user_ah
int CreateAh(Command& c) {
  OwnedBody<128> request(c.world, VABI_S(ib_uverbs_create_ah));
  if (const int error = c.Request(request)) return error;
  Ah* ah;
  if (const int error = c.New(&ah)) return error;
  ah->address = ReadAhAttr(request.Sub(VABI_F(ib_uverbs_create_ah, attr)));
  if (c.Violates(RuleId::ah_port, !c.device.ValidPort(ah->address.port_num))) {
    return c.Refuse(RuleId::ah_port);
  }
  if (const int error = c.Read(request.Get(VABI_F(ib_uverbs_create_ah, pd_handle)), &ah->pd)) {
    return error;
  }
  if (const int error = CheckAddress(c.call, ah->address)) return error;
  if (const int error = ResolveMac(c.call, &ah->address)) return error;
  ah->user_handle = request.Get(VABI_F(ib_uverbs_create_ah, user_handle));
  if (const int error = c.driver().CreateAh(c.call, *ah)) return error;
  ++ah->pd->users;
  c.Created();
  OwnedBody<64> reply(c.world, VABI_S(ib_uverbs_create_ah_resp));
  reply.Set(VABI_F(ib_uverbs_create_ah_resp, ah_handle), ah->handle);
  return c.Respond(reply);
}

int DestroyAh(Command& c) {
  OwnedBody<64> request(c.world, VABI_S(ib_uverbs_destroy_ah));
  if (const int error = c.Request(request)) return error;
  return c.Destroy<Ah>(request.Get(VABI_F(ib_uverbs_destroy_ah, ah_handle)));
}

}  // namespace vabi
