// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_BNXT_RE_DRIVER_H_
#define VABI_SHIMS_PROVIDERS_BNXT_RE_DRIVER_H_

#include "shims/providers/bnxt_re/ids.h"
#include "shims/uverbs/driver.h"

// bnxt_re, from its source (drivers/infiniband/hw/bnxt_re): contexts, protection domains and what
// they let a library map. Queues are not modelled.

namespace vabi::bnxt_re {

class BnxtReDriver final : public DriverBase {
 public:
  DriverId id() const override { return DriverId::bnxt_re; }
  bool Offers(Op op) const override;
  void Describe(const Device& device, DeviceAttributes* out) const override;
  int QueryDevice(Call& call, Device& device) override;

  int AllocContext(Call& call, Context& context) override;
  int Map(Call& call, Context& context, uint64_t offset, uint64_t length, int protection,
          MapReply* reply) override;
  int AllocPd(Call& call, Pd& pd) override;
  void DeallocPd(Pd& pd) override;

  int RegMr(Call& call, Mr& mr) override;
  int DeregMr(Call& call, Mr& mr) override;
  int CreateCq(Call& call, Cq& cq) override;
  int CreateQp(Call& call, Qp& qp) override;
  int ModifyQp(Call& call, Qp& qp, QpState next, const QpAttributes& attr, uint32_t mask) override;
  int QueryQp(Call& call, Qp& qp) override;
  int DestroyQp(Call& call, Qp& qp) override;
};

}  // namespace vabi::bnxt_re

#endif  // VABI_SHIMS_PROVIDERS_BNXT_RE_DRIVER_H_
