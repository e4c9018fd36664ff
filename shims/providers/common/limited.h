// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_COMMON_LIMITED_H_
#define VABI_SHIMS_PROVIDERS_COMMON_LIMITED_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "shims/uverbs/call.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/driver.h"

// Devices have room for so many objects as they tell (struct ib_device_attr); what a driver answers
// to one more is its own rule. Numbers that the kernel's own objects take, and those that firmware
// reserves, are not counted: no source tells them.

namespace vabi::provider {

// Which rule refuses one more of a kind; none: what the device answers, no source tells.
struct FullRules {
  std::optional<RuleId> pd, mr, mw, cq, qp, srq, ah;
};

// Driver `D`, whose kFull names its rules, with the limits of its device. One is made for each
// device. Windows are entries of the regions' table. Of a driver that looks at something before it
// counts, D::BeforeRoom(call, object) does that; one that counts a region before it looks at it has
// D::kCountsRegionsFirst.
template <typename D>
class Limited final : public D {
 public:
  using D::D;

  int AllocPd(Call& call, Pd& pd) override {
    return Make(call, &pds_, D::kFull.pd, pd.device->attributes().max_pd,
                [&] { return D::AllocPd(call, pd); });
  }
  void DeallocPd(Pd& pd) override {
    D::DeallocPd(pd);
    --pds_;
  }

  // Of the memory of a queue, which has no key, there is no limit.
  int RegMr(Call& call, Mr& mr) override {
    if constexpr (requires { D::kCountsRegionsFirst; }) {
      return Make(call, &regions_, D::kFull.mr, mr.device->attributes().max_mr,
                  [&] { return D::RegMr(call, mr); });
    }
    if (const int error = D::RegMr(call, mr)) return error;
    if (mr.lkey == 0) return 0;
    if (const int error = CheckRoom(call, regions_, D::kFull.mr, mr.device->attributes().max_mr)) {
      D::DeregMr(call, mr);
      return error;
    }
    ++regions_;
    return 0;
  }
  int DeregMr(Call& call, Mr& mr) override {
    const bool counted = mr.lkey != 0;
    if (const int error = D::DeregMr(call, mr)) return error;
    if (counted) --regions_;
    return 0;
  }
  int AllocMw(Call& call, Mw& mw) override {
    return Make(call, &regions_, D::kFull.mw, mw.device->attributes().max_mr,
                [&] { return D::AllocMw(call, mw); });
  }
  void DeallocMw(Mw& mw) override {
    D::DeallocMw(mw);
    --regions_;
  }

  int CreateCq(Call& call, Cq& cq) override {
    if (const int error = Before(call, cq)) return error;
    return Make(call, &cqs_, D::kFull.cq, cq.device->attributes().max_cq,
                [&] { return D::CreateCq(call, cq); });
  }
  void DestroyCq(Cq& cq) override {
    D::DestroyCq(cq);
    --cqs_;
  }

  int CreateQp(Call& call, Qp& qp) override {
    if (const int error = Before(call, qp)) return error;
    return Make(call, &qps_, D::kFull.qp, qp.device->attributes().max_qp,
                [&] { return D::CreateQp(call, qp); });
  }
  int DestroyQp(Call& call, Qp& qp) override {
    if (const int error = D::DestroyQp(call, qp)) return error;
    --qps_;
    return 0;
  }

  int CreateSrq(Call& call, Srq& srq) override {
    if (const int error = Before(call, srq)) return error;
    return Make(call, &srqs_, D::kFull.srq, srq.device->attributes().max_srq,
                [&] { return D::CreateSrq(call, srq); });
  }
  void DestroySrq(Srq& srq) override {
    D::DestroySrq(srq);
    --srqs_;
  }

  int CreateAh(Call& call, Ah& ah) override {
    return Make(call, &ahs_, D::kFull.ah, ah.device->attributes().max_ah,
                [&] { return D::CreateAh(call, ah); });
  }
  void DestroyAh(Ah& ah) override {
    D::DestroyAh(ah);
    --ahs_;
  }

 private:
  using Count = std::atomic<uint32_t>;

  template <typename Object>
  int Before(Call& call, const Object& object) {
    if constexpr (requires { D::BeforeRoom(call, object); }) return D::BeforeRoom(call, object);
    return 0;
  }

  // `most` 0: the device tells of no limit.
  static int CheckRoom(Call& call, const Count& used, std::optional<RuleId> rule, uint32_t most) {
    if (most == 0 || used.load() < most) return 0;
    if (!rule) return call.Unmodelled("more objects than the device has room for");
    return call.On(*rule) ? call.Refuse(*rule) : 0;
  }

  template <typename F>
  static int Make(Call& call, Count* used, std::optional<RuleId> rule, uint32_t most, F&& make) {
    if (const int error = CheckRoom(call, *used, rule, most)) return error;
    if (const int error = make()) return error;
    ++*used;
    return 0;
  }

  Count pds_{0}, regions_{0}, cqs_{0}, qps_{0}, srqs_{0}, ahs_{0};
};

}  // namespace vabi::provider

#endif  // VABI_SHIMS_PROVIDERS_COMMON_LIMITED_H_
