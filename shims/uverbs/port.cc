// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/port.h"

#include <algorithm>

namespace vabi {
namespace {

// IB_SPEED_NDR: more does not fit into the eight bits of this reply (since 5.17; before, none was
// faster).
constexpr uint16_t kSpeedNdr = 128;

}  // namespace

void FillPort(const Device& device, uint32_t port, const Body& to) {
  const PortImage& image = device.port(port);
  PortAttributes more;
  device.driver().DescribePort(device, port, &more);
  to.Set(VABI_F(ib_uverbs_query_port_resp, port_cap_flags), image.cap_flags);
  to.Set(VABI_F(ib_uverbs_query_port_resp, max_msg_sz), image.max_msg_size);
  to.Set(VABI_F(ib_uverbs_query_port_resp, bad_pkey_cntr), more.bad_pkey_cntr);
  to.Set(VABI_F(ib_uverbs_query_port_resp, qkey_viol_cntr), more.qkey_viol_cntr);
  to.Set(VABI_F(ib_uverbs_query_port_resp, gid_tbl_len), image.gid_table_length);
  to.Set(VABI_F(ib_uverbs_query_port_resp, pkey_tbl_len), image.pkey_count);
  to.Set(VABI_F(ib_uverbs_query_port_resp, lid), image.lid);
  to.Set(VABI_F(ib_uverbs_query_port_resp, sm_lid), image.sm_lid);
  to.Set(VABI_F(ib_uverbs_query_port_resp, state), device.PortState(port));
  to.Set(VABI_F(ib_uverbs_query_port_resp, max_mtu), image.max_mtu);
  to.Set(VABI_F(ib_uverbs_query_port_resp, active_mtu), image.active_mtu);
  to.Set(VABI_F(ib_uverbs_query_port_resp, lmc), image.lmc);
  to.Set(VABI_F(ib_uverbs_query_port_resp, max_vl_num), more.max_vl_num);
  to.Set(VABI_F(ib_uverbs_query_port_resp, sm_sl), image.sm_sl);
  to.Set(VABI_F(ib_uverbs_query_port_resp, subnet_timeout), more.subnet_timeout);
  to.Set(VABI_F(ib_uverbs_query_port_resp, init_type_reply), more.init_type_reply);
  to.Set(VABI_F(ib_uverbs_query_port_resp, active_width), image.active_width);
  to.Set(VABI_F(ib_uverbs_query_port_resp, active_speed), std::min(image.active_speed, kSpeedNdr));
  to.Set(VABI_F(ib_uverbs_query_port_resp, phys_state), device.PortPhysState(port));
  // rdma_port_get_link_layer: enum rdma_link_layer
  to.Set(VABI_F(ib_uverbs_query_port_resp, link_layer), static_cast<uint64_t>(device.image().link));
  if (more.grh_required || device.IsRoce()) {  // rdma_is_grh_required
    to.Set(VABI_F(ib_uverbs_query_port_resp, flags),
           static_cast<uint64_t>(device.world().Flag(VABI_C(IB_UVERBS_QPF_GRH_REQUIRED))));
  }
}

bool FindGid(const Device& device, uint32_t port, uint32_t index, GidEntry* out) {
  const PortImage& image = device.port(port);
  if (index >= image.gid_count || index >= std::size(image.gids)) return false;
  const auto& gid = image.gids[index];
  static constexpr uint8_t kZero[16] = {};
  if (std::equal(kZero, kZero + 16, gid.raw)) return false;
  *out = {gid.raw, gid.type, gid.ndev_ifindex};
  return true;
}

}  // namespace vabi
