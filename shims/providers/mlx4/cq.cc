// SPDX-License-Identifier: BSD-2-Clause
// cq.c: mlx4_ib_create_user_cq (mlx4_ib_create_cq before 7.2), mlx4_ib_resize_cq, mlx4_ib_modify_cq
#include "shims/providers/mlx4/capabilities.h"
#include "shims/providers/mlx4/driver.h"
#include "shims/sys/sys.h"
#include "shims/uverbs/device.h"

namespace vabi::mlx4 {
namespace {

constexpr uint32_t kTimestamps = 1 << 0;  // IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION

// ABI 3 is a NIC's whose elements have 32 bytes (main.c:mlx4_ib_probe and userspace_caps, which
// ethernet/mellanox/mlx4/fw.c:mlx4_INIT_HCA sets with elements of 64): its library knows no others.
uint32_t EntrySize(const Device& device) {
  constexpr uint32_t kSmall = 32;
  return device.image().abi_version == kAbiWithoutCaps ? kSmall : kCaps.cqe_size;
}

int PinEntries(Call& call, const Device& device, uint64_t address, uint32_t entries) {
  constexpr uint32_t kLocalWrite = 1;
  return Pin(call, address, uint64_t{entries} * EntrySize(device), kLocalWrite);
}

// RESIZE_CQ ends with an element in the old buffer, from where on elements stand in the new one:
// both kernel and library read up to it (cq.c:mlx4_ib_cq_resize_copy_cqes).
int TellResized(Call& call, const Device& device, CqState* state) {
  constexpr uint8_t kResize = 0x16, kOwner = 0x80;  // include/linux/mlx4/cq.h
  const uint32_t index = state->produced & (state->entries - 1);
  const uint8_t owner = (state->produced & state->entries) != 0 ? kOwner : 0;
  const uint8_t last = static_cast<uint8_t>(owner | kResize);
  const uint64_t at = state->buffer + uint64_t{index + 1} * EntrySize(device) - 1;
  ++state->produced;
  if (sys::CopyToUser(at, &last, sizeof(last)) == 0) return 0;
  return call.Unmodelled("mlx4: a completion queue whose memory has gone");
}

}  // namespace

int Mlx4Driver::CreateCq(Call& call, Cq& cq) {
  if (cq.cqe > kCaps.max_cqes) return call.Refuse(rule::cq_entries);
  if (call.Violates(rule::cq_flags, (cq.flags & ~kTimestamps) != 0))
    return call.Refuse(rule::cq_flags);
  const uint32_t entries = RoundUpPowerOfTwo(cq.cqe + 1);
  OwnedBody<32> request(call.world, structure::mlx4_ib_create_cq);
  if (const int error = ReadRequest(call, request)) return error;
  const uint64_t buffer = request.Get(VABI_PF(mlx4_ib_create_cq, buf_addr));
  if (const int error = PinEntries(call, *cq.device, buffer, entries)) return error;
  if (const int error = PinDoorbell(call, request.Get(VABI_PF(mlx4_ib_create_cq, db_addr))))
    return error;
  OwnedBody<16> reply(call.world, structure::mlx4_ib_create_cq_resp);
  reply.Set(VABI_PF(mlx4_ib_create_cq_resp, cqn), kCaps.reserved_cqs + cq.device->NextNumber());
  if (const int error = Reply(call, reply, sizeof(uint32_t))) return error;
  cq.cqe = entries - 1;
  auto state = std::make_unique<CqState>();
  state->buffer = buffer;
  state->entries = entries;
  cq.driver = std::move(state);
  return 0;
}

// What is outstanding in it, nothing that is modelled here has put there.
int Mlx4Driver::ResizeCq(Call& call, Cq& cq, uint32_t cqe) {
  if (cqe < 1 || cqe > kCaps.max_cqes) return call.Refuse(rule::resize_entries);
  const uint32_t entries = RoundUpPowerOfTwo(cqe + 1);
  if (entries == cq.cqe + 1) return 0;
  OwnedBody<16> request(call.world, structure::mlx4_ib_resize_cq);
  if (const int error = ReadRequest(call, request)) return error;
  const uint64_t buffer = request.Get(VABI_PF(mlx4_ib_resize_cq, buf_addr));
  if (const int error = PinEntries(call, *cq.device, buffer, entries)) return error;
  CqState& state = StateOf(cq);
  if (const int error = TellResized(call, *cq.device, &state)) return error;
  state.buffer = buffer;
  state.entries = entries;
  cq.cqe = entries - 1;
  return 0;
}

int Mlx4Driver::ModifyCq(Call&, Cq&, uint16_t, uint16_t) { return 0; }

}  // namespace vabi::mlx4
