// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_VMW_PVRDMA_DRIVER_H_
#define VABI_SHIMS_PROVIDERS_VMW_PVRDMA_DRIVER_H_

#include "shims/providers/common/limited.h"
#include "shims/providers/vmw_pvrdma/ids.h"
#include "shims/providers/vmw_pvrdma/state.h"
#include "shims/uverbs/driver.h"

// vmw_pvrdma, from its source (drivers/infiniband/hw/vmw_pvrdma): its control path. Rings are taken
// and kept, nothing that stands in them is looked at.

namespace vabi::vmw_pvrdma {

class VmwPvrdmaDriver : public DriverBase {
 public:
  static constexpr provider::FullRules kFull = {.pd = rule::pd_full,
                                                .mr = {},
                                                .mw = {},
                                                .cq = rule::cq_full,
                                                .qp = rule::qp_full,
                                                .srq = rule::srq_full,
                                                .ah = rule::ah_full};

  DriverId id() const override { return DriverId::vmw_pvrdma; }
  bool Offers(Op op) const override;
  void Describe(const Device& device, DeviceAttributes* out) const override;
  int QueryDevice(Call& call, Device& device) override;

  int AllocContext(Call& call, Context& context) override;
  int Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) override;

  int AllocPd(Call& call, Pd& pd) override;
  int RegMr(Call& call, Mr& mr) override;
  int DeregMr(Call& call, Mr& mr) override;
  int CreateAh(Call& call, Ah& ah) override;

  int CreateCq(Call& call, Cq& cq) override;
  int ReqNotifyCq(Call& call, Cq& cq, bool solicited_only) override;
  int CreateSrq(Call& call, Srq& srq) override;
  int ModifySrq(Call& call, Srq& srq, uint32_t max_wr, uint32_t limit, uint32_t mask) override;
  int QuerySrq(Call& call, Srq& srq) override;

  int CreateQp(Call& call, Qp& qp) override;
  int ModifyQp(Call& call, Qp& qp, vabi::QpState next, const QpAttributes& attr,
               uint32_t mask) override;
  bool ChecksTransition(const World& world, const Qp& qp, uint32_t mask) const override;
  int QueryQp(Call& call, Qp& qp) override;
  int DestroyQp(Call& call, Qp& qp) override;
};

// Helpers of several subjects (memory.cc).

// The whole private request of one command.
int ReadRequest(Call& call, const Body& body);
// ib_umem_get, and what a page directory holds: adds to *pages.
int Pin(Call& call, uint64_t address, uint64_t size, uint32_t access, uint64_t* pages);
int CheckDirectory(Call& call, uint64_t pages);
// The private reply of an object; where it is `numbered`, old kernels told its first word alone.
int Reply(Call& call, const Body& body, bool numbered, RuleId fault);

}  // namespace vabi::vmw_pvrdma

#endif  // VABI_SHIMS_PROVIDERS_VMW_PVRDMA_DRIVER_H_
