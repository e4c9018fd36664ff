// SPDX-License-Identifier: BSD-2-Clause
// main.c: mlx5_ib_query_device, mlx5_ib_query_port, mlx5_ib_query_port_speed
#include <algorithm>

#include "shims/port_rate.h"
#include "shims/providers/mlx5/capabilities.h"
#include "shims/providers/mlx5/driver.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/uverbs_file.h"

namespace vabi::mlx5 {
namespace {

#define RESP(field) VABI_F(mlx5_ib_query_device_resp, field)

// enum ib_device_cap_flags
constexpr uint64_t kBadPkeyCounter = 1 << 1, kBadQkeyCounter = 1 << 2, kAutoPathMig = 1 << 4,
                   kChangePhyPort = 1 << 5, kPortActiveEvent = 1 << 10, kSysImageGuid = 1 << 11,
                   kRcRnrNakGen = 1 << 12, kMemWindow = 1 << 17, kXrc = 1 << 20,
                   kMemMgtExtensions = 1 << 21, kBlockMulticastLoopback = 1 << 22,
                   kMemWindowType2b = 1 << 24, kManagedFlowSteering = 1 << 29,
                   kOnDemandPaging = 1ULL << 31, kSgGaps = 1ULL << 32;
// enum ib_odp_general_caps, ib_odp_transport_cap_bits
constexpr uint64_t kOdpSupport = 1, kOdpImplicit = 2;
constexpr uint32_t kOdpSend = 1, kOdpReceive = 2, kOdpWrite = 4, kOdpRead = 8, kOdpAtomic = 16,
                   kOdpSrqReceive = 32;

constexpr uint32_t kControlSegment = 16, kRemoteSegment = 16, kDataSegment = 16;
constexpr uint32_t kMostSendDescriptor = 512;

uint64_t FirmwareVersion(const char* text) {
  uint64_t parts[3] = {};
  for (uint64_t& part : parts) {
    while (*text >= '0' && *text <= '9') part = part * 10 + static_cast<uint64_t>(*text++ - '0');
    if (*text == '.') ++text;
  }
  return parts[0] << 32 | parts[1] << 16 | parts[2];
}

uint64_t DeviceFlags(const World& world) {
  uint64_t flags = kChangePhyPort | kPortActiveEvent | kSysImageGuid | kRcRnrNakGen;
  if (kCaps.pkv) flags |= kBadPkeyCounter;
  if (kCaps.qkv) flags |= kBadQkeyCounter;
  if (kCaps.apm) flags |= kAutoPathMig;
  if (kCaps.xrc) flags |= kXrc;
  const bool windows = kCaps.imaicl && world.Served(DriverId::mlx5, Op::alloc_mw);
  if (windows) flags |= kMemWindow | kMemWindowType2b;
  if (!kCaps.umr_modify_entity_size_disabled) flags |= kMemMgtExtensions;
  if (world.Served(DriverId::mlx5, Op::create_flow)) flags |= kManagedFlowSteering;
  // Up to 5.18 what concerns the kernel alone stood among the rest.
  if (world.Knob(KnobId::mlx5_kernel_flags_shown) != 0) {
    if (kCaps.block_lb_mc) flags |= kBlockMulticastLoopback;
    if (kCaps.pg) flags |= kOnDemandPaging;
    if (windows) flags |= kSgGaps;
  }
  return flags;
}

// mlx5_ib_calc_max_qp_wr: with the largest overhead of any service, one element, no inline data.
uint32_t MaxQpWr(const World& world) {
  const uint32_t blocks = 1u << kCaps.log_max_qp_sz;
  if (world.Knob(KnobId::mlx5_max_qp_wr_by_size) == 0) return blocks;
  constexpr uint32_t kLargestElement = 256;
  return blocks * kBlock / kLargestElement;
}

// QUERY_ADAPTER's ieee_vendor_id; not the number of the PCI vendor.
constexpr uint32_t kMellanoxOui = 0x0002c9;

}  // namespace

bool MatchesTags(const World& world, const Device& device) {
  return kCaps.tag_matching && device.image().link == LinkLayer::kInfiniband &&
         world.Has(VABI_F(ib_uverbs_ex_query_device_resp, tm_caps));
}

void Mlx5Driver::Describe(const Device& device, DeviceAttributes* out) const {
  const World& world = device.world();
  const DeviceImage& image = device.image();
  link_ = image.link;
  const bool roce = image.link == LinkLayer::kEthernet;
  out->fw_ver = FirmwareVersion(image.fw_ver);
  out->vendor_id = kMellanoxOui;
  out->vendor_part_id = image.vendor_part_id;
  out->hw_ver = image.hw_ver;
  out->device_cap_flags = DeviceFlags(world);
  out->max_pkeys = static_cast<uint16_t>(image.ports[0].pkey_count);
  out->max_mr_size = ~0ULL;
  out->page_size_cap = ~((1ULL << kCaps.log_pg_sz) - 1);
  out->max_qp = 1u << kCaps.log_max_qp;
  out->max_qp_wr = MaxQpWr(world);
  const uint32_t receive_sge = static_cast<uint32_t>(kCaps.max_wqe_sz_rq) / kDataSegment;
  const uint32_t descriptor =
      std::min(static_cast<uint32_t>(kCaps.max_wqe_sz_sq), kMostSendDescriptor);
  out->max_send_sge = (descriptor - kControlSegment - kRemoteSegment) / kDataSegment;
  out->max_recv_sge = receive_sge;
  out->max_sge_rd = (kMostSendDescriptor - kControlSegment - kRemoteSegment) / kDataSegment;
  out->max_cq = 1u << kCaps.log_max_cq;
  out->max_cqe = (1u << kCaps.log_max_cq_sz) - 1;
  out->max_mr = 1u << kCaps.log_max_mkey;
  out->max_pd = 1u << kCaps.log_max_pd;
  out->max_qp_rd_atom = 1u << kCaps.log_max_ra_req_qp;
  out->max_qp_init_rd_atom = 1u << kCaps.log_max_ra_res_qp;
  out->max_res_rd_atom = out->max_qp_rd_atom * out->max_qp;
  out->max_srq = 1u << kCaps.log_max_srq;
  out->max_srq_wr = (1u << kCaps.log_max_srq_sz) - 1;
  out->max_srq_sge = receive_sge - 1;
  out->local_ca_ack_delay = static_cast<uint8_t>(kCaps.local_ca_ack_delay);
  out->max_mw =
      kCaps.imaicl && world.Served(DriverId::mlx5, Op::alloc_mw) ? 1u << kCaps.log_max_mkey : 0;
  out->atomic_cap = static_cast<uint32_t>(world.Knob(KnobId::mlx5_atomic_cap));
  out->max_mcast_grp = 1u << kCaps.log_max_mcg;
  out->max_mcast_qp_attach = static_cast<uint32_t>(kCaps.max_qp_mcg);
  out->max_total_mcast_qp_attach = out->max_mcast_qp_attach * out->max_mcast_grp;
  out->max_ah = static_cast<uint32_t>(world.Knob(KnobId::mlx5_max_ah));
  out->hca_core_clock = kCaps.device_frequency_khz;
  out->timestamp_mask = 0x7fffffffffffffffULL;
  out->odp_general_caps =
      kOdpSupport | (world.Knob(KnobId::mlx5_odp_implicit) != 0 ? kOdpImplicit : 0);
  const uint32_t srq = world.Knob(KnobId::mlx5_odp_srq) != 0 ? kOdpSrqReceive : 0;
  out->odp_rc = kOdpSend | kOdpReceive | kOdpWrite | kOdpRead | kOdpAtomic | srq;
  out->odp_ud = kOdpSend | srq;
  out->xrc_odp_caps = srq != 0 ? kOdpSend | kOdpWrite | kOdpRead | kOdpAtomic | srq : 0;
  if (roce && world.Served(DriverId::mlx5, Op::create_wq)) {
    constexpr uint32_t kRawPacket = 8;
    constexpr int kLogMaxRqt = 16, kLogMaxRqtSize = 11, kLogMaxRq = 18;
    out->rss_max_rwq_indirection_tables = 1u << kLogMaxRqt;
    out->rss_max_rwq_indirection_table_size = 1u << kLogMaxRqtSize;
    out->rss_supported_qpts = 1u << kRawPacket;
    out->max_wq_type_rq = 1u << kLogMaxRq;
  }
  if (kCaps.cq_moderation) {
    out->cq_max_moderation_count = 0xffff;  // MLX5_MAX_CQ_COUNT: 16 bits of the CQ context
    out->cq_max_moderation_period = 0xfff;  // MLX5_MAX_CQ_PERIOD: 12 bits
  }
  if (world.Served(DriverId::mlx5, Op::alloc_dm)) out->max_dm_size = kCaps.memic_size;
  if (MatchesTags(world, device)) {
    out->tm_max_num_tags = (1u << kCaps.log_tag_matching_list_sz) - 1;
    out->tm_max_ops = 1u << kCaps.log_max_qp_sz;
    out->tm_max_sge = 1;             // MLX5_TM_MAX_SGE
    out->tm_flags = 1;               // IB_TM_CAP_RNDV_RC (IB_TM_CAP_RC up to 4.18)
    out->tm_max_rndv_hdr_size = 64;  // MLX5_TM_MAX_RNDV_MSG_SIZE
  }
}

void Mlx5Driver::DescribePort(const Device&, uint32_t, PortAttributes* out) const {
  if (link_ == LinkLayer::kInfiniband) {
    out->max_vl_num = 3;  // VL0 to VL3, as translate_max_vl_num puts it
    out->subnet_timeout = 18;
  }
}

int Mlx5Driver::QueryDevice(Call& call, Device& device) {
  const World& world = call.world;
  const size_t room = call.out.length();
  if (world.Knob(KnobId::mlx5_query_device_uhw) == 0) {
    // 4.4
    if (call.Violates(RuleId::mlx5_query_device_any_uhw, room != 0 || call.in.length() != 0)) {
      return call.Refuse(RuleId::mlx5_query_device_any_uhw);
    }
    return 0;
  }
  size_t length = world.End(RESP(response_length));
  if (call.Violates(RuleId::mlx5_query_device_reply, room != 0 && room < length)) {
    return call.Refuse(RuleId::mlx5_query_device_reply);
  }
  if (call.in.length() != 0 && call.On(RuleId::mlx5_query_device_input) &&
      call.in.TailIsZero(0) != 1) {
    return call.Refuse(RuleId::mlx5_query_device_input);
  }
  OwnedBody<256> reply(world, VABI_S(mlx5_ib_query_device_resp));
  // Each field counts if the caller's buffer holds it whole.
  const FieldId fields[] = {RESP(tso_caps),
                            RESP(rss_caps),
                            RESP(cqe_comp_caps),
                            RESP(packet_pacing_caps),
                            RESP(mlx5_ib_support_multi_pkt_send_wqes),
                            RESP(flags),
                            RESP(sw_parsing_caps),
                            RESP(striding_rq_caps),
                            RESP(tunnel_offloads_caps),
                            RESP(dci_streams_caps),
                            RESP(reserved),
                            RESP(reg_c0)};
  for (const FieldId field : fields) {
    if (world.Has(field) && world.End(field) <= room) length += world.At(field).size;
  }
  if (world.Has(RESP(flags)) && world.End(RESP(flags)) <= room) {
    uint64_t flags =
        static_cast<uint64_t>(world.Flag(VABI_C(MLX5_IB_QUERY_DEV_RESP_FLAGS_SCAT2CQE_DCT)));
    if (kCaps.cqe_128_always)
      flags |= static_cast<uint64_t>(world.Flag(VABI_C(MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD)));
    reply.Set(RESP(flags), flags);
  }
  if (world.Has(RESP(dci_streams_caps)) && world.End(RESP(dci_streams_caps)) <= room) {
    const Body streams = reply.Sub(RESP(dci_streams_caps));
    streams.Set(VABI_F(mlx5_ib_dci_streams_caps, max_log_num_concurent),
                static_cast<uint64_t>(kCaps.log_max_dci_stream_channels));
    streams.Set(VABI_F(mlx5_ib_dci_streams_caps, max_log_num_errored),
                static_cast<uint64_t>(kCaps.log_max_dci_errored_streams));
  }
  reply.Set(RESP(response_length), length);
  static_cast<void>(device);
  if (room == 0) return 0;
  const bool zeroes = world.Knob(KnobId::mlx5_respond_zeroes) != 0;
  return Respond(call, reply.base(), zeroes ? reply.length() : std::min(length, reply.length()),
                 OldRespond::kWhole);
}

// This card's firmware tells no max_tx_speed of its vport, so that Ethernet ports are told by their
// attributes as InfiniBand ports are (mlx5_ib_query_port_speed_from_port).
int Mlx5Driver::QueryPortSpeed(Call& call, uint32_t port, uint64_t* speed) {
  constexpr uint8_t kPortDown = 1;  // IB_PORT_DOWN
  const Device& device = call.file.device();
  const PortImage& image = device.port(port);
  const int lanes = PortLanes(image.active_width);
  if (lanes < 0) return call.Unmodelled("mlx5: the speed of a port without a width");
  const bool down = device.PortState(port) == kPortDown;
  *speed = down ? 0 : static_cast<uint64_t>(FindPortSpeed(image.active_speed).tenths * lanes);
  return 0;
}

}  // namespace vabi::mlx5
