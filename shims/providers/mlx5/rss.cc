// SPDX-License-Identifier: BSD-2-Clause
// qp.c:create_rss_raw_qp_tir: a queue pair that spreads packets over work queues. None arrive
// without flow rules, so there is nothing behind it.
#include <bit>

#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

#define REQ(field) VABI_F(mlx5_ib_create_qp_rss, field)
#define RESP(field) VABI_F(mlx5_ib_create_qp_resp, field)

constexpr uint32_t kToeplitzKey = 40;

class RssCreator {
 public:
  RssCreator(Call& call, Qp& qp)
      : call_(call),
        world_(call.world),
        qp_(qp),
        body_(call.world, VABI_S(mlx5_ib_create_qp_rss)) {}

  int Run() {
    if (const int error = ReadRequest()) return error;
    if (const int error = CheckFlags()) return error;
    if (const int error = CheckHash()) return error;
    OwnedBody<128> reply(world_, VABI_S(mlx5_ib_create_qp_resp));
    if (ContextOf(call_.file).devx) {
      reply.Set(RESP(comp_mask),
                static_cast<uint64_t>(Flag(VABI_C(MLX5_IB_CREATE_QP_RESP_MASK_TIRN))));
      reply.Set(RESP(tirn), qp_.device->NextNumber());
    }
    const OldRespond how = world_.Knob(KnobId::mlx5_create_qp_reply_clipped) != 0
                               ? OldRespond::kClip
                               : OldRespond::kWhole;
    const size_t size = how == OldRespond::kClip ? reply.length() : world_.End(RESP(bfreg_index));
    if (const int error = Respond(call_, reply.base(), size, how)) return error;
    qp_.qp_num = 0;  // no number of its own
    qp_.driver = std::make_unique<QueuePairState>();
    return 0;
  }

 private:
  uint32_t Flag(ConstId bit) const { return static_cast<uint32_t>(world_.Flag(bit)); }
  bool Hashes(ConstId field) const { return (fields_ & Flag(field)) != 0; }

  int ReadRequest() {
    const size_t least = world_.Has(REQ(flags)) ? world_.End(REQ(flags)) : body_.length();
    if (call_.Violates(RuleId::mlx5_create_rss_length, call_.in.length() < least)) {
      return call_.Refuse(RuleId::mlx5_create_rss_length);
    }
    const FieldId first = world_.Has(RESP(bfreg_index)) ? RESP(bfreg_index) : RESP(uuar_index);
    if (call_.Violates(RuleId::mlx5_create_rss_reply, call_.out.length() < world_.End(first))) {
      return call_.Refuse(RuleId::mlx5_create_rss_reply);
    }
    const RequestRules rules = {least, RuleId::mlx5_create_rss_length,
                                RuleId::mlx5_create_rss_tail};
    return CopyRequest(call_, body_.base(), body_.length(), rules);
  }

  int CheckFlags() {
    const uint32_t flags = body_.U32(REQ(flags));
    const uint32_t tunnels = Flag(VABI_C(MLX5_QP_FLAG_TUNNEL_OFFLOADS));
    const uint32_t loopback = Flag(VABI_C(MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC)) |
                              Flag(VABI_C(MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC));
    if (call_.Violates(RuleId::mlx5_create_rss_flags,
                       (flags & ~(loopback | (kCaps.tunnel_offloads ? tunnels : 0))) != 0)) {
      return call_.Refuse(RuleId::mlx5_create_rss_flags);
    }
    if (call_.Violates(RuleId::mlx5_create_rss_create_flags, qp_.create_flags != 0)) {
      return call_.Refuse(RuleId::mlx5_create_rss_create_flags);
    }
    if (call_.Violates(RuleId::mlx5_create_rss_send_cq, qp_.send_cq != nullptr)) {
      return call_.Refuse(RuleId::mlx5_create_rss_send_cq);
    }
    if (call_.Violates(RuleId::mlx5_create_rss_comp_mask, body_.Get(REQ(comp_mask)) != 0)) {
      return call_.Refuse(RuleId::mlx5_create_rss_comp_mask);
    }
    if (call_.Violates(RuleId::mlx5_create_rss_reserved,
                       (body_.Get(REQ(reserved)) | body_.Get(REQ(reserved1))) != 0)) {
      return call_.Refuse(RuleId::mlx5_create_rss_reserved);
    }
    fields_ = body_.Get(REQ(rx_hash_fields_mask));
    if (call_.Violates(RuleId::mlx5_create_rss_inner,
                       Hashes(VABI_C(MLX5_RX_HASH_INNER)) && (flags & tunnels) == 0)) {
      return call_.Refuse(RuleId::mlx5_create_rss_inner);
    }
    return 0;
  }

  int CheckHash() {
    if (body_.Get(REQ(rx_hash_function)) !=
        static_cast<uint64_t>(Flag(VABI_C(MLX5_RX_HASH_FUNC_TOEPLITZ)))) {
      return call_.Refuse(RuleId::mlx5_create_rss_function);
    }
    if (call_.Violates(RuleId::mlx5_create_rss_key, body_.Get(REQ(rx_key_len)) != kToeplitzKey)) {
      return call_.Refuse(RuleId::mlx5_create_rss_key);
    }
    if (fields_ == 0) {
      if (call_.Violates(RuleId::mlx5_create_rss_no_fields, qp_.ind_table->wqs.size() != 1)) {
        return call_.Refuse(RuleId::mlx5_create_rss_no_fields);
      }
      return 0;
    }
    const bool v4 = Hashes(VABI_C(MLX5_RX_HASH_SRC_IPV4)) || Hashes(VABI_C(MLX5_RX_HASH_DST_IPV4));
    const bool v6 = Hashes(VABI_C(MLX5_RX_HASH_SRC_IPV6)) || Hashes(VABI_C(MLX5_RX_HASH_DST_IPV6));
    if (call_.Violates(RuleId::mlx5_create_rss_addresses, v4 && v6)) {
      return call_.Refuse(RuleId::mlx5_create_rss_addresses);
    }
    const int ports =
        (Hashes(VABI_C(MLX5_RX_HASH_SRC_PORT_TCP)) || Hashes(VABI_C(MLX5_RX_HASH_DST_PORT_TCP))) +
        (Hashes(VABI_C(MLX5_RX_HASH_SRC_PORT_UDP)) || Hashes(VABI_C(MLX5_RX_HASH_DST_PORT_UDP))) +
        Hashes(VABI_C(MLX5_RX_HASH_IPSEC_SPI));
    if (call_.Violates(RuleId::mlx5_create_rss_ports, ports > 1))
      return call_.Refuse(RuleId::mlx5_create_rss_ports);
    return 0;
  }

  Call& call_;
  const World& world_;
  Qp& qp_;
  OwnedBody<192> body_;
  uint64_t fields_ = 0;
};

}  // namespace

int CreateRss(Call& call, Qp& qp) { return RssCreator(call, qp).Run(); }

}  // namespace vabi::mlx5
