// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_UNMODELLED_DRIVER_H_
#define VABI_SHIMS_UVERBS_UNMODELLED_DRIVER_H_

#include "shims/uverbs/driver.h"

// A kernel driver whose devices can be found and negotiated with, no more: opening one answers
// unmodelled, by the driver's name. Discovery needs nothing of a driver: netlink and sysfs tell
// what stands in the world.

namespace vabi {

class UnmodelledDriver : public DriverBase {
 public:
  explicit UnmodelledDriver(DriverId id) : id_(id) {}

  DriverId id() const override { return id_; }
  // Before a context is there the core asks for operations only to number its commands.
  bool Offers(Op) const override { return true; }
  void Describe(const Device&, DeviceAttributes*) const override {}
  int AllocContext(Call& call, Context&) override;
  // None of these is reached: each needs a context.
  int Map(Call& call, Context&, const MapRequest&, MapReply*) override;
  int AllocPd(Call& call, Pd&) override;
  int RegMr(Call& call, Mr&) override;
  int DeregMr(Call& call, Mr&) override;
  int CreateCq(Call& call, Cq&) override;
  int CreateQp(Call& call, Qp&) override;
  int ModifyQp(Call& call, Qp&, QpState, const QpAttributes&, uint32_t) override;
  int QueryQp(Call& call, Qp&) override;
  int DestroyQp(Call& call, Qp&) override;

 private:
  const DriverId id_;
};

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_UNMODELLED_DRIVER_H_
