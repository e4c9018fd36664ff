// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_ERDMA_DRIVER_H_
#define VABI_SHIMS_PROVIDERS_ERDMA_DRIVER_H_

#include <memory>

#include "shims/providers/common/limited.h"
#include "shims/providers/common/map_entries.h"
#include "shims/providers/common/udata.h"
#include "shims/providers/erdma/ids.h"
#include "shims/uverbs/driver.h"

// The kernel's erdma driver (erdma_main.c: erdma_device_ops) with a card that speaks iWARP, as far
// as commands go. What is put into queues stays there: a queue pair comes to RTS only through the
// connection manager.

namespace vabi {

std::unique_ptr<Driver> MakeErdmaDriver();

namespace erdma {

class ErdmaDriver : public DriverBase {
 public:
  static constexpr provider::FullRules kFull = {.pd = rule::pd_full,
                                                .mr = rule::mr_full,
                                                .mw = {},
                                                .cq = rule::cq_full,
                                                .qp = rule::qp_full,
                                                .srq = {},
                                                .ah = {}};

  DriverId id() const override { return DriverId::erdma; }
  bool Offers(Op op) const override;
  void Describe(const Device& device, DeviceAttributes* out) const override;
  uint32_t CompVectors(const Device&) const override { return 2; }
  int QueryDevice(Call& call, Device& device) override;

  int AllocContext(Call& call, Context& context) override;
  int Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) override;

  int AllocPd(Call&, Pd&) override { return 0; }
  int RegMr(Call& call, Mr& mr) override;
  int DeregMr(Call&, Mr&) override { return 0; }

  int CreateCq(Call& call, Cq& cq) override;

  int CreateQp(Call& call, Qp& qp) override;
  int ModifyQp(Call& call, Qp& qp, QpState next, const QpAttributes& attr, uint32_t mask) override;
  bool ChecksTransition(const World&, const Qp&, uint32_t) const override { return false; }
  QpState StateAfter(const Qp& qp, QpState next, uint32_t mask) const override;
  int QueryQp(Call& call, Qp& qp) override;
  int DestroyQp(Call&, Qp&) override { return 0; }
};

}  // namespace erdma
}  // namespace vabi

#endif  // VABI_SHIMS_PROVIDERS_ERDMA_DRIVER_H_
