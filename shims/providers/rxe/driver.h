// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_RXE_DRIVER_H_
#define VABI_SHIMS_PROVIDERS_RXE_DRIVER_H_

#include <memory>

#include "shims/providers/rxe/device.h"
#include "shims/uverbs/driver.h"

// The kernel's rdma_rxe driver (rxe_verbs.c: rxe_dev_ops). One for each device.

namespace vabi {

std::unique_ptr<Driver> MakeRxeDriver();

}  // namespace vabi

namespace vabi::rxe {

class RxeDriver : public DriverBase {
 public:
  DriverId id() const override { return DriverId::rxe; }
  bool Offers(Op op) const override;
  void Describe(const Device& device, DeviceAttributes* out) const override;
  void DescribePort(const Device& device, uint32_t port, PortAttributes* out) const override;
  uint32_t CompVectors(const Device& device) const override;
  int QueryDevice(Call& call, Device& device) override;

  int AllocContext(Call& call, Context& context) override;
  int Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) override;

  int AllocPd(Call& call, Pd& pd) override;
  int RegMr(Call& call, Mr& mr) override;
  int ReregMr(Call& call, Mr& mr, uint32_t flags, uint64_t start, uint64_t length, uint64_t iova,
              uint32_t access, Pd* pd) override;
  int DeregMr(Call& call, Mr& mr) override;
  int AllocMw(Call& call, Mw& mw) override;
  void DeallocMw(Mw& mw) override;
  int AdviseMr(Call& call, Pd& pd, uint32_t advice, uint32_t flags,
               std::span<const fabric::Sge> list) override;

  // It has no create_user_cq, so that CQ_CREATE looks at no buffer
  // (core/uverbs_std_types_cq.c, 7.2); 6.17 and 6.18, of which there is no model, refuse one.
  bool ReadsCqBuffer(const Device&) const override { return false; }
  int CreateCq(Call& call, Cq& cq) override;
  int ResizeCq(Call& call, Cq& cq, uint32_t cqe) override;
  void DestroyCq(Cq& cq) override;
  int ReqNotifyCq(Call& call, Cq& cq, bool solicited_only) override;
  int PollCq(Call& call, Cq& cq) override;

  int CreateQp(Call& call, Qp& qp) override;
  int ModifyQp(Call& call, Qp& qp, QpState next, const QpAttributes& attr, uint32_t mask) override;
  bool ChecksTransition(const World& world, const Qp& qp, uint32_t mask) const override;
  QpState StateAfter(const Qp& qp, QpState next, uint32_t mask) const override;
  int QueryQp(Call& call, Qp& qp) override;
  QpState CurrentState(const World& world, const Qp& qp) const override;
  int DestroyQp(Call& call, Qp& qp) override;
  int PostSend(Call& call, Qp& qp, uint32_t count) override;
  int PostRecv(Call& call, Qp& qp, std::span<const fabric::RecvRequest> list,
               uint32_t* posted) override;
  int PostSrqRecv(Call& call, Srq& srq, std::span<const fabric::RecvRequest> list,
                  uint32_t* posted) override;
  int AttachMcast(Call& call, Qp& qp, const uint8_t* gid, uint16_t lid, bool attach) override;

  int CreateSrq(Call& call, Srq& srq) override;
  int ModifySrq(Call& call, Srq& srq, uint32_t max_wr, uint32_t limit, uint32_t mask) override;
  int QuerySrq(Call& call, Srq& srq) override;
  void DestroySrq(Srq& srq) override;

  int CreateAh(Call& call, Ah& ah) override;
  void DestroyAh(Ah& ah) override;

 private:
  RxeDevice& Of(const Device& device);
  int CheckCapabilities(Call& call, const QpCapabilities& cap, bool has_srq) const;
  int CheckAttributes(Call& call, const Qp& qp, const QpAttributes& attr, uint32_t mask) const;
  int CheckRange(Call& call, uint64_t start, uint64_t length, uint32_t access) const;
  int PostReceives(Call& call, Queue& queue, uint32_t max_sge,
                   std::span<const fabric::RecvRequest> list, uint32_t* posted) const;

  std::unique_ptr<RxeDevice> rxe_;
  uint32_t posts_ = 0;
};

// Bytes of a queue's place in a reply (struct mminfo) at `offset`. 0, or the rule's refusal.
int TellPlace(Call& call, const Queue& queue, size_t offset);
// The alignment of queues' places: SHMLBA, or before 4.14 just the page.
uint64_t PlaceAlignment(const World& world);

}  // namespace vabi::rxe

#endif  // VABI_SHIMS_PROVIDERS_RXE_DRIVER_H_
