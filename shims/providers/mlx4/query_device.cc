// SPDX-License-Identifier: BSD-2-Clause
// main.c: mlx4_ib_query_device, mlx4_ib_query_port
#include <algorithm>
#include <cstring>

#include "shims/providers/common/udata.h"
#include "shims/providers/mlx4/capabilities.h"
#include "shims/providers/mlx4/driver.h"
#include "shims/uverbs/device.h"

namespace vabi::mlx4 {
namespace {

// enum ib_device_cap_flags
constexpr uint64_t kBadPkeyCounter = 1 << 1, kBadQkeyCounter = 1 << 2, kAutoPathMig = 1 << 4,
                   kChangePhyPort = 1 << 5, kUdAvPortEnforce = 1 << 6, kPortActiveEvent = 1 << 10,
                   kSysImageGuid = 1 << 11, kRcRnrNakGen = 1 << 12, kLocalDmaLkey = 1 << 15,
                   kMemWindow = 1 << 17, kUdIpCsum = 1 << 18, kUdTso = 1 << 19, kXrc = 1 << 20,
                   kMemMgtExtensions = 1 << 21, kBlockMulticastLoopback = 1 << 22,
                   kMemWindowType2b = 1 << 24, kRawIpCsum = 1 << 26;

uint64_t DeviceFlags(const Device& device) {
  uint64_t flags = kBadPkeyCounter | kBadQkeyCounter | kChangePhyPort | kUdAvPortEnforce |
                   kPortActiveEvent | kSysImageGuid | kRcRnrNakGen | kMemWindow | kUdIpCsum | kXrc |
                   kMemMgtExtensions | kMemWindowType2b | kRawIpCsum;
  if (device.image().link == LinkLayer::kInfiniband) flags |= kAutoPathMig;
  if (device.world().Knob(knob::kernel_flags_shown) != 0)
    flags |= kBlockMulticastLoopback | kUdTso | kLocalDmaLkey;
  return flags;
}

uint64_t FirmwareVersion(const char* text) {
  uint64_t parts[3] = {};
  for (uint64_t& part : parts) {
    while (*text >= '0' && *text <= '9') part = part * 10 + static_cast<uint64_t>(*text++ - '0');
    if (*text == '.') ++text;
  }
  return parts[0] << 32 | parts[1] << 16 | parts[2];
}

// struct mlx4_uverbs_ex_query_device_resp, which no header had before 4.16; it only ever grew.
struct ReplyLayout {
  uint32_t comp_mask, response_length;
  uint64_t clock_offset;
  uint32_t max_inline_receive, reserved;
  uint64_t rss_fields;
  uint8_t rss_function, rss_reserved[7];
  uint32_t max_tso, tso_qpts;
};
static_assert(sizeof(ReplyLayout) == 48);
constexpr uint32_t kBase = 8, kWithClock = 16, kWithRss = 40, kWithTso = 48;
constexpr uint32_t kClockOffset = 1;  // MLX4_IB_QUERY_DEV_RESP_MASK_CORE_CLOCK_OFFSET
constexpr uint32_t kRawPacket = 8;    // IB_QPT_RAW_PACKET
constexpr uint8_t kToeplitz = 1;      // MLX4_IB_RX_HASH_FUNC_TOEPLITZ
constexpr uint64_t kHashFields = 0xff;

}  // namespace

void Mlx4Driver::Describe(const Device& device, DeviceAttributes* out) const {
  const World& world = device.world();
  const DeviceImage& image = device.image();
  link_ = image.link;
  constexpr uint32_t kOui = 0x0002c9;
  out->fw_ver = FirmwareVersion(image.fw_ver);
  out->vendor_id = kOui;
  out->vendor_part_id = image.vendor_part_id;
  out->hw_ver = image.hw_ver;
  out->device_cap_flags = DeviceFlags(device);
  out->max_mr_size = ~0ULL;
  out->page_size_cap = kCaps.page_size_cap;
  out->max_qp = kCaps.num_qps - kCaps.reserved_qps;
  out->max_qp_wr = kCaps.max_wqes - kSpareWqes;
  out->max_send_sge = out->max_recv_sge = std::min(kCaps.max_sq_sg, kCaps.max_rq_sg);
  out->max_sge_rd = kMaxSgeRd;
  out->max_cq = kCaps.num_cqs - kCaps.reserved_cqs;
  out->max_cqe = kCaps.max_cqes;
  out->max_mr = kCaps.num_mpts - kCaps.reserved_mrws;
  out->max_pd = kCaps.num_pds - kCaps.reserved_pds;
  out->max_qp_rd_atom = kCaps.max_qp_dest_rdma;
  out->max_qp_init_rd_atom = kCaps.max_qp_init_rdma;
  out->max_res_rd_atom = out->max_qp_rd_atom * out->max_qp;
  out->max_srq = kCaps.num_srqs - kCaps.reserved_srqs;
  out->max_srq_wr = kCaps.max_srq_wqes - 1;
  out->max_srq_sge = kCaps.max_srq_sge;
  out->local_ca_ack_delay = kCaps.local_ca_ack_delay;
  out->atomic_cap = out->masked_atomic_cap = 1;  // IB_ATOMIC_HCA
  out->max_pkeys = kCaps.pkey_table_len;
  out->max_mcast_grp = kCaps.num_mgms;
  out->max_mcast_qp_attach = kCaps.num_qp_per_mgm;
  out->max_total_mcast_qp_attach = out->max_mcast_qp_attach * out->max_mcast_grp;
  out->hca_core_clock = kCaps.hca_core_clock_mhz * 1000;
  out->timestamp_mask = 0xffffffffffffULL;
  out->max_ah = static_cast<uint32_t>(world.Knob(knob::max_ah));
  if (world.Knob(knob::rss_capabilities) != 0) {
    if (link_ == LinkLayer::kEthernet) {
      out->rss_max_rwq_indirection_tables = out->max_qp;
      out->rss_max_rwq_indirection_table_size = kCaps.max_rss_tbl_sz;
      out->rss_supported_qpts = 1u << kRawPacket;
      out->max_wq_type_rq = out->max_qp;
    }
    out->cq_max_moderation_count = 0xffff;   // MLX4_MAX_CQ_COUNT
    out->cq_max_moderation_period = 0xffff;  // MLX4_MAX_CQ_PERIOD
  }
  constexpr uint32_t kScatterFcs = 2;  // IB_RAW_PACKET_CAP_SCATTER_FCS
  if (link_ == LinkLayer::kEthernet && world.Knob(knob::scatter_fcs) != 0)
    out->raw_packet_caps = kScatterFcs;
}

void Mlx4Driver::DescribePort(const Device&, uint32_t, PortAttributes* out) const {
  if (link_ == LinkLayer::kInfiniband) {
    out->max_vl_num = 4;  // VL0 to VL7
    out->subnet_timeout = 18;
  }
}

int Mlx4Driver::QueryDevice(Call& call, Device& device) {
  const World& world = call.world;
  const bool validates = world.Knob(knob::validates) != 0;
  struct {
    uint32_t comp_mask, reserved;
  } request = {};
  if (call.in.length() != 0) {
    const provider::RequestRules rules = {sizeof(request), rule::query_device_short,
                                          rule::request_tail, rule::request_fault};
    if (call.in.length() < sizeof(request)) return call.Refuse(rule::query_device_short);
    if (const int error = provider::CopyRequest(call, &request, sizeof(request), rules))
      return error;
    if (call.Violates(rule::query_device_comp_mask, request.comp_mask != 0))
      return call.Refuse(rule::query_device_comp_mask);
    if (call.Violates(rule::query_device_reserved, request.reserved != 0))
      return call.Refuse(rule::query_device_reserved);
  }
  const size_t room = call.out.length();
  const int64_t told = world.Knob(knob::query_device_reply);
  const bool roce = device.image().link == LinkLayer::kEthernet;
  uint8_t bytes[sizeof(ReplyLayout)] = {};
  ReplyLayout reply = {};
  const auto rss = [&] {
    if (!roce) return;
    reply.rss_function = kToeplitz;
    reply.rss_fields = kHashFields;
  };
  reply.response_length = kBase;
  if (room >= kWithClock) {
    reply.response_length = kWithClock;
    reply.comp_mask = kClockOffset;
    reply.clock_offset = kCaps.clock_offset;
  }
  if (told > 0 && room >= reply.response_length + sizeof(uint32_t)) {
    reply.response_length += sizeof(uint32_t);
    reply.max_inline_receive = kCaps.max_rq_sg * kSegment;
  }
  if (told == 1 && room >= reply.response_length + uint32_t{16}) {
    reply.response_length += 16;
    rss();
  }
  if (told > 1 && room >= kWithRss) {
    reply.response_length = kWithRss;
    rss();
  }
  if (told > 1 && room >= kWithTso) {
    reply.response_length = kWithTso;
    if (roce) {
      reply.max_tso = kCaps.max_gso_sz;
      reply.tso_qpts = 1u << kRawPacket;
    }
  }
  if (room == 0) return 0;
  std::memcpy(bytes, &reply, sizeof(bytes));
  if (validates) {
    return provider::Respond(call, bytes, sizeof(bytes), provider::How::kZeroes, rule::reply_fault);
  }
  return provider::Respond(call, bytes, reply.response_length, provider::How::kWhole,
                           rule::reply_fault);
}

}  // namespace vabi::mlx4
