// SPDX-License-Identifier: BSD-2-Clause
// ah.c:mlx5_ib_create_ah
#include "shims/providers/mlx5/driver.h"
#include "shims/providers/mlx5/rate.h"
#include "shims/uverbs/device.h"

namespace vabi::mlx5 {

int Mlx5Driver::CreateAh(Call& call, Ah& ah) {
  const World& world = call.world;
  const bool roce = ah.device->image().link == LinkLayer::kEthernet;
  if (call.Violates(RuleId::mlx5_create_ah_grh, roce && !ah.address.is_global)) {
    return call.Refuse(RuleId::mlx5_create_ah_grh);
  }
  if (roce) {
    // Only RoCE tells the peer's MAC address.
    const size_t least = world.End(VABI_F(mlx5_ib_create_ah_resp, dmac));
    if (call.Violates(RuleId::mlx5_create_ah_reply, call.out.length() < least)) {
      return call.Refuse(RuleId::mlx5_create_ah_reply);
    }
    OwnedBody<32> reply(world, VABI_S(mlx5_ib_create_ah_resp));
    reply.Set(VABI_F(mlx5_ib_create_ah_resp, response_length), least);
    reply.SetBytes(VABI_F(mlx5_ib_create_ah_resp, dmac), ah.address.dmac, sizeof(ah.address.dmac));
    const size_t size = world.Knob(KnobId::mlx5_respond_zeroes) != 0 ? reply.length() : least;
    if (const int error = Respond(call, reply.base(), size, OldRespond::kWhole)) return error;
  }
  if (call.Violates(RuleId::mlx5_create_ah_rate, !ValidRate(world, ah.address.static_rate))) {
    return call.Refuse(RuleId::mlx5_create_ah_rate);
  }
  return 0;
}

}  // namespace vabi::mlx5
