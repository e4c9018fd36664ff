// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX4_DRIVER_H_
#define VABI_SHIMS_PROVIDERS_MLX4_DRIVER_H_

#include "shims/providers/common/limited.h"
#include "shims/providers/mlx4/ids.h"
#include "shims/providers/mlx4/state.h"
#include "shims/uverbs/driver.h"

// mlx4_ib, from its source (drivers/infiniband/hw/mlx4): its control path. Queues are taken and
// kept, nothing that is posted to them is looked at.

namespace vabi::mlx4 {

class Mlx4Driver : public DriverBase {
 public:
  static constexpr provider::FullRules kFull = {.pd = rule::pd_full,
                                                .mr = rule::mr_full,
                                                .mw = rule::mw_full,
                                                .cq = rule::cq_full,
                                                .qp = rule::qp_full,
                                                .srq = rule::srq_full,
                                                .ah = {}};

  DriverId id() const override { return DriverId::mlx4; }
  bool Offers(Op op) const override;
  void Describe(const Device& device, DeviceAttributes* out) const override;
  void DescribePort(const Device& device, uint32_t port, PortAttributes* out) const override;
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
  int AllocXrcd(Call& call, XrcDomain& domain) override;

  int CreateCq(Call& call, Cq& cq) override;
  int ResizeCq(Call& call, Cq& cq, uint32_t cqe) override;
  int ModifyCq(Call& call, Cq& cq, uint16_t count, uint16_t period) override;

  int CreateQp(Call& call, Qp& qp) override;
  int ModifyQp(Call& call, Qp& qp, vabi::QpState next, const QpAttributes& attr,
               uint32_t mask) override;
  bool ChecksTransition(const World& world, const Qp& qp, uint32_t mask) const override;
  int QueryQp(Call& call, Qp& qp) override;
  int DestroyQp(Call& call, Qp& qp) override;
  int CreateSrq(Call& call, Srq& srq) override;
  int ModifySrq(Call& call, Srq& srq, uint32_t max_wr, uint32_t limit, uint32_t mask) override;
  int QuerySrq(Call& call, Srq& srq) override;
  int AttachMcast(Call& call, Qp& qp, const uint8_t* gid, uint16_t lid, bool attach) override;

 private:
  mutable LinkLayer link_ = LinkLayer::kInfiniband;  // of the device; known once it is described
};

// Helpers of several subjects (memory.cc).

// The whole private request of one command: `size` bytes.
int ReadRequest(Call& call, const Body& body);
// The private reply; before 7.2 only its first `told` bytes were copied.
int Reply(Call& call, const Body& body, size_t told);
// ib_umem_get
int Pin(Call& call, uint64_t address, uint64_t size, uint32_t access);
// mlx4_ib_db_map_user: the page with a doorbell record
int PinDoorbell(Call& call, uint64_t address);
// mlx4's hw_index_to_key of the next index
uint32_t NextKey(Device& device);
inline uint32_t RoundUpPowerOfTwo(uint32_t value) {
  uint32_t power = 1;
  while (power < value) power *= 2;
  return power;
}

}  // namespace vabi::mlx4

#endif  // VABI_SHIMS_PROVIDERS_MLX4_DRIVER_H_
