// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_IRDMA_DRIVER_H_
#define VABI_SHIMS_PROVIDERS_IRDMA_DRIVER_H_

#include "shims/providers/common/limited.h"
#include "shims/providers/irdma/ids.h"
#include "shims/providers/irdma/state.h"
#include "shims/uverbs/driver.h"

// irdma, from its source (drivers/infiniband/hw/irdma): the control path of an E810 over RoCE, and
// as far as contexts go of an X722. Queues are taken and kept, nothing that is posted to them is
// looked at.

namespace vabi::irdma {

class IrdmaDriver : public DriverBase {
 public:
  static constexpr provider::FullRules kFull = {.pd = rule::pd_full,
                                                .mr = rule::mr_full,
                                                .mw = rule::mw_full,
                                                .cq = rule::cq_full,
                                                .qp = rule::qp_full,
                                                .srq = {},
                                                .ah = rule::ah_full};

  DriverId id() const override { return DriverId::irdma; }
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
  int DeregMr(Call& call, Mr& mr) override;
  int AllocMw(Call& call, Mw& mw) override;

  bool ReadsCqBuffer(const Device&) const override { return false; }
  int CreateCq(Call& call, Cq& cq) override;
  int ResizeCq(Call& call, Cq& cq, uint32_t cqe) override;
  void DestroyCq(Cq& cq) override;

  int CreateQp(Call& call, Qp& qp) override;
  int ModifyQp(Call& call, Qp& qp, vabi::QpState next, const QpAttributes& attr,
               uint32_t mask) override;
  bool ChecksTransition(const World& world, const Qp& qp, uint32_t mask) const override;
  vabi::QpState StateAfter(const Qp& qp, vabi::QpState next, uint32_t mask) const override;
  int QueryQp(Call& call, Qp& qp) override;
  int DestroyQp(Call& call, Qp& qp) override;
  int CreateAh(Call& call, Ah& ah) override;
  int AttachMcast(Call& call, Qp& qp, const uint8_t* gid, uint16_t lid, bool attach) override;
};

// IRDMA_MAX_WQ_FRAGMENT_COUNT and others of defs.h and user.h; ICRDMA_* of icrdma_hw.h
inline constexpr uint32_t kMaxFragments = 13, kMaxReadSges = 13, kMaxInline = 101,
                          kMaxQuanta = 32768, kMaxQuantaPerWr = 8, kMaxCqSize = 1048575,
                          kMinCqSize = 1, kMinWqSize = 8, kSqReserved = 258, kRqReserved = 1,
                          kMaxPds = 262144, kMaxIrd = 127, kMaxOrd = 255, kMaxQps = 65536;
inline constexpr uint64_t kMaxMrSize = 0x200000000000ULL;
inline constexpr uint8_t kAbi = 5, kOldestAbi = 4;  // IRDMA_ABI_VER

// hw_rev: 1 of an X722, 2 of an E810
uint8_t Generation(const Device& device);
ContextState& ContextOf(UverbsFile& file);
// The private reply: cut to the caller's buffer, since 7.2 with the rest of it zeroed.
int Reply(Call& call, const Body& body, RuleId fault);
// ib_is_udata_in_empty, in kernels that ask.
int NoInput(Call& call);

}  // namespace vabi::irdma

#endif  // VABI_SHIMS_PROVIDERS_IRDMA_DRIVER_H_
