// SPDX-License-Identifier: BSD-2-Clause
// srq.c
#include <algorithm>

#include "shims/providers/mlx4/capabilities.h"
#include "shims/providers/mlx4/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/qp_create.h"

namespace vabi::mlx4 {
namespace {

constexpr uint32_t kLeastElement = 32;
// enum ib_srq_attr_mask
constexpr uint32_t kSrqMaxWr = 1 << 0, kSrqLimit = 1 << 1;

}  // namespace

int Mlx4Driver::CreateSrq(Call& call, Srq& srq) {
  if (call.Violates(rule::srq_type, srq.srq_type != kSrqtBasic && srq.srq_type != kSrqtXrc))
    return call.Refuse(rule::srq_type);
  if (srq.max_wr >= kCaps.max_srq_wqes) return call.Refuse(rule::srq_depth);
  if (srq.max_sge > kCaps.max_srq_sge) return call.Refuse(rule::srq_sges);
  const uint32_t entries = RoundUpPowerOfTwo(srq.max_wr + 1);
  const uint32_t element =
      std::max(kLeastElement, RoundUpPowerOfTwo(kSegment + srq.max_sge * kSegment));
  OwnedBody<32> request(call.world, structure::mlx4_ib_create_srq);
  if (const int error = ReadRequest(call, request)) return error;
  if (const int error = Pin(call, request.Get(VABI_PF(mlx4_ib_create_srq, buf_addr)),
                            uint64_t{entries} * element, 0)) {
    return error;
  }
  if (const int error = PinDoorbell(call, request.Get(VABI_PF(mlx4_ib_create_srq, db_addr))))
    return error;
  srq.srqn = kCaps.reserved_srqs + srq.device->NextNumber();
  OwnedBody<16> reply(call.world, structure::mlx4_ib_create_srq_resp);
  reply.Set(VABI_PF(mlx4_ib_create_srq_resp, srqn), srq.srqn);
  if (const int error = Reply(call, reply, sizeof(uint32_t))) return error;
  srq.max_wr = entries - 1;
  auto state = std::make_unique<SrqState>();
  state->entries = entries;
  srq.driver = std::move(state);
  return 0;
}

int Mlx4Driver::ModifySrq(Call& call, Srq& srq, uint32_t, uint32_t limit, uint32_t mask) {
  if (call.Violates(rule::modify_srq_resize, (mask & kSrqMaxWr) != 0))
    return call.Refuse(rule::modify_srq_resize);
  if ((mask & kSrqLimit) == 0) return 0;
  if (call.Violates(rule::modify_srq_limit, limit >= StateOf(srq).entries))
    return call.Refuse(rule::modify_srq_limit);
  srq.srq_limit = limit;
  return 0;
}

int Mlx4Driver::QuerySrq(Call&, Srq&) { return 0; }

}  // namespace vabi::mlx4
