// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_SIW_DRIVER_H_
#define VABI_SHIMS_PROVIDERS_SIW_DRIVER_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "shims/providers/common/limited.h"
#include "shims/providers/common/map_entries.h"
#include "shims/providers/common/udata.h"
#include "shims/providers/siw/ids.h"
#include "shims/uverbs/driver.h"

// The kernel's siw driver (siw_main.c: siw_device_ops), as far as commands go. Queues can be
// mapped; nobody carries out what is put there, and nothing can be: a queue pair comes to RTS only
// through the connection manager.

namespace vabi {

std::unique_ptr<Driver> MakeSiwDriver();

namespace siw {

class SiwDriver : public DriverBase {
 public:
  static constexpr provider::FullRules kFull = {.pd = rule::pd_full,
                                                .mr = rule::mr_full,
                                                .mw = {},
                                                .cq = rule::cq_full,
                                                .qp = rule::qp_full,
                                                .srq = rule::srq_full,
                                                .ah = {}};
  // siw_reg_user_mr
  static constexpr bool kCountsRegionsFirst = true;
  // SIW_MAX_CONTEXT
  static constexpr uint32_t kMaxContexts = 1024 * 100;
  explicit SiwDriver(uint32_t max_contexts = kMaxContexts) : max_contexts_(max_contexts) {}

  DriverId id() const override { return DriverId::siw; }
  bool Offers(Op op) const override;
  void Describe(const Device& device, DeviceAttributes* out) const override;
  uint32_t CompVectors(const Device& device) const override;
  int QueryDevice(Call& call, Device& device) override;

  int AllocContext(Call& call, Context& context) override;
  void DeallocContext(Context& context) override;
  int Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) override;

  int AllocPd(Call& call, Pd& pd) override;
  int RegMr(Call& call, Mr& mr) override;
  int DeregMr(Call& call, Mr& mr) override;

  static int BeforeRoom(Call& call, const Cq& cq);
  static int BeforeRoom(Call& call, const Qp& qp);
  static int BeforeRoom(Call& call, const Srq& srq);
  int CreateCq(Call& call, Cq& cq) override;
  void DestroyCq(Cq& cq) override;
  int PollCq(Call& call, Cq& cq) override;
  int ReqNotifyCq(Call& call, Cq& cq, bool solicited_only) override;

  int CreateQp(Call& call, Qp& qp) override;
  int ModifyQp(Call& call, Qp& qp, QpState next, const QpAttributes& attr, uint32_t mask) override;
  bool ChecksTransition(const World&, const Qp&, uint32_t) const override { return false; }
  QpState StateAfter(const Qp& qp, QpState next, uint32_t mask) const override;
  int QueryQp(Call& call, Qp& qp) override;
  QpState CurrentState(const World&, const Qp&) const override { return QpState::kReset; }
  int DestroyQp(Call& call, Qp& qp) override;
  int PostSend(Call& call, Qp& qp, uint32_t count) override;
  int PostRecv(Call& call, Qp& qp, std::span<const fabric::RecvRequest> list,
               uint32_t* posted) override;

  int CreateSrq(Call& call, Srq& srq) override;
  int ModifySrq(Call& call, Srq& srq, uint32_t max_wr, uint32_t limit, uint32_t mask) override;
  int QuerySrq(Call& call, Srq& srq) override;
  void DestroySrq(Srq& srq) override;
  int PostSrqRecv(Call& call, Srq& srq, std::span<const fabric::RecvRequest> list,
                  uint32_t* posted) override;

 private:
  // siw_qp_add: the lowest free number, from 1 on, of all files of the device.
  uint32_t TakeQpNumber();
  void GiveQpNumber(uint32_t number);

  const uint32_t max_contexts_;
  std::atomic<uint32_t> contexts_{0};
  std::mutex qp_mutex_;
  std::vector<bool> qp_numbers_;  // taken; the first stands for 1
};

// struct siw_ucontext
struct ContextState final : DriverState {
  provider::MapEntries entries;
  uint32_t next_key = 0;  // knob siw.keys.cyclic
};

// The places of one object's queues.
struct QueueState final : DriverState {
  ContextState* context = nullptr;
  uint64_t offsets[2] = {kNone, kNone};  // in bytes; of a queue pair: send, receive
  uint32_t depth[2] = {};                // elements
  static constexpr uint64_t kNone = UINT64_MAX;
  void Forget() {
    for (const uint64_t offset : offsets) {
      if (offset != kNone) context->entries.Remove(offset);
    }
  }
};

// siw_mmap_entry_insert: the queue's place, in bytes.
uint64_t AddPlace(Call& call, uint64_t length, const char* kind);
inline ContextState& StateOf(Context& context) {
  return *static_cast<ContextState*>(context.driver.get());
}
// ib_copy_to_udata, or what 7.2 made of it. The room was looked at before.
int Reply(Call& call, const Body& reply);

}  // namespace siw
}  // namespace vabi

#endif  // VABI_SHIMS_PROVIDERS_SIW_DRIVER_H_
