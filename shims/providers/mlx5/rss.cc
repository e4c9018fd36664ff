// SPDX-License-Identifier: BSD-2-Clause
// qp.c:create_rss_raw_qp_tir: a queue pair that spreads frames over work queues.
#include <bit>
#include <cstring>

#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/providers/mlx5/flow_state.h"
#include "shims/providers/mlx5/packet.h"
#include "shims/providers/mlx5/wire_format.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

#define REQ(field) VABI_F(mlx5_ib_create_qp_rss, field)
#define RESP(field) VABI_F(mlx5_ib_create_qp_resp, field)

constexpr uint32_t kToeplitzKey = 40;

// Which of a frame's headers are hashed.
struct HashFields {
  bool source = false, destination = false;  // addresses
  bool source_port = false, destination_port = false;
  bool ipv6 = false, tcp = false;
};

// Spreads by Toeplitz' hash over the chosen headers, taken symmetrically as the driver asks for
// (rx_hash_symmetric): source and destination enter by their exclusive or, so that both directions
// of a connection meet. Frames of other protocols have the hash 0.
class RssSink final : public PacketSink {
 public:
  RssSink(const RwqIndTable& table, const HashFields& fields, const uint8_t* key)
      : table_(table), fields_(fields) {
    std::memcpy(key_, key, sizeof(key_));
  }

  void Receive(const Frame& frame) override {
    const size_t index = Hash(ParseFrame(frame)) & (table_.wqs.size() - 1);
    StateOf(*table_.wqs[index]).queue->Receive(frame);
  }

 private:
  uint32_t Hash(const MatchParams& packet) const {
    const int version = packet[kMatchTags] >> kMatchIpVersionShift & 0xf;
    if (version != (fields_.ipv6 ? 6 : 4)) return 0;
    uint8_t input[36] = {};
    size_t size = 0;
    const size_t length = fields_.ipv6 ? 16 : 4, skip = 16 - length;
    size = Mix(packet, kMatchSource + skip, kMatchDestination + skip, length, fields_.source,
               fields_.destination, input, size);
    constexpr uint8_t kTcp = 6, kUdp = 17;
    if (packet[kMatchProtocol] == (fields_.tcp ? kTcp : kUdp)) {
      const size_t ports = fields_.tcp ? kMatchTcpPorts : kMatchUdpPorts;
      size = Mix(packet, ports, ports + 2, 2, fields_.source_port, fields_.destination_port, input,
                 size);
    }
    return Toeplitz(input, size);
  }

  static size_t Mix(const MatchParams& packet, size_t source, size_t destination, size_t length,
                    bool has_source, bool has_destination, uint8_t* input, size_t size) {
    if (!has_source && !has_destination) return size;
    for (size_t i = 0; i < length; ++i) {
      const uint8_t from = has_source ? packet[source + i] : 0;
      input[size++] = static_cast<uint8_t>(from ^ (has_destination ? packet[destination + i] : 0));
    }
    return size;
  }

  uint32_t Toeplitz(const uint8_t* input, size_t size) const {
    uint32_t hash = 0;
    uint64_t window = Load64(key_);
    for (size_t i = 0; i < size; ++i) {
      for (int bit = 7; bit >= 0; --bit) {
        if ((input[i] >> bit & 1) != 0) hash ^= static_cast<uint32_t>(window >> 32);
        window <<= 1;
      }
      window |= i + 8 < sizeof(key_) ? key_[i + 8] : 0;
    }
    return hash;
  }

  const RwqIndTable& table_;
  const HashFields fields_;
  uint8_t key_[kToeplitzKey];
};

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
    auto state = std::make_unique<QueuePairState>();
    uint8_t key[kToeplitzKey] = {};
    body_.GetBytes(REQ(rx_hash_key), key, sizeof(key));
    state->rss = std::make_unique<RssSink>(*qp_.ind_table, Fields(), key);
    qp_.driver = std::move(state);
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

  HashFields Fields() const {
    HashFields fields;
    fields.ipv6 = Hashes(VABI_C(MLX5_RX_HASH_SRC_IPV6)) || Hashes(VABI_C(MLX5_RX_HASH_DST_IPV6));
    fields.source = Hashes(VABI_C(MLX5_RX_HASH_SRC_IPV4)) || Hashes(VABI_C(MLX5_RX_HASH_SRC_IPV6));
    fields.destination =
        Hashes(VABI_C(MLX5_RX_HASH_DST_IPV4)) || Hashes(VABI_C(MLX5_RX_HASH_DST_IPV6));
    fields.tcp =
        Hashes(VABI_C(MLX5_RX_HASH_SRC_PORT_TCP)) || Hashes(VABI_C(MLX5_RX_HASH_DST_PORT_TCP));
    fields.source_port =
        Hashes(VABI_C(MLX5_RX_HASH_SRC_PORT_TCP)) || Hashes(VABI_C(MLX5_RX_HASH_SRC_PORT_UDP));
    fields.destination_port =
        Hashes(VABI_C(MLX5_RX_HASH_DST_PORT_TCP)) || Hashes(VABI_C(MLX5_RX_HASH_DST_PORT_UDP));
    return fields;
  }

  Call& call_;
  const World& world_;
  Qp& qp_;
  OwnedBody<192> body_;
  uint64_t fields_ = 0;
};

}  // namespace

PacketSink* SinkOf(Qp& qp) {
  QueuePairState& state = StateOf(qp);
  if (state.rss != nullptr) return state.rss.get();
  return state.pair.get();
}

int CreateRss(Call& call, Qp& qp) { return RssCreator(call, qp).Run(); }

}  // namespace vabi::mlx5
