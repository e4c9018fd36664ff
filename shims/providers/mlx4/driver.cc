// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx4/driver.h"

namespace vabi {
namespace mlx4 {

// mlx4_ib_dev_ops and what mlx4_ib_probe adds by capability; the others are for the kernel alone.
// This card steers no flows (MLX4_STEERING_MODE_DEVICE_MANAGED is off).
bool Mlx4Driver::Offers(Op op) const {
  switch (op) {
    case Op::create_wq:  // mlx4_ib_dev_wq_ops
    case Op::modify_wq:
    case Op::destroy_wq:
    case Op::create_rwq_ind_table:
    case Op::destroy_rwq_ind_table:
      return link_ == LinkLayer::kEthernet;
    case Op::alloc_ucontext:
    case Op::dealloc_ucontext:
    case Op::disassociate_ucontext:
    case Op::mmap:
    case Op::alloc_pd:
    case Op::dealloc_pd:
    case Op::destroy_ah:  // there is a create_ah, but none of a program's
    case Op::reg_user_mr:
    case Op::rereg_user_mr:
    case Op::dereg_mr:
    case Op::alloc_mw:
    case Op::dealloc_mw:
    case Op::create_cq:
    case Op::destroy_cq:
    case Op::resize_cq:
    case Op::modify_cq:
    case Op::create_qp:
    case Op::query_qp:
    case Op::modify_qp:
    case Op::destroy_qp:
    case Op::attach_mcast:
    case Op::detach_mcast:
    case Op::create_srq:
    case Op::modify_srq:
    case Op::query_srq:
    case Op::destroy_srq:
    case Op::alloc_xrcd:
    case Op::dealloc_xrcd:
    case Op::create_xrc_srq:
    case Op::xrc_tgt_qp:
    case Op::query_device:
    case Op::query_port:
    case Op::query_gid:
    case Op::query_pkey:
    case Op::process_mad:
    case Op::get_netdev:
    case Op::query_device_ex:
    case Op::create_cq_ex:
    case Op::create_qp_ex:
    case Op::modify_qp_ex:
      return true;
    default:
      return false;
  }
}

int Mlx4Driver::AllocXrcd(Call&, XrcDomain&) { return 0; }

int Mlx4Driver::AttachMcast(Call&, Qp&, const uint8_t*, uint16_t, bool) { return 0; }

}  // namespace mlx4

std::unique_ptr<Driver> MakeMlx4Driver() {
  return std::make_unique<provider::Limited<mlx4::Mlx4Driver>>();
}

}  // namespace vabi
