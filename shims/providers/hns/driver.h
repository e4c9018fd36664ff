// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_HNS_DRIVER_H_
#define VABI_SHIMS_PROVIDERS_HNS_DRIVER_H_

#include <memory>

#include "shims/providers/common/limited.h"
#include "shims/providers/common/udata.h"
#include "shims/providers/hns/ids.h"
#include "shims/uverbs/driver.h"

// The kernel's hns driver (hns_roce_main.c: hns_roce_dev_ops, hns_roce_hw_v2.c) with a HIP08, as
// far as commands go: what is put into queues stays there.

namespace vabi {

std::unique_ptr<Driver> MakeHnsDriver();

namespace hns {

class HnsDriver : public DriverBase {
 public:
  static constexpr provider::FullRules kFull = {.pd = rule::pd_full,
                                                .mr = rule::mr_full,
                                                .mw = rule::mw_full,
                                                .cq = rule::cq_full,
                                                .qp = rule::qp_full,
                                                .srq = rule::srq_full,
                                                .ah = {}};

  DriverId id() const override { return DriverId::hns; }
  bool Offers(Op op) const override;
  void Describe(const Device& device, DeviceAttributes* out) const override;
  uint32_t CompVectors(const Device&) const override { return 2; }
  int QueryDevice(Call& call, Device& device) override;

  int AllocContext(Call& call, Context& context) override;
  int Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) override;

  int AllocPd(Call& call, Pd& pd) override;
  int RegMr(Call& call, Mr& mr) override;
  int ReregMr(Call& call, Mr& mr, uint32_t flags, uint64_t start, uint64_t length, uint64_t iova,
              uint32_t access, Pd* pd) override;
  int DeregMr(Call&, Mr&) override { return 0; }
  int AllocMw(Call& call, Mw& mw) override;

  int CreateCq(Call& call, Cq& cq) override;
  int ModifyCq(Call&, Cq&, uint16_t, uint16_t) override { return 0; }

  int CreateQp(Call& call, Qp& qp) override;
  int ModifyQp(Call& call, Qp& qp, QpState next, const QpAttributes& attr, uint32_t mask) override;
  bool ChecksTransition(const World&, const Qp&, uint32_t) const override { return false; }
  int QueryQp(Call& call, Qp& qp) override;
  int DestroyQp(Call&, Qp&) override { return 0; }

  int CreateSrq(Call& call, Srq& srq) override;
  int ModifySrq(Call& call, Srq& srq, uint32_t max_wr, uint32_t limit, uint32_t mask) override;
  int QuerySrq(Call& call, Srq& srq) override;
  int CreateAh(Call& call, Ah& ah) override;
};

// One command's rules of its request's length.
struct RequestLengths {
  FieldId last;  // of the first version
  RuleId too_short, tail;
};
int ReadRequest(Call& call, const Body& body, const RequestLengths& lengths);
int Reply(Call& call, const Body& reply);
// One that older kernels give whole.
int ReplyWhole(Call& call, const Body& reply);
// The number of a PD or a CQ in 64 bits, whatever the room: 4.16 has no structure for it.
int ReplyNumber(Call& call, uint32_t number);
// hns_roce_mtr_create of a program's memory.
int PinBuffer(Call& call, uint64_t address, uint64_t bytes, bool writable = false);
// hns_roce_db_map_user
int PinRecord(Call& call, uint64_t address);

}  // namespace hns
}  // namespace vabi

#endif  // VABI_SHIMS_PROVIDERS_HNS_DRIVER_H_
