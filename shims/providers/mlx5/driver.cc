// SPDX-License-Identifier: BSD-2-Clause
#include "shims/providers/mlx5/driver.h"

#include <vector>

#include "shims/providers/mlx5/capabilities.h"

namespace vabi {
namespace mlx5 {

// mlx5_ib_dev_ops and the tables that stage_init adds by capability; the others are for the kernel
// alone.
bool Mlx5Driver::Offers(Op op) const {
  switch (op) {
    case Op::create_wq:
    case Op::modify_wq:
    case Op::destroy_wq:
    case Op::create_rwq_ind_table:
    case Op::destroy_rwq_ind_table:
      return link_ == LinkLayer::kEthernet;  // mlx5_ib_dev_common_roce_ops
    case Op::alloc_mw:
    case Op::dealloc_mw:
      return kCaps.imaicl;
    case Op::alloc_xrcd:
    case Op::dealloc_xrcd:
    case Op::create_xrc_srq:
    case Op::xrc_tgt_qp:
      return kCaps.xrc;
    case Op::alloc_dm:
    case Op::dealloc_dm:
    case Op::reg_dm_mr:
      return kCaps.memic_size != 0;
    case Op::alloc_dmah:  // needs steering tags of the PCI device
    case Op::dealloc_dmah:
    case Op::create_comp_cntr:
    case Op::bind_mw:
    case Op::poll_cq:
    case Op::peek_cq:
    case Op::req_notify_cq:
    case Op::post_send:
    case Op::post_recv:
    case Op::post_srq_recv:
    case Op::query_ah:
    case Op::modify_ah:
      return false;
    default:
      return true;
  }
}

std::span<const MethodSpec> Mlx5Driver::PrivateMethods() const {
  static const auto* const methods = [] {
    auto* all = new std::vector<MethodSpec>();
    for (const auto part :
         {UarMethods(), DevxMethods(), StdMethods(), DeviceMemoryMethods(), FlowMethods()}) {
      all->insert(all->end(), part.begin(), part.end());
    }
    return all;
  }();
  return *methods;
}

int Mlx5Driver::AllocXrcd(Call&, XrcDomain&) { return 0; }

}  // namespace mlx5

std::unique_ptr<Driver> MakeMlx5Driver() { return std::make_unique<mlx5::Mlx5Driver>(); }

}  // namespace vabi
