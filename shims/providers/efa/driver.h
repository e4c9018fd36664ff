// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_EFA_DRIVER_H_
#define VABI_SHIMS_PROVIDERS_EFA_DRIVER_H_

#include <map>
#include <memory>
#include <vector>

#include "shims/providers/common/limited.h"
#include "shims/providers/common/map_entries.h"
#include "shims/providers/common/udata.h"
#include "shims/providers/efa/ids.h"
#include "shims/uverbs/driver.h"

// The kernel's efa driver (efa_main.c: efa_dev_ops), as far as commands go: what is put into queues
// stays there.

namespace vabi {

std::unique_ptr<Driver> MakeEfaDriver();

namespace efa {

class EfaDriver : public DriverBase {
 public:
  static constexpr provider::FullRules kFull = {.pd = rule::pd_full,
                                                .mr = rule::mr_full,
                                                .mw = {},
                                                .cq = rule::cq_full,
                                                .qp = rule::qp_full,
                                                .srq = {},
                                                .ah = rule::ah_full};

  DriverId id() const override { return DriverId::efa; }
  bool Offers(Op op) const override;
  std::span<const MethodSpec> PrivateMethods() const override;
  void Describe(const Device& device, DeviceAttributes* out) const override;
  void DescribePort(const Device&, uint32_t, PortAttributes* out) const override {
    out->max_vl_num = 1;
  }
  uint32_t CompVectors(const Device& device) const override;
  int QueryDevice(Call& call, Device& device) override;
  int QueryPortSpeed(Call& call, uint32_t port, uint64_t* speed) override;
  int QueryCompletionCounters(Call& call, CompletionCounters* limits) override;

  int AllocContext(Call& call, Context& context) override;
  int Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) override;

  int AllocPd(Call& call, Pd& pd) override;
  int RegMr(Call& call, Mr& mr) override;
  int DeregMr(Call&, Mr&) override { return 0; }

  int CreateCq(Call& call, Cq& cq) override;
  void DestroyCq(Cq& cq) override;

  int CreateQp(Call& call, Qp& qp) override;
  int ModifyQp(Call& call, Qp& qp, QpState next, const QpAttributes& attr, uint32_t mask) override;
  bool ChecksTransition(const World&, const Qp&, uint32_t) const override { return false; }
  int CheckQuery(Call& call, const Qp& qp, uint32_t mask) override;
  int QueryQp(Call& call, Qp& qp) override;
  QpState CurrentState(const World&, const Qp&) const override { return QpState::kReset; }
  int DestroyQp(Call& call, Qp& qp) override;

  int CreateAh(Call& call, Ah& ah) override;
};

// struct efa_ucontext
struct ContextState final : DriverState {
  // The offset in bytes of a place of that length. `how`: EFA_MMAP_DMA_PAGE, _IO_WC, _IO_NC.
  enum How : uint32_t { kPages, kWriteCombining, kUncached };
  uint64_t Insert(const World& world, uint64_t length, const char* kind, How how);
  void Remove(uint64_t offset);

  provider::MapEntries entries;
  // Up to 5.4 (knob efa.mmap.entries): by key.
  std::map<uint64_t, provider::MapEntry> old_entries;
  uint64_t next_page = 0;
};
inline ContextState& StateOf(Context& context) {
  return *static_cast<ContextState*>(context.driver.get());
}

// The places of one object.
struct PlacesState final : DriverState {
  ContextState* context = nullptr;
  std::vector<uint64_t> offsets;
  uint64_t Add(const World& world, uint64_t length, const char* kind, ContextState::How how) {
    offsets.push_back(context->Insert(world, length, kind, how));
    return offsets.back();
  }
  void Forget() {
    for (const uint64_t offset : offsets) context->Remove(offset);
    offsets.clear();
  }
};

// What the driver gives back, as far as the caller has room; nothing when he has none.
int Reply(Call& call, const Body& reply);
// ib_is_udata_in_empty (7.2), ib_is_udata_cleared before: `bytes` of the private input, or all.
int EmptyInput(Call& call, RuleId input, uint64_t bytes = 0);
// efa_zalloc_mapped
int Allocate(Call& call, uint64_t bytes);

}  // namespace efa
}  // namespace vabi

#endif  // VABI_SHIMS_PROVIDERS_EFA_DRIVER_H_
