// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_MLX5_DRIVER_H_
#define VABI_SHIMS_PROVIDERS_MLX5_DRIVER_H_

#include <memory>
#include <span>

#include "shims/providers/mlx5/state.h"
#include "shims/uverbs/driver.h"

// mlx5_ib, from its source (drivers/infiniband/hw/mlx5). One subject a file, named as in the
// kernel.

namespace vabi::mlx5 {

class Mlx5Driver final : public DriverBase {
 public:
  DriverId id() const override { return DriverId::mlx5; }
  bool Offers(Op op) const override;
  std::span<const MethodSpec> PrivateMethods() const override;
  void Describe(const Device& device, DeviceAttributes* out) const override;
  void DescribePort(const Device& device, uint32_t port, PortAttributes* out) const override;
  uint32_t CompVectors(const Device&) const override { return 2; }
  int QueryDevice(Call& call, Device& device) override;
  int QueryPortSpeed(Call& call, uint32_t port, uint64_t* speed) override;
  int QueryContext(IoctlCall& call) override;

  int AllocContext(Call& call, Context& context) override;
  void DeallocContext(Context& context) override;
  int Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) override;

  int AllocPd(Call& call, Pd& pd) override;
  int RegMr(Call& call, Mr& mr) override;
  int ReregMr(Call& call, Mr& mr, uint32_t flags, uint64_t start, uint64_t length, uint64_t iova,
              uint32_t access, Pd* pd) override;
  int DeregMr(Call& call, Mr& mr) override;
  int RegDmMr(Call& call, Mr& mr) override;
  int AllocMw(Call& call, Mw& mw) override;
  void DeallocMw(Mw& mw) override;
  int AllocDm(Call& call, Dm& dm, uint32_t log_alignment) override;
  void FreeDm(Dm& dm) override;
  int AdviseMr(Call& call, Pd& pd, uint32_t advice, uint32_t flags,
               std::span<const fabric::Sge> list) override;

  int CreateCq(Call& call, Cq& cq) override;
  int ResizeCq(Call& call, Cq& cq, uint32_t cqe) override;
  int ModifyCq(Call& call, Cq& cq, uint16_t count, uint16_t period) override;
  void DestroyCq(Cq& cq) override;

  int CreateQp(Call& call, Qp& qp) override;
  int ModifyQp(Call& call, Qp& qp, vabi::QpState next, const QpAttributes& attr,
               uint32_t mask) override;
  int QueryQp(Call& call, Qp& qp) override;
  bool ChecksTransition(const World& world, const Qp& qp, uint32_t mask) const override;
  int CheckQuery(Call& call, const Qp& qp, uint32_t mask) override;
  vabi::QpState CurrentState(const World& world, const Qp& qp) const override;
  int DestroyQp(Call& call, Qp& qp) override;
  int CreateSrq(Call& call, Srq& srq) override;
  int ModifySrq(Call& call, Srq& srq, uint32_t max_wr, uint32_t limit, uint32_t mask) override;
  int QuerySrq(Call& call, Srq& srq) override;
  void DestroySrq(Srq& srq) override;
  int CreateAh(Call& call, Ah& ah) override;
  int AllocXrcd(Call& call, XrcDomain& domain) override;
  int AttachMcast(Call& call, Qp& qp, const uint8_t* gid, uint16_t lid, bool attach) override;
  int CreateWq(Call& call, Wq& wq) override;
  int ModifyWq(Call& call, Wq& wq, uint32_t mask, uint32_t state, uint32_t flags) override;
  void DestroyWq(Wq& wq) override;
  int CreateRwqIndTable(Call& call, RwqIndTable& table) override;
  int CreateFlow(Call& call, Flow& flow) override;
  void DestroyFlow(Flow& flow) override;
  int CreateCounters(Call& call, Counters& counters) override;
  int ReadCounters(Call& call, Counters& counters, std::span<uint64_t> values) override;
  int DestroyPrivate(Call& call, Object& object) override;

 private:
  mutable LinkLayer link_ = LinkLayer::kInfiniband;  // of the device; known once it is described
};

// The private methods of one subject each.
std::span<const MethodSpec> UarMethods();
std::span<const MethodSpec> DevxMethods();
std::span<const MethodSpec> StdMethods();
std::span<const MethodSpec> DeviceMemoryMethods();
std::span<const MethodSpec> FlowMethods();

// Helpers of several subjects (context.cc, memory.cc).

// ib_umem_get of [address, address + size): EINVAL for nothing or too much, EFAULT where it is not
// there.
int PinMemory(Call& call, uint64_t address, uint64_t size, bool writable);
// Tag matching (4.14), where the NIC has it.
bool MatchesTags(const World& world, const Device& device);
// The key of a new region, window or indirect key.
uint32_t NextKey(Device& device);
// mlx5_ib_db_map_user
int PinDoorbell(Call& call, uint64_t address);
// What one command does with its private request.
struct RequestRules {
  size_t minimum;  // shorter: too_short
  RuleId too_short, tail;
};
// Fills `size` bytes at `to`: what was sent, and zeroes. A longer request must be zero behind
// `size` where this kernel has the rule `tail`.
int CopyRequest(Call& call, void* to, size_t size, const RequestRules& rules);
// ib_respond_udata (7.2): clipped to the caller's buffer, the rest of which becomes zero. Before,
// the driver clipped by itself (kClip) or did not look at the buffer's size at all (kWhole).
// qp_dynamic.cc: mlx5_ib_modify_dct, modify_dci_qp_is_ok, mlx5_ib_dct_query_qp
int ModifyTarget(Call& call, Qp& qp, vabi::QpState next, const QpAttributes& attr, uint32_t mask);
bool InitiatorMayChange(const World& world, vabi::QpState from, vabi::QpState to, uint32_t mask);
void QueryTarget(Qp& qp);
// qp.c:create_rss_raw_qp_tir
int CreateRss(Call& call, Qp& qp);
enum class OldRespond : uint8_t { kClip, kWhole };
int Respond(Call& call, const void* from, size_t size, OldRespond before);

}  // namespace vabi::mlx5

#endif  // VABI_SHIMS_PROVIDERS_MLX5_DRIVER_H_
