// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_BNXT_RE_DRIVER_H_
#define VABI_SHIMS_PROVIDERS_BNXT_RE_DRIVER_H_

#include "shims/providers/bnxt_re/ids.h"
#include "shims/providers/bnxt_re/state.h"
#include "shims/providers/common/limited.h"
#include "shims/providers/common/udata.h"
#include "shims/uverbs/driver.h"

// bnxt_re, from its source (drivers/infiniband/hw/bnxt_re): its control path. Queues are taken and
// kept, nothing that stands in them is looked at.

namespace vabi::bnxt_re {

class BnxtReDriver : public DriverBase {
 public:
  static constexpr provider::FullRules kFull = {.pd = rule::pd_full,
                                                .mr = rule::mr_full,
                                                .mw = {},
                                                .cq = rule::cq_full,
                                                .qp = rule::qp_full,
                                                .srq = rule::srq_full,
                                                .ah = rule::ah_full};

  DriverId id() const override { return DriverId::bnxt_re; }
  bool Offers(Op op) const override;
  std::span<const MethodSpec> PrivateMethods() const override;
  int DestroyPrivate(Call& call, Object& object) override;
  void Describe(const Device& device, DeviceAttributes* out) const override;
  int QueryDevice(Call& call, Device& device) override;

  int AllocContext(Call& call, Context& context) override;
  int Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) override;
  int AllocPd(Call& call, Pd& pd) override;
  void DeallocPd(Pd& pd) override;

  int RegMr(Call& call, Mr& mr) override;
  int DeregMr(Call& call, Mr& mr) override;
  int CreateAh(Call& call, Ah& ah) override;

  int CreateCq(Call& call, Cq& cq) override;
  int ResizeCq(Call& call, Cq& cq, uint32_t cqe) override;
  int PollCq(Call& call, Cq& cq) override;
  int CreateSrq(Call& call, Srq& srq) override;
  int ModifySrq(Call& call, Srq& srq, uint32_t max_wr, uint32_t limit, uint32_t mask) override;
  int QuerySrq(Call& call, Srq& srq) override;

  int CreateQp(Call& call, Qp& qp) override;
  bool ChecksTransition(const World&, const Qp&, uint32_t) const override { return false; }
  int ModifyQp(Call& call, Qp& qp, vabi::QpState next, const QpAttributes& attr,
               uint32_t mask) override;
  int QueryQp(Call& call, Qp& qp) override;
  vabi::QpState CurrentState(const World& world, const Qp& qp) const override;
  int DestroyQp(Call& call, Qp& qp) override;
};

// Helpers of several subjects (memory.cc).

// How a reply is given, by one of this driver's knobs.
provider::How HowOf(Call& call, KnobId id);
// ib_no_udata_io, in kernels that look.
int NoInput(Call& call);
// The private request of one command; a shorter one than `minimum` is too short.
int ReadRequest(Call& call, const Body& body, size_t minimum);
int Reply(Call& call, const Body& body, KnobId how);
// ib_umem_get of a ring; `pages`: whole ones must begin there (bnxt_re_setup_sginfo).
int PinRing(Call& call, uint64_t address, uint64_t bytes, bool pages);
// The doorbell region that CREATE_QP names, or null (methods.cc).
Object* RegionOf(Call& call);

}  // namespace vabi::bnxt_re

#endif  // VABI_SHIMS_PROVIDERS_BNXT_RE_DRIVER_H_
